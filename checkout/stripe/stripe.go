// Package stripe lets shoppers pay through Stripe, by PaymentIntents that are
// authorised first and captured once the booking is sold.
//
// An attempt is one PaymentIntent, created and confirmed in one call whose
// idempotency key is the attempt's id; its metadata names the attempt and the
// booking, so that a webhook finds its way back whatever answer was lost.
//
//	requires_payment_method ──▶ processing, or failed once a card was declined
//	requires_action, requires_confirmation, processing ──▶ processing
//	requires_capture ──▶ authorized      succeeded ──▶ captured
//	canceled ──▶ voided, or expired when Stripe did it by itself
//
// A declined PaymentIntent may still be authorised, by another try of its page.
// Whatever Stripe refused for good is a Payment or an answer; a rate limit, a
// 5xx, a key that does not fit and a connection that broke are errors, and
// nothing is tried again here: who asked does that, by the same key.
//
// Stripe forgets idempotency keys after a day and answers one whose first call
// failed inside Stripe with that failure until then. So a repeat that cannot
// be trusted to the key looks for the PaymentIntent by its metadata instead.
//
// What is refunded carries the key of the refund in its metadata, by which a
// repeat finds it. The clock of signatures is ours.
package stripe

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v85"

	"seatcast/checkout"
)

// Name is what the provider is called in rows and in the path of its webhook.
const Name = "stripe"

// Script is Stripe's own for the page. It must come from there.
const Script = "https://js.stripe.com/v3/"

// Policy is what a page with Script needs beside its own in its
// Content-Security-Policy, by directive.
var Policy = map[string]string{
	"script-src":  "https://js.stripe.com https://*.js.stripe.com",
	"frame-src":   "https://js.stripe.com https://*.js.stripe.com https://hooks.stripe.com",
	"connect-src": "https://api.stripe.com",
	"img-src":     "https://*.stripe.com",
}

// Bounds of a call. The longest is the first, for which Stripe asks the bank.
const (
	callTimeout = 12 * time.Second
	keysLast    = 23 * time.Hour // Stripe forgets them after 24 h at the earliest
)

// authorisable are the payment method types that can be authorised first and
// captured later; every other one takes the money at once.
var authorisable = []string{"affirm", "afterpay_clearpay", "alma", "amazon_pay", "billie", "card", "cashapp", "kakao_pay", "klarna",
	"kr_card", "link", "mobilepay", "naver_pay", "payco", "paypal", "revolut_pay", "samsung_pay", "satispay"}

// Options of New. SecretKey and WebhookSecrets are needed; of everything else
// the zero value works.
type Options struct {
	SecretKey      string
	WebhookSecrets []string // any of them may have signed: two while one is replaced
	PublishableKey string   // for the page; "": it has no element of Stripe's
	API            string   // another address of Stripe's API
	Log            *slog.Logger

	Methods   []string // payment method types; card
	AtOnce    bool     // those that can only capture at once are offered too, and refunded when the seats are gone
	ReturnURL string   // where methods that lead away come back to; "": those that must are refused by Stripe
}

// Stripe is a checkout.Provider.
type Stripe struct {
	api     *sdk.Client
	secrets []string
	page    checkout.Page
	log     *slog.Logger

	methods, atOnce, left []string // offered, which of them capture at once, and not offered for that
	returnURL             string
}

var _ checkout.Provider = (*Stripe)(nil)

// New returns the provider. It does no I/O. An error says that nothing would be
// left to pay with.
func New(o Options) (*Stripe, error) {
	s := &Stripe{secrets: o.WebhookSecrets, log: o.Log, returnURL: o.ReturnURL}
	if s.log == nil {
		s.log = slog.Default()
	}
	if len(o.Methods) == 0 {
		o.Methods = []string{"card"}
	}
	for _, m := range o.Methods {
		switch {
		case slices.Contains(authorisable, m):
			s.methods = append(s.methods, m)
		case o.AtOnce:
			s.methods, s.atOnce = append(s.methods, m), append(s.atOnce, m)
		default:
			s.left = append(s.left, m)
		}
	}
	if len(s.methods) == 0 {
		return nil, fmt.Errorf("stripe: %s can only capture at once: nothing is left to pay with", strings.Join(s.left, ", "))
	}
	if o.SecretKey == "" || len(o.WebhookSecrets) == 0 {
		return nil, errors.New("stripe: a secret key and the secret of the webhook are needed")
	}
	s.page = checkout.Page{PublishableKey: o.PublishableKey, Methods: s.methods}
	if o.PublishableKey != "" {
		s.page.Script = Script
	}
	s.api = sdk.NewClient(o.SecretKey, sdk.WithBackends(backends(o.API)))
	return s, nil
}

// backends tell us of every failure at once: the SDK would hide it behind
// retries of its own.
func backends(api string) *sdk.Backends {
	c := &sdk.BackendConfig{
		HTTPClient:        &http.Client{Timeout: callTimeout},
		MaxNetworkRetries: sdk.Int64(0),
		EnableTelemetry:   sdk.Bool(false),
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull},
	}
	if api != "" {
		c.URL = sdk.String(strings.TrimSuffix(api, "/"))
	}
	return sdk.NewBackendsWithConfig(c)
}

// Name implements checkout.Provider.
func (s *Stripe) Name() string { return Name }

// Page is what a page must know to let a shopper pay.
func (s *Stripe) Page() checkout.Page { return s.page }

// Methods says which payment method types are offered, which of them capture at
// once and are refunded when the seats are gone, and which were left out because
// they can do nothing else.
func (s *Stripe) Methods() (offered, atOnce, left []string) { return s.methods, s.atOnce, s.left }
