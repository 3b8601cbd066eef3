package holds

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"seatcast/seatmap"
	"seatcast/web"
)

// takeBody is what a shopper asks for: seats by name or the best there are, and
// places.
type takeBody struct {
	TicketIDs     []string      `json:"ticketIds"`
	BestAvailable *seatmap.Wish `json:"bestAvailable"`
	Areas         []areaBody    `json:"areas"`
	Alternatives  bool          `json:"alternatives"` // told with a refusal, when that costs little
}

type areaBody struct {
	Area     string `json:"area"`
	Quantity int    `json:"quantity"`
}

// request turns what was asked for into seats of the sale. Those of a wish are
// not chosen yet.
func (b takeBody) request(sale *seatmap.Sale) (TakeRequest, error) {
	r := TakeRequest{Event: sale.Event, Terms: sale.Terms}
	wanted := len(b.TicketIDs)
	switch w := b.BestAvailable; {
	case w != nil && wanted > 0:
		return r, refuse("seats_and_best_available", "name seats by ticketIds or ask for bestAvailable, not both", nil)
	case w != nil && (w.Quantity < 1 || w.Quantity > seatmap.MaxWish):
		return r, badWish(fmt.Sprintf("quantity is 1 to %d", seatmap.MaxWish))
	case w != nil:
		wanted = w.Quantity
	case wanted+len(b.Areas) == 0:
		return r, web.Bad("empty_booking", "name at least one seat or area")
	}
	var err error
	if r.Areas, err = b.places(sale); err != nil {
		return r, err
	}
	for _, quantity := range r.Areas {
		wanted += quantity
	}
	if most := sale.Terms.SeatsPerBooking; wanted > most || len(b.TicketIDs) > MaxSeats {
		return r, tooMany(most)
	}
	if r.Seats, err = seatsOf(sale, b.TicketIDs); err != nil {
		return r, err
	}
	return r, nil
}

// repeats says that r is what b was booked with.
func (b takeBody) repeats(r TakeRequest, before seatmap.Basket) bool {
	hash, err := digest(r, b.BestAvailable)
	return err == nil && hash == before.Hash
}

func tooMany(most int) error {
	return refuse("too_many_seats", fmt.Sprintf("one booking has at most %d seats and places", min(most, MaxSeats)), nil)
}

func badWish(detail string) error { return refuse("bad_wish", "bestAvailable: "+detail, nil) }

// price adds what r costs now.
func (r *TakeRequest) price(sale *seatmap.Sale) (err error) {
	r.Quote, err = price(sale, r.Seats, r.Areas)
	return err
}

func price(sale *seatmap.Sale, seats []int, areas map[string]int) (json.RawMessage, error) {
	quote, err := sale.Quote(seats, areas)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(quote)
	if err != nil {
		return nil, fmt.Errorf("quote %s: %w", sale.Event, err)
	}
	return text, nil
}

// seatsOf are the indexes of the seats asked for, ascending.
func seatsOf(sale *seatmap.Sale, ids []string) ([]int, error) {
	seats, unknown, twice := sale.Index.Named(ids)
	if len(unknown) > 0 {
		return nil, refuseSeats("unknown_seat", "this event has no such seats", unknown)
	}
	if len(twice) > 0 {
		return nil, refuseSeats("duplicate_seat", "name each seat once", twice)
	}
	return seats, nil
}

// places are the places asked for, by area.
func (b takeBody) places(sale *seatmap.Sale) (map[string]int, error) {
	if len(b.Areas) == 0 {
		return nil, nil
	}
	places := make(map[string]int, len(b.Areas))
	for _, a := range b.Areas {
		area, ok := sale.Index.Area(a.Area)
		switch {
		case !ok:
			return nil, refuse("unknown_area", "this event has no such area", map[string]any{"area": a.Area})
		case places[a.Area] > 0:
			return nil, web.Bad("bad_request", "name each area once")
		case a.Quantity < 1:
			return nil, web.Bad("bad_request", "quantity is at least 1")
		case a.Quantity > area.Capacity:
			return nil, full(a.Area)
		}
		places[a.Area] = a.Quantity
	}
	return places, nil
}

// digest tells whether two requests ask for the same: the order of seats, areas
// and what is wished, and what they cost today, do not matter. A wish is the
// same whichever seats it is given.
func digest(r TakeRequest, wish *seatmap.Wish) (string, error) {
	if wish != nil {
		sorted := *wish
		sorted.Categories, sorted.Sections = slices.Sorted(slices.Values(wish.Categories)), slices.Sorted(slices.Values(wish.Sections))
		wish = &sorted
	}
	asked, err := json.Marshal(struct {
		Seats []int
		Areas map[string]int
		Wish  *seatmap.Wish `json:",omitempty"`
	}{r.Seats, r.Areas, wish})
	if err != nil {
		return "", fmt.Errorf("hash of a request: %w", err)
	}
	sum := sha256.Sum256(asked)
	return hex.EncodeToString(sum[:16]), nil
}
