// Package checkout turns a held basket into sold tickets and captured money,
// or into neither. Postgres is the judge: one conditional UPDATE sells a seat,
// and nothing else does.
//
// Two machines, and each arrow is a conditional UPDATE that names the states
// it leaves, so nothing late overwrites anything; an arrow that does not exist
// is a TransitionError that names both states.
//
//	booking          ┌──────── declined ────────┐
//	                 ▼                          │
//	basket ──pay──▶ held ──────── pay ──────▶ paying ──▶ sold ──▶ refunded
//	                 │                          │          │
//	                 ├──▶ released ◀── cancel ──┤          │ capture refused
//	                 └──▶ expired  ◀── too late ┤          ▼
//	                                            └──────▶ lost
//
//	attempt    ┌────────────▶ voided, auth_expired ◀────────┐
//	           │                                            │
//	        created ──────────────────────────────▶ authorized ──▶ capturing ──▶ captured ──▶ refunded
//	           │                                            ▲          │
//	           └─────▶ failed ─── a provider's second word ─┘          └──▶ capture_refused
//
// Money that was taken without being asked for, because a means of payment can
// only capture at once or a provider contradicts itself, is judged like an
// authorisation: created, failed or authorized becomes captured with the sale.
// Of what sells nothing it is given back: any state but captured and refunded
// ──▶ refunding ──▶ refunded, or refund_failed, which is for a person.
//
// What is sold is given back as an operator says, whole or ticket by ticket
// (refunds.go). First the money, then the seat: while a refund is under way its
// tickets let nobody in and their seats stay sold.
//
//	refund     pending ──▶ succeeded          the tickets are void, their seats what the refund says;
//	              │            │              with the last ticket booking and attempt become refunded
//	              └──▶ failed ◀┘              the tickets are valid again; or, their seats gone, owed
//
// A booking has a row from its first payment on; before that it lives in its
// basket, and may be swapped for another. While Redis is away an event takes
// bookings without holds: such a one has a row from the beginning (unheld.go),
// and outage.go judges when. What is charged is what the basket
// was when it was sealed, which it is before a provider hears of a payment. An
// attempt is one try at paying, written before the provider hears
// of it. Whatever says that an attempt is authorised (the provider's answer, a
// webhook, confirm, the reconciler) goes through one function, settle, and so
// through one arbiter: it sells every seat and place of the booking or none.
// The loser's authorisation is given back, and nothing is charged.
//
// While the outcome of a payment is unknown nothing here gives its seats back:
// the hold is extended up to its cap. Then the provider is asked once more, and
// if the payment is authorised the arbiter decides; if not, it is cancelled at
// the provider, and only after that the booking expires.
//
// The clock is Postgres's, by which the end of a hold is judged that Redis's
// has set: the two must agree to seconds. Locks are taken in one order everywhere: event
// (advisory; mirror and Truth only, which take no booking), the event's mode
// (advisory), account (advisory; of a booking without a hold), booking, buyer, card,
// the event's row (shared, by what changes why its seats are for sale; a cancellation begins with it), seats ascending, areas by name, tickets. Who closes seats of an event without holds takes
// its mode's lock after them, shared: nobody who has that lock wants seats.
//
// An event that is cancelled sells nothing more, whoever has paid; workers close
// its seats and refund what is sold, at a pace that Postgres keeps (cancellation.go).
//
// checkout does not know how seats are held (Holds), who sees a sale, or how a
// provider moves money (Provider).
package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seatcast/checkout/outgoing"
	"seatcast/seatmap"
)

// BookingState is where a booking stands.
type BookingState string

// States of a booking.
const (
	BookingHeld     BookingState = "held"
	BookingPaying   BookingState = "paying"
	BookingSold     BookingState = "sold"
	BookingRefunded BookingState = "refunded"
	BookingLost     BookingState = "lost"
	BookingReleased BookingState = "released"
	BookingExpired  BookingState = "expired"
)

// bookingMoves are the arrows of the booking machine, by the state they reach.
var bookingMoves = map[BookingState][]BookingState{
	BookingHeld:     {BookingPaying},
	BookingPaying:   {BookingHeld},
	BookingSold:     {BookingPaying},
	BookingRefunded: {BookingSold},
	BookingLost:     {BookingPaying, BookingSold},
	BookingReleased: {BookingHeld, BookingPaying},
	BookingExpired:  {BookingHeld, BookingPaying},
}

// AttemptState is where one try at paying stands.
type AttemptState string

// States of an attempt.
const (
	AttemptCreated        AttemptState = "created"
	AttemptAuthorized     AttemptState = "authorized"
	AttemptCapturing      AttemptState = "capturing"
	AttemptCaptured       AttemptState = "captured"
	AttemptRefunded       AttemptState = "refunded"
	AttemptFailed         AttemptState = "failed"
	AttemptVoided         AttemptState = "voided"
	AttemptAuthExpired    AttemptState = "auth_expired"
	AttemptCaptureRefused AttemptState = "capture_refused"
	AttemptRefunding      AttemptState = "refunding"     // money taken that sells nothing, on its way back
	AttemptRefundFailed   AttemptState = "refund_failed" // the same, and its provider cannot
)

// attemptMoves are the arrows of the attempt machine, by the state they reach.
var attemptMoves = map[AttemptState][]AttemptState{
	AttemptAuthorized:     {AttemptCreated, AttemptFailed},
	AttemptCapturing:      {AttemptAuthorized},
	AttemptCaptured:       {AttemptCapturing, AttemptCreated, AttemptFailed, AttemptAuthorized},
	AttemptRefunded:       {AttemptCaptured, AttemptRefunding, AttemptRefundFailed},
	AttemptFailed:         {AttemptCreated},
	AttemptVoided:         {AttemptCreated, AttemptAuthorized},
	AttemptAuthExpired:    {AttemptCreated, AttemptAuthorized},
	AttemptCaptureRefused: {AttemptCapturing},
	AttemptRefunding: {AttemptCreated, AttemptFailed, AttemptAuthorized, AttemptCapturing,
		AttemptVoided, AttemptAuthExpired, AttemptCaptureRefused},
	AttemptRefundFailed: {AttemptRefunding},
}

// Why a booking is lost.
const (
	ReasonSeatsGone      = "seats_gone"      // somebody else's sale came first
	ReasonAreaFull       = "area_full"       // the same, in an area without seats
	ReasonAccountLimit   = "account_limit"   // the account has as many tickets as it may
	ReasonCardLimit      = "card_limit"      // the card has paid for as many tickets as it may
	ReasonCaptureRefused = "capture_refused" // the money was promised and then not given
	ReasonWrongAmount    = "wrong_amount"    // other money was taken than was asked for; it goes back
	ReasonCancelled      = "event_cancelled" // the event will not take place
)

// TransitionError is an arrow that does not exist. Nothing changed.
type TransitionError struct {
	Machine  string // "booking", "attempt" or "refund"
	ID       string
	From, To string
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("checkout: %s %s is %s and cannot become %s", e.Machine, e.ID, e.From, e.To)
}

// LostError is the answer about a booking the arbiter decided against: nothing
// is charged.
type LostError struct {
	Reason string
	Seats  []int    // somebody else has them
	Areas  []string // full
}

func (e *LostError) Error() string { return "checkout: booking lost: " + e.Reason }

// Outcomes a caller can act on.
var (
	ErrNoBooking      = errors.New("checkout: no such booking")
	ErrUncharged      = fmt.Errorf("checkout: nothing is charged: %w", seatmap.ErrHoldExpired) // a booking whose hold has ended, and every payment of it with it
	ErrFinal          = errors.New("checkout: booking is over")                                // sold, lost, refunded: nothing more is paid or given back
	ErrInProgress     = errors.New("checkout: a payment is under way")                         // and could not be stopped
	ErrReused         = errors.New("checkout: idempotency key used for another request")       // nothing changed
	ErrSwapped        = errors.New("checkout: seats swapped while the payment began")          // nothing is charged
	ErrNoProvider     = errors.New("checkout: no such payment provider")                       //
	ErrBadSignature   = errors.New("checkout: webhook signature does not match")               // or is too old
	ErrUnknownPayment = errors.New("checkout: payment of no attempt of ours")                  // nothing changed
	ErrProvider       = errors.New("checkout: payment provider does not answer as it ought")   // the outcome is unknown
)

// Holds is what checkout needs of whoever holds seats. A failure to reach its
// store is seatmap.ErrUnavailable.
type Holds interface {
	// Basket returns a basket, or seatmap.ErrNoBasket.
	Basket(ctx context.Context, event, token string) (seatmap.Basket, error)
	// Extend moves the end of a hold to now + by + grace, never back and never
	// beyond its cap. seatmap.ErrNoBasket, ErrNotYours, ErrHoldExpired,
	// *seatmap.LostError.
	Extend(ctx context.Context, event, token, user string, by, grace time.Duration) (seatmap.Basket, error)
	// Seal fixes the seats of a basket for good and returns it as it is, or
	// seatmap.ErrNoBasket. Whoever swaps seats came before or is refused.
	Seal(ctx context.Context, event, token string) (seatmap.Basket, error)
	// Release gives the seats of a basket back.
	Release(ctx context.Context, event, token, user string) error
	// Spend marks seats sold or closed, areas and baskets, whoever held them.
	Spend(ctx context.Context, event string, m seatmap.Marks) error
	// Restore marks seats available again.
	Restore(ctx context.Context, event string, m seatmap.Marks) error
	// Holding returns the baskets that hold seats now, by seat.
	Holding(ctx context.Context, event string, seats []int) (map[int]seatmap.Basket, error)
	// SetAside holds all of these seats for nobody, or none and returns those
	// somebody has. They come back after so long, or by GiveBack.
	SetAside(ctx context.Context, event string, seats []int, hold time.Duration) (baskets []string, gone []int, err error)
	GiveBack(ctx context.Context, event string, baskets []string) error
	// Shown is the map of an event and the places left, as everybody sees
	// them; nil while there is none.
	Shown(ctx context.Context, event string) (seatmap.Map, map[string]int, error)
}

// Line knows who shops at an event that lets people in one by one; the waiting
// room has it.
type Line interface {
	// Bought ends the time inside of an account that has bought: its slot is
	// another's at once. Of any other event there is nothing to do.
	Bought(ctx context.Context, event, user string) error
}

// Answer is a booking as the API shows it.
type Answer struct {
	seatmap.Booking
	Reason   string          `json:"reason,omitempty"` // why it was lost, or that it ended with its event
	Lost     []string        `json:"lost,omitempty"`   // tickets of the chart that are gone
	Tickets  []Ticket        `json:"tickets,omitempty"`
	Attempts []AttemptAnswer `json:"attempts,omitempty"` // oldest first
	Refunded *seatmap.Money  `json:"refunded,omitempty"` // what was given back of its tickets
}

// Ticket is one seat or place that was sold. Only a valid one lets anybody in.
type Ticket struct {
	ID       string `json:"id"`
	TicketID string `json:"ticketId,omitempty"` // of the chart
	Section  string `json:"section,omitempty"`
	Row      string `json:"row,omitempty"`
	Label    string `json:"label,omitempty"`
	Area     string `json:"area,omitempty"`
	Price    int64  `json:"price"`        // minor units, without fees
	AllIn    int64  `json:"allIn"`        // what it cost: those of a booking add up to its total
	Status   string `json:"status"`       // pending until the money is captured, then valid; refunding, refunded or refund_failed; or void
	QR       string `json:"qr,omitempty"` // of a valid one: what a door reads, as text
}

// AttemptAnswer is a try at paying as the API shows it.
type AttemptAnswer struct {
	ID       string       `json:"id"`
	State    AttemptState `json:"state"`
	Provider string       `json:"provider"`
	Reason   string       `json:"reason,omitempty"` // why it failed
}

// PayRequest asks for a payment of a booking.
type PayRequest struct {
	Booking string
	User    string // from the session
	Method  string // the provider's name for a card
	Key     string // the shopper's Idempotency-Key, or empty
}

// Receipt is the answer to a payment.
type Receipt struct {
	BookingID string        `json:"bookingId"`
	Attempt   AttemptAnswer `json:"attempt"`
	State     BookingState  `json:"state"`
	ExpiresAt time.Time     `json:"expiresAt"`
	Total     seatmap.Money `json:"total"`
	Action    Action        `json:"action,omitzero"` // what its owner must do for a verdict

	Repeated bool `json:"-"` // the attempt was made by an earlier request with this key
}

// Options of New. Store, Holds, Sales and Providers are needed; of everything
// else the zero value works.
type Options struct {
	Store     *Store
	Holds     Holds
	Sales     seatmap.Sales
	Providers []Provider      // the first one takes new payments
	Signer    Signer          // nil: tickets have nothing for a door to read
	Outgoing  *outgoing.Hooks // nil: what other systems are to be told waits for a desk that has them
	Line      Line            // nil: nobody waits
	Log       *slog.Logger

	AskAfter    time.Duration // an attempt without a verdict for so long is asked about; 30 s
	ExtendAhead time.Duration // a hold under an open payment is extended when so little of it is left; 45 s
	ExtendBy    time.Duration // by so much, grace on top; 60 s
	Every       time.Duration // how often a worker looks for what others left undone; 1 s
	AuditEvery  time.Duration // how often one compares what Redis shows with the books, and half as often the books with each other; 30 s
}

// Desk is where bookings are paid. Any number of processes may run one over
// the same database.
type Desk struct {
	store     *Store
	holds     either
	sales     seatmap.Sales
	signer    Signer
	outgoing  *outgoing.Hooks
	line      Line
	providers map[string]Provider
	pays      Provider // takes new payments
	log       *slog.Logger
	rounds    rounds
	found     findings

	askAfter, extendAhead, extendBy, every, auditEvery time.Duration
}

// New returns a desk. It does no I/O; Run does what happens without a request.
func New(o Options) (*Desk, error) {
	if o.Store == nil || o.Holds == nil || o.Sales == nil || len(o.Providers) == 0 {
		return nil, errors.New("checkout: a desk needs a store, holds, sales and a payment provider")
	}
	d := &Desk{
		store: o.Store, holds: either{o.Holds, o.Store, o.Sales}, sales: o.Sales, signer: o.Signer, outgoing: o.Outgoing, line: o.Line,
		providers: make(map[string]Provider, len(o.Providers)), pays: o.Providers[0],
		log:         o.Log,
		askAfter:    orElse(o.AskAfter, 30*time.Second),
		extendAhead: orElse(o.ExtendAhead, 45*time.Second),
		extendBy:    orElse(o.ExtendBy, time.Minute),
		every:       orElse(o.Every, time.Second),
		auditEvery:  orElse(o.AuditEvery, 30*time.Second),
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	d.found.lasts = foundLasts * d.inspectEvery()
	for _, p := range o.Providers {
		if _, twice := d.providers[p.Name()]; twice {
			return nil, fmt.Errorf("checkout: two payment providers are called %q", p.Name())
		}
		d.providers[p.Name()] = p
	}
	return d, nil
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
