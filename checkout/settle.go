package checkout

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// outcome is what settling a payment has come to, for whoever acts on it after
// the commit.
type outcome struct {
	booking *booking // as it was before; nil when the notice had been handled
	mirror  bool     // seats or areas changed hands
	release bool     // the booking is over and its hold with it
}

// settle is the one way in for what a provider says of a payment: its answer
// to create, a webhook, confirm and the reconciler all end here. News that is
// old by now changes nothing. A notice is handled once: it is remembered in
// the transaction of its effect. ErrUnknownPayment when no attempt is meant.
func (s *Store) settle(ctx context.Context, provider string, p Payment, n *Notice) (out outcome, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		out = outcome{}
		if n != nil {
			fresh, err := remember(ctx, tx, provider, n)
			if err != nil || !fresh {
				return err
			}
		}
		b, a, err := lockAttempt(ctx, tx, p.Key)
		if err != nil {
			return err
		}
		out.booking = b
		if err := noteRef(ctx, tx, a, p); err != nil {
			return err
		}
		return s.apply(ctx, tx, b, a, p, &out)
	})
	return out, said("settle payment "+p.ID, err)
}

// remember takes a notice in. False when it has been handled, under its own id
// or as another notice of the same kind about the same payment.
func remember(ctx context.Context, tx pgx.Tx, provider string, n *Notice) (bool, error) {
	tag, err := tx.Exec(ctx, `INSERT INTO webhook_inbox (provider, event_id, object, type) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`, provider, n.Event, n.Payment, n.Type)
	return tag.RowsAffected() == 1, err
}

// lockAttempt locks the booking of an attempt, and with it all its attempts:
// whoever changes one holds this lock.
func lockAttempt(ctx context.Context, tx pgx.Tx, id string) (*booking, *attempt, error) {
	var of string
	err := tx.QueryRow(ctx, `SELECT booking_id FROM attempts WHERE id = $1`, id).Scan(&of)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, ErrUnknownPayment
	}
	if err != nil {
		return nil, nil, err
	}
	b, err := lockBooking(ctx, tx, of)
	if err != nil {
		return nil, nil, err
	}
	a, err := scanAttempt(tx.QueryRow(ctx, `SELECT `+attemptColumns+` FROM attempts WHERE id = $1`, id))
	return b, a, err
}

func noteRef(ctx context.Context, tx pgx.Tx, a *attempt, p Payment) error {
	_, err := tx.Exec(ctx, `UPDATE attempts SET provider_ref = CASE provider_ref WHEN '' THEN $2 ELSE provider_ref END,
		asked_at = now() WHERE id = $1`, a.ID, p.ID)
	return err
}

// apply moves the machines to what the provider says, unless they are past it.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment, out *outcome) error {
	undecided := a.State == AttemptCreated || a.State == AttemptFailed
	open := a.State == AttemptCreated || a.State == AttemptAuthorized
	switch {
	case p.State == PaymentAuthorized && undecided:
		if err := moveAttempt(ctx, tx, a.ID, AttemptAuthorized, ""); err != nil {
			return err
		}
		return s.judge(ctx, tx, b, a, out)
	case p.State == PaymentFailed && a.State == AttemptCreated:
		return s.ended(ctx, tx, b, a, AttemptFailed, p.Reason)
	case p.State == PaymentVoided && open:
		return s.ended(ctx, tx, b, a, AttemptVoided, p.Reason)
	case p.State == PaymentExpired && open:
		return s.ended(ctx, tx, b, a, AttemptAuthExpired, p.Reason)
	case p.State == PaymentCaptured && a.State != AttemptCaptured && a.State != AttemptRefunded:
		return moveAttempt(ctx, tx, a.ID, AttemptCaptured, "") // of any but a capturing one: an arrow that does not exist
	case a.State == AttemptCapturing && noMoney(p.State):
		return unsell(ctx, tx, b, a, p, out)
	}
	return nil
}

// noMoney says that an authorised payment can no longer be captured. A decline
// does not: it is older than the authorisation.
func noMoney(s PaymentState) bool {
	return s == PaymentRefused || s == PaymentVoided || s == PaymentExpired
}

// ended closes an attempt that brought no money. When it was the last open one
// the shopper has the booking back, hold and all, and may try again.
func (s *Store) ended(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, to AttemptState, reason string) error {
	if err := moveAttempt(ctx, tx, a.ID, to, reason); err != nil {
		return err
	}
	if b.State != BookingPaying {
		return nil
	}
	var open bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM attempts WHERE booking_id = $1 AND state IN ('created', 'authorized'))`,
		b.ID).Scan(&open)
	if err != nil || open {
		return err
	}
	return moveBooking(ctx, tx, b.ID, BookingHeld)
}

// judge decides over an authorised attempt: its booking is sold, or the
// authorisation goes back.
func (s *Store) judge(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, out *outcome) error {
	switch {
	case a.VoidDue:
		return s.requireVoid(ctx, tx, a)
	case b.State == BookingHeld: // its provider had called the attempt failed before
		if err := moveBooking(ctx, tx, b.ID, BookingPaying); err != nil {
			return err
		}
	case b.State != BookingPaying: // two tabs, two cards; or too late
		return s.requireVoid(ctx, tx, a)
	}
	lost, err := s.arbitrate(ctx, tx, b, a)
	if err != nil {
		return err
	}
	if lost == nil {
		out.mirror = true
		if err := s.requireCapture(ctx, tx, a); err != nil {
			return err
		}
	} else {
		out.release = true
		if err := lose(ctx, tx, b, lost); err != nil {
			return err
		}
	}
	_, err = s.voidOpen(ctx, tx, b.ID) // the loser's own, and those of other tabs that nobody may ever tell of
	return err
}

// voidOpen has every payment of a booking ended that has taken no money yet,
// and returns them. A verdict that comes meanwhile cannot sell.
func (s *Store) voidOpen(ctx context.Context, tx pgx.Tx, booking string) (open []*attempt, err error) {
	all, err := attemptsOf(ctx, tx, booking)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.State != AttemptCreated && a.State != AttemptAuthorized {
			continue
		}
		if err := s.requireVoid(ctx, tx, a); err != nil {
			return nil, err
		}
		open = append(open, a)
	}
	return open, nil
}

func lose(ctx context.Context, tx pgx.Tx, b *booking, lost *LostError) error {
	if err := moveBooking(ctx, tx, b.ID, BookingLost); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE bookings SET reason = $2, lost_seats = coalesce($3::int[], '{}'), lost_areas = coalesce($4::text[], '{}'),
		mirror_due = false WHERE id = $1`, // a basket that was sold and is not any more
		b.ID, lost.Reason, lost.Seats, lost.Areas)
	return err
}
