package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"seatcast/seatmap"
)

// draft is a chart about to be published and what that does to its event, as it
// stood when the draft was made. commit looks again.
type draft struct {
	Publication
	next   *seatmap.Chart // over all charts there were
	body   []byte         // of next
	sha    string
	prices map[string]int64

	version int    // of the chart in force
	sold    *chart // the chart in force
	inForce string // its SHA-256
	had     map[string]int64

	add     []*seatmap.Seat
	drop    []int           // indexes, ascending
	free    []int           // those of drop that somebody could hold
	restore []int           // dropped before
	recast  []*seatmap.Seat // of another category
	inUse   inUse
}

// changes says whether there is anything to publish.
func (d *draft) changes() bool { return d.another() || !maps.Equal(d.prices, d.had) }

// another says whether it is another chart than that in force.
func (d *draft) another() bool { return d.sha != d.inForce }

func (d *draft) done() Published {
	p := Published{Chart: d.sha, Version: d.version, Changed: d.changes(), Added: len(d.add), Dropped: len(d.drop), Restored: len(d.restore)}
	if d.another() {
		p.Version++
	}
	return p
}

// seatsInUse describes seats of the chart in force.
func (d *draft) seatsInUse(seats []int, use string) (all []SeatInUse) {
	for _, i := range seats {
		if at, ok := d.sold.index.At(i); ok {
			all = append(all, SeatInUse{i: i, TicketID: at.Seat.TicketID, Section: at.Section.Name, Row: at.Row.Label, Label: at.Seat.Label, Use: use})
		}
	}
	return all
}

// draft judges a publication by what Postgres says now.
func (p *Publisher) draft(ctx context.Context, n Publication) (*draft, error) {
	d := &draft{Publication: n}
	drawn, err := p.drawn(ctx, n)
	if err != nil {
		return nil, err
	}
	if err := p.store.readInForce(ctx, d); err != nil {
		return nil, err
	}
	if err := p.store.readSeats(ctx, d, drawn); err != nil {
		return nil, err
	}
	d.prices = pricesOn(d.next, d.had, n.Prices)
	if err := faultsOfPrices(d.prices, d.next).Err(); err != nil {
		return nil, err
	}
	if d.body, d.sha, err = d.next.Encode(); err != nil {
		return nil, err
	}
	d.inUse, err = readInUse(ctx, p.store.db, d)
	return d, translate(err)
}

// drawn is the chart meant, sound.
func (p *Publisher) drawn(ctx context.Context, n Publication) (*seatmap.Chart, error) {
	if n.Chart != nil {
		faults, _ := n.Chart.Validate()
		return n.Chart, faults.Err()
	}
	c, err := p.store.charts.get(ctx, n.ChartSHA)
	if err == nil && c == nil {
		err = ErrNoChart
	}
	if err != nil {
		return nil, err
	}
	return c.chart, nil
}

func (s *Store) readInForce(ctx context.Context, d *draft) error {
	if !validID(d.Event) {
		return seatmap.ErrNoEvent
	}
	var cancelled bool
	err := s.db.QueryRow(ctx, `
		SELECT chart_version, chart_sha, (SELECT coalesce(jsonb_object_agg(category, amount), '{}') FROM prices WHERE event_id = e.id), state = 'cancelled'
		FROM events e WHERE id = $1`, d.Event).Scan(&d.version, &d.inForce, &d.had, &cancelled)
	if err != nil {
		return translate(err)
	}
	if cancelled {
		return ErrCancelled
	}
	d.sold, err = s.charts.get(ctx, d.inForce)
	if err == nil && d.sold == nil {
		err = fmt.Errorf("%w: %s, which is in force", ErrNoChart, d.inForce)
	}
	return err
}

// seatRow is what a draft reads of a seat.
type seatRow struct {
	i                          int
	ticketID, category, status string
	dropped                    bool
}

// readSeats puts the chart over every seat the event ever had, and finds what
// becomes of each.
func (s *Store) readSeats(ctx context.Context, d *draft, drawn *seatmap.Chart) error {
	rows, err := s.db.Query(ctx, `SELECT i, ticket_id, category, status, dropped FROM seats WHERE event_id = $1 ORDER BY i`, d.Event)
	if err != nil {
		return translate(err)
	}
	had, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r seatRow, err error) {
		return r, row.Scan(&r.i, &r.ticketID, &r.category, &r.status, &r.dropped)
	})
	if err != nil {
		return translate(err)
	}
	before := seatmap.Lineage{Seats: d.sold.chart.Seats, Of: make(map[string]int, len(had))}
	for _, r := range had {
		before.Of[r.ticketID] = r.i
		before.Seats = max(before.Seats, r.i+1)
	}
	if d.next, err = drawn.Over(before); err != nil {
		return err
	}
	d.compare(had)
	return nil
}

func (d *draft) compare(had []seatRow) {
	there := make(map[int]*seatmap.Seat, d.next.Seats)
	d.next.Each(func(_ *seatmap.Section, _ *seatmap.Row, seat *seatmap.Seat) { there[seat.I] = seat })
	for _, r := range had {
		seat := there[r.i]
		delete(there, r.i)
		switch {
		case seat == nil && !r.dropped:
			d.drop = append(d.drop, r.i)
			if r.status == "available" {
				d.free = append(d.free, r.i)
			}
		case seat != nil && r.dropped:
			d.restore = append(d.restore, r.i)
		}
		if seat != nil && seat.Category != r.category {
			d.recast = append(d.recast, seat)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(there)) {
		d.add = append(d.add, there[i])
	}
}

// inUse is what a draft would take from those who have it.
type inUse struct {
	seats []SeatInUse
	areas []AreaInUse
}

func (u inUse) err() error {
	if len(u.seats)+len(u.areas) == 0 {
		return nil
	}
	return &InUseError{Seats: u.seats, Areas: u.areas}
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readInUse finds seats sold and bookings underway. What is only held is no
// matter of Postgres.
func readInUse(ctx context.Context, q querier, d *draft) (u inUse, err error) {
	rows, err := q.Query(ctx, `
		WITH open AS (SELECT DISTINCT unnest(seats) AS i FROM bookings WHERE event_id = $1 AND state IN ('held', 'paying'))
		SELECT i, status = 'sold' FROM seats WHERE event_id = $1 AND i = ANY($2) AND (status = 'sold' OR i IN (SELECT i FROM open))
		ORDER BY i`, d.Event, d.drop)
	if err != nil {
		return u, err
	}
	var i int
	var sold bool
	_, err = pgx.ForEachRow(rows, []any{&i, &sold}, func() error {
		use := InUseBooked
		if sold {
			use = InUseSold
		}
		u.seats = append(u.seats, d.seatsInUse([]int{i}, use)...)
		return nil
	})
	if err != nil {
		return u, err
	}
	u.areas, err = areasInUse(ctx, q, d)
	return u, err
}

// areasInUse locks the areas of the event, by name, when it is a transaction
// that asks.
func areasInUse(ctx context.Context, q querier, d *draft) (all []AreaInUse, err error) {
	rows, err := q.Query(ctx, `
		WITH open AS (
			SELECT area, sum(places::int) AS places
			FROM bookings, jsonb_each_text(CASE jsonb_typeof(areas) WHEN 'object' THEN areas ELSE '{}' END) AS wants(area, places)
			WHERE event_id = $1 AND state IN ('held', 'paying') GROUP BY area)
		SELECT area, (sold + coalesce((SELECT places FROM open WHERE open.area = areas.area), 0))::int
		FROM areas WHERE event_id = $1 ORDER BY area FOR UPDATE OF areas`, d.Event)
	if err != nil {
		return nil, err
	}
	var in AreaInUse
	_, err = pgx.ForEachRow(rows, []any{&in.Area, &in.Used}, func() error {
		if in.Capacity = d.capacity(in.Area); in.Used > in.Capacity {
			all = append(all, in)
		}
		return nil
	})
	return all, err
}

// capacity of an area in the chart to be; 0 when it has none of that id.
func (d *draft) capacity(area string) int {
	for _, a := range d.next.Areas {
		if a.ID == area {
			return a.Capacity
		}
	}
	return 0
}
