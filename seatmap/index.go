package seatmap

import (
	"slices"
	"sync"
)

// Index finds the parts of a chart by name. Building one walks the whole
// chart, so build it once per chart; it is read-only and shared.
type Index struct {
	seats []SeatRef // by I; a hole in the index space has no Seat
	ids   map[string]int
	areas map[string]*Area

	chart   *Chart
	once    sync.Once
	seating *Seating // made by the first who asks
}

// SeatRef is one seat and where it stands.
type SeatRef struct {
	Section *Section
	Row     *Row
	Seat    *Seat
}

// Index returns the index of a chart that Validate found no fault in. The
// chart must not change afterwards.
func (c *Chart) Index() *Index {
	x := &Index{
		seats: make([]SeatRef, c.Seats),
		ids:   make(map[string]int, c.Seats),
		areas: make(map[string]*Area, len(c.Areas)),
		chart: c,
	}
	c.Each(func(section *Section, row *Row, seat *Seat) {
		x.seats[seat.I] = SeatRef{Section: section, Row: row, Seat: seat}
		x.ids[seat.TicketID] = seat.I
	})
	for i := range c.Areas {
		x.areas[c.Areas[i].ID] = &c.Areas[i]
	}
	return x
}

// Seat returns the seat the API calls ticketID.
func (x *Index) Seat(ticketID string) (Seat, bool) {
	i, ok := x.ids[ticketID]
	if !ok {
		return Seat{}, false
	}
	return *x.seats[i].Seat, true
}

// Named returns the seats the API calls so, ascending, each once, and the names
// that are of no seat and those that came more than once.
func (x *Index) Named(ids []string) (seats []int, unknown, twice []string) {
	seats = make([]int, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		i, ok := x.ids[id]
		switch {
		case seen[id]:
			twice = append(twice, id)
		case !ok:
			unknown = append(unknown, id)
		default:
			seats = append(seats, i)
		}
		seen[id] = true
	}
	slices.Sort(seats)
	return seats, unknown, twice
}

// At returns the seat of index i; false outside the chart and for a hole in
// its index space.
func (x *Index) At(i int) (SeatRef, bool) {
	if i < 0 || i >= len(x.seats) || x.seats[i].Seat == nil {
		return SeatRef{}, false
	}
	return x.seats[i], true
}

// Area returns the general-admission area of that id.
func (x *Index) Area(id string) (Area, bool) {
	a, ok := x.areas[id]
	if !ok {
		return Area{}, false
	}
	return *a, true
}
