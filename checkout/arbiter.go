package checkout

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// arbitrate sells every seat and place of a booking, or changes nothing and
// says what was gone. It is a savepoint: the caller's transaction goes on
// either way.
func (s *Store) arbitrate(ctx context.Context, tx pgx.Tx, b *booking, a *attempt) (*LostError, error) {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		return sell(ctx, tx, b, a)
	})
	var lost *LostError
	switch {
	case errors.As(err, &lost):
		return lost, nil
	case violates(err, "tickets_one_a_seat"): // the first guard said free; the second knows better
		seats, err := ticketed(ctx, tx, b)
		return &LostError{Reason: ReasonSeatsGone, Seats: seats}, err
	}
	return nil, err
}

func sell(ctx context.Context, tx pgx.Tx, b *booking, a *attempt) error {
	if err := withinLimit(ctx, tx, b); err != nil {
		return err
	}
	if err := takeSeats(ctx, tx, b); err != nil {
		return err
	}
	if err := takeAreas(ctx, tx, b); err != nil {
		return err
	}
	if err := issueTickets(ctx, tx, b); err != nil {
		return err
	}
	if err := moveBooking(ctx, tx, b.ID, BookingSold); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE bookings SET mirror_due = true WHERE id = $1`, b.ID); err != nil {
		return err
	}
	return moveAttempt(ctx, tx, a.ID, AttemptCapturing, "")
}

// withinLimit counts the account's live tickets under a lock of its own, so
// that two bookings of one account cannot both be the last allowed.
func withinLimit(ctx context.Context, tx pgx.Tx, b *booking) error {
	_, err := tx.Exec(ctx, `INSERT INTO buyers (event_id, user_id) VALUES ($1, $2)
		ON CONFLICT (event_id, user_id) DO UPDATE SET user_id = excluded.user_id`, b.Event, b.User)
	if err != nil {
		return err
	}
	var ok bool
	err = tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM tickets WHERE event_id = $1 AND user_id = $2 AND state = 'live') + $3
			<= (SELECT seats_per_user FROM events WHERE id = $1)`, b.Event, b.User, b.places()).Scan(&ok)
	if err == nil && !ok {
		err = &LostError{Reason: ReasonAccountLimit}
	}
	return err
}

// places counts the seats and the places without a number.
func (b *booking) places() int {
	n := len(b.Seats)
	for _, places := range b.Areas {
		n += places
	}
	return n
}

// takeSeats is the verdict on seats: as many rows change as seats are asked
// for, or the booking is lost.
func takeSeats(ctx context.Context, tx pgx.Tx, b *booking) error {
	gone, err := lockSeats(ctx, tx, b)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `UPDATE seats SET status = 'sold', booking_id = $3, mirror_due = true
		WHERE event_id = $1 AND i = ANY($2) AND status = 'available'`, b.Event, b.Seats, b.ID)
	if err != nil {
		return err
	}
	if tag.RowsAffected() != int64(len(b.Seats)) {
		return &LostError{Reason: ReasonSeatsGone, Seats: gone}
	}
	return nil
}

// lockSeats locks the seats of a booking in ascending order and returns those
// that cannot be had. Materialized, or only the available ones would be locked
// and one that is just coming back would not be waited for.
func lockSeats(ctx context.Context, tx pgx.Tx, b *booking) (gone []int, err error) {
	rows, err := tx.Query(ctx, `WITH locked AS MATERIALIZED (
			SELECT i, status FROM seats WHERE event_id = $1 AND i = ANY($2) ORDER BY i FOR UPDATE
		) SELECT i FROM locked WHERE status = 'available'`, b.Event, b.Seats)
	if err != nil {
		return nil, err
	}
	free, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, err
	}
	for _, i := range b.Seats {
		if !slices.Contains(free, i) {
			gone = append(gone, i)
		}
	}
	return gone, nil
}

func takeAreas(ctx context.Context, tx pgx.Tx, b *booking) error {
	for _, area := range slices.Sorted(maps.Keys(b.Areas)) {
		tag, err := tx.Exec(ctx, `UPDATE areas SET sold = sold + $3, mirror_due = true
			WHERE event_id = $1 AND area = $2 AND sold + $3 <= capacity`, b.Event, area, b.Areas[area])
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return &LostError{Reason: ReasonAreaFull, Areas: []string{area}}
		}
	}
	return nil
}

func issueTickets(ctx context.Context, tx pgx.Tx, b *booking) error {
	q, err := b.quote()
	if err != nil {
		return err
	}
	var rows [][]any
	for _, seat := range q.Seats {
		rows = append(rows, []any{newID("tk_"), b.Event, b.ID, b.User, seat.I, nil, seat.Price})
	}
	for _, area := range q.Areas {
		for range area.Quantity {
			rows = append(rows, []any{newID("tk_"), b.Event, b.ID, b.User, nil, area.Area, area.Price})
		}
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"tickets"},
		[]string{"id", "event_id", "booking_id", "user_id", "i", "area", "price"}, pgx.CopyFromRows(rows))
	return err
}

// ticketed returns the seats of a booking that have a live ticket already.
func ticketed(ctx context.Context, tx pgx.Tx, b *booking) ([]int, error) {
	rows, err := tx.Query(ctx, `SELECT i FROM tickets WHERE event_id = $1 AND i = ANY($2) AND state = 'live' ORDER BY i`, b.Event, b.Seats)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// unsell takes a sale back whose money was promised and then not given:
// tickets void, seats and places free again, the booking lost.
func unsell(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment, out *outcome) error {
	if err := moveAttempt(ctx, tx, a.ID, AttemptCaptureRefused, p.Reason); err != nil {
		return err
	}
	if _, err := lockSeats(ctx, tx, b); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE seats SET status = 'available', booking_id = NULL, mirror_due = true
		WHERE event_id = $1 AND i = ANY($2) AND status = 'sold' AND booking_id = $3`, b.Event, b.Seats, b.ID)
	if err != nil {
		return err
	}
	for _, area := range slices.Sorted(maps.Keys(b.Areas)) {
		_, err := tx.Exec(ctx, `UPDATE areas SET sold = sold - $3, mirror_due = true WHERE event_id = $1 AND area = $2`,
			b.Event, area, b.Areas[area])
		if err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `UPDATE tickets SET state = 'void' WHERE booking_id = $1 AND state = 'live'`, b.ID); err != nil {
		return err
	}
	out.mirror = true
	return lose(ctx, tx, b, &LostError{Reason: ReasonCaptureRefused})
}

func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}
