package checkout

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"seatcast/checkout/outgoing"
)

// arbitrate sells every seat and place of a booking, or changes nothing and
// says what was gone. It is a savepoint: the caller's transaction goes on
// either way.
func (s *Store) arbitrate(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment) (*LostError, error) {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		return s.sell(ctx, tx, b, a, p)
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

func (s *Store) sell(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment) error {
	if err := withinLimit(ctx, tx, b); err != nil {
		return err
	}
	if err := withinCard(ctx, tx, b, a); err != nil {
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
	to := AttemptCapturing
	if p.State == PaymentCaptured {
		to = AttemptCaptured
	}
	if err := moveAttempt(ctx, tx, a.ID, to, ""); err != nil {
		return err
	}
	return s.announceBooking(ctx, tx, outgoing.BookingSold, b.ID)
}

// withinLimit counts the account's live tickets under a lock of its own, so
// that two bookings of one account cannot both be the last allowed. What the
// box office holds for an account may be more. Of an event that is cancelled
// none is allowed; a sale that does not see that yet is refunded as the others.
func withinLimit(ctx context.Context, tx pgx.Tx, b *booking) error {
	if err := countAnew(ctx, tx, b); err != nil {
		return err
	}
	var cancelled, ok bool
	err := tx.QueryRow(ctx, `
		SELECT state = 'cancelled', (SELECT count(*) FROM tickets WHERE event_id = $1 AND user_id = $2 AND state = 'live') + $3 <= seats_per_user
		FROM events WHERE id = $1`, b.Event, b.User, b.places()).Scan(&cancelled, &ok)
	switch {
	case err != nil:
		return err
	case cancelled:
		return &LostError{Reason: ReasonCancelled}
	case !ok && b.Operator == "":
		return &LostError{Reason: ReasonAccountLimit}
	}
	return nil
}

// countAnew locks the account of a booking, and has Redis told how many tickets
// it has once this transaction is done.
func countAnew(ctx context.Context, tx pgx.Tx, b *booking) error {
	_, err := tx.Exec(ctx, `INSERT INTO buyers (event_id, user_id) VALUES ($1, $2)
		ON CONFLICT (event_id, user_id) DO UPDATE SET changes = buyers.changes + 1`, b.Event, b.User)
	return err
}

// withinCard counts the live tickets that were paid for with a card, whoever's
// they are, under a lock of its own: two accounts with one card cannot both have
// the last allowed. A card that its provider does not tell is not counted.
func withinCard(ctx context.Context, tx pgx.Tx, b *booking, a *attempt) error {
	if a.Card == "" || b.Operator != "" {
		return nil
	}
	var limit, paid int
	err := tx.QueryRow(ctx, `INSERT INTO cards (event_id, card) SELECT id, $2 FROM events WHERE id = $1 AND seats_per_card > 0
		ON CONFLICT (event_id, card) DO UPDATE SET card = excluded.card
		RETURNING (SELECT seats_per_card FROM events WHERE id = $1)`, b.Event, a.Card).Scan(&limit)
	if errors.Is(err, pgx.ErrNoRows) { // the event limits no card
		return nil
	}
	if err != nil {
		return err
	}
	err = tx.QueryRow(ctx, `SELECT count(*) FROM attempts a JOIN tickets t ON t.booking_id = a.booking_id
		WHERE a.card = $2 AND a.card <> '' AND a.state IN ('capturing', 'captured') AND t.event_id = $1 AND t.state = 'live'`,
		b.Event, a.Card).Scan(&paid)
	if err == nil && paid+b.places() > limit {
		err = &LostError{Reason: ReasonCardLimit}
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
			WHERE event_id = $1 AND area = $2 AND sold + $3 <= capacity AND NOT closed`, b.Event, area, b.Areas[area])
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
		rows = append(rows, []any{newID("tk_"), b.Event, b.ID, b.User, seat.I, nil, seat.AllIn, seat.AllIn - seat.Price})
	}
	for _, area := range q.Areas {
		for _, allIn := range area.Places() {
			rows = append(rows, []any{newID("tk_"), b.Event, b.ID, b.User, nil, area.Area, allIn, allIn - area.Price})
		}
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"tickets"},
		[]string{"id", "event_id", "booking_id", "user_id", "i", "area", "price", "fees"}, pgx.CopyFromRows(rows))
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

// unsell takes a sale back whose money was promised and then not given, or not
// as it was agreed: tickets void, seats and places free again unless closed meanwhile, the
// booking lost.
func (s *Store) unsell(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, to AttemptState, reason string, out *outcome) error {
	if err := moveAttempt(ctx, tx, a.ID, to, reason); err != nil {
		return err
	}
	if err := countAnew(ctx, tx, b); err != nil { // before the seats, as sell does
		return err
	}
	if err := returnSeats(ctx, tx, &refund{Event: b.Event, Booking: b.ID, Seats: SeatsOnSale}, b.Seats); err != nil {
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
	why := ReasonCaptureRefused
	if to == AttemptRefunding {
		why = ReasonWrongAmount
	}
	return s.lose(ctx, tx, b, &LostError{Reason: why})
}

func violates(err error, constraint string) bool {
	var verdict *pgconn.PgError
	return errors.As(err, &verdict) && verdict.Code == "23505" && verdict.ConstraintName == constraint
}
