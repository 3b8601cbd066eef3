package checkout

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// SeatQuery says which seats an operator asks about. Empty fields mean all.
type SeatQuery struct {
	Status  string // as the map shows it
	Channel *string
	pick
	After int // of a higher index
	Limit int
}

// SeatAnswer is a seat as an operator sees it.
type SeatAnswer struct {
	TicketID string       `json:"ticketId"`
	I        int          `json:"i"`
	Section  string       `json:"section"`
	Row      string       `json:"row"`
	Label    string       `json:"label"`
	Category string       `json:"category"`
	Status   string       `json:"status"` // available, held, sold or unavailable
	Killed   *Kill        `json:"killed,omitempty"`
	OffSale  bool         `json:"offSale,omitempty"`
	Channel  *SeatChannel `json:"channel,omitempty"` // absent: general
	Booking  string       `json:"bookingId,omitempty"`
	User     string       `json:"user,omitempty"`  // whose booking it is
	Until    *time.Time   `json:"until,omitempty"` // when its hold ends, grace included
	HeldBy   *HeldBy      `json:"heldBy,omitempty"`
}

// HeldBy says which operator holds a seat for its account, and what for.
type HeldBy struct {
	Operator string `json:"operator"`
	Reason   string `json:"reason"`
}

// Kill says why a seat is killed.
type Kill struct {
	Reason string `json:"reason"`
	By     string `json:"by"`
}

// SeatChannel says which channel a seat is in.
type SeatChannel struct {
	Name string `json:"name"`
	Open bool   `json:"open"`
}

// SeatList is an answer to SeatQuery.
type SeatList struct {
	Seats []SeatAnswer `json:"seats"`
	// HoldsKnown is false while Redis does not answer: who holds a seat then
	// shows as available.
	HoldsKnown bool `json:"holdsKnown"`
	Next       *int `json:"next,omitempty"` // ask for what is after it; absent: that was all
}

const seatHeld = "held"

type seatRow struct {
	standing
	booking, user *string
}

// Seats lists seats by index.
func (d *Desk) Seats(ctx context.Context, sale *seatmap.Sale, q SeatQuery) (SeatList, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	list := SeatList{Seats: []SeatAnswer{}, HoldsKnown: !sale.NoHolds}
	for after := q.After; list.Next == nil; {
		rows, err := d.store.seatRows(ctx, sale.Event, after, q.Channel)
		if err != nil {
			return SeatList{}, pg.Said("list seats of "+sale.Event, err)
		}
		var holding map[int]seatmap.Basket
		if list.HoldsKnown {
			holding, err = d.holding(ctx, sale, rows)
			list.HoldsKnown = err == nil
		}
		list.add(sale, q, rows, holding)
		if len(rows) < listStep {
			break
		}
		after = rows[len(rows)-1].I
	}
	return list, nil
}

// add lists the seats among rows that q means, until the list is full.
func (l *SeatList) add(sale *seatmap.Sale, q SeatQuery, rows []seatRow, holding map[int]seatmap.Basket) {
	for _, row := range rows {
		at, ok := sale.Index.At(row.I)
		if !ok || !q.match(at.Section, at.Row, at.Seat) {
			continue
		}
		b, held := holding[row.I]
		one := row.answer(at)
		if held && row.Status == seatAvailable {
			one.heldIn(b)
		}
		if q.Status != "" && q.Status != one.Status {
			continue
		}
		if len(l.Seats) == q.Limit {
			l.Next = &l.Seats[q.Limit-1].I
			return
		}
		l.Seats = append(l.Seats, one)
	}
}

// holding is who holds what the map shows as held.
func (d *Desk) holding(ctx context.Context, sale *seatmap.Sale, rows []seatRow) (map[int]seatmap.Basket, error) {
	shown, _, err := d.holds.Shown(ctx, sale.Event)
	if err != nil {
		return nil, err
	}
	var held []int
	for _, row := range rows {
		if row.Status == seatAvailable && row.I < 4*len(shown) && shown.At(row.I) == seatmap.Held {
			held = append(held, row.I)
		}
	}
	if len(held) == 0 {
		return nil, nil
	}
	return d.holds.Holding(ctx, sale.Event, held)
}

// heldIn says who holds a seat.
func (a *SeatAnswer) heldIn(b seatmap.Basket) {
	a.Status, a.Booking, a.User = seatHeld, seatmap.BookingID(b.Event, b.Token), b.User
	if !b.Until.IsZero() { // else the basket cannot be read
		a.Until = &b.Until
	}
	if b.Operator != "" {
		a.HeldBy = &HeldBy{b.Operator, b.Note}
	}
}

func (r seatRow) answer(at seatmap.SeatRef) SeatAnswer {
	a := SeatAnswer{TicketID: at.Seat.TicketID, I: r.I, Section: at.Section.Name, Row: at.Row.Label, Label: at.Seat.Label,
		Category: at.Seat.Category, Status: r.Status, OffSale: r.OffSale}
	if r.Killed != nil {
		a.Killed = &Kill{*r.Killed, *r.KilledBy}
	}
	if r.Channel != "" {
		a.Channel = &SeatChannel{r.Channel, !r.Shut}
	}
	if r.booking != nil {
		a.Booking, a.User = *r.booking, *r.user
	}
	return a
}

// listStep is how many rows are read at a time: few of them may be meant, and what
// is held Redis is asked for.
const listStep = 5000

// seatRows are the first seats behind an index, of a channel if one is named.
func (s *Store) seatRows(ctx context.Context, event string, after int, channel *string) ([]seatRow, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT `+standingColumns+`, booking_id, (SELECT user_id FROM bookings b WHERE b.id = s.booking_id)
		FROM seats s WHERE event_id = $1 AND i > $2 AND ($3::text IS NULL OR channel = $3) ORDER BY i LIMIT $4`, event, after, channel, listStep)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r seatRow, err error) {
		err = row.Scan(&r.I, &r.Status, &r.Killed, &r.KilledBy, &r.OffSale, &r.Channel, &r.Shut, &r.Dropped, &r.booking, &r.user)
		return r, err
	})
}
