package seatmap

import "slices"

// Lineage is what an event has used of its index space: whoever knows an
// earlier chart of it, or a ticket sold on one, goes by these indexes.
type Lineage struct {
	Seats int            // size of the index space: above every index there ever was
	Of    map[string]int // ticketId → index, of every seat there ever was
}

// Over returns c as the next chart of an event: a seat that any chart before
// had keeps its index, a new one gets an index nobody has had, in the order the
// chart is written, and what is no more leaves a hole. The index space never
// shrinks. What c says of indexes itself does not count, and c is not changed;
// its ticketIds must each be there once.
//
// The same chart over the same lineage is the same chart, byte for byte. The
// error is Faults, when there is no room for so many seats.
func (c *Chart) Over(before Lineage) (*Chart, error) {
	next := *c
	next.Sections = slices.Clone(c.Sections)
	for si := range next.Sections {
		s := &next.Sections[si]
		s.Rows = slices.Clone(s.Rows)
		for ri := range s.Rows {
			s.Rows[ri].Seats = slices.Clone(s.Rows[ri].Seats)
		}
	}
	next.Seats = before.Seats
	next.Each(func(_ *Section, _ *Row, seat *Seat) {
		if i, known := before.Of[seat.TicketID]; known {
			seat.I = i
			return
		}
		seat.I = next.Seats
		next.Seats++
	})
	if next.Seats > MaxSeats {
		var faults Faults
		faults.Add("sections", "with what its earlier charts had, the event would come to %d seats: the indexes of at most %d can be told apart",
			next.Seats, MaxSeats)
		return nil, faults
	}
	return &next, nil
}
