package waitingroom

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seatcast/seatmap"
	"seatcast/waitingroom/draw"
)

var (
	//go:embed room.lua
	roomLua string
	//go:embed join.lua
	joinLua string
	//go:embed claim.lua
	claimLua string
	//go:embed call.lua
	callLua string
	//go:embed leave.lua
	leaveLua string
	//go:embed look.lua
	lookLua string
	//go:embed find.lua
	findLua string
	//go:embed tell.lua
	tellLua string
	//go:embed left.lua
	leftLua string
	//go:embed open.lua
	openLua string
	//go:embed close.lua
	closeLua string
	//go:embed place.lua
	placeLua string
	//go:embed suspect.lua
	suspectLua string
	//go:embed trust.lua
	trustLua string
	//go:embed pace.lua
	paceLua string
	//go:embed steer.lua
	steerLua string
	//go:embed clear.lua
	clearLua string
)

var (
	joinScript  = named("join", joinLua)
	claimScript = named("claim", claimLua)
	callScript  = named("call", callLua)
	leaveScript = named("leave", leaveLua)
	lookScript  = named("look", lookLua)
	findScript  = named("find", findLua)
	tellScript  = named("tell", tellLua)
	leftScript  = named("left", leftLua)
	openScript  = named("open", openLua)
	closeScript = named("close", closeLua)
	placeScript = named("place", placeLua)

	suspectScript = named("suspect", suspectLua)
	trustScript   = named("trust", trustLua)
	paceScript    = named("pace", paceLua)
	steerScript   = named("steer", steerLua)
	clearScript   = named("clear", clearLua)
)

// script is one with a name.
type script struct {
	*redis.Script
	name string
}

func named(name, text string) script { return script{redis.NewScript(roomLua + text), name} }

// keys of a room. All carry the hash tag {event}, as those of its seats do.
func roomKey(event string) string { return "room:{" + event + "}" }   // hash: terms, bucket, how far it has called
func lineKey(event string) string { return "q:{" + event + "}" }      // zset: who waits → number
func admKey(event string) string  { return seatmap.InsideKey(event) } // zset: who is or was inside, or has left → until
func tryKey(event string) string  { return "try:{" + event + "}" }    // zset: who is called and here → number
func seenKey(event string) string { return "seen:{" + event + "}" }   // zset: the same → when they asked last
func preKey(event string) string  { return "pre:{" + event + "}" }    // hash: tickets of a draw → nonce
func didKey(event string) string  { return "did:{" + event + "}" }    // hash: what the sale did, node → when, and what it says
func newKey(event string) string  { return "new:{" + event + "}" }    // list: what became of that hash and is not in Postgres yet
func tarKey(event string) string  { return "tar:{" + event + "}" }    // zset: who is suspected → number; 0: has no place
func codeKey(event string) string { return "code:{" + event + "}" }   // hash: codes that were used → by whose ticket
func usedKey(event string) string { return "used:{" + event + "}" }   // list: those of it that are not in Postgres yet

// proofKey says that a proof was used, until that is over.
func proofKey(event, proof string) string { return "proof:{" + event + "}:" + proof }

// lingers is how long a room is in Redis that nobody tends any more.
const lingers = 14 * 24 * time.Hour

// Linger gives a room that is tended time.
func (l *Line) Linger(ctx context.Context, event string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range []func(string) string{roomKey, lineKey, admKey, tryKey, seenKey, preKey, newKey, tarKey, codeKey, usedKey, seatmap.RevokedKey} {
			p.Expire(ctx, key(event), lingers)
		}
		return nil
	})
	return away(err)
}

// Line is who waits, in Redis. Its methods may be called concurrently, from any
// number of processes. While Redis does not answer the error is
// seatmap.ErrUnavailable.
type Line struct {
	rdb     redis.UniversalClient
	scripts *prometheus.HistogramVec
	room    int64 // the one that is meant, of those an event had; 0: whichever is there
}

// NewLine returns the lines of all rooms in a Redis.
func NewLine(rdb redis.UniversalClient) *Line {
	return &Line{rdb: rdb, scripts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "waitingroom_script_seconds", Help: "How long a script took from sending it to its answer.",
		Buckets: prometheus.ExponentialBuckets(50e-6, 2, 14), // 50 µs to 0.4 s
	}, []string{"script"})}
}

// of is the line of one room: another room of the event is as good as none.
func (l *Line) of(room *Room) *Line { return &Line{l.rdb, l.scripts, room.id()} }

// patience is how long Redis may take to answer.
const patience = 1500 * time.Millisecond

// run runs a script that reads the room, and returns what it did.
func (l *Line) run(ctx context.Context, script script, keys []string, args ...any) ([]any, error) {
	return l.runs(ctx, script, keys, append(args, l.room)...)
}

// runs runs a script, and returns what it did.
func (l *Line) runs(ctx context.Context, script script, keys []string, args ...any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	values, err := script.Run(ctx, l.rdb, keys, args...).Slice()
	l.scripts.WithLabelValues(script.name).Observe(time.Since(begun).Seconds())
	if err != nil {
		return nil, away(err)
	}
	switch values[0] {
	case "cold":
		return nil, errCold
	case "behind":
		return nil, errBehind
	}
	return values, nil
}

// away says that Redis does not answer, unless there is no error.
func away(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("waiting room: %w: %w", seatmap.ErrUnavailable, err)
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func moment(v any) time.Time { return time.UnixMilli(number(v)).UTC() }

// Entry is what somebody brings who has no place yet. It was checked, but not whether
// it was used before. The zero value is for rooms that ask for nothing.
type Entry struct {
	Without error         // the answer to who needs one and brings none; nil: nothing is asked for
	Code    int           // its serial number; 0: none
	Proof   string        // its name; empty: none
	Life    time.Duration // how long the proof would be accepted again
}

// Known is what whoever asks knows beside Redis.
type Known struct {
	Number  int64 // what a signed place of theirs says; 0: there is none
	Version int64 // of the room: one that has not been told of it answers nobody
	Entry   Entry // of who joins
}

// Join gives somebody a place, or says which one they have. ErrOver, and of who has no
// place what the entry says, ErrCodeUsed and ErrProofUsed.
func (l *Line) Join(ctx context.Context, event string, t draw.Ticket, known Known) (Joined, error) {
	e, asks := known.Entry, 0
	if e.Without != nil {
		asks = 1
	}
	got, err := l.run(ctx, joinScript, []string{roomKey(event), lineKey(event), tarKey(event), admKey(event), preKey(event), newKey(event),
		codeKey(event), usedKey(event), proofKey(event, e.Proof)}, t.ID.String(), t.Nonce.String(), known.Number, asks, e.Code, e.Life.Milliseconds(), known.Version)
	switch {
	case err != nil:
		return Joined{}, err
	case got[0] == "draw":
		nonce, _ := got[1].(string)
		return Joined{Drawn: true, Nonce: nonce, New: number(got[2]) == 1}, nil
	case got[0] == "inside":
		return Joined{Until: moment(got[1])}, nil
	case got[0] == "place":
		return Joined{Number: number(got[1]), New: number(got[2]) == 1}, nil
	case got[0] == "asked":
		return Joined{}, e.Without
	case got[0] == "used":
		return Joined{}, ErrCodeUsed
	case got[0] == "spent":
		return Joined{}, ErrProofUsed
	}
	return Joined{}, ErrOver
}

// Claim lets somebody in if it is their turn. ErrOver and ErrNoPlace.
func (l *Line) Claim(ctx context.Context, event string, id draw.ID, known Known) (Turn, error) {
	got, err := l.run(ctx, claimScript, []string{roomKey(event), lineKey(event), tarKey(event), admKey(event), tryKey(event), seenKey(event)},
		id.String(), known.Number, known.Version)
	switch {
	case err != nil:
		return Turn{}, err
	case got[0] == "inside":
		return Turn{Inside: moment(got[1]), New: number(got[2]) == 1}, nil
	case got[0] == "soon":
		return Turn{Called: true, Ahead: number(got[1])}, nil
	case got[0] == "wait":
		state, _ := got[2].(string)
		return Turn{Number: number(got[1]), State: State(state)}, nil
	case got[0] == "none":
		return Turn{}, ErrNoPlace
	}
	return Turn{}, ErrOver
}

// Call calls the next numbers and returns how far the line is called.
func (l *Line) Call(ctx context.Context, event string) (serving int64, err error) {
	got, err := l.run(ctx, callScript, []string{roomKey(event), lineKey(event), tryKey(event), seenKey(event)})
	if err != nil {
		return 0, err
	}
	return number(got[0]), nil
}

// Leave ends the place of somebody, or their time inside, whose slot is free at
// once and whose pass is over. Who has neither has left. It returns when that time
// would have ended, of who was inside.
func (l *Line) Leave(ctx context.Context, event string, id draw.ID) (until time.Time, err error) {
	return l.leave(ctx, event, id, 0)
}

// Finish is Leave of who is inside: a place in the line stays.
func (l *Line) Finish(ctx context.Context, event string, id draw.ID) (until time.Time, err error) {
	return l.leave(ctx, event, id, 1)
}

func (l *Line) leave(ctx context.Context, event string, id draw.ID, insideOnly int) (until time.Time, err error) {
	got, err := l.run(ctx, leaveScript, []string{roomKey(event), lineKey(event), tarKey(event), admKey(event), tryKey(event), seenKey(event), preKey(event), newKey(event),
		seatmap.RevokedKey(event)}, id.String(), insideOnly)
	if err != nil || number(got[1]) == 0 {
		return time.Time{}, err
	}
	return moment(got[1]), nil
}

// drop takes a place back that somebody was given a moment ago.
func (l *Line) drop(ctx context.Context, event string, id draw.ID) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, lineKey(event), id.String())
		p.ZAddXX(ctx, tarKey(event), redis.Z{Member: id.String()}) // who is suspected stays so
		return nil
	})
	return away(err)
}

// Revoke makes a pass good for nothing, whoever has it.
func (l *Line) Revoke(ctx context.Context, event, pass string, until time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return away(l.rdb.ZAdd(ctx, seatmap.RevokedKey(event), redis.Z{Score: float64(until.UnixMilli()), Member: pass}).Err())
}

// Find says what somebody has, and changes nothing. ErrNoPlace.
func (l *Line) Find(ctx context.Context, event string, id draw.ID) (Joined, error) {
	got, err := l.run(ctx, findScript, []string{roomKey(event), lineKey(event), tarKey(event), admKey(event), preKey(event)}, id.String())
	switch {
	case err != nil:
		return Joined{}, err
	case got[0] == "draw":
		nonce, _ := got[1].(string)
		return Joined{Drawn: true, Nonce: nonce}, nil
	case got[0] == "inside":
		return Joined{Until: moment(got[1])}, nil
	case got[0] == "place":
		return Joined{Number: number(got[1])}, nil
	}
	return Joined{}, ErrNoPlace
}

// Look reads what everybody is told.
func (l *Line) Look(ctx context.Context, event string) (Frame, error) {
	got, err := l.run(ctx, lookScript, []string{roomKey(event), lineKey(event), admKey(event), preKey(event)})
	if err != nil {
		return Frame{}, err
	}
	state, _ := got[0].(string)
	return Frame{At: moment(got[1]), State: State(state), Serving: number(got[2]), Last: number(got[3]),
		Rate: int(number(got[4])), Waiting: number(got[5]), Inside: number(got[6]), Free: number(got[7]), version: number(got[8]), Since: moment(got[9]),
		Pace: int(number(got[10])), Slowed: text(got[11]), unnamed: number(got[12]) == 1}, nil
}

// Order is what Postgres says of a room. The higher version is the newer one.
type Order struct {
	Version int64
	State   State
	Terms   Terms
	Serving int64 // at least so far it has called
	Last    int64 // at least so far numbers are given
	Drawn   bool  // whoever was drawn has a place
}

func flag(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Tell makes a room what Postgres says of it, unless it was told what is newer.
func (l *Line) Tell(ctx context.Context, event string, o Order) error {
	_, err := l.run(ctx, tellScript, []string{roomKey(event)}, o.Version, o.Serving, o.Last, string(o.State), o.Terms.Rate, o.Terms.Burst, o.Terms.Cap,
		o.Terms.Session.Milliseconds(), flag(o.Drawn))
	return err
}

// clear removes all there is of a room, unless another room of the event is there by
// now, and says whether there was anything.
func (l *Line) clear(ctx context.Context, event string) (some bool, err error) {
	got, err := l.run(ctx, clearScript, []string{roomKey(event), lineKey(event), admKey(event), tryKey(event), seenKey(event), preKey(event), newKey(event),
		tarKey(event), codeKey(event), usedKey(event), didKey(event), seatmap.RevokedKey(event)})
	return err == nil && got[0] == "removed" && number(got[1]) > 0, err
}

// supersede removes an earlier room of the event that is still there. Whoever calls it
// has the lock of the room, which is the one that Postgres has.
func (l *Line) supersede(ctx context.Context, event string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	is, err := l.rdb.HGet(ctx, roomKey(event), "room").Int64()
	if errors.Is(err, redis.Nil) || err == nil && is == l.room {
		return nil
	}
	if err != nil {
		return away(err)
	}
	_, err = (&Line{l.rdb, l.scripts, is}).clear(ctx, event)
	return err
}

// Left tells a room how many seats are free, and how many others are held and may
// become free again.
func (l *Line) Left(ctx context.Context, event string, free, held int64) error {
	_, err := l.run(ctx, leftScript, []string{roomKey(event)}, free, held)
	return err
}

// Opening is a room that begins, or begins anew, in Redis.
type Opening struct {
	Order
	Free int64 // seats
	New  bool  // nobody was ever let in: the bucket begins full

	Strays int // have left, and were not on the list of the draw
}

// Make makes a room that is cold, and leaves one alone that is not.
func (l *Line) Make(ctx context.Context, event string, o Opening) error {
	factor, why := 1.0, ""
	if (o.Serving > 0 && o.Terms.Slow != Slow{}) { // some may be inside, and what is slow at the moment nobody knows
		factor, why = beginAgain, byBeginning
	}
	_, err := l.run(ctx, openScript, []string{roomKey(event)}, o.Version, string(o.State), o.Terms.Rate, o.Terms.Burst, o.Terms.Cap,
		o.Terms.Session.Milliseconds(), o.Free, o.Serving, o.Last, flag(o.New), flag(o.Drawn), factor, why, o.Strays)
	return err
}

// batchSize is how many places one command writes or reads: Redis does nothing
// else meanwhile.
const batchSize = 1000

// Place gives all tickets that were drawn their ranks as numbers, and then says so in
// the room: a Redis that knows it has all of them. It may be repeated, also of a room
// that is cold.
func (l *Line) Place(ctx context.Context, event string, ranked []draw.Ranked) error {
	for part := range slices.Chunk(ranked, batchSize) {
		batch := make([]any, 0, 2*len(part))
		for _, t := range part {
			batch = append(batch, t.Rank, t.ID.String())
		}
		if _, err := l.runs(ctx, placeScript, []string{lineKey(event), tarKey(event)}, batch...); err != nil {
			return err
		}
	}
	return away(l.rdb.HSet(ctx, roomKey(event), "placed", 1).Err())
}

// List puts tickets on the list of a draw that is not closed, as far as they are
// not on it. It may be repeated, also of a room that is cold.
func (l *Line) List(ctx context.Context, event string, tickets []draw.Ticket) error {
	for part := range slices.Chunk(tickets, batchSize) {
		_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, t := range part {
				p.HSetNX(ctx, preKey(event), t.ID.String(), t.Nonce.String())
			}
			return nil
		})
		if err != nil {
			return away(err)
		}
	}
	return nil
}

// admitted puts back who is or was inside of a room that is cold.
func (l *Line) admitted(ctx context.Context, event string, all []admission) error {
	for part := range slices.Chunk(all, batchSize) {
		var inside, over []redis.Z
		for _, a := range part {
			till := a.until
			if !a.ended.IsZero() {
				till, over = a.ended, append(over, redis.Z{Score: float64(a.until.UnixMilli()), Member: a.jti})
			}
			inside = append(inside, redis.Z{Score: float64(till.UnixMilli()), Member: a.ticket.String()})
		}
		_, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.ZAddGT(ctx, admKey(event), inside...) // of several times inside the last
			if len(over) > 0 {
				p.ZAdd(ctx, seatmap.RevokedKey(event), over...)
			}
			return nil
		})
		if err != nil {
			return away(err)
		}
	}
	return nil
}

// gone puts back who has left a room that is cold.
func (l *Line) gone(ctx context.Context, event string, all []gone) error {
	for part := range slices.Chunk(all, batchSize) {
		batch := make([]redis.Z, len(part))
		for n, g := range part {
			batch[n] = redis.Z{Score: float64(g.at.UnixMilli()), Member: g.ticket.String()}
		}
		if err := l.rdb.ZAddGT(ctx, admKey(event), batch...).Err(); err != nil {
			return away(err)
		}
	}
	return nil
}

// entered returns the oldest of what became of the list of a draw and has not been
// written down.
func (l *Line) entered(ctx context.Context, event string) (all []entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	texts, err := l.rdb.LRange(ctx, newKey(event), 0, batchSize-1).Result()
	if err != nil {
		return nil, away(err)
	}
	const size = 22 // of an ID, as text
	for _, text := range texts {
		e := entry{gone: text[0] == '-'}
		if err := e.ticket.ID.UnmarshalText([]byte(text[1 : 1+size])); err != nil {
			return nil, err
		}
		if !e.gone {
			if err := e.ticket.Nonce.UnmarshalText([]byte(text[1+size:])); err != nil {
				return nil, err
			}
		}
		all = append(all, e)
	}
	return all, nil
}

// written drops the oldest of what was entered.
func (l *Line) written(ctx context.Context, event string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return away(l.rdb.LTrim(ctx, newKey(event), int64(n), -1).Err())
}

// Close ends the time of a draw: whoever comes from now on is behind all who are
// on its list.
func (l *Line) Close(ctx context.Context, event string) error {
	_, err := l.run(ctx, closeScript, []string{roomKey(event), preKey(event)})
	return err
}

// Drawn drops the list of a draw that is over.
func (l *Line) Drawn(ctx context.Context, event string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return away(l.rdb.Del(ctx, preKey(event), newKey(event)).Err())
}

// Listed returns the tickets of a draw.
func (l *Line) Listed(ctx context.Context, event string) ([]draw.Ticket, error) {
	var all []draw.Ticket
	seen := map[draw.ID]bool{} // a scan may tell twice
	it := l.rdb.HScan(ctx, preKey(event), 0, "", batchSize).Iterator()
	for it.Next(ctx) {
		var t draw.Ticket
		if err := t.ID.UnmarshalText([]byte(it.Val())); err != nil {
			return nil, err
		}
		if !it.Next(ctx) {
			break
		}
		if err := t.Nonce.UnmarshalText([]byte(it.Val())); err != nil {
			return nil, err
		}
		if !seen[t.ID] {
			seen[t.ID] = true
			all = append(all, t)
		}
	}
	return all, away(it.Err())
}
