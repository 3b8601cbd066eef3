package checkout

import (
	"context"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// Signer makes what a door reads of a ticket.
type Signer interface {
	Sign(ticket, event string) string
}

// ticket is one seat or place of a sold booking.
type ticket struct {
	ID    string
	Seat  *int // or Area
	Area  *string
	Price int64 // all it cost, its part of the fees included
	Fees  int64
	Live  bool
	Paid  bool        // its money is captured
	Back  RefundState // of its last refund; "": none is under way, and none took it back
}

// tickets returns the tickets of bookings, by booking.
func (s *Store) tickets(ctx context.Context, bookings ...string) (map[string][]ticket, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	all, err := ticketsOf(ctx, s.pool, bookings...)
	return all, pg.Said("read tickets", err)
}

func ticketsOf(ctx context.Context, q querier, bookings ...string) (map[string][]ticket, error) {
	rows, err := q.Query(ctx, `
		SELECT booking_id, id, i, area, price, fees, state = 'live',
			EXISTS (SELECT FROM attempts WHERE booking_id = t.booking_id AND state = 'captured'),
			coalesce((SELECT state FROM refunds r WHERE r.id = t.refund_id), '')
		FROM tickets t WHERE booking_id = ANY($1) ORDER BY i NULLS LAST, area, id`, bookings)
	if err != nil {
		return nil, err
	}
	all := map[string][]ticket{}
	var (
		of string
		t  ticket
	)
	_, err = pgx.ForEachRow(rows, []any{&of, &t.ID, &t.Seat, &t.Area, &t.Price, &t.Fees, &t.Live, &t.Paid, &t.Back}, func() error {
		all[of] = append(all[of], t)
		return nil
	})
	return all, err
}

// describe shows tickets of a booking. What a door reads is told of those that
// let somebody in, when there is a signer.
func describe(event string, tickets []ticket, q seatmap.Quote, signer Signer) []Ticket {
	seats := make(map[int]seatmap.QuotedSeat, len(q.Seats))
	for _, s := range q.Seats {
		seats[s.I] = s
	}
	out := make([]Ticket, 0, len(tickets))
	for _, t := range tickets {
		shown := Ticket{ID: t.ID, Price: t.Price - t.Fees, AllIn: t.Price, Status: t.status()}
		if signer != nil && shown.Status == ticketValid {
			shown.QR = signer.Sign(t.ID, event)
		}
		if t.Area != nil {
			shown.Area = *t.Area
		}
		if t.Seat != nil {
			s := seats[*t.Seat]
			shown.TicketID, shown.Section, shown.Row, shown.Label = s.TicketID, s.Section, s.Row, s.Label
		}
		out = append(out, shown)
	}
	return out
}

// What a ticket is worth.
const (
	ticketPending    = "pending"
	ticketValid      = "valid"
	ticketRefunding  = "refunding"
	ticketRefunded   = "refunded"
	ticketRefundFail = "refund_failed"
	ticketVoid       = "void"
)

func (t *ticket) status() string {
	switch {
	case t.Back == RefundPending:
		return ticketRefunding
	case t.Back == RefundSucceeded:
		return ticketRefunded
	case t.Back == RefundFailed:
		return ticketRefundFail
	case !t.Live:
		return ticketVoid
	case t.Paid:
		return ticketValid
	}
	return ticketPending
}

// refundedOf is what was given back of tickets, nil when that is nothing.
func refundedOf(tickets []ticket, currency string) *seatmap.Money {
	sum := seatmap.Money{Currency: currency}
	for _, t := range tickets {
		if t.Back == RefundSucceeded {
			sum.Amount += t.Price
		}
	}
	if sum.Amount == 0 {
		return nil
	}
	return &sum
}
