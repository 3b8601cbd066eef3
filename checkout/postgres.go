package checkout

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"seatcast/internal/pg"
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
const patience = 3 * time.Second

func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}

func (s *Store) extended(ctx context.Context, id string, deadline time.Time) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	return pg.Said("extend booking "+id, setDeadline(ctx, s.pool, id, deadline))
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
	return open, pg.Said("stop payment of "+id, err)
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
	return pg.Said("close booking "+id, err)
}

// asked notes that the provider is being asked about an attempt, so that one
// that does not answer is not asked again at once.
func (s *Store) asked(ctx context.Context, id string) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	_, err := s.pool.Exec(ctx, `UPDATE attempts SET asked_at = now() WHERE id = $1`, id)
	return pg.Said("note question about "+id, err)
}

// overdue returns the bookings that need the reconciler: an attempt or a refund that has
// been open for too long without word, or a deadline that is behind. Of very many it returns
// any, so that those that stay overdue keep no others waiting.
func (s *Store) overdue(ctx context.Context, askAfter time.Duration) ([]string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT id FROM (
			SELECT id FROM bookings WHERE state IN ('held', 'paying') AND deadline <= now()
			UNION
			SELECT booking_id FROM attempts WHERE state IN ('created', 'authorized', 'capturing', 'refunding') AND asked_at <= now() - $1::interval
			UNION
			SELECT booking_id FROM refunds WHERE state = 'pending' AND asked_at <= now() - $1::interval
		) overdue ORDER BY random() LIMIT 500`, askAfter)
	if err != nil {
		return nil, pg.Said("look for overdue bookings", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, pg.Said("look for overdue bookings", err)
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
		return nil, pg.Said("look for holds that end", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*booking, error) { return scanBooking(row) })
	return all, pg.Said("look for holds that end", err)
}

// newID returns a name nobody can guess.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }
