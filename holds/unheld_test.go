package holds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"seatcast/holds"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// rows are bookings without holds, in memory.
type rows struct {
	mu    sync.Mutex
	facts seatmap.Facts
	held  bool // seats are held after all
	made  map[string]seatmap.Basket
	sold  seatmap.Map
	asked int
}

func (b *rows) Book(_ context.Context, _ *seatmap.Sale, r seatmap.Basket, hold, most time.Duration, may func(seatmap.Facts) error) (seatmap.Basket, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held {
		return r, false, seatmap.ErrHeld
	}
	facts := b.facts
	for _, i := range r.Seats {
		if b.sold.At(i) == seatmap.Sold {
			facts.Gone = append(facts.Gone, i)
		}
	}
	if err := may(facts); err != nil {
		return r, false, err
	}
	r.State, r.Unheld, r.First = seatmap.BasketHeld, true, time.Now()
	r.Until, r.Cap = r.First.Add(hold), r.First.Add(most)
	b.made[r.Token] = r
	return r, true, nil
}

func (b *rows) Booked(_ context.Context, _, token string) (seatmap.Basket, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	made, ok := b.made[token]
	if !ok {
		return made, seatmap.ErrNoBasket
	}
	return made, nil
}

func (b *rows) Prolong(ctx context.Context, event, token, user string, by time.Duration) (seatmap.Basket, error) {
	made, err := b.Booked(ctx, event, token)
	switch {
	case b.held:
		return made, seatmap.ErrHeld
	case err == nil && made.User != user:
		return made, seatmap.ErrNotYours
	}
	made.Until = time.Now().Add(by)
	return made, err
}

func (b *rows) Exchange(ctx context.Context, event, token, _ string, seats []int, quote func(seatmap.Basket, seatmap.Facts) (json.RawMessage, error)) (seatmap.Basket, error) {
	made, err := b.Booked(ctx, event, token)
	if err != nil {
		return made, err
	}
	text, err := quote(made, b.facts)
	made.Seats, made.Quote = seats, text
	return made, err
}

func (b *rows) Sold(context.Context, string) (seatmap.Map, map[string]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sold, nil, nil
}

func (b *rows) Free(_ context.Context, _ string) (seatmap.Map, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	free := slices.Clone(b.sold)
	for _, one := range b.made {
		for _, i := range one.Seats {
			if b.sold.At(i) == seatmap.Available {
				free.Set(i, seatmap.Held)
			}
		}
	}
	return free, nil
}

// Standing is that of a booking without a hold, of which no payment has begun.
func (b *rows) Standing(_ context.Context, id string) (user, state string, err error) {
	_, token, _ := seatmap.ParseBookingID(id)
	made, err := b.Booked(context.Background(), "", token)
	if err != nil {
		return "", "", nil
	}
	return made.User, "unheld", nil
}

// newOutage is a shop whose event is without holds, and whose Redis is gone.
func newOutage(tb testing.TB) (*shop, *rows) {
	gone := func(h *house) *holds.Store {
		rdb, err := holds.Client("redis://127.0.0.1:1")
		h.must(err)
		h.Cleanup(func() { _ = rdb.Close() })
		return holds.New(rdb, judge(h.ask), voice(h.hear), quiet)
	}
	s := newShop(tb, gone)
	b := &rows{made: map[string]seatmap.Basket{}, sold: seatmap.NewMap(40)}
	s.api.With(nil, b).Without(b)
	s.sale.NoHolds = true
	return s, b
}

func seatsBody(seats ...int) string {
	ids := make([]string, len(seats))
	for k, i := range seats {
		ids[k] = fmt.Sprint("n-a-", i)
	}
	body, _ := json.Marshal(map[string]any{"ticketIds": ids})
	return string(body)
}

func (s *shop) wants(a answered, status int, code string) answered {
	s.Helper()
	if a.Status != status || a.Code != code {
		s.Fatalf("got %d %s, want %d %s: %s", a.Status, a.Code, status, code, a.Body)
	}
	return a
}

func TestWithoutHoldsABookingIsMadeOnceAndSaysSo(t *testing.T) {
	s, _ := newOutage(t)
	first := s.wants(s.take("ann", "k", seatsBody(1, 2)), http.StatusCreated, "")
	if first.Booking.Holds == nil || *first.Booking.Holds || first.Booking.State != "held" || first.Booking.Total.Amount != 18000 {
		t.Errorf("told as %s", first.Body)
	}
	if again := s.wants(s.take("ann", "k", seatsBody(2, 1)), http.StatusOK, ""); again.Booking.BookingID != first.Booking.BookingID {
		t.Errorf("a repeat is %s", again.Body)
	}
	s.wants(s.take("ann", "k", seatsBody(3)), http.StatusUnprocessableEntity, "idempotency_key_reused")
	if other := s.wants(s.take("bob", "k", seatsBody(1, 2)), http.StatusCreated, ""); other.Booking.BookingID == first.Booking.BookingID {
		t.Error("another account has the same booking")
	}
	s.wants(s.post("bob", "/v1/bookings/"+first.Booking.BookingID+"/extend", "", ""), http.StatusForbidden, "not_your_booking")
	s.wants(s.post("ann", "/v1/bookings/"+first.Booking.BookingID+"/extend", "", ""), http.StatusOK, "")
	s.wants(s.post("ann", "/v1/bookings/"+s.event+".unknown/extend", "", ""), http.StatusServiceUnavailable, "store_unavailable")
	s.sale.Open = false
	s.wants(s.take("ann", "k", seatsBody(1, 2)), http.StatusOK, "")
	s.wants(s.take("ann", "another", seatsBody(1, 2)), http.StatusForbidden, "sale_not_open")
}

func TestWithoutHoldsBookingsAreRefusedByWhatPostgresKnows(t *testing.T) {
	for code, c := range map[string]struct {
		facts  seatmap.Facts
		status int
	}{
		"seats_taken":       {seatmap.Facts{Gone: []int{2}}, http.StatusConflict},
		"area_full":         {seatmap.Facts{Full: "pit"}, http.StatusConflict},
		"account_limit":     {seatmap.Facts{Tickets: 7}, http.StatusForbidden},
		"too_many_held":     {seatmap.Facts{Seats: 7, Bookings: 1}, http.StatusTooManyRequests},
		"too_many_bookings": {seatmap.Facts{Seats: 2, Bookings: 2}, http.StatusTooManyRequests},
	} {
		t.Run(code, func(t *testing.T) {
			s, b := newOutage(t)
			s.sale.Terms.HoldsPerUser = 2
			b.facts = c.facts
			a := s.wants(s.take("ann", "", seatsBody(1, 2)), c.status, code)
			if code == "seats_taken" && (len(a.Seats) != 1 || string(a.Seats[0]) != `"n-a-2"`) {
				t.Errorf("seats gone: %s", a.Body)
			}
			if len(b.made) > 0 {
				t.Errorf("made %+v", b.made)
			}
		})
	}
}

// Nobody's choice is held, so that all who choose at once must not choose alike.
func TestWithoutHoldsTheBestAvailableAreNobodysYet(t *testing.T) {
	s, b := newOutage(t)
	for i := range 20 {
		b.sold.Set(i, seatmap.Sold)
	}
	best := `{"bestAvailable":{"quantity":2}}`
	seen := map[int]bool{}
	for n := range 5 {
		a := s.wants(s.take(fmt.Sprint("u", n), "k", best), http.StatusCreated, "")
		for _, seat := range a.Booking.Seats {
			if seen[seat.I] || seat.I < 20 {
				t.Errorf("seat %d is given once more", seat.I)
			}
			seen[seat.I] = true
		}
		if again := s.wants(s.take(fmt.Sprint("u", n), "k", best), http.StatusOK, ""); again.Booking.BookingID != a.Booking.BookingID {
			t.Errorf("a repeat is %s", again.Body)
		}
	}
	s.wants(s.take("all", "", `{"bestAvailable":{"quantity":8}}`), http.StatusCreated, "")
	s.wants(s.take("rest", "", `{"bestAvailable":{"quantity":8}}`), http.StatusCreated, "") // of those others may still pay for
	for i := range 40 {
		b.sold.Set(i, seatmap.Sold)
	}
	s.wants(s.take("late", "", best), http.StatusConflict, "sold_out")
}

func TestWithoutHoldsABookingIsSwappedUntilItIsHeld(t *testing.T) {
	s, b := newOutage(t)
	booking := s.wants(s.take("ann", "", seatsBody(1)), http.StatusCreated, "").Booking.BookingID
	swap := func() answered {
		return s.send(http.MethodPut, "ann", "/v1/bookings/"+booking+"/seats", "", seatsBody(2, 3))
	}
	if a := s.wants(swap(), http.StatusOK, ""); len(a.Booking.Seats) != 2 || a.Booking.Total.Amount != 18000 {
		t.Errorf("swapped to %s", a.Body)
	}
	b.facts.Gone = []int{3}
	s.wants(swap(), http.StatusConflict, "seats_taken")
	s.sale.NoHolds = false
	s.wants(swap(), http.StatusConflict, "booked_without_hold")
}

func TestWithoutHoldsASwapIsWarnedOfTheOrphanItLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		sold, has, wants []int
		warned           []string
	}{
		"far from what it had":            {nil, []int{20}, []int{1, 2}, []string{"orphan_left n-a-0"}},
		"one of its own":                  {nil, []int{0, 1}, []int{1, 2}, []string{"orphan_left n-a-0"}},
		"its own are none beside another": {[]int{5}, []int{4}, []int{2}, nil},
		"what was its own is sold":        {[]int{0}, []int{0, 1}, []int{2, 3}, []string{"orphan_left n-a-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newOutage(t)
			s.sale.Orphans = seatmap.OrphansWarn
			booking := s.wants(s.take("ann", "", seatsBody(c.has...)), http.StatusCreated, "").Booking.BookingID
			for _, i := range c.sold {
				b.sold.Set(i, seatmap.Sold)
			}
			swapped := s.wants(s.put("ann", booking, seatsBody(c.wants...)), http.StatusOK, "")
			if _, _, warned := chose(swapped); !slices.Equal(warned, c.warned) {
				t.Errorf("warned of %v, want %v", warned, c.warned)
			}
		})
	}
}

func TestWithoutHoldsTheFirstSeatsOfABookingOfPlacesAreABookingMore(t *testing.T) {
	s, b := newOutage(t)
	s.sale.Terms.HoldsPerUser = 2
	seats := s.wants(s.take("ann", "", seatsBody(1)), http.StatusCreated, "").Booking.BookingID
	places := s.wants(s.take("ann", "", `{"areas":[{"area":"pit","quantity":1}]}`), http.StatusCreated, "").Booking.BookingID
	b.facts.Bookings, b.facts.Seats = 2, 2 // her others'
	s.wants(s.put("ann", places, seatsBody(3)), http.StatusTooManyRequests, "too_many_bookings")
	s.wants(s.put("ann", seats, seatsBody(3)), http.StatusOK, "")
}

func TestARushWithoutHoldsIsBounded(t *testing.T) {
	s, _ := newOutage(t)
	codes := map[int]int{}
	for range 30 {
		a := s.take("bot", "same", seatsBody(1))
		codes[a.Status]++
		if a.Status == http.StatusTooManyRequests && (a.Code != "too_many_requests" || a.Header.Get("Retry-After") == "") {
			t.Fatalf("refused with %s %v", a.Body, a.Header)
		}
	}
	if codes[http.StatusTooManyRequests] < 15 || codes[http.StatusCreated] != 1 {
		t.Errorf("answers of one account: %v", codes)
	}
	if a := s.take("ann", "", seatsBody(2)); a.Status != http.StatusCreated {
		t.Errorf("another account: %s", a.Body)
	}
	refused := 0
	for n := range 400 {
		if a := s.take(fmt.Sprint("u", n), "", seatsBody(2)); a.Status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("a node takes any number")
	}
}

// A node that learns a second late that the mode is over asks Redis at once.
func TestABookingOfAnEventThatHoldsAfterAllIsHeld(t *testing.T) {
	s := newShop(t, onStore)
	b := &rows{made: map[string]seatmap.Basket{}, sold: seatmap.NewMap(40), held: true}
	s.api.Without(b)
	s.sale.NoHolds = true
	a := s.wants(s.take("ann", "", seatsBody(4)), http.StatusCreated, "")
	if a.Booking.Holds != nil {
		t.Errorf("told as %s", a.Body)
	}
	if s.holder(4) == "" {
		t.Error("the seat is not held")
	}
	s.wants(s.post("ann", "/v1/bookings/"+a.Booking.BookingID+"/extend", "", ""), http.StatusOK, "")
}

func TestSilentIsARedisThatTakesNoHolds(t *testing.T) {
	t.Parallel()
	h := private(t, 4)
	ctx := t.Context()
	says := func(silent int, all bool) {
		t.Helper()
		got, mute := h.store.Silent(ctx, []string{h.event, "other"})
		if len(got) != silent || mute != all {
			t.Errorf("silent: %v %v", got, mute)
		}
	}
	says(0, false)
	h.unchanged("asking whether Redis answers", func() { says(0, false) })
	h.must(h.rdb.ConfigSet(ctx, "maxmemory", "1mb").Err())
	says(2, true)
	h.must(h.rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	says(0, false)
	replica := devtest.RedisServer(t, devstack.RedisOptions{ReplicaOf: devtest.RedisServer(t, devstack.RedisOptions{}).Addr()})
	of, err := holds.Client(replica.URL())
	h.must(err)
	defer func() { _ = of.Close() }()
	if _, mute := holds.New(of, judge(h.ask), voice(h.hear), quiet).Silent(ctx, nil); !mute {
		t.Error("a replica takes holds")
	}
	replica.Kill()
	if _, mute := holds.New(of, judge(h.ask), voice(h.hear), quiet).Silent(ctx, nil); !mute {
		t.Error("a Redis that is gone answers")
	}
}

func TestOfAClusterOnlyTheEventsOfADeadPartAreSilent(t *testing.T) {
	t.Parallel()
	c := newClustered(t, 12, 4)
	store := holds.New(c.rdb, judge(c.events[0].ask), voice(c.events[0].hear), quiet)
	var names []string
	for _, h := range c.events {
		names = append(names, h.event)
	}
	// One that is slow is silent too, for a while.
	are := func(what string, want []string) {
		t.Helper()
		var silent []string
		var all bool
		defer func() { t.Log(what, silent, all) }()
		c.events[0].eventually(what, func() bool {
			silent, all = store.Silent(t.Context(), names)
			slices.Sort(silent)
			return !all && slices.Equal(silent, want)
		})
	}
	are("nobody is silent", nil)
	victim := c.server(c.events[0])
	var dead []string
	for _, h := range c.events {
		if c.server(h) == victim {
			dead = append(dead, h.event)
		}
	}
	slices.Sort(dead)
	victim.Kill()
	are("those of the dead primary are silent, and no others", dead)
}
