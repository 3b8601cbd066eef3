package holds

import (
	"context"
	"encoding/json"
	"slices"

	"seatcast/seatmap"
	"seatcast/web"
)

// Payments is what swap needs to know of a booking whose payment has begun.
type Payments interface {
	// Standing returns whose a booking is and its state, once it is written down;
	// before that both are empty. "unheld" is one made while the event was without
	// holds, of which no payment has begun.
	Standing(ctx context.Context, booking string) (user, state string, err error)
}

// swapBody is all the seats a booking is to have.
type swapBody struct {
	TicketIDs []string `json:"ticketIds"`
}

// exchange gives a booking other seats. Its errors are ready to be returned.
func (a *API) exchange(ctx context.Context, sale *seatmap.Sale, token, user string, body swapBody) (g granted, err error) {
	if len(body.TicketIDs) == 0 {
		return g, web.Bad("empty_booking", "name all the seats the booking is to have; to give them all back, DELETE it")
	}
	if len(body.TicketIDs) > min(sale.Terms.SeatsPerBooking, MaxSeats) {
		return g, tooMany(sale.Terms.SeatsPerBooking)
	}
	seats, err := seatsOf(sale, body.TicketIDs)
	if err != nil {
		return g, err
	}
	if err := a.unlessBegun(ctx, sale, seatmap.BookingID(sale.Event, token), user); err != nil {
		return g, problem(sale, err)
	}
	var own []int
	if a.away(sale) {
		g.basket, own, err = a.exchangeUnheld(ctx, sale, token, user, seats)
	} else {
		quote := func(b seatmap.Basket) (json.RawMessage, error) {
			own = b.Seats
			return a.reprice(ctx, sale, b, seats)
		}
		g.basket, err = a.store.Swap(ctx, SwapRequest{Event: sale.Event, Token: token, User: user, Seats: seats, Terms: sale.Terms, Quote: quote})
	}
	if err != nil {
		return g, problem(sale, err)
	}
	g.warnings = a.warnOfOrphans(ctx, sale, own, seats)
	return g, nil
}

// reprice judges the seats a basket is to have instead of its own, and says
// what it then costs.
func (a *API) reprice(ctx context.Context, sale *seatmap.Sale, b seatmap.Basket, seats []int) (json.RawMessage, error) {
	if err := fits(sale, b, seats); err != nil {
		return nil, err
	}
	if err := a.refuseOrphans(ctx, sale, b.Seats, seats); err != nil {
		return nil, err
	}
	return price(sale, seats, b.Areas)
}

// fits judges whether a booking may have so many seats, now.
func fits(sale *seatmap.Sale, b seatmap.Basket, seats []int) error {
	switch most := sale.Terms.SeatsPerBooking; {
	case len(seats)+places(b.Areas) > most:
		return tooMany(most)
	case !sale.Open:
		return notOpen(sale)
	}
	return nil
}

// unlessBegun refuses a booking whose payment has begun: what is charged, and
// for which seats, is written down by then. This is what is seen of it in
// Postgres, and why; a payment that begins just now is found by its seal.
func (a *API) unlessBegun(ctx context.Context, sale *seatmap.Sale, booking, user string) error {
	if a.pays == nil {
		return nil
	}
	owner, state, err := a.pays.Standing(ctx, booking)
	switch {
	case err != nil || state == "":
		return err
	case owner != user:
		return seatmap.ErrNotYours
	case state == "paying":
		return paying()
	case state == "unheld" && a.away(sale):
		return nil
	case state == "unheld":
		return conflict("booked_without_hold", "this booking was made while seats could not be held: its seats stay as they are. Pay for it, "+
			"or give it back and begin anew", nil)
	case state == "held":
		return conflict("payment_begun", "a payment of this booking was tried, or the box office holds it: its seats stay as they are. "+
			"Pay with another card, or give them back and begin anew", nil)
	case slices.Contains([]string{"expired", "released"}, state):
		return seatmap.ErrHoldExpired
	}
	return seatmap.ErrSold
}
