package checkout

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"seatcast/seatmap"
)

// Store is what Postgres keeps of checkout: bookings, attempts, tickets, and
// the jobs that follow from them.
type Store struct {
	pool *pgxpool.Pool
	jobs *river.Client[pgx.Tx] // inserts only
}

// NewStore returns the store of a migrated database. It does no I/O.
func NewStore(pool *pgxpool.Pool) (*Store, error) {
	jobs, err := inserter(pool)
	if err != nil {
		return nil, fmt.Errorf("checkout: job queue: %w", err)
	}
	return &Store{pool: pool, jobs: jobs}, nil
}

// patience is how long one call may take. A Postgres that hangs is away: who
// asks is told so while he still listens.
const patience = 1500 * time.Millisecond

func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}

// booking is a row of bookings.
type booking struct {
	ID, Event, Token, User string
	State                  BookingState
	Seats                  []int
	Areas                  map[string]int
	Quote                  json.RawMessage
	Money                  seatmap.Money
	Hash                   string
	First, Deadline, Cap   time.Time
	Reason                 string
	LostSeats              []int
	LostAreas              []string

	Now time.Time // what Postgres's clock said when the row was read
}

const bookingColumns = `id, event_id, user_id, state, seats, areas, quote, amount, currency, request_hash,
	first_held_at, deadline, cap_at, reason, lost_seats, lost_areas, clock_timestamp()`

func scanBooking(row pgx.Row) (*booking, error) {
	var b booking
	err := row.Scan(&b.ID, &b.Event, &b.User, &b.State, &b.Seats, &b.Areas, &b.Quote, &b.Money.Amount, &b.Money.Currency, &b.Hash,
		&b.First, &b.Deadline, &b.Cap, &b.Reason, &b.LostSeats, &b.LostAreas, &b.Now)
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
	Asked         time.Time
}

const attemptColumns = `id, booking_id, state, provider, provider_ref, method, request_hash, amount, currency, void_due, reason, asked_at`

func scanAttempt(row pgx.Row) (*attempt, error) {
	var a attempt
	err := row.Scan(&a.ID, &a.Booking, &a.State, &a.Provider, &a.Ref, &a.Method, &a.Hash,
		&a.Money.Amount, &a.Money.Currency, &a.VoidDue, &a.Reason, &a.Asked)
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
	ctx, cancel := patient(ctx)
	defer cancel()
	b, err := scanBooking(s.pool.QueryRow(ctx, `SELECT `+bookingColumns+` FROM bookings WHERE id = $1`, id))
	return b, said("read booking "+id, err)
}

func (s *Store) attempt(ctx context.Context, id string) (*attempt, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	a, err := scanAttempt(s.pool.QueryRow(ctx, `SELECT `+attemptColumns+` FROM attempts WHERE id = $1`, id))
	return a, said("read attempt "+id, err)
}

// attempts returns the attempts of a booking, oldest first.
func (s *Store) attempts(ctx context.Context, booking string) ([]*attempt, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	all, err := attemptsOf(ctx, s.pool, booking)
	return all, said("read attempts of "+booking, err)
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
// TransitionError.
func moveBooking(ctx context.Context, tx pgx.Tx, id string, to BookingState) error {
	tag, err := tx.Exec(ctx, `UPDATE bookings SET state = $2, updated_at = now() WHERE id = $1 AND state = ANY($3)`,
		id, to, bookingMoves[to])
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

// maxOpenAttempts bounds how many authorisations one booking may ask for at
// the same time.
const maxOpenAttempts = 5

// begin writes the booking, if it has no row yet, and a new attempt at paying
// it. A shopper's key that made an attempt before answers that one (fresh is
// false), or ErrReused when it was for another request.
func (s *Store) begin(ctx context.Context, b *booking, a *attempt, key string) (made *attempt, fresh bool, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := insertBooking(ctx, tx, b); err != nil {
			return err
		}
		row, err := lockBooking(ctx, tx, b.ID)
		if err != nil {
			return err
		}
		made, err = repeatOf(ctx, tx, b.ID, key, a.Hash)
		if made != nil || err != nil {
			return err
		}
		if err := toPaying(ctx, tx, row, b.Deadline); err != nil {
			return err
		}
		a.Money = row.Money // the price was agreed with the first payment
		made, fresh = a, true
		return insertAttempt(ctx, tx, a, key)
	})
	return made, fresh, said("begin payment of "+b.ID, err)
}

func insertBooking(ctx context.Context, tx pgx.Tx, b *booking) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO bookings (id, event_id, user_id, state, seats, areas, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
		VALUES ($1, $2, $3, 'paying', $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (id) DO NOTHING`,
		b.ID, b.Event, b.User, b.Seats, b.Areas, b.Money.Currency, b.Money.Amount, b.Quote, b.Hash, b.First, b.Deadline, b.Cap)
	return err
}

// repeat returns the attempt a shopper's key has made already, or nil.
func (s *Store) repeat(ctx context.Context, booking, key, hash string) (*attempt, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	a, err := repeatOf(ctx, s.pool, booking, key, hash)
	return a, said("read payment of "+booking, err)
}

func repeatOf(ctx context.Context, q querier, booking, key, hash string) (*attempt, error) {
	if key == "" {
		return nil, nil
	}
	a, err := attemptFor(ctx, q, booking, key)
	switch {
	case errors.Is(err, ErrUnknownPayment):
		return nil, nil
	case err != nil:
		return nil, err
	case a.Hash != hash:
		return nil, ErrReused
	}
	return a, nil
}

func toPaying(ctx context.Context, tx pgx.Tx, b *booking, deadline time.Time) error {
	switch b.State {
	case BookingPaying:
	case BookingHeld:
		if err := moveBooking(ctx, tx, b.ID, BookingPaying); err != nil {
			return err
		}
	case BookingExpired, BookingReleased:
		return seatmap.ErrHoldExpired
	default:
		return ErrFinal
	}
	var open int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM attempts WHERE booking_id = $1 AND state IN ('created', 'authorized')`, b.ID).Scan(&open)
	if err != nil {
		return err
	}
	if open >= maxOpenAttempts {
		return ErrInProgress
	}
	return setDeadline(ctx, tx, b.ID, deadline)
}

func insertAttempt(ctx context.Context, tx pgx.Tx, a *attempt, key string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO attempts (id, booking_id, state, provider, method, idempotency_key, request_hash, currency, amount)
		VALUES ($1, $2, $3, $4, $5, NULLIF($6, ''), $7, $8, $9)`,
		a.ID, a.Booking, a.State, a.Provider, a.Method, key, a.Hash, a.Money.Currency, a.Money.Amount)
	return err
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

func (s *Store) extended(ctx context.Context, id string, deadline time.Time) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	return said("extend booking "+id, setDeadline(ctx, s.pool, id, deadline))
}

// stop marks the open attempts of a booking for voiding, so that a verdict
// that comes meanwhile cannot sell, and returns them. It answers none when
// nothing is open.
func (s *Store) stop(ctx context.Context, id string) (open []*attempt, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		open = nil
		b, err := lockBooking(ctx, tx, id)
		if err != nil {
			return err
		}
		if b.State != BookingPaying {
			return nil
		}
		open, err = s.voidOpen(ctx, tx, id)
		return err
	})
	return open, said("stop payment of "+id, err)
}

// close ends a booking nothing is being paid for: released by its owner, or
// expired once its deadline is behind. ErrInProgress while an attempt is open.
func (s *Store) close(ctx context.Context, id string, to BookingState) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b, err := lockBooking(ctx, tx, id)
		if err != nil {
			return err
		}
		if b.State == to {
			return nil
		}
		if b.State == BookingPaying || to == BookingExpired && b.Deadline.After(b.Now) {
			return ErrInProgress
		}
		return moveBooking(ctx, tx, id, to)
	})
	return said("close booking "+id, err)
}

// asked notes that the provider is being asked about an attempt, so that one
// that does not answer is not asked again at once.
func (s *Store) asked(ctx context.Context, id string) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	_, err := s.pool.Exec(ctx, `UPDATE attempts SET asked_at = now() WHERE id = $1`, id)
	return said("note question about "+id, err)
}

// overdue returns the bookings that need the reconciler: an attempt that has
// been open for too long without word, or a deadline that is behind. Of very many it returns
// any, so that those that stay overdue keep no others waiting.
func (s *Store) overdue(ctx context.Context, askAfter time.Duration) ([]string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT id FROM (
			SELECT id FROM bookings WHERE state IN ('held', 'paying') AND deadline <= now()
			UNION
			SELECT booking_id FROM attempts WHERE state IN ('created', 'authorized', 'capturing') AND asked_at <= now() - $1::interval
		) overdue ORDER BY random() LIMIT 500`, askAfter)
	if err != nil {
		return nil, said("look for overdue bookings", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, said("look for overdue bookings", err)
}

// ending returns the bookings under payment whose hold ends soon and may last
// longer.
func (s *Store) ending(ctx context.Context, ahead time.Duration) ([]*booking, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT `+bookingColumns+` FROM bookings
		WHERE state = 'paying' AND deadline < cap_at AND deadline > now() AND deadline <= now() + $1::interval
		ORDER BY deadline LIMIT 500`, ahead)
	if err != nil {
		return nil, said("look for holds that end", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*booking, error) { return scanBooking(row) })
	return all, said("look for holds that end", err)
}

// ticket is one seat or place of a sold booking.
type ticket struct {
	ID    string
	Seat  *int // or Area
	Area  *string
	Price int64
	Live  bool
	Paid  bool // its money is captured
}

func (s *Store) tickets(ctx context.Context, booking string) ([]ticket, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT id, i, area, price, state = 'live',
			EXISTS (SELECT FROM attempts WHERE booking_id = t.booking_id AND state = 'captured')
		FROM tickets t WHERE booking_id = $1 ORDER BY i NULLS LAST, area, id`, booking)
	if err != nil {
		return nil, said("read tickets of "+booking, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t ticket, err error) {
		return t, row.Scan(&t.ID, &t.Seat, &t.Area, &t.Price, &t.Live, &t.Paid)
	})
	return all, said("read tickets of "+booking, err)
}

// newID returns a name nobody can guess.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// said names the call an error came from, and makes one of a database that
// does not answer seatmap.ErrUnavailable.
func said(call string, err error) error {
	switch {
	case err == nil:
		return nil
	case down(err):
		return fmt.Errorf("%s: %w: %w", call, seatmap.ErrUnavailable, err)
	default:
		return fmt.Errorf("%s: %w", call, err)
	}
}

func down(err error) bool {
	var (
		pg   *pgconn.PgError
		conn *pgconn.ConnectError
		wire net.Error
	)
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", "53", "57": // connection, resources, operator intervention
			return true
		}
		return pg.Code == "55P03" || pg.Code == "40P01" || pg.Code == "25006" // lock timeout, deadlock, a standby
	}
	return errors.As(err, &conn) || errors.As(err, &wire) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}
