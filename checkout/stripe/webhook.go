package stripe

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"seatcast/checkout"
)

// SignatureHeader carries t=<Unix seconds>,v1=<HMAC-SHA256 of "t.body" in hex>,
// and several v1 while a secret is replaced.
const SignatureHeader = "Stripe-Signature"

// tolerance is how old a signature may be.
const tolerance = 5 * time.Minute

// notice is what of an Event of Stripe's is read. What it says of its object is
// not believed but for whose it is.
type notice struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Object struct {
			ID             string `json:"id"`
			Object         string `json:"object"`
			PaymentIntent  ref    `json:"payment_intent"`
			LatestCharge   ref    `json:"latest_charge"`
			Status         string `json:"status"`
			AmountRefunded int64  `json:"amount_refunded"`
		} `json:"object"`
	} `json:"data"`
}

// ref is the id of an object that may be told whole.
type ref string

func (r *ref) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '{' {
		return json.Unmarshal(data, (*string)(r))
	}
	var whole struct {
		ID string `json:"id"`
	}
	err := json.Unmarshal(data, &whole)
	*r = ref(whole.ID)
	return err
}

// Notice implements checkout.Provider. It is about a payment when its object is
// a PaymentIntent, or a charge, a refund or a dispute of one.
func (s *Stripe) Notice(header func(string) string, body []byte) (checkout.Notice, error) {
	if err := s.verify(header(SignatureHeader), body); err != nil {
		return checkout.Notice{}, fmt.Errorf("%w: %w", checkout.ErrBadSignature, err)
	}
	var n notice
	if err := json.Unmarshal(body, &n); err != nil || n.ID == "" {
		return checkout.Notice{}, fmt.Errorf("%w: the body is not an event", checkout.ErrBadSignature)
	}
	o := n.Data.Object
	got := checkout.Notice{Event: n.ID, Type: n.Type, Payment: string(o.PaymentIntent)}
	switch o.Object {
	case "payment_intent": // a try of its page is a charge
		got.Payment, got.Step = o.ID, string(o.LatestCharge)
	case "charge":
		got.Step = fmt.Sprintf("%s %d", o.ID, o.AmountRefunded)
	case "refund", "dispute":
		got.Step = strings.TrimSpace(o.ID + " " + o.Status)
	default:
		got.Payment = ""
	}
	if got.Payment == "" {
		return checkout.Notice{}, fmt.Errorf("stripe: %s: %w", n.Type, checkout.ErrUnknownPayment)
	}
	return got, nil
}

// verify accepts a signature by any of the secrets.
func (s *Stripe) verify(signature string, body []byte) error {
	var all error
	for _, secret := range s.secrets {
		err := webhook.ValidatePayloadWithTolerance(body, signature, secret, tolerance)
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}
