package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// goWithout puts the event into the mode, as this process sees it too.
func (h *house) goWithout() {
	h.t.Helper()
	h.exec(`UPDATE events SET unheld_since = now()`)
	h.sale.NoHolds = true
}

// book books without a hold.
func (h *house) book(user string, seats ...int) seatmap.Basket {
	h.t.Helper()
	b, fresh, err := h.tryBook(user, fmt.Sprintf("%032d", h.holds.next()), anything, seats...)
	must(h.t, err)
	if !fresh {
		h.t.Errorf("%s of %s was there", b.Token, user)
	}
	return b
}

func anything(seatmap.Facts) error { return nil }

func (h *house) tryBook(user, token string, may func(seatmap.Facts) error, seats ...int) (seatmap.Basket, bool, error) {
	h.t.Helper()
	q, err := h.sale.Quote(seats, nil)
	must(h.t, err)
	quote, err := json.Marshal(q)
	must(h.t, err)
	asked := seatmap.Basket{Event: event, Token: token, User: user, Seats: seats, Quote: quote, Hash: "h"}
	return h.store.Book(h.t.Context(), h.sale, asked, time.Minute, 20*time.Minute, may)
}

func idOf(b seatmap.Basket) string { return seatmap.BookingID(b.Event, b.Token) }

func TestWhatIsWrittenWithoutHoldsIsRefusedWhileSeatsAreHeld(t *testing.T) {
	h := setup(t)
	h.goWithout()
	b := h.book("ada", 1)
	h.exec(`UPDATE events SET unheld_since = NULL`)
	ctx := t.Context()
	_, _, booked := h.tryBook("ada", "another", anything, 2)
	_, prolonged := h.store.Prolong(ctx, event, b.Token, "ada", time.Minute)
	_, exchanged := h.store.Exchange(ctx, event, b.Token, "ada", []int{3}, func(seatmap.Basket, seatmap.Facts) (json.RawMessage, error) {
		t.Error("it is judged")
		return nil, nil
	})
	for _, err := range []error{booked, prolonged, exchanged} {
		if !errors.Is(err, seatmap.ErrHeld) {
			t.Errorf("while seats are held: %v", err)
		}
	}
}

func TestABookingWithoutAHoldIsJudgedByWhatPostgresKnows(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{1, 2}, 0), "ada", sandbox.CardApprove)
	h.pay(h.hold("eve", []int{3}, 9), "eve", sandbox.CardApprove)
	h.exec(`UPDATE seats SET off_sale = true, status = 'unavailable' WHERE i = 4`)
	h.goWithout()
	first := h.book("ada", 5, 6, 7)
	var got seatmap.Facts
	refusal := errors.New("no")
	_, _, err := h.tryBook("ada", "second", func(f seatmap.Facts) error { got = f; return refusal }, 2, 3, 4, 5)
	if !errors.Is(err, refusal) {
		t.Errorf("refused: %v", err)
	}
	if want := (seatmap.Facts{Gone: []int{2, 3, 4}, Tickets: 2, Seats: 3, Bookings: 1}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("judged by %+v, not %+v", got, want)
	}
	if n := ask[int](h, `SELECT count(*) FROM bookings WHERE NOT holds`); n != 1 {
		t.Errorf("%d bookings without a hold", n)
	}
	again, fresh, err := h.tryBook("ada", first.Token, func(seatmap.Facts) error { t.Error("a repeat is judged"); return nil }, 5, 6, 7)
	if err != nil || fresh || fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("a repeat: %v %v\n%+v\n%+v", fresh, err, again, first)
	}
}

// Two bookings of one account, each the last it may have.
func TestOfOneAccountOneBookingIsJudgedAtATime(t *testing.T) {
	h := setup(t)
	h.goWithout()
	var wg sync.WaitGroup
	var made atomic.Int32
	for n := range 10 {
		wg.Go(func() {
			_, _, err := h.tryBook("ada", fmt.Sprintf("%032d", n), func(f seatmap.Facts) error {
				if f.Bookings > 0 {
					return seatmap.ErrNotYours
				}
				return nil
			}, n)
			if err == nil {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("%d bookings of an account that may have one", made.Load())
	}
}

// Two bookings of one account that may have six seats: each has one, and wants five.
func TestOfOneAccountOneSwapIsJudgedAtATime(t *testing.T) {
	h := setup(t)
	h.goWithout()
	one, two := h.book("ada", 1), h.book("ada", 2)
	over := errors.New("over the cap")
	swap := func(b seatmap.Basket, seats []int, judging func()) error {
		_, err := h.store.Exchange(t.Context(), event, b.Token, "ada", seats, func(_ seatmap.Basket, f seatmap.Facts) (json.RawMessage, error) {
			judging()
			if f.Seats+len(seats) > 6 {
				return nil, over
			}
			q, err := h.sale.Quote(seats, nil)
			if err != nil {
				return nil, err
			}
			return json.Marshal(q)
		})
		return err
	}
	var wg sync.WaitGroup
	var first, second error
	var both atomic.Bool // are judged at once
	begun, end := make(chan struct{}), make(chan struct{})
	began := sync.OnceFunc(func() { close(begun) })
	wg.Go(func() {
		defer began() // also of one that is never judged
		first = swap(one, []int{10, 11, 12, 13, 14}, func() { began(); <-end })
	})
	<-begun
	wg.Go(func() { second = swap(two, []int{15, 16, 17, 18, 19}, func() { both.Store(true) }) })
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`)
		return "the second does not wait", n > 0 || both.Load()
	})
	close(end)
	wg.Wait()
	if first != nil || !errors.Is(second, over) {
		t.Errorf("swapped: %v, %v", first, second)
	}
	if n := ask[int](h, `SELECT sum(cardinality(seats)) FROM bookings`); n != 6 {
		t.Errorf("the account has %d seats", n)
	}
}

// lost is a Redis that must not be asked.
func (h *house) lost() {
	h.holds.mu.Lock()
	defer h.holds.mu.Unlock()
	h.holds.baskets = nil // of a nil map nothing is found, and a write panics
	h.holds.spend = func(context.Context, seatmap.Marks) error {
		h.t.Error("Redis is told of a sale while it is away")
		return seatmap.ErrUnavailable
	}
}

func TestWithoutHoldsABookingIsPaidForExtendedAndGivenBackByItsRow(t *testing.T) {
	h := setup(t, func(_ *house, o *checkout.Options, _ *sandbox.Options) { o.ExtendAhead = time.Minute })
	h.goWithout()
	h.lost()
	h.run(h.desk.Run)

	b := h.book("ada", 1, 2)
	if r := h.get(idOf(b), "ada"); r.State != "held" {
		t.Errorf("it is told as %+v", r)
	}
	if r := h.get(idOf(b), "bob"); r.Code != "not_your_booking" {
		t.Errorf("to another: %+v", r)
	}
	if r := h.pay(idOf(b), "ada", sandbox.CardDecline); r.State != "held" {
		t.Errorf("declined: %+v", r)
	}
	if r := h.pay(idOf(b), "ada", sandbox.CardApprove); r.State != "sold" {
		t.Errorf("paid: %+v", r)
	}

	slow := h.book("bob", 3)
	h.pay(idOf(slow), "bob", sandbox.CardLate)
	h.exec(`UPDATE bookings SET deadline = now() + interval '2 seconds' WHERE id = $1`, idOf(slow))
	h.eventually(func() (string, bool) {
		return "who pays is not extended", ask[bool](h, `SELECT deadline > now() + interval '30 seconds' FROM bookings WHERE id = $1`, idOf(slow))
	})

	given := h.book("eve", 4)
	if r := h.call(http.MethodDelete, "/bookings/"+idOf(given), "eve", nil); r.Status != http.StatusNoContent {
		t.Errorf("given back: %+v", r)
	}
	if r := h.pay(idOf(given), "eve", sandbox.CardApprove); r.Code != "hold_expired" {
		t.Errorf("paid after it was given back: %+v", r)
	}
	late := h.book("eve", 5)
	h.exec(`UPDATE bookings SET deadline = now() WHERE id = $1`, idOf(late))
	h.becomes(idOf(late), "expired")
	if r := h.call(http.MethodDelete, "/bookings/"+event+".unknown", "eve", nil); r.Code != "store_unavailable" {
		t.Errorf("what only Redis knows: %+v", r)
	}
	h.sound()
}

// What its owner may have extended in Redis does not expire while Redis is away.
func TestAHoldOnlyRedisKnowsTheEndOfDoesNotExpireWithoutIt(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardDecline)
	h.exec(`UPDATE bookings SET deadline = now() WHERE id = $1`, id)
	h.goWithout()
	h.lost()
	h.run(h.desk.Run)
	h.eventually(func() (string, bool) {
		return "the reconciler has not looked", ask[int](h, `SELECT count(*) FROM river_job WHERE kind = 'reconcile' AND attempt > 0`) > 0
	})
	if state := ask[string](h, `SELECT state FROM bookings WHERE id = $1`, id); state != "held" {
		t.Errorf("it is %s", state)
	}
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Code != "store_unavailable" {
		t.Errorf("paid: %+v", r)
	}
}

func TestOfManyBookingsWithoutHoldsOfASeatOneIsSoldAndNoOtherIsCharged(t *testing.T) {
	h := setup(t)
	h.goWithout()
	h.lost()
	h.run(h.desk.Run)
	var bookings []seatmap.Basket
	for n := range 12 {
		bookings = append(bookings, h.book(fmt.Sprint("user", n), 7, 8+n%3))
	}
	var wg sync.WaitGroup
	replies := make([]reply, len(bookings))
	for n, b := range bookings {
		wg.Go(func() { replies[n] = h.pay(idOf(b), b.User, sandbox.CardApprove) })
	}
	wg.Wait()
	sold := 0
	for n, r := range replies {
		switch {
		case r.State == "sold":
			sold++
		case r.Code != "seats_lost" || r.Reason != checkout.ReasonSeatsGone:
			t.Errorf("user%d: %+v", n, r)
		}
	}
	if sold != 1 {
		t.Errorf("%d are sold", sold)
	}
	h.quietens()
	if r := h.sound(); r.Seats != 2 || r.Money.Amount != 2000 {
		t.Errorf("sold %+v", r)
	}
}

func TestASwapWithoutHoldsAndAPaymentAreOneAfterTheOther(t *testing.T) {
	h := setup(t)
	h.goWithout()
	h.lost()
	h.run(h.desk.Run)
	refusal := errors.New("begun")
	for n := range 10 {
		b := h.book("ada"+fmt.Sprint(n), n)
		var wg sync.WaitGroup
		var paid reply
		var swapped error
		wg.Go(func() { paid = h.pay(idOf(b), b.User, sandbox.CardApprove) })
		wg.Go(func() {
			_, swapped = h.store.Exchange(t.Context(), event, b.Token, b.User, []int{20 + n}, func(was seatmap.Basket, _ seatmap.Facts) (json.RawMessage, error) {
				if was.Sealed {
					return nil, refusal
				}
				q, err := h.sale.Quote([]int{20 + n}, nil)
				must(t, err)
				return json.Marshal(q)
			})
		})
		wg.Wait()
		if paid.State != "sold" {
			t.Fatalf("payment: %+v", paid)
		}
		seats := ask[[]int](h, `SELECT array_agg(i) FROM tickets WHERE booking_id = $1`, idOf(b))
		switch {
		case swapped == nil && !slices.Equal(seats, []int{20 + n}):
			t.Errorf("swapped, and sold %v", seats)
		case swapped != nil && !slices.Equal(seats, []int{n}):
			t.Errorf("not swapped (%v), and sold %v", swapped, seats)
		}
	}
	h.quietens()
	h.sound()
}

func TestWhoPaysComesBeforeWhoMayPayWhereHoldsBeginAgain(t *testing.T) {
	h := setup(t)
	h.goWithout()
	early, late := h.book("ada", 1), h.book("bob", 1)
	h.pay(idOf(late), "bob", sandbox.CardLate)
	must(t, h.store.Truth(t.Context(), event, func(_ context.Context, truth seatmap.Truth) error {
		if len(truth.Baskets) != 2 || truth.Baskets[0].Token != late.Token || truth.Baskets[1].Token != early.Token {
			t.Errorf("holds are given to %+v", truth.Baskets)
		}
		return nil
	}))
}

func TestTheBooksShowWhatIsSoldAndWhatIsAboutToBe(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{1}, 2), "ada", sandbox.CardApprove)
	h.exec(`UPDATE seats SET off_sale = true, status = 'unavailable' WHERE i = 4`)
	h.goWithout()
	h.book("bob", 2)
	books := checkout.NewBooks(h.store)
	m, left, err := books.Sold(t.Context(), event)
	must(t, err)
	free, err := books.Free(t.Context(), event)
	must(t, err)
	for i, want := range map[int][2]seatmap.Status{1: {seatmap.Sold, seatmap.Sold}, 2: {seatmap.Available, seatmap.Held}, 3: {seatmap.Available, seatmap.Available}, 4: {seatmap.Unavailable, seatmap.Unavailable}} {
		if got := [2]seatmap.Status{m.At(i), free.At(i)}; got != want {
			t.Errorf("seat %d is %v, not %v", i, got, want)
		}
	}
	if left["floor"] != 8 {
		t.Errorf("%v places left", left)
	}
	if _, _, err := books.Sold(t.Context(), "unknown"); !errors.Is(err, seatmap.ErrNoEvent) {
		t.Errorf("of no event: %v", err)
	}
}
