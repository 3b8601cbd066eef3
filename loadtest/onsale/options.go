package onsale

import (
	"fmt"
	"io"
	"time"
)

// Options say what is sold and to whom.
type Options struct {
	Users int
	Fail  float64       // share of the payments that are made with a card that fails in some way
	Seats int           // on sale; 0: so many that they sell out
	Wide  int           // shoppers at once
	For   time.Duration // no shopper comes after that
	Kill  time.Duration // every so often one of two nodes is killed and another one started; 0: one node, which lives

	JSON    string // file for what came of it
	Program string // seatcast's binary; built when empty
	Out     io.Writer
	Err     io.Writer
}

// Bounds of what one machine can do.
const (
	mostUsers = 100_000
	mostWide  = 15_000
	mostSeats = 60_000
)

// Validate returns what is wrong with the options, and says what to use.
func (o *Options) Validate() error {
	switch {
	case o.Users < 1 || o.Users > mostUsers:
		return fmt.Errorf("--users %d: use 1 to %d", o.Users, mostUsers)
	case o.Seats < 0 || o.Seats > mostSeats:
		return fmt.Errorf("--seats %d: use 1 to %d, or 0 for so many that they sell out", o.Seats, mostSeats)
	case o.Wide < 1 || o.Wide > mostWide:
		return fmt.Errorf("--at-once %d: use 1 to %d", o.Wide, mostWide)
	case o.For <= 0:
		return fmt.Errorf("--for %v: a time is needed", o.For)
	case o.Kill != 0 && o.Kill < time.Second:
		return fmt.Errorf("--kill %v: a second at least", o.Kill)
	}
	return nil
}

// seats are on sale: by default a little fewer than shoppers would take.
func (o *Options) seats() int {
	if o.Seats > 0 {
		return o.Seats
	}
	return min(max(o.Users*3/2, 10), mostSeats)
}
