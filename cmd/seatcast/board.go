package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"seatcast/seatmap"
)

// board is the map a crowd looks at, and how it chooses from it: near the
// stage and towards the middle first, side by side, next to those who sit there
// already. A house that sells so fills like a real one.
type board struct {
	rows []lane // the best first

	mu    sync.Mutex
	seats seatmap.Map
	areas map[string]int
	open  []int // rows with a free seat, the best first
	free  int   // seats free
	held  int
}

// lane is a row of ordinary seats, or of wheelchair spaces.
type lane struct {
	seats  []seatmap.Seat
	middle int     // which of them is nearest to the stage
	far    float64 // how far that one is
	kept   bool    // wheelchair spaces: nobody else takes them while there are other seats
}

// order is a request of the booking API.
type order struct {
	TicketIDs []string    `json:"ticketIds,omitempty"`
	Areas     []areaOrder `json:"areas,omitempty"`
}

type areaOrder struct {
	Area     string `json:"area"`
	Quantity int    `json:"quantity"`
}

func newBoard(chart *seatmap.Chart) *board {
	b := &board{seats: seatmap.NewMap(chart.Seats)}
	for _, s := range chart.Sections {
		for _, r := range s.Rows {
			for len(r.Seats) > 0 {
				n := slices.IndexFunc(r.Seats, func(s seatmap.Seat) bool { return s.Accessible != r.Seats[0].Accessible })
				if n < 0 {
					n = len(r.Seats)
				}
				b.rows = append(b.rows, newLane(r.Seats[:n], chart.Focal))
				r.Seats = r.Seats[n:]
			}
		}
	}
	slices.SortStableFunc(b.rows, func(a, b lane) int { return cmp.Compare(a.far, b.far) })
	return b
}

func newLane(seats []seatmap.Seat, focal seatmap.Point) lane {
	l := lane{seats: seats, far: math.Inf(1), kept: seats[0].Accessible}
	for i, s := range seats {
		if d := math.Hypot(s.X-focal.X, s.Y-focal.Y); d < l.far {
			l.middle, l.far = i, d
		}
	}
	return l
}

// show puts another map on the board.
func (b *board) show(s seatmap.Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seats, b.areas = s.Map, s.Areas
	b.open, b.free, b.held = b.open[:0], 0, 0
	var kept []int
	for i, l := range b.rows {
		free := 0
		for _, s := range l.seats {
			switch b.seats.At(s.I) {
			case seatmap.Available:
				free++
			case seatmap.Held:
				b.held++
			}
		}
		b.free += free
		switch {
		case free > 0 && l.kept:
			kept = append(kept, i)
		case free > 0:
			b.open = append(b.open, i)
		}
	}
	if len(b.open) == 0 {
		b.open = kept
	}
}

// soldOut says whether there is nothing left to wait for.
func (b *board) soldOut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free+b.held+b.placesLocked() == 0
}

func (b *board) placesLocked() (left int) {
	for _, n := range b.areas {
		left += n
	}
	return left
}

// choose finds places for a party: together, or where that cannot be, as many
// together as can. It returns nil when nothing is free.
func (b *board) choose(party int) *order {
	b.mu.Lock()
	defer b.mu.Unlock()
	if places := b.placesLocked(); places > 0 && rand.N(places+b.free) < places {
		return b.standLocked(party)
	}
	if len(b.open) == 0 {
		return nil
	}
	for ; party > 0; party-- {
		for range 12 {
			// Crowded to the front, with some for whom the back is cheap enough.
			at := int(float64(len(b.open)) * math.Pow(rand.Float64(), 2.5))
			if ids := b.sitLocked(b.rows[b.open[at]], party); ids != nil {
				return &order{TicketIDs: ids}
			}
		}
	}
	return nil
}

func (b *board) standLocked(party int) *order {
	for area, left := range b.areas {
		if left > 0 {
			return &order{Areas: []areaOrder{{area, min(party, left)}}}
		}
	}
	return nil
}

// sitLocked finds party free neighbours in a row, as near to its middle as
// there are, give or take a few seats.
func (b *board) sitLocked(l lane, party int) (ids []string) {
	wish := l.middle + rand.N(9) - 4
	best, least := -1, math.MaxInt
	run := 0
	for i, s := range l.seats {
		switch {
		case b.seats.At(s.I) != seatmap.Available:
			run = 0
		case s.Break:
			run = 1
		default:
			run++
		}
		first := i - party + 1
		if away := 2*first + party - 1 - 2*wish; run >= party && max(away, -away) < least {
			best, least = first, max(away, -away)
		}
	}
	if best < 0 {
		return nil
	}
	for _, s := range l.seats[best : best+party] {
		ids = append(ids, s.TicketID)
	}
	return ids
}
