package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// booking is a row of bookings.
type booking struct {
	ID, Event, Token, User string
	State                  BookingState
	Unheld                 bool // taken while the event was without holds
	Seats                  []int
	Areas                  map[string]int
	Operator, Note         string // of the box office
	Quote                  json.RawMessage
	Money                  seatmap.Money
	Hash                   string
	First, Deadline, Cap   time.Time
	Reason                 string
	LostSeats              []int
	LostAreas              []string

	Now time.Time // what Postgres's clock said when the row was read
}

const bookingColumns = `id, event_id, user_id, state, NOT holds, seats, areas, quote, amount, currency, request_hash,
	first_held_at, deadline, cap_at, reason, lost_seats, lost_areas, operator, note, clock_timestamp()`

func scanBooking(row pgx.Row) (*booking, error) {
	var b booking
	err := row.Scan(&b.ID, &b.Event, &b.User, &b.State, &b.Unheld, &b.Seats, &b.Areas, &b.Quote, &b.Money.Amount, &b.Money.Currency, &b.Hash,
		&b.First, &b.Deadline, &b.Cap, &b.Reason, &b.LostSeats, &b.LostAreas, &b.Operator, &b.Note, &b.Now)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoBooking
	}
	if err != nil {
		return nil, err
	}
	_, b.Token, _ = strings.Cut(b.ID, ".")
	return &b, nil
}

// attempt is a row of attempts.
type attempt struct {
	ID, Booking   string
	State         AttemptState
	Provider, Ref string // Ref is empty until the provider's answer is known
	Method        string
	Hash          string
	Money         seatmap.Money
	VoidDue       bool
	Reason        string
	Card, Dispute string // as Payment has them
	Refunded      int64  // likewise
	Begun, Asked  time.Time
}

const attemptColumns = `id, booking_id, state, provider, provider_ref, method, request_hash, amount, currency, void_due, reason, card, dispute, refunded, created_at, asked_at`

func scanAttempt(row pgx.Row) (*attempt, error) {
	var a attempt
	err := row.Scan(&a.ID, &a.Booking, &a.State, &a.Provider, &a.Ref, &a.Method, &a.Hash,
		&a.Money.Amount, &a.Money.Currency, &a.VoidDue, &a.Reason, &a.Card, &a.Dispute, &a.Refunded, &a.Begun, &a.Asked)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrUnknownPayment
	}
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// booking returns a booking's row, or ErrNoBooking.
func (s *Store) booking(ctx context.Context, id string) (*booking, error) {
	if _, _, ok := seatmap.ParseBookingID(id); !ok { // nor may all text be asked for
		return nil, ErrNoBooking
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	b, err := scanBooking(s.pool.QueryRow(ctx, `SELECT `+bookingColumns+` FROM bookings WHERE id = $1`, id))
	return b, pg.Said("read booking "+id, err)
}

func (s *Store) attempt(ctx context.Context, id string) (*attempt, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	a, err := scanAttempt(s.pool.QueryRow(ctx, `SELECT `+attemptColumns+` FROM attempts WHERE id = $1`, id))
	return a, pg.Said("read attempt "+id, err)
}

// attempts returns the attempts of a booking, oldest first.
func (s *Store) attempts(ctx context.Context, booking string) ([]*attempt, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	all, err := attemptsOf(ctx, s.pool, booking)
	return all, pg.Said("read attempts of "+booking, err)
}

func attemptsOf(ctx context.Context, q querier, booking string) ([]*attempt, error) {
	rows, err := q.Query(ctx, `SELECT `+attemptColumns+` FROM attempts WHERE booking_id = $1 ORDER BY created_at, id`, booking)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*attempt, error) { return scanAttempt(row) })
}

// attemptFor returns the attempt of a booking that a shopper's idempotency key
// made, or ErrUnknownPayment.
func attemptFor(ctx context.Context, q querier, booking, key string) (*attempt, error) {
	return scanAttempt(q.QueryRow(ctx,
		`SELECT `+attemptColumns+` FROM attempts WHERE booking_id = $1 AND idempotency_key = $2`, booking, key))
}

func lockBooking(ctx context.Context, tx pgx.Tx, id string) (*booking, error) {
	return scanBooking(tx.QueryRow(ctx, `SELECT `+bookingColumns+` FROM bookings WHERE id = $1 FOR UPDATE`, id))
}

// moveBooking takes a booking along an arrow of its machine, or fails with a
// TransitionError. Where it came to nothing the mirror gives its hold back.
func moveBooking(ctx context.Context, tx pgx.Tx, id string, to BookingState) error {
	tag, err := tx.Exec(ctx, `UPDATE bookings SET state = $2, mirror_due = mirror_due OR $2 IN `+cameToNothing+`, updated_at = now()
		WHERE id = $1 AND state = ANY($3)`, id, to, bookingMoves[to])
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	var from string
	if err := tx.QueryRow(ctx, `SELECT state FROM bookings WHERE id = $1`, id).Scan(&from); err != nil {
		return err
	}
	return &TransitionError{Machine: "booking", ID: id, From: from, To: string(to)}
}

// moveAttempt takes an attempt along an arrow of its machine, or fails with a
// TransitionError.
func moveAttempt(ctx context.Context, tx pgx.Tx, id string, to AttemptState, reason string) error {
	tag, err := tx.Exec(ctx, `UPDATE attempts SET state = $2, reason = $3, updated_at = now(), asked_at = now(),
		void_due = void_due AND $2 = 'authorized' WHERE id = $1 AND state = ANY($4)`,
		id, to, reason, attemptMoves[to])
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	var from string
	if err := tx.QueryRow(ctx, `SELECT state FROM attempts WHERE id = $1`, id).Scan(&from); err != nil {
		return err
	}
	return &TransitionError{Machine: "attempt", ID: id, From: from, To: string(to)}
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// setDeadline follows a hold that was extended. It never goes back.
func setDeadline(ctx context.Context, q execer, id string, deadline time.Time) error {
	_, err := q.Exec(ctx, `UPDATE bookings SET deadline = least(greatest(deadline, $2), cap_at), updated_at = now()
		WHERE id = $1 AND state IN ('held', 'paying')`, id, deadline)
	return err
}
