package seatmap

import (
	"cmp"
	"math"
	"slices"
)

// split finds seats for a party that cannot sit together: the fewest groups
// first, and then near each other and the focal point. The number of groups is
// exact. Which runs they are in is sought from the nearest runs outwards, each
// the anchor once, with a bound on the work.
type split struct {
	found   []part    // every run of candidates that nothing can be added to, nearest first
	pool    []freeRun // those worth trying
	lengths []int     // of the runs of the pool: how many have so many seats
	unused  []int     // of the pool, less what the parts being tried use
	used    []bool    // by place in the pool
	parts   []part
	at      []int
	tries   []try
}

// part is n seats side by side, from a position on.
type part struct{ from, n int }

// freeRun is a run of candidates and where it stands.
type freeRun struct {
	part
	far    int64 // of one seat, on average
	middle Point
}

// try is what a split around one anchor would be.
type try struct {
	anchor int
	harm   int   // orphans, and what else is worse than any distance
	cost   int64 // distance from the focal point and of the groups from each other
}

const (
	poolSize  = 256
	anchors   = 32
	splitWork = 12_000 // runs looked at in all
)

// splitUp returns n candidates in as few groups as can be. There are that many
// candidates, and no n of them in a row.
func (h *hunt) splitUp(n int) []int {
	sp := &h.split
	h.gather()
	groups := sp.fewest(n)
	h.choosePool(n, groups)
	sp.tries = sp.tries[:0]
	for a := range min(len(sp.pool), anchors, max(1, splitWork/(len(sp.pool)*groups))) {
		h.around(a, n, groups)
		sp.tries = append(sp.tries, h.judge(a, n))
	}
	if a := h.drawn(sp.tries, func(a int) int { return sp.pool[a].from }); a != len(sp.tries)-1 {
		h.around(a, n, groups)
	}
	h.chosen = h.chosen[:0]
	for _, p := range sp.parts {
		for i := range p.n {
			h.chosen = append(h.chosen, p.from+i)
		}
	}
	slices.Sort(h.chosen)
	return h.chosen
}

// gather finds the runs of candidates and counts them by length.
func (h *hunt) gather() {
	sp := &h.split
	sp.found = sp.found[:0]
	clear(sp.lengths)
	for i := range h.s.runs {
		r := &h.s.runs[i]
		for p := h.candidates.next(int(r.from), int(r.to)); p < int(r.to); {
			to := h.candidates.gap(p, int(r.to))
			sp.found = append(sp.found, part{p, to - p})
			sp.lengths[to-p]++
			p = h.candidates.next(to, int(r.to))
		}
	}
}

// fewest returns how few runs hold n seats: the longest ones.
func (sp *split) fewest(n int) (groups int) {
	for l := len(sp.lengths) - 1; l > 0 && n > 0; l-- {
		take := min(sp.lengths[l], (n+l-1)/l)
		groups, n = groups+take, n-take*l
	}
	return groups
}

// longest returns how many seats the so many longest runs hold.
func longest(lengths []int, runs int) (seats int) {
	for l := len(lengths) - 1; l > 0 && runs > 0; l-- {
		take := min(lengths[l], runs)
		seats, runs = seats+take*l, runs-take
	}
	return seats
}

// choosePool takes the nearest runs that can be part of so few groups, and as
// many of the longest as there are groups, so that it can be done.
func (h *hunt) choosePool(n, groups int) {
	sp := &h.split
	least := n - longest(sp.lengths, groups-1)
	quota := sp.unused
	clear(quota)
	for l, left := len(quota)-1, groups; l > 0 && left > 0; l-- {
		quota[l] = min(sp.lengths[l], left)
		left -= quota[l]
	}
	sp.pool = sp.pool[:0]
	clear(sp.lengths)
	for _, r := range sp.found {
		if r.n < least || len(sp.pool) >= poolSize && quota[r.n] == 0 {
			continue
		}
		quota[r.n] = max(0, quota[r.n]-1)
		sp.pool = append(sp.pool, freeRun{r, h.s.far(r.from, r.n) / int64(r.n), h.s.middle(r.from, r.n)})
		sp.lengths[r.n]++
	}
	slices.SortFunc(sp.pool, func(a, b freeRun) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.from, b.from))
	})
}

// around writes into parts a split of n seats with the a-th run of the pool in
// it, and each further one the nearest to it that leaves the rest possible.
func (h *hunt) around(a, n, groups int) {
	sp := &h.split
	copy(sp.unused, sp.lengths)
	sp.used = append(sp.used[:0], make([]bool, len(sp.pool))...)
	sp.parts = sp.parts[:0]
	center := sp.pool[a].middle
	for k := a; ; {
		r := sp.pool[k]
		sp.used[k] = true
		sp.unused[r.n]--
		sp.parts = append(sp.parts, h.piece(r.part, min(r.n, n), center))
		n, groups = n-min(r.n, n), groups-1
		if n == 0 {
			return
		}
		k = h.nextRun(n, groups, center)
	}
}

// nextRun returns the unused run nearest to center that leaves the rest of n
// seats to so many groups less one. One of those that leave the fewest orphans,
// if it is the last.
func (h *hunt) nextRun(n, groups int, center Point) int {
	sp := &h.split
	least := n - longest(sp.unused, groups-1)
	best, bestOrphans, bestFar := -1, 0, 0.0
	for k := range sp.pool {
		r := &sp.pool[k]
		if sp.used[k] || r.n < least {
			continue
		}
		dx, dy := r.middle.X-center.X, r.middle.Y-center.Y
		orphans, far := h.orphansOf(r.part, n), dx*dx+dy*dy
		if best < 0 || orphans < bestOrphans || orphans == bestOrphans && far < bestFar {
			best, bestOrphans, bestFar = k, orphans, far
		}
	}
	return best
}

// orphansOf returns the fewest that n seats of a run can leave, 0 for a run of
// no more.
func (h *hunt) orphansOf(r part, n int) (fewest int) {
	for p := r.from; p <= r.from+r.n-n && n < r.n; p++ {
		orphans := h.orphansBeside(p, n)
		if orphans == 0 {
			return 0
		}
		if p == r.from || orphans < fewest {
			fewest = orphans
		}
	}
	return fewest
}

// piece returns n seats of a run: those that leave the fewest orphans, and of
// them the nearest to center.
func (h *hunt) piece(r part, n int, center Point) part {
	best, bestOrphans, bestFar := r.from, math.MaxInt, int64(0)
	for p := r.from; p <= r.from+r.n-n; p++ {
		if n == r.n {
			break
		}
		orphans := h.orphansBeside(p, n)
		if far := distance(h.s.middle(p, n), center); orphans < bestOrphans || orphans == bestOrphans && far < bestFar {
			best, bestOrphans, bestFar = p, orphans, far
		}
	}
	return part{best, n}
}

// orphansBeside counts what a block of n seats from p on leaves alone, for a
// wish that minds.
func (h *hunt) orphansBeside(p, n int) (orphans int) {
	if h.w.AllowOrphans {
		return 0
	}
	counts := func(q int) bool { return h.free.has(q) && !h.s.reserved.has(q) }
	if h.s.beside(p) && counts(p-1) && !(h.s.beside(p-1) && h.free.has(p-2)) {
		orphans++
	}
	if q := p + n; h.s.beside(q) && counts(q) && !(h.s.beside(q+1) && h.free.has(q+1)) {
		orphans++
	}
	return orphans
}

// judge weighs the parts of a split of n seats.
func (h *hunt) judge(a, n int) try {
	sp := &h.split
	t := try{anchor: a}
	apart := int64(0)
	sp.at = sp.at[:0]
	for _, p := range sp.parts {
		t.cost += h.s.far(p.from, p.n)
		apart = max(apart, distance(h.s.middle(p.from, p.n), sp.pool[a].middle))
		for i := range p.n {
			sp.at = append(sp.at, p.from+i)
		}
	}
	t.cost = t.cost/int64(n) + apart
	if !h.w.AllowOrphans {
		slices.Sort(sp.at)
		h.singles = h.s.singles(h.singles[:0], h.free.has, sp.at)
		t.harm = len(h.singles)
	}
	return t
}

// drawn returns the anchor of the try to take: the best, or with a seed one of
// those about as good.
func (h *hunt) drawn(tries []try, position func(anchor int) int) int {
	best := slices.MinFunc(tries, func(a, b try) int {
		return cmp.Or(cmp.Compare(a.harm, b.harm), cmp.Compare(a.cost, b.cost))
	})
	if h.w.Seed == 0 {
		return best.anchor
	}
	anchor, least := best.anchor, h.chance(position(best.anchor))
	for _, t := range tries {
		if t.harm == best.harm && t.cost <= best.cost+h.s.band {
			if c := h.chance(position(t.anchor)); c < least {
				anchor, least = t.anchor, c
			}
		}
	}
	return anchor
}
