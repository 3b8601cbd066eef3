package holds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"seatcast/seatmap"
)

// put sends a body to a booking's seats, as user.
func (s *shop) put(user, booking, body string) answered {
	s.Helper()
	return s.send(http.MethodPut, user, "/v1/bookings/"+booking+"/seats", "", body)
}

// chose are the ticket ids of a booking, and what was said of it.
func chose(a answered) (ids []string, together *bool, warned []string) {
	var b struct {
		Seats    []struct{ TicketID string }
		Together *bool
		Warnings []struct {
			Code  string
			Seats []string
		}
	}
	_ = json.Unmarshal([]byte(a.Body), &b) // what is no booking has chosen nothing
	for _, seat := range b.Seats {
		ids = append(ids, seat.TicketID)
	}
	for _, w := range b.Warnings {
		warned = append(warned, w.Code+" "+strings.Join(w.Seats, ","))
	}
	return ids, b.Together, warned
}

// memory is a map this node follows.
type memory struct{ m atomic.Pointer[seatmap.Map] }

func (m *memory) Map(*seatmap.Sale) (seatmap.Map, bool) {
	if p := m.m.Load(); p != nil {
		return *p, true
	}
	return nil, false
}

// standing is where every booking stands; each is of an account of that name.
type standing string

func (s standing) Standing(context.Context, string) (user, state string, err error) {
	return string(s), string(s), nil
}

func TestTheBestAvailableIsHeldOnceAndAnsweredAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	body := `{"bestAvailable":{"quantity":3,"categories":["gold"],"sections":["n"]},"areas":[{"area":"pit","quantity":1}]}`
	first := s.take("ann", "k1", body)
	ids, together, _ := chose(first)
	if first.Status != http.StatusCreated || len(ids) != 3 || together == nil || !*together || first.Booking.Total.Amount != 3*9000+2500 {
		t.Fatalf("%d %s", first.Status, first.Body)
	}
	for i := range 40 { // the house is sold out: a repeat that chose anew would be refused
		if s.holder(i) == "" {
			s.must(s.store.Spend(t.Context(), s.event, seatmap.Marks{Seats: []int{i}}))
		}
	}
	s.unchanged("the same again", func() {
		again := s.take("ann", "k1", strings.ReplaceAll(body, `"categories":["gold"],`, `"categories":["gold"],"accessible":0,`))
		if again.Status != http.StatusOK || again.Body != first.Body {
			t.Errorf("%d %s\nfirst %s", again.Status, again.Body, first.Body)
		}
		if a := s.take("ann", "k1", `{"bestAvailable":{"quantity":2}}`); a.Code != "idempotency_key_reused" {
			t.Errorf("another wish: %d %s", a.Status, a.Body)
		}
		if a := s.take("bob", "", `{"bestAvailable":{"quantity":1}}`); a.Status != http.StatusConflict || a.Code != "sold_out" {
			t.Errorf("sold out: %d %s", a.Status, a.Body)
		}
	})
}

func TestAnAnswerSaysWhetherItsSeatsAreTogetherAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	var sold []int
	for i := range 40 {
		if i != 5 && i != 20 && i != 21 {
			sold = append(sold, i)
		}
	}
	s.must(s.store.Spend(t.Context(), s.event, seatmap.Marks{Seats: sold}))
	if a := s.take("ann", "", `{"bestAvailable":{"quantity":4}}`); a.Code != "too_few_left" || !strings.Contains(a.Body, `"left":3`) {
		t.Errorf("four of three: %d %s", a.Status, a.Body)
	}
	ids, together, _ := chose(s.take("ann", "", `{"bestAvailable":{"quantity":3}}`))
	if fmt.Sprint(ids) != "[n-a-5 n-a-20 n-a-21]" || together == nil || *together {
		t.Errorf("three of three: %v %v", ids, together)
	}
}

// The map in memory is behind: it shows as free what is gone in Redis.
func TestABestChoiceThatIsGoneIsChosenAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	empty := seatmap.NewMap(40)
	var node memory
	node.m.Store(&empty)
	s.api.With(&node, nil)
	var sold []int
	for i := range 36 {
		sold = append(sold, i)
	}
	s.must(s.store.Spend(t.Context(), s.event, seatmap.Marks{Seats: sold}))
	for k := range 2 {
		a := s.take(fmt.Sprint("user ", k), "", `{"bestAvailable":{"quantity":2}}`)
		if ids, together, _ := chose(a); a.Status != http.StatusCreated || len(ids) != 2 || !*together {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if a := s.take("late", "", `{"bestAvailable":{"quantity":2}}`); a.Status != http.StatusConflict || a.Code != "sold_out" {
		t.Errorf("the last: %d %s", a.Status, a.Body)
	}
}

// Sixty ask at once for the twenty pairs there are.
func TestWhileThereArePairsNobodyIsRefusedOne(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	var won, refused atomic.Int64
	var wg sync.WaitGroup
	for k := range 60 {
		wg.Go(func() {
			a := s.take(fmt.Sprint("user ", k), "once", `{"bestAvailable":{"quantity":2}}`)
			_, together, _ := chose(a)
			switch {
			case a.Status == http.StatusCreated && *together:
				won.Add(1)
			case a.Code == "sold_out":
				refused.Add(1)
			default:
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 20 || refused.Load() != 40 {
		t.Errorf("%d have a pair and %d were refused", won.Load(), refused.Load())
	}
	s.sound()
}

func TestAnOrphanIsAllowedWarnedOfOrRefused(t *testing.T) {
	t.Parallel()
	leaves := `{"ticketIds":["n-a-1","n-a-2"]}` // n-a-0, the first of its row
	for rule, want := range map[seatmap.OrphanRule]struct {
		status int
		warns  string
	}{
		seatmap.OrphansAllow:  {201, ""},
		seatmap.OrphansWarn:   {201, "orphan_left n-a-0"},
		seatmap.OrphansRefuse: {422, ""},
	} {
		s := newShop(t, onStore)
		s.sale.Orphans = rule
		a := s.take("ann", "k1", leaves)
		_, _, warned := chose(a)
		if a.Status != want.status || strings.Join(warned, " ") != want.warns {
			t.Errorf("%s: %d %s", rule, a.Status, a.Body)
		}
		if rule == seatmap.OrphansRefuse {
			if a.Code != "orphan_left" || len(a.Seats) != 1 || string(a.Seats[0]) != `"n-a-0"` || s.holder(1) != "" {
				t.Errorf("refused with %s", a.Body)
			}
			continue
		}
		s.unchanged("the same again", func() {
			if again := s.take("ann", "k1", leaves); again.Status != 200 || again.Body != a.Body {
				t.Errorf("%s: again %d %s", rule, again.Status, again.Body)
			}
		})
	}
}

func TestTheBestAvailableIsNotJudgedAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	s.sale.Orphans = seatmap.OrphansRefuse
	var sold []int
	for i := range 37 {
		sold = append(sold, i)
	}
	s.must(s.store.Spend(t.Context(), s.event, seatmap.Marks{Seats: sold}))
	a := s.take("ann", "", `{"bestAvailable":{"quantity":2,"allowOrphans":true}}`)
	if ids, _, warned := chose(a); a.Status != 201 || len(ids) != 2 || len(warned) > 0 {
		t.Errorf("two of the last three: %d %s", a.Status, a.Body)
	}
}

func TestARefusalNamesAlternativesWhenAskedAndKnown(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	s.take("bob", "", `{"ticketIds":["n-a-3"]}`)
	type told struct {
		Alternatives []struct {
			TicketIDs []string
			Together  bool
		}
	}
	asks := func(body string) (n told) {
		a := s.take("ann", "", body)
		if a.Code != "seats_taken" || string(a.Seats[0]) != `"n-a-3"` {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		s.must(json.Unmarshal([]byte(a.Body), &n))
		return n
	}
	const wants = `{"ticketIds":["n-a-3","n-a-4"],"alternatives":true}`
	if n := asks(wants); len(n.Alternatives) != 0 {
		t.Errorf("without a map in memory: %+v", n)
	}
	m := s.seatmap()
	var node memory
	node.m.Store(&m)
	s.api.With(&node, nil)
	if n := asks(`{"ticketIds":["n-a-3","n-a-4"]}`); len(n.Alternatives) != 0 {
		t.Errorf("not asked for: %+v", n)
	}
	n := asks(wants)
	if len(n.Alternatives) != 3 {
		t.Fatalf("%+v", n)
	}
	for k, one := range n.Alternatives {
		ids, err := json.Marshal(one.TicketIDs)
		s.must(err)
		if a := s.take(fmt.Sprint("user ", k), "", `{"ticketIds":`+string(ids)+`}`); a.Status != 201 || !one.Together || len(one.TicketIDs) != 2 {
			t.Errorf("%+v: %d %s", one, a.Status, a.Body)
		}
	}
}

// Of the two pairs of gold that are left one is in the middle of seats of tin.
func TestAlternativesAreNoneThatTheRuleOfOrphansRefuses(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	s.sale.Orphans = seatmap.OrphansRefuse
	for _, i := range []int{0, 3, 4} {
		s.sale.Chart.Sections[0].Rows[0].Seats[i].Category = "tin"
	}
	s.sale.Index = s.sale.Chart.Index()
	var sold []int
	for i := 5; i < 40; i++ {
		if i != 20 && i != 21 {
			sold = append(sold, i)
		}
	}
	s.must(s.store.Spend(t.Context(), s.event, seatmap.Marks{Seats: sold}))
	m := s.seatmap()
	var node memory
	node.m.Store(&m)
	s.api.With(&node, nil)
	a := s.wants(s.take("ann", "", `{"ticketIds":["n-a-30","n-a-31"],"alternatives":true}`), http.StatusConflict, "seats_taken")
	if !strings.Contains(a.Body, `"alternatives":[{"ticketIds":["n-a-20","n-a-21"],"together":true}]`) {
		t.Errorf("told %s", a.Body)
	}
	s.wants(s.take("ann", "", seatsBody(1, 2)), http.StatusUnprocessableEntity, "orphan_left")
	s.wants(s.take("ann", "", seatsBody(20, 21)), http.StatusCreated, "")
}

func TestSwapOverHTTP(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	first := s.take("ann", "k1", `{"ticketIds":["n-a-0","n-a-1"],"areas":[{"area":"pit","quantity":2}]}`).Booking
	s.take("bob", "", `{"ticketIds":["n-a-9"]}`)
	s.sale.Prices["gold"] = 8000
	a := s.put("ann", first.BookingID, `{"ticketIds":["n-a-2","n-a-1","n-a-3"]}`)
	ids, _, _ := chose(a)
	if a.Status != 200 || fmt.Sprint(ids) != "[n-a-1 n-a-2 n-a-3]" || a.Booking.Total.Amount != 3*8000+2*2500 ||
		!a.Booking.ExpiresAt.Equal(*first.ExpiresAt) || !a.Booking.Cap.Equal(*first.Cap) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	s.unchanged("the same again", func() {
		if again := s.put("ann", first.BookingID, `{"ticketIds":["n-a-3","n-a-2","n-a-1"]}`); again.Status != 200 || again.Body != a.Body {
			t.Errorf("%d %s", again.Status, again.Body)
		}
	})
	for _, c := range []struct {
		user, booking, body string
		status              int
		code                string
	}{
		{"", first.BookingID, `{"ticketIds":["n-a-5"]}`, 401, "token_missing"},
		{"bob", first.BookingID, `{"ticketIds":["n-a-5"]}`, 403, "not_your_booking"},
		{"ann", s.event + ".guessed", `{"ticketIds":["n-a-5"]}`, 404, "unknown_booking"},
		{"ann", "elsewhere.guessed", `{"ticketIds":["n-a-5"]}`, 404, "unknown_booking"},
		{"ann", s.event, `{"ticketIds":["n-a-5"]}`, 404, "unknown_booking"},
		{"ann", first.BookingID, `{"ticketIds":[]}`, 400, "empty_booking"},
		{"ann", first.BookingID, `{"ticketIds":["n-a-5"],"areas":[]}`, 400, "bad_json"},
		{"ann", first.BookingID, `{"ticketIds":["n-a-50"]}`, 422, "unknown_seat"},
		{"ann", first.BookingID, `{"ticketIds":["n-a-5","n-a-5"]}`, 422, "duplicate_seat"},
		{"ann", first.BookingID, `{"ticketIds":["n-a-1","n-a-9","n-a-10"]}`, 409, "seats_taken"},
		{"ann", first.BookingID, `{"ticketIds":["n-a-10","n-a-11","n-a-12","n-a-13","n-a-14","n-a-15","n-a-16"]}`, 422, "too_many_seats"},
	} {
		s.unchanged(c.body, func() {
			if a := s.put(c.user, c.booking, c.body); a.Status != c.status || a.Code != c.code {
				t.Errorf("%s by %q: %d %s", c.body, c.user, a.Status, a.Body)
			}
		})
	}
	s.unchanged("a sale that is closed", func() {
		s.sale.Open = false
		if a := s.put("ann", first.BookingID, `{"ticketIds":["n-a-5"]}`); a.Code != "sale_not_open" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
}

func TestASwapIsJudgedWithItsOwnSeatsFree(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	s.sale.Orphans = seatmap.OrphansRefuse
	id := s.take("ann", "", `{"ticketIds":["n-a-0","n-a-1"]}`).Booking.BookingID
	s.unchanged("one seat further", func() {
		if a := s.put("ann", id, `{"ticketIds":["n-a-1","n-a-2"]}`); a.Status != 422 || a.Code != "orphan_left" || string(a.Seats[0]) != `"n-a-0"` {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	if a := s.put("ann", id, `{"ticketIds":["n-a-0","n-a-1","n-a-2"]}`); a.Status != 200 {
		t.Errorf("one more: %d %s", a.Status, a.Body)
	}
	s.sale.Orphans = seatmap.OrphansWarn
	before := s.seatmap()
	var node memory // has not heard of the swap yet
	node.m.Store(&before)
	s.api.With(&node, nil)
	if _, _, warned := chose(s.put("ann", id, `{"ticketIds":["n-a-1","n-a-2"]}`)); !slices.Equal(warned, []string{"orphan_left n-a-0"}) {
		t.Errorf("warned of %v", warned)
	}
}

func TestABookingWhosePaymentHasBegunIsNotSwapped(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	id := s.take("ann", "", `{"ticketIds":["n-a-20"]}`).Booking.BookingID // before the others may be given it
	for state, code := range map[string]string{"paying": "payment_in_progress", "held": "payment_begun", "sold": "booking_final",
		"lost": "booking_final", "released": "hold_expired", "expired": "hold_expired"} {
		s.api.With(nil, standing(state))
		id := s.take(state, "", `{"bestAvailable":{"quantity":1}}`).Booking.BookingID
		s.unchanged(state, func() {
			if a := s.put(state, id, `{"ticketIds":["n-a-30"]}`); a.Status != http.StatusConflict || a.Code != code {
				t.Errorf("%s: %d %s", state, a.Status, a.Body)
			}
			if a := s.put("eve", id, `{"ticketIds":["n-a-30"]}`); a.Code != "not_your_booking" {
				t.Errorf("%s, by a stranger: %d %s", state, a.Status, a.Body)
			}
		})
	}
	s.api.With(nil, standing(""))
	_, token, _ := seatmap.ParseBookingID(id)
	_, err := s.store.Seal(t.Context(), s.event, token)
	s.must(err)
	if a := s.put("ann", id, `{"ticketIds":["n-a-30"]}`); a.Code != "payment_in_progress" || a.Header.Get("Retry-After") != "2" {
		t.Errorf("sealed: %d %s", a.Status, a.Body)
	}
}
