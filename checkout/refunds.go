package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// The money of sold tickets goes back here, as an operator says. A refund is a
// row before its provider hears of it, and its tickets point at it: they let
// nobody in meanwhile, and their seats stay sold. Only when the money is on its
// way for good are they void and their seats what the refund says.
//
// One that fails before that leaves the tickets as they were: who has no money
// back has the seat. One that succeeded and then fails, because the bank sent the
// money back, cannot give a seat back that somebody else may have by now: its
// tickets stay void, and their money is owed until another refund gives it.

// refundMoves are the arrows of the refund machine, by the state they reach.
var refundMoves = map[RefundState][]RefundState{
	RefundSucceeded: {RefundPending},
	RefundFailed:    {RefundPending, RefundSucceeded},
}

// What becomes of seats whose tickets are refunded.
const (
	SeatsOnSale = "on_sale" // anybody may buy them, unless something else closes them
	SeatsKilled = "killed"  // nobody may, for the reason of the refund
)

// Why tickets are not refunded.
var (
	ErrNotSold        = errors.New("checkout: booking is not sold")
	ErrCapturePending = errors.New("checkout: the money has not arrived yet")
	ErrNotTickets     = errors.New("checkout: no tickets of the booking")
	ErrRefunding      = errors.New("checkout: a refund is under way")
	ErrRefunded       = errors.New("checkout: refunded already")
)

// TicketsError says which tickets refuse a refund, and why: ErrNotTickets,
// ErrRefunding or ErrRefunded. Nothing changed.
type TicketsError struct {
	Why     error
	Tickets []string
}

func (e *TicketsError) Error() string { return fmt.Sprintf("%v: %v", e.Why, e.Tickets) }

func (e *TicketsError) Unwrap() error { return e.Why }

// RefundRequest asks for the money of tickets to be given back.
type RefundRequest struct {
	Booking string
	Tickets []string // none: all whose money was not given back
	Seats   string   // SeatsOnSale or SeatsKilled
	Reason  string
	By      string // the operator
	cancels bool   // because the event is cancelled
}

// RefundReport is a refund as an operator sees it.
type RefundReport struct {
	ID        string        `json:"id"`
	BookingID string        `json:"bookingId"`
	State     RefundState   `json:"state"`
	Tickets   []string      `json:"tickets"`
	Money     seatmap.Money `json:"money"`
	Seats     string        `json:"seats"`
	Reason    string        `json:"reason"`
	By        string        `json:"by"`
	Outside   bool          `json:"outside,omitempty"` // given back at the provider and not by us
	Failure   string        `json:"failure,omitempty"` // the provider's word for why it failed
	At        time.Time     `json:"at"`
	Dispute   string        `json:"dispute,omitempty"`  // how a dispute about the payment stands
	Admitted  []string      `json:"admitted,omitempty"` // of its tickets those that have let somebody in before it began
}

// refund is a row of refunds.
type refund struct {
	ID, Event, Booking, Attempt string
	State                       RefundState
	Tickets                     []string
	Money                       seatmap.Money
	Seats, Reason, Operator     string
	Cancels, Outside            bool
	Ref, Failure                string
	At, Asked                   time.Time
}

const refundColumns = `id, event_id, booking_id, attempt_id, state, tickets, amount, currency, seats, reason, operator, cancels, outside,
	provider_ref, failure, created_at, asked_at`

func scanRefund(row pgx.Row) (*refund, error) {
	var r refund
	err := row.Scan(&r.ID, &r.Event, &r.Booking, &r.Attempt, &r.State, &r.Tickets, &r.Money.Amount, &r.Money.Currency, &r.Seats, &r.Reason,
		&r.Operator, &r.Cancels, &r.Outside, &r.Ref, &r.Failure, &r.At, &r.Asked)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

func (r *refund) report() RefundReport {
	return RefundReport{ID: r.ID, BookingID: r.Booking, State: r.State, Tickets: r.Tickets, Money: r.Money, Seats: r.Seats, Reason: r.Reason,
		By: r.Operator, Outside: r.Outside, Failure: r.Failure, At: r.At.UTC()}
}

// Refund begins to give the money of tickets back; a job goes on with it.
// ErrNoBooking, seatmap.ErrNoBasket, ErrNotSold, ErrCapturePending, *TicketsError.
func (d *Desk) Refund(ctx context.Context, ask RefundRequest) (RefundReport, error) {
	var report RefundReport
	ctx, cancel := patient(ctx)
	defer cancel()
	err := pgx.BeginFunc(ctx, d.store.pool, func(tx pgx.Tx) error {
		r, dispute, err := d.store.beginRefund(ctx, tx, ask)
		if err != nil {
			return err
		}
		report = r.report()
		report.Dispute = dispute
		report.Admitted, err = admitted(ctx, tx, r.Tickets)
		return err
	})
	if errors.Is(err, ErrNoBooking) {
		if _, err = d.owner(ctx, ask.Booking); err == nil { // it is held, and no payment of it has begun
			err = ErrNotSold
		}
	}
	return report, pg.Said("begin a refund of "+ask.Booking, err)
}

// admitted are those of tickets that have let somebody in.
func admitted(ctx context.Context, tx pgx.Tx, tickets []string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT t FROM unnest($1::text[]) t WHERE 'admitted' = (SELECT result FROM ticket_scans
		WHERE ticket_id = t AND result IN ('admitted', 'undone') ORDER BY turn DESC, result DESC LIMIT 1)`, tickets)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// beginRefund writes a refund and queues the job that asks for it. Whoever
// begins or ends one has the booking's lock, so of two that mean the same ticket
// one is refused.
func (s *Store) beginRefund(ctx context.Context, tx pgx.Tx, ask RefundRequest) (r *refund, dispute string, err error) {
	b, err := lockBooking(ctx, tx, ask.Booking)
	if err != nil {
		return nil, "", err
	}
	if b.State != BookingSold && b.State != BookingRefunded {
		return nil, "", ErrNotSold
	}
	all, err := refundables(ctx, tx, b.ID)
	if err != nil {
		return nil, "", err
	}
	chosen, err := choose(all, ask.Tickets)
	if err != nil {
		return nil, "", err
	}
	a, err := takenBy(ctx, tx, b, chosen)
	if err != nil {
		return nil, "", err
	}
	r = &refund{ID: newID("rf_"), Event: b.Event, Booking: b.ID, Attempt: a.ID, State: RefundPending, Money: seatmap.Money{Currency: a.Money.Currency},
		Seats: ask.Seats, Reason: ask.Reason, Operator: ask.By, Cancels: ask.cancels}
	for _, t := range chosen {
		r.Tickets = append(r.Tickets, t.ID)
		r.Money.Amount += t.Price
	}
	if err := insertRefund(ctx, tx, r); err != nil {
		return nil, "", err
	}
	_, err = s.jobs.InsertTx(ctx, tx, giveBackArgs{Refund: r.ID}, nil)
	return r, a.Dispute, err
}

// takenBy is the attempt that took the money of tickets.
func takenBy(ctx context.Context, tx pgx.Tx, b *booking, tickets []refundable) (*attempt, error) {
	if of := tickets[0].Attempt; of != "" { // it was given back before, and came back
		return scanAttempt(tx.QueryRow(ctx, `SELECT `+attemptColumns+` FROM attempts WHERE id = $1`, of))
	}
	a, err := scanAttempt(tx.QueryRow(ctx, `SELECT `+attemptColumns+` FROM attempts WHERE booking_id = $1 AND state IN ('capturing', 'captured')`, b.ID))
	if err == nil && a.State == AttemptCapturing {
		err = ErrCapturePending
	}
	return a, err
}

// insertRefund writes a refund down, and when that was into it.
func insertRefund(ctx context.Context, tx pgx.Tx, r *refund) error {
	err := tx.QueryRow(ctx, `
		INSERT INTO refunds (id, event_id, booking_id, attempt_id, state, tickets, amount, currency, seats, reason, operator, cancels, outside)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING created_at`,
		r.ID, r.Event, r.Booking, r.Attempt, r.State, r.Tickets, r.Money.Amount, r.Money.Currency, r.Seats, r.Reason, r.Operator, r.Cancels, r.Outside).Scan(&r.At)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE tickets SET refund_id = $1 WHERE id = ANY($2)`, r.ID, r.Tickets)
	return err
}

// refundable is a ticket as a refund sees it.
type refundable struct {
	ID      string
	Price   int64
	Live    bool
	Refund  RefundState // of its last refund; "": none is under way, and none took it back
	Attempt string      // of that refund
}

// open says that the money of a ticket is here and no refund of it under way.
func (t refundable) open() bool {
	return t.Live && t.Refund == "" || !t.Live && t.Refund == RefundFailed
}

func refundables(ctx context.Context, q querier, booking string) ([]refundable, error) {
	rows, err := q.Query(ctx, `
		SELECT t.id, t.price, t.state = 'live', coalesce(r.state, ''), coalesce(r.attempt_id, '')
		FROM tickets t LEFT JOIN refunds r ON r.id = t.refund_id WHERE t.booking_id = $1 ORDER BY t.i NULLS LAST, t.area, t.id`, booking)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t refundable, err error) {
		err = row.Scan(&t.ID, &t.Price, &t.Live, &t.Refund, &t.Attempt)
		return t, err
	})
}

// choose are the tickets that are meant: those named, or all that are open.
func choose(all []refundable, named []string) (chosen []refundable, err error) {
	refused := map[error][]string{}
	for _, t := range all {
		switch meant := slices.Contains(named, t.ID); {
		case len(named) > 0 && !meant:
		case t.open():
			chosen = append(chosen, t)
		case t.Refund == RefundPending:
			refused[ErrRefunding] = append(refused[ErrRefunding], t.ID)
		default:
			refused[ErrRefunded] = append(refused[ErrRefunded], t.ID)
		}
	}
	for _, id := range named {
		if !slices.ContainsFunc(all, func(t refundable) bool { return t.ID == id }) {
			refused[ErrNotTickets] = append(refused[ErrNotTickets], id)
		}
	}
	if len(named) == 0 && len(chosen) > 0 {
		return chosen, nil
	}
	for _, why := range []error{ErrNotTickets, ErrRefunding, ErrRefunded} {
		if tickets := refused[why]; len(tickets) > 0 {
			return nil, &TicketsError{Why: why, Tickets: tickets}
		}
	}
	return chosen, nil
}

// giveMoneyBack asks the provider for a refund, or how it stands, and does what
// follows. One that is over is asked about too: it may have come back.
func (d *Desk) giveMoneyBack(ctx context.Context, id string) error {
	r, err := d.store.asking(ctx, id)
	if err != nil || r.Outside {
		return err
	}
	a, err := d.store.attempt(ctx, r.Attempt)
	if err != nil {
		return err
	}
	provider, err := d.provider(a.Provider)
	if err != nil {
		return err
	}
	if r.State == RefundFailed { // but its money may have been given back without us
		p, err := provider.Get(ctx, a.Ref)
		if err != nil {
			return err
		}
		return d.settle(ctx, a.Provider, p, nil)
	}
	answer := RefundAnswer{State: RefundSucceeded}
	if r.Money.Amount > 0 { // of nothing there is nothing to be asked
		if answer, err = provider.Refund(ctx, Refund{Payment: a.Ref, Key: r.ID, Money: r.Money}); err != nil {
			return err
		}
	}
	p, err := provider.Get(ctx, a.Ref) // after the answer: what is given back by now is in it
	if err != nil {
		return err
	}
	out, err := d.store.settleRefund(ctx, r, answer, p)
	if err != nil {
		return err
	}
	d.tell(ctx, a.Provider, p, out)
	if !out.mirror {
		return nil
	}
	if err := d.Mirror(ctx, r.Event); err != nil {
		d.log.WarnContext(ctx, "mirror left to the workers", "event", r.Event, "err", err)
	}
	return nil
}

// askRefunds goes on with the refunds of a booking that a provider has not been
// asked about for so long, whether a job does so too or was lost.
func (d *Desk) askRefunds(ctx context.Context, booking string, after time.Duration) error {
	ids, err := d.store.refundsDue(ctx, booking, after)
	for _, id := range ids {
		err = errors.Join(err, d.giveMoneyBack(ctx, id))
	}
	return err
}

// asking returns a refund, and notes that its provider is being asked about it.
func (s *Store) asking(ctx context.Context, id string) (*refund, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := scanRefund(s.pool.QueryRow(ctx, `UPDATE refunds SET asked_at = now() WHERE id = $1 RETURNING `+refundColumns, id))
	return r, pg.Said("read refund "+id, err)
}

func (s *Store) refundsDue(ctx context.Context, booking string, after time.Duration) ([]string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT id FROM refunds WHERE booking_id = $1 AND state = 'pending' AND asked_at <= now() - $2::interval`, booking, after)
	if err != nil {
		return nil, pg.Said("look for refunds of "+booking, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, pg.Said("look for refunds of "+booking, err)
}

// refunds are those of a booking, oldest first.
func (s *Store) refunds(ctx context.Context, booking string) ([]*refund, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT `+refundColumns+` FROM refunds WHERE booking_id = $1 ORDER BY created_at, id`, booking)
	if err != nil {
		return nil, pg.Said("read refunds of "+booking, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*refund, error) { return scanRefund(row) })
	return all, pg.Said("read refunds of "+booking, err)
}
