// Package live keeps every watcher's map at the truth. Its words are those of
// package seatmap; its machines are here.
//
// What it promises:
//
//   - Within a tick of the last change when nothing was lost, and within two
//     seconds when something was, each hot event's projection on this node is
//     what Redis says, and the hub has been told.
//   - A projection never goes back: a number below its own means that Redis
//     lost writes (a fork), and ends in a rebuild above every number anybody
//     has, told to watchers as a reset.
//
// Who has the truth: the event's keys in Redis, numbered by its clock. NATS is
// lossy on purpose and only makes things fast. A Feed's projection of an event
// belongs to one goroutine:
//
//	             prev is mine                      tick
//	heard ──────────────────────────▶ applied ──────────▶ one delta to the hub
//	  │ n not above mine: dropped        ▲
//	  │ prev above mine                  │ the one before arrives
//	  ├──────────────▶ early ── 50 ms ───┴──▶ repair from the log
//	  │                                          │ trimmed: snapshot, the difference is the delta
//	  │ prev below mine                          │ fork, or cold
//	  └──────────────────────────────────────────┴──▶ rebuild ──▶ snapshot ──▶ reset
//
// Silence is judged twice a second by reading the event's number, and every
// half minute the projection is compared with a snapshot of the same number.
//
// A process that sells asks its Feed what was heard of seats, and of who holds
// them (Feed.Known): every change that is heard counts at once, without waiting
// for a tick, and those of the process itself before they are heard.
//
// A guarded map is shown only to who has a session, or a ticket: signed, good
// for one event, once and soon (ticket.go). Where its event lets people in one by
// one it may be for those inside alone (Passes): what a pass opens ends with it. Nothing of either is in a stream.
//
// The package holds no streams: it publishes to a Broadcaster and answers its
// questions (Feed.Snapshot, Feed.Hello). It reads no Postgres: what it needs of
// events it asks of seatmap.Sales, what it needs of holds of a Rebuilder.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"seatcast/seatmap"
)

// Rebuilder repairs an event's keys in Redis; holds has it.
type Rebuilder interface {
	// Rebuild makes the keys anew from the truth, keeping live holds, and
	// numbers that above position. It does nothing when the last reset is
	// above position already.
	Rebuild(ctx context.Context, event string, position int64) error
	// Lapse announces the holds that have ended.
	Lapse(ctx context.Context, event string) error
}

// Broadcaster tells the watchers of a topic; the hub is one.
type Broadcaster interface {
	// Publish gives a delta that takes who has a number in [prev, last of
	// numbers) to that last one; at is when the oldest thing in it happened.
	// The channel is closed once it was offered to everybody who watches.
	Publish(topic string, prev int64, numbers []int64, at time.Time, delta []byte) (walked <-chan struct{})
	// Reset tells all to start over from a snapshot.
	Reset(topic string, n int64, snapshot []byte)
	// Degrade says why frames may be late and where to poll; an empty reason
	// ends it.
	Degrade(topic, reason, poll string)
	// End says that the topic is no longer pushed.
	End(topic string)
}

// Outcomes of reading an event in Redis.
var (
	ErrCold    = errors.New("live: event is cold: it must be rebuilt")
	ErrTrimmed = errors.New("live: the log does not reach back to this number")
	ErrFork    = errors.New("live: this number is not of the history there is")
	ErrStore   = errors.New("live: store not answering")
)

// State is the map of an event at one number.
type State struct {
	N     int64
	Map   seatmap.Map
	Areas map[string]int // places left; never nil
}

func (s *State) clone() State {
	return State{N: s.N, Map: append(seatmap.Map(nil), s.Map...), Areas: maps.Clone(s.Areas)}
}

// same reports whether two states show the same.
func (s *State) same(o *State) bool {
	return string(s.Map) == string(o.Map) && maps.Equal(s.Areas, o.Areas)
}

// fit makes the map as long as the chart's: an event whose last seats were never
// touched has them too, and one that has another chart already, which this node
// has not, shows what belongs to the one it has.
func (s *State) fit(seats int) {
	want := len(seatmap.NewMap(seats))
	s.Map = append(s.Map[:min(len(s.Map), want)], make(seatmap.Map, max(0, want-len(s.Map)))...)
}

// eventOf is the event whose map a topic is.
func eventOf(topic string) (string, bool) {
	return strings.CutPrefix(topic, seatmap.Topic(""))
}

// encode marshals what always marshals.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("live: encode %T: %v", v, err))
	}
	return b
}
