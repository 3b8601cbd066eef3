package main

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// asked is how many takes a node has brought to Redis.
func (n *node) asked(t testing.TB) float64 {
	t.Helper()
	return n.metric(t, "holds_script_seconds_count", `verb="take"`) + n.metric(t, "holds_script_seconds_count", `verb="peek"`)
}

// said is how many requests a node's memory has answered so.
func (n *node) said(t testing.TB, answer string) float64 {
	t.Helper()
	return n.metric(t, "holds_gate_total", `answer="`+answer+`"`)
}

// following starts a node and waits until it follows the event: what is held
// before that it has not heard of.
func (h *house) following(seam string, extra ...string) *node {
	h.t.Helper()
	n := h.fated(seam, extra...)
	scout, all := h.shopper(n, "scout"), h.seats(h.chart.Seats)
	eventually(h.t, 3*time.Second, "the node follows", func() bool {
		a := scout.hold(h.event, "", all[len(all)-1])
		if a.status == http.StatusCreated {
			scout.giveBack(a.BookingID).want(h.t, http.StatusNoContent, "")
		}
		return n.metric(h.t, "holds_gate_total") > 0
	})
	return n
}

// knows waits until a node refuses a seat from memory.
func (n *node) knows(t testing.TB, s shopper, event, seat string) {
	t.Helper()
	before := n.said(t, "refused")
	eventually(t, 3*time.Second, "a refusal from memory", func() bool {
		s.hold(event, "", seat).want(t, http.StatusConflict, "seats_taken")
		return n.said(t, "refused") > before
	})
}

func TestASeatSeenTakenIsRefusedWithoutAskingRedis(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	one, two := h.following("none", "SEATCAST_ROLES=api"), h.following("none", "SEATCAST_ROLES=api")
	ann, bob := h.shopper(one, "ann"), h.shopper(two, "bob")
	seats := h.seats(3)
	ann.hold(h.event, "", seats[:2]...).want(t, http.StatusCreated, "")
	two.knows(t, bob, h.event, seats[0])
	before := two.asked(t)
	for range 50 {
		a := bob.hold(h.event, "", seats...).want(t, http.StatusConflict, "seats_taken")
		if fmt.Sprint(a.Seats) != fmt.Sprint(seats[:2]) {
			t.Fatalf("told that %v are taken", a.Seats)
		}
	}
	if n := two.asked(t) - before; n != 0 {
		t.Errorf("Redis was asked %v times", n)
	}
	off := h.node("SEATCAST_GATE=off")
	cid := h.shopper(off, "cid")
	fromRedis := cid.hold(h.event, "", seats...).want(t, http.StatusConflict, "seats_taken")
	if a := bob.hold(h.event, "", seats...); string(a.raw) != string(fromRedis.raw) {
		t.Errorf("memory says %s\nRedis says %s", a.raw, fromRedis.raw)
	}
	for range 9 {
		cid.hold(h.event, "", seats...).want(t, http.StatusConflict, "seats_taken")
	}
	if n := off.asked(t); n != 10 {
		t.Errorf("switched off, a node has asked Redis %v times, want for each of 10 requests", n)
	}
}

func TestNobodyIsRefusedHerOwnSeats(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	one, two := h.following("none"), h.following("none", "SEATCAST_ROLES=api")
	ann, annToo, bob := h.shopper(one, "ann"), h.shopper(two, "ann"), h.shopper(two, "bob")
	seats := h.seats(2)
	booking := ann.hold(h.event, "mine", seats...).want(t, http.StatusCreated, "").BookingID
	again := func(s shopper) {
		t.Helper()
		if a := s.hold(h.event, "mine", seats...).want(t, http.StatusOK, ""); a.BookingID != booking {
			t.Errorf("answered with %s, not %s", a.BookingID, booking)
		}
	}
	again(ann)
	two.knows(t, bob, h.event, seats[0])
	again(annToo)
	annToo.hold(h.event, "mine", seats[0]).want(t, http.StatusUnprocessableEntity, "idempotency_key_reused")

	late := h.node("SEATCAST_ROLES=api") // knows of her seats only that they are held
	again(h.shopper(late, "ann"))

	ann.giveBack(booking).want(t, http.StatusNoContent, "")
	ann.hold(h.event, "mine", seats...).want(t, http.StatusConflict, "hold_expired")
	eventually(t, 2*time.Second, "the seats are granted where the news has yet to come", func() bool {
		return bob.hold(h.event, "his", seats...).status == http.StatusCreated
	})
	for _, s := range []shopper{ann, annToo} { // somebody has them, and still the key is over
		s.hold(h.event, "mine", seats...).want(t, http.StatusConflict, "hold_expired")
	}
}

// A seat that its holder gives back, or lets lapse, is free again for who asks
// another node: at once when all is said, in two seconds when nothing is.
func TestAFreedSeatIsRefusedNoLongerThanItsMessageTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seam  string
		bound time.Duration
	}{{"none", 500 * time.Millisecond}, {"mute", 2 * time.Second}} {
		t.Run(c.seam, func(t *testing.T) {
			h := newHouse(t, plan{terms: seatmap.Terms{Hold: 4 * time.Second, Grace: 100 * time.Millisecond}})
			one, two := h.following(c.seam, "SEATCAST_ROLES=api"), h.following(c.seam, "SEATCAST_ROLES=api")
			ann, bob := h.shopper(one, "ann"), h.shopper(two, "bob")
			seat := h.seats(1)[0]
			free := func(from time.Time, how string) {
				t.Helper()
				for try := 0; ; try++ {
					a := bob.hold(h.event, "", seat)
					took := time.Since(from)
					switch {
					case devtest.Late(from, c.bound):
						t.Fatalf("%s: %d %s after %v", how, a.status, a.raw, took)
					case a.status == http.StatusCreated:
						t.Logf("%s: granted after %v, at try %d", how, took, try)
						bob.giveBack(a.BookingID).want(t, http.StatusNoContent, "")
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}
			for range 3 {
				var booking string
				eventually(t, 2*time.Second, "granted", func() bool {
					booking = ann.hold(h.event, "", seat).BookingID
					return booking != ""
				})
				two.knows(t, bob, h.event, seat)
				ann.giveBack(booking).want(t, http.StatusNoContent, "")
				free(time.Now(), "given back")
			}
			var end time.Time
			eventually(t, 2*time.Second, "granted", func() bool {
				a := ann.hold(h.event, "", seat)
				end = a.ExpiresAt.Add(100 * time.Millisecond)
				return a.status == http.StatusCreated
			})
			two.knows(t, bob, h.event, seat)
			time.Sleep(time.Until(end))
			free(end, "lapsed")
		})
	}
}

// Two nodes that hear nothing of each other, and buyers at both who want the
// same seats: of each round one wins, and every seat comes back in time.
func TestTwoDeafNodesNeverGrantASeatTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.following("mute", "SEATCAST_ROLES=api"), h.following("mute", "SEATCAST_ROLES=api")}
	const buyers, rounds = 6, 8
	seats := h.seats(2)
	for range rounds {
		var wg sync.WaitGroup
		won := make(chan func(), buyers)
		start := time.Now()
		over := make(chan struct{})
		for b := range buyers {
			s := h.shopper(nodes[b%2], fmt.Sprint("buyer ", b))
			wg.Go(func() {
				for {
					if a := s.hold(h.event, "", seats...); a.status == http.StatusCreated {
						won <- func() { s.giveBack(a.BookingID).want(t, http.StatusNoContent, "") }
						return
					}
					select {
					case <-over:
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			})
		}
		giveBack := <-won
		if devtest.Late(start, 2*time.Second) {
			t.Errorf("free seats were refused for %v", time.Since(start))
		}
		time.Sleep(50 * time.Millisecond) // the others go on asking
		close(over)
		wg.Wait()
		if n := len(won); n != 0 {
			t.Fatalf("%d more buyers were granted the same seats", n)
		}
		giveBack()
	}
	if refused := nodes[0].said(t, "refused") + nodes[1].said(t, "refused"); refused == 0 {
		t.Error("nothing was refused from memory: this has shown nothing")
	}
}

// A node whose NATS is gone, not only its neighbours' messages.
func TestWithNATSGoneTheGateFollowsByNumbers(t *testing.T) {
	t.Parallel()
	server, err := devstack.StartNATS()
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, plan{})
	env := "SEATCAST_NATS_URL=" + server.URL()
	one, two := h.following("none", "SEATCAST_ROLES=api", env), h.following("none", "SEATCAST_ROLES=api", env)
	ann, bob := h.shopper(one, "ann"), h.shopper(two, "bob")
	seat := h.seats(1)[0]
	server.Stop()
	booking := ann.hold(h.event, "", seat).want(t, http.StatusCreated, "").BookingID
	two.knows(t, bob, h.event, seat)
	ann.giveBack(booking).want(t, http.StatusNoContent, "")
	eventually(t, 2*time.Second, "the seat is granted", func() bool { return bob.hold(h.event, "", seat).status == http.StatusCreated })
}
