package checkout

import (
	"context"
	"time"

	"seatcast/seatmap"
)

// Provider moves money. Every method may be repeated. An error means that the
// outcome is unknown; what is known, a refusal too, is a Payment or an answer.
type Provider interface {
	// Name is how webhooks and rows call it.
	Name() string
	// Create asks for an authorisation, to be captured later. The same key
	// answers the same payment, however much later. A payment that failed
	// before there was one has no ID.
	Create(ctx context.Context, c Charge) (Payment, error)
	// Get returns the payment as it is now; ErrUnknownPayment when there is none.
	Get(ctx context.Context, id string) (Payment, error)
	// Capture takes the money of an authorised payment, all of it.
	Capture(ctx context.Context, id string) (Payment, error)
	// Void gives an authorisation back, or ends a payment that has no verdict
	// yet. What can no longer be voided is returned as it is.
	Void(ctx context.Context, id string) (Payment, error)
	// Refund gives captured money back, all or some of it. The same key answers
	// the same refund as it is now, however much later.
	Refund(ctx context.Context, r Refund) (RefundAnswer, error)
	// Notice verifies a webhook over its raw body and says what it is about.
	// ErrBadSignature; ErrUnknownPayment when it is about no payment.
	Notice(header func(name string) string, body []byte) (Notice, error)
}

// Page is what a page must know to let a shopper pay with a provider, which it
// tells by a method Page. The zero value: nothing.
type Page struct {
	Script         string   `json:"script,omitempty"` // the provider's own, to be loaded from there
	PublishableKey string   `json:"publishableKey,omitempty"`
	Methods        []string `json:"methods,omitempty"` // means of payment, in its words
}

// Charge is what a provider is asked for.
type Charge struct {
	Key     string // the attempt's id: the provider's idempotency key
	Booking string
	Method  string // the provider's name for a card or another means; never a real card number
	Money   seatmap.Money
	Begun   time.Time // when the attempt was written: a provider may have forgotten older keys
}

// Payment is what a provider says of one charge.
type Payment struct {
	ID     string // the provider's
	Key    string // ours
	State  PaymentState
	Reason string // why it failed or was refused

	Money         seatmap.Money // authorised or captured; while it is neither, asked for
	Refunded      int64         // of what was captured, given back so far; minor units
	Card          string        // the same for every payment with one card; "": unknown
	CaptureBefore time.Time     // when an authorisation lapses; zero: unknown
	Dispute       string        // how a dispute about it stands, in the provider's words; "": there is none
	Action        Action        // what the shopper must do for a verdict
}

// Action is a step that only the shopper can take, such as an authentication
// by their bank; the zero value is none. It is told to the owner of the booking
// and kept nowhere: the secret lets whoever has it finish the payment.
type Action struct {
	Secret string `json:"clientSecret,omitempty"` // for the provider's own script in the page
	URL    string `json:"url,omitempty"`          // or a page to go to
}

// PaymentState is where a payment stands at its provider.
type PaymentState string

// States of a payment. Captured, voided, expired and refused are final; a
// declined one may still be authorised, by another try at the same payment.
const (
	PaymentProcessing PaymentState = "processing" // no verdict yet
	PaymentAuthorized PaymentState = "authorized"
	PaymentCaptured   PaymentState = "captured" // asked for or not
	PaymentFailed     PaymentState = "failed"   // declined
	PaymentVoided     PaymentState = "voided"   // given back before it was captured
	PaymentExpired    PaymentState = "expired"  // the authorisation lapsed
	PaymentRefused    PaymentState = "refused"  // authorised, and then not given
)

// Refund asks for money back.
type Refund struct {
	Payment string // the provider's id of the payment
	Key     string // ours, of this refund
	Money   seatmap.Money
}

// RefundAnswer is what a provider says of a refund.
type RefundAnswer struct {
	ID     string // the provider's; "" when it refused to begin
	State  RefundState
	Reason string // why it failed
}

// RefundState is where a refund stands at its provider.
type RefundState string

// States of a refund. One that succeeded may still fail, when the bank sends
// the money back.
const (
	RefundPending   RefundState = "pending"
	RefundSucceeded RefundState = "succeeded"
	RefundFailed    RefundState = "failed" // the same key will not succeed
)

// Notice is a webhook: that something happened to a payment. What happened is
// asked of the provider, because notices come late, twice and out of order.
type Notice struct {
	Event   string // the provider's id of this notice
	Type    string
	Payment string // the provider's id of the payment
	Step    string // tells apart what happens to one payment more than once under one type; "": it does not
}
