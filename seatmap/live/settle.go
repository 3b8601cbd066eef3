package live

import (
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

// flush publishes what was merged: at once after quiet, otherwise a tick after
// the last delta went out and not before that was offered to everybody. A crowd
// that takes longer than a tick to tell is told less often, never late.
func (f *follower) flush() {
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

// confirm notes that Redis has just been where the projection is.
func (f *follower) confirm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.confirmed = time.Now()
}

func (f *follower) confirmedAt() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.confirmed
}
