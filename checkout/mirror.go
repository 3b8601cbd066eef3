package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// The mirror tells Redis what Postgres has decided, one way only. It reads the
// rows marked mirror_due, and the tickets of accounts where they changed, as they are now, under the event's lock, so a late
// run can never put back an old truth.

// lockWait bounds how long a transaction waits for the event's lock.
const lockWait = 5 * time.Second

type lockedTx struct{ event string }

// underLock runs work in a transaction that holds the event's advisory lock.
// Work that comes back here for the same event (a mirror that finds Redis cold
// makes it be rebuilt, and that asks for the truth) runs in the transaction
// that has the lock already.
func (s *Store) underLock(ctx context.Context, event string, work func(context.Context, pgx.Tx) error) error {
	if tx, ok := ctx.Value(lockedTx{event}).(pgx.Tx); ok {
		return work(ctx, tx)
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// What a crash loses of these commits is told again, so the lock is not
		// kept for a disk or a standby.
		_, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d; SET LOCAL synchronous_commit = off`, lockWait.Milliseconds()))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, seatmap.LockName(event)); err != nil {
			return err
		}
		return work(context.WithValue(ctx, lockedTx{event}, tx), tx)
	})
}

// Truth runs use with what Postgres says of the event now, under the event's
// lock: no mirror runs meanwhile. It returns use's error, or
// seatmap.ErrNoEvent.
func (s *Store) Truth(ctx context.Context, event string, use func(context.Context, seatmap.Truth) error) error {
	var used error
	err := s.underLock(ctx, event, func(ctx context.Context, tx pgx.Tx) error {
		t, err := truth(ctx, tx, event)
		if err != nil {
			return err
		}
		used = use(ctx, t)
		return nil
	})
	if used != nil {
		return used
	}
	return pg.Said("read the truth of "+event, err)
}

// truth is one statement, so that all of it is of one moment, and that moment
// is after the lock was had. Where bookings without holds name one seat, who pays
// comes first, and then who came first.
func truth(ctx context.Context, tx pgx.Tx, event string) (seatmap.Truth, error) {
	var (
		t       seatmap.Truth
		baskets []basketRow
	)
	err := tx.QueryRow(ctx, `
		SELECT c.seats,
			ARRAY(SELECT i FROM seats WHERE event_id = e.id AND status = 'sold' ORDER BY i),
			ARRAY(SELECT i FROM seats WHERE event_id = e.id AND status = 'unavailable' ORDER BY i),
			(SELECT coalesce(jsonb_object_agg(area, free), '{}') FROM areas WHERE event_id = e.id),
			(SELECT coalesce(jsonb_agg(jsonb_build_object('id', id, 'user', user_id, 'seats', seats, 'areas', areas, 'quote', quote,
					'hash', request_hash, 'first', first_held_at, 'until', deadline, 'cap', cap_at, 'operator', operator, 'note', note)), '[]')
				FROM (SELECT * FROM bookings WHERE event_id = e.id AND state IN ('held', 'paying') AND deadline > clock_timestamp()
					ORDER BY state = 'held', first_held_at, id) open),
			(SELECT coalesce(jsonb_object_agg(user_id, coalesce(n, 0)), '{}') FROM buyers LEFT JOIN
				(SELECT user_id, count(*) AS n FROM tickets WHERE event_id = e.id AND state = 'live' GROUP BY user_id) t USING (user_id)
				WHERE event_id = e.id)
		FROM events e JOIN charts c ON c.sha = e.chart_sha WHERE e.id = $1`, event).
		Scan(&t.Seats, &t.Sold, &t.Closed, &t.Left, &baskets, &t.Bought)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, seatmap.ErrNoEvent
	}
	for _, row := range baskets {
		t.Baskets = append(t.Baskets, row.basket(event))
	}
	return t, err
}

type basketRow struct {
	ID, User, Hash    string
	Operator, Note    string
	Seats             []int
	Areas             map[string]int
	Quote             json.RawMessage
	First, Until, Cap time.Time
}

func (r basketRow) basket(event string) seatmap.Basket {
	return seatmap.Basket{Event: event, Token: r.ID[len(event)+1:], User: r.User, Seats: r.Seats, Areas: r.Areas,
		Quote: r.Quote, Hash: r.Hash, First: r.First, Until: r.Until, Cap: r.Cap, State: seatmap.BasketHeld, Operator: r.Operator, Note: r.Note}
}

// due is what Redis has not been told of an event, as it is now.
type due struct {
	Sold, Free, Closed []int
	Left               map[string]int    // places, by area
	Bookings           []string          // sold
	Over               map[string]string // bookings that came to nothing, whose holds are given back: by id, their accounts
	Bought, Changes    map[string]int    // tickets by account; Changes to see whether it is still so afterwards
}

// tellMost is how many seats are told at once, those sold first: a script keeps
// every shopper of the event waiting, and the lock every other sale's mirror. A
// channel that opens may be tens of thousands.
const tellMost = 2000

// releaseMost is how many holds are given back at once: each is a call.
const releaseMost = 200

// cameToNothing are the states of bookings whose holds nobody needs, in SQL.
const cameToNothing = `('lost', 'released', 'expired')`

func readDue(ctx context.Context, tx pgx.Tx, event string) (d due, err error) {
	err = tx.QueryRow(ctx, `
		WITH s AS (SELECT i, status FROM seats WHERE event_id = $1 AND mirror_due ORDER BY status <> 'sold' LIMIT $2),
			a AS (SELECT area, free FROM areas WHERE event_id = $1 AND mirror_due),
			u AS (SELECT user_id, changes FROM buyers WHERE event_id = $1 AND changes <> told)
		SELECT ARRAY(SELECT i FROM s WHERE status = 'sold' ORDER BY i),
			ARRAY(SELECT i FROM s WHERE status = 'available' ORDER BY i),
			ARRAY(SELECT i FROM s WHERE status = 'unavailable' ORDER BY i),
			(SELECT coalesce(jsonb_object_agg(area, free), '{}') FROM a),
			ARRAY(SELECT id FROM bookings WHERE event_id = $1 AND mirror_due AND state NOT IN `+cameToNothing+` ORDER BY id),
			(SELECT coalesce(jsonb_object_agg(id, user_id), '{}') FROM
				(SELECT id, user_id FROM bookings WHERE event_id = $1 AND mirror_due AND state IN `+cameToNothing+` ORDER BY id LIMIT $3) o),
			(SELECT coalesce(jsonb_object_agg(user_id, (SELECT count(*) FROM tickets t
				WHERE t.event_id = $1 AND t.user_id = u.user_id AND t.state = 'live')), '{}') FROM u),
			(SELECT coalesce(jsonb_object_agg(user_id, changes), '{}') FROM u)`, event, tellMost, releaseMost).
		Scan(&d.Sold, &d.Free, &d.Closed, &d.Left, &d.Bookings, &d.Over, &d.Bought, &d.Changes)
	return d, err
}

// full says that there may be more to tell.
func (d *due) full() bool {
	return len(d.Sold)+len(d.Free)+len(d.Closed) == tellMost || len(d.Over) == releaseMost
}

func (d *due) nothing() bool {
	return len(d.Sold)+len(d.Free)+len(d.Closed)+len(d.Left)+len(d.Bookings)+len(d.Over)+len(d.Bought) == 0
}

// tell brings Redis to what is due. Every mark is absolute, so telling twice
// is harmless.
func (d *due) tell(ctx context.Context, holds Holds, event string) error {
	if len(d.Free) > 0 {
		if err := holds.Restore(ctx, event, seatmap.Marks{Seats: d.Free}); err != nil {
			return err
		}
	}
	if len(d.Sold)+len(d.Closed)+len(d.Left)+len(d.Bookings)+len(d.Bought) > 0 {
		m := seatmap.Marks{Seats: d.Sold, Closed: d.Closed, Areas: d.Left, Bought: d.Bought}
		for _, id := range d.Bookings {
			m.Baskets = append(m.Baskets, id[len(event)+1:])
		}
		if err := holds.Spend(ctx, event, m); err != nil {
			return err
		}
	}
	return d.release(ctx, holds, event)
}

// release gives back the holds of bookings that came to nothing, after all else:
// a loser's may be all that keeps others from seats whose sale Redis has not been
// told of yet.
func (d *due) release(ctx context.Context, holds Holds, event string) error {
	for id, user := range d.Over {
		if err := holds.Release(ctx, event, id[len(event)+1:], user); err != nil && !gone(err) && !errors.Is(err, seatmap.ErrSold) {
			return err
		}
	}
	return nil
}

// told clears the marks of rows that still are what was told, and returns how
// many seats and ended bookings these are. A row that has moved on, or that somebody is moving just
// now, stays due.
func (d *due) told(ctx context.Context, tx pgx.Tx, event string) (rows int64, err error) {
	seats, err := tx.Exec(ctx, `
		UPDATE seats SET mirror_due = false WHERE event_id = $1 AND i IN (
			SELECT s.i FROM seats s JOIN (SELECT unnest($2::int[]) AS i, 'sold' AS status
				UNION ALL SELECT unnest($3::int[]), 'available' UNION ALL SELECT unnest($4::int[]), 'unavailable') told
				ON told.i = s.i AND told.status = s.status
			WHERE s.event_id = $1 AND s.mirror_due ORDER BY s.i FOR UPDATE OF s SKIP LOCKED)`, event, d.Sold, d.Free, d.Closed)
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `
		UPDATE areas SET mirror_due = false WHERE event_id = $1 AND area IN (
			SELECT area FROM areas WHERE event_id = $1 AND mirror_due AND free = ($2::jsonb ->> area)::int
			ORDER BY area FOR UPDATE SKIP LOCKED)`, event, d.Left)
	if err != nil {
		return 0, err
	}
	over, err := tx.Exec(ctx, `
		UPDATE bookings SET mirror_due = false WHERE id IN (
			SELECT id FROM bookings WHERE mirror_due AND (id = ANY($1) AND state NOT IN `+cameToNothing+` OR id = ANY($2) AND state IN `+cameToNothing+`)
			ORDER BY id FOR UPDATE SKIP LOCKED)`, d.Bookings, slices.Collect(maps.Keys(d.Over)))
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `
		UPDATE buyers SET told = ($2::jsonb ->> user_id)::int WHERE event_id = $1 AND user_id IN (
			SELECT user_id FROM buyers WHERE event_id = $1 AND changes <> told AND $2::jsonb ? user_id
			ORDER BY user_id FOR UPDATE SKIP LOCKED)`, event, d.Changes)
	return seats.RowsAffected() + over.RowsAffected(), err
}

// Mirror tells Redis of every change of the event it has not been told of.
// Whoever committed one calls it at once; Run calls it for what is left. Of an
// event without holds everything is left until Redis is back, but that it is sold
// out is said at once.
func (d *Desk) Mirror(ctx context.Context, event string) error {
	err := d.rounds.share(ctx, event, func(ctx context.Context) error {
		if d.holds.away(ctx, event) {
			return d.store.underLock(ctx, event, func(ctx context.Context, tx pgx.Tx) error {
				return d.store.noteSoldOut(ctx, tx, event)
			})
		}
		for {
			if more, err := d.mirrorSome(ctx, event); !more || err != nil {
				return err
			}
		}
	})
	return pg.Said("mirror "+event, err)
}

// mirrorSome tells Redis of as much as it may be told at once, and says whether
// there is more.
func (d *Desk) mirrorSome(ctx context.Context, event string) (more bool, err error) {
	err = d.store.underLock(ctx, event, func(ctx context.Context, tx pgx.Tx) error {
		what, err := readDue(ctx, tx, event)
		if err != nil || what.nothing() {
			return err
		}
		if err := what.tell(ctx, d.holds, event); err != nil {
			return err
		}
		rows, err := what.told(ctx, tx, event)
		if err != nil {
			return err
		}
		more = what.full() && rows > 0
		return d.store.noteSoldOut(ctx, tx, event)
	})
	return more, err
}

// mirrorDue returns the events Redis has not been told everything of.
func (s *Store) mirrorDue(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT event_id FROM seats WHERE mirror_due
		UNION SELECT event_id FROM areas WHERE mirror_due
		UNION SELECT event_id FROM bookings WHERE mirror_due
		UNION SELECT event_id FROM buyers WHERE changes <> told`)
	if err != nil {
		return nil, pg.Said("look for mirrors due", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return events, pg.Said("look for mirrors due", err)
}
