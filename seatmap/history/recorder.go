package history

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"seatcast/seatmap"
)

// Rebuilder repairs an event's keys in Redis; holds has it.
type Rebuilder interface {
	// Rebuild makes the keys anew from the truth, keeping live holds, and
	// numbers that above position. It does nothing when the last reset is
	// above position already.
	Rebuild(ctx context.Context, event string, position int64) error
}

// Options of NewRecorder. Book, Redis and Rebuilder are needed.
type Options struct {
	Book       *Book
	Redis      redis.UniversalClient
	Rebuilder  Rebuilder
	Registerer prometheus.Registerer // nil: metrics are counted for nobody
	Log        *slog.Logger          // nil: slog.Default()
	Every      time.Duration         // how often it looks; 1 s
}

// Recorder writes what happens to seats into the log. Any number of processes
// may run one over the same stores: each event is recorded by one of them at a
// time, whoever comes first.
type Recorder struct {
	book    *Book
	source  source
	repair  Rebuilder
	log     *slog.Logger
	every   time.Duration
	metrics *metrics

	mu     sync.Mutex
	events map[string]*followed
}

// followed is what this process remembers of one event.
type followed struct {
	hot    bool
	n      int64     // recorded so far
	looked time.Time // when its number was asked for last
	moved  time.Time // when it was found to have changed last
	behind time.Time // since when it has changes that are not recorded; zero: it has none
}

// How it finds what is to be recorded. The numbers of a thousand events are one
// millisecond of Redis; of those where nothing happens they are not asked for every time.
const (
	listEvery  = 10 * time.Second // which events there are
	quietAfter = time.Minute      // an event that has not changed for so long
	quietEvery = 5 * time.Second  // is looked at so often
	atOnce     = 4                // events recorded at the same time
	batches    = 20               // of one event, before others have their turn
)

// NewRecorder returns a recorder. It does no I/O; Run does.
func NewRecorder(o Options) *Recorder {
	r := &Recorder{book: o.Book, source: source{o.Redis}, repair: o.Rebuilder, log: o.Log, every: o.Every, events: make(map[string]*followed)}
	if r.log == nil {
		r.log = slog.Default()
	}
	if r.every <= 0 {
		r.every = time.Second
	}
	r.metrics = newMetrics(o.Registerer, r.lag)
	return r
}

// Run records until ctx ends. Whatever cannot be recorded now is tried again.
func (r *Recorder) Run(ctx context.Context) error {
	look := time.NewTicker(r.every)
	defer look.Stop()
	var listed time.Time
	for {
		if time.Since(listed) >= listEvery {
			if err := r.list(ctx); err == nil {
				listed = time.Now()
			} else if ctx.Err() == nil {
				r.log.WarnContext(ctx, "events to record not listed anew", "err", err)
			}
		}
		r.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// list learns which events there are, and how far others have recorded them.
func (r *Recorder) list(ctx context.Context) error {
	all, err := r.book.events(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.events
	r.events = make(map[string]*followed, len(all))
	for _, e := range all {
		f := old[e.ID]
		if f == nil {
			f = &followed{}
		}
		f.hot, f.n = e.Hot, max(f.n, e.N)
		r.events[e.ID] = f
	}
	return nil
}

// round records what has happened since the last one.
func (r *Recorder) round(ctx context.Context) {
	numbers, err := r.source.numbers(ctx, r.due(time.Now()))
	failures := r.recordAll(ctx, r.moved(numbers, time.Now()))
	if err = errors.Join(err, failures); err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "not everything recorded in the seat log; it is tried again", "err", err)
	}
}

// due returns the events to look at.
func (r *Recorder) due(now time.Time) (events []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for event, f := range r.events {
		if f.hot || !f.behind.IsZero() || now.Sub(f.moved) < quietAfter || now.Sub(f.looked) >= quietEvery {
			f.looked = now
			events = append(events, event)
		}
	}
	return events
}

// moved returns the events that are not at the number that is recorded.
func (r *Recorder) moved(numbers map[string]int64, now time.Time) (events []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for event, n := range numbers {
		f := r.events[event]
		if f == nil || n == f.n {
			continue
		}
		f.moved = now
		if f.behind.IsZero() {
			f.behind = now
		}
		events = append(events, event)
	}
	return events
}

// recordAll returns the first failure.
func (r *Recorder) recordAll(ctx context.Context, events []string) error {
	g := errgroup.Group{} // one event's failure is not the others'
	g.SetLimit(atOnce)
	for _, event := range events {
		g.Go(func() error {
			for range batches {
				n, more, err := r.step(ctx, event)
				r.note(event, n, more, err)
				if err != nil && ctx.Err() == nil {
					r.metrics.failed.Inc()
				}
				if err != nil || !more {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// note remembers how far an event is recorded.
func (r *Recorder) note(event string, n int64, more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.events[event]
	if f == nil || err != nil {
		return
	}
	f.n = max(f.n, n)
	if !more {
		f.behind = time.Time{}
	}
}

// Record enters everything that has happened to an event up to now, unless
// somebody else does.
func (r *Recorder) Record(ctx context.Context, event string) error {
	for more := true; more; {
		var err error
		if _, more, err = r.step(ctx, event); err != nil {
			return err
		}
	}
	return nil
}

// step records a batch of changes, or what lies behind a gap. It returns how far the event is
// recorded, and whether there is more. An event that is cold, or that somebody
// else records, has no more.
func (r *Recorder) step(ctx context.Context, event string) (n int64, more bool, err error) {
	var entered *page
	var rest bool
	within, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	at, err := r.book.turn(within, event, func(ctx context.Context, s *shelf) (*page, error) {
		var err error
		entered, rest, err = r.next(ctx, s)
		return entered, err
	})
	switch {
	case err == nil:
		if entered != nil {
			r.metrics.count(entered)
		}
		return at.N, rest, nil
	case errors.Is(err, errTaken), errors.Is(err, errCold):
		return at.N, false, nil
	case errors.Is(err, errFork):
		r.log.WarnContext(ctx, "Redis is at a number below what is recorded, and is rebuilt above it", "event", event, "recorded", at.N)
		return at.N, true, r.repair.Rebuild(ctx, event, at.N)
	}
	return at.N, false, err
}

// next is the page that follows what is recorded, nil when nothing does.
func (r *Recorder) next(ctx context.Context, s *shelf) (_ *page, more bool, err error) {
	if s.at.N == 0 {
		return r.beyond(ctx, s, Began)
	}
	changes, last, err := r.source.since(ctx, s.event, s.at.N)
	if err != nil {
		return nil, false, err
	}
	if len(changes) > 0 && changes[0].N == s.at.N {
		if !s.at.is(&changes[0]) {
			return r.beyond(ctx, s, Fork)
		}
		changes = changes[1:]
	}
	if len(changes) == 0 && last > s.at.N {
		return r.beyond(ctx, s, Trimmed) // its log is gone
	}
	good, why := chain(s.at.N, changes)
	if len(good) == 0 && why != "" {
		return r.beyond(ctx, s, why)
	}
	if len(good) == 0 {
		return nil, false, nil
	}
	entries, err := r.told(ctx, s.event, good)
	if err != nil {
		return nil, false, err
	}
	newest := good[len(good)-1]
	return &page{entries: entries, to: Position{newest.N, time.UnixMilli(newest.At)}}, newest.N < last, nil
}

// beyond is the page behind a gap: what is found now that is otherwise than
// recorded, and the changes that led up to it.
func (r *Recorder) beyond(ctx context.Context, s *shelf, why Reason) (_ *page, more bool, err error) {
	now, err := r.source.now(ctx, s.event, s.at.N)
	if err != nil {
		return nil, false, err
	}
	led, err := r.told(ctx, s.event, leadUp(now.N, now.LedUp))
	if err != nil {
		return nil, false, err
	}
	was, err := s.known(ctx, 4*len(now.Map))
	if err != nil {
		return nil, false, err
	}
	p := &page{entries: append(led, differing(was, led, now, now.At)...), to: now.Position}
	p.gap = &Gap{From: s.at, To: now.Position, Reason: why}
	return p, false, nil
}

// told is what changes say, with the tokens of the holders who hold still.
func (r *Recorder) told(ctx context.Context, event string, changes []seatmap.Change) ([]Entry, error) {
	var seats []int // one of each hold
	for k := range changes {
		if c := &changes[k]; c.Tag != "" && len(c.Reserved) > 0 {
			seats = append(seats, c.Reserved[0])
		}
	}
	tokens, err := r.source.holders(ctx, event, seats)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for k := range changes {
		c := &changes[k]
		holder := c.Tag
		if len(c.Reserved) > 0 {
			if token := tokens[c.Reserved[0]]; token != "" && !another(token, holder) && holder != "" {
				holder = token
			}
		}
		all = append(all, entriesOf(c, holder)...)
	}
	return all, nil
}

// lag is for how long the event that waits the longest has waited.
func (r *Recorder) lag() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var longest time.Duration
	for _, f := range r.events {
		if !f.behind.IsZero() {
			longest = max(longest, time.Since(f.behind))
		}
	}
	return longest.Seconds()
}
