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
	"fmt"
	"reflect"
	"time"

	"seatcast/waitingroom/draw"
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
	Slow    Slow          // from when on fewer are let in

	Codes bool // who joins needs a code
	Proof int  // or has proved work: the highest number to be tried; 0: need not
}

// Frame is what everybody who waits is told. Serving never falls.
type Frame struct {
	At      time.Time // by the clock of Redis
	State   State
	Serving int64 // numbers up to it have been called
	Last    int64 // the highest number given
	Rate    int   // a minute, as it is set
	Waiting int64 // not called yet, and who takes part in a draw that is not drawn
	Inside  int64
	Free    int64     // seats
	Since   time.Time // when the room was made in this Redis: one that had lost it knows who waits only by their places
	Pace    int       // a minute, as it is now: the rate, unless the sale is slow
	Slowed  string    // why the pace is lower, or fewer are let in than it has; empty: it is not

	version int64 // of what the room has been told
	unnamed bool  // it has not been told which room it is
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
	New    bool      // since now
	Called bool      // and here: is let in behind so many
	Ahead  int64     // of those who are called and here
	Number int64     // the place of who is not called yet
	State  State     // why nobody is let in; of who waits
}

// Room is a room as Postgres has it.
type Room struct {
	Event  string
	State  State
	Terms  Terms
	Joins  time.Time // from then on anybody joins
	Closes time.Time // when the list of the draw freezes; zero: there is no draw
	Opens  time.Time // from then on people are let in

	GuardsMap bool // the map of seats is for who is inside

	// Of a room with a draw.
	Tickets int // on the frozen list
	Root    draw.Digest
	Told    []byte // by the external source; nil: nothing yet
	Key     draw.Digest
	Frozen  time.Time // zero: not yet
	Drawn   time.Time // zero: not yet

	announced draw.Announcement
	made      time.Time // tells it from one the event had before
	version   int64
	serving   int64
	last      int64
}

// HasDraw says that who comes before the opening takes part in a draw.
func (r *Room) HasDraw() bool { return !r.Closes.IsZero() }

func (r *Room) order() Order {
	return Order{Version: r.version, State: r.State, Terms: r.Terms, Serving: r.serving, Last: int64(r.Tickets), Drawn: !r.Drawn.IsZero()}
}

// id names a room in what it signs: what an earlier room of the event has signed is of
// no use in it.
func (r *Room) id() int64 { return r.made.UnixMicro() }

// issued says whether what names a room was issued by this one. What names none, 0, was
// issued by a release that did not say which, and is of this one when it is no older.
func (r *Room) issued(id int64, at time.Time) bool {
	return id == r.id() || id == 0 && !at.Before(r.made)
}

// name tells rooms apart in this process.
func (r *Room) name() string { return fmt.Sprint(r.Event, " ", r.id()) }

// Plan is what an operator says of a room.
type Plan struct {
	Terms    Terms
	Joins    time.Time
	Closes   time.Time // zero: no draw
	Opens    time.Time
	External draw.External // of the draw

	GuardsMap bool // the map of seats is for who is inside
}

// announces says whether a plan announces what a room has announced.
func (p *Plan) announces(r *Room) bool {
	if !r.HasDraw() || p.Closes.IsZero() {
		return r.HasDraw() == !p.Closes.IsZero()
	}
	return p.Closes.Equal(r.Closes) && reflect.DeepEqual(p.External, r.announced.External)
}

// Check says what is wrong with a plan, and fills in what it leaves to us: of a
// drand beacon all but the kind, and the burst.
func (p *Plan) Check() error {
	t := &p.Terms
	if t.Burst == 0 {
		t.Burst = max(1, t.Rate/30)
	}
	switch {
	case t.Rate < 0 || t.Rate > mostRate:
		return fmt.Errorf("rate is 0 to %d people a minute", mostRate)
	case t.Burst < 1 || t.Burst > mostRate:
		return fmt.Errorf("burst is 1 to %d", mostRate)
	case t.Cap < 1:
		return errors.New("cap is how many may be inside at the same time, 1 or more")
	case t.Session < shortest || t.Session > longest:
		return fmt.Errorf("a session is %v to %v", shortest, longest)
	case t.Proof != 0 && (t.Proof < leastProof || t.Proof > mostProof):
		return fmt.Errorf("proof is 0, or %d to %d", leastProof, mostProof)
	case !t.Slow.sane():
		return errSlow
	case p.Joins.IsZero() || p.Opens.IsZero() || p.Opens.Before(p.Joins):
		return errors.New("joinsAt and opensAt are needed, in this order")
	}
	for _, at := range []*time.Time{&p.Joins, &p.Closes, &p.Opens} {
		*at = at.UTC().Truncate(time.Second)
	}
	if p.Closes.IsZero() {
		if p.External.Kind != "" {
			return errors.New("external is of a draw: say with closesAt when its list freezes")
		}
		return nil
	}
	if !p.Closes.After(p.Joins) || p.Opens.Before(p.Closes) {
		return errors.New("closesAt lies behind joinsAt, and opensAt not before it")
	}
	return p.checkExternal()
}

func (p *Plan) checkExternal() error {
	switch e := &p.External; {
	case e.Kind == "":
		e.Kind = draw.None
	case e.Kind == draw.Committer && (e.Name == "" || e.Commitment == nil):
		return errors.New("a committer has a name and a commitment, the SHA-256 of their 32 bytes in hex")
	case e.Kind == draw.Drand && len(e.PublicKey) == 0:
		*e = draw.Quicknet(e.Round)
		if e.Round == 0 {
			e.Round = e.RoundAfter(p.Closes.Add(usualWait))
		}
	}
	e := p.External
	if err := e.After(p.Closes); err != nil || e.Kind != draw.Drand {
		return err
	}
	switch out := e.At(); {
	case out.Before(p.Closes.Add(leastWait)):
		return fmt.Errorf("round %d comes out %v after closesAt: a list takes a while to be frozen, and people to save its root: name one at least %v later, or none for one after %v",
			e.Round, out.Sub(p.Closes), leastWait, usualWait)
	case p.Opens.Before(out):
		return fmt.Errorf("round %d of the beacon comes out at %s, and before that there is no draw: opensAt is not before it", e.Round, out.UTC().Format(time.RFC3339))
	}
	return nil
}

// How long the value of a beacon comes out after the list closes. Only a root that
// was saved between the two proves that the house did not add tickets when it knew
// the order: that takes people some time, and the workers seconds.
const (
	leastWait = time.Minute
	usualWait = 10 * time.Minute
)

// What an operator may say.
const (
	mostRate = 1_000_000 // a minute
	shortest = 10 * time.Second
	longest  = 4 * time.Hour

	leastProof = 1_000 // of less nobody would notice anything
	mostProof  = 10_000_000
)

// Outcomes a caller can act on.
var (
	ErrOver      = errors.New("waitingroom: nobody is let in any more")
	ErrNoPlace   = errors.New("waitingroom: no place in this line")
	ErrNoRoom    = errors.New("waitingroom: the event has no waiting room")
	ErrOtherRoom = errors.New("waitingroom: the event has another room now")
	ErrNotYet    = errors.New("waitingroom: nobody can join yet")
	ErrClosing   = errors.New("waitingroom: the list of the draw is being frozen")
	ErrState     = errors.New("waitingroom: the room is not in a state for this")
	ErrAnnounced = errors.New("waitingroom: what was announced stands once anybody could join")
	ErrPast      = errors.New("waitingroom: a draw is announced before anybody can join")

	ErrCodeRequired  = errors.New("waitingroom: this room asks for a code")
	ErrBadCode       = errors.New("waitingroom: not a code for this event")
	ErrCodeUsed      = errors.New("waitingroom: another account has used this code")
	ErrNoProof       = errors.New("waitingroom: this room asks for no proof of work")
	ErrProofRequired = errors.New("waitingroom: this room asks for a proof of work")
	ErrBadProof      = errors.New("waitingroom: not a proof for this event and account, or too little work")
	ErrProofExpired  = errors.New("waitingroom: the time of this proof is over")
	ErrProofEarly    = errors.New("waitingroom: the wait in place of a proof is not over")
	ErrProofUsed     = errors.New("waitingroom: this proof was used")

	errCold   = errors.New("waitingroom: room is cold")      // its keys are not in Redis
	errBehind = errors.New("waitingroom: room is behind us") // Redis has not been told what we know
)
