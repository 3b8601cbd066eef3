package seatmap

import (
	"encoding/json"
	"fmt"
	"time"
)

// Quote is what a basket costs, as it was said when the basket was taken: it
// is kept in Basket.Quote, copied into the booking's row, and shown. Later
// prices and charts do not change it.
type Quote struct {
	Seats []QuotedSeat `json:"seats"` // in the order of Basket.Seats
	Areas []QuotedArea `json:"areas"` // by area
	Total Money        `json:"total"`
}

// QuotedSeat is one seat and its price.
type QuotedSeat struct {
	I        int    `json:"i"`
	TicketID string `json:"ticketId"`
	Label    string `json:"label"`
	Section  string `json:"section"`
	Row      string `json:"row"`
	Category string `json:"category"`
	Price    int64  `json:"price"` // minor units
}

// QuotedArea is a number of general-admission places and the price of one.
type QuotedArea struct {
	Area     string `json:"area"`
	Quantity int    `json:"quantity"`
	Price    int64  `json:"price"` // minor units, of one place
}

// Money is an amount in minor units of a currency.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"` // ISO 4217
}

// Quote prices seats, given ascending, and places by area. It fails on a seat,
// an area or a price the sale does not have.
func (s *Sale) Quote(seats []int, areas map[string]int) (Quote, error) {
	q := Quote{Seats: make([]QuotedSeat, 0, len(seats)), Areas: make([]QuotedArea, 0, len(areas)), Total: Money{Currency: s.Currency}}
	for _, i := range seats {
		at, ok := s.Index.At(i)
		if !ok {
			return Quote{}, fmt.Errorf("quote %s: no seat %d", s.Event, i)
		}
		price, ok := s.Prices[at.Seat.Category]
		if !ok {
			return Quote{}, fmt.Errorf("quote %s: category %q has no price", s.Event, at.Seat.Category)
		}
		q.Seats = append(q.Seats, QuotedSeat{I: i, TicketID: at.Seat.TicketID, Label: at.Seat.Label,
			Section: at.Section.Name, Row: at.Row.Label, Category: at.Seat.Category, Price: price})
		q.Total.Amount += price
	}
	for _, area := range s.Chart.Areas { // in the chart's order, so that a quote is the same each time
		quantity := areas[area.ID]
		if quantity == 0 {
			continue
		}
		price, ok := s.Prices[area.Category]
		if !ok {
			return Quote{}, fmt.Errorf("quote %s: category %q has no price", s.Event, area.Category)
		}
		q.Areas = append(q.Areas, QuotedArea{Area: area.ID, Quantity: quantity, Price: price})
		q.Total.Amount += price * int64(quantity)
	}
	if len(q.Areas) != len(areas) {
		return Quote{}, fmt.Errorf("quote %s: an area of %v is not in the chart", s.Event, areas)
	}
	return q, nil
}

// Booking is a basket or a booking as the API shows it.
type Booking struct {
	BookingID string     `json:"bookingId"`
	State     string     `json:"state"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"` // what the shopper's clock counts to: without the grace
	Cap       *time.Time `json:"cap,omitempty"`       // it is never extended beyond this
	Holds     *bool      `json:"holds,omitempty"`     // false: nothing is held, the seats are confirmed when they are paid for
	Quote
}

// Booking shows b on the terms of the sale.
func (s *Sale) Booking(b Basket) (Booking, error) {
	out := Booking{BookingID: BookingID(b.Event, b.Token), State: string(b.State)}
	if err := json.Unmarshal(b.Quote, &out.Quote); err != nil {
		return Booking{}, fmt.Errorf("quote of booking %s: %w", out.BookingID, err)
	}
	until, limit := b.Until.Add(-s.Terms.Grace).UTC(), b.Cap.Add(-s.Terms.Grace).UTC()
	out.ExpiresAt, out.Cap = &until, &limit
	if b.Unheld && s.NoHolds {
		out.Holds = new(bool)
	}
	return out, nil
}
