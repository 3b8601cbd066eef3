package checkout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"seatcast/seatmap"
)

// finishWithin bounds what is asked of a provider, which goes on although the
// shopper has gone.
const finishWithin = 15 * time.Second

// Pay begins a payment of a booking: the hold is extended to the pay window,
// the booking and the attempt are written, and only then does the provider
// hear of it. What it answers goes the way of every webhook. A key that made
// an attempt before answers that one.
//
// ErrNoBooking, seatmap.ErrNotYours, seatmap.ErrHoldExpired, seatmap.ErrSold, ErrFinal,
// ErrInProgress, ErrReused, ErrSwapped, ErrCancelled, *LostError, and seatmap.ErrUnavailable, after which
// nothing has begun and the hold stays.
func (d *Desk) Pay(ctx context.Context, r PayRequest) (*Receipt, error) {
	event, token, ok := seatmap.ParseBookingID(r.Booking)
	if !ok {
		return nil, ErrNoBooking
	}
	repeated, err := d.repeated(ctx, r)
	if repeated != nil || err != nil {
		return repeated, err
	}
	sale, err := d.sales.Sale(ctx, event)
	if err != nil {
		return nil, err
	}
	if sale.Cancelled {
		return nil, ErrCancelled
	}
	basket, err := d.holds.Extend(ctx, event, token, r.User, sale.Terms.Pay, sale.Terms.Grace)
	if errors.Is(err, seatmap.ErrHoldExpired) {
		// Another tab's payment may have sold it since we looked: then it is not expired.
		if repeated, err := d.repeated(ctx, r); repeated != nil || err != nil {
			return repeated, err
		}
	}
	if err != nil {
		return nil, err
	}
	b, err := fromBasket(sale, basket)
	if err != nil {
		return nil, err
	}
	a := &attempt{ID: newID("at_"), Booking: r.Booking, State: AttemptCreated, Provider: d.pays.Name(), Method: r.Method, Hash: r.hash()}
	a, fresh, err := d.store.begin(ctx, b, a, r.Key)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // what has begun is finished, though the shopper may go
	if !fresh {
		return d.receipt(ctx, r.Booking, a.ID, true)
	}
	p, err := d.inquire(ctx, a)
	switch {
	case errors.Is(err, seatmap.ErrHoldExpired), errors.Is(err, ErrSwapped):
		return nil, err
	case err != nil:
		d.log.ErrorContext(ctx, "no answer to a payment yet", "attempt", a.ID, "booking", a.Booking, "err", err)
	}
	receipt, err := d.receipt(ctx, r.Booking, a.ID, false)
	if err == nil {
		receipt.Action = p.Action
	}
	return receipt, err
}

// seal fixes the seats of a booking before a payment of it is asked for, and
// sees what its owner has done with the hold while the payment began, when
// nobody but its basket knew. Who writes first and reads then, on both sides,
// cannot miss the other: the row is written, and now the basket is sealed and
// read in one step.
//
//   - Given back (Cancel saw no row): the booking is over, ErrHoldExpired. The
//     payment is ended at its provider all the same: another tab may have asked
//     for it already.
//   - Other seats (a swap saw no seal): the booking becomes what the basket is,
//     and this attempt, of which no provider has heard, has failed: ErrSwapped.
//     After the seal nothing is swapped any more.
//
// While the holds do not answer nothing is asked for: the reconciler goes on.
func (d *Desk) seal(ctx context.Context, a *attempt) error {
	b, err := d.store.booking(ctx, a.Booking)
	if err != nil {
		return err
	}
	basket, err := d.holds.Seal(ctx, b.Event, b.Token)
	switch {
	case errors.Is(err, seatmap.ErrNoBasket):
		return nil // forgotten: there is nothing to be swapped, and the arbiter decides
	case err != nil:
		return err
	case basket.State == seatmap.BasketReleased:
		if err := d.cancel(ctx, b); err != nil {
			return err
		}
		return ErrUncharged
	}
	same, err := b.isOf(basket)
	if err != nil || same && a.Money == b.Money {
		return err
	}
	return d.store.becomes(ctx, a, basket)
}

// isOf says whether a row is of the seats a basket has, at its price.
func (b *booking) isOf(basket seatmap.Basket) (bool, error) {
	q, err := (&booking{ID: b.ID, Quote: basket.Quote}).quote()
	return slices.Equal(b.Seats, basket.Seats) && b.Money == q.Total, err
}

// hash is what a repeat of the request must equal.
func (r PayRequest) hash() string {
	sum := sha256.Sum256([]byte(r.Booking + "\x00" + r.User + "\x00" + r.Method))
	return hex.EncodeToString(sum[:])
}

// repeated answers from the booking's row, when it has one: a repeat of an
// earlier request, a stranger's booking, or one that can no longer be paid. It
// also is the first word of Postgres: when that does not answer, the hold has
// not been touched.
func (d *Desk) repeated(ctx context.Context, r PayRequest) (*Receipt, error) {
	b, err := d.store.booking(ctx, r.Booking)
	if errors.Is(err, ErrNoBooking) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if b.User != r.User {
		return nil, seatmap.ErrNotYours
	}
	a, err := d.store.repeat(ctx, r.Booking, r.Key, r.hash())
	if err != nil {
		return nil, err
	}
	if a != nil {
		return d.receipt(ctx, r.Booking, a.ID, true)
	}
	return nil, b.over()
}

// over is why a booking can no longer be paid, or nil.
func (b *booking) over() error {
	switch b.State {
	case BookingHeld, BookingPaying:
		return nil
	case BookingExpired, BookingReleased:
		return ErrUncharged
	case BookingLost:
		return b.lost()
	case BookingSold:
		return seatmap.ErrSold
	}
	return ErrFinal
}

func (b *booking) lost() *LostError {
	return &LostError{Reason: b.Reason, Seats: b.LostSeats, Areas: b.LostAreas}
}

// quote is what the booking costs.
func (b *booking) quote() (seatmap.Quote, error) {
	q, err := seatmap.ParseQuote(b.Quote)
	if err != nil {
		return q, fmt.Errorf("quote of booking %s: %w", b.ID, err)
	}
	return q, nil
}

// fromBasket makes the row of a booking. The price is the one the shopper was
// told when the basket was taken; a quote that does not add up, or is of other
// seats than the basket, is refused.
func fromBasket(sale *seatmap.Sale, basket seatmap.Basket) (*booking, error) {
	b := &booking{
		ID: seatmap.BookingID(basket.Event, basket.Token), Event: basket.Event, Token: basket.Token, User: basket.User,
		State: BookingPaying, Seats: basket.Seats, Areas: basket.Areas, Quote: basket.Quote, Hash: basket.Hash,
		First: basket.First, Deadline: basket.Until, Cap: basket.Cap, Operator: basket.Operator, Note: basket.Note,
	}
	if b.Seats == nil {
		b.Seats = []int{}
	}
	if b.Areas == nil {
		b.Areas = map[string]int{}
	}
	q, err := b.quote()
	if err != nil {
		return nil, err
	}
	b.Money = q.Total
	if !addsUp(q, b) || q.Total.Currency != sale.Currency {
		return nil, fmt.Errorf("quote of booking %s is not of its seats or does not add up", b.ID)
	}
	return b, nil
}

func addsUp(q seatmap.Quote, b *booking) bool {
	var (
		seats []int
		areas = map[string]int{}
	)
	for _, s := range q.Seats {
		seats = append(seats, s.I)
	}
	for _, a := range q.Areas {
		areas[a.Area] = a.Quantity
	}
	for area, places := range b.Areas {
		if areas[area] != places {
			return false
		}
	}
	return slices.Equal(seats, b.Seats) && len(areas) == len(b.Areas) && q.AddsUp()
}

// ask asks the provider about an attempt (for the first time, for the payment
// itself) and settles what it says. seatmap.ErrHoldExpired or ErrSwapped when the
// booking was given back or swapped before its payment was asked for; after any
// other error the outcome is unknown, and the reconciler asks again.
func (d *Desk) ask(ctx context.Context, a *attempt) error {
	_, err := d.inquire(ctx, a)
	return err
}

// inquire asks, and returns what was said too.
func (d *Desk) inquire(ctx context.Context, a *attempt) (Payment, error) {
	ctx, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	if a.Ref == "" {
		if err := d.seal(ctx, a); err != nil {
			return Payment{}, err
		}
	}
	p, err := d.payment(ctx, a)
	if err != nil {
		return Payment{}, fmt.Errorf("ask about %s: %w", a.ID, err)
	}
	return p, d.settle(ctx, a.Provider, p, nil)
}

// payment returns the provider's word on an attempt. One whose first answer
// was lost is created again: the key makes that the same payment.
func (d *Desk) payment(ctx context.Context, a *attempt) (Payment, error) {
	provider, err := d.provider(a.Provider)
	if err != nil {
		return Payment{}, err
	}
	if a.Ref != "" {
		return provider.Get(ctx, a.Ref)
	}
	return provider.Create(ctx, Charge{Key: a.ID, Booking: a.Booking, Method: a.Method, Money: a.Money, Begun: a.Begun})
}

func (d *Desk) provider(name string) (Provider, error) {
	p, ok := d.providers[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrNoProvider, name)
	}
	return p, nil
}

// settle runs what a provider says through the machines and the arbiter, and
// then does what follows a commit. Following it up may fail: the workers see
// what is left.
func (d *Desk) settle(ctx context.Context, provider string, p Payment, n *Notice) error {
	out, err := d.store.settle(ctx, provider, p, n)
	if err != nil {
		return err
	}
	d.tell(ctx, provider, p, out)
	if out.mirror {
		d.mirrorNow(ctx, out.booking)
	}
	if out.sold && d.line != nil {
		if err := d.line.Bought(ctx, out.booking.Event, out.booking.User); err != nil {
			d.log.WarnContext(ctx, "who has bought keeps their slot until its end", "event", out.booking.Event, "err", err)
		}
	}
	return nil
}

// mirrorNow tells Redis of what has become of a booking, and gives back the hold
// of one that came to nothing. What fails is left to the workers.
func (d *Desk) mirrorNow(ctx context.Context, b *booking) {
	if err := d.Mirror(ctx, b.Event); err != nil {
		d.log.WarnContext(ctx, "mirror left to the workers", "event", b.Event, "booking", b.ID, "err", err)
	}
}

// tell says what a person must know of a payment.
func (d *Desk) tell(ctx context.Context, provider string, p Payment, out outcome) {
	log := d.log.With("provider", provider, "payment", p.ID, "attempt", p.Key, "money", p.Money)
	if out.wrong {
		log.ErrorContext(ctx, "a payment is of other money than was asked for: it sells nothing and goes back")
	}
	if out.disputed {
		log.WarnContext(ctx, "a payment is disputed", "dispute", p.Dispute)
	}
	if out.outside {
		log.WarnContext(ctx, "money was given back at the provider and not by us", "booking", out.booking.ID, "given", p.Refunded,
			"ticketsVoid", p.Refunded >= p.Money.Amount)
	}
	if r := out.failed; r != nil {
		log.ErrorContext(ctx, "a refund failed: begin another one, or give the money back by hand", "refund", r.ID, "booking", r.Booking,
			"refunds", r.Money, "reason", r.Failure, "seatsGone", r.State == RefundSucceeded)
	}
}

// gone says that there is nothing left to give back.
func gone(err error) bool {
	return errors.Is(err, seatmap.ErrNoBasket) || errors.Is(err, seatmap.ErrHoldExpired)
}

// capture takes the money of a sold booking.
func (d *Desk) capture(ctx context.Context, id string) error {
	a, err := d.store.attempt(ctx, id)
	if err != nil || a.State != AttemptCapturing {
		return err
	}
	provider, err := d.provider(a.Provider)
	if err != nil {
		return err
	}
	p, err := provider.Capture(ctx, a.Ref)
	if err != nil {
		return err
	}
	if p.State == PaymentAuthorized || p.State == PaymentProcessing {
		return fmt.Errorf("capture %s: %w: still %s", id, ErrProvider, p.State)
	}
	return d.settle(ctx, a.Provider, p, nil)
}

// void gives the authorisation of an attempt back, or ends a payment without a
// verdict.
func (d *Desk) void(ctx context.Context, id string) error {
	a, err := d.store.attempt(ctx, id)
	if err != nil || !a.VoidDue {
		return err
	}
	if a.Ref == "" { // the provider's name for it was never heard
		p, err := d.payment(ctx, a)
		if err != nil {
			return err
		}
		if p.ID == "" { // it failed before there was one
			return d.settle(ctx, a.Provider, p, nil)
		}
		a.Ref = p.ID
	}
	provider, err := d.provider(a.Provider)
	if err != nil {
		return err
	}
	p, err := provider.Void(ctx, a.Ref)
	if err != nil {
		return err
	}
	if p.State == PaymentAuthorized || p.State == PaymentProcessing {
		return fmt.Errorf("void %s: %w: still %s", id, ErrProvider, p.State)
	}
	return d.settle(ctx, a.Provider, p, nil)
}

// Webhook takes a provider's notice in. The payment is fetched from the
// provider, whatever the notice says of it. An error means: send it again.
// ErrNoProvider, ErrBadSignature; ErrUnknownPayment for a payment that is none
// of ours, which need not be sent again.
func (d *Desk) Webhook(ctx context.Context, provider string, header func(string) string, body []byte) error {
	from, err := d.provider(provider)
	if err != nil {
		return err
	}
	n, err := from.Notice(header, body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer cancel()
	p, err := from.Get(ctx, n.Payment)
	if err != nil {
		return err
	}
	return d.settle(ctx, provider, p, &n)
}
