package live

import (
	"math"
	"time"

	"seatcast/seatmap"
)

// settle tells watchers what there is to tell, when it is time.
func (f *follower) settle() {
	f.mu.Lock()
	drifted := f.p.drifted
	if drifted {
		f.p.drifted, f.p.pending, f.shown = false, merge{}, nil
	}
	f.mu.Unlock()
	if drifted {
		f.o.Metrics.drift.Inc()
		f.announce("drift")
	}
	f.flush()
}

// nobody watches.
type nobody struct{}

func (nobody) Publish(string, int64, []int64, time.Time, []byte) <-chan struct{} { return nil }
func (nobody) Reset(string, int64, []byte)                                       {}
func (nobody) Degrade(_, _, _ string)                                            {}
func (nobody) End(string)                                                        {}

// flush publishes what was merged: at once after quiet, otherwise a tick after
// the last delta went out and not before that was offered to everybody. A crowd
// that takes longer than a tick to tell is told less often, never late.
func (f *follower) flush() {
	if f.to == (nobody{}) {
		f.p.pending = merge{}
	}
	if f.p.pending.empty() || f.walked != nil {
		return
	}
	if wait := time.Until(f.next); wait > 0 {
		f.tick.Reset(wait)
		return
	}
	merged := f.p.pending
	f.p.pending = merge{}
	d := merged.delta()
	f.o.Metrics.lag.Observe(float64(time.Now().UnixMilli()-merged.oldest) / 1000)
	f.o.Metrics.merged.Observe(float64(len(merged.numbers)))
	f.walked = f.to.Publish(f.topic, d.Prev, merged.numbers, time.UnixMilli(merged.oldest), encode(d))
	f.next = time.Now().Add(f.o.Tick)
}

// since returns the changes after number n, if this node still has them; mine
// is where the projection is.
func (f *follower) since(n int64) (changes []seatmap.Change, mine int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes, ok = f.p.since(n)
	return changes, f.p.N, ok
}

// chart is the SHA-256 of the chart that the projection is of.
func (f *follower) chart() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sale.ChartSHA
}

// position is where the projection is; ok says that there is one.
func (f *follower) position() (n int64, era int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.p.N, f.era, f.sale != nil
}

// view is the projection as it is.
func (f *follower) view() *view {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shown == nil {
		f.shown = newView(f.p.clone(), f.sale, false)
	}
	return f.shown
}

// confirm notes that Redis was not past the projection at that time, and that it
// has the same history.
func (f *follower) confirm(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.confirmLocked(at)
}

func (f *follower) confirmLocked(at time.Time) {
	f.doubted = false
	f.passedLocked(at)
}

// passed notes that nothing of the projection's history had been missed at that
// time. Whether that is the history of Redis it does not say.
func (f *follower) passed(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passedLocked(at)
}

func (f *follower) passedLocked(at time.Time) {
	if at.After(f.confirmed) {
		f.confirmed = at
	}
}

// doubt notes that the projection is of a history that was lost.
func (f *follower) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubted = true
}

// ageLocked is for how long nothing has said that Redis is where the projection
// is.
func (f *follower) ageLocked() time.Duration {
	if f.doubted {
		return math.MaxInt64
	}
	return time.Since(f.confirmed)
}

// sureFor is after how many looks without an answer a projection is not what
// anybody should be told without asking.
const sureFor = 3

// sure says that Redis was where the projection is a moment ago.
func (f *follower) sure() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ageLocked() < sureFor*f.o.Silent
}
