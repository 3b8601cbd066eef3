package holds

import (
	"context"
	"errors"

	"seatcast/seatmap"
)

// granted is a basket and what is said of it.
type granted struct {
	basket   seatmap.Basket
	fresh    bool // it has just been made
	together *bool
	warnings []warning
}

// grant holds what a body asks for. Its errors are ready to be returned.
func (a *API) grant(ctx context.Context, sale *seatmap.Sale, r TakeRequest, body takeBody) (g granted, err error) {
	if a.away(sale) {
		if g, err = a.unheld(ctx, sale, r, body); !errors.Is(err, seatmap.ErrHeld) {
			return g, err
		}
		sale = held(sale)
	}
	if body.BestAvailable != nil {
		g.basket, g.fresh, err = a.best(ctx, sale, r, *body.BestAvailable)
		if err != nil {
			return g, problem(sale, err)
		}
		together := sale.Index.Seating().Together(g.basket.Seats)
		g.together = &together
		return g, nil
	}
	g.basket, g.fresh, err = a.chosen(ctx, sale, r)
	var taken *TakenError
	if body.Alternatives && errors.As(err, &taken) {
		return g, a.withAlternatives(sale, r.Seats, taken)
	}
	if err != nil {
		return g, problem(sale, err)
	}
	g.warnings = a.warnOfOrphans(ctx, sale, nil, g.basket.Seats)
	return g, nil
}

// chosen takes seats that were chosen by hand.
func (a *API) chosen(ctx context.Context, sale *seatmap.Sale, r TakeRequest) (b seatmap.Basket, fresh bool, err error) {
	answered, err := a.gate.ask(ctx, r)
	if err != nil {
		return b, false, err
	}
	defer answered()
	if err := a.refuseOrphans(ctx, sale, nil, r.Seats); err != nil {
		return b, false, err
	}
	if err := r.price(sale); err != nil {
		return b, false, err
	}
	if r.Hash, err = digest(r, nil); err != nil {
		return b, false, err
	}
	return a.store.take(ctx, r)
}
