package checkout

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// OrderQuery asks for what an account has booked, the newest first.
type OrderQuery struct {
	User     string
	Before   time.Time // with BeforeID, the last of an earlier page; zero: from the newest on
	BeforeID string
	Limit    int
}

// How many of an account's bookings are listed.
const (
	usualOrders = 20
	mostOrders  = 50
)

// Order is one of an account's bookings as its list shows it.
type Order struct {
	BookingID string       `json:"bookingId"`
	State     BookingState `json:"state"`
	BookedAt  time.Time    `json:"bookedAt"`            // when it got its row
	ExpiresAt *time.Time   `json:"expiresAt,omitempty"` // of one that is not over
	Reason    string       `json:"reason,omitempty"`    // why it was lost, or that it ended with its event
	Event     OrderEvent   `json:"event"`
	seatmap.Quote
	Tickets []Ticket `json:"tickets,omitempty"`
}

// OrderEvent is what somebody wants to know of the event they booked.
type OrderEvent struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Venue    string    `json:"venue"`
	Zone     string    `json:"zone"`
	StartsAt time.Time `json:"startsAt"`
}

// Orders is a page of an account's bookings.
type Orders struct {
	Bookings []Order `json:"bookings"`
	Next     string  `json:"next,omitempty"` // ask for what is before it; absent: that was all
}

// orderRow is a booking with what its list says of its event.
type orderRow struct {
	booking
	at    time.Time
	event OrderEvent
	grace int64 // ms
}

// Orders lists the bookings of an account that have a row: those of which a
// payment has begun, and those without a hold or of the box office.
func (d *Desk) Orders(ctx context.Context, q OrderQuery) (Orders, error) {
	rows, err := d.store.orders(ctx, q)
	if err != nil {
		return Orders{}, err
	}
	list := Orders{Bookings: []Order{}}
	if len(rows) > q.Limit {
		rows = rows[:q.Limit]
		list.Next = cursor(rows[q.Limit-1])
	}
	ids := make([]string, len(rows))
	for n, r := range rows {
		ids[n] = r.ID
	}
	tickets, err := d.store.tickets(ctx, ids...)
	if err != nil {
		return Orders{}, err
	}
	for _, r := range rows {
		d.asHeld(ctx, &r.booking)
		order, err := r.order()
		if err != nil {
			return Orders{}, err
		}
		if all := tickets[r.ID]; len(all) > 0 {
			order.Tickets = describe(r.Event, all, order.Quote, d.signer)
		}
		list.Bookings = append(list.Bookings, order)
	}
	return list, nil
}

func (r *orderRow) order() (Order, error) {
	quote, err := r.quote()
	if err != nil {
		return Order{}, err
	}
	o := Order{BookingID: r.ID, State: r.State, BookedAt: r.at.UTC(), Reason: r.Reason, Event: r.event, Quote: quote}
	if loc, err := time.LoadLocation(r.event.Zone); err == nil {
		o.Event.StartsAt = o.Event.StartsAt.In(loc)
	}
	if r.State == BookingHeld || r.State == BookingPaying {
		until := r.Deadline.Add(-time.Duration(r.grace) * time.Millisecond).UTC()
		o.ExpiresAt = &until
	}
	return o, nil
}

// orders returns one row more than asked for when there is another page.
func (s *Store) orders(ctx context.Context, q OrderQuery) ([]orderRow, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT b.id, event_id, b.state, quote, amount, b.currency, deadline, b.reason, clock_timestamp(), b.created_at,
			e.name, e.venue, e.zone, e.starts_at, e.grace_ms
		FROM bookings b JOIN events e ON e.id = event_id
		WHERE user_id = $1 AND ($2::timestamptz IS NULL OR (b.created_at, b.id) < ($2, $3))
		ORDER BY b.created_at DESC, b.id DESC LIMIT $4`, q.User, known(q.Before), q.BeforeID, q.Limit+1)
	if err != nil {
		return nil, pg.Said("list bookings", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r orderRow, err error) {
		err = row.Scan(&r.ID, &r.Event, &r.State, &r.Quote, &r.Money.Amount, &r.Money.Currency, &r.Deadline, &r.Reason, &r.Now, &r.at,
			&r.event.Name, &r.event.Venue, &r.event.Zone, &r.event.StartsAt, &r.grace)
		_, r.Token, _ = strings.Cut(r.ID, ".")
		r.event.ID = r.Event
		return r, err
	})
	return all, pg.Said("list bookings", err)
}

// known is nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// cursor names a row: when it was made, to the microsecond that Postgres keeps,
// and which it is of those made then.
func cursor(r orderRow) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", r.at.UnixMicro(), r.ID))
}

var errCursor = errors.New("checkout: no cursor of ours")

func parseCursor(text string) (at time.Time, id string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return at, "", errCursor
	}
	number, id, _ := strings.Cut(string(raw), " ")
	micros, err := strconv.ParseInt(number, 10, 64)
	if _, _, ok := seatmap.ParseBookingID(id); err != nil || !ok || micros < 0 || micros > maxMicros {
		return at, "", errCursor
	}
	return time.UnixMicro(micros), id, nil
}

// maxMicros is in the year 5138: Postgres knows later days, a cursor need not.
const maxMicros = 100_000_000_000 * 1_000_000
