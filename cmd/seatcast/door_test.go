package main

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/web"
)

// From a price with its fees to a seat in the house, over two nodes.
func TestATicketIsBoughtWithItsFeesListedAndLetsSomebodyInOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	if _, err := h.pool.Exec(t.Context(), `INSERT INTO event_fees (event_id, position, name, per, amount)
		VALUES ($1, 0, 'Service', 'percent', 333), ($1, 1, 'Facility', 'ticket', 7), ($1, 2, 'Order', 'order', 101)`, h.event); err != nil {
		t.Fatal(err)
	}
	north, south := h.node(), h.node()
	ann, seats := h.shopper(north, "ann"), h.seats(2)
	held := ann.hold(h.event, "", seats...).want(t, http.StatusCreated, "")
	var quote checkout.Answer
	if err := json.Unmarshal(held.raw, &quote); err != nil || !quote.AddsUp() || len(quote.Fees) != 3 || quote.Total.Amount != 2*(1000+33+7)+101 {
		t.Fatalf("held as %s, %v", held.raw, err)
	}
	ann.pay(held.BookingID, "", goodCard).want(t, http.StatusCreated, "")

	var list checkout.Orders
	eventually(t, 10*time.Second, "the tickets are valid", func() bool {
		a := h.shopper(south, "ann").do(http.MethodGet, "/v1/me/bookings", "", nil).want(t, http.StatusOK, "")
		list = checkout.Orders{}
		if err := json.Unmarshal(a.raw, &list); err != nil {
			t.Fatal(err)
		}
		return len(list.Bookings) == 1 && len(list.Bookings[0].Tickets) == 2 && list.Bookings[0].Tickets[0].QR != ""
	})
	if o := list.Bookings[0]; o.BookingID != held.BookingID || o.Event.ID != h.event || o.Total != quote.Total || o.Tickets[0].AllIn+o.Tickets[1].AllIn != o.Total.Amount {
		t.Errorf("listed as %+v", o)
	}
	h.balanced(t.Context())

	ticket := list.Bookings[0].Tickets[0]
	scan := body{"payload": ticket.QR, "event": h.event, "gate": "A"}
	ann.do(http.MethodPost, web.ScanPath, "", scan).want(t, http.StatusForbidden, "not_operator")
	gates := []shopper{h.with(north, "gus", "scanner"), h.with(south, "eve", "scanner")}
	var came [10]answer
	var doors errgroup.Group
	for n := range came {
		doors.Go(func() error {
			came[n] = gates[n%2].do(http.MethodPost, web.ScanPath, "", scan)
			return nil
		})
	}
	if err := doors.Wait(); err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for _, a := range came {
		if a.status == http.StatusOK {
			admitted++
		} else {
			a.want(t, http.StatusConflict, "ticket_used")
		}
	}
	if admitted != 1 {
		t.Errorf("%d doors let it in", admitted)
	}
	undo := body{"ticket": ticket.ID, "reason": "scanned by mistake"}
	gates[0].do(http.MethodPost, web.ScanPath+"/undo", "", undo).want(t, http.StatusForbidden, "not_operator")
	h.operator(south, "olga").do(http.MethodPost, web.ScanPath+"/undo", "", undo).want(t, http.StatusOK, "")
	gates[0].do(http.MethodPost, web.ScanPath, "", scan).want(t, http.StatusOK, "")

	var keys struct{ Keys []struct{ Kid string } }
	a := shopper{t, south.url, ""}.do(http.MethodGet, "/v1/tickets/keys", "", nil).want(t, http.StatusOK, "")
	if err := json.Unmarshal(a.raw, &keys); err != nil || len(keys.Keys) != 1 {
		t.Errorf("the keys are %s, %v", a.raw, err)
	}
}
