package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

func TestAFlushedRedisGrantsNothingSoldAndKeepsWhoPays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHouse(t, plan{chart: seatmap.Arena()})
	nodes := []*node{h.node(), h.node()}
	watchers := []*watcher{watch(t, h.event, nodes[0].url), watch(t, h.event, nodes[1].url)}
	seats := h.seats(160)

	// Slow banks: their verdicts come after the flush.
	var paying []claim
	for i := range 5 {
		s := h.shopper(nodes[i%2], fmt.Sprintf("patient-%d", i))
		b := s.hold(h.event, "", seats[2*i:2*i+2]...).want(t, http.StatusCreated, "")
		s.pay(b.BookingID, "", sandbox.CardSlow).want(t, http.StatusCreated, "")
		paying = append(paying, claim{s, b.BookingID})
	}

	before := newRush(h, nodes, seats)
	before.until(t, "seats are sold", func() bool { return before.sales() >= 20 })
	flushed := time.Now()
	if err := h.rdb.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	granted := before.grants()
	before.until(t, "the sale goes on", func() bool { return before.grants() > granted })
	before.end()
	for _, w := range watchers {
		w.seesBy(flushed, converge, func() seatmap.Map { return h.truth(ctx, h.rdb) })
	}

	after := newRush(h, nodes, seats)
	for _, c := range paying {
		after.until(t, "who was paying has the tickets", func() bool { return c.s.confirm(c.booking).State == "sold" })
	}
	after.end()
	allSee(t, watchers, func() seatmap.Map { return h.truth(ctx, h.rdb) })
	for _, w := range watchers {
		w.seesAreas(converge, h.left)
	}
	soldAgain(t, before, after)
	h.balanced(ctx)
	t.Logf("%d holds, %d sales", before.grants()+after.grants(), before.sales()+after.sales())
}

// claim is a booking and whose it is.
type claim struct {
	s       shopper
	booking string
}

// rushHour is fifty shoppers who hold seats and pay, give back, are declined
// or walk away, all the time and all over each other.
type rushHour struct {
	h     *house
	nodes []*node
	seats []string
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu      sync.Mutex
	granted []hold
	sold    map[string]time.Time // when its buyer was told
}

// hold is seats that were granted, and when they were asked for.
type hold struct {
	asked time.Time
	seats []string
}

func newRush(h *house, nodes []*node, seats []string) *rushHour {
	ctx, stop := context.WithCancel(h.t.Context())
	r := &rushHour{h: h, nodes: nodes, seats: seats, stop: stop, sold: make(map[string]time.Time)}
	for range 50 {
		r.wg.Go(func() {
			for pause(ctx, rand.N(50*time.Millisecond)) {
				r.visit()
			}
		})
	}
	return r
}

// visit is one shopper's attempt to buy a seat or two, and sometimes a place.
func (r *rushHour) visit() {
	s := r.h.shopper(r.nodes[rand.N(len(r.nodes))], fmt.Sprintf("shopper-%d", rand.Int64()))
	i := rand.N(len(r.seats) - 1)
	h := hold{time.Now(), r.seats[i : i+1+rand.N(2)]}
	body := map[string]any{"ticketIds": h.seats}
	if areas := r.h.chart.Areas; rand.N(4) == 0 && len(areas) > 0 {
		body["areas"] = []map[string]any{{"area": areas[0].ID, "quantity": 1 + rand.N(3)}}
	}
	b := s.do(http.MethodPost, "/v1/bookings/"+r.h.event, "", body)
	if b.status != http.StatusCreated {
		return
	}
	r.mu.Lock()
	r.granted = append(r.granted, h)
	r.mu.Unlock()
	switch rand.N(10) {
	case 0:
		s.giveBack(b.BookingID)
	case 1:
		s.pay(b.BookingID, "", declinedCard)
	case 2: // walks away
	default:
		s.pay(b.BookingID, "", goodCard)
		if s.booking(b.BookingID).State == "sold" {
			r.mu.Lock()
			for _, seat := range h.seats {
				r.sold[seat] = time.Now()
			}
			r.mu.Unlock()
		}
	}
}

func (r *rushHour) sales() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sold)
}

func (r *rushHour) grants() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.granted)
}

// until waits for ok while the shoppers go on.
func (r *rushHour) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventually(t, 20*time.Second, what, ok)
}

// end sends the shoppers home.
func (r *rushHour) end() {
	r.stop()
	r.wg.Wait()
}

// soldAgain fails for every hold of a seat that was asked for after its buyer
// had been told that it is his.
func soldAgain(t testing.TB, hours ...*rushHour) {
	t.Helper()
	sold := make(map[string]time.Time)
	for _, r := range hours {
		for seat, at := range r.sold {
			if _, twice := sold[seat]; twice {
				t.Errorf("seat %s was sold twice", seat)
			}
			sold[seat] = at
		}
	}
	for _, r := range hours {
		for _, h := range r.granted {
			for _, seat := range h.seats {
				if at, ok := sold[seat]; ok && h.asked.After(at) {
					t.Errorf("seat %s was granted to somebody who asked %v after it was sold", seat, h.asked.Sub(at))
				}
			}
		}
	}
}

// left is the places left in each area, as Postgres says.
func (h *house) left() map[string]int {
	h.t.Helper()
	left := make(map[string]int)
	for _, a := range h.chart.Areas {
		left[a.ID] = h.count(h.t.Context(), `SELECT capacity - sold FROM areas WHERE event_id = $1 AND area = $2`, h.event, a.ID)
	}
	return left
}

// seesAreas waits until the watcher sees those places left.
func (w *watcher) seesAreas(d time.Duration, want func() map[string]int) {
	w.t.Helper()
	eventually(w.t, d, "the places left are seen", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return maps.Equal(w.areas, want())
	})
}
