package holds

import (
	"context"
	"errors"
	"math/rand/v2"

	"seatcast/seatmap"
)

// Best available is chosen on a map that others change meanwhile, so what is
// chosen may be gone when it is taken: then it is chosen again, without the
// seats just seen taken. The first two choices are the nearest or about as
// near; later ones are drawn from ever more answers, so that a crowd whose
// choices collide does not collide again.

// bestTries is how often one request chooses.
const bestTries = 8

// sureFrom is the first try that reads the map where it is made: this node's
// own may be behind by what a storm has just taken.
const sureFrom = 2

// errContended is the answer of best when each of its choices was taken by
// somebody else. Nothing was taken.
var errContended = errors.New("holds: every choice was taken by somebody else")

// best takes the best seats there are. A token that has a basket is answered
// with that: the script that takes looks first, and so does who finds nothing to
// choose, since it may be this very request that has had the last of it.
//
// It returns what Take does, a *seatmap.TooFewError, seatmap.ErrBadWish, or
// errContended.
func (a *API) best(ctx context.Context, sale *seatmap.Sale, r TakeRequest, w seatmap.Wish) (b seatmap.Basket, fresh bool, err error) {
	defer func() { a.store.metrics.came("best", err) }()
	if r.Hash, err = digest(r, &w); err != nil {
		return b, false, err
	}
	choose := func(try int, gone []int) ([]int, error) { return a.choose(ctx, sale, w, try, gone) }
	b, fresh, err = win(sale, r, choose, func(r TakeRequest) (seatmap.Basket, bool, error) { return a.store.take(ctx, r) })
	var few *seatmap.TooFewError
	if errors.As(err, &few) || errors.Is(err, errContended) {
		if had, again := a.store.repeat(ctx, r); !errors.Is(again, seatmap.ErrNoBasket) {
			return had, false, again
		}
	}
	return b, fresh, err
}

// win chooses until what is chosen is had.
func win(sale *seatmap.Sale, r TakeRequest, choose func(try int, gone []int) ([]int, error), take func(TakeRequest) (seatmap.Basket, bool, error)) (b seatmap.Basket, fresh bool, err error) {
	var gone []int
	for try := range bestTries {
		r.Seats, err = choose(try, gone)
		var few *seatmap.TooFewError
		if errors.As(err, &few) && len(gone) > 0 && try+1 < bestTries {
			gone = nil // somebody may have given them back
			continue
		}
		if err != nil {
			return b, false, err
		}
		if err := r.price(sale); err != nil {
			return b, false, err
		}
		b, fresh, err = take(r)
		var taken *TakenError
		if !errors.As(err, &taken) {
			return b, fresh, err
		}
		gone = append(gone, taken.Seats...)
	}
	return b, false, errContended
}

// choose returns seats that fulfil a wish and are not among those gone.
func (a *API) choose(ctx context.Context, sale *seatmap.Sale, w seatmap.Wish, try int, gone []int) ([]int, error) {
	look, among := a.look, 1
	if try >= sureFrom {
		look, among = a.store.look, 1<<try
	}
	m, err := look(ctx, sale)
	if err != nil {
		return nil, err
	}
	return pick(sale, m, w, gone, among)
}

// pick draws one of so many choices on a map, which it may change.
func pick(sale *seatmap.Sale, m seatmap.Map, w seatmap.Wish, gone []int, among int) ([]int, error) {
	mark(m, gone, seatmap.Held)
	if sale.Orphans == seatmap.OrphansRefuse {
		w.AllowOrphans = false // the event's rule is nobody's to wish away
	}
	w.Seed = rand.Uint64() | 1
	choices, err := sale.Index.Seating().Alternatives(m, sale.Prices, w, among)
	if err != nil {
		return nil, err
	}
	return choices[rand.IntN(len(choices))].Seats, nil
}

// repeat returns the basket that r has made before, or why it cannot be had;
// seatmap.ErrNoBasket when r is new.
func (s *Store) repeat(ctx context.Context, r TakeRequest) (seatmap.Basket, error) {
	b, err := s.Basket(ctx, r.Event, r.Token)
	if err == nil {
		err = r.mine(b)
	}
	b.Lost = nil
	return b, err
}
