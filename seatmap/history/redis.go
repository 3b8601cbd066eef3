package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/seatmap"
)

// Bounds of what is asked of Redis at once, so that nobody who buys waits for
// somebody who reads: each takes it a few milliseconds at most.
const (
	batch    = 1000   // changes of a log
	ledUp    = 5000   // changes that lead up to a map, after a gap
	mostHeld = 20_000 // seats whose holders are asked for with a map
	chunk    = 500    // keys of one command
)

// patience is how long one call to a store may take.
const patience = 3 * time.Second

// source reads events in Redis.
type source struct{ rdb redis.UniversalClient }

// numbers returns the number each event is at; cold ones, and those of a part of
// a cluster that does not answer, are absent, and of the latter the error tells.
func (s source) numbers(ctx context.Context, events []string) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	numbers := make(map[string]int64, len(events))
	var failed error // of one of them, told for all
	for from := 0; from < len(events); from += chunk {
		part := events[from:min(from+chunk, len(events))]
		cmds := make([]*redis.StringCmd, len(part))
		_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for k, event := range part {
				cmds[k] = p.Get(ctx, seatmap.SeqKey(event))
			}
			return nil
		})
		for k, event := range part { // each says itself how it went
			n, err := cmds[k].Int64()
			if err == nil {
				numbers[event] = n
			} else if !errors.Is(err, redis.Nil) {
				failed = fmt.Errorf("number of %s: %w", event, err)
			}
		}
	}
	return numbers, failed
}

// since returns the changes that are logged from number n on, itself too if the log
// still has it, a batch of them at most, and where the event is. It returns
// errCold, or errFork when that is below n.
func (s source) since(ctx context.Context, event string, n int64) (changes []seatmap.Change, last int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var seq *redis.StringCmd
	var entries *redis.XMessageSliceCmd
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		seq = p.Get(ctx, seatmap.SeqKey(event))
		entries = p.XRangeN(ctx, seatmap.LogKey(event), strconv.FormatInt(n, 10)+"-0", "+", batch)
		return nil
	})
	if errors.Is(err, redis.Nil) {
		err = errCold
	}
	if err == nil {
		last, err = seq.Int64()
	}
	if err == nil && last < n {
		err = errFork
	}
	if err != nil {
		return nil, 0, fmt.Errorf("log of %s since %d: %w", event, n, err)
	}
	return parseLog(entries.Val()), last, nil
}

// state is an event at one number, and how it came there.
type state struct {
	Position
	Map     seatmap.Map
	Holders map[int]string   // tokens, by seat; not of every seat held
	LedUp   []seatmap.Change // the last ones, up to N
}

// now returns the state of an event, with changes above number n. It returns
// errCold, or errFork when the event is not above n.
func (s source) now(ctx context.Context, event string, n int64) (*state, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := s.held(ctx, event)
	if err != nil {
		return nil, fmt.Errorf("state of %s: %w", event, err)
	}
	var seq, shown *redis.StringCmd
	var newest *redis.XMessageSliceCmd
	var holders []*redis.SliceCmd
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { // all of one moment
		seq = p.Get(ctx, seatmap.SeqKey(event))
		shown = p.Get(ctx, seatmap.MapKey(event))
		newest = p.XRevRangeN(ctx, seatmap.LogKey(event), "+", strconv.FormatInt(n+1, 10)+"-0", ledUp)
		holders = askHolders(ctx, p, event, held)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("state of %s: %w", event, err)
	}
	st := &state{Map: seatmap.Map(shown.Val()), LedUp: parseLog(reversed(newest.Val()))}
	if st.N, err = seq.Int64(); errors.Is(err, redis.Nil) {
		err = errCold
	} else if err == nil && st.N <= n {
		err = errFork
	}
	if err != nil {
		return nil, fmt.Errorf("state of %s: %w", event, err)
	}
	st.At = time.Now() // unless the log tells it
	if k := len(st.LedUp) - 1; k >= 0 && st.LedUp[k].N == st.N && st.LedUp[k].At > 0 {
		st.At = time.UnixMilli(st.LedUp[k].At)
	}
	st.Holders = tokens(held, holders)
	return st, nil
}

// held returns the seats that are shown as held, as many as are worth asking for.
func (s source) held(ctx context.Context, event string) ([]int, error) {
	text, err := s.rdb.Get(ctx, seatmap.MapKey(event)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	m, seats := seatmap.Map(text), []int(nil)
	for i := range 4 * len(m) {
		if m.At(i) == seatmap.Held && len(seats) < mostHeld {
			seats = append(seats, i)
		}
	}
	return seats, nil
}

// holders returns the tokens that hold seats now; a seat that nobody holds is absent.
func (s source) holders(ctx context.Context, event string, seats []int) (map[int]string, error) {
	if len(seats) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var asked []*redis.SliceCmd
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		asked = askHolders(ctx, p, event, seats)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("holders of %d seats of %s: %w", len(seats), event, err)
	}
	return tokens(seats, asked), nil
}

func askHolders(ctx context.Context, p redis.Pipeliner, event string, seats []int) (asked []*redis.SliceCmd) {
	for from := 0; from < len(seats); from += chunk {
		var keys []string
		for _, i := range seats[from:min(from+chunk, len(seats))] {
			keys = append(keys, seatmap.HoldKey(event, i))
		}
		asked = append(asked, p.MGet(ctx, keys...))
	}
	return asked
}

// tokens reads the answers to askHolders. What is no token, a mark or something
// written by hand, is nobody.
func tokens(seats []int, answers []*redis.SliceCmd) map[int]string {
	holders := make(map[int]string)
	for a, answer := range answers {
		for k, v := range answer.Val() {
			text, _ := v.(string)
			if _, token, ok := seatmap.ParseBookingID("e." + text); ok && text != seatmap.SoldMark && text != seatmap.ClosedMark {
				holders[seats[a*chunk+k]] = token
			}
		}
	}
	return holders
}

func reversed(entries []redis.XMessage) []redis.XMessage {
	out := make([]redis.XMessage, 0, len(entries))
	for k := len(entries) - 1; k >= 0; k-- {
		out = append(out, entries[k])
	}
	return out
}

// unreadable is the Prev of what is no change of ours: it follows nothing.
const unreadable = -1

func parseLog(entries []redis.XMessage) []seatmap.Change {
	changes := make([]seatmap.Change, len(entries))
	for k, e := range entries {
		id, _, _ := strings.Cut(e.ID, "-")
		n, _ := strconv.ParseInt(id, 10, 64) // Redis wrote it
		text, _ := e.Values["c"].(string)
		c := &changes[k]
		if json.Unmarshal([]byte(text), c) != nil || c.N != n || !sane(c) {
			*c = seatmap.Change{N: n, Prev: unreadable}
		}
	}
	return changes
}

// sane says that nothing in a change is what no script writes and no table
// takes: one entry written by hand must not stop the log.
func sane(c *seatmap.Change) bool {
	ok := c.Prev >= 0 && c.N > c.Prev && instant(c.At) && instant(c.Until) && c.At > 0
	if c.Tag != "" {
		_, _, spelled := seatmap.ParseBookingID("e." + c.Tag)
		ok = ok && spelled
	}
	c.Each(func(seat int, _ seatmap.Status) { ok = ok && seat >= 0 && seat <= math.MaxInt32 })
	return ok
}

// instant says that ms is a time before the year 2286, up to which numbers have 16 digits.
func instant(ms int64) bool { return ms >= 0 && ms < 1e13 }
