package seatmap

import "math"

// windows writes into whole where n candidates in a row begin. It doubles: two
// windows side by side make one twice as long.
func (h *hunt) windows(n int) {
	copy(h.whole, h.candidates)
	for have := 1; have < n; {
		step := min(have, n-have)
		for i := range h.ends {
			h.ends[i] = h.whole[i] & h.s.link[i]
		}
		for i := range h.whole {
			h.whole[i] &= h.ends.word(i<<6 + step)
		}
		have += step
	}
}

// tidy writes into clean which windows of n seats leave no orphan. The seat
// before a window is left alone when no free seat is before it in turn, and the
// seat after it when none is after that.
func (h *hunt) tidy(n int) {
	var free, single uint64 // the last bits of the word before
	for i := range h.clean {
		ordinary := h.free[i] &^ h.s.reserved[i]
		begins := ordinary &^ (h.s.link[i] & (h.free[i]<<1 | free))
		after := h.free.word(i<<6+1) & h.s.link.word(i<<6+1)
		h.clean[i] = h.whole[i] &^ (h.s.link[i] & (begins<<1 | single))
		h.ends[i] = h.s.link[i] & ordinary &^ after
		free, single = h.free[i]>>63, begins>>63
	}
	for i := range h.clean {
		h.clean[i] &^= h.ends.word(i<<6 + n)
	}
}

// pick returns the window of n seats to give: the nearest, or with a seed one
// of those about as near.
func (h *hunt) pick(windows plane, n int) (int, bool) {
	p, far := h.nearest(windows, n)
	if p < 0 || h.w.Seed == 0 {
		return p, p >= 0
	}
	return h.spread(windows, n, far+h.s.band*int64(n)), true
}

// nearest returns the window nearest to the focal point, the first of equals,
// or -1. Runs come nearest first, so it can stop early.
func (h *hunt) nearest(windows plane, n int) (at int, far int64) {
	at, far = -1, math.MaxInt64
	for i := range h.s.runs {
		r := &h.s.runs[i]
		if r.near*int64(n) > far {
			break
		}
		for p := windows.next(int(r.from), int(r.to)); p < int(r.to); p = windows.next(p+1, int(r.to)) {
			if d := h.s.far(p, n); d < far || d == far && p < at {
				at, far = p, d
			}
		}
	}
	return at, far
}

// spread returns the window within a limit that the seed draws. Windows that
// tile their run come first: two shoppers who draw different ones never ask for
// a seat in common, and the run is not left in pieces.
func (h *hunt) spread(windows plane, n int, limit int64) int {
	best, bestTile, bestChance := -1, false, uint64(0)
	for i := range h.s.runs {
		r := &h.s.runs[i]
		if r.near*int64(n) > limit {
			break
		}
		begin, last := 0, -2
		for p := h.whole.next(int(r.from), int(r.to)); p < int(r.to); p = h.whole.next(p+1, int(r.to)) {
			if p != last+1 {
				begin = p
			}
			last = p
			if !windows.has(p) || h.s.far(p, n) > limit {
				continue
			}
			tile, chance := (p-begin)%n == 0, h.chance(p)
			if best < 0 || tile && !bestTile || tile == bestTile && chance < bestChance {
				best, bestTile, bestChance = p, tile, chance
			}
		}
	}
	return best
}
