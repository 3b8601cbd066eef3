package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// How soon an event is without holds once Redis answers nobody, and holds seats
// again once it does.
const (
	goesWithout = 15 * time.Second
	holdsAgain  = 40 * time.Second
)

// said reads one field of a JSON answer.
func said[T any](a answer, field string) (v T) {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(a.raw, &all)
	_ = json.Unmarshal(all[field], &v)
	return v
}

// holdsSeats says what a node tells of its event: whether bookings hold their seats.
func (h *house) holdsSeats(n *node) bool {
	h.t.Helper()
	return said[bool](shopper{h.t, n.url, ""}.do(http.MethodGet, "/v1/events/"+h.event, "", nil).want(h.t, http.StatusOK, ""), "holds")
}

func (h *house) turns(within time.Duration, holding bool, nodes ...*node) {
	h.t.Helper()
	for _, n := range nodes {
		eventually(h.t, within, fmt.Sprintf("the event holds seats: %v", holding), func() bool { return h.holdsSeats(n) == holding })
	}
}

// polled reads the map as it is polled.
func (h *house) polled(n *node) (m seatmap.Map, stale bool) {
	h.t.Helper()
	a := shopper{h.t, n.url, ""}.do(http.MethodGet, "/v1/events/"+h.event+"/seatmap", "", nil).want(h.t, http.StatusOK, "")
	return said[seatmap.Map](a, "map"), said[bool](a, "stale")
}

// shows waits until polls of every node show seats as sold and no others.
func (h *house) shows(nodes []*node, stale bool, sold ...int) {
	h.t.Helper()
	want := stateOf(h.chart.Seats, seatmap.Sold, sold...)
	for _, n := range nodes {
		eventually(h.t, 5*time.Second, fmt.Sprintf("a poll shows %v as sold, stale %v", sold, stale), func() bool {
			m, was := h.polled(n)
			return string(m) == string(want) && was == stale
		})
	}
}

// unheld books seats of an event without holds.
func (s shopper) unheld(event, key string, seats ...string) answer {
	s.t.Helper()
	a := s.hold(event, key, seats...).want(s.t, http.StatusCreated, "")
	if held := said[*bool](a, "holds"); held == nil || *held || a.State != "held" {
		s.t.Errorf("a booking without a hold is told as %s", a.raw)
	}
	return a
}

func TestWithoutRedisForEverybodyBookingsRaceAtTheArbiter(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"on", "off"} {
		t.Run("gate "+gate, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			h := newHouse(t, plan{})
			nodes := []*node{h.node("SEATCAST_GATE=" + gate), h.node("SEATCAST_GATE=" + gate)}
			w := watch(t, h.event, nodes[0].url)
			seats := h.seats(20)
			ann, bob, eve := h.shopper(nodes[0], "ann"), h.shopper(nodes[1], "bob"), h.shopper(nodes[1], "eve")
			sold := ann.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
			ann.pay(sold.BookingID, "", goodCard).want(t, http.StatusCreated, "")
			kept := bob.hold(h.event, "kept", seats[1]).want(t, http.StatusCreated, "")

			h.redis.Kill()
			died := time.Now()
			h.turns(goesWithout, false, nodes...)
			t.Logf("without holds %v after Redis died", time.Since(died).Round(100*time.Millisecond))
			for _, n := range nodes {
				checks := readyz(t, n, http.StatusOK).Checks
				if checks["redis"].Status != "warn" || checks["holds"].Status != "warn" {
					t.Errorf("a node is ready with %+v", checks)
				}
			}
			eventually(t, 5*time.Second, "watchers are told", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.degraded == "no_holds"
			})

			eve.hold(h.event, "", seats[0]).want(t, http.StatusConflict, "seats_taken")
			a, b := ann.unheld(h.event, "mine", seats[2]), bob.unheld(h.event, "mine", seats[2])
			if again := ann.hold(h.event, "mine", seats[2]).want(t, http.StatusOK, ""); again.BookingID != a.BookingID {
				t.Errorf("a repeat is %s, was %s", again.BookingID, a.BookingID)
			}
			ann.hold(h.event, "mine", seats[3]).want(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
			ann.booking(b.BookingID).want(t, http.StatusForbidden, "not_your_booking")
			bob.extend(b.BookingID).want(t, http.StatusOK, "")
			if won := h.race(claim{ann, a.BookingID}, claim{bob, b.BookingID}); won != 1 {
				t.Errorf("%d have bought the seat", won)
			}
			h.shows(nodes, true, 0, 2)
			eve.hold(h.event, "", seats[2]).want(t, http.StatusConflict, "seats_taken")

			// What follows a booking works: other seats, the best there are, giving back.
			swapped := eve.unheld(h.event, "", seats[4])
			eve.do(http.MethodPut, "/v1/bookings/"+swapped.BookingID+"/seats", "", map[string]any{"ticketIds": []string{seats[5]}}).want(t, http.StatusOK, "")
			eve.do(http.MethodPut, "/v1/bookings/"+swapped.BookingID+"/seats", "", map[string]any{"ticketIds": []string{seats[2]}}).want(t, http.StatusConflict, "seats_taken")
			eve.pay(swapped.BookingID, "", goodCard).want(t, http.StatusCreated, "")
			best := bob.do(http.MethodPost, "/v1/bookings/"+h.event, "", map[string]any{"bestAvailable": map[string]any{"quantity": 2}}).want(t, http.StatusCreated, "")
			if code := bob.giveBack(best.BookingID).status; code != http.StatusNoContent {
				t.Errorf("giving back: %d", code)
			}
			bob.pay(best.BookingID, "", goodCard).want(t, http.StatusConflict, "hold_expired")
			bob.booking(kept.BookingID).want(t, http.StatusServiceUnavailable, "store_unavailable") // only Redis knew of it
			again := bob.unheld(h.event, "kept", seats[1])
			if again.BookingID != kept.BookingID {
				t.Error("who books again what he held has another booking")
			}
			h.shows(nodes, true, 0, 2, 5)

			// A node that starts now sells as the others do.
			late := h.node("SEATCAST_GATE=" + gate)
			kim := h.shopper(late, "kim")
			latest := kim.unheld(h.event, "", seats[7])
			kim.pay(latest.BookingID, "", goodCard).want(t, http.StatusCreated, "")
			nodes = append(nodes, late)
			h.shows(nodes, true, 0, 2, 5, 7)

			slow := eve.unheld(h.event, "", seats[6]) // whose verdict comes before Redis does, or after it
			eve.pay(slow.BookingID, "", sandbox.CardSlow).want(t, http.StatusCreated, "")
			if err := h.redis.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			h.turns(holdsAgain, true, nodes...)
			t.Logf("seats are held again %v after Redis came back", time.Since(back).Round(100*time.Millisecond))
			ann.hold(h.event, "", seats[2]).want(t, http.StatusConflict, "seats_taken")
			ann.hold(h.event, "", seats[1]).want(t, http.StatusConflict, "seats_taken") // bob's again
			bob.extend(again.BookingID).want(t, http.StatusOK, "")
			bob.pay(again.BookingID, "", goodCard).want(t, http.StatusCreated, "")
			eventually(t, 10*time.Second, "who was paying has the seats", func() bool { return eve.confirm(slow.BookingID).State == "sold" })
			for _, n := range nodes {
				readyz(t, n, http.StatusOK)
			}
			w.sees(converge, func() seatmap.Map { return h.truth(ctx, h.rdb) })
			w.sees(converge, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Sold, 0, 1, 2, 5, 6, 7) })
			eventually(t, 5*time.Second, "Redis is told everything", func() bool {
				return h.count(ctx, `SELECT count(*) FROM seats WHERE mirror_due`)+h.count(ctx, `SELECT count(*) FROM bookings WHERE mirror_due`) == 0
			})
			h.balanced(ctx)
			if n := h.count(ctx, `SELECT count(*) FROM sandbox_payments WHERE state = 'captured'`); n != 6 {
				t.Errorf("%d payments are captured of 6 sales", n)
			}
		})
	}
}

// race has everybody pay at once and returns how many have bought. Who has not is
// told which seats he lost, and not charged.
func (h *house) race(claims ...claim) (won int) {
	h.t.Helper()
	answers := make([]answer, len(claims))
	var wg sync.WaitGroup
	for k, c := range claims {
		wg.Go(func() { answers[k] = c.s.pay(c.booking, "", goodCard) })
	}
	wg.Wait()
	for k, a := range answers {
		if a.status == http.StatusCreated {
			won++
			continue
		}
		a.want(h.t, http.StatusConflict, "seats_lost")
		eventually(h.t, 10*time.Second, "the loser's money is given back", func() bool {
			return h.count(h.t.Context(), `SELECT count(*) FROM sandbox_payments p JOIN attempts a ON a.id = p.idempotency_key
				WHERE a.booking_id = $1 AND p.state <> 'voided'`, claims[k].booking) == 0
		})
	}
	return won
}

func TestANodeAloneWithoutRedisSellsNothing(t *testing.T) {
	t.Parallel()
	for name, away := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{})
			via := forward(t, "tcp", h.redis.Addr())
			lonely, other := h.node("SEATCAST_REDIS_URL=redis://"+via.at()), h.node()
			ann, bob := h.shopper(lonely, "ann"), h.shopper(other, "bob")
			seats := h.seats(10)
			bob.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")

			away(via)
			eventually(t, goesWithout, "it is unready", func() bool {
				return shopper{t, lonely.url, ""}.do(http.MethodGet, "/readyz", "", nil).status == http.StatusServiceUnavailable
			})
			for end := time.Now().Add(8 * time.Second); time.Now().Before(end); {
				turnedAway(t, 4*time.Second, func() answer { return ann.hold(h.event, "", seats[0]) })
				if !h.holdsSeats(lonely) || !h.holdsSeats(other) {
					t.Fatal("seats that others hold are sold")
				}
			}
			readyz(t, other, http.StatusOK)
			bob.hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")

			via.lead("tcp", h.redis.Addr())
			eventually(t, 10*time.Second, "it takes bookings again", func() bool {
				return ann.hold(h.event, "", seats[2]).status == http.StatusCreated
			})
			eventually(t, 10*time.Second, "it is ready again", func() bool {
				return shopper{t, lonely.url, ""}.do(http.MethodGet, "/readyz", "", nil).status == http.StatusOK
			})
		})
	}
}

// A Redis that hung and comes back has not forgotten, and does not know.
func TestARedisThatComesBackWithOldHoldsLearnsWhatWasSold(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHouse(t, plan{})
	via := forward(t, "tcp", h.redis.Addr())
	h.env = append(h.env, "SEATCAST_REDIS_URL=redis://"+via.at())
	nodes := []*node{h.node(), h.node()}
	w := watch(t, h.event, nodes[1].url)
	seats := h.seats(20)
	ann, bob, eve := h.shopper(nodes[0], "ann"), h.shopper(nodes[1], "bob"), h.shopper(nodes[0], "eve")
	kept := ann.hold(h.event, "", seats[0:2]...).want(t, http.StatusCreated, "")
	overrun := ann.hold(h.event, "", seats[2:4]...).want(t, http.StatusCreated, "")
	declined := bob.hold(h.event, "", seats[8]).want(t, http.StatusCreated, "")
	bob.pay(declined.BookingID, "", declinedCard).want(t, http.StatusCreated, "")

	via.freeze()
	h.turns(goesWithout, false, nodes...)
	sold := bob.unheld(h.event, "", seats[2], seats[4])
	bob.pay(sold.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	slow := eve.unheld(h.event, "", seats[5])
	eve.pay(slow.BookingID, "", sandbox.CardSlow).want(t, http.StatusCreated, "")
	open := eve.unheld(h.event, "", seats[6])
	contested := eve.unheld(h.event, "", seats[0])
	if code := bob.giveBack(declined.BookingID).status; code != http.StatusNoContent {
		t.Errorf("giving back what Redis still holds: %d", code)
	}
	h.shows(nodes, true, 2, 4)

	rush := h.rush(nodes[0], seats[4])
	via.lead("tcp", h.redis.Addr())
	h.turns(holdsAgain, true, nodes...)
	if got := rush(); len(got) > 0 {
		t.Errorf("a seat that was sold meanwhile was given to %d others", len(got))
	}
	ann.extend(kept.BookingID).want(t, http.StatusOK, "") // nobody paid for them: she has them still
	ann.pay(overrun.BookingID, "", goodCard).want(t, http.StatusConflict, "seats_lost")
	eve.pay(contested.BookingID, "", goodCard).want(t, http.StatusConflict, "seats_lost")
	eve.hold(h.event, "", seats[6]).want(t, http.StatusConflict, "seats_taken")
	eve.do(http.MethodPut, "/v1/bookings/"+open.BookingID+"/seats", "", map[string]any{"ticketIds": []string{seats[7]}}).
		want(t, http.StatusConflict, "booked_without_hold")
	eve.pay(open.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	ann.pay(kept.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	bob.hold(h.event, "", seats[8]).want(t, http.StatusCreated, "")
	eventually(t, 10*time.Second, "who was paying has the seats", func() bool { return eve.confirm(slow.BookingID).State == "sold" })
	w.sees(converge, func() seatmap.Map { return h.truth(ctx, h.rdb) })
	h.balanced(ctx)
}

// Fifty shoppers buy all the time, over each other, while Redis dies, stays away and
// comes back empty.
func TestASaleGoesOnThroughAnOutageAndSellsEverySeatOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHouse(t, plan{chart: seatmap.Arena()})
	nodes := []*node{h.node(), h.node()}
	w := watch(t, h.event, nodes[0].url)
	r := newRush(h, nodes, h.seats(6000)) // who walks away has his hold when holds begin again
	r.until(t, "seats are sold", func() bool { return r.sales() >= 10 })
	h.redis.Kill()
	h.turns(goesWithout, false, nodes...)
	before := r.sales()
	r.until(t, "seats are sold without Redis", func() bool { return r.sales() >= before+20 })
	if err := h.redis.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	h.turns(holdsAgain, true, nodes...)
	before = r.sales()
	r.until(t, "seats are sold with it", func() bool { return r.sales() >= before+10 })
	r.end()
	soldAgain(t, r)
	eventually(t, 30*time.Second, "no payment is open", func() bool {
		return h.count(ctx, `SELECT count(*) FROM sandbox_payments WHERE state IN ('processing', 'authorized')`) == 0
	})
	w.sees(5*time.Second, func() seatmap.Map { return h.truth(ctx, h.rdb) })
	w.seesAreas(converge, h.left)
	h.balanced(ctx)
	t.Logf("%d holds and bookings, %d sales", r.grants(), r.sales())
}

// A Redis that stops for less than a node is believed changes nothing.
func TestAShortPauseOfRedisEndsNoHolds(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	ann, seats := h.shopper(n, "ann"), h.seats(4)
	ann.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	pid, err := strconv.Atoi(h.rdb.InfoMap(t.Context(), "server").Item("Server", "process_id"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	turnedAway(t, 3*time.Second, func() answer { return ann.hold(h.event, "", seats[1]) })
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "seats are held", func() bool { return ann.hold(h.event, "", seats[2]).status == http.StatusCreated })
	if n := h.count(t.Context(), `SELECT count(*) FROM events WHERE unheld_since IS NOT NULL`); n > 0 {
		t.Error("the event is without holds")
	}
}
