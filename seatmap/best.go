package seatmap

import (
	"errors"
	"fmt"
	"slices"
)

// Wish is what somebody asks for who lets the house choose. Empty lists and
// zero prices ask for nothing in particular.
type Wish struct {
	Quantity     int      `json:"quantity"`               // seats in all, 1 to MaxWish
	Accessible   int      `json:"accessible,omitempty"`   // how many of them are wheelchair spaces; the others are for companions
	Categories   []string `json:"categories,omitempty"`   // names
	Sections     []string `json:"sections,omitempty"`     // ids
	MinPrice     int64    `json:"minPrice,omitempty"`     // of each seat, in minor units
	MaxPrice     int64    `json:"maxPrice,omitempty"`     // likewise; 0 is no limit
	AllowOrphans bool     `json:"allowOrphans,omitempty"` // the nearest seats, even if they leave a single one beside them

	// Released says that the venue sells its wheelchair spaces and companion
	// seats to anybody now. They are still given last. It is the venue's to
	// say, never the shopper's.
	Released bool `json:"-"`

	// Seed spreads shoppers: each seed gets one of the answers that are about
	// as near as the nearest, always the same one. 0 gets the nearest.
	Seed uint64 `json:"-"`
}

// MaxWish is the most seats one wish may ask for: more are chosen by hand.
const MaxWish = 100

// Choice is an answer to a wish.
type Choice struct {
	Seats    []int   // indexes, ascending
	Groups   [][]int // the same seats: each group sits side by side, in neighbour order
	Together bool    // there is one group
	Orphans  []int   // single seats it leaves beside it, ascending
}

// ErrBadWish is a wish that makes no sense, or names what the chart does not
// have; what it is wrapped in says which.
var ErrBadWish = errors.New("seatmap: bad wish")

// TooFewError says that fewer free seats match a wish than it asks for.
type TooFewError struct {
	Seats  int  // that are left and match, without wheelchair spaces
	Spaces int  // wheelchair spaces that are left and match; 0 unless some were asked for
	Never  bool // too few would match if every seat were free
}

func (e *TooFewError) Error() string {
	return fmt.Sprintf("seatmap: too few seats match: %d left, and %d wheelchair spaces", e.Seats, e.Spaces)
}

// Best returns the seats of the sale that fulfil a wish best. See
// Seating.Alternatives.
func (s *Sale) Best(m Map, w Wish) (Choice, error) {
	return s.Index.Seating().Best(m, s.Prices, w)
}

// Best returns the first of Alternatives.
func (s *Seating) Best(m Map, prices map[string]int64, w Wish) (Choice, error) {
	cs, err := s.Alternatives(m, prices, w, 1)
	if err != nil {
		return Choice{}, err
	}
	return cs[0], nil
}

// Alternatives returns up to k answers to a wish, and at least one, that share
// no seat: best first, or as the seed draws them. It does no I/O, and the same arguments have the same answer. A seat
// whose category has no price is not for sale.
//
// What is better, the most important first:
//
//  1. seats next to each other in one row, by the chart, that leave no orphan;
//  2. seats next to each other in one row;
//  3. as few groups as there can be, which leave no orphan if the house finds
//     such ones, near each other and near the focal point.
//
// Within 1 and 2 the seats with the least distance from the focal point win,
// all their distances together; of two such answers, the one drawn first. An
// orphan is what Orphans says, but whether it could be helped is judged by the
// whole house: seats side by side leave one only when no others avoid it. No
// wish is refused for one. AllowOrphans skips step 1.
//
// Wheelchair spaces and companion seats are given to who asks for a space, and
// to nobody else unless they are Released; even then only when the wish cannot
// be fulfilled without, companion seats first. An answer with spaces has
// exactly as many as were asked for. Its companions sit beside them if they
// can, and it leaves no other free space without its companion seat if that can
// be helped.
//
// It returns a *TooFewError when not even one answer exists, and ErrBadWish.
func (s *Seating) Alternatives(m Map, prices map[string]int64, w Wish, k int) ([]Choice, error) {
	h := s.hunts.Get().(*hunt)
	defer s.hunts.Put(h)
	if err := h.begin(m, prices, w); err != nil {
		return nil, err
	}
	choices := make([]Choice, 0, min(max(k, 1), 8))
	for range max(k, 1) {
		at, ok := h.next()
		if !ok {
			break
		}
		choices = append(choices, h.choice(at))
		for _, p := range at {
			h.match.unset(p)
		}
	}
	if len(choices) == 0 {
		return nil, h.tooFew()
	}
	return choices, nil
}

// choice tells positions, ascending, as a Choice.
func (h *hunt) choice(at []int) Choice {
	c := Choice{Seats: make([]int, len(at)), Groups: make([][]int, 0, h.groups(at))}
	inOrder := make([]int, len(at))
	from := 0
	for n, p := range at {
		inOrder[n] = h.s.seats[p].Seat.I
		if n+1 == len(at) || at[n+1] != p+1 || !h.s.beside(p+1) {
			c.Groups = append(c.Groups, inOrder[from:n+1:n+1])
			from = n + 1
		}
	}
	copy(c.Seats, inOrder)
	slices.Sort(c.Seats)
	c.Together = len(c.Groups) == 1
	h.singles = h.s.singles(h.singles[:0], h.free.has, at)
	for _, p := range h.singles {
		c.Orphans = append(c.Orphans, h.s.seats[p].Seat.I)
	}
	slices.Sort(c.Orphans)
	return c
}

// groups counts how many groups positions, ascending, are in.
func (h *hunt) groups(at []int) int {
	n := 0
	for i, p := range at {
		if i == 0 || at[i-1] != p-1 || !h.s.beside(p) {
			n++
		}
	}
	return n
}
