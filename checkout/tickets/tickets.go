// Package tickets is what is between a sold ticket and the house: the text in its
// QR code, which nobody else can make, and the door, which lets each ticket in
// once.
//
// The text is signed with Ed25519, and the public keys are published: whoever
// has them can tell without asking anybody that a ticket was issued here, and for which
// event. That it was not refunded since, and not used already, only Postgres
// knows; a door that asks is told, and of two that ask at once one admits.
//
// An admission is undone by an operator, and then the ticket admits once more.
// Every scan of a ticket of ours is a row that is never changed.
//
// tickets does not know who buys, what a ticket cost or where it is shown.
package tickets

import (
	"errors"
	"time"
)

// Scan is one ticket before a door.
type Scan struct {
	Payload string // what its QR code says
	Event   string // which the door is of; empty: any
	Gate    string // for people
	By      string // the account that scans
	Request string // its repeat is the same scan; empty: none is
}

// Ticket is what whoever stands at the door wants to see.
type Ticket struct {
	ID      string `json:"id"`
	Event   string `json:"event"`
	Section string `json:"section,omitempty"`
	Row     string `json:"row,omitempty"`
	Label   string `json:"label,omitempty"`
	Area    string `json:"area,omitempty"`
}

// Admission is when and where a ticket was used.
type Admission struct {
	At   time.Time `json:"at"`
	Gate string    `json:"gate"`
	By   string    `json:"by"`
}

// Result is what became of a scan.
type Result string

// What can become of one.
const (
	Admitted   Result = "admitted"
	Used       Result = "used"        // it was admitted before
	Void       Result = "void"        // taken back
	Refunding  Result = "refunding"   // its money is on its way back
	Refunded   Result = "refunded"    // likewise, and there
	Pending    Result = "pending"     // its money has not arrived
	WrongEvent Result = "wrong_event" // another's than the door's
	Undone     Result = "undone"
)

// RefusedError is a ticket of ours that lets nobody in, or not here, or not any
// more.
type RefusedError struct {
	Why    Result
	Ticket Ticket
	First  *Admission // of a used one
}

func (e *RefusedError) Error() string { return "tickets: refused: " + string(e.Why) }

// Outcomes a caller can act on. A Postgres that does not answer is
// seatmap.ErrUnavailable: nobody knows whether the ticket was admitted, and the
// same request tells.
var (
	ErrForged  = errors.New("tickets: not signed here, or changed since")
	ErrKey     = errors.New("tickets: signed with a key that is not accepted")
	ErrUnknown = errors.New("tickets: no such ticket")
	ErrUnused  = errors.New("tickets: not admitted") // so there is nothing to undo
)
