package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/hub"
)

const topic = "seatmap/derby"

// truth is a publisher and the source of what it published: its whole state
// is its number.
type truth struct {
	mu    sync.Mutex
	n     int64
	lag   func() int64         // how far behind a snapshot is, for a source that lags
	pause func() time.Duration // how long one takes
	fill  int                  // bytes a snapshot is longer
	asked int
}

func (s *truth) Snapshot(context.Context, string) (int64, []byte, error) {
	s.mu.Lock()
	s.asked++
	n := s.n
	if s.lag != nil {
		n -= s.lag()
	}
	pause := s.pause
	s.mu.Unlock()
	if pause != nil {
		time.Sleep(pause())
	}
	return n, fmt.Appendf(nil, `{"n":%d,"map":"AAAA%s"}`, n, strings.Repeat("A", s.fill)), nil
}

func (s *truth) Hello(context.Context, string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Appendf(nil, `{"n":%d,"chart":"c0ffee","at":1}`, s.n), nil
}

func (s *truth) Poll(string) string { return "/poll" }

// step publishes one frame that merges the numbers n+1 … n+count.
func (s *truth) step(h *hub.Hub, count int) {
	s.mu.Lock()
	prev := s.n
	s.n += int64(count)
	numbers := make([]int64, 0, count)
	for n := prev + 1; n <= s.n; n++ {
		numbers = append(numbers, n)
	}
	s.mu.Unlock()
	h.Publish(topic, prev, numbers, time.Now(), delta(prev, numbers[len(numbers)-1]))
}

func (s *truth) at() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func (s *truth) set(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n = n
}

func (s *truth) next() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.n
}

func delta(prev, n int64) []byte { return fmt.Appendf(nil, `{"n":%d,"prev":%d}`, n, prev) }

// again calls f after every pause until it is stopped.
func again(pause time.Duration, f func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				f()
			}
		}
	}()
	return func() { close(quit); <-done }
}

// event is one Server-Sent Event as a browser reads it.
type event struct {
	Event string
	ID    int64 // -1 when it has none
	Data  string
}

// number is a member of the data that is one.
func (e event) number(name string) int64 {
	_, rest, _ := strings.Cut(e.Data, `"`+name+`":`)
	end := strings.IndexAny(rest, ",}")
	n, err := strconv.ParseInt(rest[:max(0, end)], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (e event) String() string { return fmt.Sprintf("%s#%d", e.Event, e.ID) }

// parse reads a stream as far as it goes.
func parse(stream string) (events []event) {
	for block := range strings.SplitSeq(stream, "\n\n") {
		e := event{ID: -1}
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				e.Event = value
			case "id":
				e.ID, _ = strconv.ParseInt(value, 10, 64)
			case "data":
				e.Data = value
			}
		}
		if e.Event != "" {
			events = append(events, e)
		}
	}
	return events
}

// watcher is a client in memory: an http.ResponseWriter whose reader may be
// slow.
type watcher struct {
	delay func() time.Duration // before each write is taken; nil takes at once

	mu       sync.Mutex
	header   http.Header
	buf      bytes.Buffer
	deadline time.Time

	leave context.CancelFunc
	done  chan error // Serve's result
}

func (w *watcher) Header() http.Header { return w.header }
func (w *watcher) WriteHeader(int)     {}
func (w *watcher) FlushError() error   { return nil }

func (w *watcher) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = t
	return nil
}

func (w *watcher) Write(b []byte) (int, error) {
	if w.delay != nil {
		w.mu.Lock()
		left := time.Until(w.deadline)
		w.mu.Unlock()
		if d := w.delay(); d < left {
			time.Sleep(d)
		} else {
			time.Sleep(left)
			return 0, os.ErrDeadlineExceeded
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *watcher) stream() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func (w *watcher) events() []event { return parse(w.stream()) }

// watch serves a watcher that holds number since until the test ends.
func watch(tb testing.TB, h *hub.Hub, since int64, delay func() time.Duration) *watcher {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{delay: delay, header: make(http.Header), leave: cancel, done: make(chan error, 1)}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/live", nil)
	r.Header.Set("Accept", "text/event-stream")
	if since > 0 {
		r.Header.Set("Last-Event-ID", strconv.FormatInt(since, 10))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.done <- h.Serve(w, r, topic)
	}()
	tb.Cleanup(func() { cancel(); <-ended })
	return w
}

// names lists events without beats, as "hello#0 snapshot#4 delta#5".
func names(events []event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Event != "beat" {
			fmt.Fprintf(&b, " %v", e)
		}
	}
	return strings.TrimSpace(b.String())
}

// checkStream fails when a watcher's map would have gone back in time, or skipped.
func checkStream(tb testing.TB, events []event) (have int64) {
	tb.Helper()
	for i, e := range events {
		switch e.Event {
		case "snapshot":
			if e.ID < have {
				tb.Fatalf("event %d: %v after %d: back in time", i, e, have)
			}
			have = e.ID
		case "delta":
			if prev := e.number("prev"); prev > have || e.ID <= have {
				tb.Fatalf("event %d: %v (prev %d) after %d", i, e, prev, have)
			}
			have = e.ID
		case "reset":
			have = 0
		}
	}
	return have
}
