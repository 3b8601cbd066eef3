package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"seatcast/seatmap"
)

// More sandbox cards. The late one has no verdict until a test decides.
const (
	slowCard    = "4000000000003220"
	twiceCard   = "4000000000000259"
	earlyCard   = "4000000000000341"
	lostCard    = "4000000000000127"
	lateCard    = "4000000000000069"
	refusedCard = "4000000000000119"
)

// decide has the bank approve the open payments of bookings, all at once.
func (h *house) decide(bookings ...string) {
	h.t.Helper()
	_, err := h.pool.Exec(context.Background(), `UPDATE sandbox_payments SET decide_at = now() WHERE state = 'processing'
		AND idempotency_key IN (SELECT id FROM attempts WHERE booking_id = ANY($1))`, bookings)
	if err != nil {
		h.t.Fatal(err)
	}
}

// money says what the bank has of a booking: how many payments in which state.
func (h *house) money(booking string) (all string) {
	h.t.Helper()
	err := h.pool.QueryRow(context.Background(), `
		SELECT coalesce(string_agg(state || ' ' || n, ', ' ORDER BY state), 'none') FROM (
			SELECT p.state, count(*) AS n FROM sandbox_payments p JOIN attempts a ON a.id = p.idempotency_key
			WHERE a.booking_id = $1 GROUP BY p.state) by_state`, booking).Scan(&all)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// moneyEnds waits until the bank has just that of a booking.
func (h *house) moneyEnds(booking, want string) {
	h.t.Helper()
	got := ""
	defer func() {
		if h.t.Failed() {
			h.t.Logf("the money of %s: %s", booking, got)
		}
	}()
	eventually(h.t, 10*time.Second, "the money is "+want, func() bool {
		got = h.money(booking)
		return got == want
	})
}

// ends asks until a booking is neither held nor being paid, and its tickets
// are what they will be.
func (s shopper) ends(booking string) (a answer) {
	s.t.Helper()
	eventually(s.t, 10*time.Second, "the end of "+booking, func() bool {
		a = s.confirm(booking)
		return a.status != http.StatusOK || a.State == "sold" && len(a.Tickets) > 0 && a.Tickets[0].Status == "valid"
	})
	return a
}

// wantSold fails unless a booking has ended with so many valid tickets.
func (a answer) wantSold(t testing.TB, tickets int) {
	t.Helper()
	a.want(t, http.StatusOK, "")
	if a.State != "sold" || len(a.Tickets) != tickets {
		t.Fatalf("not sold with %d tickets: %s", tickets, a.raw)
	}
	for _, ticket := range a.Tickets {
		if ticket.Status != "valid" {
			t.Errorf("a ticket is %s: %s", ticket.Status, a.raw)
		}
	}
}

// loseHold has Redis lose the hold of a seat, as a failover does. The numbers of
// the event tell nobody, as they would then: nodes must not refuse from memory.
func (h *house) loseHold(i int) {
	h.t.Helper()
	if n := h.rdb.Del(context.Background(), seatmap.HoldKey(h.event, i)).Val(); n != 1 {
		h.t.Fatalf("seat %d was not held", i)
	}
}

// duel is two shoppers who hold one seat, because the hold of the first was
// lost, and who both have asked their bank.
type duel struct {
	shoppers [2]shopper
	ids      [2]string
	at       int // ann has seats at and at+1, bob at+1 and at+2
}

func (h *house) duel(round int, nodes []*node) duel {
	h.t.Helper()
	seats := h.seats(h.chart.Seats)[3*round:]
	d := duel{at: 3 * round, shoppers: [2]shopper{
		h.shopper(nodes[0], fmt.Sprint("ann ", round)), h.shopper(nodes[1], fmt.Sprint("bob ", round)),
	}}
	for i, s := range d.shoppers {
		d.ids[i] = s.hold(h.event, "", seats[i], seats[i+1]).want(h.t, http.StatusCreated, "").BookingID
		s.pay(d.ids[i], "", lateCard).want(h.t, http.StatusCreated, "")
		if i == 0 {
			h.loseHold(d.at + 1)
		}
	}
	return d
}

// Whoever is judged first has the seat. The other is told which seat, gets the
// authorisation back, is charged nothing, and the rest of the booking is free
// again.
func TestOfTwoAuthorisedBookingsOfOneSeatOneIsSoldAndOneVoided(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node("SEATCAST_GATE=off"), h.node("SEATCAST_GATE=off")}
	w := watch(t, h.event, nodes[0].url)
	var duels []duel
	for round, first := range []int{0, 1, -1, -1, -1, -1} { // -1: both at the same moment
		d := h.duel(round, nodes)
		if first >= 0 {
			h.decide(d.ids[first])
			eventually(t, 10*time.Second, "who was authorised first has the seat", func() bool {
				return d.shoppers[first].confirm(d.ids[first]).State == "sold"
			})
		}
		h.decide(d.ids[:]...)
		var all sync.WaitGroup
		for i, s := range d.shoppers {
			all.Go(func() { s.confirm(d.ids[i]) })
		}
		all.Wait()
		duels = append(duels, d)
	}
	for _, d := range duels {
		winner := h.winner(d)
		h.wantLost(d, 1-winner)
		h.moneyEnds(d.ids[winner], "captured 1")
		w.sees(5*time.Second, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
		if m := w.see(); m.At(d.at+1) != seatmap.Sold || m.At(d.at+2*winner) != seatmap.Sold || m.At(d.at+2-2*winner) != seatmap.Available {
			t.Errorf("won by %d: seats %d to %d are %v %v %v", winner, d.at, d.at+2, m.At(d.at), m.At(d.at+1), m.At(d.at+2))
		}
	}
	if h.winner(duels[0]) != 0 || h.winner(duels[1]) != 1 {
		t.Error("who was sold the seat first has lost it")
	}
	h.balanced(t.Context())
}

// winner is who of a duel has tickets.
func (h *house) winner(d duel) int {
	h.t.Helper()
	won := []int{}
	for i, s := range d.shoppers {
		if a := s.ends(d.ids[i]); a.status == http.StatusOK {
			a.wantSold(h.t, 2)
			won = append(won, i)
		}
	}
	if len(won) != 1 {
		h.t.Fatalf("%d of two won: %v", len(won), d.ids)
	}
	return won[0]
}

func (h *house) wantLost(d duel, loser int) {
	h.t.Helper()
	s, id, seats := d.shoppers[loser], d.ids[loser], h.seats(d.at + 2)[d.at+1:]
	if a := s.confirm(id).want(h.t, http.StatusConflict, "seats_lost"); fmt.Sprint(a.Seats) != fmt.Sprint(seats) {
		h.t.Errorf("the loser is told that %v is lost, not %v", a.Seats, seats)
	}
	a := s.booking(id).want(h.t, http.StatusOK, "")
	if a.State != "lost" || a.Reason != "seats_gone" || fmt.Sprint(a.Lost) != fmt.Sprint(seats) || len(a.Tickets) > 0 {
		h.t.Errorf("the loser reads %s", a.raw)
	}
	h.moneyEnds(id, "voided 1")
}

// A seat lost before its holder pays: no bank hears of it.
func TestWhoLostASeatBeforePayingIsToldAndNotAskedForMoney(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node("SEATCAST_GATE=off")
	ann, bob := h.shopper(n, "ann"), h.shopper(n, "bob")
	seats := h.seats(2)
	b := ann.hold(h.event, "", seats...).want(t, http.StatusCreated, "")
	h.loseHold(1)
	bob.hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")
	for what, a := range map[string]answer{"pay": ann.pay(b.BookingID, "", goodCard), "extend": ann.extend(b.BookingID)} {
		if a.want(t, http.StatusConflict, "seats_lost"); fmt.Sprint(a.Seats) != fmt.Sprint(seats[1:]) {
			t.Errorf("%s: told that %v is lost", what, a.Seats)
		}
	}
	if a := ann.booking(b.BookingID).want(t, http.StatusOK, ""); a.State != "held" || fmt.Sprint(a.Lost) != fmt.Sprint(seats[1:]) {
		t.Errorf("she reads %s", a.raw)
	}
	if payments := h.count(t.Context(), `SELECT count(*) FROM sandbox_payments`); payments != 0 {
		t.Errorf("%d payments were asked for", payments)
	}
	ann.giveBack(b.BookingID).want(t, http.StatusNoContent, "")
	if m := h.truth(t.Context(), h.rdb); m.At(0) != seatmap.Available || m.At(1) != seatmap.Held {
		t.Errorf("after she gave the rest back: %v, %v", m.At(0), m.At(1))
	}
}

// Two tabs, two cards, two nodes, one booking: whatever the order of verdicts,
// one card pays.
func TestTwoTabsWithTwoCardsPayOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	seats := h.seats(20)
	owners, money := map[string]shopper{}, map[string]string{}
	for round := range 10 {
		cards := [][2]string{{lateCard, lateCard}, {goodCard, twiceCard}, {goodCard, lateCard}}[round%3]
		tabs := [2]shopper{h.shopper(nodes[0], fmt.Sprint("ann ", round)), h.shopper(nodes[1], fmt.Sprint("ann ", round))}
		b := tabs[0].hold(h.event, "", seats[2*round:2*round+2]...).want(t, http.StatusCreated, "").BookingID
		asked := payInTabs(t, tabs, b, cards)
		if cards[0] == lateCard { // nobody is told of a verdict yet
			if asked != 2 {
				t.Fatalf("round %d: %d payments were begun", round, asked)
			}
			h.decide(b)
			var all sync.WaitGroup
			for _, tab := range tabs {
				all.Go(func() { tab.confirm(b) })
			}
			all.Wait()
		}
		owners[b] = tabs[round/2%2]
		money[b] = map[int]string{1: "captured 1", 2: "captured 1, voided 1"}[asked]
	}
	for b, s := range owners {
		s.ends(b).wantSold(t, 2)
		h.moneyEnds(b, money[b])
	}
	if n := h.count(t.Context(), `SELECT count(*) FROM tickets`); n != len(seats) {
		t.Errorf("%d ticket rows for %d seats", n, len(seats))
	}
	h.balanced(t.Context())
}

// payInTabs pays in both tabs at once and counts the payments begun. A tab that
// comes when the other's card has paid is told so.
func payInTabs(t *testing.T, tabs [2]shopper, booking string, cards [2]string) (asked int) {
	t.Helper()
	var all sync.WaitGroup
	var paid [2]answer
	for i, tab := range tabs {
		all.Go(func() {
			paid[i] = tab.pay(booking, fmt.Sprint("tab ", i), cards[i])
			tab.confirm(booking)
		})
	}
	all.Wait()
	for _, a := range paid {
		switch {
		case a.status == http.StatusCreated:
			asked++
		case a.status != http.StatusConflict || a.Code != "booking_final":
			t.Errorf("a tab was answered %d %s", a.status, a.raw)
		}
	}
	return asked
}

// A double-click is one payment: five requests with one key, on two nodes.
func TestADoubleClickOnPayIsOnePayment(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	seats := h.seats(8)
	for round, card := range []string{goodCard, lateCard, declinedCard, goodCard} {
		s := [2]shopper{h.shopper(nodes[0], fmt.Sprint("ann ", round)), h.shopper(nodes[1], fmt.Sprint("ann ", round))}
		b := s[0].hold(h.event, "", seats[round]).want(t, http.StatusCreated, "").BookingID
		clicks := make([]answer, 5)
		var all sync.WaitGroup
		for i := range clicks {
			all.Go(func() { clicks[i] = s[i%2].pay(b, "the one click", card) })
		}
		all.Wait()
		created := 0
		for i, a := range clicks {
			switch {
			case a.status == http.StatusCreated:
				created++
			case a.status != http.StatusOK:
				t.Errorf("click %d: %d %s", i, a.status, a.raw)
			}
			if a.Attempt.ID == "" || a.Attempt.ID != clicks[0].Attempt.ID {
				t.Errorf("click %d made attempt %q, the first %q", i, a.Attempt.ID, clicks[0].Attempt.ID)
			}
		}
		if created != 1 {
			t.Errorf("%d clicks were told that they made the payment", created)
		}
		s[0].pay(b, "the one click", twiceCard).want(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
		if n := h.count(t.Context(), `SELECT count(*) FROM attempts WHERE booking_id = $1`, b); n != 1 {
			t.Errorf("%d attempts", n)
		}
		if n := h.count(t.Context(), `SELECT count(*) FROM sandbox_payments p JOIN attempts a ON a.id = p.idempotency_key WHERE a.booking_id = $1`, b); n != 1 {
			t.Errorf("%d payments", n)
		}
	}
}
