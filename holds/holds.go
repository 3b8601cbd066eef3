// Package holds is the gate of a sale: it lets a shopper hold seats for some
// minutes, says a fast no to everybody else, and lets go by itself.
//
// What it promises:
//
//   - A hold is all or nothing. Of any number of takers of one seat one wins.
//   - Nobody but its holder extends a hold or gives it back, and no extension
//     shortens it or outlasts its cap.
//   - A hold is a Redis key that expires. It ends with no process of ours
//     running, and the next taker wins; Lapse only makes the map tell.
//   - Every change of the map has a number, and the numbers of an event only
//     grow: across restarts, failovers and an emptied Redis alike. A change is
//     numbered, logged and painted into the map in one step.
//   - An emptied Redis is cold, and grants nothing until Rebuild has loaded
//     what is sold: a seat once sold is not granted again.
//
// What it does not know: whether a seat is sold. Postgres decides that, and
// tells by Spend and Restore, and through Judge when everything must be made
// anew. Losing Redis costs comfort, never correctness.
//
// The clock is Redis's own: no answer depends on the time of this machine.
//
//	take ──► held ──extend──► held ──release──► (free)
//	           │├─swap───► held, other seats; never once sealed
//	           │└─until──► (expired) ──lapse──► the map tells
//	           └─spend──► sold ──restore──► (free)
//
// Each verb is one Lua script beside the Go that runs it. A script checks
// first and writes last, and running one again is harmless, so a call that got
// no answer may be repeated.
package holds

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"seatcast/seatmap"
)

// MaxSeats is the most seats one basket can have, whatever an event grants.
const MaxSeats = 1000

// Judge knows what Postgres says.
type Judge interface {
	// Truth runs use with what Postgres says of the event now, while it holds
	// the event's advisory lock, so that no mark changes until use returns. It
	// returns the error of use, or seatmap.ErrNoEvent.
	//
	// Spend and Restore are called with the lock held. On a cold event they
	// call Truth with the very ctx they were given: it must know by that ctx
	// that the lock is held and use the same transaction, or it would wait for
	// itself.
	Truth(ctx context.Context, event string, use func(context.Context, seatmap.Truth) error) error
}

// Voice tells every node of a numbered change.
type Voice interface {
	// Publish sends the JSON of a seatmap.Change. It does not wait and does
	// not fail its caller: what is lost is repaired from the log.
	Publish(ctx context.Context, event string, change []byte)
}

// TakeRequest asks for seats, places or both.
type TakeRequest struct {
	Event string
	Token string // of the basket to be; the same request with the same token is answered alike
	User  string
	Seats []int          // ascending, each once
	Areas map[string]int // area → places, each above zero
	Quote json.RawMessage
	Hash  string // of what was asked, to tell a repeat from another request
	Terms seatmap.Terms

	Pass *seatmap.Pass // of an event that lets people in one by one; nil: of one that does not

	Operator, Note string // who takes them for User at the box office, and what for: they then are never swapped
}

// Outcomes of Take, beside those of seatmap. Each changed nothing.
var (
	ErrOverCap = errors.New("holds: account holds as many seats as it may")
	ErrBought  = errors.New("holds: account has bought as many tickets as it may")
	ErrMany    = errors.New("holds: account has as many bookings as it may")
	ErrRevoked = errors.New("holds: the pass is over before its time")
	ErrReused  = errors.New("holds: token belongs to another request")
)

// PaceError says that an account has held so often within an hour that it must
// wait until it holds again. Nothing was taken.
type PaceError struct {
	Wait time.Duration
}

func (e *PaceError) Error() string { return "holds: account must wait before it holds again" }

// ErrSealed is the answer of Swap while a basket is being paid for, and ever
// after. Nothing changed.
var ErrSealed = errors.New("holds: a payment of the basket has begun")

// TakenError names the seats of a request that somebody has. No seat of the
// request was taken.
type TakenError struct {
	Seats []int // ascending
}

func (e *TakenError) Error() string { return "holds: seats are taken" }

// AreaFullError names an area with fewer places left than were asked for. No
// seat of the request was taken.
type AreaFullError struct {
	Area string
}

func (e *AreaFullError) Error() string { return "holds: not enough places left in area " + e.Area }
