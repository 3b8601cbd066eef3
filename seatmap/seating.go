package seatmap

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Seating is a chart made ready for choosing seats in it. Its seats stand in a
// line, row after row in neighbour order, and each has a position in that line:
// a set of seats is a plane of bits, and seats that sit together are bits that
// follow each other. It is read-only and shared between goroutines.
//
// Seats are next to each other by the chart alone: neighbours in a row without
// a Break between them. Numbers and distances say nothing.
type Seating struct {
	seats []SeatRef // by position
	pos   []int32   // index I → position; -1 for a hole

	sum  []int64 // distance from the focal point of all positions before this one
	band int64   // what is so little further away is as good

	link      plane // this position and the one before are neighbours
	space     plane // a wheelchair space
	companion plane // a companion seat
	reserved  plane // either: not for everybody
	platform  plane // in a run that has a wheelchair space

	runs       []run // nearest first
	longest    int   // seats of the longest run
	stretches  []stretch
	shifts     []shift
	sections   map[string]int32
	categories map[string]int32

	hunts sync.Pool
}

// run is seats that sit side by side in the chart: a row, or the part of one
// between two breaks.
type run struct {
	from, to int32
	near     int64 // distance of its nearest seat from the focal point
	middle   Point
	radius   float64 // no seat of it is further from its middle
}

// stretch is positions that follow each other in one section and category.
type stretch struct{ from, to, section, category int32 }

// shift is positions that follow each other as their indexes do.
type shift struct{ pos, i, n int32 }

// unit is what distances are counted in: integers, so that seats equally far
// away are so exactly, and sums of distances do not drift.
const unit = 1e-3

// Seating returns the chart made ready for choosing seats. It is made when it
// is first asked for, and kept.
func (x *Index) Seating() *Seating {
	x.once.Do(func() { x.seating = newSeating(x.chart) })
	return x.seating
}

func newSeating(c *Chart) *Seating {
	s := &Seating{pos: make([]int32, c.Seats), sections: map[string]int32{}, categories: map[string]int32{}}
	for i := range s.pos {
		s.pos[i] = -1
	}
	for i := range c.Sections {
		s.sections[c.Sections[i].ID] = int32(i)
	}
	for i := range c.Categories {
		s.categories[c.Categories[i].Name] = int32(i)
	}
	c.Each(func(section *Section, row *Row, seat *Seat) {
		s.pos[seat.I] = int32(len(s.seats))
		s.seats = append(s.seats, SeatRef{section, row, seat})
	})
	s.flags()
	s.measure(c.Focal)
	s.stretch()
	s.hunts.New = func() any { return newHunt(s) }
	return s
}

// flags fills the planes that never change.
func (s *Seating) flags() {
	n := len(s.seats)
	for _, p := range []*plane{&s.link, &s.space, &s.companion, &s.reserved, &s.platform} {
		*p = newPlane(n)
	}
	for p, at := range s.seats {
		if p > 0 && s.seats[p-1].Row == at.Row && !at.Seat.Break {
			s.link.set(p)
		}
		switch {
		case at.Seat.Accessible:
			s.space.set(p)
		case at.Seat.Companion:
			s.companion.set(p)
		}
	}
	for i := range s.reserved {
		s.reserved[i] = s.space[i] | s.companion[i]
	}
}

// measure takes distances from the focal point, and finds the runs.
func (s *Seating) measure(focal Point) {
	s.sum = make([]int64, len(s.seats)+1)
	nearest, furthest := int64(math.MaxInt64), int64(0)
	for p, at := range s.seats {
		d := distance(Point{at.Seat.X, at.Seat.Y}, focal)
		s.sum[p+1] = s.sum[p] + d
		nearest, furthest = min(nearest, d), max(furthest, d)
	}
	const bands = 10
	s.band = max(0, furthest-nearest) / bands
	for from := 0; from < len(s.seats); {
		to := s.link.gap(from+1, len(s.seats))
		s.runs = append(s.runs, s.run(from, to))
		s.longest = max(s.longest, to-from)
		if s.space.next(from, to) < to {
			s.platform.fill(from, to)
		}
		from = to
	}
	slices.SortFunc(s.runs, func(a, b run) int { return cmp.Or(cmp.Compare(a.near, b.near), cmp.Compare(a.from, b.from)) })
}

func (s *Seating) run(from, to int) run {
	r := run{from: int32(from), to: int32(to), near: math.MaxInt64, middle: s.middle(from, to-from)}
	for p := from; p < to; p++ {
		r.near = min(r.near, s.far(p, 1))
		r.radius = max(r.radius, math.Hypot(s.seats[p].Seat.X-r.middle.X, s.seats[p].Seat.Y-r.middle.Y))
	}
	return r
}

// stretch finds where positions go on in one section and category, and where
// they do as their indexes do.
func (s *Seating) stretch() {
	for p, at := range s.seats {
		section, category, i := s.sections[at.Section.ID], s.categories[at.Seat.Category], int32(at.Seat.I)
		if n := len(s.stretches) - 1; n >= 0 && s.stretches[n].section == section && s.stretches[n].category == category {
			s.stretches[n].to++
		} else {
			s.stretches = append(s.stretches, stretch{int32(p), int32(p) + 1, section, category})
		}
		if n := len(s.shifts) - 1; n >= 0 && s.shifts[n].i+s.shifts[n].n == i {
			s.shifts[n].n++
		} else {
			s.shifts = append(s.shifts, shift{int32(p), i, 1})
		}
	}
}

// far returns how far n seats from p on are from the focal point, all together.
func (s *Seating) far(p, n int) int64 { return s.sum[p+n] - s.sum[p] }

// middle returns the point halfway between the first and the last of n seats
// from p on.
func (s *Seating) middle(p, n int) Point {
	a, b := s.seats[p].Seat, s.seats[p+n-1].Seat
	return Point{(a.X + b.X) / 2, (a.Y + b.Y) / 2}
}

func (s *Seating) place(p int) Point { return Point{s.seats[p].Seat.X, s.seats[p].Seat.Y} }

// beside reports whether p and the position before it are neighbours.
func (s *Seating) beside(p int) bool { return p > 0 && p < len(s.seats) && s.link.has(p) }

// distance returns how far apart two points are, in units.
func distance(a, b Point) int64 { return int64(math.Round(math.Hypot(a.X-b.X, a.Y-b.Y) / unit)) }

// Together reports whether seats sit side by side in one row,
// as those of a Choice of one group do.
func (s *Seating) Together(seats []int) bool {
	at := make([]int, 0, len(seats))
	for _, i := range seats {
		if i < 0 || i >= len(s.pos) || s.pos[i] < 0 {
			return false
		}
		at = append(at, int(s.pos[i]))
	}
	slices.Sort(at)
	for n, p := range at[min(1, len(at)):] {
		if p != at[n]+1 || !s.beside(p) {
			return false
		}
	}
	return len(at) > 0
}
