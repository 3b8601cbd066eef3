package checkout

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// Books is what Postgres alone knows of an event, for when Redis is away: its
// bookings and its map. A map is at most a second old and read once, however many
// ask: it is a read of every seat.
type Books struct {
	*Store
	flight singleflight.Group

	mu    sync.Mutex
	pages map[string]page // by event
}

// page is the map of an event. It is shared and not changed.
type page struct {
	at    time.Time
	shown seatmap.Map // sold and unavailable
	free  seatmap.Map // and held, where an open booking names a seat
	left  map[string]int
}

// pageLasts is how old a map may be.
const pageLasts = time.Second

// NewBooks returns the books of a store. It does no I/O.
func NewBooks(s *Store) *Books { return &Books{Store: s, pages: make(map[string]page)} }

// Sold is the map of what is sold and unavailable, and the places left. Neither
// must be written. seatmap.ErrNoEvent.
func (b *Books) Sold(ctx context.Context, event string) (seatmap.Map, map[string]int, error) {
	p, err := b.page(ctx, event)
	return p.shown, p.left, err
}

// Free is the map to choose from: seats of open bookings are shown as held, though
// nobody holds them, since they may be sold in a moment. It must not be written.
func (b *Books) Free(ctx context.Context, event string) (seatmap.Map, error) {
	p, err := b.page(ctx, event)
	return p.free, err
}

func (b *Books) page(ctx context.Context, event string) (page, error) {
	b.mu.Lock()
	p, ok := b.pages[event]
	b.mu.Unlock()
	if ok && time.Since(p.at) < pageLasts {
		return p, nil
	}
	read := b.flight.DoChan(event, func() (any, error) { return b.read(context.WithoutCancel(ctx), event) })
	select {
	case r := <-read:
		p, _ := r.Val.(page)
		return p, r.Err
	case <-ctx.Done():
		return page{}, ctx.Err()
	}
}

func (b *Books) read(ctx context.Context, event string) (page, error) {
	p, err := b.Store.page(ctx, event)
	if err != nil {
		return p, pg.Said("read the map of "+event, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.pages, func(_ string, old page) bool { return time.Since(old.at) > pageLasts })
	b.pages[event] = p
	return p, nil
}

func (s *Store) page(ctx context.Context, event string) (page, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	var (
		seats              int
		sold, closed, open []int
		p                  = page{at: time.Now()}
	)
	err := s.pool.QueryRow(ctx, `
		SELECT c.seats,
			ARRAY(SELECT i FROM seats WHERE event_id = e.id AND status = 'sold'),
			ARRAY(SELECT i FROM seats WHERE event_id = e.id AND status = 'unavailable'),
			ARRAY(SELECT DISTINCT unnest(seats) FROM bookings
				WHERE event_id = e.id AND state IN ('held', 'paying') AND deadline > clock_timestamp()),
			(SELECT coalesce(jsonb_object_agg(area, free), '{}') FROM areas WHERE event_id = e.id)
		FROM events e JOIN charts c ON c.sha = e.chart_sha WHERE e.id = $1`, event).
		Scan(&seats, &sold, &closed, &open, &p.left)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, seatmap.ErrNoEvent
	}
	if err != nil {
		return p, err
	}
	p.shown = seatmap.NewMap(seats)
	show(p.shown, sold, seatmap.Sold)
	show(p.shown, closed, seatmap.Unavailable)
	p.free = slices.Clone(p.shown)
	show(p.free, slices.DeleteFunc(open, func(i int) bool { return p.shown.At(i) != seatmap.Available }), seatmap.Held)
	return p, nil
}

func show(m seatmap.Map, seats []int, as seatmap.Status) {
	for _, i := range seats {
		m.Set(i, as)
	}
}
