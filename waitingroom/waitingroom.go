// Package waitingroom lets a crowd into a sale at the rate the sale can bear,
// in an order nobody could choose.
//
// Who comes before the opening takes part in a draw (package draw); who comes
// later is behind all of them, in the order of arrival. A place is a number, and
// it is in the keeping of whoever has it: a Redis that has lost it gets it back
// with the next call. One number, how far the line has been called, is told to
// everybody who waits; each works out their own place from it. It never falls,
// so no place ever gets worse.
//
//	join ──▶ draw ──▶ wait ──▶ called ──▶ inside ──▶ gone
//	           │        ▲         │
//	           └── drawn┘         └── asleep: first when back
//
// Nobody is let in by being called: whoever is called asks for their pass, and
// one script lets the lowest number in that is here, as far as the rate (a token
// bucket on the clock of Redis), the cap on those inside and the free seats
// allow. No node leads, and none remembers who is here.
//
// The rooms' settings, their draws and who was let in are in Postgres; who waits
// is in Redis alone.
package waitingroom

import (
	"errors"
	"time"
)

// State is what a room does.
type State string

// States of a room.
const (
	Draw   State = "draw"   // whoever joins takes part in the draw
	Closed State = "closed" // the list is frozen; whoever joins is behind it
	Open   State = "open"   // lets people in
	Paused State = "paused" // lets nobody in; places are kept
	Over   State = "over"   // sold out, or ended: lets nobody in any more
)

// Terms are what an operator says of a room.
type Terms struct {
	Rate    int           // people let in a minute, on average
	Burst   int           // more at once than the rate has it: those let in within any time w are at most Rate × w + Burst
	Cap     int           // people inside at the same time
	Session time.Duration // how long one may stay inside without a pass anew
}

// Frame is what everybody who waits is told. Serving never falls.
type Frame struct {
	At      time.Time // by the clock of Redis
	State   State
	Serving int64 // numbers up to it have been called
	Last    int64 // the highest number given
	Rate    int   // a minute, as it is set
	Waiting int64 // not called yet; of a draw who takes part
	Inside  int64
	Free    int64 // seats

	version int64 // of what the room has been told
}

// Joined is the answer to a join.
type Joined struct {
	Drawn  bool      // takes part in the draw: there is no number yet
	Nonce  string    // on the list of the draw
	Number int64     // the place
	Until  time.Time // inside already, until then
	New    bool      // there was none before
}

// Turn is the answer to a claim.
type Turn struct {
	Inside time.Time // let in until then; zero: not yet
	Called bool      // and here: is let in behind so many
	Ahead  int64     // of those who are called and here
	Number int64     // the place of who is not called yet
	State  State     // why nobody is let in; of who waits
}

// Outcomes a caller can act on.
var (
	ErrOver    = errors.New("waitingroom: nobody is let in any more")
	ErrNoPlace = errors.New("waitingroom: no place in this line")
	errCold    = errors.New("waitingroom: room is cold") // its keys are not in Redis
)
