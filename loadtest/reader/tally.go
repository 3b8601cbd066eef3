package reader

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// tally counts deliveries of a plan.
type tally struct {
	plan     Plan
	first    int           // index of the first change that is measured
	marks    map[int][]int // indexes of changes, by mark
	numbers  []int64       // of deltas that were placed, ascending
	upTo     []int         // and the last change each brings
	sessions int           // that are there all the time
	begun    bool          // a measured change has been read
	bytes    int64         // read since then
	frames   int64
	count    int64
	from, to int64   // Unix nanoseconds of the first and last delivery
	last     []int64 // by change: when it reached a session last
	took     *hdrhistogram.Histogram
}

// unknown is the progress of a session that joined while changes were published:
// which of them its first map holds is not known.
const unknown = -2

// Latencies are kept in microseconds, up to two minutes, to three digits.
const longest = 120_000_000

func newTally(p Plan, sessions int) tally {
	t := tally{plan: p, sessions: sessions, marks: make(map[int][]int), last: make([]int64, len(p.Changes)),
		took: hdrhistogram.New(1, longest, 3)}
	t.first = slices.IndexFunc(p.Changes, func(c Change) bool { return !c.Warm })
	if t.first < 0 {
		t.first = len(p.Changes)
	}
	for i, c := range p.Changes {
		t.marks[mark(c.Seat, c.Released)] = append(t.marks[mark(c.Seat, c.Released)], i)
	}
	return t
}

func mark(seat int, released bool) int {
	if released {
		return 2*seat + 1
	}
	return 2 * seat
}

// place says which changes of the plan a delta brings: all up to m.upTo.
func (t *tally) place(m *message) {
	if m.kind != delta || len(t.plan.Changes) == 0 {
		return
	}
	if first := t.plan.Changes[0].N; first > 0 {
		if i := int(m.n - first); i >= 0 && i < len(t.plan.Changes) {
			m.upTo = i
		}
	} else {
		m.upTo = t.find(m)
		t.note(m.n, m.upTo)
	}
	t.begun = t.begun || m.upTo >= t.first
}

// find looks for the changes by their marks. Nodes merge changes into frames of
// their own, and a mark may come again: what follows what was seen last counts.
func (t *tally) find(m *message) int {
	before := -1
	if at, found := slices.BinarySearch(t.numbers, m.n); found {
		return t.upTo[at]
	} else if at > 0 {
		before = t.upTo[at-1]
		if at < len(t.numbers) { // between two that are known
			return before
		}
	}
	best := before
	for _, part := range []struct {
		seats    []int
		released bool
	}{{m.step.Reserved, false}, {m.step.Released, true}} {
		for _, seat := range part.seats {
			all := t.marks[mark(seat, part.released)]
			if at, _ := slices.BinarySearch(all, before+1); at < len(all) {
				best = max(best, all[at])
			}
		}
	}
	return best
}

func (t *tally) note(n int64, upTo int) {
	if at, found := slices.BinarySearch(t.numbers, n); !found {
		t.numbers = slices.Insert(t.numbers, at, n)
		t.upTo = slices.Insert(t.upTo, at, upTo)
	}
}

// reached says which change of the plan a map of number n holds last; false
// when that is not known.
func (t *tally) reached(n int64) (upTo int, ok bool) {
	at, found := slices.BinarySearch(t.numbers, n)
	switch {
	case found:
		return t.upTo[at], true
	case at == len(t.numbers):
		return 0, false
	case at == 0:
		return -1, true
	}
	return t.upTo[at-1], true
}

// published says that changes of the plan have been seen.
func (t *tally) published() bool { return len(t.numbers) > 0 }

// deliver counts what a session at progress is given.
func (t *tally) deliver(progress *int, upTo int, now int64) {
	if upTo <= *progress {
		return
	}
	from := *progress + 1
	if *progress == unknown {
		from = upTo
	}
	*progress = upTo
	from = max(from, t.first)
	for i := from; i <= upTo; i++ {
		t.count++
		t.last[i] = max(t.last[i], now)
		_ = t.took.RecordValue(min(max(1, (now-t.plan.Changes[i].Due)/1000), longest)) // in its range
	}
	if from <= upTo {
		t.frames++
		if t.from == 0 {
			t.from = now
		}
		t.to = now
	}
}

func (t *tally) expected() int64 { return int64(len(t.plan.Changes)-t.first) * int64(t.sessions) }

func (t *tally) report() Report {
	r := Report{Expected: t.expected(), Deliveries: t.count, Frames: t.frames, Bytes: t.bytes, First: t.from, Last: t.to}
	if t.count == 0 {
		return r
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	r.P50, r.P99, r.Max = ms(t.took.ValueAtQuantile(50)), ms(t.took.ValueAtQuantile(99)), ms(t.took.Max())
	var lasts []float64
	for i := t.first; i < len(t.last); i++ {
		if t.last[i] > 0 {
			lasts = append(lasts, float64(t.last[i]-t.plan.Changes[i].Due)/float64(time.Millisecond))
		}
	}
	slices.Sort(lasts)
	r.LastP50 = lasts[len(lasts)/2]
	return r
}
