package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// The process that sends is killed before it hears that its message was taken.
func TestAWebhookOfAKilledWorkerIsSentAgainWithItsID(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	var (
		mu   sync.Mutex
		came []string
	)
	first, held := make(chan struct{}), make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		came = append(came, r.Header.Get("webhook-id"))
		n := len(came)
		mu.Unlock()
		if n == 1 {
			close(first)
			<-held
		}
	}))
	t.Cleanup(other.Close)
	t.Cleanup(func() { close(held) })
	inside := []string{"SEATCAST_WEBHOOKS_HTTP=true", "SEATCAST_WEBHOOKS_PRIVATE=true"}
	api := h.node(append(inside, onlyAPI)...)
	h.operator(api, "olga").do(http.MethodPost, "/v1/admin/webhooks", "", body{"url": other.URL, "types": []string{"booking.sold"}}).want(t, http.StatusCreated, "")
	s := h.shopper(api, "ann")
	b := s.hold(h.event, "", h.seats(1)...).want(t, http.StatusCreated, "")
	s.pay(b.BookingID, "", goodCard).want(t, http.StatusCreated, "")

	doomed := h.node(append(inside, onlyWorker, "SEATCAST_SANDBOX_WEBHOOK_URL="+api.url)...)
	<-first
	doomed.kill()
	h.node(append(inside, onlyWorker, "SEATCAST_SANDBOX_WEBHOOK_URL="+api.url)...)
	eventually(t, 90*time.Second, "it is delivered", func() bool {
		return h.count(t.Context(), `SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'`) == 1
	})
	mu.Lock()
	defer mu.Unlock()
	if len(came) != 2 || came[0] != came[1] {
		t.Errorf("came %v", came)
	}
}
