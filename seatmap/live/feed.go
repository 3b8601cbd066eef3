package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/seatmap"
)

// FeedOptions say what a Feed listens to. All but the times are needed.
type FeedOptions struct {
	Maps    *Maps
	Sales   seatmap.Sales
	Ear     *Ear
	Metrics *Metrics
	Log     *slog.Logger

	Tick   time.Duration // least time between two deltas of an event; 100 ms
	Wait   time.Duration // how long an early change waits for the one before; 50 ms
	Silent time.Duration // between two looks at the numbers of hot events; 500 ms
	Drift  time.Duration // between two comparisons with a snapshot; 30 s
}

// Feed follows every hot event and keeps a projection of each.
type Feed struct {
	o FeedOptions

	mu        sync.Mutex
	followers map[string]*follower
	changed   chan struct{} // closed, and made anew, when followers changes
	reason    string        // why what is pushed may be late; empty when it is not
}

// NewFeed returns a Feed that follows nothing until Run.
func NewFeed(o FeedOptions) *Feed {
	o.Tick = cmp.Or(o.Tick, 100*time.Millisecond)
	o.Wait = cmp.Or(o.Wait, 50*time.Millisecond)
	o.Silent = cmp.Or(o.Silent, 500*time.Millisecond)
	o.Drift = cmp.Or(o.Drift, 30*time.Second)
	return &Feed{o: o, followers: make(map[string]*follower), changed: make(chan struct{})}
}

// hotEvery is how soon a new hot event is followed.
const hotEvery = 250 * time.Millisecond

// Run follows hot events and tells b, until ctx ends. Without b nobody watches
// here, and the projections are for those who ask this process. It returns when
// all it started has ended.
func (f *Feed) Run(ctx context.Context, b Broadcaster) error {
	if b == nil {
		b = nobody{}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.followHot(ctx, g, b) })
	g.Go(func() error { return f.watchSilence(ctx, b) })
	return g.Wait()
}

// followHot starts a follower for each event that became hot and stops those
// of events that are not any more.
func (f *Feed) followHot(ctx context.Context, g *errgroup.Group, b Broadcaster) error {
	every := time.NewTicker(hotEvery)
	defer every.Stop()
	failing := false
	for {
		hot, err := f.o.Sales.Hot(ctx)
		switch {
		case err == nil:
			failing = false
			f.follow(ctx, g, b, hot)
		case !failing && ctx.Err() == nil:
			failing = true
			f.o.Log.WarnContext(ctx, "hot events not known; following those there were", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

func (f *Feed) follow(ctx context.Context, g *errgroup.Group, b Broadcaster, hot []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted := make(map[string]bool, len(hot))
	for _, event := range hot {
		wanted[event] = true
		if f.followers[event] != nil {
			continue
		}
		one := newFollower(&f.o, event, b)
		f.followers[event] = one
		f.changedLocked()
		f.tellLocked(b, one, false) // that it is without holds is told with the next look
		followed, cancel := context.WithCancel(ctx)
		one.cancel = cancel
		g.Go(func() error {
			defer cancel()
			err := one.run(followed)
			if ctx.Err() == nil {
				f.end(one, b)
			}
			return err
		})
	}
	for event, one := range f.followers {
		if !wanted[event] {
			one.cancel()
		}
	}
}

// end forgets a follower that has ended: only now is nothing more published
// for its topic.
func (f *Feed) end(one *follower, b Broadcaster) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followers, one.event)
	f.changedLocked()
	b.End(one.topic)
}

func (f *Feed) changedLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// watchSilence looks at the numbers of the followed events, so that a lost
// last message, a fork or a cold event is seen though nothing is said.
func (f *Feed) watchSilence(ctx context.Context, b Broadcaster) error {
	every := time.NewTicker(f.o.Silent)
	defer every.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		err := f.look(ctx)
		switch {
		case err == nil && failures >= degradedAfter:
			f.degrade("")
			failures = 0
		case err == nil:
			failures = 0
		case ctx.Err() == nil:
			if failures++; failures == degradedAfter {
				f.o.Log.WarnContext(ctx, "numbers of hot events not known", "err", err)
				f.degrade("redis_unreachable")
			}
		}
		f.tellAll(ctx, b)
	}
}

// degradedAfter is how many looks in a row must fail before watchers are told.
const degradedAfter = 3

// look asks for all numbers at once and gives each follower its own. What each
// had before is noted first: only a number below that is a fork.
func (f *Feed) look(ctx context.Context) error {
	before, asked := make(map[*follower]sighting), time.Now()
	var events []string
	for _, one := range f.all() {
		if n, era, ok := one.position(); ok {
			before[one] = sighting{asked: asked, before: n, era: era}
			events = append(events, one.event)
		}
	}
	if len(events) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*f.o.Silent)
	defer cancel()
	numbers, failed := f.o.Maps.Numbers(ctx, events)
	for one, s := range before {
		now, known := numbers[one.event]
		if !known {
			continue
		}
		s.now = now
		var err error
		if s.sale, err = f.o.Sales.Sale(ctx, one.event); err != nil {
			s.sale = nil // its chart is compared the next time
		}
		one.tell(s)
	}
	return failed
}

func (f *Feed) all() []*follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*follower, 0, len(f.followers))
	for _, one := range f.followers {
		all = append(all, one)
	}
	return all
}

// degrade notes that only polling is sure of any event, and why, or that this is
// over.
func (f *Feed) degrade(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reason = reason
	degraded := 0.0
	if reason != "" {
		degraded = 1
	}
	f.o.Metrics.degraded.Set(degraded)
}

// tellAll tells the watchers of every event whether they can rely on what is
// pushed.
func (f *Feed) tellAll(ctx context.Context, b Broadcaster) {
	away := make(map[*follower]bool)
	for _, one := range f.all() {
		sale, err := f.o.Sales.Sale(ctx, one.event)
		away[one] = err == nil && sale.NoHolds
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.followers {
		f.tellLocked(b, one, away[one])
	}
}

// tellLocked tells one's watchers, unless they know. While an event is without
// holds nothing is pushed of what is sold. Nothing may be said of an event whose
// topic has ended.
func (f *Feed) tellLocked(b Broadcaster, one *follower, away bool) {
	reason, poll := f.reason, ""
	if away {
		reason = "no_holds"
	}
	if reason == one.told {
		return
	}
	one.told = reason
	if reason != "" {
		poll = seatmapPath(one.event)
	}
	b.Degrade(one.topic, reason, poll)
}

// ready returns the follower of an event once it has a projection: a new hot
// event may need a moment.
func (f *Feed) ready(ctx context.Context, event string) (*follower, error) {
	for {
		f.mu.Lock()
		one, changed := f.followers[event], f.changed
		f.mu.Unlock()
		if one != nil {
			changed = one.loaded
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("projection of %s: %w: %w", event, ErrStore, ctx.Err())
		case <-changed:
			if one != nil {
				return one, nil
			}
		}
	}
}

// errTopic is the answer to a topic that is no event's map.
var errTopic = errors.New("live: not the topic of a map")

// Snapshot is the projection of a topic's event, as a frame.
func (f *Feed) Snapshot(ctx context.Context, topic string) (n int64, data []byte, err error) {
	event, ok := eventOf(topic)
	if !ok {
		return 0, nil, fmt.Errorf("%w: %s", errTopic, topic)
	}
	one, err := f.ready(ctx, event)
	if err != nil {
		return 0, nil, err
	}
	v := one.view()
	return v.state.N, v.Snapshot(), nil
}

// Poll is where a topic's map is read without a stream.
func (f *Feed) Poll(topic string) (path string) {
	event, _ := eventOf(topic) // of no event: a path that answers so
	return seatmapPath(event)
}

// helloPatience bounds the wait of a stream for an event just become hot.
const helloPatience = 3 * time.Second

// Hello is what opens a topic's stream: where this node is, and its clock.
func (f *Feed) Hello(ctx context.Context, topic string) ([]byte, error) {
	event, ok := eventOf(topic)
	if !ok {
		return nil, fmt.Errorf("%w: %s", errTopic, topic)
	}
	ctx, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	one, err := f.ready(ctx, event)
	if err != nil {
		return nil, err
	}
	v := one.view()
	return encode(seatmap.Hello{N: v.state.N, Chart: v.sale.ChartSHA, At: time.Now().UnixMilli()}), nil
}

// projected is the follower of a hot event that has a projection, or nil; sure
// says that Redis was where the projection is a moment ago.
func (f *Feed) projected(sale *seatmap.Sale) (one *follower, sure bool) {
	one = f.follower(sale.Event)
	if one == nil || !sale.Hot {
		return nil, false
	}
	if _, _, loaded := one.position(); !loaded {
		return nil, false
	}
	return one, one.sure()
}
