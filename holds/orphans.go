package holds

import (
	"context"

	"seatcast/seatmap"
)

// Seats chosen by hand are judged by the event's rule on the map as it is seen
// at that moment; two shoppers at once may still leave a seat between them.

// warning is something a shopper may want to change.
type warning struct {
	Code   string   `json:"code"` // orphan_left
	Detail string   `json:"detail"`
	Seats  []string `json:"seats"`
}

// refuseOrphans refuses a choice that leaves an orphan, where that is the
// event's rule; own are the seats that the choice gives back.
func (a *API) refuseOrphans(ctx context.Context, sale *seatmap.Sale, own, seats []int) error {
	if sale.Orphans != seatmap.OrphansRefuse || len(seats) == 0 {
		return nil
	}
	m, err := a.look(ctx, sale)
	if err != nil {
		return problem(sale, err)
	}
	vacate(m, own)
	if left := sale.Index.Seating().Orphans(m, seats); len(left) > 0 {
		return refuseSeats("orphan_left", "this would leave a single seat that hardly anybody buys; nothing was taken. "+
			"Take that seat too, or move by one: from one end of the free seats any number can be had", ticketIDs(sale, left))
	}
	return nil
}

// warnOfOrphans tells which orphans seats that are held now have left, where
// that is the event's rule; own are the seats that were given back for them, which
// the map may not show yet. A map that cannot be had is no reason to say no.
func (a *API) warnOfOrphans(ctx context.Context, sale *seatmap.Sale, own, seats []int) []warning {
	if sale.Orphans != seatmap.OrphansWarn || len(seats) == 0 {
		return nil
	}
	m, err := a.look(ctx, sale)
	if err != nil {
		a.store.log.WarnContext(ctx, "orphans not judged", "event", sale.Event, "err", err)
		return nil
	}
	vacate(m, own)
	vacate(m, seats)
	left := sale.Index.Seating().Orphans(m, seats)
	if len(left) == 0 {
		return nil
	}
	return []warning{{Code: "orphan_left", Seats: ticketIDs(sale, left),
		Detail: "these seats leave a single one beside them that hardly anybody buys"}}
}

// vacate makes seats of who asks available in a map that shows them as held:
// what is sold or closed stays so, whosever it was.
func vacate(m seatmap.Map, own []int) {
	for _, i := range own {
		if m.At(i) == seatmap.Held {
			m.Set(i, seatmap.Available)
		}
	}
}
