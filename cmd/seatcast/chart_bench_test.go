package main

import (
	"testing"

	"seatcast/catalog"
	"seatcast/seatmap"
)

// BenchmarkPublish is what it takes to put another chart of a stadium in force,
// until Redis has been told: one with other labels, and one that drops 5,000
// free seats or has them again.
func BenchmarkPublish(b *testing.B) {
	full := seatmap.Stadium()
	h := newHouse(b, plan{chart: full})
	press, _, _ := h.press()
	publish := func(b *testing.B, c *seatmap.Chart) {
		b.Helper()
		if _, err := press.Publish(b.Context(), catalog.Publication{Event: h.event, Chart: c}); err != nil {
			b.Fatal(err)
		}
	}
	for _, change := range []struct {
		name string
		make func(c *seatmap.Chart)
	}{
		{"labels", func(c *seatmap.Chart) { c.Sections[0].Name += "'" }},
		{"5000 seats", dropping(5000)},
	} {
		b.Run(change.name, func(b *testing.B) {
			less := seatmap.Stadium()
			change.make(less)
			charts := []*seatmap.Chart{less, full}
			for k := 0; b.Loop(); k++ {
				publish(b, charts[k%2])
			}
			publish(b, full)
		})
	}
}

// dropping takes so many seats out of a chart, with their rows and sections.
func dropping(n int) func(c *seatmap.Chart) {
	return func(c *seatmap.Chart) {
		for n > 0 {
			s := &c.Sections[len(c.Sections)-1]
			n -= len(s.Rows[len(s.Rows)-1].Seats)
			if s.Rows = s.Rows[:len(s.Rows)-1]; len(s.Rows) == 0 {
				c.Sections = c.Sections[:len(c.Sections)-1]
			}
		}
	}
}
