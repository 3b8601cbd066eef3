package waitingroom

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/internal/pg"
	"seatcast/seatmap"
	"seatcast/waitingroom/draw"
)

// Store is the rooms in Postgres: their settings, their draws and who was let
// in. While Postgres does not answer the error is seatmap.ErrUnavailable.
type Store struct {
	pool  *pgxpool.Pool
	locks chan struct{} // a slot for every lock of a room
}

// locksAtOnce is how many rooms one process locks at the same time: a lock has a
// connection, and what is done under it needs another of the same pool.
const locksAtOnce = 4

// NewStore returns the rooms of a migrated database. It does no I/O.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool, make(chan struct{}, locksAtOnce)} }

const roomColumns = `event_id, version, state, rate, burst, cap, session_ms, slow_hold_ms, slow_checkout_ms, slow_failures,
	joins_at, closes_at, opens_at, coalesce(announcement, ''),
	coalesce(tickets, 0), root, told, key, frozen_at, drawn_at, serving, last, codes, proof, created_at, guards_map`

func scanRoom(row pgx.CollectableRow) (*Room, error) {
	var (
		r                     Room
		session, hold, pay    int64
		closes, frozen, drawn *time.Time
		root, key             []byte
		announcement          string
	)
	err := row.Scan(&r.Event, &r.version, &r.State, &r.Terms.Rate, &r.Terms.Burst, &r.Terms.Cap, &session, &hold, &pay, &r.Terms.Slow.Failures,
		&r.Joins, &closes, &r.Opens, &announcement, &r.Tickets, &root, &r.Told, &key, &frozen, &drawn, &r.serving, &r.last, &r.Terms.Codes, &r.Terms.Proof, &r.made, &r.GuardsMap)
	if err != nil {
		return nil, err
	}
	r.Terms.Session = time.Duration(session) * time.Millisecond
	r.Terms.Slow.Hold, r.Terms.Slow.Checkout = time.Duration(hold)*time.Millisecond, time.Duration(pay)*time.Millisecond
	r.Joins, r.Opens = r.Joins.UTC(), r.Opens.UTC()
	for to, from := range map[*time.Time]*time.Time{&r.Closes: closes, &r.Frozen: frozen, &r.Drawn: drawn} {
		if from != nil {
			*to = from.UTC()
		}
	}
	copy(r.Root[:], root)
	copy(r.Key[:], key)
	if r.HasDraw() {
		if err := json.Unmarshal([]byte(announcement), &r.announced); err != nil {
			return nil, fmt.Errorf("announcement of %s: %w", r.Event, err)
		}
	}
	return &r, nil
}

// rooms returns those of events that have not been over for a month.
func (s *Store) rooms(ctx context.Context) ([]*Room, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT `+roomColumns+` FROM rooms
		WHERE event_id IN (SELECT id FROM events WHERE starts_at > now() - interval '30 days')`)
	if err != nil {
		return nil, pg.Said("look for rooms", err)
	}
	all, err := pgx.CollectRows(rows, scanRoom)
	return all, pg.Said("look for rooms", err)
}

// room returns one, or ErrNoRoom.
func (s *Store) room(ctx context.Context, event string) (*Room, error) {
	return s.one(ctx, `SELECT `+roomColumns+` FROM rooms WHERE event_id = $1`, event)
}

func (s *Store) one(ctx context.Context, query string, args ...any) (*Room, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, pg.Said("room", err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanRoom)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoRoom
	}
	return r, pg.Said("room", err)
}

// put makes a room, or changes what an operator says of one. What a draw
// announces stands once anybody could join. ErrAnnounced, ErrPast; seatmap.ErrNoEvent.
func (s *Store) put(ctx context.Context, event string, p Plan) (r *Room, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+roomColumns+` FROM rooms WHERE event_id = $1 FOR UPDATE`, event)
		if err != nil {
			return err
		}
		old, err := pgx.CollectExactlyOneRow(rows, scanRoom)
		if errors.Is(err, pgx.ErrNoRows) {
			return create(ctx, tx, event, p)
		}
		if err != nil {
			return err
		}
		return change(ctx, tx, old, p)
	})
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == "23503": // no such event
		return nil, seatmap.ErrNoEvent
	case err != nil:
		return nil, pg.Said("room of "+event, err)
	}
	return s.room(ctx, event)
}

func create(ctx context.Context, tx pgx.Tx, event string, p Plan) error {
	if err := ahead(ctx, tx, p); err != nil {
		return err
	}
	state, announcement, seed := p.announce(event)
	t := p.Terms
	_, err := tx.Exec(ctx, `INSERT INTO rooms (event_id, state, rate, burst, cap, session_ms, joins_at, closes_at, opens_at, announcement, seed, codes, proof,
			slow_hold_ms, slow_checkout_ms, slow_failures, guards_map)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		event, state, t.Rate, t.Burst, t.Cap, t.Session.Milliseconds(), p.Joins, orNull(p.Closes), p.Opens, announcement, seed, t.Codes, t.Proof,
		t.Slow.Hold.Milliseconds(), t.Slow.Checkout.Milliseconds(), t.Slow.Failures, p.GuardsMap)
	return err
}

// ahead says whether a draw is announced before anybody can join. ErrPast.
func ahead(ctx context.Context, tx pgx.Tx, p Plan) error {
	var past bool
	err := tx.QueryRow(ctx, `SELECT $1::timestamptz <= clock_timestamp()`, p.Joins).Scan(&past)
	if err == nil && past && !p.Closes.IsZero() {
		return ErrPast
	}
	return err
}

// change keeps the seed while the announcement stays what it is.
func change(ctx context.Context, tx pgx.Tx, old *Room, p Plan) error {
	begun := old.State != Draw && old.State != Closed
	same := p.announces(old)
	if !same || !p.Joins.Equal(old.Joins) {
		var joined bool
		if err := tx.QueryRow(ctx, `SELECT joins_at <= now() FROM rooms WHERE event_id = $1`, old.Event).Scan(&joined); err != nil {
			return err
		}
		if joined {
			return ErrAnnounced
		}
		if err := ahead(ctx, tx, p); err != nil {
			return err
		}
	}
	if begun && !p.Opens.Equal(old.Opens) {
		return ErrAnnounced
	}
	if !same {
		state, announcement, seed := p.announce(old.Event)
		if _, err := tx.Exec(ctx, `UPDATE rooms SET state = $2, closes_at = $3, announcement = $4, seed = $5 WHERE event_id = $1`,
			old.Event, state, orNull(p.Closes), announcement, seed); err != nil {
			return err
		}
	}
	t := p.Terms
	_, err := tx.Exec(ctx, `UPDATE rooms SET version = version + 1, rate = $2, burst = $3, cap = $4, session_ms = $5, joins_at = $6, opens_at = $7,
			codes = $8, proof = $9, slow_hold_ms = $10, slow_checkout_ms = $11, slow_failures = $12, guards_map = $13
		WHERE event_id = $1`,
		old.Event, t.Rate, t.Burst, t.Cap, t.Session.Milliseconds(), p.Joins, p.Opens,
		t.Codes, t.Proof, t.Slow.Hold.Milliseconds(), t.Slow.Checkout.Milliseconds(), t.Slow.Failures, p.GuardsMap)
	return err
}

// announce is what a room begins as: the state, and of a draw what is published
// and the seed that is not.
func (p Plan) announce(event string) (state State, announcement *string, seed []byte) {
	if p.Closes.IsZero() {
		return Closed, nil, nil
	}
	seed = make([]byte, len(draw.Digest{}))
	_, _ = rand.Read(seed) // it never fails
	text := draw.Announce(draw.Terms{Event: event, Closes: p.Closes, Commitment: sha256.Sum256(seed), External: p.External}).Text()
	return Draw, &text, seed
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// turn changes what a room does, if it does one of from now. ErrState.
func (s *Store) turn(ctx context.Context, event string, to State, from ...State) (*Room, error) {
	return s.changed(ctx, event, `UPDATE rooms SET version = version + 1, state = $2 WHERE event_id = $1 AND state = ANY($3) RETURNING `+roomColumns, event, to, from)
}

// open opens a room whose list, if it has one, is drawn; atItsTime says that its time
// must have come. One that was over before its list was drawn is closed again, and drawn
// first. ErrState.
func (s *Store) open(ctx context.Context, event string, atItsTime bool) (*Room, error) {
	return s.changed(ctx, event, `UPDATE rooms SET version = version + 1, state = CASE WHEN closes_at IS NULL OR drawn_at IS NOT NULL THEN 'open' ELSE 'closed' END
		WHERE event_id = $1 AND (state = 'over' OR state = 'closed' AND (closes_at IS NULL OR drawn_at IS NOT NULL)) AND (NOT $2 OR state = 'closed' AND opens_at <= now()) RETURNING `+roomColumns, event, atItsTime)
}

func (s *Store) rate(ctx context.Context, event string, rate, burst int) (*Room, error) {
	return s.changed(ctx, event, `UPDATE rooms SET version = version + 1, rate = $2, burst = coalesce(NULLIF($3, 0), burst) WHERE event_id = $1 RETURNING `+roomColumns, event, rate, burst)
}

// changed returns the room a conditional UPDATE has changed, or why it has not.
func (s *Store) changed(ctx context.Context, event, update string, args ...any) (*Room, error) {
	r, err := s.one(ctx, update, args...)
	if errors.Is(err, ErrNoRoom) {
		if _, err := s.room(ctx, event); err != nil {
			return nil, err
		}
		return nil, ErrState
	}
	return r, err
}

// drop removes a room that nobody could join yet, or that is over, with its list and
// its admissions, once clear has removed it elsewhere. ErrNoRoom and ErrState.
func (s *Store) drop(ctx context.Context, event string, clear func() error) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM rooms WHERE event_id = $1 AND (joins_at > now() OR state = 'over')`, event)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return pgx.ErrNoRows
		}
		return clear()
	})
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err := s.room(ctx, event); err != nil {
			return err
		}
		return ErrState
	}
	return pg.Said("remove the room of "+event, err)
}

// keep notes how far a room has come, and returns how far it has called as it is
// known now. Neither number falls. Of a room that is not there any more nothing is noted.
func (s *Store) keep(ctx context.Context, room *Room, serving, last int64) (kept int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = s.pool.QueryRow(ctx, `WITH k AS (UPDATE rooms SET serving = greatest(serving, $2), last = greatest(last, $3)
			WHERE event_id = $1 AND created_at = $4 AND (serving < $2 OR last < $3) RETURNING serving)
		SELECT coalesce(greatest((SELECT serving FROM k), (SELECT serving FROM rooms WHERE event_id = $1 AND created_at = $4)), 0)`,
		room.Event, serving, last, room.made).Scan(&kept)
	return kept, pg.Said("how far "+room.Event+" has called", err)
}

// locked runs work while no other process makes, freezes or draws the room. With
// try it does nothing and says false when another does.
func (s *Store) locked(ctx context.Context, event string, try bool, work func(context.Context) error) (done bool, err error) {
	select {
	case s.locks <- struct{}{}:
	case <-ctx.Done():
		return false, fmt.Errorf("room of %s: %w: %w", event, seatmap.ErrUnavailable, ctx.Err())
	}
	defer func() { <-s.locks }()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		lock := `SELECT true FROM (SELECT pg_advisory_xact_lock(hashtextextended('seatcast room:' || $1, 0))) l`
		if try {
			lock = `SELECT pg_try_advisory_xact_lock(hashtextextended('seatcast room:' || $1, 0))`
		}
		if err := tx.QueryRow(ctx, lock, event).Scan(&done); err != nil || !done {
			return err
		}
		return work(ctx)
	})
	return done, pg.Said("room of "+event, err)
}

// entry is what became of one ticket of a list before it was frozen.
type entry struct {
	ticket draw.Ticket
	gone   bool
}

// enter writes down what became of a list that is not frozen, in that order: whoever
// has left it again stays on it, marked. Entering it again changes nothing.
func (s *Store) enter(ctx context.Context, event string, entries []entry) error {
	last := map[draw.ID]bool{}
	var in []draw.Ticket
	for _, e := range entries {
		last[e.ticket.ID] = e.gone
		if !e.gone {
			in = append(in, e.ticket)
		}
	}
	ids, gone := make([][]byte, 0, len(last)), make([]bool, 0, len(last))
	for id, left := range last {
		ids, gone = append(ids, id[:]), append(gone, left)
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var open bool
		if err := tx.QueryRow(ctx, `SELECT state = 'draw' FROM rooms WHERE event_id = $1 FOR SHARE`, event).Scan(&open); err != nil || !open {
			return err
		}
		if err := insert(ctx, tx, event, in); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE room_tickets t SET left_at = CASE WHEN e.gone THEN now() END FROM unnest($2::bytea[], $3::bool[]) e (ticket, gone)
			WHERE t.event_id = $1 AND t.ticket = e.ticket AND e.gone <> (t.left_at IS NOT NULL)`, event, ids, gone)
		return err
	})
	return pg.Said("tickets of "+event, err)
}

func insert(ctx context.Context, tx pgx.Tx, event string, tickets []draw.Ticket) error {
	ids, nonces := make([][]byte, len(tickets)), make([][]byte, len(tickets))
	for n := range tickets {
		ids[n], nonces[n] = tickets[n].ID[:], tickets[n].Nonce[:]
	}
	_, err := tx.Exec(ctx, `INSERT INTO room_tickets (event_id, ticket, nonce)
		SELECT $1, * FROM unnest($2::bytea[], $3::bytea[]) ON CONFLICT DO NOTHING`, event, ids, nonces)
	return err
}

// listed is a list as it is written down.
type listed struct {
	tickets []draw.Ticket
	ranks   []int // 0 before the draw
	left    []bool
}

// list returns the tickets of a room, in the order of the list.
func (s *Store) list(ctx context.Context, event string) (l listed, err error) {
	return readList(ctx, s.pool, event)
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func readList(ctx context.Context, from querier, event string) (l listed, err error) {
	rows, err := from.Query(ctx, `SELECT ticket, nonce, coalesce(rank, 0), left_at IS NOT NULL FROM room_tickets WHERE event_id = $1 ORDER BY ticket`, event)
	if err != nil {
		return l, pg.Said("list of "+event, err)
	}
	var (
		id, nonce []byte
		rank      int
		left      bool
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &nonce, &rank, &left}, func() error {
		l.tickets = append(l.tickets, draw.Ticket{ID: draw.ID(id), Nonce: draw.ID(nonce)})
		l.ranks, l.left = append(l.ranks, rank), append(l.left, left)
		return nil
	})
	return l, pg.Said("list of "+event, err)
}

// freeze closes the list of a room for good: what is written down of it, and
// found beside that. ErrState when it is closed already.
func (s *Store) freeze(ctx context.Context, event string, found []draw.Ticket) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := insert(ctx, tx, event, found); err != nil {
			return err
		}
		l, err := readList(ctx, tx, event)
		if err != nil {
			return err
		}
		list, err := draw.Freeze(l.tickets)
		if err != nil {
			return err
		}
		root := list.Root()
		tag, err := tx.Exec(ctx, `UPDATE rooms SET version = version + 1, state = 'closed', tickets = $2::int, root = $3, frozen_at = clock_timestamp(), last = greatest(last, $2::int)
			WHERE event_id = $1 AND state = 'draw'`, event, list.Len(), root[:])
		if err == nil && tag.RowsAffected() == 0 {
			return ErrState
		}
		return err
	})
	return pg.Said("freeze "+event, err)
}

// tell writes down what the external source has told, once. ErrState before the
// list is frozen, and when something else was told.
func (s *Store) tell(ctx context.Context, event string, told []byte) (*Room, error) {
	return s.changed(ctx, event, `UPDATE rooms SET told = $2 WHERE event_id = $1 AND frozen_at IS NOT NULL AND coalesce(told, $2) = $2 RETURNING `+roomColumns, event, told)
}

// seed returns the secret of a room whose list is frozen.
func (s *Store) seed(ctx context.Context, event string) (seed draw.Digest, err error) {
	var raw []byte
	err = s.pool.QueryRow(ctx, `SELECT seed FROM rooms WHERE event_id = $1 AND frozen_at IS NOT NULL`, event).Scan(&raw)
	copy(seed[:], raw)
	return seed, pg.Said("seed of "+event, err)
}

// drawn writes down the ranks of a list, in its order. ErrState when it is drawn, or the
// room over.
func (s *Store) drawn(ctx context.Context, event string, key draw.Digest, l *draw.List, ranks []int) error {
	ids := make([][]byte, 0, l.Len())
	for _, t := range l.All() {
		ids = append(ids, append([]byte(nil), t.ID[:]...))
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE room_tickets t SET rank = r.rank FROM unnest($2::bytea[], $3::int[]) r (ticket, rank)
			WHERE t.event_id = $1 AND t.ticket = r.ticket`, event, ids, ranks); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE rooms SET version = version + 1, key = $2, drawn_at = clock_timestamp() WHERE event_id = $1 AND drawn_at IS NULL AND state = 'closed'`, event, key[:])
		if err == nil && tag.RowsAffected() == 0 {
			return ErrState
		}
		return err
	})
	return pg.Said("draw "+event, err)
}

// left notes that somebody has given their place up, or had it taken. Of who leaves a
// draw that is not frozen it is entered in its turn: they may be back.
func (s *Store) left(ctx context.Context, event string, id draw.ID) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := s.pool.Exec(ctx, `WITH room AS (SELECT FROM rooms WHERE event_id = $1 AND state <> 'draw'),
		listed AS (UPDATE room_tickets SET left_at = coalesce(left_at, now()) WHERE event_id = $1 AND ticket = $2 AND EXISTS (SELECT FROM room) RETURNING true)
		INSERT INTO room_left (event_id, ticket) SELECT $1, $2 FROM room WHERE NOT EXISTS (SELECT FROM listed) ON CONFLICT DO NOTHING`, event, id[:])
	return pg.Said("ticket of "+event, err)
}

// gone is somebody who has left, and when.
type gone struct {
	ticket draw.ID
	at     time.Time
}

// gone returns who has left a room.
func (s *Store) gone(ctx context.Context, event string) ([]gone, error) {
	rows, err := s.pool.Query(ctx, `SELECT ticket, at FROM room_left WHERE event_id = $1
		UNION ALL SELECT ticket, left_at FROM room_tickets WHERE event_id = $1 AND left_at IS NOT NULL`, event)
	if err != nil {
		return nil, pg.Said("who has left "+event, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g gone, err error) {
		var ticket []byte
		if err = row.Scan(&ticket, &g.at); err == nil {
			g.ticket = draw.ID(ticket)
		}
		return g, err
	})
	return all, pg.Said("who has left "+event, err)
}

// admission is one time somebody was let in.
type admission struct {
	event, jti, user string
	ticket           draw.ID
	until            time.Time
	ended            time.Time // before its time; zero: it was not
	became           string    // bought, left or revoked
}

// book writes admissions down, and what became of them. It may be repeated.
func (s *Store) book(ctx context.Context, all []admission) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var b pgx.Batch
	for _, a := range all {
		var became *string
		if a.became != "" {
			became = &a.became
		}
		b.Queue(`INSERT INTO room_admissions (event_id, jti, ticket, user_id, until, ended_at, became) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (event_id, jti) DO UPDATE SET ended_at = excluded.ended_at, became = excluded.became
			WHERE room_admissions.ended_at IS NULL AND excluded.ended_at IS NOT NULL`,
			a.event, a.jti, a.ticket[:], a.user, a.until, orNull(a.ended), became)
	}
	return pg.Said("write admissions down", s.pool.SendBatch(ctx, &b).Close())
}

// admissions returns who was let into a room; of one user, unless that is empty,
// those whose time is not over.
func (s *Store) admissions(ctx context.Context, event, user string) ([]admission, error) {
	rows, err := s.pool.Query(ctx, `SELECT event_id, jti, user_id, ticket, until, coalesce(ended_at, 'epoch'), coalesce(became, '') FROM room_admissions
		WHERE event_id = $1 AND ($2 = '' OR user_id = $2 AND until > now())`, event, user)
	if err != nil {
		return nil, pg.Said("admissions of "+event, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a admission, err error) {
		var ticket []byte
		if err = row.Scan(&a.event, &a.jti, &a.user, &ticket, &a.until, &a.ended, &a.became); err == nil {
			a.ticket = draw.ID(ticket)
		}
		if a.became == "" {
			a.ended = time.Time{}
		}
		return a, err
	})
	return all, pg.Said("admissions of "+event, err)
}
