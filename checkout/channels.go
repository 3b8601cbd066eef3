package checkout

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
)

// Channel is a part of the seats that is not for sale to the public until it
// opens.
type Channel struct {
	Name    string     `json:"name"`
	OpensAt *time.Time `json:"opensAt"` // null: by hand
	Open    bool       `json:"open"`
	Seats   int        `json:"seats"`
	Sold    int        `json:"sold"`
}

// ErrNoChannel is the answer about a channel an event does not have.
var ErrNoChannel = errors.New("checkout: no such channel")

// PutChannel says what a channel is from now on. What is zero stays as it is.
type PutChannel struct {
	Name     string
	Timed    bool       // OpensAt is said; a new channel opens by hand
	OpensAt  *time.Time // at once, when that is behind; nil: by hand
	Seats    []int      // ascending: these belong to it, whichever they belonged to
	EvenHeld bool
}

// SetChannel makes a channel, or changes it. A *SeatsError names seats that
// would close and are held: nothing changed. What is sold stays sold.
func (d *Desk) SetChannel(ctx context.Context, event string, p PutChannel) (Altered, error) {
	a, err := d.alter(ctx, event, change{evenHeld: p.EvenHeld, plan: func(ctx context.Context, tx pgx.Tx) ([]int, func(standing) standing, error) {
		open, turned, err := writeChannel(ctx, tx, event, p)
		if err != nil {
			return nil, nil, err
		}
		seats := p.Seats
		if turned { // those that are in it turn with it
			seats, err = channelSeats(ctx, tx, event, p.Name, p.Seats)
		}
		return seats, joining(p.Name, open, p.Seats), err
	}})
	return a, pg.Said("set channel "+p.Name+" of "+event, err)
}

// writeChannel writes a channel's row, and returns whether it is open now and
// whether it may have been otherwise before.
func writeChannel(ctx context.Context, tx pgx.Tx, event string, p PutChannel) (open, turned bool, err error) {
	var before *bool
	err = tx.QueryRow(ctx, `SELECT open FROM channels WHERE event_id = $1 AND name = $2 FOR UPDATE`, event, p.Name).Scan(&before)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return false, false, err
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO channels (event_id, name, opens_at, open) VALUES ($1, $2, $3, coalesce($3 <= clock_timestamp(), false))
		ON CONFLICT (event_id, name) DO UPDATE SET
			opens_at = CASE WHEN $4 THEN excluded.opens_at ELSE channels.opens_at END,
			open = CASE WHEN $4 THEN excluded.open ELSE channels.open END
		RETURNING open`, event, p.Name, p.OpensAt, p.Timed).Scan(&open)
	return open, before == nil || *before != open, err
}

// joining puts seats into a channel, and has those that are in it follow it. A
// seat that has left it meanwhile is none of its business.
func joining(name string, open bool, seats []int) func(standing) standing {
	comes := make(map[int]bool, len(seats))
	for _, i := range seats {
		comes[i] = true
	}
	in := inChannel(name, open)
	return func(s standing) standing {
		if s.Channel == name || comes[s.I] {
			return in(s)
		}
		return s
	}
}

// OpenChannel opens a channel now, and CloseChannel closes it: until its time,
// if that is ahead, or until it is opened by hand. ErrNoChannel, and of
// CloseChannel *SeatsError for seats that are held.
func (d *Desk) OpenChannel(ctx context.Context, event, name string) (Altered, error) {
	a, err := d.turn(ctx, event, name, false, `UPDATE channels SET open = true WHERE event_id = $1 AND name = $2 RETURNING open`)
	return a, pg.Said("open channel "+name+" of "+event, err)
}

// CloseChannel is described with OpenChannel.
func (d *Desk) CloseChannel(ctx context.Context, event, name string, evenHeld bool) (Altered, error) {
	a, err := d.turn(ctx, event, name, evenHeld, `
		UPDATE channels SET open = false, opens_at = CASE WHEN opens_at > clock_timestamp() THEN opens_at END
		WHERE event_id = $1 AND name = $2 RETURNING open`)
	return a, pg.Said("close channel "+name+" of "+event, err)
}

// turn opens or closes a channel as a statement says.
func (d *Desk) turn(ctx context.Context, event, name string, evenHeld bool, statement string) (Altered, error) {
	return d.alter(ctx, event, change{evenHeld: evenHeld, plan: func(ctx context.Context, tx pgx.Tx) ([]int, func(standing) standing, error) {
		var open bool
		err := tx.QueryRow(ctx, statement, event, name).Scan(&open)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil, ErrNoChannel
		}
		if err != nil {
			return nil, nil, err
		}
		members, err := channelSeats(ctx, tx, event, name, nil)
		return members, joining(name, open, nil), err
	}})
}

// DropChannel gives the seats of a channel to the public, and ends it.
// ErrNoChannel.
func (d *Desk) DropChannel(ctx context.Context, event, name string) (Altered, error) {
	a, err := d.alter(ctx, event, change{plan: func(ctx context.Context, tx pgx.Tx) ([]int, func(standing) standing, error) {
		tag, err := tx.Exec(ctx, `DELETE FROM channels WHERE event_id = $1 AND name = $2`, event, name)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNoChannel
		}
		if err != nil {
			return nil, nil, err
		}
		members, err := channelSeats(ctx, tx, event, name, nil)
		general := inChannel("", true)
		return members, func(s standing) standing {
			if s.Channel == name {
				return general(s)
			}
			return s
		}, err
	}})
	return a, pg.Said("drop channel "+name+" of "+event, err)
}

// channelSeats are the seats of a channel and others, ascending. The caller has
// locked the channel's row: nothing comes into it meanwhile.
func channelSeats(ctx context.Context, tx pgx.Tx, event, name string, others []int) ([]int, error) {
	rows, err := tx.Query(ctx, `
		SELECT i FROM seats WHERE event_id = $1 AND channel = $2 UNION SELECT unnest($3::int[]) ORDER BY 1`, event, name, orNone(others))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// Channels are those of an event, by name.
func (s *Store) Channels(ctx context.Context, event string) ([]Channel, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT c.name, c.opens_at, c.open, count(s.i), count(s.i) FILTER (WHERE s.status = 'sold')
		FROM channels c LEFT JOIN seats s ON s.event_id = c.event_id AND s.channel = c.name AND s.channel <> ''
		WHERE c.event_id = $1 GROUP BY c.event_id, c.name ORDER BY c.name`, event)
	if err != nil {
		return nil, pg.Said("list channels of "+event, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Channel, err error) {
		err = row.Scan(&c.Name, &c.OpensAt, &c.Open, &c.Seats, &c.Sold)
		if c.OpensAt != nil {
			*c.OpensAt = c.OpensAt.UTC()
		}
		return c, err
	})
	return all, pg.Said("list channels of "+event, err)
}

// openChannels opens what is due, by Postgres's clock. Every worker runs it;
// one that dies in the middle has changed nothing, or all of it.
func (d *Desk) openChannels(ctx context.Context) error {
	due, err := d.store.dueChannels(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, c := range due {
		// Another worker may have been faster, or an operator has set another time.
		_, err := d.turn(ctx, c.event, c.name, false, `
			UPDATE channels SET open = true WHERE event_id = $1 AND name = $2 AND NOT open AND opens_at <= clock_timestamp() RETURNING open`)
		if errors.Is(err, ErrNoChannel) {
			continue
		}
		if err == nil {
			d.log.InfoContext(ctx, "channel opened at its time", "event", c.event, "channel", c.name)
		}
		all = errors.Join(all, pg.Said("open channel "+c.name+" of "+c.event, err))
	}
	return all
}

type dueChannel struct{ event, name string }

func (s *Store) dueChannels(ctx context.Context) ([]dueChannel, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT event_id, name FROM channels
		WHERE NOT open AND opens_at <= clock_timestamp() AND event_id NOT IN (SELECT event_id FROM cancellations) ORDER BY opens_at LIMIT 100`)
	if err != nil {
		return nil, pg.Said("look for channels to open", err)
	}
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c dueChannel, err error) {
		err = row.Scan(&c.event, &c.name)
		return c, err
	})
	return due, pg.Said("look for channels to open", err)
}
