package checkout_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/checkout/stripe"
	"seatcast/checkout/stripe/stripetest"
)

const whsec = "whsec_test"

// bank is a house whose shoppers pay through a Stripe that remembers.
type bank struct {
	*house
	api *stripetest.API
}

func stripeHouse(t *testing.T, settings ...setting) *bank {
	t.Helper()
	b := &bank{api: stripetest.New(t)}
	b.house = setup(t, append([]setting{func(_ *house, o *checkout.Options, _ *sandbox.Options) {
		s, err := stripe.New(stripe.Options{SecretKey: "sk_test_1", WebhookSecrets: []string{whsec}, API: b.api.URL,
			Methods: []string{"card", "sepa_debit"}, AtOnce: true, Log: o.Log})
		must(t, err)
		o.Providers = []checkout.Provider{s}
	}}, settings...)...)
	return b
}

// begin pays for a seat and returns the booking and its attempt.
func (b *bank) begin(seat int, method string) (booking, attempt string) {
	b.t.Helper()
	booking = b.hold("ada", []int{seat}, 0)
	r := b.pay(booking, "ada", method)
	if r.Status != http.StatusCreated {
		b.t.Fatalf("payment: %+v", r)
	}
	return booking, r.Attempt.ID
}

// hears has Stripe send an event about the PaymentIntent of an attempt.
func (b *bank) hears(id, kind, attempt string) {
	b.t.Helper()
	body := b.api.Event(id, kind, b.api.Change(b.t, attempt, func(*stripetest.Intent) {}))
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+"/payments/webhook/stripe", bytes.NewReader(body))
	must(b.t, err)
	req.Header.Set(stripe.SignatureHeader, stripetest.Sign(body, time.Now(), whsec))
	resp, err := http.DefaultClient.Do(req)
	must(b.t, err)
	must(b.t, resp.Body.Close())
	if resp.StatusCode != http.StatusNoContent {
		b.t.Errorf("%s answered %s", kind, resp.Status)
	}
}

func (b *bank) change(attempt string, f func(*stripetest.Intent)) {
	b.t.Helper()
	b.api.Change(b.t, attempt, f)
}

// balanced compares what Stripe has taken and not given back with the books.
func (b *bank) balanced() checkout.Balance {
	b.t.Helper()
	report, err := b.store.Check(b.t.Context(), event)
	must(b.t, err)
	for _, fault := range report.Faults {
		b.t.Error("fault: ", fault)
	}
	var taken int64
	for _, i := range b.api.Intents() {
		if i.Status == "requires_capture" {
			b.t.Errorf("%s is authorised and nobody will capture or void it", i.ID)
		}
		taken += i.Received - i.Refunded
	}
	r := report.Balances[0]
	if taken != r.Money.Amount {
		b.t.Errorf("Stripe took %d, the books say %v", taken, r.Money)
	}
	return r
}

func TestAPageIsToldWhoTakesPaymentsAndNoSecret(t *testing.T) {
	for provider, h := range map[string]*house{"stripe": stripeHouse(t).house, "sandbox": setup(t)} {
		resp, err := http.Get(h.url + "/payments/config")
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"provider":"`+provider+`"`) ||
			strings.Contains(string(body), "sk_") || strings.Contains(string(body), "whsec") {
			t.Errorf("%s: %s %s", provider, resp.Status, body)
		}
	}
}

// Whatever the order of Stripe's events, and however often each comes, the sale
// is one and its money is taken once.
func TestStripesEventsInAnyOrderSellOnce(t *testing.T) {
	kinds := []string{"payment_intent.amount_capturable_updated", "charge.captured", "payment_intent.succeeded", "payment_intent.payment_failed"}
	for n, order := range [][]int{{0, 1, 2, 3}, {2, 1, 0, 3}, {3, 2, 1, 0}, {1, 1, 0, 0, 3, 3, 2, 2}, {3, 0, 3, 2, 0, 1}} {
		b := stripeHouse(t)
		booking, attempt := b.begin(1, stripetest.CardAsks)
		b.change(attempt, func(i *stripetest.Intent) { i.Status, i.Charge = "requires_capture", "ch_1" })
		b.run(b.desk.Run)
		for _, k := range order {
			b.hears("evt_"+kinds[k], kinds[k], attempt)
		}
		b.becomes(booking, "sold")
		b.attemptBecomes(booking, "captured")
		if got := b.balanced(); got.Money.Amount != 1000 || got.Tickets != 1 {
			t.Errorf("order %d: %+v", n, got)
		}
	}
}

func TestAPaymentThatFailedAtStripeAndThenSucceedsSells(t *testing.T) {
	b := stripeHouse(t)
	booking, attempt := b.begin(1, stripetest.CardDeclined)
	if r := b.get(booking, "ada"); r.State != "held" {
		t.Fatalf("declined: %+v", r)
	}
	b.hears("evt_1", "payment_intent.payment_failed", attempt)
	b.change(attempt, func(i *stripetest.Intent) { i.Status, i.Charge, i.Error = "requires_capture", "ch_2", "" })
	b.hears("evt_2", "payment_intent.amount_capturable_updated", attempt)
	b.hears("evt_1", "payment_intent.payment_failed", attempt) // late, and old
	b.run(b.desk.Run)
	b.becomes(booking, "sold")
	b.attemptBecomes(booking, "captured")
	b.balanced()
}

func TestAnAuthenticationIsAskedOfTheShopperAndCanceledByStripe(t *testing.T) {
	b := stripeHouse(t)
	booking := b.hold("ada", []int{1}, 0)
	r := b.pay(booking, "ada", stripetest.CardAsks)
	if r.State != "paying" || r.Action.Secret == "" {
		t.Fatalf("payment: %+v", r)
	}
	b.change(r.Attempt.ID, func(i *stripetest.Intent) { i.Status, i.CancellationReason = "canceled", "abandoned" })
	b.hears("evt_1", "payment_intent.canceled", r.Attempt.ID)
	if r := b.get(booking, "ada"); r.State != "held" {
		t.Errorf("canceled: %+v", r)
	}
	b.attemptBecomes(booking, "voided")
}

func TestAnAuthorisationThatLapsesTakesTheSaleBack(t *testing.T) {
	b := stripeHouse(t)
	booking, attempt := b.begin(1, stripetest.CardVisa)
	b.becomes(booking, "sold")
	if kept := ask[bool](b.house, `SELECT capture_before > now() AND card = 'fp_pm_card_visa' FROM attempts`); !kept {
		t.Error("it is not known when the authorisation lapses, or of which card it is")
	}
	b.change(attempt, func(i *stripetest.Intent) { i.Status, i.CancellationReason = "canceled", "automatic" })
	b.hears("evt_1", "charge.expired", attempt)
	b.becomes(booking, "lost")
	b.run(b.desk.Run)
	b.quietens()
	b.balanced()
}

func TestEveryPartThatIsRefundedAtStripeIsKnown(t *testing.T) {
	b := stripeHouse(t)
	booking, attempt := b.begin(1, stripetest.CardVisa)
	b.run(b.desk.Run)
	b.attemptBecomes(booking, "captured")
	for n, refunded := range []int64{300, 700} {
		b.change(attempt, func(i *stripetest.Intent) { i.Refunded = refunded })
		b.hears("evt_"+string(rune('a'+n)), "charge.refunded", attempt)
		if got := ask[int64](b.house, `SELECT refunded FROM attempts`); got != refunded {
			t.Errorf("%d were refunded, known are %d", refunded, got)
		}
	}
}

func TestADisputeIsKnownAsItStands(t *testing.T) {
	b := stripeHouse(t)
	booking, attempt := b.begin(1, stripetest.CardVisa)
	b.run(b.desk.Run)
	b.attemptBecomes(booking, "captured")
	for stands, kind := range map[string]string{"needs_response": "charge.dispute.created", "won": "charge.dispute.closed"} {
		b.change(attempt, func(i *stripetest.Intent) { i.Disputed = stands })
		b.hears("evt_"+stands, kind, attempt)
		if got := ask[string](b.house, `SELECT dispute FROM attempts`); got != stands {
			t.Errorf("the dispute is %q, known is %q", stands, got)
		}
	}
	if got := b.balanced(); got.Tickets != 1 {
		t.Errorf("books: %+v", got)
	}
}

func TestADebitThatIsTakenAtOnceIsSoldOrRefunded(t *testing.T) {
	b := stripeHouse(t)
	won, first := b.begin(1, stripetest.Debit)
	late, second := b.begin(1, stripetest.Debit)
	for _, attempt := range []string{first, second} {
		b.change(attempt, func(i *stripetest.Intent) { i.Status, i.Charge, i.Received = "succeeded", "ch_"+i.ID, i.Amount })
		b.hears("evt_"+attempt, "payment_intent.succeeded", attempt)
	}
	b.run(b.desk.Run)
	b.becomes(won, "sold")
	b.becomes(late, "lost")
	b.attemptBecomes(late, "refunded")
	if got := b.balanced(); got.Money.Amount != 1000 {
		t.Errorf("books: %+v", got)
	}
}

func TestAStripeThatIsInTroubleIsAskedAgainUntilTheMoneyIsWhereItBelongs(t *testing.T) {
	b := stripeHouse(t, asking(20*time.Millisecond))
	var n int
	b.api.Trouble(func(string) (int, bool) { // many calls fail, some of them after they were carried out
		n++
		status := []int{http.StatusTooManyRequests, 0, 0, http.StatusInternalServerError, 0}[n%5]
		return status, status == http.StatusInternalServerError && n%2 == 0
	})
	b.run(b.desk.Run)
	for range 2 { // somebody wins
		b.pay(b.hold("ada", []int{1}, 0), "ada", stripetest.CardVisa)
	}
	b.eventually(func() (string, bool) {
		s := ask[string](b.house, `SELECT string_agg(state, ' ' ORDER BY state) FROM attempts`)
		return s, s == "captured voided"
	})
	if got := b.balanced(); got.Tickets != 1 {
		t.Errorf("books: %+v", got)
	}
}
