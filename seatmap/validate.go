package seatmap

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a chart. They keep a slip of the pen from becoming gigabytes.
const (
	MaxSeats      = 500_000   // size of the index space
	MaxCapacity   = 1_000_000 // places in one area
	maxCoordinate = 1e7
	maxText       = 200 // characters of a name, label or id
)

// Validate tells everything that is wrong with a chart: with a fault it cannot
// be imported or sold, a warning is for its author to weigh.
func (c *Chart) Validate() (faults, warnings Faults) { return c.validate(ourNames) }

// naming is what the file a chart came from calls its parts, so that a fault
// names what its author wrote.
type naming struct {
	section                                    func(si int) string // path of a section
	sectionID, rowLabel, ticketID, label, seat string
}

var ourNames = naming{
	section:   func(si int) string { return fmt.Sprintf("sections[%d]", si) },
	sectionID: "id", rowLabel: "label", ticketID: "ticketId", label: "label", seat: "seats",
}

func (n naming) row(si, ri int) string { return fmt.Sprintf("%s.rows[%d]", n.section(si), ri) }

func (n naming) seatAt(si, ri, k int) string {
	return fmt.Sprintf("%s.%s[%d]", n.row(si, ri), n.seat, k)
}

// check is one validation under way.
type check struct {
	c          *Chart
	names      naming
	faults     Faults
	categories map[string]bool
	tickets    map[string]string // ticketId → where it was first
	taken      []bool            // by index
}

func (c *Chart) validate(names naming) (faults, warnings Faults) {
	k := &check{c: c, names: names, categories: map[string]bool{}, tickets: map[string]string{}}
	k.outline()
	k.nameCategories()
	k.sections()
	k.areas()
	k.indexes()
	return k.faults, c.warnings()
}

func (k *check) outline() {
	k.text("name", k.c.Name)
	k.finite("width", k.c.Width)
	k.finite("height", k.c.Height)
	k.finite("focal.x", k.c.Focal.X)
	k.finite("focal.y", k.c.Focal.Y)
	if k.c.Stage != nil {
		k.points("stage", k.c.Stage.Points)
	}
	for i, s := range k.c.Shapes {
		k.points(fmt.Sprintf("shapes[%d]", i), s.Points)
	}
}

func (k *check) nameCategories() {
	if len(k.c.Categories) == 0 {
		k.faults.Add("categories", "there is none: prices are set for categories")
	}
	for i, cat := range k.c.Categories {
		path := fmt.Sprintf("categories[%d].name", i)
		k.text(path, cat.Name)
		if k.categories[cat.Name] {
			k.faults.Add(path, "category %q is there twice", cat.Name)
		}
		k.categories[cat.Name] = true
	}
}

func (k *check) sections() {
	if len(k.c.Sections) == 0 && len(k.c.Areas) == 0 {
		k.faults.Add("", "the chart has neither seats nor areas: there is nothing to sell")
	}
	ids := map[string]bool{}
	for si := range k.c.Sections {
		s := &k.c.Sections[si]
		path := k.names.section(si)
		k.text(path+"."+k.names.sectionID, s.ID)
		if ids[s.ID] {
			k.faults.Add(path+"."+k.names.sectionID, "section %q is there twice", s.ID)
		}
		ids[s.ID] = true
		k.text(path+".name", s.Name)
		if len(s.Rows) == 0 {
			k.faults.Add(path+".rows", "the section has no rows")
		}
		k.rows(si, s)
	}
}

func (k *check) rows(si int, s *Section) {
	places := map[[2]string]string{} // row and seat label → where it was first
	for ri := range s.Rows {
		r := &s.Rows[ri]
		k.text(k.names.row(si, ri)+"."+k.names.rowLabel, r.Label)
		if len(r.Seats) == 0 {
			k.faults.Add(k.names.row(si, ri)+".seats", "row %q is empty", r.Label)
		}
		for i := range r.Seats {
			path := k.names.seatAt(si, ri, i)
			k.seat(path, &r.Seats[i])
			place := [2]string{r.Label, r.Seats[i].Label}
			if first, ok := places[place]; ok {
				k.faults.Add(path+"."+k.names.label, "seat %q of row %q is there twice: first at %s", place[1], place[0], first)
				continue
			}
			places[place] = path
		}
	}
}

func (k *check) seat(path string, s *Seat) {
	k.text(path+"."+k.names.ticketID, s.TicketID)
	k.text(path+"."+k.names.label, s.Label)
	if first, ok := k.tickets[s.TicketID]; ok {
		k.faults.Add(path+"."+k.names.ticketID, "ticket %q is there twice: first at %s", s.TicketID, first)
	} else {
		k.tickets[s.TicketID] = path
	}
	k.category(path+".category", s.Category)
	k.finite(path+".x", s.X)
	k.finite(path+".y", s.Y)
}

func (k *check) areas() {
	ids := map[string]bool{}
	for i, a := range k.c.Areas {
		path := fmt.Sprintf("areas[%d]", i)
		k.text(path+".id", a.ID)
		if ids[a.ID] {
			k.faults.Add(path+".id", "area %q is there twice", a.ID)
		}
		ids[a.ID] = true
		k.text(path+".name", a.Name)
		k.category(path+".category", a.Category)
		if a.Capacity < 1 || a.Capacity > MaxCapacity {
			k.faults.Add(path+".capacity", "%d places: a capacity is between 1 and %d", a.Capacity, MaxCapacity)
		}
		k.points(path, a.Points)
	}
}

// indexes checks that every seat has its own index below seats. An index
// without a seat, the last ones too, may be one of an earlier chart's.
func (k *check) indexes() {
	if k.c.Seats < 0 || k.c.Seats > MaxSeats {
		k.faults.Add("seats", "%d seats: a chart has at most %d", k.c.Seats, MaxSeats)
		return
	}
	k.taken = make([]bool, k.c.Seats)
	for si := range k.c.Sections {
		for ri := range k.c.Sections[si].Rows {
			for n, seat := range k.c.Sections[si].Rows[ri].Seats {
				k.index(k.names.seatAt(si, ri, n)+".i", seat.I)
			}
		}
	}
}

func (k *check) index(path string, i int) {
	switch {
	case i < 0 || i >= len(k.taken):
		k.faults.Add(path, "index %d is outside 0 to %d, which is what seats allows", i, len(k.taken)-1)
	case k.taken[i]:
		k.faults.Add(path, "index %d is there twice", i)
	default:
		k.taken[i] = true
	}
}

func (k *check) text(path, s string) {
	switch n := utf8.RuneCountInString(s); {
	case n == 0:
		k.faults.Add(path, "it is missing or empty")
	case n > maxText:
		k.faults.Add(path, "it is longer than %d characters", maxText)
	case strings.ContainsFunc(s, unicode.IsControl):
		k.faults.Add(path, "%q holds a control character", s)
	}
}

func (k *check) category(path, name string) {
	if !k.categories[name] {
		k.faults.Add(path, "no category is called %q", name)
	}
}

func (k *check) points(path string, ps []Point) {
	if len(ps) < 3 {
		k.faults.Add(path+".points", "%d points: an outline has at least three", len(ps))
	}
	for i, p := range ps {
		k.finite(fmt.Sprintf("%s.points[%d].x", path, i), p.X)
		k.finite(fmt.Sprintf("%s.points[%d].y", path, i), p.Y)
	}
}

// finite also catches NaN: no comparison with it is true.
func (k *check) finite(path string, v float64) {
	if !(math.Abs(v) <= maxCoordinate) {
		k.faults.Add(path, "%g is no coordinate: at most %g either way", v, float64(maxCoordinate))
	}
}
