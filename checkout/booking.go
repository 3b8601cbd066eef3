package checkout

import (
	"context"
	"errors"
	"time"

	"seatcast/seatmap"
)

// Booking shows a booking to its owner: the row, if it has one, or else its
// basket. ErrNoBooking, seatmap.ErrNotYours.
func (d *Desk) Booking(ctx context.Context, id, user string) (*Answer, error) {
	event, token, ok := seatmap.ParseBookingID(id)
	if !ok {
		return nil, ErrNoBooking
	}
	sale, err := d.sales.Sale(ctx, event)
	if errors.Is(err, seatmap.ErrNoEvent) {
		return nil, ErrNoBooking
	}
	if err != nil {
		return nil, err
	}
	b, err := d.store.booking(ctx, id)
	if errors.Is(err, ErrNoBooking) {
		return d.basket(ctx, sale, token, user)
	}
	if err != nil {
		return nil, err
	}
	if b.User != user {
		return nil, seatmap.ErrNotYours
	}
	return d.show(ctx, sale, b)
}

func (d *Desk) basket(ctx context.Context, sale *seatmap.Sale, token, user string) (*Answer, error) {
	basket, err := d.holds.Basket(ctx, sale.Event, token)
	if err != nil {
		return nil, err
	}
	if basket.User != user {
		return nil, seatmap.ErrNotYours
	}
	shown, err := sale.Booking(basket)
	if err != nil {
		return nil, err
	}
	a := &Answer{Booking: shown, Lost: ticketIDs(shown.Quote, basket.Lost)}
	if sale.Cancelled && basket.State == seatmap.BasketHeld {
		a.State, a.Reason, a.ExpiresAt, a.Cap = string(BookingExpired), ReasonCancelled, nil, nil
	}
	return a, nil
}

// asHeld is what only the basket knows of a row: the hold of a booking that is
// paid for again may have been extended by its owner.
func (d *Desk) asHeld(ctx context.Context, b *booking) {
	if b.State != BookingHeld {
		return
	}
	if basket, err := d.holds.Basket(ctx, b.Event, b.Token); err == nil {
		b.Deadline, b.LostSeats = later(b.Deadline, basket.Until), basket.Lost
	}
	if !b.Deadline.After(b.Now) || b.Reason == ReasonCancelled { // judged when it is read; the reconciler only tidies
		b.State = BookingExpired
	}
}

// show renders a row.
func (d *Desk) show(ctx context.Context, sale *seatmap.Sale, b *booking) (*Answer, error) {
	d.asHeld(ctx, b)
	shown, err := sale.Booking(b.basket())
	if err != nil {
		return nil, err
	}
	if b.State != BookingHeld && b.State != BookingPaying {
		shown.ExpiresAt, shown.Cap = nil, nil
	}
	a := &Answer{Booking: shown, Reason: b.Reason, Lost: ticketIDs(shown.Quote, b.LostSeats)}
	attempts, err := d.store.attempts(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	for _, one := range attempts {
		a.Attempts = append(a.Attempts, one.answer())
	}
	tickets, err := d.store.tickets(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	a.Tickets = describe(b.Event, tickets[b.ID], shown.Quote, d.signer)
	a.Refunded = refundedOf(tickets[b.ID], b.Money.Currency)
	return a, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (b *booking) basket() seatmap.Basket {
	return seatmap.Basket{Event: b.Event, Token: b.Token, User: b.User, Seats: b.Seats, Areas: b.Areas, Quote: b.Quote, Hash: b.Hash,
		First: b.First, Until: b.Deadline, Cap: b.Cap, State: seatmap.BasketState(b.State), Lost: b.LostSeats, Unheld: b.Unheld, Operator: b.Operator, Note: b.Note}
}

func (a *attempt) answer() AttemptAnswer {
	return AttemptAnswer{ID: a.ID, State: a.State, Provider: a.Provider, Reason: a.Reason}
}

func ticketIDs(q seatmap.Quote, seats []int) []string {
	var ids []string
	for _, i := range seats {
		for _, s := range q.Seats {
			if s.I == i {
				ids = append(ids, s.TicketID)
			}
		}
	}
	return ids
}

// receipt tells how an attempt and its booking stand. A booking that is lost
// is the *LostError that says so.
func (d *Desk) receipt(ctx context.Context, id, attempt string, repeated bool) (*Receipt, error) {
	b, err := d.store.booking(ctx, id)
	if err != nil {
		return nil, err
	}
	if b.State == BookingLost {
		return nil, b.lost()
	}
	a, err := d.store.attempt(ctx, attempt)
	if err != nil {
		return nil, err
	}
	sale, err := d.sales.Sale(ctx, b.Event)
	if err != nil {
		return nil, err
	}
	r := &Receipt{BookingID: id, Attempt: a.answer(), State: b.State, ExpiresAt: b.Deadline.Add(-sale.Terms.Grace).UTC(),
		Total: b.Money, Repeated: repeated}
	if repeated {
		r.Action = d.action(ctx, a)
	}
	return r, nil
}

// action asks the provider what the owner of an attempt must do, for a page
// that has forgotten. It is not kept here.
func (d *Desk) action(ctx context.Context, a *attempt) Action {
	if a.State != AttemptCreated || a.Ref == "" {
		return Action{}
	}
	p, err := d.payment(ctx, a)
	if err != nil {
		d.log.WarnContext(ctx, "no answer about an open payment", "attempt", a.ID, "booking", a.Booking, "err", err)
	}
	return p.Action
}

// Confirm asks the provider about every open payment of a booking, now, and
// shows what has come of it. *LostError when the arbiter decided against it,
// and the errors of Booking.
func (d *Desk) Confirm(ctx context.Context, id, user string) (*Answer, error) {
	a, err := d.Booking(ctx, id, user)
	if err != nil {
		return nil, err
	}
	if len(a.Attempts) > 0 {
		if err := d.askOpen(context.WithoutCancel(ctx), id, 0, d.ask); err != nil {
			d.log.WarnContext(ctx, "no verdict to confirm yet", "booking", id, "err", err)
		}
		if a, err = d.Booking(ctx, id, user); err != nil {
			return nil, err
		}
	}
	switch BookingState(a.State) {
	case BookingLost:
		b, err := d.store.booking(ctx, id)
		if err != nil {
			return nil, err
		}
		return nil, b.lost()
	case BookingExpired, BookingReleased:
		return nil, ErrUncharged
	}
	return a, nil
}

// askOpen asks about every attempt of a booking that is not over and has not
// been asked about for so long. An error means that some outcome is unknown.
func (d *Desk) askOpen(ctx context.Context, id string, after time.Duration, ask func(context.Context, *attempt) error) error {
	b, err := d.store.booking(ctx, id)
	if err != nil {
		return err
	}
	all, err := d.store.attempts(ctx, id)
	if err != nil {
		return err
	}
	var unknown error
	for _, a := range all {
		if !a.open() || b.Now.Sub(a.Asked) < after {
			continue
		}
		if err := d.store.asked(ctx, a.ID); err != nil {
			return err
		}
		unknown = errors.Join(unknown, ask(ctx, a))
	}
	return unknown
}

// open says that something of an attempt is still to come.
func (a *attempt) open() bool {
	return a.State == AttemptCreated || a.State == AttemptAuthorized || a.State == AttemptCapturing || a.State == AttemptRefunding
}

// Cancel gives a booking back. A payment under way is stopped at the provider
// first. What is given back or expired already is a success; ErrFinal for what
// is sold or lost, ErrInProgress when the payment cannot be stopped now.
func (d *Desk) Cancel(ctx context.Context, id, user string) error {
	event, token, ok := seatmap.ParseBookingID(id)
	if !ok {
		return ErrNoBooking
	}
	b, err := d.store.booking(ctx, id)
	if errors.Is(err, ErrNoBooking) {
		if err := d.holds.Release(ctx, event, token, user); err != nil && !errors.Is(err, seatmap.ErrHoldExpired) {
			return err
		}
		// A payment that began meanwhile either finds the hold given back, or
		// its row is here now.
		if b, err = d.store.booking(ctx, id); errors.Is(err, ErrNoBooking) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if b.User != user {
		return seatmap.ErrNotYours
	}
	return d.cancel(ctx, b)
}

func (d *Desk) cancel(ctx context.Context, b *booking) error {
	switch b.State {
	case BookingReleased, BookingExpired:
		return nil
	case BookingHeld, BookingPaying:
	default:
		return ErrFinal
	}
	if err := d.stop(ctx, b.ID); err != nil {
		return err
	}
	if err := d.store.close(ctx, b.ID, BookingReleased); err != nil {
		var illegal *TransitionError
		if errors.As(err, &illegal) { // it was sold or lost while we asked
			return ErrFinal
		}
		return err
	}
	d.mirrorNow(ctx, b)
	return nil
}

// stop ends every open payment of a booking at its provider. ErrInProgress
// when one cannot be reached: the job that voids it goes on.
func (d *Desk) stop(ctx context.Context, id string) error {
	open, err := d.store.stop(ctx, id)
	if err != nil {
		return err
	}
	for _, a := range open {
		if err := d.void(ctx, a.ID); err != nil {
			d.log.WarnContext(ctx, "payment not stopped yet", "attempt", a.ID, "booking", id, "err", err)
			return ErrInProgress
		}
	}
	return nil
}
