package checkout

import (
	"context"

	"github.com/jackc/pgx/v5"

	"seatcast/checkout/outgoing"
	"seatcast/seatmap"
)

// bookingNews is what other systems are told of a booking: what its owner is
// shown of it, without what a door reads.
type bookingNews struct {
	Event     string       `json:"event"`
	BookingID string       `json:"bookingId"`
	User      string       `json:"user"`
	State     BookingState `json:"state"`
	Reason    string       `json:"reason,omitempty"` // why it was lost
	Lost      []string     `json:"lost,omitempty"`   // tickets of the chart that are gone
	seatmap.Quote
	Tickets  []Ticket       `json:"tickets"`
	Refunded *seatmap.Money `json:"refunded,omitempty"` // what was given back of its tickets so far
	Refund   *refundNews    `json:"refund,omitempty"`   // the one that is told of
}

// refundNews is what a refund has given back.
type refundNews struct {
	ID      string        `json:"id"`
	Tickets []string      `json:"tickets"` // their ids
	Money   seatmap.Money `json:"money"`
}

// announce tells other systems what happened, in the transaction in which it
// did.
func (s *Store) announce(ctx context.Context, tx pgx.Tx, what outgoing.Type, event string, data func() (any, error)) error {
	return outgoing.Announce(ctx, tx, s.jobs, outgoing.Announcement{Type: what, Event: event, Data: data})
}

// announceBooking tells of a booking as it is now, in this transaction.
func (s *Store) announceBooking(ctx context.Context, tx pgx.Tx, what outgoing.Type, id string) error {
	event, _, _ := seatmap.ParseBookingID(id)
	return s.announce(ctx, tx, what, event, func() (any, error) { return newsOf(ctx, tx, id) })
}

// announceRefund tells of a refund that has succeeded, and of its booking as it
// is now, in this transaction.
func (s *Store) announceRefund(ctx context.Context, tx pgx.Tx, r *refund) error {
	return s.announce(ctx, tx, outgoing.BookingRefunded, r.Event, func() (any, error) {
		n, err := newsOf(ctx, tx, r.Booking)
		if err == nil {
			n.Refund = &refundNews{r.ID, r.Tickets, r.Money}
		}
		return n, err
	})
}

func newsOf(ctx context.Context, tx pgx.Tx, id string) (*bookingNews, error) {
	b, err := scanBooking(tx.QueryRow(ctx, `SELECT `+bookingColumns+` FROM bookings WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	q, err := b.quote()
	if err != nil {
		return nil, err
	}
	tickets, err := ticketsOf(ctx, tx, b.ID)
	if err != nil {
		return nil, err
	}
	n := &bookingNews{Event: b.Event, BookingID: b.ID, User: b.User, State: b.State, Reason: b.Reason,
		Quote: q, Tickets: describe(b.Event, tickets[b.ID], q, nil),
		Refunded: refundedOf(tickets[b.ID], b.Money.Currency)}
	for _, seat := range q.Seats {
		for _, i := range b.LostSeats {
			if seat.I == i {
				n.Lost = append(n.Lost, seat.TicketID)
			}
		}
	}
	return n, nil
}
