package checkout

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// Keep writes a booking for what the box office holds, unless it has one: it
// lasts for days, and must outlast Redis. Its account pays it as any other.
func (s *Store) Keep(ctx context.Context, sale *seatmap.Sale, basket seatmap.Basket) error {
	b, err := fromBasket(sale, basket)
	if err != nil {
		return err
	}
	b.State = BookingHeld
	ctx, cancel := patient(ctx)
	defer cancel()
	return pg.Said("keep booking "+b.ID, insertBooking(ctx, s.pool, b))
}

// Open returns the tokens of the bookings of an event that are held or being
// paid.
func (s *Store) Open(ctx context.Context, event string) ([]string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT id FROM bookings WHERE event_id = $1 AND state IN ('held', 'paying') AND holds AND deadline > clock_timestamp()`, event)
	if err != nil {
		return nil, pg.Said("list open bookings of "+event, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for k := range ids {
		ids[k] = ids[k][len(event)+1:]
	}
	return ids, pg.Said("list open bookings of "+event, err)
}

// Follow moves the ends and caps of bookings to those of their baskets, never
// back. Of a basket that has no booking nothing is written.
func (s *Store) Follow(ctx context.Context, event string, baskets []seatmap.Basket) error {
	var (
		ids         []string
		until, caps []time.Time
	)
	for _, b := range baskets {
		ids, until, caps = append(ids, seatmap.BookingID(event, b.Token)), append(until, b.Until), append(caps, b.Cap)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	_, err := s.pool.Exec(ctx, `
		WITH n AS (SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) AS n (id, until, cap)),
			locked AS MATERIALIZED (SELECT id FROM bookings WHERE id = ANY($1) AND state IN ('held', 'paying') ORDER BY id FOR UPDATE)
		UPDATE bookings b SET deadline = greatest(b.deadline, n.until), cap_at = greatest(b.cap_at, n.cap), updated_at = now()
		FROM locked JOIN n USING (id) WHERE b.id = locked.id`, ids, until, caps)
	return pg.Said("extend bookings of "+event, err)
}

// naming returns the open bookings that name seats, by seat.
func (s *Store) naming(ctx context.Context, event string, seats []int) (map[int]seatmap.Basket, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		SELECT `+bookingColumns+` FROM bookings
		WHERE event_id = $1 AND state IN ('held', 'paying') AND deadline > clock_timestamp() AND seats && $2::int[]`, event, orNone(seats))
	if err != nil {
		return nil, pg.Said("look for bookings of seats of "+event, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*booking, error) { return scanBooking(row) })
	named := map[int]seatmap.Basket{}
	for _, b := range all {
		for _, i := range b.Seats {
			if _, meant := slices.BinarySearch(seats, i); meant {
				named[i] = b.seen()
			}
		}
	}
	return named, pg.Said("look for bookings of seats of "+event, err)
}
