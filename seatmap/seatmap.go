// Package seatmap holds the words of reserved seating: charts of seats, their
// states, the numbered changes between states and the frames watchers read.
//
// It is the vocabulary every other part of Seatcast shares, and nothing else:
// it imports the standard library only, does no I/O, starts no goroutine and
// reads no clock. The machines that move these words around are in
// seatmap/live (the map), holds (Redis) and checkout (Postgres).
//
// A seat has two names. Outside, at the API, it is its TicketID: a stable
// string printed in the chart. Inside, in maps and changes, it is its index I:
// dense from 0, never moved and never reused, so a map of 60,000 seats is
// 15,000 bytes and a change is a few integers. Chart and map together are all
// a reader needs.
//
// Numbers order everything. A change carries its number N and the number
// before it, Prev; N grows strictly for the life of an event, across restarts
// and failovers, and stays below 2^53 so that JavaScript reads it exactly. A
// reader who has number p applies a change whose Prev is p; any other Prev
// tells of a gap or a fork. States in a change are absolute, so applying one
// twice is harmless.
package seatmap

// Status is what the map says of one seat. Reasons, owners and channels are
// looked up elsewhere.
type Status uint8

// The four states of a seat, in their two-bit encoding on the wire.
const (
	Available   Status = 0
	Held        Status = 1
	Sold        Status = 2
	Unavailable Status = 3
)

// String returns the word the API uses: available, held, sold or unavailable.
func (s Status) String() string {
	switch s {
	case Available:
		return "available"
	case Held:
		return "held"
	case Sold:
		return "sold"
	default:
		return "unavailable"
	}
}

// Map is the state of every seat of an event, two bits a seat: seat i is in
// bits 2(i mod 4) and 2(i mod 4)+1 of byte i/4. It marshals to JSON as base64.
type Map []byte

// NewMap returns a map of so many seats, all available.
func NewMap(seats int) Map { return make(Map, (seats+3)/4) }

// At returns the state of seat i, and Unavailable for a seat outside the map.
func (m Map) At(i int) Status {
	if i < 0 || i/4 >= len(m) {
		return Unavailable
	}
	return Status(m[i/4]>>(2*(i%4))) & 3
}

// Set writes the state of seat i. A seat outside the map is ignored: a change
// may name seats of a chart newer than the reader's.
func (m Map) Set(i int, s Status) {
	if i < 0 || i/4 >= len(m) {
		return
	}
	shift := 2 * (i % 4)
	m[i/4] = m[i/4]&^(3<<shift) | byte(s&3)<<shift
}

// Change is one numbered step of an event's map. Its JSON is at once the entry
// in the event's log, the message between servers and, without the fields
// marked servers only, what a delta frame is merged from.
type Change struct {
	N    int64 `json:"n"`    // number of this change
	Prev int64 `json:"prev"` // number of the change before it; 0 when it is the first
	At   int64 `json:"at"`   // Unix milliseconds of the Redis clock when it became true

	Reserved []int          `json:"reserved,omitempty"` // seats now held
	Released []int          `json:"released,omitempty"` // seats now available
	Booked   []int          `json:"booked,omitempty"`   // seats now sold
	Closed   []int          `json:"closed,omitempty"`   // seats now unavailable
	Areas    map[string]int `json:"areas,omitempty"`    // places left now, by area

	// Reset says that numbers before this one may have forked: a reader
	// drops what it knows and takes a snapshot of at least this number.
	Reset bool `json:"reset,omitempty"`

	Until int64  `json:"until,omitempty"` // servers only: Unix milliseconds at which the reserved seats end by themselves
	Tag   string `json:"tag,omitempty"`   // servers only: short tag of the holder of the reserved seats, and of who gave the released ones back
	Why   Why    `json:"why,omitempty"`   // servers only: why the released seats are; empty: not told
}

// Why says why seats of a change were released.
type Why string

// What releases seats.
const (
	GivenBack Why = "given_back" // with their basket: by its holder, or by checkout when the booking ended
	Swapped   Why = "swapped"    // by their holder, for others or for none
	Lapsed    Why = "lapsed"     // their hold ended by itself
	Restored  Why = "restored"   // Postgres says that they are for sale again
)

// Apply writes the states of c into m.
func (c *Change) Apply(m Map) { c.Each(m.Set) }

// Each calls f with every seat of c and the state it has now.
func (c *Change) Each(f func(seat int, to Status)) {
	for _, part := range []struct {
		seats []int
		to    Status
	}{{c.Reserved, Held}, {c.Released, Available}, {c.Booked, Sold}, {c.Closed, Unavailable}} {
		for _, i := range part.seats {
			f(i, part.to)
		}
	}
}
