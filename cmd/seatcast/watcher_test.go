package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// watcher follows an event's stream as a browser does: it applies what fits,
// comes back with its number when the stream ends, and notes every fault.
type watcher struct {
	t    testing.TB
	stop context.CancelFunc
	done chan struct{}

	mu        sync.Mutex
	over      context.CancelFunc // ends the stream it reads
	bases     []string           // the node it asks, then the next
	n         int64
	seats     seatmap.Map
	areas     map[string]int
	chart     string // its SHA-256, as told last
	snapshots int
	resets    int
	deltas    int
	repeats   int    // deltas it had already
	ends      []end  // of its streams
	obeys     bool   // comes back when it was told to
	degraded  string // why frames may be late, as told last; empty when all is well
	faults    []string
}

// end is how a stream of a watcher ended.
type end struct {
	base string
	at   time.Time
	hint string // what was said last, of when to come back
}

func (w *watcher) ended(base, hint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, end{base, time.Now(), hint})
}

// watch starts a watcher at the first of bases; it moves on to the next each
// time its stream ends.
func watch(t testing.TB, event string, bases ...string) *watcher {
	t.Helper()
	return follow(t, event, (*watcher).stream, bases...)
}

// follow starts a watcher that reads one stream after the other.
func follow(t testing.TB, event string, read func(w *watcher, ctx context.Context, base, event string), bases ...string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{t: t, stop: cancel, done: make(chan struct{}), bases: bases}
	go func() { // joined by leave
		defer close(w.done)
		for i := 0; ctx.Err() == nil; i++ {
			one, over := context.WithCancel(ctx)
			w.reads(over)
			read(w, one, bases[i%len(bases)], event)
			over()
			if !pause(ctx, w.rest()) {
				return
			}
		}
	}()
	t.Cleanup(w.leave)
	return w
}

// obey makes it come back when it is told to, and not at once.
func (w *watcher) obey() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.obeys = true
}

// rest is how long it waits before it comes back.
func (w *watcher) rest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.obeys && len(w.ends) > 0 {
		return w.ends[len(w.ends)-1].hinted()
	}
	return 20 * time.Millisecond
}

func (w *watcher) reads(over context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = over
}

// hop cuts the stream it reads, so that it resumes at the next of its nodes.
func (w *watcher) hop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over()
}

// leave ends the watcher and fails the test for whatever it noted.
func (w *watcher) leave() {
	w.stop()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		w.t.Error("watcher:", f)
	}
	w.faults = nil
}

func (w *watcher) stream(ctx context.Context, base, event string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/events/"+event+"/live", nil)
	if err != nil {
		w.t.Error(err)
		return
	}
	if n := w.number(); n > 0 {
		req.Header.Set("Last-Event-ID", fmt.Sprint(n))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	kind, last := "", ""
	defer func() { w.ended(base, last) }()
	for lines.Scan() {
		if lines.Text() != "" {
			last = lines.Text()
		}
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			kind = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			if !w.frame(kind, []byte(line[len("data: "):])) {
				return
			}
		}
	}
}

// frame takes one frame in and says whether the stream still fits.
func (w *watcher) frame(kind string, data []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind {
	case "snapshot":
		var s seatmap.Snapshot
		w.decodeLocked(data, &s)
		w.forwardLocked(kind, s.N)
		w.n, w.seats, w.areas, w.chart = s.N, s.Map, s.Areas, s.Chart
		w.snapshots++
	case "delta":
		var d seatmap.Delta
		w.decodeLocked(data, &d)
		if d.N <= w.n {
			w.repeats++
			return true
		}
		if d.Prev > w.n {
			w.faults = append(w.faults, fmt.Sprintf("a delta after %d came to a watcher at %d", d.Prev, w.n))
			return false
		}
		c := seatmap.Change{Reserved: d.Reserved, Released: d.Released, Booked: d.Booked, Closed: d.Closed}
		c.Apply(w.seats)
		for area, left := range d.Areas {
			w.areas[area] = left
		}
		w.n = d.N
		w.deltas++
	case "reset":
		w.resets++
	case "degraded":
		var word struct{ Reason string }
		w.decodeLocked(data, &word)
		w.degraded = word.Reason
	}
	return true
}

func (w *watcher) decodeLocked(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		w.faults = append(w.faults, fmt.Sprintf("frame %q: %v", data, err))
	}
}

func (w *watcher) forwardLocked(kind string, n int64) {
	if n < w.n {
		w.faults = append(w.faults, fmt.Sprintf("a %s of %d took a watcher at %d back in time", kind, n, w.n))
	}
}

// drawn is the chart the watcher's map is of.
func (w *watcher) drawn() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chart
}

// restarts is how often the watcher was told to start over.
func (w *watcher) restarts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.resets
}

// shown is how many whole maps the watcher was sent.
func (w *watcher) shown() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshots
}

func (w *watcher) number() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// see returns the map as the watcher sees it now.
func (w *watcher) see() seatmap.Map {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seats)
}

// sees waits until the watcher sees the map that want returns, and fails with
// the seats that differ when it does not within d, on a machine with time for it.
func (w *watcher) sees(d time.Duration, want func() seatmap.Map) {
	w.t.Helper()
	w.seesBy(time.Now(), d, want)
}

// seesBy is sees with d counted from begun.
func (w *watcher) seesBy(begun time.Time, d time.Duration, want func() seatmap.Map) {
	w.t.Helper()
	for ; ; time.Sleep(10 * time.Millisecond) {
		truth, seen := want(), w.see()
		if bytes.Equal(truth, seen) {
			return
		}
		if devtest.Late(begun, d) {
			w.t.Fatalf("after %v the watcher at %d sees something else: %s", d, w.number(), differ(truth, seen))
		}
	}
}

func differ(truth, seen seatmap.Map) string {
	if len(truth) != len(seen) {
		return fmt.Sprintf("a map of %d bytes instead of %d", len(seen), len(truth))
	}
	var all []string
	for i := range 4 * len(truth) {
		if a, b := truth.At(i), seen.At(i); a != b && len(all) < 10 {
			all = append(all, fmt.Sprintf("seat %d is %v and seen as %v", i, a, b))
		}
	}
	return strings.Join(all, ", ")
}
