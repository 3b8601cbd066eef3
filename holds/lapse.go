package holds

import (
	"context"
	_ "embed"
	"log/slog"
	"strings"
	"sync"
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

// Run works until ctx ends, and what it began has. What fails is logged when it
// begins to fail and when it works again, and tried again all the time.
func (l Lapser) Run(ctx context.Context) error {
	tick := time.NewTicker(lapseEvery)
	defer tick.Stop()
	all := lapses{Lapser: l}
	defer all.work.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			all.round(ctx)
		}
	}
}

// lapses are those a Lapser has under way, at most one of each event.
type lapses struct {
	Lapser
	work    sync.WaitGroup
	busy    sync.Map // events whose last lapse has not ended
	failing sync.Map // events that fail; "" when it is not known which are hot
}

// round lets every hot event lapse once, but those still at it. None waits for
// another: in a cluster one may be silent while the others are not.
func (l *lapses) round(ctx context.Context) {
	events, err := l.Sales.Hot(ctx)
	l.note(ctx, "", err)
	for _, event := range events {
		if _, busy := l.busy.LoadOrStore(event, true); busy {
			continue
		}
		l.work.Go(func() {
			defer l.busy.Delete(event)
			l.note(ctx, event, l.Store.Lapse(ctx, event))
		})
	}
}

func (l *lapses) note(ctx context.Context, event string, err error) {
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if _, known := l.failing.LoadOrStore(event, true); !known {
			l.Log.ErrorContext(ctx, "lapse fails", "event", event, "err", err)
		}
		return
	}
	if _, failed := l.failing.LoadAndDelete(event); failed {
		l.Log.InfoContext(ctx, "lapse works again", "event", event)
	}
}
