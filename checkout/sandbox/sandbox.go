// Package sandbox is a payment provider that moves no money: built in, for
// demos, tests and the first day of an operator. It behaves like a real one
// where real ones hurt. Which card is used decides how (Cards).
//
// Its books are tables of its own in Postgres, and only it reads or writes
// them: any number of processes may be the sandbox at once. Its webhooks
// really travel over HTTP, signed, and are sent again, less and less often,
// until somebody answers 2xx.
//
// Run and every question about a payment do what its time has come for: no
// verdict, lapse or refund waits for a process that was killed.
//
//	processing ──▶ authorized ──▶ captured
//	     │             ├─────────▶ refused   (CardRefused)
//	     │             ├─────────▶ expired   (CardLapse)
//	     ├─────────────┴─────────▶ voided
//	     └──▶ failed
package sandbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/seatmap"
)

// Name is what the provider is called in rows and in the path of its webhook.
const Name = "sandbox"

// SignatureHeader carries t=<Unix seconds>,v1=<HMAC-SHA256 of "t.body" in hex>.
const SignatureHeader = "Sandbox-Signature"

// tolerance is how far the time of a signature may be from ours.
const tolerance = 5 * time.Minute

// Options of New. Books, URL and Secret are needed; of everything else the zero
// value works.
type Options struct {
	Books  *Books
	URL    string // where webhooks are sent
	Secret string // what they are signed with
	Log    *slog.Logger

	Delay        time.Duration // what CardSlow and CardLost take; 3 s
	Late         time.Duration // what CardLate takes; 25 min
	Authenticate time.Duration // how long CardAuthenticate waits for its shopper; 5 min
	Lapse        time.Duration // how long an authorisation of CardLapse lasts; 10 s
	Down         time.Duration // how long nothing is answered about a payment with CardDown; 10 s
	Refund       time.Duration // what a refund of CardRefundSlow and CardRefundReturned takes; 5 s
	Every        time.Duration // how often Run looks for what is due; 200 ms
	Within       time.Duration // none of these is longer; 0: as they are
}

// Sandbox is a checkout.Provider.
type Sandbox struct {
	books  *Books
	url    string
	secret []byte
	log    *slog.Logger
	o      Options // its times
}

var _ checkout.Provider = (*Sandbox)(nil)

// New returns the provider. It does no I/O; Run gives the slow cards their
// verdicts and sends the webhooks.
func New(o Options) *Sandbox {
	for at, otherwise := range map[*time.Duration]time.Duration{
		&o.Delay: 3 * time.Second, &o.Late: 25 * time.Minute, &o.Authenticate: 5 * time.Minute, &o.Lapse: 10 * time.Second,
		&o.Down: 10 * time.Second, &o.Refund: 5 * time.Second, &o.Every: 200 * time.Millisecond,
	} {
		if *at <= 0 {
			*at = otherwise
		}
		if o.Within > 0 {
			*at = min(*at, o.Within)
		}
	}
	s := &Sandbox{books: o.Books, url: o.URL, secret: []byte(o.Secret), log: o.Log, o: o}
	if s.log == nil {
		s.log = slog.Default()
	}
	return s
}

// errDown is the answer about a payment while its card makes the provider one
// that does not answer.
var errDown = fmt.Errorf("%w: the sandbox is down for this card", checkout.ErrProvider)

// Name implements checkout.Provider.
func (s *Sandbox) Name() string { return Name }

// Create implements checkout.Provider. The same key with another amount or
// card is an error.
func (s *Sandbox) Create(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
	e, fresh, err := s.books.open(ctx, entry{Key: c.Key, Card: c.Method, Amount: c.Money.Amount, Currency: c.Money.Currency}, s.begins(c.Method))
	if err != nil {
		return checkout.Payment{}, fmt.Errorf("sandbox: create: %w", err)
	}
	if e.Card != c.Method || e.Amount != c.Money.Amount || e.Currency != c.Money.Currency {
		return checkout.Payment{}, fmt.Errorf("sandbox: create: key %s was used for another charge", c.Key)
	}
	if e.Away {
		return checkout.Payment{}, fmt.Errorf("sandbox: create: %w", errDown)
	}
	if fresh && e.Card == CardEarly {
		if err := s.send(ctx, notice{ID: eventID(e.ID, e.State), Payment: e.ID, Type: kind(e.State)}); err != nil {
			s.log.WarnContext(ctx, "sandbox: early webhook", "payment", e.ID, "err", err)
		}
	}
	return e.payment(), nil
}

// Get implements checkout.Provider.
func (s *Sandbox) Get(ctx context.Context, id string) (checkout.Payment, error) {
	if err := s.decide(ctx, id); err != nil {
		return checkout.Payment{}, fmt.Errorf("sandbox: get: %w", err)
	}
	return s.get(ctx, id)
}

// decide does what is due, about one payment or ("") every one.
func (s *Sandbox) decide(ctx context.Context, id string) error {
	if err := s.books.decide(ctx, id); err != nil {
		return err
	}
	return s.books.decideRefunds(ctx, id)
}

func (s *Sandbox) get(ctx context.Context, id string) (checkout.Payment, error) {
	e, err := s.books.entry(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = checkout.ErrUnknownPayment
	}
	if err != nil {
		return checkout.Payment{}, fmt.Errorf("sandbox: %w", err)
	}
	if e.Away {
		return checkout.Payment{}, fmt.Errorf("sandbox: %w", errDown)
	}
	return e.payment(), nil
}

// Capture implements checkout.Provider.
func (s *Sandbox) Capture(ctx context.Context, id string) (checkout.Payment, error) {
	if err := s.books.capture(ctx, id); err != nil {
		return checkout.Payment{}, fmt.Errorf("sandbox: capture: %w", err)
	}
	return s.get(ctx, id)
}

// Void implements checkout.Provider.
func (s *Sandbox) Void(ctx context.Context, id string) (checkout.Payment, error) {
	if err := s.books.void(ctx, id); err != nil {
		return checkout.Payment{}, fmt.Errorf("sandbox: void: %w", err)
	}
	return s.get(ctx, id)
}

// Refund implements checkout.Provider. The same key with another amount or
// payment is an error.
func (s *Sandbox) Refund(ctx context.Context, r checkout.Refund) (checkout.RefundAnswer, error) {
	if err := s.books.decideRefunds(ctx, r.Payment); err != nil {
		return checkout.RefundAnswer{}, fmt.Errorf("sandbox: refund: %w", err)
	}
	got, err := s.books.refund(ctx, r, s.o.Refund)
	if errors.Is(err, pgx.ErrNoRows) {
		err = checkout.ErrUnknownPayment
	}
	if err != nil {
		return checkout.RefundAnswer{}, fmt.Errorf("sandbox: refund: %w", err)
	}
	if got.Payment != r.Payment || got.Money != r.Money {
		return checkout.RefundAnswer{}, fmt.Errorf("sandbox: refund: key %s was used for another refund", r.Key)
	}
	return checkout.RefundAnswer{ID: got.ID, State: got.State, Reason: got.Reason}, nil
}

// entry is one payment in the books.
type entry struct {
	ID, Key, Card, Currency string
	Amount, Refunded        int64
	State                   checkout.PaymentState
	Reason                  string
	Until                   *time.Time // when its authorisation lapses
	Away                    bool       // nothing is answered about it now
}

// refund is one refund in the books.
type refund struct {
	ID, Payment string
	Money       seatmap.Money
	State       checkout.RefundState
	Reason      string
}

func (e *entry) payment() checkout.Payment {
	p := checkout.Payment{ID: e.ID, Key: e.Key, State: e.State, Reason: e.Reason,
		Money: seatmap.Money{Amount: e.Amount, Currency: e.Currency}, Refunded: e.Refunded, Card: fingerprint(e.Card)}
	if e.Until != nil {
		p.CaptureBefore = *e.Until
	}
	if e.Card == CardAuthenticate && e.State == checkout.PaymentProcessing {
		p.Action.URL = authenticatePath + e.ID
	}
	return p
}

// fingerprint is the same for every payment with one card, and says nothing of
// its number.
func fingerprint(card string) string {
	sum := sha256.Sum256([]byte(card))
	return "card_" + hex.EncodeToString(sum[:8])
}

// notice is the body of a webhook.
type notice struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Payment string `json:"payment"`
	Refund  string `json:"refund,omitempty"` // which of the payment
}

func kind(s checkout.PaymentState) string { return "payment." + string(s) }

// eventID names the one step a payment takes into a state.
func eventID(payment string, s checkout.PaymentState) string {
	return "evt_" + payment + "_" + string(s)
}

// Notice implements checkout.Provider.
func (s *Sandbox) Notice(header func(string) string, body []byte) (checkout.Notice, error) {
	if err := s.verify(header(SignatureHeader), body, time.Now()); err != nil {
		return checkout.Notice{}, fmt.Errorf("%w: %w", checkout.ErrBadSignature, err)
	}
	var n notice
	if err := json.Unmarshal(body, &n); err != nil || n.ID == "" || n.Payment == "" {
		return checkout.Notice{}, fmt.Errorf("%w: the body is not a notice", checkout.ErrBadSignature)
	}
	return checkout.Notice{Event: n.ID, Type: n.Type, Payment: n.Payment, Step: n.Refund}, nil
}

// Sign returns the signature header of a body sent at a time.
func Sign(secret, body []byte, at time.Time) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac(secret, t, body))
}

func mac(secret []byte, t string, body []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(t + "."))
	m.Write(body)
	return m.Sum(nil)
}

// verify accepts any of several v1 signatures: two are sent while a secret is
// being replaced.
func (s *Sandbox) verify(signature string, body []byte, now time.Time) error {
	var t string
	var sums [][]byte
	for part := range strings.SplitSeq(signature, ",") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "t":
			t = value
		case "v1":
			if sum, err := hex.DecodeString(value); err == nil {
				sums = append(sums, sum)
			}
		}
	}
	sent, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return errors.New("no time in it")
	}
	if age := now.Sub(time.Unix(sent, 0)); age.Abs() > tolerance {
		return fmt.Errorf("signed %s ago", age.Round(time.Second))
	}
	want := mac(s.secret, t, body)
	for _, sum := range sums {
		if hmac.Equal(sum, want) {
			return nil
		}
	}
	return errors.New("no signature in it is ours")
}

// Bounds of Run: how many webhooks are sent at the same time, and how long one
// may take.
const (
	senders     = 8
	sendTimeout = 5 * time.Second
)

// Run gives verdicts and sends webhooks until ctx ends.
func (s *Sandbox) Run(ctx context.Context) error {
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "sandbox: round failed", "err", err)
		}
	}
}

func (s *Sandbox) round(ctx context.Context) error {
	if err := s.decide(ctx, ""); err != nil {
		return err
	}
	due, err := s.books.claim(ctx, 4*senders)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(senders)
	for _, d := range due {
		g.Go(func() error {
			err := s.send(ctx, d.notice)
			if err != nil && ctx.Err() != nil {
				return nil // stopping: it becomes due again
			}
			if err != nil {
				s.log.WarnContext(ctx, "sandbox: webhook will be sent again", "payment", d.Payment, "type", d.Type, "err", err)
				return nil
			}
			return s.books.sent(ctx, d.row)
		})
	}
	return g.Wait()
}
