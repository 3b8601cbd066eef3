package checkout

import (
	"context"
	"errors"
	"time"

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

// audits are the jobs that are asked for again and again. An inspection costs
// Postgres more than an audit, and is of what nobody can mend at once.
func (d *Desk) audits() []*river.PeriodicJob {
	again := func(args river.JobArgs, every time.Duration) *river.PeriodicJob {
		ask := func() (river.JobArgs, *river.InsertOpts) { return args, nil }
		return river.NewPeriodicJob(river.PeriodicInterval(every), ask, &river.PeriodicJobOpts{RunOnStart: true})
	}
	return []*river.PeriodicJob{again(auditArgs{}, d.auditEvery), again(inspectArgs{}, d.inspectEvery())}
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
	sold, closed := told(shown)
	seats, err := tx.Exec(ctx, `UPDATE seats SET mirror_due = true WHERE event_id = $1 AND i IN (
		SELECT i `+otherSeats+` ORDER BY i FOR UPDATE SKIP LOCKED)`, event, sold, closed)
	if err != nil {
		return 0, err
	}
	areas, err := tx.Exec(ctx, `UPDATE areas SET mirror_due = true WHERE event_id = $1 AND area IN (
		SELECT area `+otherAreas+` ORDER BY area FOR UPDATE SKIP LOCKED)`, event, left)
	return seats.RowsAffected() + areas.RowsAffected(), err
}

// What Redis shows otherwise than it is, and has been told.
const (
	otherSeats = `FROM seats WHERE event_id = $1 AND NOT mirror_due AND status <> CASE
		WHEN i IN (SELECT unnest($2::int[])) THEN 'sold' WHEN i IN (SELECT unnest($3::int[])) THEN 'unavailable' ELSE 'available' END`
	otherAreas = `FROM areas WHERE event_id = $1 AND NOT mirror_due AND free IS DISTINCT FROM ($2::jsonb ->> area)::int`
)

// told are the seats a map shows as sold and as closed.
func told(shown seatmap.Map) (sold, closed []int) {
	for i := range 4 * len(shown) {
		switch shown.At(i) {
		case seatmap.Sold:
			sold = append(sold, i)
		case seatmap.Unavailable:
			closed = append(closed, i)
		}
	}
	return orNone(sold), orNone(closed)
}

// orNone makes an empty list of no list, which would be NULL.
func orNone(seats []int) []int {
	if seats == nil {
		return []int{}
	}
	return seats
}

// Shower is who knows what everybody sees of an event: of Holds a comparison
// needs no more.
type Shower interface {
	Shown(ctx context.Context, event string) (seatmap.Map, map[string]int, error)
}

// Compare returns which seats and areas of an event Redis shows otherwise than
// the books have them; none while it shows no map. It changes nothing, but
// keeps the mirror of the event waiting while it looks.
func (s *Store) Compare(ctx context.Context, event string, redis Shower) (differ []string, err error) {
	err = s.underLock(ctx, event, func(ctx context.Context, tx pgx.Tx) error {
		shown, left, err := redis.Shown(ctx, event)
		if err != nil || shown == nil {
			return err
		}
		sold, closed := told(shown)
		seats, err := lines(ctx, tx, `SELECT format('seat %s, which is %s', ticket_id, status) `+otherSeats+` ORDER BY i`, event, sold, closed)
		if err != nil {
			return err
		}
		areas, err := lines(ctx, tx, `SELECT format('area %s, which has %s left', area, free) `+otherAreas+` ORDER BY area`, event, left)
		differ = append(seats, areas...)
		return err
	})
	return differ, pg.Said("compare "+event, err)
}

func lines(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
