package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"seatcast/checkout/stripe/stripetest"
)

func TestStripeTakesNewPaymentsAndThePageMayLoadItsScript(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	api := stripetest.New(t)
	without := h.node("SEATCAST_ROLES=hub")
	n := h.node("SEATCAST_STRIPE_SECRET_KEY=sk_test_1", "SEATCAST_STRIPE_WEBHOOK_SECRETS=whsec_1", "SEATCAST_STRIPE_PUBLISHABLE_KEY=pk_test_1",
		"SEATCAST_STRIPE_API="+api.URL)
	ann := h.shopper(n, "ann")
	b := ann.hold(h.event, "", h.seats(1)...).want(t, http.StatusCreated, "")
	ann.pay(b.BookingID, "", stripetest.CardVisa).want(t, http.StatusCreated, "")
	eventually(t, 10*time.Second, "Stripe has the money", func() bool {
		all := api.Intents()
		return len(all) == 1 && all[0].Status == "succeeded"
	})
	ann.ends(b.BookingID).wantSold(t, 1)
	if i := api.Intents(); i[0].Metadata["booking"] != b.BookingID {
		t.Errorf("Stripe has %+v", i)
	}
	for node, may := range map[string]bool{n.url: true, without.url: false} {
		resp, err := http.Get(node + "/")
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if policy := resp.Header.Get("Content-Security-Policy"); strings.Contains(policy, "js.stripe.com") != may {
			t.Errorf("the policy of %s is %s", node, policy)
		}
	}
	answer := ann.do(http.MethodGet, "/v1/payments/config", "", nil).want(t, http.StatusOK, "")
	if !strings.Contains(string(answer.raw), `"publishableKey":"pk_test_1"`) || strings.Contains(string(answer.raw), "sk_test") {
		t.Errorf("a page is told %s", answer.raw)
	}
}
