package stripe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v85"

	"seatcast/checkout"
	"seatcast/seatmap"
)

// payment is what a PaymentIntent says.
func (s *Stripe) payment(ctx context.Context, pi *sdk.PaymentIntent) (checkout.Payment, error) {
	p := checkout.Payment{ID: pi.ID, Key: pi.Metadata[metaAttempt]}
	p.State, p.Reason = standing(pi)
	p.Money = fromStripe(amount(pi, p.State), string(pi.Currency))
	if pi.Status == sdk.PaymentIntentStatusRequiresAction {
		p.Action = action(pi)
	}
	c := pi.LatestCharge
	if c == nil {
		return p, nil
	}
	p.Refunded = fromStripe(c.AmountRefunded, string(pi.Currency)).Amount
	if d := c.PaymentMethodDetails; d != nil && d.Card != nil {
		p.Card = d.Card.Fingerprint
		if d.Card.CaptureBefore > 0 {
			p.CaptureBefore = time.Unix(d.Card.CaptureBefore, 0)
		}
	}
	var err error
	if c.Disputed {
		p.Dispute, err = s.dispute(ctx, pi.ID)
	}
	return p, err
}

func standing(pi *sdk.PaymentIntent) (checkout.PaymentState, string) {
	switch pi.Status {
	case sdk.PaymentIntentStatusRequiresCapture:
		return checkout.PaymentAuthorized, ""
	case sdk.PaymentIntentStatusSucceeded:
		return checkout.PaymentCaptured, ""
	case sdk.PaymentIntentStatusCanceled:
		if pi.CancellationReason == sdk.PaymentIntentCancellationReasonAutomatic || pi.CancellationReason == sdk.PaymentIntentCancellationReasonExpired {
			return checkout.PaymentExpired, string(pi.CancellationReason)
		}
		return checkout.PaymentVoided, string(pi.CancellationReason)
	case sdk.PaymentIntentStatusRequiresPaymentMethod:
		if pi.LastPaymentError != nil {
			return checkout.PaymentFailed, reason(pi.LastPaymentError)
		}
	}
	return checkout.PaymentProcessing, ""
}

// amount is what was authorised or taken; while it is neither, what was asked for.
func amount(pi *sdk.PaymentIntent, s checkout.PaymentState) int64 {
	switch s {
	case checkout.PaymentAuthorized:
		return pi.AmountCapturable
	case checkout.PaymentCaptured:
		return pi.AmountReceived
	}
	return pi.Amount
}

// action is what Stripe's script in the page needs to go on, or where to go
// without it.
func action(pi *sdk.PaymentIntent) checkout.Action {
	a := checkout.Action{Secret: pi.ClientSecret}
	if pi.NextAction != nil && pi.NextAction.RedirectToURL != nil {
		a.URL = pi.NextAction.RedirectToURL.URL
	}
	return a
}

// dispute is how the newest dispute about a payment stands.
func (s *Stripe) dispute(ctx context.Context, id string) (string, error) {
	p := &sdk.DisputeListParams{PaymentIntent: sdk.String(id)}
	for d, err := range s.api.V1Disputes.List(ctx, p).All(ctx) {
		if err != nil {
			return "", said("list disputes", err)
		}
		return string(d.Status), nil
	}
	return "", nil
}

func refunded(r *sdk.Refund) checkout.RefundAnswer {
	a := checkout.RefundAnswer{ID: r.ID, State: checkout.RefundPending}
	switch r.Status {
	case sdk.RefundStatusSucceeded:
		a.State = checkout.RefundSucceeded
	case sdk.RefundStatusFailed, sdk.RefundStatusCanceled:
		a.State, a.Reason = checkout.RefundFailed, cmp.Or(string(r.FailureReason), string(r.Status))
	}
	return a
}

// refusal is Stripe's word that it did not do what it was asked, and will not;
// nil when that is not known: another call with the same key is under way, too
// many were made, our key does not fit, or Stripe itself failed.
func refusal(err error) *sdk.Error {
	var e *sdk.Error
	if !errors.As(err, &e) || e.Type == sdk.ErrorTypeIdempotency {
		return nil
	}
	switch e.HTTPStatusCode {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusNotFound:
		return e
	}
	return nil
}

// inside says that Stripe failed, which it may go on saying under the same key.
func inside(err error) bool {
	var e *sdk.Error
	return errors.As(err, &e) && e.HTTPStatusCode >= http.StatusInternalServerError
}

// reason is Stripe's most exact word for why.
func reason(e *sdk.Error) string {
	return cmp.Or(string(e.DeclineCode), string(e.Code), string(e.Type))
}

// said names the call, and tells of an error of Stripe's only what is no
// secret: the SDK's own text has the whole PaymentIntent in it.
func said(call string, err error) error {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("stripe: %s: %w", call, err)
	}
	return fmt.Errorf("stripe: %s: %w: %d %s %s %s (request %s)", call, checkout.ErrProvider, e.HTTPStatusCode, e.Type, e.Code, e.Msg, e.RequestID)
}

// Decimals Stripe counts some currencies with; https://docs.stripe.com/currencies.
// The others have two, ISK and UGX among them.
var (
	noDecimals    = strings.Fields("BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF")
	threeDecimals = strings.Fields("BHD JOD KWD OMR TND")
)

func decimals(currency string) (ours, stripes int) {
	stripes = 2
	switch {
	case slices.Contains(noDecimals, currency):
		stripes = 0
	case slices.Contains(threeDecimals, currency):
		stripes = 3
	}
	ours, known := seatmap.Decimals(currency)
	if !known {
		return stripes, stripes
	}
	return ours, stripes
}

// toStripe is an amount as Stripe counts it; false when it cannot be said in
// that.
func toStripe(m seatmap.Money) (int64, bool) {
	ours, stripes := decimals(m.Currency)
	amount := m.Amount
	for ; ours < stripes; ours++ {
		amount *= 10
	}
	for ; ours > stripes; ours-- {
		if amount%10 != 0 {
			return 0, false
		}
		amount /= 10
	}
	return amount, true
}

// fromStripe is what Stripe counts as ours. Less than one of our units is left
// out: nothing asks for it.
func fromStripe(amount int64, currency string) seatmap.Money {
	currency = strings.ToUpper(currency)
	ours, stripes := decimals(currency)
	for ; ours < stripes; stripes-- {
		amount /= 10
	}
	for ; ours > stripes; stripes++ {
		amount *= 10
	}
	return seatmap.Money{Amount: amount, Currency: currency}
}
