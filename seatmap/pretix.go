package seatmap

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// plan is a pretix seating plan being read. Both shapes of its schema say they
// are version 0.0.1, so each part is taken as it is found; fields that neither
// knows are passed over. A place in it is relative: zone + row + seat.
type plan struct {
	draft
	faults   Faults
	warnings Faults
	zones    []int // of each section
	ids      map[string]int
	drawn    []drawn
}

func importPretix(top node) (c *Chart, faults, warnings Faults) {
	p := &plan{ids: map[string]int{}}
	top.faults = &p.faults
	p.c.Name = top.field("name").text()
	for _, n := range top.field("categories").items() {
		if n.object() {
			p.c.Categories = append(p.c.Categories, Category{Name: n.field("name").text(), Color: n.field("color").text()})
		}
	}
	for i, n := range top.field("zones").items() {
		p.zone(i, n)
	}
	p.c.Each(func(_ *Section, _ *Row, s *Seat) { s.I, p.c.Seats = p.c.Seats, p.c.Seats+1 })
	p.stage()
	p.size(top.field("size"))
	p.focus()
	found, warned := p.c.validate(p.names())
	return &p.c, append(p.faults, found.beyond(p.faults)...), append(p.warnings, warned...)
}

// names makes faults speak of the plan's own fields. A zone without rows makes
// no section, so they count differently.
func (p *plan) names() naming {
	return naming{
		section:   func(si int) string { return fmt.Sprintf("zones[%d]", p.zones[si]) },
		sectionID: "zone_id", rowLabel: "row_number", ticketID: "seat_guid", label: "seat_number", seat: "seats",
	}
}

func (p *plan) zone(i int, n node) {
	if !n.object() {
		return
	}
	origin := position(n.field("position"), Point{}, true)
	for _, a := range n.field("areas").items() {
		p.area(a, origin)
	}
	rows := n.field("rows").items()
	if len(rows) == 0 {
		return
	}
	name := cmp.Or(n.field("name").text(), n.field("zone_id").text(), fmt.Sprintf("Zone %d", i+1))
	s := p.section(p.sectionID(cmp.Or(n.field("zone_id").text(), name)), name)
	p.zones = append(p.zones, i)
	for _, r := range rows {
		s.Rows = append(s.Rows, row(r, origin))
	}
	breakRows(s.Rows)
}

// sectionID makes an id of our own: a plan may call two zones the same.
func (p *plan) sectionID(id string) string {
	p.ids[id]++
	if n := p.ids[id]; n > 1 {
		return p.sectionID(fmt.Sprintf("%s-%d", id, n))
	}
	return id
}

func row(n node, zone Point) Row {
	if !n.object() {
		return Row{}
	}
	origin := position(n.field("position"), zone, false)
	r := Row{Label: labelled(n.field("row_label"), n.field("row_number"))}
	numbers := n.field("seat_label")
	for _, s := range n.field("seats").items() {
		if !s.object() {
			r.Seats = append(r.Seats, Seat{})
			continue
		}
		at := position(s.field("position"), origin, true)
		r.Seats = append(r.Seats, Seat{
			TicketID:   s.field("seat_guid").text(),
			Label:      labelled(numbers, s.field("seat_number")),
			X:          at.X,
			Y:          at.Y,
			Category:   s.field("category").text(),
			Accessible: s.field("wheelchair").truth(),
		})
	}
	return r
}

// labelled puts a number into a label in which %s stands for it. Without a
// number there is no label: that is a fault, and validation tells it.
func labelled(label, number node) string {
	text, n := label.text(), strings.TrimSpace(number.text())
	if text == "" || n == "" {
		return n
	}
	return strings.ReplaceAll(text, "%s", n)
}

// position reads a place relative to origin.
func position(n node, origin Point, required bool) Point {
	if !n.there() {
		if required {
			n.faults.Add(n.path, "it is missing")
		}
		return origin
	}
	if !n.object() {
		return origin
	}
	for _, axis := range []string{"x", "y"} {
		if f := n.field(axis); !f.there() {
			f.faults.Add(f.path, "it is missing")
		}
	}
	return Point{origin.X + n.field("x").number(0), origin.Y + n.field("y").number(0)}
}

// breakRows marks where neighbours in the file do not sit side by side: a gap
// over half as wide again as is usual in the row is an aisle, a pillar or a
// seat that is not there. A row of few seats is measured by its whole zone.
func breakRows(rows []Row) {
	const wide, few = 1.5, 3
	gaps := make([][]float64, len(rows))
	var all []float64
	for i, r := range rows {
		for k := 1; k < len(r.Seats); k++ {
			gaps[i] = append(gaps[i], math.Hypot(r.Seats[k].X-r.Seats[k-1].X, r.Seats[k].Y-r.Seats[k-1].Y))
		}
		all = append(all, gaps[i]...)
	}
	zone := median(all)
	for i, r := range rows {
		usual := zone
		if len(gaps[i]) >= few {
			usual = median(gaps[i])
		}
		for k, gap := range gaps[i] {
			r.Seats[k+1].Break = usual > 0 && gap > wide*usual
		}
	}
}

// median returns the lower one of an even number: gaps are what is rare.
func median(vs []float64) float64 {
	if len(vs) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(vs))
	return sorted[(len(sorted)-1)/2]
}

// size takes the plan's own size when everything drawn is inside it; without
// one, or when something is not, the drawing is moved into view.
func (p *plan) size(n node) {
	p.c.Width, p.c.Height = n.field("width").number(0), n.field("height").number(0)
	inside := true
	p.points(func(x, y *float64) {
		inside = inside && *x >= 0 && *y >= 0 && *x <= p.c.Width && *y <= p.c.Height
	})
	if !inside {
		p.place()
		return
	}
	p.points(func(x, y *float64) { *x, *y = tenth(*x), tenth(*y) })
}
