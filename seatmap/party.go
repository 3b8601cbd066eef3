package seatmap

import (
	"cmp"
	"math"
	"slices"
)

// party finds wheelchair spaces and the seats of who comes along. What is still
// to be had stands in three planes.
type party struct {
	spaces, seats, companions plane
	needSpaces, needSeats     int

	anchors []int
	tries   []try
}

// accessible returns the positions of the best answer to a wish for wheelchair
// spaces.
func (h *hunt) accessible() ([]int, bool) {
	n, spaces := h.w.Quantity, h.w.Accessible
	h.candidates.and(h.match, h.s.space)
	if free := h.candidates.count(); free < spaces || h.match.count()-free < n-spaces {
		return nil, false
	}
	h.candidates.and(h.match, h.s.platform)
	h.windows(n)
	h.keep(func(p int) bool { return h.s.spacesIn(p, n) == spaces })
	if p, ok := h.pickKind(n); ok {
		return h.block(p, n), true
	}
	return h.scatter(), true
}

// keep drops windows.
func (h *hunt) keep(good func(p int) bool) {
	for p, to := h.whole.next(0, len(h.s.seats)), len(h.s.seats); p < to; p = h.whole.next(p+1, to) {
		if !good(p) {
			h.whole.unset(p)
		}
	}
}

// pickKind picks a window of n seats that leaves neither an orphan nor a space
// without its companion seat; else one that leaves no such space; else any.
func (h *hunt) pickKind(n int) (int, bool) {
	h.tidy(n)
	for _, windows := range []plane{h.clean, h.whole} {
		if h.w.AllowOrphans {
			windows = h.whole
		}
		copy(h.candidates, windows)
		for p, to := windows.next(0, len(h.s.seats)), len(h.s.seats); p < to; p = windows.next(p+1, to) {
			if h.strands(p, n) {
				h.candidates.unset(p)
			}
		}
		if p, ok := h.pick(h.candidates, n); ok {
			return p, true
		}
	}
	return h.pick(h.whole, n)
}

// strands reports whether n seats from p on take the only free companion seat
// of a free space beside them.
func (h *hunt) strands(p, n int) bool {
	companion := func(q int) bool { return h.free.has(q) && h.s.companion.has(q) }
	space := func(q int) bool { return h.free.has(q) && h.s.space.has(q) }
	before := h.s.beside(p) && space(p-1) && companion(p) &&
		!(h.s.beside(p-1) && companion(p-2))
	q := p + n
	after := h.s.beside(q) && space(q) && companion(q-1) &&
		!(h.s.beside(q+1) && companion(q+1))
	return before || after
}

// spacesIn counts the wheelchair spaces among n seats from p on.
func (s *Seating) spacesIn(p, n int) (spaces int) {
	for q := s.space.next(p, p+n); q < p+n; q = s.space.next(q+1, p+n) {
		spaces++
	}
	return spaces
}

// scatter finds a party that cannot sit in one row: around each of the nearest
// spaces once, and then takes the answer where the fewest spaces have nobody
// beside them, in the fewest groups, near each other.
func (h *hunt) scatter() []int {
	pt := &h.party
	pt.anchors = pt.anchors[:0]
	h.candidates.and(h.match, h.s.space)
	for p, to := h.candidates.next(0, len(h.s.seats)), len(h.s.seats); p < to; p = h.candidates.next(p+1, to) {
		pt.anchors = append(pt.anchors, p)
	}
	slices.SortFunc(pt.anchors, func(a, b int) int {
		return cmp.Or(cmp.Compare(h.s.far(a, 1), h.s.far(b, 1)), cmp.Compare(a, b))
	})
	const work = 32
	pt.anchors = pt.anchors[:min(len(pt.anchors), max(1, work/h.w.Quantity))]
	pt.tries = pt.tries[:0]
	for i, p := range pt.anchors {
		h.seat(p)
		pt.tries = append(pt.tries, h.judgeParty(i))
	}
	h.seat(pt.anchors[h.drawn(pt.tries, func(i int) int { return pt.anchors[i] })])
	return h.chosen
}

// seat writes into chosen the whole party, as near to one space as it can be.
func (h *hunt) seat(anchor int) {
	pt := &h.party
	for i, v := range h.match {
		pt.spaces[i] = v & h.s.space[i]
		pt.companions[i] = v & h.s.companion[i]
		pt.seats[i] = v &^ h.s.reserved[i]
	}
	pt.needSpaces, pt.needSeats = h.w.Accessible, h.w.Quantity-h.w.Accessible
	h.chosen = h.chosen[:0]
	center := h.s.place(anchor)
	for p := anchor; ; {
		h.give(p)
		h.giveBeside(p)
		switch {
		case pt.needSpaces > 0:
			p = h.s.closest(pt.spaces, center)
		case pt.needSeats == 0:
			return
		default:
			if p = h.s.closest(pt.seats, center); p < 0 {
				p = h.s.closest(pt.companions, center)
			}
		}
	}
}

// give gives the party one position.
func (h *hunt) give(p int) {
	pt := &h.party
	if pt.spaces.has(p) {
		pt.needSpaces--
	} else {
		pt.needSeats--
	}
	pt.spaces.unset(p)
	pt.seats.unset(p)
	pt.companions.unset(p)
	h.chosen = insert(h.chosen, p)
}

// giveBeside gives the party seats next to a position, companion seats first,
// and keeps one for each space it still needs.
func (h *hunt) giveBeside(p int) {
	pt := &h.party
	low, high := p, p
	for spare := max(pt.needSeats-pt.needSpaces, min(pt.needSeats, 1)); spare > 0; spare-- {
		above, below := h.s.beside(high+1), h.s.beside(low)
		switch {
		case above && pt.companions.has(high+1), above && pt.seats.has(high+1) && !(below && pt.companions.has(low-1)):
			high++
			h.give(high)
		case below && (pt.companions.has(low-1) || pt.seats.has(low-1)):
			low--
			h.give(low)
		default:
			return
		}
	}
}

// closest returns the position of a plane closest to a point, or -1.
func (s *Seating) closest(in plane, to Point) int {
	best, far := -1, math.Inf(1)
	for i := range s.runs {
		r := &s.runs[i]
		dx, dy, reach := r.middle.X-to.X, r.middle.Y-to.Y, far+r.radius
		if dx*dx+dy*dy >= reach*reach {
			continue
		}
		for p := in.next(int(r.from), int(r.to)); p < int(r.to); p = in.next(p+1, int(r.to)) {
			at := s.place(p)
			if d := math.Hypot(at.X-to.X, at.Y-to.Y); d < far {
				best, far = p, d
			}
		}
	}
	return best
}

// judgeParty weighs what is chosen around the i-th anchor. A space with nobody
// beside it, when somebody comes along, weighs more than any number of groups.
func (h *hunt) judgeParty(i int) try {
	t := try{anchor: i}
	center, apart := h.s.place(h.party.anchors[i]), int64(0)
	lonely := 0
	for k, p := range h.chosen {
		t.cost += h.s.far(p, 1)
		apart = max(apart, distance(h.s.place(p), center))
		if !h.s.space.has(p) {
			continue
		}
		before := k > 0 && h.chosen[k-1] == p-1 && h.s.beside(p) && !h.s.space.has(p-1)
		after := k+1 < len(h.chosen) && h.chosen[k+1] == p+1 && h.s.beside(p+1) && !h.s.space.has(p+1)
		if !before && !after {
			lonely++
		}
	}
	t.cost = t.cost/int64(len(h.chosen)) + apart
	t.harm = lonely*(MaxWish+1) + h.groups(h.chosen)
	return t
}
