package checkout

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
)

// selling is an event whose mode matters now.
type selling struct {
	ID     string
	Unheld bool
}

// selling returns the events on sale, those with an open booking, and those in the
// mode.
// An event that opens sooner than the mode can be judged is on sale.
func (s *Store) selling(ctx context.Context, soon time.Duration) ([]selling, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT id, unheld_since IS NOT NULL FROM events
		WHERE unheld_since IS NOT NULL
			OR state = 'open' AND opens_at <= now() + $1::interval AND starts_at > now() - interval '1 day'
			OR id IN (SELECT event_id FROM bookings WHERE state IN ('held', 'paying'))
		ORDER BY id`, soon)
	if err != nil {
		return nil, pg.Said("look for events on sale", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[selling])
	return events, pg.Said("look for events on sale", err)
}

// forgotten is a node that has said nothing for so long.
const forgotten = time.Hour

// answered notes that Redis has just answered a node, but for some events, and
// forgets nodes that are long gone.
func (s *Store) answered(ctx context.Context, node string, silent []string) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	if silent == nil {
		silent = []string{}
	}
	_, err := s.pool.Exec(ctx, `INSERT INTO nodes (id, redis_ok_at, silent) VALUES ($1, clock_timestamp(), $2)
		ON CONFLICT (id) DO UPDATE SET redis_ok_at = excluded.redis_ok_at, silent = excluded.silent`, node, silent)
	if err != nil {
		return pg.Said("note that Redis answers", err)
	}
	_, err = s.pool.Exec(ctx, `DELETE FROM nodes WHERE id IN (
		SELECT id FROM nodes WHERE redis_ok_at < now() - $1::interval ORDER BY id FOR UPDATE SKIP LOCKED)`, forgotten)
	return pg.Said("forget nodes", err)
}

// endHolds puts those of the events into the mode without holds for which Redis has
// answered no node lately, and returns them. A node that notes an answer does so
// before, and is seen, or sees the mode. Of two nodes that judge, one does so after
// the other.
func (s *Store) endHolds(ctx context.Context, events []string, stale time.Duration) (entered []string, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			UPDATE events e SET unheld_since = clock_timestamp()
			WHERE id = ANY($1) AND unheld_since IS NULL AND NOT EXISTS (
				SELECT FROM nodes WHERE redis_ok_at > clock_timestamp() - $2::interval AND NOT e.id = ANY(silent))
			RETURNING id`, events, stale)
		if err != nil {
			return err
		}
		entered, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return entered, pg.Said("end holds", err)
}

// beginHolds ends the mode of an event once renew has made its keys anew, while
// nobody makes a booking without a hold, and returns since when it was in it; zero
// when it was not. An error of renew leaves it in the mode.
func (s *Store) beginHolds(ctx context.Context, event string, renew func(context.Context) error) (since time.Time, err error) {
	var began *time.Time
	err = s.underLock(ctx, event, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(`+modeLock+`)`, event); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT unheld_since FROM events WHERE id = $1`, event).Scan(&began); err != nil || began == nil {
			return err
		}
		if err := renew(ctx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE events SET unheld_since = NULL WHERE id = $1`, event)
		return err
	})
	if err != nil || began == nil {
		return time.Time{}, pg.Said("hold seats of "+event+" again", err)
	}
	return *began, nil
}

// overSince returns the bookings that came to nothing since then: their holds, if
// Redis has kept them, nobody has given back.
func (s *Store) overSince(ctx context.Context, event string, since time.Time) ([]*booking, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+bookingColumns+` FROM bookings
		WHERE event_id = $1 AND state IN ('released', 'expired', 'lost') AND updated_at >= $2`, event, since)
	if err != nil {
		return nil, pg.Said("look for holds to give back", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*booking, error) { return scanBooking(row) })
	return all, pg.Said("look for holds to give back", err)
}

// alone says whether Redis has answered another node lately, and not this one
// since; it is not merely this one's turn to ask when two rounds lie between.
func (s *Store) alone(ctx context.Context, node string, stale, rounds time.Duration) (alone bool, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err = s.pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM nodes WHERE id <> $1 AND redis_ok_at > clock_timestamp() - $2::interval
			AND redis_ok_at > coalesce((SELECT redis_ok_at + $3::interval FROM nodes WHERE id = $1), '-infinity'))`,
		node, stale, rounds).Scan(&alone)
	return alone, pg.Said("look for other nodes", err)
}

func (s *Store) unheldEvents(ctx context.Context) (n int, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM events WHERE unheld_since IS NOT NULL`).Scan(&n)
	return n, pg.Said("count events without holds", err)
}
