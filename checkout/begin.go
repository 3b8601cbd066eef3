package checkout

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// maxOpenAttempts bounds how many authorisations one booking may ask for at
// the same time.
const maxOpenAttempts = 5

// begin writes the booking, if it has no row yet, and a new attempt at paying
// it. A shopper's key that made an attempt before answers that one (fresh is
// false), or ErrReused when it was for another request.
func (s *Store) begin(ctx context.Context, b *booking, a *attempt, key string) (made *attempt, fresh bool, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := insertBooking(ctx, tx, b); err != nil {
			return err
		}
		row, err := lockBooking(ctx, tx, b.ID)
		if err != nil {
			return err
		}
		made, err = repeatOf(ctx, tx, b.ID, key, a.Hash)
		if made != nil || err != nil {
			return err
		}
		if err := toPaying(ctx, tx, row, b.Deadline); err != nil {
			return err
		}
		a.Money, a.Begun = row.Money, row.Now // the price was agreed with the first payment
		made, fresh = a, true
		return insertAttempt(ctx, tx, a, key)
	})
	return made, fresh, pg.Said("begin payment of "+b.ID, err)
}

func insertBooking(ctx context.Context, q execer, b *booking) error {
	_, err := q.Exec(ctx, `
		INSERT INTO bookings (id, event_id, user_id, state, seats, areas, currency, amount, quote, request_hash, first_held_at, deadline, cap_at, operator, note)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (id) DO NOTHING`,
		b.ID, b.Event, b.User, b.State, b.Seats, b.Areas, b.Money.Currency, b.Money.Amount, b.Quote, b.Hash, b.First, b.Deadline, b.Cap, b.Operator, b.Note)
	return err
}

// repeat returns the attempt a shopper's key has made already, or nil.
func (s *Store) repeat(ctx context.Context, booking, key, hash string) (*attempt, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	a, err := repeatOf(ctx, s.pool, booking, key, hash)
	return a, pg.Said("read payment of "+booking, err)
}

func repeatOf(ctx context.Context, q querier, booking, key, hash string) (*attempt, error) {
	if key == "" {
		return nil, nil
	}
	a, err := attemptFor(ctx, q, booking, key)
	switch {
	case errors.Is(err, ErrUnknownPayment):
		return nil, nil
	case err != nil:
		return nil, err
	case a.Hash != hash:
		return nil, ErrReused
	}
	return a, nil
}

func toPaying(ctx context.Context, tx pgx.Tx, b *booking, deadline time.Time) error {
	if err := b.over(); err != nil {
		return err
	}
	if b.State == BookingHeld {
		if err := moveBooking(ctx, tx, b.ID, BookingPaying); err != nil {
			return err
		}
	}
	var open int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM attempts WHERE booking_id = $1 AND state IN ('created', 'authorized')`, b.ID).Scan(&open)
	if err != nil {
		return err
	}
	if open >= maxOpenAttempts {
		return ErrInProgress
	}
	return setDeadline(ctx, tx, b.ID, deadline)
}

func insertAttempt(ctx context.Context, tx pgx.Tx, a *attempt, key string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO attempts (id, booking_id, state, provider, method, idempotency_key, request_hash, currency, amount)
		VALUES ($1, $2, $3, $4, $5, NULLIF($6, ''), $7, $8, $9)`,
		a.ID, a.Booking, a.State, a.Provider, a.Method, key, a.Hash, a.Money.Currency, a.Money.Amount)
	return err
}

// ReasonSwapped is why an attempt failed that began before its seats were
// swapped.
const ReasonSwapped = "seats_swapped"

// becomes ends an attempt that is not for what the sealed basket is, unless its
// provider has been asked meanwhile, makes the booking what the basket is, and
// returns ErrSwapped. No provider has heard of a payment for anything else:
// each is asked only after the seal.
func (s *Store) becomes(ctx context.Context, a *attempt, basket seatmap.Basket) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	swapped := false
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b, now, err := lockAttempt(ctx, tx, a.ID)
		if err != nil {
			return err
		}
		same, err := b.isOf(basket)
		if err != nil || same && now.Money == b.Money || now.State != AttemptCreated {
			return err
		}
		if !same {
			if err := replaceSeats(ctx, tx, b.ID, basket); err != nil {
				return err
			}
		}
		swapped = true
		return s.ended(ctx, tx, b, now, AttemptFailed, ReasonSwapped)
	})
	if err == nil && swapped {
		err = ErrSwapped
	}
	return pg.Said("swap seats of "+a.Booking, err)
}

func replaceSeats(ctx context.Context, tx pgx.Tx, id string, basket seatmap.Basket) error {
	b := booking{ID: id, Quote: basket.Quote}
	q, err := b.quote()
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE bookings SET seats = $2, quote = $3, amount = $4, currency = $5, updated_at = now()
		WHERE id = $1 AND state IN ('held', 'paying')`, id, basket.Seats, basket.Quote, q.Total.Amount, q.Total.Currency)
	return err
}

// Standing returns whose a booking is and its state, once it has a row; before
// that both are empty. One made without a hold, of which no payment has begun, is
// "unheld".
func (s *Store) Standing(ctx context.Context, id string) (user, state string, err error) {
	b, err := s.booking(ctx, id)
	if errors.Is(err, ErrNoBooking) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	if b.State != BookingHeld {
		return b.User, string(b.State), nil
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	begun, err := attempted(ctx, s.pool, b)
	if err == nil && !begun {
		return b.User, "unheld", nil
	}
	return b.User, string(b.State), pg.Said("read payments of "+id, err)
}
