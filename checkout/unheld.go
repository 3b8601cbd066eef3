package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// While an event is without holds, because Redis answers no node, a booking is
// its row from the beginning. Nothing is held: whoever pays first has the seats.
// The row is made, extended and swapped here, and nowhere while seats are held:
// each of these runs under the event's mode lock, shared, and looks at the mode
// under it; who ends the mode has the lock for himself and reads the rows under
// it. So a row is made before that, and gets its hold, or not at all.

// modeLock is the advisory lock of an event's mode. Unlike a lock of its row it
// lets nobody in past who waits for all of it.
const modeLock = `hashtextextended('seatcast unheld:' || $1, 0)`

// unheld runs work in a transaction during which the event stays without holds;
// seatmap.ErrHeld when it is not, seatmap.ErrNoEvent.
func (s *Store) unheld(ctx context.Context, call, event string, work func(context.Context, pgx.Tx) error) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := staysUnheld(ctx, tx, event); err != nil {
			return err
		}
		return work(ctx, tx)
	})
	return pg.Said(call, err)
}

// staysUnheld has an event stay without holds until the end of tx; seatmap.ErrHeld
// when it is not, seatmap.ErrNoEvent.
func staysUnheld(ctx context.Context, tx pgx.Tx, event string) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared(`+modeLock+`)`, event); err != nil {
		return err
	}
	var away bool
	err := tx.QueryRow(ctx, `SELECT unheld_since IS NOT NULL FROM events WHERE id = $1`, event).Scan(&away)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return seatmap.ErrNoEvent
	case err == nil && !away:
		return seatmap.ErrHeld
	}
	return err
}

// Book writes a booking that holds nothing: it lasts for hold, and for most at
// the longest. A token that has one already is answered with that, and fresh is
// false. What Postgres knows of the seats and the account is judged by may,
// whose error is Book's; of one account one is judged at a time. seatmap.ErrHeld.
func (s *Store) Book(ctx context.Context, sale *seatmap.Sale, basket seatmap.Basket, hold, most time.Duration, may func(seatmap.Facts) error) (made seatmap.Basket, fresh bool, err error) {
	b, err := fromBasket(sale, basket)
	if err != nil {
		return made, false, err
	}
	err = s.unheld(ctx, "book "+b.ID, b.Event, func(ctx context.Context, tx pgx.Tx) error {
		if err := lockAccount(ctx, tx, b.Event, b.User); err != nil {
			return err
		}
		row, err := lockBooking(ctx, tx, b.ID)
		if !errors.Is(err, ErrNoBooking) {
			made, fresh = row.seen(), false
			return err
		}
		facts, err := factsOf(ctx, tx, b)
		if err != nil {
			return err
		}
		if err := may(facts); err != nil {
			return err
		}
		row, err = insertUnheld(ctx, tx, b, hold, most)
		fresh = err == nil
		if errors.Is(err, ErrNoBooking) { // a payment of its basket, from before the mode, was faster
			row, err = lockBooking(ctx, tx, b.ID)
		}
		made = row.seen()
		return err
	})
	return made, fresh, err
}

// lockAccount has the bookings and swaps without holds of one account judged one
// after the other: each counts what the others have.
func lockAccount(ctx context.Context, tx pgx.Tx, event, user string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('seatcast account:' || $1 || ' ' || $2, 0))`, event, user)
	return err
}

func insertUnheld(ctx context.Context, tx pgx.Tx, b *booking, hold, most time.Duration) (*booking, error) {
	return scanBooking(tx.QueryRow(ctx, `
		INSERT INTO bookings (id, event_id, user_id, state, holds, seats, areas, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
		SELECT $1, $2, $3, 'held', false, $4, $5, $6, $7, $8, $9, first, first + $10::interval, first + $11::interval
		FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS first) now
		ON CONFLICT (id) DO NOTHING RETURNING `+bookingColumns,
		b.ID, b.Event, b.User, b.Seats, b.Areas, b.Money.Currency, b.Money.Amount, b.Quote, b.Hash, hold, most))
}

// factsOf reads what is known of the seats and places of a booking and of its
// account's tickets and other bookings.
func factsOf(ctx context.Context, tx pgx.Tx, b *booking) (f seatmap.Facts, err error) {
	err = tx.QueryRow(ctx, `
		WITH open AS (
			SELECT cardinality(seats) AS n FROM bookings WHERE event_id = $1 AND user_id = $2 AND id <> $3
				AND state IN ('held', 'paying') AND deadline > clock_timestamp() AND cardinality(seats) > 0)
		SELECT ARRAY(SELECT i FROM seats WHERE event_id = $1 AND i = ANY($4) AND status <> 'available' ORDER BY i),
			coalesce((SELECT area FROM areas WHERE event_id = $1 AND free < ($5::jsonb ->> area)::int ORDER BY area LIMIT 1), ''),
			(SELECT count(*) FROM tickets WHERE event_id = $1 AND user_id = $2 AND state = 'live'),
			(SELECT coalesce(sum(n), 0) FROM open), (SELECT count(*) FROM open)`,
		b.Event, b.User, b.ID, b.Seats, b.Areas).Scan(&f.Gone, &f.Full, &f.Tickets, &f.Seats, &f.Bookings)
	return f, err
}

// Booked returns the basket that a token's row is, or seatmap.ErrNoBasket.
func (s *Store) Booked(ctx context.Context, event, token string) (seatmap.Basket, error) {
	b, err := s.booking(ctx, seatmap.BookingID(event, token))
	if err != nil {
		return seatmap.Basket{}, noBasket(err)
	}
	return b.seen(), nil
}

func noBasket(err error) error {
	if errors.Is(err, ErrNoBooking) {
		return fmt.Errorf("%w: %w", seatmap.ErrNoBasket, err)
	}
	return err
}

// Prolong moves the end of a booking with a row to now and by, never back and
// never beyond its cap. seatmap.ErrHeld, ErrNoBasket, ErrNotYours, ErrSold,
// ErrHoldExpired; ErrUnavailable when only Redis knows whether it is over.
func (s *Store) Prolong(ctx context.Context, event, token, user string, by time.Duration) (out seatmap.Basket, err error) {
	id := seatmap.BookingID(event, token)
	err = s.unheld(ctx, "extend booking "+id, event, func(ctx context.Context, tx pgx.Tx) error {
		b, err := openBooking(ctx, tx, id, user)
		if err != nil {
			return err
		}
		out = b.seen()
		return tx.QueryRow(ctx, `UPDATE bookings SET updated_at = now(),
			deadline = least(greatest(deadline, date_trunc('milliseconds', clock_timestamp()) + $2::interval), cap_at)
			WHERE id = $1 RETURNING deadline`, id, by).Scan(&out.Until)
	})
	return out, err
}

// openBooking locks a booking of the account that is neither over nor behind
// its deadline.
func openBooking(ctx context.Context, tx pgx.Tx, id, user string) (*booking, error) {
	b, err := lockBooking(ctx, tx, id)
	if err != nil {
		return nil, noBasket(err)
	}
	if b.User != user {
		return nil, seatmap.ErrNotYours
	}
	switch b.seen().State {
	case seatmap.BasketHeld:
		return b, nil
	case seatmap.BasketSold:
		return nil, seatmap.ErrSold
	}
	if b.elsewhere() {
		return nil, fmt.Errorf("hold of %s: %w", id, seatmap.ErrUnavailable)
	}
	return nil, seatmap.ErrHoldExpired
}

// Exchange gives a booking without a hold other seats. It returns the error of
// quote, which judges the booking and what is known of the seats, and prices
// them; Sealed tells it that a payment has begun. Of one account one booking or
// swap is judged at a time. It returns what Prolong does.
func (s *Store) Exchange(ctx context.Context, event, token, user string, seats []int, quote func(seatmap.Basket, seatmap.Facts) (json.RawMessage, error)) (out seatmap.Basket, err error) {
	id := seatmap.BookingID(event, token)
	err = s.unheld(ctx, "swap seats of "+id, event, func(ctx context.Context, tx pgx.Tx) error {
		if err := lockAccount(ctx, tx, event, user); err != nil {
			return err
		}
		b, err := openBooking(ctx, tx, id, user)
		if err != nil {
			return err
		}
		out = b.seen()
		if out.Sealed, err = attempted(ctx, tx, b); err != nil {
			return err
		}
		b.Seats = seats
		facts, err := factsOf(ctx, tx, b)
		if err != nil {
			return err
		}
		text, err := quote(out, facts)
		if err != nil {
			return err
		}
		out.Seats, out.Quote = seats, text
		return replaceSeats(ctx, tx, id, out)
	})
	return out, err
}

// attempted says that a payment of a booking has begun.
func attempted(ctx context.Context, q querier, b *booking) (begun bool, err error) {
	if !b.Unheld {
		return true, nil
	}
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM attempts WHERE booking_id = $1)`, b.ID).Scan(&begun)
	return begun, err
}

// seen is a booking as whoever holds seats would show its basket.
func (b *booking) seen() seatmap.Basket {
	if b == nil {
		return seatmap.Basket{}
	}
	out := b.basket()
	out.Lost = nil
	switch b.State {
	case BookingHeld, BookingPaying:
		out.State = seatmap.BasketHeld
		if b.behind() {
			out.State = seatmap.BasketExpired
		}
	case BookingSold, BookingRefunded:
		out.State = seatmap.BasketSold
	case BookingLost, BookingReleased:
		out.State = seatmap.BasketReleased
	}
	return out
}

// elsewhere says that a booking is behind its deadline and may not be over: its
// owner may have extended the hold, which only Redis knows.
func (b *booking) elsewhere() bool { return b.State == BookingHeld && !b.Unheld && b.behind() }
