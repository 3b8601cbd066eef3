package seatmap_test

import (
	"math"
	"slices"
	"testing"

	"seatcast/seatmap"
)

// house is what a generated venue promises.
type house struct{ seats, places, sections, categories int }

var houses = map[string]house{
	"club":    {80, 40, 1, 3},
	"theatre": {1350, 0, 11, 5},
	"arena":   {18_000, 2500, 54, 5},
	"stadium": {60_000, 0, 70, 5},
}

func generated(t *testing.T, f func(t *testing.T, venue string, c *seatmap.Chart)) {
	t.Helper()
	for _, venue := range seatmap.Venues {
		t.Run(venue, func(t *testing.T) {
			c, ok := seatmap.Generate(venue)
			if !ok {
				t.Fatalf("Generate does not know %q", venue)
			}
			f(t, venue, c)
		})
	}
}

func TestGeneratedHousesHaveTheirSize(t *testing.T) {
	generated(t, func(t *testing.T, venue string, c *seatmap.Chart) {
		got := house{sections: len(c.Sections), categories: len(c.Categories)}
		c.Each(func(*seatmap.Section, *seatmap.Row, *seatmap.Seat) { got.seats++ })
		for _, a := range c.Areas {
			got.places += a.Capacity
		}
		if got != houses[venue] || c.Seats != got.seats {
			t.Errorf("%+v and an index space of %d; want %+v", got, c.Seats, houses[venue])
		}
	})
}

func TestGeneratedChartsAreWithoutFaultOrWarning(t *testing.T) {
	generated(t, func(t *testing.T, _ string, c *seatmap.Chart) {
		faults, warnings := c.Validate()
		if len(faults) > 0 || len(warnings) > 0 {
			t.Errorf("faults:\n%v\nwarnings:\n%v", faults, warnings)
		}
	})
}

func TestGeneratedIndexesAreDenseAndInOrder(t *testing.T) {
	generated(t, func(t *testing.T, _ string, c *seatmap.Chart) {
		next := 0
		c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
			if s.I != next {
				t.Fatalf("seat %s has index %d; want %d", s.TicketID, s.I, next)
			}
			next++
		})
	})
}

func TestNoTwoGeneratedSeatsTouch(t *testing.T) {
	const apart = 9.5
	type cell struct{ x, y int }
	generated(t, func(t *testing.T, _ string, c *seatmap.Chart) {
		grid := map[cell][]*seatmap.Seat{}
		c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
			at := cell{int(s.X / 10), int(s.Y / 10)}
			for dx := -1; dx <= 1; dx++ {
				for dy := -1; dy <= 1; dy++ {
					for _, o := range grid[cell{at.x + dx, at.y + dy}] {
						if d := math.Hypot(s.X-o.X, s.Y-o.Y); d < apart {
							t.Errorf("%s and %s are %.1f apart", s.TicketID, o.TicketID, d)
						}
					}
				}
			}
			grid[at] = append(grid[at], s)
			if s.X < 0 || s.Y < 0 || s.X > c.Width || s.Y > c.Height {
				t.Errorf("%s at %g,%g is off the chart", s.TicketID, s.X, s.Y)
			}
		})
	})
}

// Neighbours sit side by side, and a break is where they do not.
func TestGeneratedBreaksAreWhereSeatsAreApart(t *testing.T) {
	generated(t, func(t *testing.T, _ string, c *seatmap.Chart) {
		broken := 0
		for _, section := range c.Sections {
			for _, row := range section.Rows {
				if row.Seats[0].Break {
					t.Errorf("%s begins its row with a break", row.Seats[0].TicketID)
				}
				for i := 1; i < len(row.Seats); i++ {
					a, b := row.Seats[i-1], row.Seats[i]
					d := math.Hypot(a.X-b.X, a.Y-b.Y)
					if b.Break != (d > 13) {
						t.Errorf("%s and %s: %.1f apart, break %v", a.TicketID, b.TicketID, d, b.Break)
					}
					if b.Break {
						broken++
					}
				}
			}
		}
		if broken == 0 {
			t.Error("no row is broken")
		}
	})
}

func TestGeneratedChartsAreTheSameEachTime(t *testing.T) {
	generated(t, func(t *testing.T, venue string, c *seatmap.Chart) {
		again, _ := seatmap.Generate(venue)
		body, first, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, second, _ := again.Encode(); first != second {
			t.Errorf("%s and then %s", first, second)
		}
		back, err := seatmap.DecodeChart(body)
		if err != nil {
			t.Fatal(err)
		}
		if _, third, _ := back.Encode(); third != first {
			t.Errorf("decoded and encoded it is %s; want %s", third, first)
		}
		if limit := 100*c.Seats + 10_000; len(body) > limit {
			t.Errorf("%d bytes of JSON; want at most %d", len(body), limit)
		}
	})
}

func TestStadiumRowsAreAsLongAsRealOnes(t *testing.T) {
	var lengths []int
	for _, s := range seatmap.Stadium().Sections {
		for _, r := range s.Rows {
			lengths = append(lengths, len(r.Seats))
		}
	}
	slices.Sort(lengths)
	for _, q := range []struct {
		at   float64
		want int
	}{{0, 5}, {.1, 15}, {.25, 21}, {.5, 26}, {.75, 34}, {.9, 41}, {1, 57}} {
		got := lengths[int(math.Round(q.at*float64(len(lengths)-1)))]
		if d := got - q.want; d < -1 || d > 1 {
			t.Errorf("quantile %g of %d row lengths is %d; want %d", q.at, len(lengths), got, q.want)
		}
	}
}

func TestTheatreIsNumberedTheOldWay(t *testing.T) {
	rows := seatmap.Theatre().Sections[0].Rows
	var labels []string
	for _, r := range rows {
		labels = append(labels, r.Label)
	}
	if slices.Contains(labels, "I") || slices.Contains(labels, "O") || labels[0] != "A" {
		t.Errorf("rows are %v; want neither I nor O", labels)
	}
	var first []string
	for _, s := range rows[0].Seats[6:11] {
		first = append(first, s.Label)
	}
	if want := []string{"3", "1", "101", "102", "103"}; !slices.Equal(first, want) {
		t.Errorf("beside the left aisle of row A sit %v; want %v", first, want)
	}
	restricted := 0
	for _, r := range rows {
		for _, s := range r.Seats {
			if s.Restricted {
				restricted++
			}
			if (r.Label == "L" || r.Label == "M") && (s.Label == "7" || s.Label == "8") {
				t.Errorf("seat %s%s stands where a pillar does", r.Label, s.Label)
			}
		}
	}
	if restricted != 4 {
		t.Errorf("%d stalls seats behind pillars; want 4", restricted)
	}
}
