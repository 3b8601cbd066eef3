package seatmap

import (
	"math"
	"slices"
	"strconv"
)

// Venues are the names Generate knows, smallest first.
var Venues = []string{"club", "theatre", "arena", "stadium"}

// Generate returns the chart of a made-up venue: the same one, byte for byte,
// each time. They are for demos and tests and stand for no real house.
func Generate(venue string) (*Chart, bool) {
	switch venue {
	case "club":
		return Club(), true
	case "theatre":
		return Theatre(), true
	case "arena":
		return Arena(), true
	case "stadium":
		return Stadium(), true
	default:
		return nil, false
	}
}

// Generated charts have one scale: a seat is 10 wide.
const (
	seatPitch = 10.0
	aisle     = 14.0 // between two blocks, beside the seats
	margin    = 60.0 // around everything drawn
)

// draft is a chart being drawn, around an origin of its own choice and without
// indexes; finish makes a chart of it.
type draft struct{ c Chart }

// section begins a section; its rows are added with row.
func (d *draft) section(id, name string) *Section {
	d.c.Sections = append(d.c.Sections, Section{ID: id, Name: name})
	return &d.c.Sections[len(d.c.Sections)-1]
}

// row adds a row of seats at those points, numbered from 1.
func (s *Section) row(label, category string, at []Point) *Row {
	r := Row{Label: label, Seats: make([]Seat, len(at))}
	for i, p := range at {
		r.Seats[i] = Seat{Label: strconv.Itoa(i + 1), X: p.X, Y: p.Y, Category: category}
	}
	s.Rows = append(s.Rows, r)
	return &s.Rows[len(s.Rows)-1]
}

// drop takes seats out of a row. The others keep their numbers, and whoever
// sat on either side of a hole are neighbours no more.
func (r *Row) drop(gone func(i int, s *Seat) bool) {
	kept, hole := r.Seats[:0], false
	for i := range r.Seats {
		s := r.Seats[i]
		if gone(i, &s) {
			hole = true
			continue
		}
		s.Break = (s.Break || hole) && len(kept) > 0
		kept, hole = append(kept, s), false
	}
	r.Seats = kept
}

// open puts an entrance in the middle of a row.
func (r *Row) open(width int) {
	from := (len(r.Seats) - width) / 2
	r.drop(func(i int, _ *Seat) bool { return i >= from && i < from+width })
}

// welcome makes n wheelchair spaces in a row, each with a companion seat
// beside it, from both ends inwards. The row has at least 2n seats.
func (r *Row) welcome(n int) {
	for p := range n {
		space, beside := p, p+1 // from the left, then …
		if p%2 == 1 {
			space, beside = len(r.Seats)-p, len(r.Seats)-p-1 // … from the right
		}
		if r.Seats[max(space, beside)].Break {
			continue
		}
		r.Seats[space].Accessible, r.Seats[beside].Companion = true, true
	}
}

// trim takes out seats of the highest scores until so many are left. Of equal
// scores the seats drawn first go.
func (d *draft) trim(left int, score func(s *Seat) float64) {
	var scores []float64
	d.c.Each(func(_ *Section, _ *Row, s *Seat) { scores = append(scores, score(s)) })
	if len(scores) <= left {
		return
	}
	slices.Sort(scores)
	limit, equals := scores[left], 0
	for _, v := range scores[left:] {
		if v == limit {
			equals++
		}
	}
	d.drop(func(s *Seat) bool {
		v := score(s)
		if v == limit {
			equals--
			return equals >= 0
		}
		return v > limit
	})
}

// drop takes seats out of every row.
func (d *draft) drop(gone func(s *Seat) bool) {
	for si := range d.c.Sections {
		for ri := range d.c.Sections[si].Rows {
			d.c.Sections[si].Rows[ri].drop(func(_ int, s *Seat) bool { return gone(s) })
		}
	}
}

// finish moves the drawing into the positive quadrant, drops what is empty and
// gives every seat its index and its ticket id.
func (d *draft) finish(name string) *Chart {
	c := &d.c
	c.Name = name
	for si := range c.Sections {
		c.Sections[si].Rows = slices.DeleteFunc(c.Sections[si].Rows, func(r Row) bool { return len(r.Seats) == 0 })
	}
	c.Sections = slices.DeleteFunc(c.Sections, func(s Section) bool { return len(s.Rows) == 0 })
	c.Each(func(section *Section, row *Row, seat *Seat) {
		seat.I = c.Seats
		seat.TicketID = section.ID + "-" + row.Label + "-" + seat.Label
		c.Seats++
	})
	d.place()
	return c
}

// place shifts everything so that it begins at the margin, to one decimal: it
// is all a screen shows and keeps 60,000 seats small.
func (d *draft) place() {
	c := &d.c
	low, high := Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	d.points(func(x, y *float64) {
		low = Point{math.Min(low.X, *x), math.Min(low.Y, *y)}
		high = Point{math.Max(high.X, *x), math.Max(high.Y, *y)}
	})
	shift := func(x, y *float64) {
		*x, *y = tenth(*x-low.X+margin), tenth(*y-low.Y+margin)
	}
	d.points(shift)
	shift(&c.Focal.X, &c.Focal.Y)
	c.Width, c.Height = math.Ceil(high.X-low.X+2*margin), math.Ceil(high.Y-low.Y+2*margin)
}

// points calls f for all that is drawn.
func (d *draft) points(f func(x, y *float64)) {
	outline := func(ps []Point) {
		for i := range ps {
			f(&ps[i].X, &ps[i].Y)
		}
	}
	d.c.Each(func(_ *Section, _ *Row, s *Seat) { f(&s.X, &s.Y) })
	if d.c.Stage != nil {
		outline(d.c.Stage.Points)
	}
	for _, s := range d.c.Shapes {
		outline(s.Points)
	}
	for _, a := range d.c.Areas {
		outline(a.Points)
	}
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }

// rectangle returns the outline of a rectangle around a centre.
func rectangle(x, y, width, height float64) []Point {
	w, h := width/2, height/2
	return []Point{{x - w, y - h}, {x + w, y - h}, {x + w, y + h}, {x - w, y + h}}
}

// circle returns a polygon that looks like an ellipse.
func circle(x, y, rx, ry float64) []Point {
	const corners = 48
	ps := make([]Point, corners)
	for i := range ps {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		ps[i] = Point{x + rx*cos, y + ry*sin}
	}
	return ps
}

// letters are row labels as houses use them: no I and no O, which read as
// numbers, and AA after Z.
func letters(n int) string {
	const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ"
	label := string(alphabet[n%len(alphabet)])
	if n >= len(alphabet) {
		label += label
	}
	return label
}
