package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"seatcast/catalog"
	"seatcast/holds"
	"seatcast/seatmap"
)

// drawnHouse is an event whose charts are drawn from thirty seats, and what is
// known of it: which are in its chart, held and sold, by ticketId.
type drawnHouse struct {
	*house
	press *catalog.Publisher
	store *holds.Store
	shop  *catalog.Store

	drawn map[string]bool
	held  map[string]string // token
	sold  map[string]bool
	index map[string]int // of every seat there ever was
	next  int            // number of a token
}

// drawing is a chart of these seats.
func drawing(ids []string) *seatmap.Chart {
	c := &seatmap.Chart{Name: "drawn", Categories: []seatmap.Category{{Name: "all"}}, Seats: len(ids)}
	row := seatmap.Row{Label: "A"}
	for k, id := range ids {
		row.Seats = append(row.Seats, seatmap.Seat{TicketID: id, I: k, Label: id, X: float64(20 * k), Category: "all"})
	}
	c.Sections = []seatmap.Section{{ID: "s", Name: "s", Rows: []seatmap.Row{row}}}
	return c
}

// Over any history of charts, holds and sales a chart is refused exactly for
// what it would take, all of which it names, and the map shows what is so.
func TestAnyHistoryOfChartsHoldsAndSales(t *testing.T) {
	t.Parallel()
	all := make([]string, 30)
	for k := range all {
		all[k] = fmt.Sprint("t", k)
	}
	h := newHouse(t, plan{})
	rapid.Check(t, func(r *rapid.T) {
		d := &drawnHouse{drawn: map[string]bool{}, held: map[string]string{}, sold: map[string]bool{}, index: map[string]int{}}
		first := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 30, rapid.ID).Draw(r, "first")
		d.house = h.another(drawing(first))
		d.press, d.store, d.shop = d.house.press()
		d.became(r, first)
		r.Repeat(map[string]func(*rapid.T){
			"publish": func(r *rapid.T) {
				d.publish(r, rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 30, rapid.ID).Draw(r, "seats"))
			},
			"redraw": func(r *rapid.T) { // nearly what it is, so that it is often granted
				ids := slices.Sorted(maps.Keys(d.drawn))
				first := ids[0]
				d.publish(r, slices.DeleteFunc(ids, func(id string) bool {
					return id != first && !d.sold[id] && d.held[id] == "" && rapid.IntRange(0, 4).Draw(r, "drop") == 0
				}))
			},
			"hold":    func(r *rapid.T) { d.hold(r, rapid.SampledFrom(all).Draw(r, "seat")) },
			"release": func(r *rapid.T) { d.release(r) },
			"sell":    func(r *rapid.T) { d.sell(r) },
			"":        func(r *rapid.T) { d.agrees(r) },
		})
	})
}

// another is another event of the same house.
func (h *house) another(c *seatmap.Chart) *house {
	h.t.Helper()
	next := *h
	next.chart = c
	next.event = next.create(plan{chart: c, mode: catalog.Hot})
	return &next
}

// became notes a chart that is in force.
func (d *drawnHouse) became(r *rapid.T, ids []string) {
	sale, err := d.shop.Sale(context.Background(), d.event)
	if err != nil {
		r.Fatalf("%v", err)
	}
	clear(d.drawn)
	for _, id := range ids {
		seat, ok := sale.Index.Seat(id)
		if i, known := d.index[id]; !ok || known && i != seat.I {
			r.Fatalf("%s was %d and is %d", id, i, seat.I)
		}
		d.drawn[id], d.index[id] = true, seat.I
	}
}

func (d *drawnHouse) publish(r *rapid.T, ids []string) {
	var inUse []string
	for id := range d.drawn {
		if (d.sold[id] || d.held[id] != "") && !slices.Contains(ids, id) {
			inUse = append(inUse, id)
		}
	}
	slices.Sort(inUse)
	_, err := d.press.Publish(context.Background(), catalog.Publication{Event: d.event, Chart: drawing(ids)})
	if len(inUse) == 0 {
		if err != nil {
			r.Fatalf("nothing is in use, and %v", err)
		}
		d.became(r, ids)
		return
	}
	var used *catalog.InUseError
	if !errors.As(err, &used) {
		r.Fatalf("%v are in use, and %v", inUse, err)
	}
	var named []string
	for _, s := range used.Seats {
		named = append(named, s.TicketID)
	}
	if slices.Sort(named); !slices.Equal(named, inUse) {
		r.Fatalf("%v are named, %v are in use", named, inUse)
	}
}

func (d *drawnHouse) hold(r *rapid.T, id string) {
	i, known := d.index[id]
	if !known {
		return
	}
	d.next++
	token := fmt.Sprint("token-", d.next)
	_, err := d.store.Take(context.Background(), holds.TakeRequest{Event: d.event, Token: token, User: token, Seats: []int{i},
		Quote: json.RawMessage(`{}`), Hash: "h", Terms: catalog.DefaultTerms})
	var taken *holds.TakenError
	switch free := d.drawn[id] && !d.sold[id] && d.held[id] == ""; {
	case free && err != nil, !free && !errors.As(err, &taken):
		r.Fatalf("%s is free: %v, and whoever takes it is told %v", id, free, err)
	case free:
		d.held[id] = token
	}
}

// somebodys is a seat that is held.
func (d *drawnHouse) somebodys(r *rapid.T) (id, token string, ok bool) {
	ids := slices.Sorted(maps.Keys(d.held))
	if len(ids) == 0 {
		return "", "", false
	}
	id = rapid.SampledFrom(ids).Draw(r, "held")
	token = d.held[id]
	delete(d.held, id)
	return id, token, true
}

func (d *drawnHouse) release(r *rapid.T) {
	if _, token, ok := d.somebodys(r); ok {
		if err := d.store.Release(context.Background(), d.event, token, token); err != nil {
			r.Fatalf("%v", err)
		}
	}
}

// sell makes a seat sold as the arbiter and the mirror do.
func (d *drawnHouse) sell(r *rapid.T) {
	id, token, ok := d.somebodys(r)
	if !ok {
		return
	}
	ctx := context.Background()
	for _, sql := range []string{
		`INSERT INTO bookings (id, event_id, user_id, state, seats, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
			VALUES ($1 || '.' || $2, $1, $2, 'sold', ARRAY[$3::int], 'EUR', 1, '{}', 'h', now(), now(), now())`,
		`UPDATE seats SET status = 'sold', booking_id = $1 || '.' || $2 WHERE event_id = $1 AND i = $3 AND status = 'available'`,
	} {
		if tag, err := d.pool.Exec(ctx, sql, d.event, token, d.index[id]); err != nil || tag.RowsAffected() != 1 {
			r.Fatalf("sell %s: %v, %v", id, tag, err)
		}
	}
	if err := d.store.Spend(ctx, d.event, seatmap.Marks{Seats: []int{d.index[id]}, Baskets: []string{token}}); err != nil {
		r.Fatalf("%v", err)
	}
	d.sold[id] = true
}

// agrees fails when the map is not what is known.
func (d *drawnHouse) agrees(r *rapid.T) {
	m, _, err := d.store.Shown(context.Background(), d.event)
	if err != nil {
		r.Fatalf("%v", err)
	}
	for id, i := range d.index {
		want := seatmap.Available
		switch {
		case !d.drawn[id]:
			want = seatmap.Unavailable
		case d.sold[id]:
			want = seatmap.Sold
		case d.held[id] != "":
			want = seatmap.Held
		}
		if got := m.At(i); m != nil && got != want {
			r.Fatalf("%s is shown %v and is %v", id, got, want)
		}
	}
}
