package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// Seats are closed and opened here: the one place besides the arbiter that
// changes a status. Both lock the seats in ascending order and judge what they
// have locked, so of a sale and a kill of the same seat one comes first.

// Close says how seats are closed.
type Close struct {
	Seats    []int  // ascending
	Reason   string // of a kill; empty: they are taken off sale
	By       string
	EvenHeld bool // also under a live hold, whose owner finds the seats lost
}

// Close takes seats from sale until Reopen. A *SeatsError names those that are
// sold, and unless EvenHeld those that are held: nothing changed. What is only
// taken off sale may be sold: then it stays so when a sale of it is taken back.
func (d *Desk) Close(ctx context.Context, event string, c Close) (Altered, error) {
	to := offSale
	if c.Reason != "" {
		to = killed(c.Reason, c.By)
	}
	a, err := d.alter(ctx, event, change{evenHeld: c.EvenHeld, unsold: c.Reason != "",
		plan: func(context.Context, pgx.Tx) ([]int, func(standing) standing, error) { return c.Seats, to, nil }})
	return a, pg.Said("close seats of "+event, err)
}

// Reopen takes back what Close did: a seat is then what its channel says.
func (d *Desk) Reopen(ctx context.Context, event string, seats []int) (Altered, error) {
	a, err := d.alter(ctx, event, change{
		plan: func(context.Context, pgx.Tx) ([]int, func(standing) standing, error) { return seats, released, nil }})
	return a, pg.Said("reopen seats of "+event, err)
}

// change is a change of why seats are for sale or not.
type change struct {
	// plan does what else belongs to the change, and returns which seats it is
	// about, ascending, and what becomes of each.
	plan     func(context.Context, pgx.Tx) ([]int, func(standing) standing, error)
	unsold   bool // a seat that is sold refuses it
	evenHeld bool // a seat that is held does not
}

const (
	// alterWithin bounds a change: of all seats of a stadium's channel at most.
	alterWithin = time.Minute
	// asideFor outlasts it.
	asideFor = alterWithin + 10*time.Second
	// alterBounds are for who pays for the same seats meanwhile: a process that is
	// stopped while it asks Redis does not keep them locked.
	alterBounds = `SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '20s'`
)

// alter changes seats, all of them or none, and has Redis told.
//
// Whether a seat is held only Redis can say, and it could be held the moment
// after. So seats that close are first held for nobody, by the script that
// refuses a shopper a taken seat; the mirror's mark then overrides that hold.
// One that is left over ends by itself: of a process that died, or of a commit
// nobody knows the outcome of.
func (d *Desk) alter(ctx context.Context, event string, c change) (a Altered, err error) {
	var aside []string
	err = d.alterRows(ctx, event, c, func(ctx context.Context, tx pgx.Tx, closing []int) (err error) {
		if c.evenHeld {
			a.Overridden = d.overridden(ctx, event, closing)
			return nil
		}
		aside, err = d.refuseHeld(ctx, tx, event, closing)
		return err
	}, &a)
	if err != nil {
		return Altered{}, err
	}
	if a.Closed+a.Opened == 0 {
		return a, nil
	}
	ctx = context.WithoutCancel(ctx)
	err = d.Mirror(ctx, event)
	if err == nil && len(aside) > 0 {
		err = d.holds.GiveBack(ctx, event, aside)
	}
	if err != nil {
		d.log.WarnContext(ctx, "Redis is told of a change of seats later", "event", event, "err", err)
	}
	return a, nil
}

// refuseHeld sets aside seats that close, or refuses those that somebody has: of an
// event without holds those that open bookings name, and then it stays without.
func (d *Desk) refuseHeld(ctx context.Context, tx pgx.Tx, event string, closing []int) (aside []string, err error) {
	aside, held, err := d.holds.SetAside(ctx, event, closing, asideFor)
	if err == nil && len(held) > 0 {
		err = &SeatsError{Held: held}
	}
	if err != nil || len(aside) > 0 {
		return aside, err
	}
	if err = staysUnheld(ctx, tx, event); errors.Is(err, seatmap.ErrHeld) { // since a moment: Redis is to be asked
		err = fmt.Errorf("%w: %w", seatmap.ErrUnavailable, err)
	}
	return nil, err
}

// overridden are the bookings that lose seats; none when Redis is away.
func (d *Desk) overridden(ctx context.Context, event string, closing []int) []string {
	holding, err := d.holds.Holding(ctx, event, closing)
	if err != nil {
		d.log.WarnContext(ctx, "whose holds are overridden is not known", "event", event, "err", err)
	}
	return bookingsOf(event, holding)
}

// alterRows is alter's transaction; before is asked before seats close. The seats
// of a cancelled event stay as they are: ErrCancelled.
func (d *Desk) alterRows(ctx context.Context, event string, c change, before func(context.Context, pgx.Tx, []int) error, a *Altered) error {
	ctx, cancel := context.WithTimeout(ctx, alterWithin)
	defer cancel()
	return pgx.BeginFunc(ctx, d.store.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, alterBounds); err != nil {
			return err
		}
		if err := notCancelled(ctx, tx, event); err != nil {
			return err
		}
		seats, to, err := c.plan(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := lockStandings(ctx, tx, event, seats)
		if err != nil {
			return err
		}
		if sold := soldOf(rows); c.unsold && len(sold) > 0 {
			return &SeatsError{Sold: sold}
		}
		changed, closing, sum := alter(rows, to)
		sum.Overridden, *a = a.Overridden, sum
		if len(closing) > 0 {
			if err := before(ctx, tx, closing); err != nil {
				return err
			}
		}
		return writeStandings(ctx, tx, event, changed)
	})
}

const standingColumns = `i, status, killed, killed_by, off_sale, channel, channel_closed, dropped`

// lockStandings locks seats in ascending order.
func lockStandings(ctx context.Context, tx pgx.Tx, event string, seats []int) ([]standing, error) {
	if len(seats) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `SELECT `+standingColumns+` FROM seats WHERE event_id = $1 AND i = ANY($2) ORDER BY i FOR UPDATE`, event, seats)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanStanding)
}

func scanStanding(row pgx.CollectableRow) (s standing, err error) {
	err = row.Scan(&s.I, &s.Status, &s.Killed, &s.KilledBy, &s.OffSale, &s.Channel, &s.Shut, &s.Dropped)
	return s, err
}

// writeStandings writes seats that are locked. Redis is to be told of those
// whose status is another.
func writeStandings(ctx context.Context, tx pgx.Tx, event string, seats []standing) error {
	if len(seats) == 0 {
		return nil
	}
	var (
		is                 []int
		statuses, channels []string
		reasons, killers   []*string
		offSale, shut      []bool
	)
	for _, s := range seats {
		is, statuses, channels = append(is, s.I), append(statuses, s.Status), append(channels, s.Channel)
		reasons, killers = append(reasons, s.Killed), append(killers, s.KilledBy)
		offSale, shut = append(offSale, s.OffSale), append(shut, s.Shut)
	}
	_, err := tx.Exec(ctx, `
		UPDATE seats s SET status = n.status, killed = n.killed, killed_by = n.killed_by, off_sale = n.off_sale,
			channel = n.channel, channel_closed = n.shut, mirror_due = s.mirror_due OR s.status <> n.status
		FROM unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::bool[], $7::text[], $8::bool[])
			AS n (i, status, killed, killed_by, off_sale, channel, shut)
		WHERE s.event_id = $1 AND s.i = n.i`, event, is, statuses, reasons, killers, offSale, channels, shut)
	return err
}
