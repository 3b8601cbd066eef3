package seatmap

import "time"

// Tag is what changes tell other servers of a token: enough to know one's own,
// too little to be it.
type Tag [6]byte

// TagOf returns the tag of a token; a shorter one is filled with zeros.
func TagOf(token string) (t Tag) {
	copy(t[:], token)
	return t
}

// Known is what one process has heard of one seat.
type Known struct {
	Status Status
	Tag    Tag           // of who holds it, or held it when it was sold; zero: not known
	Left   time.Duration // how much longer the hold lasts at least; not above zero: not known, or it may be over
}
