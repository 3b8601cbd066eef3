package stripe_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/stripe"
	"seatcast/checkout/stripe/stripetest"
	"seatcast/seatmap"
)

const secret = "whsec_test"

func setup(t *testing.T, set ...func(*stripe.Options)) (*stripe.Stripe, *stripetest.API) {
	t.Helper()
	api := stripetest.New(t)
	o := stripe.Options{SecretKey: "sk_test_1", WebhookSecrets: []string{secret}, API: api.URL}
	for _, f := range set {
		f(&o)
	}
	s, err := stripe.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, api
}

func charge(key, method string) checkout.Charge {
	return checkout.Charge{Key: key, Booking: "opera.1", Method: method, Money: seatmap.Money{Amount: 8500, Currency: "EUR"}, Begun: time.Now()}
}

func create(t *testing.T, s *stripe.Stripe, key, method string) checkout.Payment {
	t.Helper()
	p, err := s.Create(t.Context(), charge(key, method))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAnAttemptIsAuthorisedThenCapturedThenRefunded(t *testing.T) {
	s, api := setup(t)
	p := create(t, s, "at_1", stripetest.CardVisa)
	if p.State != checkout.PaymentAuthorized || p.Key != "at_1" || p.Money != charge("", "").Money || p.Card == "" || p.CaptureBefore.Before(time.Now()) {
		t.Errorf("created: %+v", p)
	}
	p, err := s.Capture(t.Context(), p.ID)
	if err != nil || p.State != checkout.PaymentCaptured || p.Money.Amount != 8500 {
		t.Errorf("captured: %+v, %v", p, err)
	}
	r := checkout.Refund{Payment: p.ID, Key: "r1", Money: seatmap.Money{Amount: 8500, Currency: "EUR"}}
	first, err := s.Refund(t.Context(), r)
	if err != nil || first.State != checkout.RefundSucceeded {
		t.Errorf("refunded: %+v, %v", first, err)
	}
	if again, err := s.Refund(t.Context(), r); err != nil || again != first {
		t.Errorf("again: %+v, %v", again, err)
	}
	r.Key = "r2"
	if more, err := s.Refund(t.Context(), r); err != nil || more.State != checkout.RefundFailed || more.Reason != "charge_already_refunded" {
		t.Errorf("more than there is: %+v, %v", more, err)
	}
	if p, err = s.Get(t.Context(), p.ID); err != nil || p.Refunded != 8500 || p.State != checkout.PaymentCaptured {
		t.Errorf("got: %+v, %v", p, err)
	}
	if i := api.Intents()[0]; i.CaptureMethod != "manual" || i.Metadata["booking"] != "opera.1" {
		t.Errorf("%+v", i)
	}
}

func TestTheSameKeyIsTheSamePaymentAsItIsNow(t *testing.T) {
	s, api := setup(t)
	c := charge("at_1", stripetest.CardAsks)
	first, err := s.Create(t.Context(), c)
	if err != nil || first.State != checkout.PaymentProcessing || first.Action.Secret == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	api.Change(t, "at_1", func(i *stripetest.Intent) { i.Status, i.Charge = "requires_capture", "ch_1" })
	for name, begun := range map[string]time.Time{"soon": time.Now(), "when Stripe has forgotten the key": time.Now().Add(-48 * time.Hour)} {
		c.Begun = begun
		if got, err := s.Create(t.Context(), c); err != nil || got.ID != first.ID || got.State != checkout.PaymentAuthorized || got.Action != (checkout.Action{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if n := len(api.Intents()); n != 1 {
		t.Errorf("%d payments", n)
	}
	c.Money.Amount++
	c.Begun = time.Now()
	if got, err := s.Create(t.Context(), c); err == nil {
		t.Errorf("another charge under the same key: %+v", got)
	}
}

func TestAForgottenKeyWithoutAPaymentChargesNobody(t *testing.T) {
	s, api := setup(t)
	c := charge("at_1", stripetest.CardVisa)
	c.Begun = time.Now().Add(-48 * time.Hour)
	if p, err := s.Create(t.Context(), c); err != nil || p.State != checkout.PaymentFailed || p.ID != "" {
		t.Errorf("%+v, %v", p, err)
	}
	if n := len(api.Intents()); n != 0 {
		t.Errorf("%d payments", n)
	}
}

func TestARefusalIsAPaymentAndTroubleIsAnError(t *testing.T) {
	s, api := setup(t)
	for method, why := range map[string]string{
		stripetest.CardDeclined: "generic_decline",
		"pm_of_nobody":          "resource_missing",
		"4242424242424242":      "unknown_payment_method",
	} {
		if p := create(t, s, "at_"+method, method); p.State != checkout.PaymentFailed || p.Reason != why || p.Key != "at_"+method || p.Money.Amount != 8500 {
			t.Errorf("%s: %+v", method, p)
		}
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway} {
		api.Trouble(func(string) (int, bool) { return status, false })
		before := len(api.Calls())
		for name, call := range map[string]func() error{
			"create":  func() error { _, err := s.Create(t.Context(), charge("at_t", stripetest.CardVisa)); return err },
			"get":     func() error { _, err := s.Get(t.Context(), "pi_0001"); return err },
			"capture": func() error { _, err := s.Capture(t.Context(), "pi_0001"); return err },
			"void":    func() error { _, err := s.Void(t.Context(), "pi_0001"); return err },
			"refund": func() error {
				_, err := s.Refund(t.Context(), checkout.Refund{Payment: "pi_0001", Key: "r"})
				return err
			},
		} {
			if err := call(); !errors.Is(err, checkout.ErrProvider) {
				t.Errorf("%s with %d: %v", name, status, err)
			}
		}
		if calls := len(api.Calls()) - before; calls > 6 { // one each, and a search after a 5xx
			t.Errorf("with %d %d calls were made: something is retried", status, calls)
		}
	}
	api.Trouble(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Create(ctx, charge("at_c", stripetest.CardVisa)); err == nil {
		t.Error("an unknown outcome is no error")
	}
	if _, err := s.Get(t.Context(), "pi_elsewhere"); !errors.Is(err, checkout.ErrUnknownPayment) {
		t.Errorf("a payment that is not there: %v", err)
	}
}

func TestAFailureInsideStripeThatChargedIsFound(t *testing.T) {
	s, api := setup(t)
	api.Trouble(func(call string) (int, bool) {
		if call == "POST /v1/payment_intents" {
			return http.StatusInternalServerError, true
		}
		return 0, false
	})
	if p := create(t, s, "at_1", stripetest.CardVisa); p.State != checkout.PaymentAuthorized || p.Key != "at_1" {
		t.Errorf("%+v", p)
	}
}

func TestAnErrorTellsNoSecret(t *testing.T) {
	s, api := setup(t)
	api.Trouble(func(string) (int, bool) { return http.StatusInternalServerError, false })
	_, err := s.Get(t.Context(), "pi_0001")
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "req_") {
		t.Errorf("%v", err)
	}
}

func TestVoidEndsWhatItCanAndReturnsWhatItCannot(t *testing.T) {
	s, _ := setup(t)
	for method, want := range map[string]checkout.PaymentState{
		stripetest.CardVisa: checkout.PaymentVoided, stripetest.CardAsks: checkout.PaymentVoided, stripetest.Debit: checkout.PaymentProcessing,
	} {
		p := create(t, s, "at_"+method, method)
		for range 2 {
			if got, err := s.Void(t.Context(), p.ID); err != nil || got.State != want {
				t.Errorf("%s: %+v, %v", method, got, err)
			}
		}
	}
	p := create(t, s, "at_1", stripetest.CardVisa)
	if _, err := s.Capture(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Void(t.Context(), p.ID); err != nil || got.State != checkout.PaymentCaptured {
		t.Errorf("void of a captured one: %+v, %v", got, err)
	}
}

func TestCaptureOfWhatHasLapsedOrWasTakenSaysSo(t *testing.T) {
	s, api := setup(t)
	lapsed := create(t, s, "at_1", stripetest.CardVisa)
	api.Change(t, "at_1", func(i *stripetest.Intent) { i.Status, i.CancellationReason = "canceled", "automatic" })
	if got, err := s.Capture(t.Context(), lapsed.ID); err != nil || got.State != checkout.PaymentExpired {
		t.Errorf("lapsed: %+v, %v", got, err)
	}
	taken := create(t, s, "at_2", stripetest.CardVisa)
	for range 2 {
		if got, err := s.Capture(t.Context(), taken.ID); err != nil || got.State != checkout.PaymentCaptured {
			t.Errorf("taken: %+v, %v", got, err)
		}
	}
}

func TestMethodsThatCaptureAtOnceAreExcludedUnlessTheyAreWanted(t *testing.T) {
	methods := func(atOnce bool) func(*stripe.Options) {
		return func(o *stripe.Options) { o.Methods, o.AtOnce = []string{"card", "sepa_debit", "klarna"}, atOnce }
	}
	s, api := setup(t, methods(false))
	offered, atOnce, left := s.Methods()
	if !slices.Equal(offered, []string{"card", "klarna"}) || len(atOnce) != 0 || !slices.Equal(left, []string{"sepa_debit"}) {
		t.Errorf("%v, %v, %v", offered, atOnce, left)
	}
	create(t, s, "at_1", stripetest.CardVisa)
	s, _ = setup(t, methods(true), func(o *stripe.Options) { o.API = api.URL })
	if offered, atOnce, left = s.Methods(); len(offered) != 3 || !slices.Equal(atOnce, []string{"sepa_debit"}) || len(left) != 0 {
		t.Errorf("%v, %v, %v", offered, atOnce, left)
	}
	create(t, s, "at_2", stripetest.CardVisa)
	if all := api.Intents(); all[0].CaptureMethod != "manual" || all[1].CaptureMethod != "automatic" {
		t.Errorf("%+v", all)
	}
	if _, err := stripe.New(stripe.Options{SecretKey: "sk_test_1", WebhookSecrets: []string{secret}, Methods: []string{"ideal"}}); err == nil {
		t.Error("nothing is left to pay with, and nobody says so")
	}
}

// Stripe counts some currencies otherwise than ISO 4217.
func TestAmountsAreCountedAsStripeDoes(t *testing.T) {
	s, api := setup(t)
	for i, c := range []struct {
		currency     string
		ours, theirs int64
	}{{"EUR", 8500, 8500}, {"JPY", 8500, 8500}, {"KWD", 8500, 8500}, {"ISK", 8500, 850000}, {"UGX", 8500, 850000}, {"MGA", 8500, 85}} {
		charge := charge("at_"+c.currency, stripetest.CardVisa)
		charge.Money = seatmap.Money{Amount: c.ours, Currency: c.currency}
		p, err := s.Create(t.Context(), charge)
		if err != nil || p.Money != charge.Money {
			t.Errorf("%s: %+v, %v", c.currency, p, err)
		}
		if got := api.Intents()[i]; got.Amount != c.theirs || got.Currency != strings.ToLower(c.currency) {
			t.Errorf("%s: %+v", c.currency, got)
		}
	}
	c := charge("at_odd", stripetest.CardVisa)
	c.Money = seatmap.Money{Amount: 8550, Currency: "MGA"}
	if p, err := s.Create(t.Context(), c); err != nil || p.State != checkout.PaymentFailed {
		t.Errorf("half an ariary: %+v, %v", p, err)
	}
}
