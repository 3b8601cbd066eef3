package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v85"

	"seatcast/checkout"
)

// charged is what every call about a PaymentIntent wants told with it.
const charged = "latest_charge"

// Metadata of what we create at Stripe.
const (
	metaAttempt = "attempt"
	metaBooking = "booking"
	metaRefund  = "refund"
)

// Create implements checkout.Provider. A means of payment is a PaymentMethod or
// a ConfirmationToken of Stripe's; anything else fails unasked.
func (s *Stripe) Create(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
	amount, whole := toStripe(c.Money)
	switch {
	case !strings.HasPrefix(c.Method, "pm_") && !strings.HasPrefix(c.Method, "ctoken_"):
		return failed(c, "unknown_payment_method"), nil
	case !whole:
		return failed(c, "amount_not_chargeable"), nil
	case !c.Begun.IsZero() && time.Since(c.Begun) > keysLast:
		p, err := s.find(ctx, c)
		if errors.Is(err, checkout.ErrUnknownPayment) {
			return failed(c, "forgotten"), nil
		}
		return p, err
	}
	pi, err := s.api.V1PaymentIntents.Create(ctx, s.params(c, amount))
	switch {
	case err == nil && replayed(pi): // what it was then
		return s.Get(ctx, pi.ID)
	case err == nil:
		return s.payment(ctx, pi)
	}
	e := refusal(err)
	switch {
	case e != nil && e.PaymentIntent != nil && e.PaymentIntent.ID != "":
		return s.Get(ctx, e.PaymentIntent.ID)
	case e != nil:
		s.log.WarnContext(ctx, "stripe: a payment was refused before it began",
			"attempt", c.Key, "code", e.Code, "param", e.Param, "message", e.Msg, "request", e.RequestID)
		return failed(c, reason(e)), nil
	case inside(err): // and so it will be answered as long as the key is known
		if p, found := s.find(ctx, c); found == nil {
			return p, nil
		}
	}
	return checkout.Payment{}, said("create", err)
}

func (s *Stripe) params(c checkout.Charge, amount int64) *sdk.PaymentIntentCreateParams {
	p := &sdk.PaymentIntentCreateParams{
		Amount: sdk.Int64(amount), Currency: sdk.String(strings.ToLower(c.Money.Currency)),
		PaymentMethodTypes: sdk.StringSlice(s.methods),
		CaptureMethod:      sdk.String(string(sdk.PaymentIntentCaptureMethodManual)),
		Confirm:            sdk.Bool(true),
		UseStripeSDK:       sdk.Bool(true),
		Metadata:           map[string]string{metaAttempt: c.Key, metaBooking: c.Booking},
	}
	if strings.HasPrefix(c.Method, "ctoken_") {
		p.ConfirmationToken = sdk.String(c.Method)
	} else {
		p.PaymentMethod = sdk.String(c.Method)
	}
	if s.returnURL != "" {
		p.ReturnURL = sdk.String(s.returnURL)
	}
	if len(s.atOnce) > 0 { // then each of the others is told for itself that it is authorised first
		p.CaptureMethod = sdk.String(string(sdk.PaymentIntentCaptureMethodAutomatic))
		for _, m := range s.methods {
			if !slices.Contains(s.atOnce, m) {
				p.AddExtra("payment_method_options["+m+"][capture_method]", string(sdk.PaymentIntentCaptureMethodManual))
			}
		}
	}
	p.SetIdempotencyKey(c.Key)
	p.AddExpand(charged)
	return p
}

// find looks for the PaymentIntent of a charge by its metadata, which Stripe
// has ready within a minute or so; checkout.ErrUnknownPayment when there is none.
func (s *Stripe) find(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
	p := &sdk.PaymentIntentSearchParams{SearchParams: sdk.SearchParams{Query: fmt.Sprintf("metadata['%s']:'%s'", metaAttempt, c.Key)}}
	for pi, err := range s.api.V1PaymentIntents.Search(ctx, p).All(ctx) {
		if err != nil {
			return checkout.Payment{}, said("search", err)
		}
		if pi.Metadata[metaAttempt] == c.Key {
			return s.Get(ctx, pi.ID)
		}
	}
	return checkout.Payment{}, fmt.Errorf("stripe: search: %w", checkout.ErrUnknownPayment)
}

// Get implements checkout.Provider.
func (s *Stripe) Get(ctx context.Context, id string) (checkout.Payment, error) {
	p := &sdk.PaymentIntentRetrieveParams{}
	p.AddExpand(charged)
	pi, err := s.api.V1PaymentIntents.Retrieve(ctx, id, p)
	if e := refusal(err); e != nil && e.HTTPStatusCode == http.StatusNotFound {
		return checkout.Payment{}, fmt.Errorf("stripe: get: %w", checkout.ErrUnknownPayment)
	}
	if err != nil {
		return checkout.Payment{}, said("get", err)
	}
	return s.payment(ctx, pi)
}

// Capture implements checkout.Provider. What Stripe refuses to capture and yet
// calls authorised is a refusal when the card or its time is the reason.
func (s *Stripe) Capture(ctx context.Context, id string) (checkout.Payment, error) {
	p := &sdk.PaymentIntentCaptureParams{}
	p.AddExpand(charged)
	pi, err := s.api.V1PaymentIntents.Capture(ctx, id, p)
	if err == nil {
		return s.payment(ctx, pi)
	}
	e := refusal(err)
	if e == nil {
		return checkout.Payment{}, said("capture", err)
	}
	now, err := s.Get(ctx, id)
	if err == nil && now.State == checkout.PaymentAuthorized {
		switch {
		case e.Code == sdk.ErrorCodeChargeExpiredForCapture:
			now.State, now.Reason = checkout.PaymentExpired, reason(e)
		case e.Type == sdk.ErrorTypeCard:
			now.State, now.Reason = checkout.PaymentRefused, reason(e)
		}
	}
	return now, err
}

// Void implements checkout.Provider.
func (s *Stripe) Void(ctx context.Context, id string) (checkout.Payment, error) {
	p := &sdk.PaymentIntentCancelParams{}
	p.AddExpand(charged)
	pi, err := s.api.V1PaymentIntents.Cancel(ctx, id, p)
	switch {
	case err == nil:
		return s.payment(ctx, pi)
	case refusal(err) != nil:
		return s.Get(ctx, id)
	}
	return checkout.Payment{}, said("void", err)
}

// Refund implements checkout.Provider.
func (s *Stripe) Refund(ctx context.Context, r checkout.Refund) (checkout.RefundAnswer, error) {
	list := &sdk.RefundListParams{PaymentIntent: sdk.String(r.Payment)}
	for got, err := range s.api.V1Refunds.List(ctx, list).All(ctx) {
		if err != nil {
			return checkout.RefundAnswer{}, said("list refunds", err)
		}
		if got.Metadata[metaRefund] == r.Key {
			return refunded(got), nil
		}
	}
	amount, whole := toStripe(r.Money)
	if !whole {
		return checkout.RefundAnswer{State: checkout.RefundFailed, Reason: "amount_not_refundable"}, nil
	}
	p := &sdk.RefundCreateParams{PaymentIntent: sdk.String(r.Payment), Amount: sdk.Int64(amount), Metadata: map[string]string{metaRefund: r.Key}}
	p.SetIdempotencyKey(r.Key)
	got, err := s.api.V1Refunds.Create(ctx, p)
	if e := refusal(err); e != nil {
		return checkout.RefundAnswer{State: checkout.RefundFailed, Reason: reason(e)}, nil
	}
	if err != nil {
		return checkout.RefundAnswer{}, said("refund", err)
	}
	return refunded(got), nil
}

// replayed says that Stripe repeated its first answer to a key.
func replayed(pi *sdk.PaymentIntent) bool {
	return pi.LastResponse != nil && pi.LastResponse.Header.Get("Idempotent-Replayed") == "true"
}

func failed(c checkout.Charge, why string) checkout.Payment {
	return checkout.Payment{Key: c.Key, State: checkout.PaymentFailed, Reason: why, Money: c.Money}
}
