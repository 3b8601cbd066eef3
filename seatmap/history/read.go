package history

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
)

// entryColumns are what scanEntry reads.
const entryColumns = `i, n, at, what, seen, coalesce(until, 'epoch'), coalesce(holder, '')`

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	err = row.Scan(&e.Seat, &e.N, &e.At, &e.What, &e.Seen, &e.Until, &e.Holder)
	if e.Until.Unix() == 0 {
		e.Until = time.Time{}
	}
	return e, err
}

// position returns how far an event is recorded; its N is 0 when it is not.
func (b *Book) position(ctx context.Context, event string) (p Position, err error) {
	err = b.pool.QueryRow(ctx, `SELECT n, at FROM seat_log_positions WHERE event_id = $1 AND n > 0`, event).Scan(&p.N, &p.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return Position{}, nil
	}
	return p, pg.Said("how far "+event+" is recorded", err)
}

// index is that of a seat the event has, or has had on a chart before, or errNoSeat.
func (b *Book) index(ctx context.Context, event, ticket string) (i int, err error) {
	if !utf8.ValidString(ticket) || strings.ContainsRune(ticket, 0) { // which no text of Postgres is
		return 0, errNoSeat
	}
	err = b.pool.QueryRow(ctx, `SELECT i FROM seats WHERE event_id = $1 AND ticket_id = $2`, event, ticket).Scan(&i)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoSeat
	}
	return i, pg.Said("look for a seat of "+event, err)
}

// before returns so many entries of a seat, the newest below number n first.
func (b *Book) before(ctx context.Context, event string, seat int, n int64, limit int) ([]Entry, error) {
	return b.entries(ctx, `SELECT `+entryColumns+` FROM seat_log WHERE event_id = $1 AND i = $2 AND n < $3 ORDER BY n DESC LIMIT $4`,
		event, seat, n, limit)
}

// at returns the entry that made a seat what it was at a moment, or none.
func (b *Book) at(ctx context.Context, event string, seat int, moment time.Time) ([]Entry, error) {
	return b.entries(ctx, `SELECT `+entryColumns+` FROM seat_log WHERE event_id = $1 AND i = $2 AND at <= $3 ORDER BY n DESC LIMIT 1`,
		event, seat, moment)
}

func (b *Book) entries(ctx context.Context, sql string, args ...any) ([]Entry, error) {
	rows, err := b.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, pg.Said("read the seat log", err)
	}
	all, err := pgx.CollectRows(rows, scanEntry)
	return all, pg.Said("read the seat log", err)
}

const gapColumns = `from_n, coalesce(from_at, 'epoch'), to_n, to_at, reason`

func scanGap(row pgx.CollectableRow) (g Gap, err error) {
	return g, row.Scan(&g.From.N, &g.From.At, &g.To.N, &g.To.At, &g.Reason)
}

// gapsBetween returns the gaps of an event that reach into what lies between two
// numbers, the newest first.
func (b *Book) gapsBetween(ctx context.Context, event string, above, below int64) ([]Gap, error) {
	return b.gaps(ctx, `SELECT `+gapColumns+` FROM seat_log_gaps WHERE event_id = $1 AND to_n >= $2 AND from_n < $3 ORDER BY to_n DESC LIMIT 200`,
		event, above, below)
}

// gapsAt returns the gaps of an event in which a moment lies. One begins with its
// last change before it: what came next is not known.
func (b *Book) gapsAt(ctx context.Context, event string, moment time.Time) ([]Gap, error) {
	return b.gaps(ctx, `SELECT `+gapColumns+` FROM seat_log_gaps WHERE event_id = $1
		AND (from_at IS NULL OR least(from_at, to_at) <= $2) AND greatest(from_at, to_at) > $2 ORDER BY to_n DESC LIMIT 200`, event, moment)
}

func (b *Book) gaps(ctx context.Context, sql string, args ...any) ([]Gap, error) {
	rows, err := b.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, pg.Said("read the gaps of the seat log", err)
	}
	all, err := pgx.CollectRows(rows, scanGap)
	return all, pg.Said("read the gaps of the seat log", err)
}

// sale is one ticket a seat has had, and what was paid for it.
type sale struct {
	Ticket, TicketState string
	Issued              time.Time
	Price               int64 // minor units
	Currency            string
	Booking, User       string
	BookingState        string
	Amount              int64  // of the whole booking, minor units
	Reason              string // why the booking was lost
	Attempt, Payment    string // the last try at paying it, and where it stands; empty: none
	Provider            string
}

// sales returns the tickets of a seat, the newest first.
func (b *Book) sales(ctx context.Context, event string, seat int) ([]sale, error) {
	rows, err := b.pool.Query(ctx, `
		SELECT t.id, t.state, t.created_at, t.price, b.currency, b.id, b.user_id, b.state, b.amount, b.reason,
			coalesce(a.id, ''), coalesce(a.state, ''), coalesce(a.provider, '')
		FROM (SELECT * FROM tickets WHERE event_id = $1 AND i = $2 AND state = 'live'
			UNION ALL SELECT * FROM tickets WHERE event_id = $1 AND i = $2 AND state = 'void') t
		JOIN bookings b ON b.id = t.booking_id
		LEFT JOIN LATERAL (SELECT id, state, provider FROM attempts WHERE booking_id = b.id ORDER BY created_at DESC, id DESC LIMIT 1) a ON true
		ORDER BY t.created_at DESC LIMIT 200`, event, seat)
	if err != nil {
		return nil, pg.Said("read the tickets of a seat", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sale])
	return all, pg.Said("read the tickets of a seat", err)
}

// accounts returns whose bookings these are; one without a row is absent.
func (b *Book) accounts(ctx context.Context, bookings []string) (map[string]string, error) {
	rows, err := b.pool.Query(ctx, `SELECT id, user_id FROM bookings WHERE id = ANY($1)`, bookings)
	if err != nil {
		return nil, pg.Said("read the accounts of bookings", err)
	}
	users := make(map[string]string)
	var id, user string
	_, err = pgx.ForEachRow(rows, []any{&id, &user}, func() error {
		users[id] = user
		return nil
	})
	return users, pg.Said("read the accounts of bookings", err)
}

// call is an operator's call that was under way at one of some moments.
type call struct {
	Moment   int // which of them, from 1
	ID       int64
	At       time.Time
	Operator string
	Method   string
	Path     string
}

// calls returns those on an event that may change it and were under way at a
// moment, as far as the clocks of Postgres and Redis tell; a call without an
// outcome counts for a minute.
func (b *Book) calls(ctx context.Context, event string, moments []time.Time) ([]call, error) {
	rows, err := b.pool.Query(ctx, `
		SELECT m.k, c.id, c.at, c.operator, c.method, c.path FROM admin_calls c LEFT JOIN admin_outcomes o ON o.call_id = c.id
		JOIN unnest($2::timestamptz[]) WITH ORDINALITY m (at, k)
			ON c.at <= m.at + $3::interval AND coalesce(o.at, c.at + interval '1 minute') >= m.at - $3::interval
		WHERE c.event_id = $1 AND c.method <> 'GET' AND coalesce(o.status, 200) < 400 ORDER BY m.k, c.id LIMIT 1000`, event, moments, skew)
	if err != nil {
		return nil, pg.Said("read the calls of operators", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[call])
	return all, pg.Said("read the calls of operators", err)
}
