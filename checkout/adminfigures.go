package checkout

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// Figures are how far the sale of an event is.
type Figures struct {
	Event string     `json:"event"`
	Seats SeatCounts `json:"seats"`
	// HoldsKnown is false while Redis does not answer: what is held then counts
	// as available.
	HoldsKnown bool        `json:"holdsKnown"`
	Areas      []AreaCount `json:"areas"`
	Tickets    int         `json:"tickets"` // that are good, or will be when their money arrives
	Money      Taken       `json:"money"`
}

// SeatCounts are seats by what the map shows of them.
type SeatCounts struct {
	Available   int `json:"available"`
	Held        int `json:"held"`
	Sold        int `json:"sold"`
	Unavailable int `json:"unavailable"`
}

// AreaCount is an area without seats.
type AreaCount struct {
	Area     string `json:"area"`
	Name     string `json:"name"`
	Capacity int    `json:"capacity"`
	Sold     int    `json:"sold"`
}

// Taken is what those tickets cost with all fees.
type Taken struct {
	seatmap.Money
	Decimals int `json:"decimals"`
}

// Figures counts what is sold and held.
func (d *Desk) Figures(ctx context.Context, sale *seatmap.Sale) (Figures, error) {
	f := Figures{Event: sale.Event, Areas: []AreaCount{}, HoldsKnown: !sale.NoHolds}
	f.Money.Currency = sale.Currency
	f.Money.Decimals, _ = seatmap.Decimals(sale.Currency) // known: no event is created in another
	free, sold, err := d.store.figures(ctx, &f)
	if err != nil {
		return Figures{}, err
	}
	for _, a := range sale.Chart.Areas {
		f.Areas = append(f.Areas, AreaCount{Area: a.ID, Name: a.Name, Capacity: a.Capacity, Sold: sold[a.ID]})
	}
	f.Seats.Available = len(free)
	if !f.HoldsKnown {
		return f, nil
	}
	shown, _, err := d.holds.Shown(ctx, sale.Event)
	f.HoldsKnown = err == nil
	for _, i := range free {
		if i < 4*len(shown) && shown.At(i) == seatmap.Held {
			f.Seats.Held++
			f.Seats.Available--
		}
	}
	return f, nil
}

// figures reads what Postgres knows: which seats are not sold and not closed, and
// how many places of each area are sold.
func (s *Store) figures(ctx context.Context, f *Figures) (free []int, sold map[string]int, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err = s.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE status = 'sold'), count(*) FILTER (WHERE status = 'unavailable'),
			coalesce(array_agg(i) FILTER (WHERE status = 'available'), '{}'),
			(SELECT coalesce(jsonb_object_agg(area, sold), '{}') FROM areas WHERE event_id = $1),
			(SELECT count(*) FROM tickets WHERE event_id = $1 AND state = 'live'),
			(SELECT coalesce(sum(price), 0)::bigint FROM tickets WHERE event_id = $1 AND state = 'live')
		FROM seats WHERE event_id = $1 AND NOT dropped`, f.Event).
		Scan(&f.Seats.Sold, &f.Seats.Unavailable, &free, &sold, &f.Tickets, &f.Money.Amount)
	return free, sold, pg.Said("count what is sold of "+f.Event, err)
}

func (d *Desk) getFigures(c echo.Context) error {
	_, sale, err := d.office(c)
	if err != nil {
		return err
	}
	f, err := d.Figures(c.Request().Context(), sale)
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, f)
}
