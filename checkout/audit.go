package checkout

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// The audit is for what no reader of the numbers can see: a Redis that lost
// its last writes before any node had heard of them, or of an event that no
// node follows. It compares what Redis shows with the books and has the mirror
// tell again what differs. One worker does it for all.

type auditArgs struct{}

func (auditArgs) Kind() string { return "audit" }

func (auditArgs) InsertOpts() river.InsertOpts {
	o := jobOpts()
	o.MaxAttempts = 1 // the next one is due soon
	return o
}

// audits is the job that asks for one, again and again.
func (d *Desk) audits() []*river.PeriodicJob {
	ask := func() (river.JobArgs, *river.InsertOpts) { return auditArgs{}, nil }
	return []*river.PeriodicJob{
		river.NewPeriodicJob(river.PeriodicInterval(d.auditEvery), ask, &river.PeriodicJobOpts{RunOnStart: true}),
	}
}

// audit looks at every event something was sold of lately.
func (d *Desk) audit(ctx context.Context) error {
	events, err := d.store.soldLately(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, event := range events {
		all = errors.Join(all, d.auditEvent(ctx, event))
	}
	return all
}

func (d *Desk) auditEvent(ctx context.Context, event string) error {
	var wrong int64
	err := d.store.underLock(ctx, event, func(ctx context.Context, tx pgx.Tx) error {
		shown, left, err := d.holds.Shown(ctx, event)
		if err != nil || shown == nil {
			return err
		}
		wrong, err = doubt(ctx, tx, event, shown, left)
		return err
	})
	if err != nil || wrong == 0 {
		return pg.Said("audit "+event, err)
	}
	d.log.WarnContext(ctx, "Redis showed other than the books and is told again", "event", event, "differences", wrong)
	return d.Mirror(ctx, event)
}

// soldLately returns the events with a sale, or the end of one, of the last
// day: what Redis loses it has lost of its last moments, but nobody knows how
// long it was away since.
func (s *Store) soldLately(ctx context.Context) ([]string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT event_id FROM bookings WHERE state IN ('sold', 'lost', 'refunded') AND updated_at > now() - interval '1 day'
		GROUP BY event_id ORDER BY random()`)
	if err != nil {
		return nil, pg.Said("look for sales to audit", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return events, pg.Said("look for sales to audit", err)
}

// doubt marks for the mirror what Redis shows otherwise than it is, and counts
// it. Redis is told of changes under the event's lock, which the caller has:
// what it has not been told of yet is marked already and no difference.
func doubt(ctx context.Context, tx pgx.Tx, event string, shown seatmap.Map, left map[string]int) (int64, error) {
	var sold, closed []int
	for i := range 4 * len(shown) {
		switch shown.At(i) {
		case seatmap.Sold:
			sold = append(sold, i)
		case seatmap.Unavailable:
			closed = append(closed, i)
		}
	}
	seats, err := tx.Exec(ctx, `
		UPDATE seats SET mirror_due = true WHERE event_id = $1 AND i IN (
			SELECT i FROM seats WHERE event_id = $1 AND NOT mirror_due
				AND status <> CASE WHEN i IN (SELECT unnest($2::int[])) THEN 'sold' WHEN i IN (SELECT unnest($3::int[])) THEN 'unavailable' ELSE 'available' END
			ORDER BY i FOR UPDATE SKIP LOCKED)`, event, orNone(sold), orNone(closed))
	if err != nil {
		return 0, err
	}
	areas, err := tx.Exec(ctx, `
		UPDATE areas SET mirror_due = true WHERE event_id = $1 AND area IN (
			SELECT area FROM areas WHERE event_id = $1 AND NOT mirror_due AND capacity - sold IS DISTINCT FROM ($2::jsonb ->> area)::int
			ORDER BY area FOR UPDATE SKIP LOCKED)`, event, left)
	return seats.RowsAffected() + areas.RowsAffected(), err
}

// orNone makes an empty list of no list, which would be NULL.
func orNone(seats []int) []int {
	if seats == nil {
		return []int{}
	}
	return seats
}
