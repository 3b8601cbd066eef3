package checkout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"seatcast/seatmap"
)

// either is Holds while seats are held, and the rows of bookings while an event
// is without holds. Redis then is not asked at all: it may hang, and what it
// knew is judged once it is back. A booking that has no row is in Redis alone, and
// then of it nothing can be said.
type either struct {
	Holds
	store *Store
	sales seatmap.Sales
}

// away says whether the event is without holds, as of a second ago at most.
func (e either) away(ctx context.Context, event string) bool {
	sale, err := e.sales.Sale(ctx, event)
	return err == nil && sale.NoHolds
}

// Basket returns the row of a booking as a basket.
func (e either) Basket(ctx context.Context, event, token string) (seatmap.Basket, error) {
	if !e.away(ctx, event) {
		return e.Holds.Basket(ctx, event, token)
	}
	b, err := e.store.booking(ctx, seatmap.BookingID(event, token))
	switch {
	case err != nil:
		return seatmap.Basket{}, unknown(noBasket(err))
	case b.elsewhere():
		return seatmap.Basket{}, fmt.Errorf("hold of %s: %w", b.ID, seatmap.ErrUnavailable)
	}
	return b.seen(), nil
}

// Extend moves the deadline of a row.
func (e either) Extend(ctx context.Context, event, token, user string, by, grace time.Duration) (seatmap.Basket, error) {
	if e.away(ctx, event) {
		b, err := e.store.Prolong(ctx, event, token, user, by+grace)
		if !errors.Is(err, seatmap.ErrHeld) {
			return b, unknown(err)
		}
	}
	return e.Holds.Extend(ctx, event, token, user, by, grace)
}

// Seal returns a row as it is: its seats are swapped under its lock, and not once
// a payment has begun. A rebuild seals the basket it makes of it.
func (e either) Seal(ctx context.Context, event, token string) (seatmap.Basket, error) {
	if e.away(ctx, event) {
		return e.Basket(ctx, event, token)
	}
	return e.Holds.Seal(ctx, event, token)
}

// Release leaves a hold to who ends the mode: what was over by then is given back.
func (e either) Release(ctx context.Context, event, token, user string) error {
	if e.away(ctx, event) {
		_, err := e.store.Booked(ctx, event, token)
		return unknown(err)
	}
	return e.Holds.Release(ctx, event, token, user)
}

// Holding returns the open bookings that name seats: nothing is held.
func (e either) Holding(ctx context.Context, event string, seats []int) (map[int]seatmap.Basket, error) {
	if e.away(ctx, event) {
		return e.store.naming(ctx, event, seats)
	}
	return e.Holds.Holding(ctx, event, seats)
}

// SetAside refuses seats that open bookings name. The others need not be held:
// who wants them meets the arbiter.
func (e either) SetAside(ctx context.Context, event string, seats []int, hold time.Duration) (baskets []string, gone []int, err error) {
	if e.away(ctx, event) {
		named, err := e.store.naming(ctx, event, seats)
		return nil, slices.Sorted(maps.Keys(named)), err
	}
	return e.Holds.SetAside(ctx, event, seats, hold)
}

// Shown shows nothing.
func (e either) Shown(ctx context.Context, event string) (seatmap.Map, map[string]int, error) {
	if e.away(ctx, event) {
		return nil, nil, nil
	}
	return e.Holds.Shown(ctx, event)
}

// unknown is an error about a booking without a row while Redis is away.
func unknown(err error) error {
	if errors.Is(err, seatmap.ErrNoBasket) {
		return fmt.Errorf("only Redis knows: %w", seatmap.ErrUnavailable)
	}
	return err
}
