package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"seatcast/seatmap"
)

func TestADeclinedCardKeepsTheHoldAndAnotherSells(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	w := watch(t, h.event, n.url)
	ann, bob := h.shopper(n, "ann"), h.shopper(n, "bob")
	seats := h.seats(2)
	b := ann.hold(h.event, "", seats...).want(t, http.StatusCreated, "")
	paid := ann.pay(b.BookingID, "first", declinedCard).want(t, http.StatusCreated, "")
	if paid.State != "held" || paid.Attempt.State != "failed" {
		t.Errorf("a declined card is answered %s", paid.raw)
	}
	bob.hold(h.event, "", seats[0]).want(t, http.StatusConflict, "seats_taken")
	if a := ann.booking(b.BookingID); a.State != "held" || a.ExpiresAt.Before(b.ExpiresAt) {
		t.Errorf("after a declined card she holds %s", a.raw)
	}
	w.sees(2*time.Second, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Held, 0, 1) })

	ann.pay(b.BookingID, "second", goodCard).want(t, http.StatusCreated, "")
	ann.ends(b.BookingID).wantSold(t, 2)
	h.moneyEnds(b.BookingID, "captured 1, failed 1")
	w.sees(2*time.Second, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Sold, 0, 1) })
	h.balanced(t.Context())
}

// Webhooks that come twice, before the answer, late or never: one sale each,
// though no shopper asks.
func TestWhateverBecomesOfTheWebhookABookingIsSoldOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	cards := []string{twiceCard, earlyCard, lostCard, slowCard}
	ids := make([]string, len(cards))
	for i, card := range cards {
		s := h.shopper(nodes[i%2], "payer with "+card)
		ids[i] = s.hold(h.event, "", h.seats(8)[2*i:2*i+2]...).want(t, http.StatusCreated, "").BookingID
		s.pay(ids[i], "", card).want(t, http.StatusCreated, "")
	}
	h.decide(ids...)
	// The reconciler would ask in half a minute: it is as if that had passed.
	if _, err := h.pool.Exec(t.Context(), `UPDATE attempts SET asked_at = now() - interval '1 minute' WHERE method = $1`, lostCard); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		h.moneyEnds(id, "captured 1")
		if n := h.count(t.Context(), `SELECT count(*) FROM tickets WHERE booking_id = $1`, id); n != 2 {
			t.Errorf("card %s: %d tickets of two seats", cards[i], n)
		}
	}
	eventually(t, 10*time.Second, "every webhook is delivered", func() bool {
		return h.count(t.Context(), `SELECT count(*) FROM sandbox_webhooks WHERE sent_at IS NULL`) == 0
	})
	if n := h.count(t.Context(), `SELECT count(*) FROM sandbox_webhooks w JOIN sandbox_payments p ON p.id = w.payment_id WHERE p.card = $1`, twiceCard); n != 4 {
		t.Errorf("%d webhooks of the card that sends each twice", n)
	}
	eventually(t, 10*time.Second, "sold in every book", func() bool {
		return h.count(t.Context(), `SELECT count(*) FROM attempts WHERE state = 'captured'`) == len(cards)
	})
	h.balanced(t.Context())
}

// The bank promised the money and did not give it: the sale is taken back, the
// map shows the seats free, and somebody else can buy them.
func TestARefusedCaptureUnsells(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	w := watch(t, h.event, n.url)
	ann, bob := h.shopper(n, "ann"), h.shopper(n, "bob")
	b := ann.take(h.event, "", h.seats(2), area{"standing", 3}).want(t, http.StatusCreated, "")
	ann.pay(b.BookingID, "", refusedCard)
	ann.ends(b.BookingID).want(t, http.StatusConflict, "seats_lost")
	a := ann.booking(b.BookingID).want(t, http.StatusOK, "")
	if a.State != "lost" || a.Reason != "capture_refused" || len(a.Tickets) != 5 {
		t.Errorf("she reads %s", a.raw)
	}
	for _, ticket := range a.Tickets {
		if ticket.Status != "void" {
			t.Errorf("a ticket of hers is %s", ticket.Status)
		}
	}
	h.moneyEnds(b.BookingID, "refused 1")
	w.sees(2*time.Second, func() seatmap.Map { return seatmap.NewMap(h.chart.Seats) })
	h.seesPlaces(w, map[string]int{"standing": 40})

	c := bob.hold(h.event, "", h.seats(2)...).want(t, http.StatusCreated, "")
	bob.pay(c.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	bob.ends(c.BookingID).wantSold(t, 2)
	h.balanced(t.Context())
}

// seesPlaces waits until a watcher sees so many places left.
func (h *house) seesPlaces(w *watcher, want map[string]int) {
	h.t.Helper()
	eventually(h.t, 2*time.Second, fmt.Sprint("the watcher sees places left: ", want), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return fmt.Sprint(w.areas) == fmt.Sprint(want)
	})
}

// Thirty buyers of two places each, of forty.
func TestTheLastPlacesOfAnAreaAreNotSoldTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	w := watch(t, h.event, nodes[0].url)
	const buyers, places, each = 30, 40, 2
	var all sync.WaitGroup
	taken, paid := make([]answer, buyers), make([]answer, buyers)
	for i := range buyers {
		s := h.shopper(nodes[i%2], fmt.Sprint("buyer ", i))
		all.Go(func() {
			taken[i] = insists(func() answer { return s.take(h.event, "once", nil, area{"standing", each}) })
			if taken[i].status/100 == 2 {
				paid[i] = insists(func() answer { return s.pay(taken[i].BookingID, "once", goodCard) })
			}
		})
	}
	all.Wait()
	sold := 0
	for i, a := range taken {
		switch {
		case a.status == http.StatusConflict && a.Code == "area_full": // told early
			continue
		case a.status/100 != 2:
			t.Errorf("buyer %d: %d %s", i, a.status, a.raw)
		case paid[i].status/100 == 2 && paid[i].State == "sold":
			sold++
			h.moneyEnds(a.BookingID, "captured 1")
		case paid[i].status == http.StatusConflict && paid[i].Code == "seats_lost" && paid[i].Reason == "area_full":
			h.moneyEnds(a.BookingID, "voided 1")
		default:
			t.Errorf("buyer %d paid: %d %s", i, paid[i].status, paid[i].raw)
		}
	}
	if sold != places/each {
		t.Errorf("%d buyers have places, there are places for %d", sold, places/each)
	}
	if n := h.count(t.Context(), `SELECT count(*) FROM tickets WHERE area = 'standing' AND state = 'live'`); n != places {
		t.Errorf("%d tickets of %d places", n, places)
	}
	h.seesPlaces(w, map[string]int{"standing": 0})
	h.shopper(nodes[1], "too late").take(h.event, "", nil, area{"standing", 1}).want(t, http.StatusConflict, "area_full")
	h.balanced(t.Context())
}

// Giving back a booking that is being paid stops the payment first. When the
// verdict comes at the same moment one of them wins, and the money follows.
func TestGivingBackWhilePayingEndsInNeitherOrBothSeatAndMoney(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	seats := h.seats(12)
	ann, bob := h.shopper(nodes[0], "ann"), h.shopper(nodes[1], "bob")
	b := ann.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "").BookingID
	ann.pay(b, "", lateCard).want(t, http.StatusCreated, "")
	ann.giveBack(b).want(t, http.StatusNoContent, "")
	h.moneyEnds(b, "voided 1")
	ann.giveBack(b).want(t, http.StatusNoContent, "") // again: it is given back already
	ann.pay(b, "", goodCard).want(t, http.StatusConflict, "hold_expired")
	c := bob.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "").BookingID
	bob.pay(c, "", goodCard).want(t, http.StatusCreated, "")
	bob.giveBack(c).want(t, http.StatusConflict, "booking_final")
	bob.ends(c).wantSold(t, 1)

	ids, gave := make([]string, len(seats)), make([]answer, len(seats))
	owners := make([]shopper, len(seats))
	for i := 1; i < len(seats); i++ {
		owners[i] = h.shopper(nodes[i%2], fmt.Sprint("buyer ", i))
		ids[i] = owners[i].hold(h.event, "", seats[i]).want(t, http.StatusCreated, "").BookingID
		owners[i].pay(ids[i], "", lateCard).want(t, http.StatusCreated, "")
	}
	var all sync.WaitGroup
	for i := 1; i < len(seats); i++ {
		all.Go(func() { gave[i] = owners[i].giveBack(ids[i]) })
		if i == len(seats)/2 {
			h.decide(ids[1:]...)
		}
	}
	all.Wait()
	for i := 1; i < len(seats); i++ {
		switch a := gave[i]; {
		case a.status == http.StatusNoContent:
			h.moneyEnds(ids[i], "voided 1")
			owners[i].confirm(ids[i]).want(t, http.StatusConflict, "hold_expired")
		case a.status == http.StatusConflict && a.Code == "booking_final":
			owners[i].ends(ids[i]).wantSold(t, 1)
			h.moneyEnds(ids[i], "captured 1")
		default:
			t.Errorf("booking %d: %d %s", i, a.status, a.raw)
		}
	}
	eventually(t, 5*time.Second, "nothing is held any more", func() bool {
		return !slices.Contains(states(h.truth(t.Context(), h.rdb), len(seats)), seatmap.Held)
	})
	h.balanced(t.Context())
}

func states(m seatmap.Map, n int) []seatmap.Status {
	all := make([]seatmap.Status, n)
	for i := range all {
		all[i] = m.At(i)
	}
	return all
}

// The hold is a key of Redis: it ends although nobody of ours runs.
func TestAHoldEndsWithNobodyRunning(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{terms: seatmap.Terms{Hold: 500 * time.Millisecond, Grace: 300 * time.Millisecond}})
	first := h.node()
	seats := h.seats(2)
	b := h.shopper(first, "ann").hold(h.event, "", seats...).want(t, http.StatusCreated, "")
	first.kill()
	held := []string{seatmap.HoldKey(h.event, 0), seatmap.HoldKey(h.event, 1)}
	eventually(t, 5*time.Second, "the hold ends by itself", func() bool {
		return h.rdb.Exists(context.Background(), held...).Val() == 0
	})
	second := h.node()
	w := watch(t, h.event, second.url)
	h.shopper(second, "bob").hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")
	h.shopper(second, "ann").extend(b.BookingID).want(t, http.StatusConflict, "hold_expired")
	if a := h.shopper(second, "ann").booking(b.BookingID).want(t, http.StatusOK, ""); a.State != "expired" {
		t.Errorf("she reads %s", a.raw)
	}
	w.sees(2*time.Second, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
}
