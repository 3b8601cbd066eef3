package seatmap_test

import (
	"math/rand/v2"
	"testing"

	"seatcast/seatmap"
)

// Together, asked of the seats of a choice, says what the choice says of itself.
func TestTogetherSaysOfSeatsWhatTheirChoiceDid(t *testing.T) {
	chart := seatmap.Theatre()
	s := chart.Index().Seating()
	prices := map[string]int64{}
	for _, c := range chart.Categories {
		prices[c.Name] = 1
	}
	random := rand.New(rand.NewPCG(3, 4))
	said := map[bool]int{}
	for range 300 {
		m := seatmap.NewMap(chart.Seats)
		for range 50 * random.IntN(60) {
			m.Set(random.IntN(chart.Seats), seatmap.Sold)
		}
		c, err := s.Best(m, prices, seatmap.Wish{Quantity: 1 + random.IntN(9), Seed: random.Uint64()})
		if err != nil {
			continue
		}
		said[c.Together]++
		random.Shuffle(len(c.Seats), func(i, j int) { c.Seats[i], c.Seats[j] = c.Seats[j], c.Seats[i] })
		if s.Together(c.Seats) != c.Together {
			t.Errorf("%+v", c)
		}
	}
	if said[true] == 0 || said[false] == 0 {
		t.Errorf("choices were together %v", said)
	}
	if s.Together(nil) || s.Together([]int{-1}) || s.Together([]int{chart.Seats}) || s.Together([]int{3, 3}) {
		t.Error("what are no seats is together")
	}
}
