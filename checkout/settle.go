package checkout

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/checkout/outgoing"
	"seatcast/internal/pg"
)

// outcome is what settling a payment has come to, for whoever acts on it after
// the commit.
type outcome struct {
	booking  *booking // as it was before; nil when the notice had been handled
	sold     bool     // the account has bought
	mirror   bool     // seats or areas changed hands, or a hold is given back
	wrong    bool     // the money is not what was asked for
	disputed bool     // a dispute about it stands otherwise than before
	outside  bool     // money of it was given back without us
	failed   *refund  // a refund of it that failed
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
		out.disputed = p.Dispute != "" && p.Dispute != a.Dispute
		if err := note(ctx, tx, a, p); err != nil {
			return err
		}
		if err := s.apply(ctx, tx, b, a, p, &out); err != nil || n == nil {
			return err
		}
		return s.heard(ctx, tx, a, p, n)
	})
	return out, pg.Said("settle payment "+p.ID, err)
}

// remember takes a notice in. False when it has been handled, under its own id
// or as another notice of the same kind about the same payment.
func remember(ctx context.Context, tx pgx.Tx, provider string, n *Notice) (bool, error) {
	tag, err := tx.Exec(ctx, `INSERT INTO webhook_inbox (provider, event_id, object, type) VALUES ($1, $2, concat_ws('/', $3::text, NULLIF($5::text, '')), $4)
		ON CONFLICT DO NOTHING`, provider, n.Event, n.Payment, n.Type, n.Step)
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

// note keeps what a provider says of a payment besides its state.
func note(ctx context.Context, tx pgx.Tx, a *attempt, p Payment) error {
	var before *time.Time
	if !p.CaptureBefore.IsZero() {
		before = &p.CaptureBefore
	}
	a.Card = cmp.Or(p.Card, a.Card)
	_, err := tx.Exec(ctx, `UPDATE attempts SET provider_ref = CASE provider_ref WHEN '' THEN $2 ELSE provider_ref END,
		card = $3, capture_before = coalesce($4, capture_before), refunded = $5, dispute = CASE $6 WHEN '' THEN dispute ELSE $6 END,
		asked_at = now() WHERE id = $1`, a.ID, p.ID, a.Card, before, p.Refunded, p.Dispute)
	return err
}

// apply moves the machines to what the provider says, unless they are past it.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment, out *outcome) error {
	undecided := a.State == AttemptCreated || a.State == AttemptFailed
	open := a.State == AttemptCreated || a.State == AttemptAuthorized
	switch {
	case p.State == PaymentAuthorized && undecided:
		return s.authorized(ctx, tx, b, a, p, out)
	case p.State == PaymentFailed && a.State == AttemptCreated:
		return s.ended(ctx, tx, b, a, AttemptFailed, p.Reason)
	case p.State == PaymentVoided && open:
		return s.ended(ctx, tx, b, a, AttemptVoided, cmp.Or(p.Reason, a.Reason))
	case p.State == PaymentExpired && open:
		return s.ended(ctx, tx, b, a, AttemptAuthExpired, p.Reason)
	case p.State == PaymentCaptured:
		return s.captured(ctx, tx, b, a, p, out)
	case a.State == AttemptCapturing && noMoney(p.State):
		return s.unsell(ctx, tx, b, a, AttemptCaptureRefused, p.Reason, out)
	}
	return nil
}

// authorized has an authorisation judged. One of other money than was asked for
// sells nothing.
func (s *Store) authorized(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment, out *outcome) error {
	if p.Money != a.Money {
		out.wrong = true
		if err := moveAttempt(ctx, tx, a.ID, AttemptAuthorized, ReasonWrongAmount); err != nil {
			return err
		}
		return s.requireVoid(ctx, tx, a)
	}
	if err := moveAttempt(ctx, tx, a.ID, AttemptAuthorized, ""); err != nil {
		return err
	}
	return s.judge(ctx, tx, b, a, p, out)
}

// captured takes in that money was taken. What nobody asked for yet is judged;
// what cannot be sold for it goes back.
func (s *Store) captured(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment, out *outcome) error {
	switch a.State {
	case AttemptCaptured, AttemptRefunded:
		return s.outside(ctx, tx, b, a, p, out)
	case AttemptRefunding, AttemptRefundFailed:
		if p.Refunded < p.Money.Amount {
			return nil
		}
		return moveAttempt(ctx, tx, a.ID, AttemptRefunded, a.Reason)
	}
	out.wrong = p.Money != a.Money
	undecided := a.State == AttemptCreated || a.State == AttemptFailed || a.State == AttemptAuthorized
	switch {
	case a.State == AttemptCapturing && out.wrong:
		if err := s.unsell(ctx, tx, b, a, AttemptRefunding, ReasonWrongAmount, out); err != nil {
			return err
		}
		return s.requireRefund(ctx, tx, a)
	case a.State == AttemptCapturing:
		a.State = AttemptCaptured
		if err := moveAttempt(ctx, tx, a.ID, AttemptCaptured, ""); err != nil {
			return err
		}
		return s.outside(ctx, tx, b, a, p, out)
	case out.wrong:
		return s.unwanted(ctx, tx, b, a, ReasonWrongAmount)
	case undecided && p.Refunded == 0:
		return s.judge(ctx, tx, b, a, p, out)
	}
	return s.unwanted(ctx, tx, b, a, a.Reason) // what was over is not begun again
}

// unwanted gives money back that was taken and sells nothing.
func (s *Store) unwanted(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, reason string) error {
	if err := s.ended(ctx, tx, b, a, AttemptRefunding, reason); err != nil {
		return err
	}
	return s.requireRefund(ctx, tx, a)
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

// judge decides over an attempt whose money is promised, or taken: its booking
// is sold, or the money goes back.
func (s *Store) judge(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment, out *outcome) error {
	switch {
	case a.VoidDue:
		return s.giveBack(ctx, tx, b, a, p)
	case b.State == BookingHeld: // its provider had called the attempt failed before
		if err := moveBooking(ctx, tx, b.ID, BookingPaying); err != nil {
			return err
		}
	case b.State != BookingPaying: // two tabs, two cards; or too late
		return s.giveBack(ctx, tx, b, a, p)
	}
	lost, err := s.arbitrate(ctx, tx, b, a, p)
	if err != nil {
		return err
	}
	out.mirror = true
	switch {
	case lost != nil:
		err = s.lost(ctx, tx, b, a, p, lost)
	default:
		out.sold = true
		err = s.requireCapture(ctx, tx, a, p)
	}
	if err != nil {
		return err
	}
	_, err = s.voidOpen(ctx, tx, b.ID) // the loser's own, and those of other tabs that nobody may ever tell of
	return err
}

// giveBack returns money to whom a booking is not sold, and leaves the booking
// as it is.
func (s *Store) giveBack(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment) error {
	if p.State == PaymentCaptured {
		return s.unwanted(ctx, tx, b, a, "")
	}
	return s.requireVoid(ctx, tx, a)
}

// lost ends a booking the arbiter decided against. An authorisation of it is
// given back with all that are open.
func (s *Store) lost(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment, lost *LostError) error {
	if err := s.lose(ctx, tx, b, lost); err != nil || p.State != PaymentCaptured {
		return err
	}
	if err := moveAttempt(ctx, tx, a.ID, AttemptRefunding, lost.Reason); err != nil {
		return err
	}
	return s.requireRefund(ctx, tx, a)
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

// lose ends a booking that is not sold, or not any more, and says so.
func (s *Store) lose(ctx context.Context, tx pgx.Tx, b *booking, lost *LostError) error {
	if err := moveBooking(ctx, tx, b.ID, BookingLost); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE bookings SET reason = $2, lost_seats = coalesce($3::int[], '{}'), lost_areas = coalesce($4::text[], '{}') WHERE id = $1`,
		b.ID, lost.Reason, lost.Seats, lost.Areas)
	if err != nil {
		return err
	}
	return s.announceBooking(ctx, tx, outgoing.BookingLost, b.ID)
}
