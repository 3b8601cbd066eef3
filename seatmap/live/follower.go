package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seatcast/seatmap"
)

// follower keeps one hot event's projection. Only the goroutine in run changes
// it.
type follower struct {
	o     *FeedOptions
	event string
	topic string
	to    Broadcaster
	log   *slog.Logger

	cancel context.CancelFunc
	told   string           // why its watchers poll beside; the Feed's, under its lock
	heard  chan heardChange // 4096: what a busy sale says while a snapshot is read
	seen   chan sighting    // 1: only the last look counts
	loaded chan struct{}    // closed when there is a projection

	mu        sync.Mutex
	p         projection
	sale      *seatmap.Sale
	shown     *view     // of p as it is, or nil
	confirmed time.Time // when Redis certainly was not past p.N
	doubted   bool      // ours is of a history that was lost, and is not mended yet
	era       int       // restarts so far: what was seen before one says nothing after it

	gap     *time.Timer // runs while waiting
	waiting bool        // for what lies between what we have and what we know of
	known   int64       // a number Redis has been at,
	knownAt time.Time   // when it was asked

	tick   *time.Timer     // runs while a delta waits for its time
	next   time.Time       // before which no delta goes out
	walked <-chan struct{} // closed when the last delta was offered to all; nil once it was
}

// sighting is an event's number as Redis says it; now is 0 when cold.
type sighting struct {
	asked  time.Time // just before Redis was
	before int64     // what the projection had then
	era    int       // in which it was
	now    int64
	sale   *seatmap.Sale // nil when it could not be had
}

func newFollower(o *FeedOptions, event string, to Broadcaster) *follower {
	return &follower{o: o, event: event, topic: seatmap.Topic(event), to: to, log: o.Log.With("event", event),
		heard: make(chan heardChange, 4096), seen: make(chan sighting, 1), loaded: make(chan struct{})}
}

// run follows the event until ctx ends.
func (f *follower) run(ctx context.Context) error {
	stop, err := f.o.Ear.listen(ctx, f.event, f.hear)
	if err != nil {
		return err
	}
	defer func() {
		if err := stop(); err != nil && ctx.Err() == nil {
			f.log.Warn("unsubscribe", "err", err)
		}
	}()
	if !f.load(ctx) {
		return nil
	}
	f.gap, f.tick = stopped(), stopped()
	defer f.gap.Stop()
	defer f.tick.Stop()
	drift := time.NewTicker(f.o.Drift)
	defer drift.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-f.heard:
			f.follow(ctx, c)
		case s := <-f.seen:
			f.judge(ctx, s)
		case <-f.gap.C:
			f.repair(ctx)
		case <-drift.C:
			f.compare(ctx)
		case <-f.tick.C:
		case <-f.walked:
			f.walked = nil
		}
		f.settle()
	}
}

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// hear is called by the connection to NATS and must not block: what does not
// fit is a gap, and gaps are repaired.
func (f *follower) hear(c seatmap.Change) {
	select {
	case f.heard <- heardChange{c, time.Now()}:
	default:
		f.o.Metrics.missed.WithLabelValues("behind").Inc()
	}
}

// tell is called by the Feed and must not block.
func (f *follower) tell(s sighting) {
	select {
	case <-f.seen:
	default:
	}
	select {
	case f.seen <- s:
	default: // another look was faster
	}
}

// load makes the first projection, as often as it takes.
func (f *follower) load(ctx context.Context) bool {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := f.begin(ctx)
		if err == nil {
			close(f.loaded)
			return true
		}
		if ctx.Err() == nil {
			f.log.WarnContext(ctx, "map not loaded yet", "err", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

func (f *follower) begin(ctx context.Context) error {
	sale, err := f.o.Sales.Sale(ctx, f.event)
	if err != nil {
		return err
	}
	asked := time.Now()
	s, err := f.o.Maps.Snapshot(ctx, f.event)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sale = sale
	s.fit(sale.Chart.Seats)
	f.p.restart(s)
	f.p.heard.tags.last(sale)
	f.confirmLocked(asked)
	return nil
}

// follow takes a change that was heard. One that was lost before it would have
// shown as a gap; but a late one may be of a history that is lost by now.
func (f *follower) follow(ctx context.Context, c heardChange) {
	v, followed := f.take(ctx, c)
	if v == applied {
		f.passed(c.at)
	}
	f.o.Metrics.reordered.Add(float64(followed))
}

// take handles a change that was heard or read; followed counts those that had
// come early and now followed it.
func (f *follower) take(ctx context.Context, c heardChange) (v verdict, followed int) {
	f.mu.Lock()
	v, followed = f.p.take(c)
	if v == applied {
		f.shown = nil
	}
	mine := f.p.N
	f.mu.Unlock()
	switch v {
	case early:
		f.await("early")
	case resets:
		f.restart(ctx, f.sale, c.N, "told")
	case forked:
		f.log.WarnContext(ctx, "fork: a change follows a number below mine", "n", c.N, "prev", c.Prev, "mine", mine)
		f.rebuild(ctx, "fork")
	}
	return v, followed
}

// await gives what is missing a moment to come by itself; seen says by what we
// know that it is missing.
func (f *follower) await(seen string) {
	if !f.waiting {
		f.waiting = true
		f.gap.Reset(f.o.Wait)
		f.o.Metrics.gaps.WithLabelValues(seen).Inc()
	}
}

// judge compares the event's number with ours.
func (f *follower) judge(ctx context.Context, s sighting) {
	mine, era, _ := f.position()
	if s.era != era {
		return
	}
	switch {
	case s.now == 0:
		f.log.WarnContext(ctx, "event is cold", "mine", mine)
		f.rebuild(ctx, "cold")
	case s.now < s.before:
		f.log.WarnContext(ctx, "fork: the event's number is below mine", "n", s.now, "mine", s.before)
		f.rebuild(ctx, "fork")
	case s.now > mine:
		f.known, f.knownAt = s.now, s.asked
		f.await("number")
	default:
		f.confirm(s.asked)
	}
	f.adoptSale(ctx, s.sale)
}

// adoptSale starts over when the event has another chart. Until that is done
// the follower stays with the one it has, and the next look tries again.
func (f *follower) adoptSale(ctx context.Context, sale *seatmap.Sale) {
	if sale == nil || sale == f.sale {
		return
	}
	if sale.ChartSHA != f.sale.ChartSHA {
		mine, _, _ := f.position()
		f.restart(ctx, sale, mine, "chart")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.soldAsLocked(sale)
}

func (f *follower) soldAsLocked(sale *seatmap.Sale) {
	f.sale, f.shown = sale, nil
	f.p.heard.tags.last(sale)
}

// repair closes a gap from the log, once waiting has not.
func (f *follower) repair(ctx context.Context) {
	f.waiting = false
	mine, _, _ := f.position()
	if f.known <= mine && len(f.p.early) == 0 {
		f.passed(f.knownAt)
		return
	}
	asked := time.Now()
	changes, err := f.o.Maps.Since(ctx, f.event, mine)
	switch {
	case err == nil:
		f.replay(ctx, changes, asked)
	case errors.Is(err, ErrTrimmed):
		f.jump(ctx)
	case errors.Is(err, ErrFork), errors.Is(err, ErrCold):
		f.log.WarnContext(ctx, "fork: the log has not my number", "mine", mine, "err", err)
		f.rebuild(ctx, "fork")
	case ctx.Err() == nil:
		f.log.WarnContext(ctx, "gap not repaired yet", "err", err)
	}
}

// replay takes what the log, asked then, says follows. What waited and is not
// among it follows nothing that ever will come.
func (f *follower) replay(ctx context.Context, changes []seatmap.Change, asked time.Time) {
	for _, c := range changes {
		if v, _ := f.take(ctx, heardChange{c, asked}); v == early {
			f.jump(ctx)
			return
		}
	}
	clear(f.p.early)
	if len(changes) > 0 {
		f.o.Metrics.repaired.WithLabelValues("log").Inc()
	}
	f.confirm(asked)
}

// jump closes a gap that the log does not reach over: the difference between
// two states is told as one delta.
func (f *follower) jump(ctx context.Context) {
	asked := time.Now()
	s, err := f.read(ctx, f.sale)
	if err != nil {
		f.log.WarnContext(ctx, "gap not repaired yet", "err", err)
		return
	}
	if mine, _, _ := f.position(); s.N <= mine {
		f.rebuild(ctx, "fork")
		return
	}
	f.mu.Lock()
	f.p.jump(s, time.Now().UnixMilli(), f.confirmed.UnixMilli())
	f.shown = nil
	f.confirmLocked(asked)
	f.mu.Unlock()
	f.o.Metrics.repaired.WithLabelValues("snapshot").Inc()
}

// rebuild has the event numbered above what we have, which watchers have too,
// and starts over.
func (f *follower) rebuild(ctx context.Context, why string) {
	mine, _, _ := f.position()
	f.doubt()
	if err := f.o.Maps.rebuilder.Rebuild(ctx, f.event, mine); err != nil {
		if ctx.Err() == nil {
			f.log.ErrorContext(ctx, "rebuild failed; it is tried again", "position", mine, "err", err)
		}
		return
	}
	f.restart(ctx, f.sale, mine+1, why)
}

// restart takes a snapshot of atLeast, of the event as it is sold, and has every
// watcher start over from it.
func (f *follower) restart(ctx context.Context, sale *seatmap.Sale, atLeast int64, why string) {
	asked := time.Now()
	s, err := f.read(ctx, sale)
	if err == nil && s.N < atLeast {
		err = fmt.Errorf("snapshot %d is below %d", s.N, atLeast)
	}
	if err != nil {
		if ctx.Err() == nil {
			f.log.ErrorContext(ctx, "reset failed; it is tried again", "err", err)
		}
		return
	}
	f.mu.Lock()
	f.p.restart(s)
	f.era++
	f.soldAsLocked(sale)
	f.confirmLocked(asked)
	f.mu.Unlock()
	f.announce(why)
}

// announce has every watcher start over from the projection as it is.
func (f *follower) announce(why string) {
	v := f.view()
	f.log.Info("map reset", "n", v.state.N, "why", why)
	f.o.Metrics.reset.WithLabelValues(why).Inc()
	f.to.Reset(f.topic, v.state.N, v.Snapshot())
}

func (f *follower) read(ctx context.Context, sale *seatmap.Sale) (State, error) {
	s, err := f.o.Maps.Read(ctx, f.event)
	s.fit(sale.Chart.Seats)
	return s, err
}

// compare has the projection checked against a fresh snapshot.
func (f *follower) compare(ctx context.Context) {
	s, err := f.read(ctx, f.sale)
	if err != nil {
		return // the next look at the numbers says so
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.p.expect(&s)
}
