package holds

import (
	"context"
	_ "embed"
	"log/slog"
	"strings"
	"time"

	"seatcast/seatmap"
)

//go:embed due.lua
var dueLua string

//go:embed lapse.lua
var lapseLua string

var (
	dueScript   = newScript("due", dueLua)
	lapseScript = newScript("lapse", seatsLua, lapseLua)
)

// lapseBatch is the most seats that one change lets lapse, and more only of a
// single hold: a long script keeps everybody waiting.
const lapseBatch = 1000

// Lapse makes the map tell which holds have ended. Any node may call it at any
// time; nothing but the map waits for it.
func (s *Store) Lapse(ctx context.Context, event string) (err error) {
	defer func() { s.metrics.came("lapse", err) }()
	for {
		due, err := s.do(ctx, event, s.warm, dueScript, []string{seatmap.SeqKey(event), seatmap.HeldKey(event)}, lapseBatch)
		if err != nil || len(due.rest) == 0 {
			return err
		}
		entries, seats, err := batch(texts(due.rest))
		if err != nil {
			return err
		}
		keys := []string{seatmap.SeqKey(event), seatmap.MapKey(event), seatmap.HeldKey(event), seatmap.LogKey(event)}
		done, err := s.do(ctx, event, s.warm, lapseScript, holdKeys(keys, event, seats), entries...)
		if err != nil {
			return err
		}
		s.publish(ctx, event, done.text(0))
		if dealt, _ := done.rest[1].(int64); dealt == 0 {
			return nil
		}
	}
}

// batch are the first entries of due, and their seats.
func batch(due []string) (entries []any, seats []int, err error) {
	for _, entry := range due {
		of, err := parseEach(strings.Split(entry, ","))
		if err != nil {
			return nil, nil, err
		}
		if len(seats) > 0 && len(seats)+len(of) > lapseBatch {
			break
		}
		entries, seats = append(entries, entry), append(seats, of...)
	}
	return entries, seats, nil
}

// Lapser calls Lapse for every event whose map is pushed.
type Lapser struct {
	Store *Store
	Sales seatmap.Sales
	Log   *slog.Logger
}

// lapseEvery is how often: with the feed's tick it is how late a map may be.
const lapseEvery = 250 * time.Millisecond

// Run works until ctx ends. What fails is logged when it begins to fail and
// when it works again, and tried again all the time.
func (l Lapser) Run(ctx context.Context) error {
	tick := time.NewTicker(lapseEvery)
	defer tick.Stop()
	failing := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.round(ctx, failing)
		}
	}
}

// round lets every hot event lapse once.
func (l Lapser) round(ctx context.Context, failing map[string]bool) {
	events, err := l.Sales.Hot(ctx)
	l.note(ctx, failing, "", err)
	for _, event := range events {
		l.note(ctx, failing, event, l.Store.Lapse(ctx, event))
	}
}

func (l Lapser) note(ctx context.Context, failing map[string]bool, event string, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !failing[event]:
		failing[event] = true
		l.Log.ErrorContext(ctx, "lapse fails", "event", event, "err", err)
	case err == nil && failing[event]:
		delete(failing, event)
		l.Log.InfoContext(ctx, "lapse works again", "event", event)
	}
}
