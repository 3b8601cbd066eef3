package seatmap_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"seatcast/seatmap"
)

// drawVersion draws a chart out of forty seats that may be in it, in any order
// and with indexes of its own.
func drawVersion(t *rapid.T) *seatmap.Chart {
	pool := make([]int, 40)
	for i := range pool {
		pool[i] = i
	}
	pool = rapid.Permutation(pool).Draw(t, "order")[:rapid.IntRange(1, 40).Draw(t, "seats")]
	c := &seatmap.Chart{Name: "drawn", Categories: []seatmap.Category{{Name: "near"}, {Name: "far"}}, Seats: 40}
	for len(pool) > 0 {
		n := rapid.IntRange(1, len(pool)).Draw(t, "row")
		row := seatmap.Row{Label: fmt.Sprint(len(pool))}
		for k, id := range pool[:n] {
			row.Seats = append(row.Seats, seatmap.Seat{TicketID: fmt.Sprint("t", id), I: id, Label: fmt.Sprint(k), X: float64(10 * k), Y: float64(len(pool)),
				Break: k > 0 && rapid.Bool().Draw(t, "break"), Category: rapid.SampledFrom([]string{"near", "far"}).Draw(t, "category")})
		}
		pool = pool[n:]
		c.Sections = append(c.Sections, seatmap.Section{ID: row.Label, Name: row.Label, Rows: []seatmap.Row{row}})
	}
	return c
}

func TestAnIndexNeverMovesAndIsNeverGivenAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of, owners := map[string]int{}, map[int]string{}
		space := 0
		for range rapid.IntRange(1, 8).Draw(t, "versions") {
			drawn := drawVersion(t)
			before, _, _ := drawn.Encode()
			c, err := drawn.Over(seatmap.Lineage{Seats: space, Of: maps.Clone(of)})
			if err != nil {
				t.Fatalf("%v", err)
			}
			if after, _, _ := drawn.Encode(); string(after) != string(before) {
				t.Fatalf("the chart it was made from has changed")
			}
			if faults, _ := c.Validate(); len(faults) > 0 {
				t.Fatalf("%v", faults)
			}
			fresh := 0
			c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
				if i, known := of[s.TicketID]; known && i != s.I {
					t.Fatalf("%s moved from %d to %d", s.TicketID, i, s.I)
				}
				if owner, used := owners[s.I]; used && owner != s.TicketID {
					t.Fatalf("%d was %s's and is %s's", s.I, owner, s.TicketID)
				}
				if _, known := of[s.TicketID]; !known {
					fresh++
				}
				of[s.TicketID], owners[s.I] = s.I, s.TicketID
			})
			if c.Seats != space+fresh {
				t.Fatalf("%d indexes and %d new seats make %d", space, fresh, c.Seats)
			}
			space = c.Seats
			again, err := c.Over(seatmap.Lineage{Seats: space, Of: of})
			if err != nil || sha(t, again) != sha(t, c) {
				t.Fatalf("published again it is another chart: %v", err)
			}
		}
	})
}

func sha(t *rapid.T, c *seatmap.Chart) string {
	_, sha, err := c.Encode()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return sha
}

// Whatever is sized by a chart is sized by its index space, holes and all.
func TestAChartWithHolesIsSoldAsAnyOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := drawVersion(t).Over(seatmap.Lineage{Seats: rapid.IntRange(0, 200).Draw(t, "space")})
		if err != nil {
			t.Fatalf("%v", err)
		}
		body, sha, err := c.Encode()
		if err != nil {
			t.Fatalf("%v", err)
		}
		read, _, err := seatmap.ImportChart("served.json", body)
		if err != nil {
			t.Fatalf("what is served cannot be imported: %v", err)
		}
		if _, again, _ := read.Encode(); again != sha {
			t.Fatalf("imported it is %s, not %s", again, sha)
		}
		sale := &seatmap.Sale{Chart: c, Index: c.Index(), Prices: map[string]int64{"near": 1, "far": 2}}
		m, seats := seatmap.NewMap(c.Seats), 0
		c.Each(func(_ *seatmap.Section, _ *seatmap.Row, _ *seatmap.Seat) { seats++ })
		for range seats { // all are found, one after the other, and no hole ever
			choice, err := sale.Best(m, seatmap.Wish{Quantity: 1, AllowOrphans: true})
			if err != nil {
				t.Fatalf("%v", err)
			}
			if _, there := sale.Index.At(choice.Seats[0]); !there {
				t.Fatalf("seat %d is a hole", choice.Seats[0])
			}
			sale.Index.Seating().Orphans(m, choice.Seats)
			m.Set(choice.Seats[0], seatmap.Sold)
		}
		var few *seatmap.TooFewError
		if _, err := sale.Best(m, seatmap.Wish{Quantity: 1}); !errors.As(err, &few) {
			t.Fatalf("with every seat gone: %v", err)
		}
	})
}

func TestAnIndexSpaceHasAnEnd(t *testing.T) {
	var faults seatmap.Faults
	if _, err := seatmap.Club().Over(seatmap.Lineage{Seats: seatmap.MaxSeats}); !errors.As(err, &faults) {
		t.Errorf("beyond the last index: %v", err)
	}
	if c, err := seatmap.Club().Over(seatmap.Lineage{Seats: seatmap.MaxSeats - 80}); err != nil || c.Seats != seatmap.MaxSeats {
		t.Errorf("up to the last index: %v", err)
	}
}
