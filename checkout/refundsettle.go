package checkout

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// settleRefund takes in what a provider says of a refund and, read after that,
// of its payment.
func (s *Store) settleRefund(ctx context.Context, r *refund, answer RefundAnswer, p Payment) (out outcome, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		out = outcome{}
		b, a, err := lockAttempt(ctx, tx, r.Attempt)
		if err != nil {
			return err
		}
		out.booking = b
		if err := note(ctx, tx, a, p); err != nil {
			return err
		}
		if err := s.settleOne(ctx, tx, b, a, r.ID, answer, &out); err != nil {
			return err
		}
		return s.outside(ctx, tx, b, a, p, &out)
	})
	return out, pg.Said("settle refund "+r.ID, err)
}

// settleOne moves a refund to what its provider says, unless it is past it.
func (s *Store) settleOne(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, id string, answer RefundAnswer, out *outcome) error {
	r, err := scanRefund(tx.QueryRow(ctx, `SELECT `+refundColumns+` FROM refunds WHERE id = $1`, id))
	if err != nil {
		return err
	}
	if answer.ID != "" {
		if _, err := tx.Exec(ctx, `UPDATE refunds SET provider_ref = $2 WHERE id = $1`, id, answer.ID); err != nil {
			return err
		}
	}
	switch {
	case answer.State == RefundSucceeded && r.State == RefundPending:
		if err := moveRefund(ctx, tx, id, RefundSucceeded, ""); err != nil {
			return err
		}
		return s.takeTicketsBack(ctx, tx, b, a, r, out)
	case answer.State == RefundFailed && r.State != RefundFailed:
		out.failed = r
		r.Failure = answer.Reason
		if err := moveRefund(ctx, tx, id, RefundFailed, answer.Reason); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE tickets SET refund_id = NULL WHERE booking_id = $2 AND refund_id = $1 AND state = 'live'`, id, b.ID)
		return err
	}
	return nil
}

// moveRefund takes a refund along an arrow of its machine, or fails with a
// TransitionError.
func moveRefund(ctx context.Context, tx pgx.Tx, id string, to RefundState, failure string) error {
	tag, err := tx.Exec(ctx, `UPDATE refunds SET state = $2, failure = $3, updated_at = now() WHERE id = $1 AND state = ANY($4)`,
		id, to, failure, refundMoves[to])
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	var from string
	if err := tx.QueryRow(ctx, `SELECT state FROM refunds WHERE id = $1`, id).Scan(&from); err != nil {
		return err
	}
	return &TransitionError{Machine: "refund", ID: id, From: from, To: string(to)}
}

// takeTicketsBack ends the tickets of a refund that has succeeded. Those that a
// refund took back before have no seat any more. With the last of a booking that
// and its attempt are refunded.
func (s *Store) takeTicketsBack(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, r *refund, out *outcome) error {
	if err := countAnew(ctx, tx, b); err != nil { // before the seats, as sell does
		return err
	}
	seats, areas, err := placesOf(ctx, tx, r.Tickets)
	if err != nil {
		return err
	}
	if err := returnSeats(ctx, tx, r, seats); err != nil {
		return err
	}
	for _, area := range slices.Sorted(maps.Keys(areas)) {
		_, err := tx.Exec(ctx, `UPDATE areas SET sold = sold - $3, mirror_due = true WHERE event_id = $1 AND area = $2`, b.Event, area, areas[area])
		if err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `UPDATE tickets SET state = 'void' WHERE id = ANY($1) AND state = 'live'`, r.Tickets); err != nil {
		return err
	}
	out.mirror = true
	var live bool
	err = tx.QueryRow(ctx, `UPDATE bookings SET updated_at = now() WHERE id = $1
		RETURNING EXISTS (SELECT FROM tickets WHERE booking_id = $1 AND state = 'live')`, b.ID).Scan(&live)
	if err != nil {
		return err
	}
	if !live && b.State == BookingSold {
		if err := moveBooking(ctx, tx, b.ID, BookingRefunded); err != nil {
			return err
		}
		if err := moveAttempt(ctx, tx, a.ID, AttemptRefunded, ""); err != nil {
			return err
		}
		b.State, a.State = BookingRefunded, AttemptRefunded
	}
	return s.announceRefund(ctx, tx, r)
}

// placesOf are the seats of live tickets, ascending, and how many of each area
// they are.
func placesOf(ctx context.Context, tx pgx.Tx, tickets []string) (seats []int, areas map[string]int, err error) {
	err = tx.QueryRow(ctx, `
		SELECT ARRAY(SELECT i FROM tickets WHERE id = ANY($1) AND state = 'live' AND i IS NOT NULL ORDER BY i),
			(SELECT coalesce(jsonb_object_agg(area, n), '{}') FROM (
				SELECT area, count(*) AS n FROM tickets WHERE id = ANY($1) AND state = 'live' AND area IS NOT NULL GROUP BY area) a)`, tickets).
		Scan(&seats, &areas)
	return seats, areas, err
}

// returnSeats makes sold seats what the refund says: what their reasons say, or
// killed, with its own. Nobody gets a seat of an event that is cancelled.
func returnSeats(ctx context.Context, tx pgx.Tx, r *refund, seats []int) error {
	if err := notCancelled(ctx, tx, r.Event); err != nil && !errors.Is(err, ErrCancelled) {
		return err
	}
	if _, err := tx.Exec(ctx, `SELECT FROM seats WHERE event_id = $1 AND i = ANY($2) ORDER BY i FOR UPDATE`, r.Event, seats); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		WITH why AS (SELECT
			CASE WHEN $3 THEN $4::text ELSE (SELECT reason FROM cancellations WHERE event_id = $1) END AS reason,
			CASE WHEN $3 THEN $5::text ELSE (SELECT operator FROM cancellations WHERE event_id = $1) END AS operator)
		UPDATE seats SET booking_id = NULL, mirror_due = true, killed = coalesce(why.reason, killed), killed_by = coalesce(why.operator, killed_by),
			status = CASE WHEN why.reason IS NOT NULL THEN 'unavailable' ELSE `+rests+` END
		FROM why WHERE event_id = $1 AND i = ANY($2) AND status = 'sold' AND booking_id = $6`,
		r.Event, seats, r.Seats == SeatsKilled, r.Reason, r.Operator, r.Booking)
	return err
}

// ReasonOutside is why seats are killed whose money went back without us.
const ReasonOutside = "refunded at the payment provider"

// newsLasts is how old what a provider said of a payment may be when it is taken in:
// whoever asks gives up before.
const newsLasts = 2 * finishWithin

// outside takes in that money was given back without us. All of it: the tickets
// are void, and their seats closed, for nobody here chose to sell them again.
// Some of it is noted, and no more. Where a refund of ours has failed a moment ago
// the provider may have said so before: it is asked again.
func (s *Store) outside(ctx context.Context, tx pgx.Tx, b *booking, a *attempt, p Payment, out *outcome) error {
	if a.State != AttemptCaptured || p.Refunded == 0 {
		return nil
	}
	settled := "" // what p says is newer than that
	if out.failed != nil {
		settled = out.failed.ID
	}
	var (
		ours   int64
		lately string // one that failed a moment ago
	)
	err := tx.QueryRow(ctx, `SELECT coalesce(sum(amount) FILTER (WHERE state <> 'failed'), 0)::bigint,
			coalesce(max(id) FILTER (WHERE state = 'failed' AND id <> $3 AND updated_at > now() - $4::interval), '')
		FROM refunds WHERE booking_id = $2 AND attempt_id = $1`, a.ID, b.ID, settled, newsLasts).Scan(&ours, &lately)
	if err != nil || p.Refunded <= ours {
		return err
	}
	if p.Refunded < p.Money.Amount {
		out.outside = p.Refunded != a.Refunded
		return nil
	}
	if lately != "" {
		_, err := s.jobs.InsertTx(ctx, tx, giveBackArgs{lately, "outside"}, &river.InsertOpts{ScheduledAt: b.Now.Add(newsLasts)})
		return err
	}
	all, err := refundables(ctx, tx, b.ID)
	if err != nil {
		return err
	}
	r := &refund{ID: newID("rf_"), Event: b.Event, Booking: b.ID, Attempt: a.ID, State: RefundSucceeded, Money: seatmap.Money{Currency: a.Money.Currency},
		Seats: SeatsKilled, Reason: ReasonOutside, Operator: a.Provider, Outside: true}
	for _, t := range all {
		if t.open() {
			r.Tickets = append(r.Tickets, t.ID)
			r.Money.Amount += t.Price
		}
	}
	if len(r.Tickets) == 0 { // ours are under way, and will see it
		return nil
	}
	out.outside = true
	if err := insertRefund(ctx, tx, r); err != nil {
		return err
	}
	return s.takeTicketsBack(ctx, tx, b, a, r, out)
}

// heard queues questions about refunds of a payment that a notice may be about:
// those that are pending, and when less is given back than we know of, those that
// succeeded, for one of them came back. A question that is being asked just now
// may be too early, so each notice has its own.
func (s *Store) heard(ctx context.Context, tx pgx.Tx, a *attempt, p Payment, n *Notice) error {
	rows, err := tx.Query(ctx, `WITH r AS (SELECT id, state, amount, outside FROM refunds WHERE booking_id = $3 AND attempt_id = $1)
		SELECT id FROM r WHERE NOT outside AND (state = 'pending' OR state = 'succeeded' AND $2 < (SELECT sum(amount) FROM r WHERE state = 'succeeded'))`,
		a.ID, p.Refunded, a.Booking)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range ids {
		if _, err := s.jobs.InsertTx(ctx, tx, giveBackArgs{id, n.Event}, nil); err != nil {
			return err
		}
	}
	return err
}
