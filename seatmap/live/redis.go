package live

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"seatcast/seatmap"
)

//go:embed snapshot.lua
var snapshotSource string

var snapshotScript = redis.NewScript(snapshotSource)

// Maps reads the maps of events in Redis.
type Maps struct {
	rdb       redis.UniversalClient
	rebuilder Rebuilder
}

// NewMaps returns a reader of rdb that has cold events rebuilt.
func NewMaps(rdb redis.UniversalClient, rebuilder Rebuilder) *Maps {
	return &Maps{rdb: rdb, rebuilder: rebuilder}
}

// Snapshot returns the state of an event now; a cold one is rebuilt first.
func (m *Maps) Snapshot(ctx context.Context, event string) (State, error) {
	s, err := m.Read(ctx, event)
	if !errors.Is(err, ErrCold) {
		return s, err
	}
	if err := m.rebuilder.Rebuild(ctx, event, 0); err != nil {
		return State{}, fmt.Errorf("rebuild %s: %w: %w", event, ErrStore, err)
	}
	return m.Read(ctx, event)
}

// Read returns the state of an event now, or ErrCold.
func (m *Maps) Read(ctx context.Context, event string) (State, error) {
	keys := []string{seatmap.SeqKey(event), seatmap.MapKey(event), seatmap.AreasKey(event)}
	v, err := snapshotScript.Run(ctx, m.rdb, keys).Slice()
	if err != nil {
		return State{}, fmt.Errorf("snapshot of %s: %w: %w", event, ErrStore, err)
	}
	if len(v) == 0 {
		return State{}, fmt.Errorf("snapshot of %s: %w", event, ErrCold)
	}
	s, err := parseState(v)
	if err != nil {
		return State{}, fmt.Errorf("snapshot of %s: %w", event, err)
	}
	return s, nil
}

func parseState(v []any) (State, error) {
	text := func(v any) string { s, _ := v.(string); return s }
	n, err := strconv.ParseInt(text(v[0]), 10, 64)
	if err != nil {
		return State{}, err
	}
	s := State{N: n, Map: seatmap.Map(text(v[1])), Areas: make(map[string]int)}
	pairs, _ := v[2].([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		left, err := strconv.Atoi(text(pairs[i+1]))
		if err != nil {
			return State{}, fmt.Errorf("area %v: %w", pairs[i], err)
		}
		s.Areas[text(pairs[i])] = left
	}
	return s, nil
}

// maxRepair bounds what is read from a log at once: beyond it a snapshot is
// the smaller message.
const maxRepair = 512

// Since returns the changes after number n, in order. It reads the log from n
// itself, because only an entry n proves that n is of this history: without one
// it is ErrTrimmed when the log begins after n, or would be too long, and
// ErrFork when the log reaches back to n or the event has not come to n yet.
func (m *Maps) Since(ctx context.Context, event string, n int64) ([]seatmap.Change, error) {
	log := seatmap.LogKey(event)
	var seq *redis.StringCmd
	var entries, oldest *redis.XMessageSliceCmd
	_, err := m.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		seq = p.Get(ctx, seatmap.SeqKey(event))
		entries = p.XRangeN(ctx, log, strconv.FormatInt(n, 10)+"-0", "+", maxRepair)
		oldest = p.XRangeN(ctx, log, "-", "+", 1)
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("log of %s since %d: %w", event, n, ErrCold)
	}
	if err != nil {
		return nil, fmt.Errorf("log of %s since %d: %w: %w", event, n, ErrStore, err)
	}
	changes, err := parseLog(entries.Val())
	if err == nil {
		last, _ := seq.Int64()
		changes, err = after(n, last, firstNumber(oldest.Val()), changes)
	}
	if err != nil {
		return nil, fmt.Errorf("log of %s since %d: %w", event, n, err)
	}
	return changes, nil
}

// after judges what a log from n on, whose oldest entry of all is oldest, says
// of n, when the event is at last.
func after(n, last, oldest int64, changes []seatmap.Change) ([]seatmap.Change, error) {
	switch {
	case last < n:
		return nil, ErrFork
	case len(changes) > 0 && changes[0].N == n:
		if len(changes) == maxRepair {
			return nil, ErrTrimmed
		}
		return changes[1:], nil
	case oldest == 0 && last == n:
		return nil, nil
	case oldest != 0 && oldest <= n:
		return nil, ErrFork
	default:
		return nil, ErrTrimmed
	}
}

func parseLog(entries []redis.XMessage) ([]seatmap.Change, error) {
	changes := make([]seatmap.Change, len(entries))
	for i, e := range entries {
		text, _ := e.Values["c"].(string)
		if err := json.Unmarshal([]byte(text), &changes[i]); err != nil {
			return nil, fmt.Errorf("entry %s: %w", e.ID, err)
		}
	}
	return changes, nil
}

// firstNumber is the number of the first of some log entries; 0 when there is
// none.
func firstNumber(entries []redis.XMessage) int64 {
	if len(entries) == 0 {
		return 0
	}
	text, _, _ := strings.Cut(entries[0].ID, "-")
	n, _ := strconv.ParseInt(text, 10, 64) // Redis wrote it
	return n
}

// Numbers returns the number each event is at, 0 for a cold one. Events whose
// part of a cluster does not answer are absent, and the error says so: what is
// returned beside it holds.
func (m *Maps) Numbers(ctx context.Context, events []string) (map[string]int64, error) {
	cmds := make([]*redis.StringCmd, len(events))
	_, _ = m.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, e := range events {
			cmds[i] = p.Get(ctx, seatmap.SeqKey(e))
		}
		return nil
	})
	numbers := make(map[string]int64, len(events))
	var failed error           // of one of them, told for all
	for i, e := range events { // each says itself how it went
		n, err := cmds[i].Int64()
		switch {
		case err == nil:
			numbers[e] = n
		case errors.Is(err, redis.Nil):
			numbers[e] = 0
		default:
			failed = fmt.Errorf("number of %s: %w: %w", e, ErrStore, err)
		}
	}
	return numbers, failed
}
