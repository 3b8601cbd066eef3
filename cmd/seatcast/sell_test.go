package main

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"seatcast/seatmap"
)

// Two API processes, two hundred buyers of one seat who all go on to pay.
func TestOneSeatIsHeldByOneAndSoldOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	w := watch(t, h.event, nodes[1].url)
	seat := h.seats(1)[0]

	const buyers = 200
	answers := make([]answer, buyers)
	var wg sync.WaitGroup
	for i := range buyers {
		wg.Go(func() {
			s := h.shopper(nodes[i%2], fmt.Sprintf("buyer-%d", i))
			answers[i] = insists(func() answer { return s.hold(h.event, "once", seat) })
			if answers[i].status/100 == 2 {
				insists(func() answer { return s.pay(answers[i].BookingID, "once", goodCard) })
				insists(func() answer { return s.confirm(answers[i].BookingID) })
			}
		})
	}
	wg.Wait()

	held := 0
	for i, a := range answers {
		switch {
		case a.status/100 == 2:
			held++
		case a.status != http.StatusConflict || a.Code != "seats_taken":
			t.Errorf("buyer %d: %d %s", i, a.status, a.raw)
		}
	}
	if held != 1 {
		t.Errorf("%d buyers held the seat", held)
	}
	ctx := t.Context()
	if n := h.count(ctx, `SELECT count(*) FROM tickets WHERE event_id = $1`, h.event); n != 1 {
		t.Errorf("%d ticket rows", n)
	}
	takes := 0
	for _, c := range h.log(ctx) {
		takes += len(c.Reserved)
	}
	if takes != 1 {
		t.Errorf("the log has %d takes", takes)
	}
	w.sees(5*time.Second, func() seatmap.Map { return h.truth(ctx, h.rdb) })
	h.balanced(ctx)
}

// The whole life of a seat, as a shopper and a stranger who watches see it.
func TestASeatIsHeldPaidAndSeenSold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.following("none") // or of seats that were sold before it followed it does not know to whom
	w := watch(t, h.event, n.url)
	s := h.shopper(n, "ann")
	seats := h.seats(2)

	b := s.hold(h.event, "once", seats...).want(t, http.StatusCreated, "")
	if again := s.hold(h.event, "once", seats...).want(t, http.StatusOK, ""); again.BookingID != b.BookingID {
		t.Errorf("a repeat with the same key answered booking %s, not %s", again.BookingID, b.BookingID)
	}
	w.sees(2*time.Second, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Held, 0, 1) })

	s.pay(b.BookingID, "", goodCard)
	eventually(t, 10*time.Second, "the booking is sold and its tickets are valid", func() bool {
		a := s.confirm(b.BookingID)
		return a.State == "sold" && len(a.Tickets) == 2 && a.Tickets[0].Status == "valid" && a.Tickets[1].Status == "valid"
	})
	w.sees(2*time.Second, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Sold, 0, 1) })
	s.extend(b.BookingID).want(t, http.StatusConflict, "booking_final") // and not "begin anew": who does buys twice
	s.hold(h.event, "once", seats...).want(t, http.StatusConflict, "booking_final")
	h.balanced(t.Context())
}

// stateOf is a map with those seats in one state and all others available.
func stateOf(seats int, s seatmap.Status, which ...int) seatmap.Map {
	m := seatmap.NewMap(seats)
	for _, i := range which {
		m.Set(i, s)
	}
	return m
}
