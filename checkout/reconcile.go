package checkout

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/seatmap"
)

// Run does what happens without a request, until ctx ends: jobs, bookings and
// channels whose time has come, mirrors that whoever owed them left undone. Every
// worker runs it; none leads. It returns after all it started has.
func (d *Desk) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.work(ctx) })
	g.Go(func() error { return d.repeat(ctx, "mirror", d.mirrorAll) })
	g.Go(func() error { return d.repeat(ctx, "extend", d.keepAllAlive) })
	g.Go(func() error { return d.repeat(ctx, "sweep", d.sweep) })
	g.Go(func() error { return d.repeat(ctx, "channels", d.openChannels) })
	g.Go(func() error { return d.repeat(ctx, "cancellations", d.cancelAll) })
	return g.Wait()
}

// repeat runs one round after the other. A round that fails is logged, and
// tried again with the next.
func (d *Desk) repeat(ctx context.Context, name string, round func(context.Context) error) error {
	tick := time.NewTicker(d.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := round(ctx); err != nil && ctx.Err() == nil {
			d.log.ErrorContext(ctx, "round failed", "of", name, "err", err)
		}
	}
}

func (d *Desk) mirrorAll(ctx context.Context) error {
	events, err := d.store.mirrorDue(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, event := range events {
		all = errors.Join(all, d.Mirror(ctx, event))
	}
	return all
}

// sweep queues the reconciler for every booking that needs it.
func (d *Desk) sweep(ctx context.Context) error {
	ids, err := d.store.overdue(ctx, d.askAfter)
	if err != nil {
		return err
	}
	return d.store.requireReconcile(ctx, ids)
}

// extenders is how many holds are extended at the same time.
const extenders = 8

// keepAllAlive extends the holds under payment that are about to end. That
// needs nothing of a provider, so it waits for no job that does.
func (d *Desk) keepAllAlive(ctx context.Context) error {
	ending, err := d.store.ending(ctx, d.extendAhead)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(extenders)
	for _, b := range ending {
		g.Go(func() error { return d.keepAlive(ctx, b) })
	}
	return g.Wait()
}

// reconcile brings a booking on whose time has come: attempts without a
// verdict are asked about; behind its deadline the payment is stopped and the
// booking expires. A provider that does not answer keeps it from that: what is
// authorised by the end the arbiter decides.
func (d *Desk) reconcile(ctx context.Context, id string) error {
	b, err := d.store.booking(ctx, id)
	if err != nil {
		return err
	}
	after := d.askAfter
	if b.behind() {
		after = 0
	}
	unknown := errors.Join(d.askOpen(ctx, id, after, d.finish), d.askRefunds(ctx, id, d.askAfter))
	if b, err = d.store.booking(ctx, id); err != nil {
		return err
	}
	if b.State == BookingPaying {
		unknown = errors.Join(unknown, d.keepAlive(ctx, b)) // its owner may have extended the hold itself
	}
	if unknown != nil || !b.behind() {
		return unknown
	}
	switch b.State {
	case BookingPaying:
		if err := d.stop(ctx, b.ID); err != nil {
			return err
		}
		return d.expire(ctx, b)
	case BookingHeld:
		return d.expire(ctx, b)
	}
	return nil
}

// finish does what an open attempt waits for, whether a job does so too or was
// lost.
func (d *Desk) finish(ctx context.Context, a *attempt) error {
	switch {
	case a.VoidDue:
		return d.void(ctx, a.ID)
	case a.State == AttemptCapturing:
		return d.capture(ctx, a.ID)
	case a.State == AttemptRefunding:
		return d.refund(ctx, a.ID)
	}
	return d.ask(ctx, a)
}

// behind says that the deadline had passed when the row was read.
func (b *booking) behind() bool { return !b.Deadline.After(b.Now) }

// keepAlive extends the hold of a booking under payment when little of it is
// left. A hold that cannot be extended any more is no error; a store of holds
// that is away is, for that is no reason to give up a payment.
func (d *Desk) keepAlive(ctx context.Context, b *booking) error {
	if b.Deadline.Sub(b.Now) > d.extendAhead || !b.Deadline.Before(b.Cap) || !b.Now.Before(b.Cap) {
		return nil
	}
	until, err := d.extend(ctx, b)
	switch {
	case err == nil:
		b.Deadline = until
		return nil
	case endOfHold(err):
		return nil
	}
	return err
}

func (d *Desk) extend(ctx context.Context, b *booking) (time.Time, error) {
	sale, err := d.sales.Sale(ctx, b.Event)
	if err != nil {
		return time.Time{}, err
	}
	basket, err := d.holds.Extend(ctx, b.Event, b.Token, b.User, d.extendBy, sale.Terms.Grace)
	if err != nil {
		return time.Time{}, err
	}
	return basket.Until, d.store.extended(ctx, b.ID, basket.Until)
}

// endOfHold says that a hold cannot be extended any more.
func endOfHold(err error) bool {
	var lost *seatmap.LostError
	return gone(err) || errors.As(err, &lost)
}

// expire ends a booking whose deadline is behind, unless its owner has
// extended the hold meanwhile and may have. When it came to be sold instead, it is sold.
func (d *Desk) expire(ctx context.Context, b *booking) error {
	basket, err := d.holds.Basket(ctx, b.Event, b.Token)
	switch {
	case err == nil && basket.State == seatmap.BasketHeld && basket.Until.After(b.Deadline) && b.Deadline.Before(b.Cap):
		return d.store.extended(ctx, b.ID, basket.Until)
	case err != nil && !gone(err):
		return err
	}
	err = d.store.close(ctx, b.ID, BookingExpired)
	var illegal *TransitionError
	if errors.As(err, &illegal) {
		return nil
	}
	if err == nil {
		d.mirrorNow(ctx, b)
	}
	return err
}
