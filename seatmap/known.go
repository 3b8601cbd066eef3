package seatmap

import "time"

// Tag is what changes tell other servers of a token: enough to know one's own,
// too little to be it.
type Tag [6]byte

// TagOf returns the tag of a token, or of a tag as it is written.
func TagOf(token string) (t Tag) {
	copy(t[:], token)
	return t
}

// Known is what one process has heard of some seats of an event, and of who asks
// for them. Redis has been so within the last Age.
type Known struct {
	Seats  []KnownSeat // in the order asked for
	Holder bool        // a token with this tag holds something, or has held something that a repeat would be told of
	Age    time.Duration
}

// KnownSeat is what was heard of one seat.
type KnownSeat struct {
	Status Status        // Available also for a seat not heard of
	Left   time.Duration // how much longer it is held; not above zero: that is not known, or it may be over
}
