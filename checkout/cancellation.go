package checkout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/checkout/outgoing"
	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// An event that will not take place is cancelled in one transaction, and from
// there no way leads back: the arbiter sells nothing more of it. What follows any
// worker does, whenever it is left undone: free seats are closed, bookings that
// are held or being paid end, and what is sold is refunded, so many bookings a minute. How
// many were begun is in the event's row, which one worker has at a time: several
// together are no faster.

// ErrCancelled is the answer about an event that will not take place.
var ErrCancelled = errors.New("checkout: event is cancelled")

// ErrNotCancelled is the answer about the cancellation of another.
var ErrNotCancelled = errors.New("checkout: event is not cancelled")

// Cancellation says how an event is cancelled.
type Cancellation struct {
	Reason    string
	By        string
	Refund    bool // what is sold
	PerMinute int  // how many bookings; 0: none for now
}

// CancelReport is how far a cancellation is. Every booking that was sold is one
// of refunded, pending, failed and left.
type CancelReport struct {
	Event     string      `json:"event"`
	State     string      `json:"state"` // refunding, paused, done; or kept, when nothing is to be refunded
	Reason    string      `json:"reason"`
	By        string      `json:"by"`
	At        time.Time   `json:"at"`
	Refund    bool        `json:"refund"`
	PerMinute int         `json:"perMinute"`
	Bookings  int         `json:"bookings"`
	Refunded  int         `json:"refunded"`
	Pending   int         `json:"pending"`
	Failed    int         `json:"failed"` // their refund failed or came back; begin another one by hand
	Left      int         `json:"left"`
	Money     CancelMoney `json:"money"`
}

// CancelMoney is what the tickets of a cancelled event cost, in minor units, by
// what has become of it.
type CancelMoney struct {
	Currency string `json:"currency"`
	Refunded int64  `json:"refunded"`
	Pending  int64  `json:"pending"`
	Failed   int64  `json:"failed"`
	Left     int64  `json:"left"`
}

// CancelEvent cancels an event and begins what follows. ErrCancelled when it was
// already, seatmap.ErrNoEvent.
func (d *Desk) CancelEvent(ctx context.Context, event string, c Cancellation) (CancelReport, error) {
	if err := d.store.cancelEvent(ctx, event, c); err != nil {
		return CancelReport{}, err
	}
	d.log.WarnContext(ctx, "event cancelled", "event", event, "operator", c.By, "reason", c.Reason, "refund", c.Refund, "perMinute", c.PerMinute)
	if err := d.cancelOn(ctx, event); err != nil {
		d.log.WarnContext(ctx, "what follows a cancellation is left to the workers", "event", event, "err", err)
	}
	return d.store.CancelReport(ctx, event)
}

func (s *Store) cancelEvent(ctx context.Context, event string, c Cancellation) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE events SET state = 'cancelled' WHERE id = $1 AND state <> 'cancelled'`, event)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrCancelled
		}
		_, err = tx.Exec(ctx, `INSERT INTO cancellations (event_id, reason, operator, refund, per_minute) VALUES ($1, $2, $3, $4, $5)`,
			event, c.Reason, c.By, c.Refund, c.PerMinute)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `WITH locked AS MATERIALIZED (SELECT area FROM areas WHERE event_id = $1 ORDER BY area FOR UPDATE)
			UPDATE areas a SET closed = true, mirror_due = true FROM locked WHERE a.event_id = $1 AND a.area = locked.area`, event)
		if err != nil {
			return err
		}
		return s.announce(ctx, tx, outgoing.EventCancelled, event, func() (any, error) {
			return map[string]any{"event": event, "reason": c.Reason, "refund": c.Refund}, nil
		})
	})
	return pg.Said("cancel "+event, err)
}

// PaceCancellation changes how fast a cancelled event is refunded (nil: it stays
// so), and may begin to. ErrNotCancelled.
func (d *Desk) PaceCancellation(ctx context.Context, event string, perMinute *int, refund bool) (CancelReport, error) {
	err := func() error {
		ctx, cancel := patient(ctx)
		defer cancel()
		tag, err := d.store.pool.Exec(ctx, `UPDATE cancellations SET per_minute = coalesce($2, per_minute), refund = refund OR $3,
			paced_at = least(paced_at, clock_timestamp()) WHERE event_id = $1`, event, perMinute, refund)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNotCancelled
		}
		return pg.Said("pace the refunds of "+event, err)
	}()
	if err != nil {
		return CancelReport{}, err
	}
	return d.store.CancelReport(ctx, event)
}

// cancelAll goes on with every cancellation that may have something left.
func (d *Desk) cancelAll(ctx context.Context) error {
	events, err := d.store.cancelling(ctx)
	for _, event := range events {
		err = errors.Join(err, d.cancelOn(ctx, event))
	}
	return err
}

// cancelling are the events of which something is sold, or that were cancelled a
// day ago at most: whatever was under way then has ended.
func (s *Store) cancelling(ctx context.Context) ([]string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT event_id FROM cancellations c WHERE at > now() - interval '1 day'
		OR refund AND EXISTS (SELECT FROM bookings b WHERE b.event_id = c.event_id AND b.state = 'sold') ORDER BY random()`)
	if err != nil {
		return nil, pg.Said("look for cancelled events", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return events, pg.Said("look for cancelled events", err)
}

// cancelOn does what a cancellation has left, as much as is due.
func (d *Desk) cancelOn(ctx context.Context, event string) error {
	closed, err := d.store.closeRest(ctx, event)
	if err != nil {
		return err
	}
	if closed {
		if err := d.Mirror(ctx, event); err != nil {
			d.log.WarnContext(ctx, "mirror left to the workers", "event", event, "err", err)
		}
	}
	return d.store.refundSome(ctx, event)
}

// closeRest closes the seats of a cancelled event that are free and ends its open
// bookings: the reconciler stops their payments and gives their holds back.
func (s *Store) closeRest(ctx context.Context, event string) (closed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, alterWithin)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, alterBounds); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			WITH free AS MATERIALIZED (SELECT i FROM seats WHERE event_id = $1 AND status = 'available' ORDER BY i FOR UPDATE)
			UPDATE seats s SET status = 'unavailable', killed = c.reason, killed_by = c.operator, mirror_due = true
			FROM free, cancellations c WHERE s.event_id = $1 AND s.i = free.i AND s.status = 'available' AND c.event_id = $1`, event)
		closed = tag.RowsAffected() > 0
		return err
	})
	if err != nil {
		return false, pg.Said("close the seats of "+event, err)
	}
	_, err = s.pool.Exec(ctx, `
		WITH open AS MATERIALIZED (SELECT id FROM bookings WHERE event_id = $1 AND state IN ('held', 'paying') AND cap_at > now() ORDER BY id FOR UPDATE)
		UPDATE bookings b SET deadline = least(deadline, now()), cap_at = now(), reason = $2, updated_at = now() FROM open WHERE b.id = open.id`,
		event, ReasonCancelled)
	return closed, pg.Said("end the bookings of "+event, err)
}

// Bounds of refundSome: how far it catches up with a pace it has fallen behind,
// and how many refunds it begins at once.
const (
	catchUp    = time.Second
	mostBegun  = 200
	mostMinute = 60_000
)

// refundSome begins the refunds of a cancelled event that are due. While one
// worker does so others leave it alone. When a provider does not answer no more
// are begun than are asked for in a minute.
func (s *Store) refundSome(ctx context.Context, event string) error {
	ctx, cancel := context.WithTimeout(ctx, alterWithin)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, alterBounds); err != nil {
			return err
		}
		ask := RefundRequest{Seats: SeatsKilled, cancels: true}
		var (
			perMinute, unanswered int
			behind                float64 // seconds
		)
		err := tx.QueryRow(ctx, `
			SELECT reason, operator, per_minute, extract(epoch FROM clock_timestamp() - paced_at)::float8,
				(SELECT count(*) FROM refunds r WHERE r.event_id = $1 AND cancels AND state = 'pending' AND provider_ref = '')
			FROM cancellations WHERE event_id = $1 AND refund AND per_minute > 0 FOR UPDATE SKIP LOCKED`, event).
			Scan(&ask.Reason, &ask.By, &perMinute, &behind, &unanswered)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		begun, err := s.refundSold(ctx, tx, event, ask, min(dueNow(perMinute, behind), perMinute-unanswered, mostBegun))
		if err != nil || begun == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE cancellations SET paced_at = greatest(paced_at, clock_timestamp() - $2::interval) + $3::interval WHERE event_id = $1`,
			event, catchUp, time.Duration(begun)*time.Minute/time.Duration(perMinute))
		return err
	})
	return pg.Said("refund what is sold of "+event, err)
}

// dueNow is how many are due when the first has been for so many seconds.
func dueNow(perMinute int, behind float64) int {
	if behind < 0 {
		return 0
	}
	return int(math.Min(behind, catchUp.Seconds())*float64(perMinute)/60) + 1
}

// refundSold begins a refund of up to so many sold bookings, and returns of how
// many. One whose refund failed is for a person.
func (s *Store) refundSold(ctx context.Context, tx pgx.Tx, event string, ask RefundRequest, most int) (begun int, err error) {
	if most <= 0 {
		return 0, nil
	}
	rows, err := tx.Query(ctx, `
		SELECT b.id FROM bookings b WHERE b.event_id = $1 AND b.state = 'sold'
			AND EXISTS (SELECT FROM attempts a WHERE a.booking_id = b.id AND a.state = 'captured')
			AND EXISTS (SELECT FROM tickets t WHERE t.booking_id = b.id AND t.state = 'live' AND t.refund_id IS NULL)
			AND NOT EXISTS (SELECT FROM refunds r WHERE r.booking_id = b.id AND r.cancels AND r.state = 'failed')
		ORDER BY b.id LIMIT $2`, event, most)
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, err
	}
	for _, ask.Booking = range ids {
		_, _, err := s.beginRefund(ctx, tx, ask)
		switch {
		case err == nil:
			begun++
		case !errors.Is(err, ErrRefunding) && !errors.Is(err, ErrRefunded) && !errors.Is(err, ErrNotSold): // else somebody was faster
			return begun, fmt.Errorf("%s: %w", ask.Booking, err)
		}
	}
	return begun, nil
}

// CancelReport says how far the cancellation of an event is. ErrNotCancelled.
func (s *Store) CancelReport(ctx context.Context, event string) (r CancelReport, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	r.Event = event
	err = s.pool.QueryRow(ctx, `
		WITH t AS (
			SELECT t.booking_id, t.price, b.state = 'refunded' AS over, coalesce(r.state = 'pending', false) AS pending, coalesce(r.state = 'succeeded', false) AS given
			FROM tickets t JOIN bookings b ON b.id = t.booking_id AND b.state IN ('sold', 'refunded') LEFT JOIN refunds r ON r.id = t.refund_id
			WHERE t.event_id = $1
		), s AS (
			SELECT booking_id, bool_and(given) AS given, bool_or(pending) AS pending,
				bool_or(over) OR EXISTS (SELECT FROM refunds r WHERE r.booking_id = t.booking_id AND r.cancels AND r.state = 'failed') AS failed
			FROM t GROUP BY booking_id
		)
		SELECT c.reason, c.operator, c.at, c.refund, c.per_minute, (SELECT currency FROM events WHERE id = $1),
			(SELECT count(*) FROM s), (SELECT count(*) FROM s WHERE given), (SELECT count(*) FROM s WHERE pending),
			(SELECT count(*) FROM s WHERE NOT given AND NOT pending AND failed), (SELECT count(*) FROM s WHERE NOT given AND NOT pending AND NOT failed),
			(SELECT coalesce(sum(price), 0)::bigint FROM t WHERE given), (SELECT coalesce(sum(price), 0)::bigint FROM t WHERE pending),
			(SELECT coalesce(sum(price), 0)::bigint FROM t JOIN s USING (booking_id) WHERE NOT t.given AND NOT t.pending AND s.failed),
			(SELECT coalesce(sum(price), 0)::bigint FROM t JOIN s USING (booking_id) WHERE NOT t.given AND NOT t.pending AND NOT s.failed)
		FROM cancellations c WHERE event_id = $1`, event).
		Scan(&r.Reason, &r.By, &r.At, &r.Refund, &r.PerMinute, &r.Money.Currency, &r.Bookings, &r.Refunded, &r.Pending, &r.Failed, &r.Left,
			&r.Money.Refunded, &r.Money.Pending, &r.Money.Failed, &r.Money.Left)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotCancelled
	}
	r.At = r.At.UTC()
	switch {
	case !r.Refund:
		r.State = "kept"
	case r.Left+r.Pending == 0:
		r.State = "done"
	case r.PerMinute == 0:
		r.State = "paused"
	default:
		r.State = "refunding"
	}
	return r, pg.Said("read the cancellation of "+event, err)
}

// notCancelled refuses a change of an event that is cancelled, and has it stay
// uncancelled until the end of tx.
func notCancelled(ctx context.Context, tx pgx.Tx, event string) error {
	var state string
	err := tx.QueryRow(ctx, `SELECT state FROM events WHERE id = $1 FOR SHARE`, event).Scan(&state)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return seatmap.ErrNoEvent
	case err == nil && state == "cancelled":
		return ErrCancelled
	}
	return err
}
