package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// paced is what a frame says of how fast people are let in.
type paced struct {
	Rate, Pace int
	Slowed     *string
}

func (h *house) paced(n *node) (p paced) {
	h.t.Helper()
	a := shopper{h.t, n.url, ""}.do(http.MethodGet, "/v1/queue/"+h.event, "", nil)
	if err := json.Unmarshal(a.raw, &p); err != nil {
		h.t.Fatalf("%d %s", a.status, a.raw)
	}
	return p
}

func TestARoomLetsInFewerWhileTheProviderOfPaymentsIsSlow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	one, two := h.node(), h.node()
	w := h.waits(map[string]any{"slow": map[string]int{"holdMs": 60_000, "checkoutMs": 500, "failures": 0}}, one, two)
	ann := h.shopper(one, "ann")
	pass := w.enters(ann)
	var bookings []string
	for _, seat := range h.seats(4) {
		bookings = append(bookings, w.takes(ann, pass, seat).want(t, http.StatusCreated, "").BookingID)
	}
	if p := h.paced(two); p.Pace != p.Rate || p.Slowed != nil {
		t.Errorf("before, %+v", p)
	}

	slow, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Rollback(t.Context()) }() // over already, unless the test has failed
	if _, err := slow.Exec(t.Context(), `LOCK TABLE sandbox_payments`); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, booking := range bookings {
		wg.Go(func() { ann.pay(booking, "", goodCard) })
	}
	eventually(t, 20*time.Second, "the other node lets in fewer, because the checkout is slow", func() bool {
		p := h.paced(two)
		return p.Slowed != nil && *p.Slowed == "checkout" && p.Pace == p.Rate*7/10
	})
	if err := slow.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for _, booking := range bookings {
		ann.ends(booking).wantSold(t, 1)
	}
	eventually(t, 60*time.Second, "it recovers", func() bool { return h.paced(two).Pace > h.paced(two).Rate*7/10 })
	shown := string(shopper{t, one.url, ""}.do(http.MethodGet, "/metrics", "", nil).raw)
	for _, line := range []string{
		fmt.Sprintf(`waitingroom_claims_total{event=%q,outcome="admitted"} 1`, h.event), fmt.Sprintf(`waitingroom_rate{event=%q} 60000`, h.event),
	} {
		if !strings.Contains(shown, line+"\n") {
			t.Errorf("the metrics do not have %s", line)
		}
	}
}
