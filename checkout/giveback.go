package checkout

import (
	"context"
	"errors"

	"seatcast/seatmap"
)

// GiveBack gives a booking back, whoever's it is, as its owner could. What is
// given back or over already is a success; ErrNoBooking, seatmap.ErrNoBasket,
// ErrFinal, ErrInProgress.
func (d *Desk) GiveBack(ctx context.Context, id string) error {
	user, err := d.owner(ctx, id)
	if err != nil {
		return err
	}
	return d.Cancel(ctx, id, user)
}

// owner is the account of a booking.
func (d *Desk) owner(ctx context.Context, id string) (string, error) {
	b, err := d.store.booking(ctx, id)
	if err == nil {
		return b.User, nil
	}
	event, token, ok := seatmap.ParseBookingID(id)
	if !ok || !errors.Is(err, ErrNoBooking) {
		return "", err
	}
	basket, err := d.holds.Basket(ctx, event, token)
	return basket.User, err
}
