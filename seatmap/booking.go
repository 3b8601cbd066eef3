package seatmap

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Quote is what a basket costs, as it was said when the basket was taken: it
// is kept in Basket.Quote, copied into the booking's row, and shown. Later
// prices, fees and charts do not change it. Its lines' AllIn add up to its Total,
// and so do their prices and its Fees.
type Quote struct {
	Seats []QuotedSeat `json:"seats"` // in the order of Basket.Seats
	Areas []QuotedArea `json:"areas"` // by area
	Fees  []QuotedFee  `json:"fees"`  // in the event's order
	Total Money        `json:"total"` // all of it
}

// QuotedSeat is one seat and its price.
type QuotedSeat struct {
	I        int    `json:"i"`
	TicketID string `json:"ticketId"`
	Label    string `json:"label"`
	Section  string `json:"section"`
	Row      string `json:"row"`
	Category string `json:"category"`
	Price    int64  `json:"price"` // minor units, without fees
	AllIn    int64  `json:"allIn"` // with its fees and its share of those of the order
}

// QuotedArea is a number of general-admission places and the price of one.
type QuotedArea struct {
	Area     string `json:"area"`
	Quantity int    `json:"quantity"`
	Price    int64  `json:"price"` // minor units, of one place, without fees
	AllIn    int64  `json:"allIn"` // of all its places, with fees as a seat's
}

// QuotedFee is what one of the event's fees comes to.
type QuotedFee struct {
	Name   string `json:"name"`
	Amount int64  `json:"amount"` // minor units
}

// Places are what each of the places costs, all in: as nearly the same as can
// be.
func (a QuotedArea) Places() []int64 { return Allocate(a.AllIn, make([]int64, a.Quantity)) }

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
	}
	if len(q.Areas) != len(areas) {
		return Quote{}, fmt.Errorf("quote %s: an area of %v is not in the chart", s.Event, areas)
	}
	q.charge(s.Fees)
	return q, nil
}

// charge adds fees to the prices of a quote, and says of every line what it
// costs with them. What is asked once for the order is shared by its tickets in
// proportion to their prices.
func (q *Quote) charge(fees []Fee) {
	prices := q.prices()
	allIn := slices.Clone(prices)
	q.Fees = make([]QuotedFee, 0, len(fees))
	for _, f := range fees {
		shares := make([]int64, len(prices))
		switch {
		case f.Per == PerOrder:
			shares = Allocate(f.Amount, prices)
		default:
			for n, price := range prices {
				shares[n] = f.of(price)
			}
		}
		for n, share := range shares {
			allIn[n] += share
		}
		q.Fees = append(q.Fees, QuotedFee{Name: f.Name, Amount: sum(shares)})
	}
	q.Total.Amount = sum(allIn)
	for n := range q.Seats {
		q.Seats[n].AllIn, allIn = allIn[0], allIn[1:]
	}
	for n, a := range q.Areas {
		q.Areas[n].AllIn, allIn = sum(allIn[:a.Quantity]), allIn[a.Quantity:]
	}
}

// prices are those of every ticket, seats first.
func (q *Quote) prices() (all []int64) {
	for _, s := range q.Seats {
		all = append(all, s.Price)
	}
	for _, a := range q.Areas {
		for range a.Quantity {
			all = append(all, a.Price)
		}
	}
	return all
}

func sum(all []int64) (total int64) {
	for _, n := range all {
		total += n
	}
	return total
}

// AddsUp says that the lines, all in, are the total, and that prices and fees are
// too.
func (q Quote) AddsUp() bool {
	parts, lines := sum(q.prices()), int64(0)
	for _, f := range q.Fees {
		parts += f.Amount
	}
	for _, s := range q.Seats {
		lines += s.AllIn
	}
	for _, a := range q.Areas {
		lines += a.AllIn
	}
	return parts == q.Total.Amount && lines == q.Total.Amount
}

// ParseQuote reads what Basket.Quote keeps. One from before there were fees says
// nothing of them.
func ParseQuote(text []byte) (Quote, error) {
	var q Quote
	if err := json.Unmarshal(text, &q); err != nil {
		return Quote{}, err
	}
	if q.Fees == nil {
		said := q.Total
		q.charge(nil)
		q.Total = said
	}
	return q, nil
}

// Booking is a basket or a booking as the API shows it.
type Booking struct {
	BookingID string     `json:"bookingId"`
	State     string     `json:"state"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"` // what the shopper's clock counts to: without the grace. Until then the total is good
	Cap       *time.Time `json:"cap,omitempty"`       // it is never extended beyond this
	Holds     *bool      `json:"holds,omitempty"`     // false: nothing is held, the seats are confirmed when they are paid for
	Quote
}

// Booking shows b on the terms of the sale.
func (s *Sale) Booking(b Basket) (Booking, error) {
	out := Booking{BookingID: BookingID(b.Event, b.Token), State: string(b.State)}
	var err error
	if out.Quote, err = ParseQuote(b.Quote); err != nil {
		return Booking{}, fmt.Errorf("quote of booking %s: %w", out.BookingID, err)
	}
	until, limit := b.Until.Add(-s.Terms.Grace).UTC(), b.Cap.Add(-s.Terms.Grace).UTC()
	out.ExpiresAt, out.Cap = &until, &limit
	if b.Unheld && s.NoHolds {
		out.Holds = new(bool)
	}
	return out, nil
}
