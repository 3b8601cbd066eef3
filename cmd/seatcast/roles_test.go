package main

import (
	"net/http"
	"testing"
	"time"

	"seatcast/seatmap"
)

// Three processes, a role each: one sells, one shows, one does what follows.
func TestThreeRolesInThreeProcessesSellASeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{terms: seatmap.Terms{Hold: 6 * time.Second, Grace: 200 * time.Millisecond}})
	api := h.node("SEATCAST_ROLES=api")
	hub := h.node("SEATCAST_ROLES=hub", "SEATCAST_SANDBOX=false")
	h.node("SEATCAST_ROLES=worker", "SEATCAST_SANDBOX_WEBHOOK_URL="+api.url+"/v1/payments/webhook/sandbox")
	w, ws := watch(t, h.event, hub.url), watchSocket(t, h.event, hub.url)
	both := func(d time.Duration, m seatmap.Map) {
		t.Helper()
		w.sees(d, func() seatmap.Map { return m })
		ws.sees(d, func() seatmap.Map { return m })
	}
	ann, bob := h.shopper(api, "ann"), h.shopper(api, "bob")
	seats := h.seats(4)

	a := ann.hold(h.event, "", seats[:2]...).want(t, http.StatusCreated, "").BookingID
	b := bob.hold(h.event, "", seats[2:]...).want(t, http.StatusCreated, "").BookingID
	both(2*time.Second, stateOf(h.chart.Seats, seatmap.Held, 0, 1, 2, 3))
	ann.pay(a, "", slowCard).want(t, http.StatusCreated, "")
	h.decide(a)
	// Nobody confirms: the worker's bank decides, its webhook sells at the api,
	// the worker captures.
	h.moneyEnds(a, "captured 1")
	ann.ends(a).wantSold(t, 2)
	// Bob walks away: his hold ends by itself.
	both(10*time.Second, stateOf(h.chart.Seats, seatmap.Sold, 0, 1))
	bob.extend(b).want(t, http.StatusConflict, "hold_expired")
	h.balanced(t.Context())

	h.shopper(hub, "ann").hold(h.event, "", seats[3]).want(t, http.StatusNotFound, "not_found")
	ann.do(http.MethodGet, "/v1/events/"+h.event+"/seatmap", "", nil).want(t, http.StatusNotFound, "")
}
