package seatmap

import (
	"fmt"
	"slices"
)

// hunt is one search for seats: its planes and lists are used again and again,
// by one search at a time.
type hunt struct {
	s *Seating
	w Wish

	byIndex plane // free seats, by index
	free    plane // free seats
	match   plane // free, of the wished sections, categories and prices, and not in an earlier alternative

	candidates plane // what is chosen from now
	whole      plane // where so many candidates in a row begin
	clean      plane // those of whole that leave no orphan
	ends       plane

	sections   []bool // wished, by number in the chart
	categories []bool

	chosen  []int
	singles []int

	split split
	party party
}

func newHunt(s *Seating) *hunt {
	n := len(s.seats)
	h := &hunt{s: s, byIndex: newPlane(len(s.pos)), sections: make([]bool, len(s.sections)), categories: make([]bool, len(s.categories))}
	for _, p := range []*plane{&h.free, &h.match, &h.candidates, &h.whole, &h.clean, &h.ends, &h.party.spaces, &h.party.seats, &h.party.companions} {
		*p = newPlane(n)
	}
	h.split.lengths = make([]int, s.longest+1)
	h.split.unused = make([]int, s.longest+1)
	return h
}

// begin reads the map and the wish.
func (h *hunt) begin(m Map, prices map[string]int64, w Wish) error {
	h.w = w
	if err := h.understand(prices); err != nil {
		return err
	}
	h.byIndex.available(m)
	clear(h.free)
	for _, c := range h.s.shifts {
		h.free.copyFrom(h.byIndex, int(c.pos), int(c.i), int(c.n))
	}
	h.wished()
	h.match.and(h.match, h.free)
	return nil
}

// wished makes a match of every seat of the wished sections, categories and
// prices, free or not.
func (h *hunt) wished() {
	clear(h.match)
	for _, st := range h.s.stretches {
		if h.sections[st.section] && h.categories[st.category] {
			h.match.fill(int(st.from), int(st.to))
		}
	}
}

// understand finds out which sections and categories are wished.
func (h *hunt) understand(prices map[string]int64) error {
	w := &h.w
	switch {
	case w.Quantity < 1 || w.Quantity > MaxWish:
		return fmt.Errorf("%w: %d seats: one wish is for 1 to %d", ErrBadWish, w.Quantity, MaxWish)
	case w.Accessible < 0 || w.Accessible > w.Quantity:
		return fmt.Errorf("%w: %d wheelchair spaces among %d seats", ErrBadWish, w.Accessible, w.Quantity)
	case w.MinPrice < 0 || w.MaxPrice < 0 || w.MaxPrice > 0 && w.MinPrice > w.MaxPrice:
		return fmt.Errorf("%w: a price from %d to %d", ErrBadWish, w.MinPrice, w.MaxPrice)
	}
	if name, ok := choose(h.sections, h.s.sections, w.Sections); !ok {
		return fmt.Errorf("%w: no section has the id %q", ErrBadWish, name)
	}
	if name, ok := choose(h.categories, h.s.categories, w.Categories); !ok {
		return fmt.Errorf("%w: no category is called %q", ErrBadWish, name)
	}
	for name, n := range h.s.categories {
		price, ok := prices[name]
		if !ok || price < w.MinPrice || w.MaxPrice > 0 && price > w.MaxPrice {
			h.categories[n] = false
		}
	}
	return nil
}

// choose marks the names that are wished for: all when there are none. It
// returns a name nobody knows.
func choose(marks []bool, known map[string]int32, names []string) (string, bool) {
	for i := range marks {
		marks[i] = len(names) == 0
	}
	for _, name := range names {
		n, ok := known[name]
		if !ok {
			return name, false
		}
		marks[n] = true
	}
	return "", true
}

// next returns the positions of the best answer left, ascending, until the
// next call.
func (h *hunt) next() ([]int, bool) {
	if h.w.Accessible > 0 {
		return h.accessible()
	}
	if h.general() < h.w.Quantity {
		return nil, false
	}
	h.windows(h.w.Quantity)
	if !h.w.AllowOrphans {
		h.tidy(h.w.Quantity)
		if p, ok := h.pick(h.clean, h.w.Quantity); ok {
			return h.block(p, h.w.Quantity), true
		}
	}
	if p, ok := h.pick(h.whole, h.w.Quantity); ok {
		return h.block(p, h.w.Quantity), true
	}
	return h.splitUp(h.w.Quantity), true
}

// general makes candidates of what anybody may have, and counts them. Released
// seats come in only when it takes them.
func (h *hunt) general() int {
	h.candidates.less(h.match, h.s.reserved)
	n := h.candidates.count()
	if !h.w.Released || n >= h.w.Quantity {
		return n
	}
	h.candidates.less(h.match, h.s.space)
	if n = h.candidates.count(); n >= h.w.Quantity {
		return n
	}
	copy(h.candidates, h.match)
	return h.candidates.count()
}

// tooFew tells what next has found too little of. It is the last of a hunt.
func (h *hunt) tooFew() error {
	seats, spaces := h.matching()
	h.wished()
	allSeats, allSpaces := h.matching()
	return &TooFewError{Seats: seats, Spaces: spaces, Never: allSpaces < h.w.Accessible || allSeats < h.w.Quantity-h.w.Accessible}
}

// matching counts what matches and may be given, wheelchair spaces apart when some
// are asked for.
func (h *hunt) matching() (seats, spaces int) {
	if h.w.Accessible == 0 {
		return h.general(), 0
	}
	h.candidates.and(h.match, h.s.space)
	spaces = h.candidates.count()
	return h.match.count() - spaces, spaces
}

// block returns n positions from p on.
func (h *hunt) block(p, n int) []int {
	h.chosen = h.chosen[:0]
	for i := range n {
		h.chosen = append(h.chosen, p+i)
	}
	return h.chosen
}

// chance orders positions differently for each seed.
func (h *hunt) chance(p int) uint64 {
	x := h.w.Seed ^ uint64(p+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// insert keeps positions ascending.
func insert(at []int, p int) []int {
	i, _ := slices.BinarySearch(at, p)
	return slices.Insert(at, i, p)
}
