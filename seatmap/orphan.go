package seatmap

import "slices"

// Orphans returns the single seats that taking these seats would leave and
// that could be helped, ascending. It judges seats chosen by hand; an answer of
// Best has judged already and may leave one where the house has nothing
// better.
//
// An orphan is a free ordinary seat that had a free neighbour before and has
// none afterwards. Row ends, breaks and seats that are held, sold or
// unavailable end a run of free seats; another category, section or price does
// not. One that was single before counts for nothing. Wheelchair spaces and
// companion seats are company to an ordinary seat, and are never orphans
// themselves. Those among the seats chosen are taken beforehand and judged by
// nobody: who needs one cannot choose another.
//
// It can be helped unless it is all that is left of its run: out of a run of
// free seats, as many can always be taken from one end, and that leaves a
// single seat only when it leaves one seat. So any number of seats can be had
// from any run, whatever is left of the house: the rule never costs a sale. Two
// out of a run of three are fine; the middle one of three is not, nor is the
// second of five.
//
// Seats the map does not say are available, and those not in the chart, are
// passed over: somebody else refuses them. A shopper who swaps seats has her
// own made available first.
func (s *Seating) Orphans(m Map, seats []int) []int {
	var at, beforehand []int
	for _, i := range seats {
		switch {
		case i < 0 || i >= len(s.pos) || s.pos[i] < 0 || m.At(i) != Available:
		case s.reserved.has(int(s.pos[i])):
			beforehand = append(beforehand, int(s.pos[i]))
		default:
			at = append(at, int(s.pos[i]))
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	free := func(p int) bool {
		return m.At(s.seats[p].Seat.I) == Available && !slices.Contains(beforehand, p)
	}
	var orphans []int
	for _, p := range s.singles(nil, free, at) {
		if s.left(free, at, p) > 1 {
			orphans = append(orphans, s.seats[p].Seat.I)
		}
	}
	slices.Sort(orphans)
	return orphans
}

// singles appends to dst the positions of ordinary seats that taking others,
// ascending, leaves alone. Free is what was free before; the others are.
func (s *Seating) singles(dst []int, free func(p int) bool, at []int) []int {
	stays := func(p int) bool {
		_, taken := slices.BinarySearch(at, p)
		return !taken && free(p)
	}
	alone := func(p int) bool {
		return !s.reserved.has(p) && stays(p) && !(s.beside(p) && stays(p-1)) && !(s.beside(p+1) && stays(p+1))
	}
	for _, p := range at {
		if s.beside(p) && alone(p-1) && (len(dst) == 0 || dst[len(dst)-1] != p-1) {
			dst = append(dst, p-1)
		}
		if s.beside(p+1) && alone(p+1) {
			dst = append(dst, p+1)
		}
	}
	return dst
}

// left counts what stays of the run p is in.
func (s *Seating) left(free func(p int) bool, at []int, p int) int {
	for s.beside(p) && free(p-1) {
		p--
	}
	n := 0
	for {
		if _, taken := slices.BinarySearch(at, p); !taken {
			n++
		}
		if p++; !s.beside(p) || !free(p) {
			return n
		}
	}
}
