package history

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/internal/pg"
)

// Book is the seat log in Postgres.
type Book struct{ pool *pgxpool.Pool }

// NewBook returns the log of a migrated database. It does no I/O.
func NewBook(pool *pgxpool.Pool) *Book { return &Book{pool} }

// errTaken is the answer when somebody else records the event at this moment.
var errTaken = errors.New("history: somebody else records this event")

// listed is an event that is recorded.
type listed struct {
	ID  string
	Hot bool
	N   int64 // how far it is
}

// events returns those whose seats change, or may: all but those that began
// more than 30 days ago.
func (b *Book) events(ctx context.Context) ([]listed, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := b.pool.Query(ctx, `
		SELECT e.id, e.mode = 'hot', coalesce(p.n, 0) FROM events e LEFT JOIN seat_log_positions p ON p.event_id = e.id
		WHERE e.starts_at > now() - interval '30 days'`)
	if err != nil {
		return nil, pg.Said("look for events to record", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[listed])
	return all, pg.Said("look for events to record", err)
}

// page is what is entered at once: it takes the event to a new position.
type page struct {
	entries []Entry
	gap     *Gap
	to      Position
}

// turn lets write add the next page of an event, which nobody else does
// meanwhile. It returns the position the event is at then; errTaken when
// somebody else does it now, and write's error: nothing is entered.
func (b *Book) turn(ctx context.Context, event string, write func(context.Context, *shelf) (*page, error)) (Position, error) {
	var at Position
	err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		// What a crash loses of these commits it loses with the position, so that it is read again.
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`); err != nil {
			return err
		}
		var err error
		if at, err = lockPosition(ctx, tx, event); err != nil {
			return err
		}
		p, err := write(ctx, &shelf{tx: tx, event: event, at: at})
		if err != nil || p == nil {
			return err
		}
		at = p.to
		return p.enter(ctx, tx, event)
	})
	return at, pg.Said("record "+event, err)
}

// lockPosition returns how far the event is, and makes everybody else wait, or
// rather go on with another one.
func lockPosition(ctx context.Context, tx pgx.Tx, event string) (p Position, err error) {
	const locked = `SELECT n, coalesce(at, 'epoch') FROM seat_log_positions WHERE event_id = $1 FOR UPDATE SKIP LOCKED`
	err = tx.QueryRow(ctx, locked, event).Scan(&p.N, &p.At)
	if !errors.Is(err, pgx.ErrNoRows) {
		return p, err
	}
	tag, err := tx.Exec(ctx, `INSERT INTO seat_log_positions (event_id) VALUES ($1) ON CONFLICT DO NOTHING`, event)
	if err == nil && tag.RowsAffected() == 0 {
		err = errTaken
	}
	return p, err
}

func (p *page) enter(ctx context.Context, tx pgx.Tx, event string) error {
	rows := pgx.CopyFromSlice(len(p.entries), func(k int) ([]any, error) {
		e := &p.entries[k]
		return []any{event, int32(e.Seat), e.N, e.At, orNull(e.Until, e.Until.IsZero()), e.Seen, string(e.What), orNull(e.Holder, e.Holder == "")}, nil
	})
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"seat_log"},
		[]string{"event_id", "i", "n", "at", "until", "seen", "what", "holder"}, rows); err != nil {
		return err
	}
	if g := p.gap; g != nil {
		_, err := tx.Exec(ctx, `INSERT INTO seat_log_gaps (event_id, from_n, from_at, to_n, to_at, reason) VALUES ($1, $2, $3, $4, $5, $6)`,
			event, g.From.N, orNull(g.From.At, g.From.N == 0), g.To.N, g.To.At, g.Reason)
		if err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE seat_log_positions SET n = $2, at = $3 WHERE event_id = $1`, event, p.to.N, p.to.At)
	return err
}

func orNull(v any, none bool) any {
	if none {
		return nil
	}
	return v
}

// shelf is where an event's next page goes.
type shelf struct {
	tx    pgx.Tx
	event string
	at    Position
}

// known returns what the entries so far say of the first seats of the event; one
// without an entry is absent.
func (s *shelf) known(ctx context.Context, seats int) (map[int]known, error) {
	rows, err := s.tx.Query(ctx, `
		SELECT s.i, l.what, coalesce(l.holder, '') FROM generate_series(0, $2 - 1) AS s (i), LATERAL (
			SELECT what, holder FROM seat_log WHERE event_id = $1 AND i = s.i ORDER BY n DESC LIMIT 1) l`, s.event, seats)
	if err != nil {
		return nil, err
	}
	all := make(map[int]known)
	var i int
	var k known
	_, err = pgx.ForEachRow(rows, []any{&i, &k.what, &k.holder}, func() error {
		all[i] = k
		return nil
	})
	return all, err
}
