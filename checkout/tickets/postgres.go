package tickets

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// Door lets tickets in.
type Door struct {
	db   *pgxpool.Pool
	keys *Keys
}

// NewDoor returns a door of a migrated database. It does no I/O.
func NewDoor(db *pgxpool.Pool, keys *Keys) *Door { return &Door{db, keys} }

// patience is how long a queue before a door waits for Postgres.
const patience = 3 * time.Second

// entry is a ticket as its row, its booking and its newest scan that counts have
// it.
type entry struct {
	Ticket
	live, paid, refund bool // refund: one is under way, or took it back

	turn  int
	in    bool // it is admitted now
	first Admission
	by    string // the request that admitted it
}

// Scan admits a ticket, or says why not. The repeat of a scan that admitted, by its
// Request, is told what that was. ErrForged, ErrKey, ErrUnknown, *RefusedError.
func (d *Door) Scan(ctx context.Context, s Scan) (t Ticket, a Admission, err error) {
	id, event, err := d.keys.Open(s.Payload)
	if err != nil {
		return t, a, err
	}
	var refused *RefusedError
	err = d.locked(ctx, "scan "+id, id, func(ctx context.Context, tx pgx.Tx, e *entry) error {
		refused, t = nil, e.Ticket
		if e.Event != event { // signed by us, and of no ticket we have
			return ErrUnknown
		}
		result := e.judge(s)
		if result == Admitted && e.in {
			a = e.first
			return nil
		}
		a = Admission{Gate: s.Gate, By: s.By}
		err := tx.QueryRow(ctx, `INSERT INTO ticket_scans (ticket_id, turn, result, gate, account, request)
			VALUES ($1, $2, $3, $4, $5, $6) RETURNING at`, id, e.turn, result, s.Gate, s.By, s.Request).Scan(&a.At)
		if result != Admitted {
			refused = &RefusedError{Why: result, Ticket: e.Ticket}
			if result == Used {
				refused.First = &e.first
			}
		}
		return err
	})
	if err == nil && refused != nil {
		err = refused
	}
	return t, a, err
}

// judge says what a scan comes to.
func (e *entry) judge(s Scan) Result {
	switch {
	case s.Event != "" && s.Event != e.Event:
		return WrongEvent
	case !e.live && e.refund:
		return Refunded
	case !e.live:
		return Void
	case e.refund:
		return Refunding
	case !e.paid:
		return Pending
	case e.in && (s.Request == "" || s.Request != e.by || s.By != e.first.By):
		return Used
	}
	return Admitted
}

// Undo takes an admission back: the ticket admits once more. ErrUnknown, ErrUnused.
func (d *Door) Undo(ctx context.Context, id, by, reason string) (t Ticket, undone Admission, err error) {
	err = d.locked(ctx, "undo the scan of "+id, id, func(ctx context.Context, tx pgx.Tx, e *entry) error {
		if !e.in {
			return ErrUnused
		}
		t, undone = e.Ticket, e.first
		_, err := tx.Exec(ctx, `INSERT INTO ticket_scans (ticket_id, turn, result, account, reason) VALUES ($1, $2, $3, $4, $5)`,
			id, e.turn, Undone, by, reason)
		return err
	})
	return t, undone, err
}

// locked does something with a ticket that nobody else scans, voids or refunds
// meanwhile.
func (d *Door) locked(ctx context.Context, call, id string, do func(context.Context, pgx.Tx, *entry) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := pgx.BeginFunc(ctx, d.db, func(tx pgx.Tx) error {
		e, err := lock(ctx, tx, id)
		if err != nil {
			return err
		}
		return do(ctx, tx, e)
	})
	return pg.Said(call, err)
}

// lock locks a ticket's row, and only then reads what its scans were: whoever
// held the lock before may have written one.
func lock(ctx context.Context, tx pgx.Tx, id string) (*entry, error) {
	var (
		e     = entry{Ticket: Ticket{ID: id}}
		seat  *int
		quote json.RawMessage
	)
	err := tx.QueryRow(ctx, `
		SELECT t.event_id, t.i, coalesce(t.area, ''), t.state = 'live', t.refund_id IS NOT NULL, b.quote,
			EXISTS (SELECT FROM attempts WHERE booking_id = t.booking_id AND state = 'captured')
		FROM tickets t JOIN bookings b ON b.id = t.booking_id WHERE t.id = $1 FOR NO KEY UPDATE OF t`, id).
		Scan(&e.Event, &seat, &e.Area, &e.live, &e.refund, &quote, &e.paid)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	if seat != nil {
		if err := e.name(*seat, quote); err != nil {
			return nil, err
		}
	}
	return &e, e.readScans(ctx, tx)
}

// name takes the names of a seat as the buyer was told them.
func (e *entry) name(seat int, quote json.RawMessage) error {
	q, err := seatmap.ParseQuote(quote)
	if err != nil {
		return err
	}
	for _, s := range q.Seats {
		if s.I == seat {
			e.Section, e.Row, e.Label = s.Section, s.Row, s.Label
		}
	}
	return nil
}

func (e *entry) readScans(ctx context.Context, tx pgx.Tx) error {
	var last Result
	err := tx.QueryRow(ctx, `SELECT turn, result, at, gate, account, request FROM ticket_scans
		WHERE ticket_id = $1 AND result IN ('admitted', 'undone') ORDER BY turn DESC, result DESC LIMIT 1`, e.ID).
		Scan(&e.turn, &last, &e.first.At, &e.first.Gate, &e.first.By, &e.by)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case last == Undone:
		e.turn++
		return err
	}
	e.in = true
	return err
}
