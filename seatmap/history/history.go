// Package history is the seat log: for every seat, what has happened to it and
// when, kept for good. It answers why a seat was taken at 10:02:13.
//
// What it promises:
//
//   - Every change of the map that the event's log in Redis tells within the two
//     minutes it is kept is an entry of every seat it names, once, whatever
//     number of recorders there are and whichever of them is killed.
//   - Where something may have happened that is not recorded, a gap says so:
//     from which number and time to which, and why. What was found afterwards to
//     be otherwise than the entries say is entered as seen.
//   - Nothing that is entered is ever changed; the database refuses it.
//
// The clock is that of Redis, and numbers are the order: where the two disagree,
// after a failover to a server whose clock is behind, the numbers are right.
//
// A Recorder follows a log by its chain of numbers: an entry whose Prev is the
// position continues it, anything else ends it.
//
//	            prev is the position
//	changes ───────────────────────────▶ entries, position moves, one transaction
//	   │
//	   ├── prev above it: trimmed ──────┐
//	   ├── prev below it, or another ───┤
//	   │   change of its number: fork   │
//	   ├── prev 0: emptied ─────────────┼──▶ gap up to the map of now, what differs seen,
//	   ├── says reset ──────────────────┘    the changes that lead up to it entered
//	   └── the number itself is below the position: the event is rebuilt above it first
//
// Places without a number are not in it: a place has no identity whose history
// could be told, and how many were sold to whom is in the tickets. That a hold
// was extended is in it when a change told of it, which one that only moves the
// end of a hold by its holder's wish does not.
//
// The package reads holds in Redis but knows no scripts of theirs, and joins what
// Postgres knows of bookings and tickets without changing any of it.
package history

import (
	"errors"
	"slices"
	"time"

	"seatcast/seatmap"
)

// What became of a seat.
type What string

// What can become of one. The first four are also what a seat was seen to be.
const (
	Held      What = "held"
	Released  What = "released" // why was not told
	Sold      What = "sold"
	Closed    What = "closed"
	GivenBack What = What(seatmap.GivenBack)
	Swapped   What = What(seatmap.Swapped)
	Lapsed    What = What(seatmap.Lapsed)
	Restored  What = What(seatmap.Restored)
)

// Status is what the map shows of a seat that this became of.
func (w What) Status() seatmap.Status {
	switch w {
	case Held:
		return seatmap.Held
	case Sold:
		return seatmap.Sold
	case Closed:
		return seatmap.Unavailable
	default:
		return seatmap.Available
	}
}

// seenAs is what is entered of a seat that is found so.
func seenAs(s seatmap.Status) What {
	return [4]What{seatmap.Available: Released, seatmap.Held: Held, seatmap.Sold: Sold, seatmap.Unavailable: Closed}[s]
}

// Entry is one thing that became of one seat.
type Entry struct {
	Seat   int
	N      int64 // number of the change
	At     time.Time
	What   What
	Seen   bool      // found so at N; when it became so is not known
	Until  time.Time // when the hold ends by itself, if it is told
	Holder string    // token of who holds it or gave it back, its tag when no more is known, or empty
}

// Position is how far an event is recorded.
type Position struct {
	N  int64 // 0: nothing yet
	At time.Time
}

// is says that c, of the same number, is the change that was recorded. While numbers
// are ahead of the clock, after a rebuild, two histories may give the same one.
func (p Position) is(c *seatmap.Change) bool {
	return c.Prev < 0 || c.At == p.At.UnixMilli() // what cannot be read is told nothing of
}

// Gap is a part of an event's history that is not known: after From and up to
// To.
type Gap struct {
	From, To Position
	Reason   Reason
}

// Reason is why there is a gap.
type Reason string

// Reasons of a gap.
const (
	Began      Reason = "began"      // nobody recorded before
	Trimmed    Reason = "trimmed"    // Redis had forgotten what was not recorded yet
	Fork       Reason = "fork"       // Redis lost changes that were recorded, and perhaps others: a failover
	Emptied    Reason = "emptied"    // Redis lost everything
	Reset      Reason = "reset"      // the event was made anew from Postgres
	Unreadable Reason = "unreadable" // somebody wrote to the log by hand
)

// Outcomes of reading an event in Redis.
var (
	errCold = errors.New("history: event is cold")
	errFork = errors.New("history: the event is at a number below what is recorded")
)

// errNoSeat is the answer about a seat the event never had.
var errNoSeat = errors.New("history: no such seat")

// continues says whether c follows number n, or why it does not.
func continues(n int64, c *seatmap.Change) (Reason, bool) {
	switch {
	case n == 0:
		return Began, false
	case c.Prev < 0:
		return Unreadable, false
	case c.Prev == n && c.Reset:
		return Reset, false
	case c.Prev == n:
		return "", true
	case c.Prev == 0:
		return Emptied, false
	case c.Prev < n:
		return Fork, false
	default:
		return Trimmed, false
	}
}

// chain returns those of changes that follow number n one after the other, and
// why the next does not.
func chain(n int64, changes []seatmap.Change) ([]seatmap.Change, Reason) {
	for k := range changes {
		if why, ok := continues(n, &changes[k]); !ok {
			return changes[:k], why
		}
		n = changes[k].N
	}
	return changes, ""
}

// leadUp returns the last of changes that lead up to number n without a break.
func leadUp(n int64, changes []seatmap.Change) []seatmap.Change {
	k := len(changes)
	for ; k > 0; k-- {
		if c := &changes[k-1]; c.N != n || c.Reset || c.Prev < 0 {
			break
		}
		n = changes[k-1].Prev
	}
	return changes[k:]
}

// entriesOf returns what a change says, an entry a seat; holder is whose hold it
// is about.
func entriesOf(c *seatmap.Change, holder string) []Entry {
	released, theirs := Released, ""
	switch c.Why {
	case seatmap.GivenBack, seatmap.Swapped:
		released, theirs = What(c.Why), holder
	case seatmap.Lapsed, seatmap.Restored:
		released = What(c.Why)
	}
	at := time.UnixMilli(c.At)
	var all []Entry
	c.Each(func(seat int, to seatmap.Status) {
		e := Entry{Seat: seat, N: c.N, At: at, What: seenAs(to)}
		switch to {
		case seatmap.Held:
			e.Holder = holder
			if c.Until > 0 {
				e.Until = time.UnixMilli(c.Until)
			}
		case seatmap.Available:
			e.What, e.Holder = released, theirs
		}
		all = append(all, e)
	})
	return lastOfEach(all)
}

// lastOfEach drops what a change says of a seat before it says something else: only the
// last of it became of the seat.
func lastOfEach(all []Entry) []Entry {
	slices.SortStableFunc(all, func(a, b Entry) int { return a.Seat - b.Seat })
	out := all[:0]
	for k, e := range all {
		if k+1 == len(all) || all[k+1].Seat != e.Seat {
			out = append(out, e)
		}
	}
	return out
}

// known is what the entries of a seat say it is.
type known struct {
	what   What
	holder string
}

// differing returns what is seen in a map, and by whom its seats are held, that is
// otherwise than the entries say. Seats that a change led up to the map with
// are as they say.
func differing(was map[int]known, led []Entry, now *state, at time.Time) []Entry {
	told := make(map[int]bool, len(led))
	for _, e := range led {
		told[e.Seat] = true
	}
	var seen []Entry
	for i := range 4 * len(now.Map) {
		is, before := now.Map.At(i), was[i]
		holder := now.Holders[i]
		if told[i] || is == before.what.Status() && !another(before.holder, holder) {
			continue
		}
		seen = append(seen, Entry{Seat: i, N: now.N, At: at, What: seenAs(is), Seen: true, Holder: holder})
	}
	return seen
}

// another says that two holders, both of whom are known, are not the same.
func another(a, b string) bool {
	return a != "" && b != "" && seatmap.TagOf(a) != seatmap.TagOf(b)
}
