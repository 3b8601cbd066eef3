package checkout

import (
	"slices"

	"seatcast/seatmap"
)

// standing is why a seat is for sale or not. The reasons stand beside each
// other, and the status follows from them: taking one away leaves what the
// others say, so nobody needs to know what a seat was before.
type standing struct {
	I        int
	Status   string
	Killed   *string // why
	KilledBy *string
	OffSale  bool
	Channel  string // "": general
	Shut     bool   // its channel, now
	Dropped  bool   // no longer in the event's chart; whoever publishes one says so
}

// Status of a seat, as the arbiter judges it.
const (
	seatAvailable   = "available"
	seatSold        = "sold"
	seatUnavailable = "unavailable"
)

// rests is the status of a seat that is not sold, in SQL. The schema refuses a
// row in which it is another.
const rests = `CASE WHEN killed IS NULL AND NOT off_sale AND NOT channel_closed AND NOT dropped THEN 'available' ELSE 'unavailable' END`

// settled is s with the status that follows.
func (s standing) settled() standing {
	switch {
	case s.Status == seatSold: // whatever else: when that is taken back, the rest counts
	case s.Killed == nil && !s.OffSale && !s.Shut && !s.Dropped:
		s.Status = seatAvailable
	default:
		s.Status = seatUnavailable
	}
	return s
}

// same says that nothing differs.
func (s standing) same(as standing) bool {
	return s.Status == as.Status && s.OffSale == as.OffSale && s.Channel == as.Channel && s.Shut == as.Shut &&
		sameText(s.Killed, as.Killed) && sameText(s.KilledBy, as.KilledBy)
}

func sameText(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func killed(reason, by string) func(standing) standing {
	return func(s standing) standing {
		s.Killed, s.KilledBy = &reason, &by
		return s
	}
}

func offSale(s standing) standing {
	s.OffSale = true
	return s
}

// released leaves a seat to its channel.
func released(s standing) standing {
	s.Killed, s.KilledBy, s.OffSale = nil, nil, false
	return s
}

func inChannel(name string, open bool) func(standing) standing {
	return func(s standing) standing {
		s.Channel, s.Shut = name, name != "" && !open
		return s
	}
}

// SeatsError says which seats refuse a change. Nothing changed.
type SeatsError struct {
	Sold []int // of these a ticket is sold
	Held []int // these are held
}

func (e *SeatsError) Error() string { return "checkout: seats are sold or held" }

// Altered is what came of a change.
type Altered struct {
	Seats      int      `json:"seats"`                // meant
	Changed    int      `json:"changed"`              // of which something changed
	Closed     int      `json:"closed"`               // that were for sale, and are not
	Opened     int      `json:"opened"`               // that were not for sale, and are
	Overridden []string `json:"overridden,omitempty"` // bookings that lose seats they held
}

// alter is what becomes of seats, and what it comes to.
func alter(seats []standing, to func(standing) standing) (changed []standing, closing []int, a Altered) {
	a.Seats = len(seats)
	for _, was := range seats {
		now := to(was).settled()
		if now.same(was) {
			continue
		}
		changed = append(changed, now)
		switch {
		case was.Status == seatAvailable && now.Status == seatUnavailable:
			closing = append(closing, now.I)
		case was.Status == seatUnavailable && now.Status == seatAvailable:
			a.Opened++
		}
	}
	a.Changed, a.Closed = len(changed), len(closing)
	return changed, closing, a
}

// soldOf are the seats that are sold.
func soldOf(seats []standing) (sold []int) {
	for _, s := range seats {
		if s.Status == seatSold {
			sold = append(sold, s.I)
		}
	}
	return sold
}

// bookingsOf are the bookings that hold seats, each once.
func bookingsOf(event string, holding map[int]seatmap.Basket) (ids []string) {
	for _, b := range holding {
		ids = append(ids, seatmap.BookingID(event, b.Token))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
