package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"seatcast/seatmap"
)

func (s shopper) best(event, key string, quantity int) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/bookings/"+event, key, map[string]any{"bestAvailable": map[string]int{"quantity": quantity}})
}

func (s shopper) swap(booking string, seats ...string) answer {
	s.t.Helper()
	return s.do(http.MethodPut, "/v1/bookings/"+booking+"/seats", "", map[string]any{"ticketIds": seats})
}

// ids are the ticket ids of a booking's seats.
func (a answer) ids() (ids []string) {
	for _, seat := range a.Seats {
		if of, ok := seat.(map[string]any); ok {
			ids = append(ids, fmt.Sprint(of["ticketId"]))
		}
	}
	return ids
}

// Two hundred shoppers at two nodes say "two, please" at once, each twice over,
// in a club of eighty seats: nobody gets a seat another has, nobody is refused
// while there are two seats, and a repeat is answered alike on the other node.
func TestACrowdThatAsksForTheBestGetsEverySeatOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	answers := make([][2]answer, 200)
	var all sync.WaitGroup
	for k := range answers {
		for n, node := range nodes {
			s := h.shopper(node, fmt.Sprint("shopper ", k))
			all.Go(func() { answers[k][n] = insists(func() answer { return s.best(h.event, "once", 2) }) })
		}
	}
	all.Wait()
	holder := map[string]int{}
	refused, pairs := 0, 0
	for k, both := range answers {
		a, b := both[0], both[1]
		if a.BookingID != b.BookingID || fmt.Sprint(a.ids()) != fmt.Sprint(b.ids()) {
			t.Errorf("shopper %d is answered %d %s, and %d %s", k, a.status, a.raw, b.status, b.raw)
		}
		switch {
		case a.status/100 == 2 && b.status/100 == 2 && len(a.ids()) == 2:
			pairs++
			for _, id := range a.ids() {
				if other, taken := holder[id]; taken {
					t.Errorf("%s is held by shoppers %d and %d", id, other, k)
				}
				holder[id] = k
			}
		case a.Code == "sold_out" || a.Code == "too_few_left":
			refused++
		default:
			t.Errorf("shopper %d: %d %s", k, a.status, a.raw)
		}
	}
	m := h.truth(t.Context(), h.rdb)
	prices := map[string]int64{}
	for _, c := range h.chart.Categories {
		prices[c.Name] = 1
	}
	var few *seatmap.TooFewError
	if c, err := h.chart.Index().Seating().Best(m, prices, seatmap.Wish{Quantity: 2}); refused > 0 && !errors.As(err, &few) {
		t.Errorf("%d were refused, and %v is free", refused, c)
	}
	t.Logf("%d pairs, %d refused", pairs, refused)
	if refused == 0 || pairs < 30 {
		t.Errorf("%d have two seats and %d none: nobody contended", pairs, refused)
	}
}
