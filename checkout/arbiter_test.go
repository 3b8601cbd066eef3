package checkout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"seatcast/checkout/sandbox"
)

func TestASoldSeatIsATicketThatIsValidOnceTheMoneyIsCaptured(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{3, 4}, 1)
	if r := h.get(id, "ada"); r.Status != http.StatusOK || r.State != "held" {
		t.Fatalf("before payment: %+v", r)
	}
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Status != http.StatusCreated || r.State != "sold" || r.Attempt.State != "capturing" {
		t.Fatalf("payment: %+v", r)
	}
	if !h.holds.shows(3) || !h.holds.shows(4) || h.holds.left["floor"] != 9 {
		t.Error("the gate was not told at once")
	}
	for _, ticket := range h.get(id, "ada").Tickets {
		if ticket.Status != "pending" {
			t.Errorf("ticket %+v before the capture", ticket)
		}
	}
	h.run(h.desk.Run)
	h.quietens()
	r := h.get(id, "ada")
	if len(r.Tickets) != 3 || r.Tickets[0].TicketID != "A-3" || r.Tickets[2].Area != "floor" {
		t.Fatalf("tickets: %+v", r.Tickets)
	}
	for _, ticket := range r.Tickets {
		if ticket.Status != "valid" {
			t.Errorf("ticket %+v after the capture", ticket)
		}
	}
	if got := h.sound(); got.Seats != 2 || got.Places != 1 || got.Money.Amount != 2500 {
		t.Errorf("books: %+v", got)
	}
}

func TestArbiterRefusesTheSecondOfTwoAuthorisedBookingsOfASeat(t *testing.T) {
	h := setup(t)
	first, second := h.hold("ada", []int{5}, 0), h.hold("bob", []int{4, 5}, 0)
	h.pay(first, "ada", sandbox.CardApprove)
	r := h.pay(second, "bob", sandbox.CardApprove)
	if r.Status != http.StatusConflict || r.Code != "seats_lost" || string(r.Seats) != `["A-5"]` || r.Reason != "seats_gone" {
		t.Fatalf("the loser is told %+v %s", r, r.Seats)
	}
	if !h.holds.gaveBack(second) {
		t.Error("the loser's other seat stays held")
	}
	h.run(h.desk.Run)
	h.quietens()
	if got := h.ledger(); got["captured"] != 1 || got["voided"] != 1 {
		t.Errorf("money: %v", got)
	}
	if r := h.get(second, "bob"); r.State != "lost" {
		t.Errorf("the loser's booking is %s", r.State)
	}
	if r := h.call(http.MethodPut, "/bookings/"+second+"/confirm", "bob", nil); r.Code != "seats_lost" {
		t.Errorf("confirm of a lost booking: %+v", r)
	}
	if got := h.sound(); got.Seats != 1 {
		t.Errorf("books: %+v", got)
	}
}

func TestArbiterRefusesASeatThatWasClosed(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE seats SET off_sale = true, status = 'unavailable' WHERE i = 2`)
	r := h.pay(h.hold("ada", []int{1, 2}, 0), "ada", sandbox.CardApprove)
	if r.Code != "seats_lost" || string(r.Seats) != `["A-2"]` {
		t.Fatalf("payment: %+v %s", r, r.Seats)
	}
	if got := h.sound(); got.Tickets != 0 {
		t.Errorf("books: %+v", got)
	}
}

// A refused capture is giving the seat back at this very moment: who wants it
// waits for that and has it.
func TestASeatThatIsComingBackIsWaitedFor(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{1}, 0), "ada", sandbox.CardRefused)
	tx, err := h.pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // after the commit it changes nothing
	_, err = tx.Exec(t.Context(), `UPDATE seats SET status = 'available', booking_id = NULL WHERE i = 1`)
	must(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE tickets SET state = 'void'`)
	must(t, err)

	var g errgroup.Group
	var r reply
	id := h.hold("bob", []int{1}, 0)
	g.Go(func() error {
		return h.try(http.MethodPost, "/bookings/"+id+"/payment", "bob", map[string]string{"paymentMethod": sandbox.CardApprove}, &r)
	})
	h.eventually(func() (string, bool) {
		over := ask[bool](h, `SELECT EXISTS (SELECT FROM bookings WHERE id = $1 AND state <> 'paying')`, id)
		n := ask[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		return "nobody waits for the seat", n > 0 || over
	})
	must(t, tx.Commit(t.Context()))
	must(t, g.Wait())
	if r.State != "sold" {
		t.Errorf("it is told %+v", r)
	}
}

func TestOverlappingBookingsSellEverySeatOnceForItsPrice(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run, h.sandbox.Run)
	cards := []string{sandbox.CardApprove, sandbox.CardSlow, sandbox.CardDuplicate, sandbox.CardEarly}
	var g errgroup.Group
	g.SetLimit(25)
	for n := range 50 {
		seats := slices.Sorted(slices.Values(rand.Perm(20)[:1+n%4]))
		user := fmt.Sprint("user", n)
		id := h.hold(user, seats, 0)
		g.Go(func() error {
			var r reply
			return h.try(http.MethodPost, "/bookings/"+id+"/payment", user, map[string]string{"paymentMethod": cards[n%4]}, &r)
		})
	}
	must(t, g.Wait())
	h.quietens()
	got := h.sound()
	if got.Seats == 0 || got.Money.Amount != int64(got.Seats)*1000 {
		t.Errorf("books: %+v", got)
	}
	if open := ask[int](h, `SELECT count(*) FROM bookings WHERE state NOT IN ('sold', 'lost')`); open != 0 {
		t.Errorf("%d bookings are neither sold nor lost", open)
	}
	ledger := h.ledger()
	if ledger["captured"]+ledger["voided"] != 50 {
		t.Errorf("money: %v", ledger)
	}
}

func TestTwoTabsTwoCardsOneCapture(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1, 2}, 0)
	h.pay(id, "ada", sandbox.CardSlow)
	h.pay(id, "ada", sandbox.CardSlow)
	h.run(h.desk.Run, h.sandbox.Run)
	h.becomes(id, "sold")
	h.quietens()
	if got := h.ledger(); got["captured"] != 1 || got["voided"] != 1 {
		t.Errorf("money: %v", got)
	}
	h.sound()
}

func TestAreaNeverOversellsUnderConcurrency(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	var g errgroup.Group
	g.SetLimit(20)
	for n := range 40 {
		user := fmt.Sprint("user", n)
		id := h.hold(user, nil, 1)
		g.Go(func() error {
			var r reply
			return h.try(http.MethodPost, "/bookings/"+id+"/payment", user, map[string]string{"paymentMethod": sandbox.CardApprove}, &r)
		})
	}
	must(t, g.Wait())
	h.quietens()
	if got := h.sound(); got.Places != 10 {
		t.Errorf("books: %+v", got)
	}
	if got := h.ledger(); got["captured"] != 10 || got["voided"] != 30 {
		t.Errorf("money: %v", got)
	}
	h.eventually(func() (string, bool) { return "the gate shows places left", h.holds.leftIn("floor") == 0 })
}

func TestMixedOrderIsAllOrNothing(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE areas SET capacity = 1 WHERE event_id = $1`, event)
	id := h.hold("ada", []int{7}, 2)
	r := h.pay(id, "ada", sandbox.CardApprove)
	if r.Code != "seats_lost" || r.Reason != "area_full" {
		t.Fatalf("payment: %+v", r)
	}
	if status := ask[string](h, `SELECT status FROM seats WHERE i = 7`); status != "available" {
		t.Errorf("the seat of the refused order is %s", status)
	}
	if got := h.sound(); got.Tickets != 0 {
		t.Errorf("books: %+v", got)
	}
}

func TestUniqueTicketBitesWhenTheFirstGuardIsBypassed(t *testing.T) {
	h := setup(t)
	other := h.hold("eve", []int{1}, 0)
	h.pay(other, "eve", sandbox.CardDecline)
	h.exec(`INSERT INTO tickets (id, event_id, booking_id, user_id, i, price) VALUES ('forged', $1, $2, 'eve', 9, 0)`, event, other)
	r := h.pay(h.hold("ada", []int{8, 9}, 0), "ada", sandbox.CardApprove)
	if r.Code != "seats_lost" || string(r.Seats) != `["A-9"]` {
		t.Fatalf("payment: %+v %s", r, r.Seats)
	}
	if sold := ask[int](h, `SELECT count(*) FROM seats WHERE status = 'sold'`); sold != 0 {
		t.Errorf("%d seats sold", sold)
	}
}

func TestAccountLimitHoldsOverConcurrentBookings(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE events SET seats_per_user = 2`)
	first := h.hold("ada", []int{20}, 0)
	h.pay(first, "ada", sandbox.CardApprove)

	// Another sale to the account is under way, and not committed yet.
	tx, err := h.pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // after the commit it changes nothing
	_, err = tx.Exec(t.Context(), `SELECT FROM buyers WHERE user_id = 'ada' FOR UPDATE`)
	must(t, err)
	_, err = tx.Exec(t.Context(), `INSERT INTO tickets (id, event_id, booking_id, user_id, i, price) VALUES ('other', $1, $2, 'ada', 21, 0)`, event, first)
	must(t, err)

	var g errgroup.Group
	var r reply
	id := h.hold("ada", []int{1}, 0)
	g.Go(func() error {
		return h.try(http.MethodPost, "/bookings/"+id+"/payment", "ada", map[string]string{"paymentMethod": sandbox.CardApprove}, &r)
	})
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		return "nobody waits for the account", n > 0
	})
	must(t, tx.Commit(t.Context()))
	must(t, g.Wait())
	if r.Code != "seats_lost" || r.Reason != "account_limit" {
		t.Errorf("beyond the limit: %+v", r)
	}
}

func TestRefusedCaptureUnsells(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{6}, 2)
	h.pay(id, "ada", sandbox.CardRefused)
	if !h.holds.shows(6) {
		t.Fatal("not sold")
	}
	h.run(h.desk.Run)
	h.becomes(id, "lost")
	r := h.get(id, "ada")
	if r.Reason != "capture_refused" || len(r.Tickets) != 3 || r.Tickets[0].Status != "void" {
		t.Errorf("the buyer is told %+v", r)
	}
	h.eventually(func() (string, bool) {
		return "the gate shows it sold", !h.holds.shows(6) && h.holds.leftIn("floor") == 10
	})
	if got := h.sound(); got.Tickets != 0 || got.Money.Amount != 0 {
		t.Errorf("books: %+v", got)
	}
	if r := h.pay(h.hold("bob", []int{6}, 0), "bob", sandbox.CardApprove); r.State != "sold" {
		t.Errorf("the seat cannot be sold again: %+v", r)
	}
}

func TestCheckFindsWhatContradicts(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1, 2}, 1)
	h.pay(id, "ada", sandbox.CardApprove)
	h.exec(`UPDATE seats SET status = 'available', booking_id = NULL WHERE i = 1`)
	h.exec(`UPDATE tickets SET state = 'void' WHERE i = 2`)
	h.exec(`UPDATE areas SET sold = 4`)
	r, err := h.store.Check(t.Context(), event)
	must(t, err)
	if len(r.Faults) != 4 {
		b, _ := json.MarshalIndent(r, "", " ")
		t.Errorf("want seat, ticket, area and price to be found: %s", b)
	}
}
