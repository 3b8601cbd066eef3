package stripe_test

import (
	"errors"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/stripe"
	"seatcast/checkout/stripe/stripetest"
)

func with(signature string) func(string) string {
	return func(name string) string {
		if name == stripe.SignatureHeader {
			return signature
		}
		return ""
	}
}

func TestEventsNameThePaymentTheyAreAbout(t *testing.T) {
	s, api := setup(t)
	i := stripetest.Intent{ID: "pi_1", Charge: "ch_1", Disputed: "needs_response", Refunded: 100}
	for kind, step := range map[string]string{
		"payment_intent.amount_capturable_updated": "ch_1",
		"payment_intent.succeeded":                 "ch_1",
		"payment_intent.payment_failed":            "ch_1",
		"payment_intent.canceled":                  "ch_1",
		"charge.expired":                           "ch_1 100",
		"charge.refunded":                          "ch_1 100",
		"refund.updated":                           "re_pi_1 succeeded",
		"charge.dispute.created":                   "dp_pi_1 needs_response",
	} {
		body := api.Event("evt_1", kind, i)
		n, err := s.Notice(with(stripetest.Sign(body, time.Now(), secret)), body)
		if want := (checkout.Notice{Event: "evt_1", Type: kind, Payment: "pi_1", Step: step}); err != nil || n != want {
			t.Errorf("%s: %+v, %v", kind, n, err)
		}
	}
	for _, body := range []string{
		`{"id":"evt_2","type":"customer.created","data":{"object":{"object":"customer","id":"cus_1"}}}`,
		`{"id":"evt_3","type":"charge.succeeded","data":{"object":{"object":"charge","id":"ch_1","payment_intent":null}}}`,
	} {
		if _, err := s.Notice(with(stripetest.Sign([]byte(body), time.Now(), secret)), []byte(body)); !errors.Is(err, checkout.ErrUnknownPayment) {
			t.Errorf("%s: %v", body, err)
		}
	}
	whole := []byte(`{"id":"evt_4","type":"charge.refunded","data":{"object":{"object":"charge","id":"ch_1","payment_intent":{"id":"pi_9"}}}}`)
	if n, err := s.Notice(with(stripetest.Sign(whole, time.Now(), secret)), whole); err != nil || n.Payment != "pi_9" {
		t.Errorf("an expanded payment: %+v, %v", n, err)
	}
}

func TestOnlyWhatStripeSignedLatelyIsBelieved(t *testing.T) {
	s, api := setup(t, func(o *stripe.Options) { o.WebhookSecrets = []string{"whsec_new", "whsec_old"} })
	body := api.Event("evt_1", "payment_intent.succeeded", stripetest.Intent{ID: "pi_1"})
	now := time.Now()
	for name, header := range map[string]string{
		"the new secret":       stripetest.Sign(body, now, "whsec_new"),
		"the old one":          stripetest.Sign(body, now, "whsec_old"),
		"both, while it rolls": stripetest.Sign(body, now, "whsec_old", "whsec_new"),
		"a strange one beside": stripetest.Sign(body, now, "whsec_strange", "whsec_new"),
		"four minutes ago":     stripetest.Sign(body, now.Add(-4*time.Minute), "whsec_new"),
	} {
		if _, err := s.Notice(with(header), body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, header := range map[string]string{
		"none":             "",
		"a strange secret": stripetest.Sign(body, now, "whsec_strange"),
		"too old":          stripetest.Sign(body, now.Add(-6*time.Minute), "whsec_new"),
		"another body":     stripetest.Sign(append([]byte(" "), body...), now, "whsec_new"),
		"nonsense":         "t=now,v1=zz",
	} {
		if _, err := s.Notice(with(header), body); !errors.Is(err, checkout.ErrBadSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
