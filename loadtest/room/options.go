package room

import (
	"fmt"
	"io"
	"time"
)

// Options say what is measured.
type Options struct {
	Fans  int
	Conns int
	Pairs int           // rounds; 0: ten o'clock alone
	Draw  bool          // ten o'clock
	Idle  time.Duration // how long a tick is measured

	JSON    string // file for what came of it
	Program string // seatcast's binary; built when empty
	Out     io.Writer
	Err     io.Writer
}

// Bounds of what one machine can do.
const (
	mostFans  = 2_000_000
	mostConns = 5_000
)

// Validate returns what is wrong with the options, and says what to use.
func (o *Options) Validate() error {
	switch {
	case o.Fans < 10 || o.Fans > mostFans:
		return fmt.Errorf("--fans %d: use 10 to %d", o.Fans, mostFans)
	case o.Conns < 1 || o.Conns > mostConns:
		return fmt.Errorf("--conns %d: use 1 to %d", o.Conns, mostConns)
	case o.Pairs < 0 || o.Pairs == 0 && !o.Draw:
		return fmt.Errorf("--pairs %d: at least one, or 0 with --draw", o.Pairs)
	case o.Idle < time.Second:
		return fmt.Errorf("--idle %v: a second at least", o.Idle)
	}
	return nil
}

// parts are how many have joined when a tick is measured.
func (o *Options) parts() [3]int { return [3]int{max(1, o.Fans/200), max(2, o.Fans/10), o.Fans} }
