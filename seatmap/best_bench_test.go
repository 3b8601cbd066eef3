package seatmap_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"seatcast/seatmap"
)

// sold returns a map of a chart in which so many seats, drawn at random, are
// gone.
func sold(c *seatmap.Chart, gone int) seatmap.Map {
	m := seatmap.NewMap(c.Seats)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(c.Seats)[:gone] {
		m.Set(i, seatmap.Status(1+i%2))
	}
	return m
}

// chequered returns a map without two free seats side by side.
func chequered(c *seatmap.Chart) seatmap.Map {
	m := seatmap.NewMap(c.Seats)
	c.Each(func(_ *seatmap.Section, row *seatmap.Row, s *seatmap.Seat) {
		if (s.I-row.Seats[0].I)%2 == 1 {
			m.Set(s.I, seatmap.Sold)
		}
	})
	return m
}

// One answer costs less than a millisecond in a house of 60,000, however it
// stands and whatever is wished.
func BenchmarkBestAvailable60000(b *testing.B) {
	c := seatmap.Stadium()
	s := c.Index().Seating()
	prices := map[string]int64{"Premium": 20000, "Category 1": 12000, "Category 2": 9000, "Category 3": 6000, "Category 4": 4000}
	half, late, last, empty, dots := sold(c, 30_000), sold(c, 59_500), sold(c, 59_950), seatmap.NewMap(c.Seats), chequered(c)
	for _, bm := range []struct {
		name string
		m    seatmap.Map
		w    seatmap.Wish
	}{
		{"half gone, 2", half, seatmap.Wish{Quantity: 2}},
		{"half gone, 2 seeded", half, seatmap.Wish{Quantity: 2, Seed: 7}},
		{"half gone, 4", half, seatmap.Wish{Quantity: 4}},
		{"half gone, 10", half, seatmap.Wish{Quantity: 10}},
		{"half gone, 30 split", half, seatmap.Wish{Quantity: 30}},
		{"half gone, 100 split", half, seatmap.Wish{Quantity: 100}},
		{"half gone, 2 of 2 blocks", half, seatmap.Wish{Quantity: 2, Sections: []string{"101", "233"}}},
		{"half gone, 2 dear", half, seatmap.Wish{Quantity: 2, MinPrice: 15000}},
		{"half gone, nothing matches", half, seatmap.Wish{Quantity: 2, MinPrice: 90000}},
		{"half gone, 1 space of 2", half, seatmap.Wish{Quantity: 2, Accessible: 1}},
		{"half gone, 2 spaces of 6", half, seatmap.Wish{Quantity: 6, Accessible: 2}},
		{"half gone, 2 spaces of 100", half, seatmap.Wish{Quantity: 100, Accessible: 2}},
		{"empty, 1", empty, seatmap.Wish{Quantity: 1}},
		{"empty, 2 seeded", empty, seatmap.Wish{Quantity: 2, Seed: 7}},
		{"empty, 57", empty, seatmap.Wish{Quantity: 57}},
		{"500 left, 2", late, seatmap.Wish{Quantity: 2}},
		{"500 left, 10 split", late, seatmap.Wish{Quantity: 10}},
		{"50 left, 100", last, seatmap.Wish{Quantity: 100}},
		{"chequered, 2 split", dots, seatmap.Wish{Quantity: 2}},
		{"chequered, 10 split", dots, seatmap.Wish{Quantity: 10, Seed: 7}},
		{"chequered, 100 split", dots, seatmap.Wish{Quantity: 100}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var few *seatmap.TooFewError
				if _, err := s.Best(bm.m, prices, bm.w); err != nil && !errors.As(err, &few) {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("half gone, 2, five alternatives", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Alternatives(half, prices, seatmap.Wish{Quantity: 2, Seed: 7}, 5); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSeating60000(b *testing.B) {
	c := seatmap.Stadium()
	b.ReportAllocs()
	for b.Loop() {
		c.Index().Seating()
	}
}

func BenchmarkOrphans60000(b *testing.B) {
	c := seatmap.Stadium()
	s, half := c.Index().Seating(), sold(c, 30_000)
	b.ReportAllocs()
	for b.Loop() {
		s.Orphans(half, []int{30_000, 30_001, 30_002, 30_003})
	}
}
