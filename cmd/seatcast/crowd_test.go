package main

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"seatcast/seatmap"
)

func TestACrowdBuysTheHouseAndGoesHome(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{terms: seatmap.Terms{
		Hold: 3 * time.Second, Pay: 20 * time.Second, Cap: time.Minute, Grace: 50 * time.Millisecond, SeatsPerBooking: 4, SeatsPerUser: 4,
	}})
	n := h.fated("demo")
	c := crowd{base: n.url, event: h.event, people: 20, pace: 80 * time.Millisecond, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.run(ctx); err != nil || ctx.Err() != nil {
		t.Fatalf("the crowd ended with %v, %v", err, ctx.Err())
	}
	if sold := h.count(ctx, `SELECT count(*) FROM tickets WHERE event_id = $1`, h.event); sold != h.chart.Seats+40 {
		t.Errorf("%d tickets of %d seats and 40 places", sold, h.chart.Seats)
	}
	h.balanced(ctx)
}

func TestACrowdFillsAHouseFromTheBestSeatsOutwards(t *testing.T) {
	chart := seatmap.Theatre()
	b := newBoard(chart)
	seat := map[string]*seatmap.Seat{}
	chart.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { seat[s.TicketID] = s })
	far := func(s *seatmap.Seat) float64 { return math.Hypot(s.X-chart.Focal.X, s.Y-chart.Focal.Y) }

	m := seatmap.NewMap(chart.Seats)
	b.show(seatmap.Snapshot{Map: m})
	distance := map[bool]float64{} // by whether it was taken
	count := map[bool]float64{}
	for range chart.Seats / 8 {
		o := b.choose(3)
		if o == nil || len(o.TicketIDs) > 3 {
			t.Fatalf("a party of three was offered %+v", o)
		}
		for i, id := range o.TicketIDs {
			s := seat[id]
			if m.At(s.I) != seatmap.Available || s.Accessible || i > 0 && s.Break {
				t.Fatalf("seat %d of the party is %v, %+v", i, m.At(s.I), s)
			}
		}
		for _, id := range o.TicketIDs {
			m.Set(seat[id].I, seatmap.Held)
		}
		b.show(seatmap.Snapshot{Map: m})
	}
	for _, s := range seat {
		taken := m.At(s.I) == seatmap.Held
		distance[taken] += far(s)
		count[taken]++
	}
	if taken, free := distance[true]/count[true], distance[false]/count[false]; taken > 0.85*free {
		t.Errorf("seats taken are %.0f from the stage, free ones %.0f", taken, free)
	}
}

func TestACrowdLeavesWheelchairSpacesUntilNothingElseIsLeft(t *testing.T) {
	chart := seatmap.Theatre()
	b := newBoard(chart)
	m := seatmap.NewMap(chart.Seats)
	spaces := 0
	chart.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
		if s.Accessible {
			spaces++
		} else {
			m.Set(s.I, seatmap.Sold)
		}
	})
	b.show(seatmap.Snapshot{Map: m})
	for b.free > 0 {
		o := b.choose(4)
		if o == nil {
			t.Fatalf("%d of %d spaces are free and none is chosen", b.free, spaces)
		}
		chart.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
			for _, id := range o.TicketIDs {
				if s.TicketID == id {
					m.Set(s.I, seatmap.Sold)
				}
			}
		})
		if b.soldOut() {
			t.Fatal("sold out with spaces left")
		}
		b.show(seatmap.Snapshot{Map: m})
	}
	if !b.soldOut() || b.choose(1) != nil {
		t.Error("the house is sold and the crowd does not know")
	}
}
