package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"seatcast/seatmap"
)

// commit publishes a draft in one transaction, before by, or changes nothing.
// An error is certain when it is known that nothing was.
//
// Seats are locked in ascending order and then areas by name, behind the
// event's lock, as everywhere; no booking is.
func (s *Store) commit(ctx context.Context, d *draft, by time.Time) (certain bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	certain = true
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if err := lockEvent(ctx, tx, d); err != nil {
			return err
		}
		if err := stillFree(ctx, tx, d); err != nil {
			return err
		}
		if err := write(ctx, tx, d); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		certain = false
		return nil
	})
	if busy(err) {
		err = fmt.Errorf("%w: %w", seatmap.ErrUnavailable, err)
	}
	return certain, translate(err)
}

// busy says that Postgres let others go first: a lock was not to be had in time,
// two waited for each other, or this publisher stood still.
func busy(err error) bool {
	var verdict *pgconn.PgError
	return errors.As(err, &verdict) && slices.Contains([]string{"55P03", "40P01", "25P03"}, verdict.Code)
}

// lockEvent has Redis told of nothing until the end of tx, and sees that the
// draft is of the chart in force. A publisher that is stopped for longer than
// its seats are held must not go on: the server ends its transaction.
func lockEvent(ctx context.Context, tx pgx.Tx, d *draft) error {
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '5s'`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, seatmap.LockName(d.Event)); err != nil {
		return err
	}
	var same, held bool
	err := tx.QueryRow(ctx, `SELECT chart_version = $2, unheld_since IS NULL FROM events WHERE id = $1 FOR NO KEY UPDATE`, d.Event, d.version).
		Scan(&same, &held)
	switch {
	case err == nil && !same:
		return ErrOvertaken
	case err == nil && !held && len(d.free) > 0: // what was set aside may be booked without a hold
		return fmt.Errorf("%w: %s is sold without holds", seatmap.ErrUnavailable, d.Event)
	}
	return err
}

// stillFree locks every seat that is written, and judges once more what the
// draft takes away. A seat that can be held now was set aside, or another could
// hold it.
func stillFree(ctx context.Context, tx pgx.Tx, d *draft) error {
	written := slices.Concat(d.drop, d.restore)
	for _, seat := range d.recast {
		written = append(written, seat.I)
	}
	rows, err := tx.Query(ctx, `WITH locked AS MATERIALIZED (
			SELECT i, status FROM seats WHERE event_id = $1 AND i = ANY($2) ORDER BY i FOR UPDATE
		) SELECT i FROM locked WHERE status = 'available' AND i = ANY($3)`, d.Event, written, d.drop)
	if err != nil {
		return err
	}
	free, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return err
	}
	used, err := readInUse(ctx, tx, d)
	if err == nil {
		err = used.err()
	}
	if err != nil {
		return err
	}
	for _, i := range free {
		if _, aside := slices.BinarySearch(d.free, i); !aside {
			return ErrOvertaken
		}
	}
	return nil
}

func write(ctx context.Context, tx pgx.Tx, d *draft) error {
	for _, step := range []func(context.Context, pgx.Tx, *draft) error{writeSeats, writeAreas, writePrices, writeVersion} {
		if err := step(ctx, tx, d); err != nil {
			return err
		}
	}
	return nil
}

func writeSeats(ctx context.Context, tx pgx.Tx, d *draft) error {
	var batch pgx.Batch
	batch.Queue(`UPDATE seats SET dropped = true, status = 'unavailable' WHERE event_id = $1 AND i = ANY($2)`, d.Event, d.drop)
	batch.Queue(`UPDATE seats SET dropped = false,
			status = CASE WHEN killed IS NOT NULL OR off_sale OR channel_closed THEN 'unavailable' ELSE 'available' END
		WHERE event_id = $1 AND i = ANY($2)`, d.Event, d.restore)
	indexes, categories := make([]int, len(d.recast)), make([]string, len(d.recast))
	for k, seat := range d.recast {
		indexes[k], categories[k] = seat.I, seat.Category
	}
	batch.Queue(`UPDATE seats SET category = n.category FROM unnest($2::int[], $3::text[]) AS n(i, category)
		WHERE event_id = $1 AND seats.i = n.i`, d.Event, indexes, categories)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	return insertSeats(ctx, tx, d.Event, d.add)
}

// writeAreas leaves an area that is no more without a place, for tickets that
// were void before may be of it.
func writeAreas(ctx context.Context, tx pgx.Tx, d *draft) error {
	ids := make([]string, len(d.next.Areas))
	var batch pgx.Batch
	for k, a := range d.next.Areas {
		ids[k] = a.ID
		batch.Queue(`INSERT INTO areas (event_id, area, category, capacity) VALUES ($1, $2, $3, $4)
			ON CONFLICT (event_id, area) DO UPDATE SET category = excluded.category, capacity = excluded.capacity`, d.Event, a.ID, a.Category, a.Capacity)
	}
	batch.Queue(`UPDATE areas SET capacity = 0 WHERE event_id = $1 AND area <> ALL($2)`, d.Event, ids)
	batch.Queue(`DELETE FROM sold_out WHERE event_id = $1 AND (EXISTS (SELECT FROM seats WHERE event_id = $1 AND status = 'available')
		OR EXISTS (SELECT FROM areas WHERE event_id = $1 AND free > 0))`, d.Event) // it may be sold out once more
	return tx.SendBatch(ctx, &batch).Close()
}

func writePrices(ctx context.Context, tx pgx.Tx, d *draft) error {
	_, err := tx.Exec(ctx, `DELETE FROM prices WHERE event_id = $1 AND NOT $2::jsonb ? category`, d.Event, d.prices)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO prices (event_id, category, amount) SELECT $1, key, value::bigint FROM jsonb_each_text($2)
		ON CONFLICT (event_id, category) DO UPDATE SET amount = excluded.amount`, d.Event, d.prices)
	return err
}

// writeVersion puts the chart in force.
func writeVersion(ctx context.Context, tx pgx.Tx, d *draft) error {
	if !d.another() {
		return nil
	}
	var batch pgx.Batch
	batch.Queue(`INSERT INTO charts (sha, name, seats, body) VALUES ($1, $2, $3, $4) ON CONFLICT (sha) DO NOTHING`,
		d.sha, d.next.Name, d.next.Seats, d.body)
	batch.Queue(`UPDATE events SET chart_sha = $2, chart_version = chart_version + 1 WHERE id = $1`, d.Event, d.sha)
	batch.Queue(`INSERT INTO event_charts (event_id, version, chart_sha, operator) SELECT id, chart_version, chart_sha, $2 FROM events WHERE id = $1`,
		d.Event, d.By)
	return tx.SendBatch(ctx, &batch).Close()
}
