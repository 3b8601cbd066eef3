//go:build linux

package reader

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/loadtest/proc"
	"seatcast/seatmap"
)

func start(t *testing.T) *Reader {
	t.Helper()
	r, err := Start(proc.Command{Name: "reader", Path: os.Args[0], Args: []string{"reader"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// stream serves what a test says and then stays open until the end.
func stream(t *testing.T, say func(w http.ResponseWriter, r *http.Request)) Target {
	t.Helper()
	end := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		say(w, r)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(end); s.Close() })
	return Target{Addr: strings.TrimPrefix(s.URL, "http://"), Path: "/", Numbered: true, Ready: Snapshot}
}

func sse(event string, id int64, data any) string {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("event: %s\nid: %d\ndata: %s\n\n", event, id, text)
}

func greeting(n int64) string {
	return ": padding\nretry: 10\n\n" + sse("hello", 0, seatmap.Hello{N: n}) + sse("snapshot", n, seatmap.Snapshot{N: n, Map: seatmap.NewMap(8)})
}

func step(prev, n int64, held ...int) string {
	return sse("delta", n, seatmap.Delta{N: n, Prev: prev, Reserved: held})
}

// read opens sessions and returns what was read once they are on.
func read(t *testing.T, to Target, conns int) (*Reader, Counts) {
	t.Helper()
	ctx := context.Background()
	r := start(t)
	if _, err := r.Open(ctx, Join{Target: to, Conns: conns}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	report, err := r.Await(ctx, time.Second) // of an empty plan: at once
	if err != nil {
		t.Fatal(err)
	}
	return r, report.Counts
}

func TestDeltasAreReplayedOnTheSnapshot(t *testing.T) {
	to := stream(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, step2(greeting(5), step(5, 6, 1, 2), step(6, 9, 7)))
	})
	r, counts := read(t, to, 20)
	finals, err := r.Finals(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := seatmap.NewMap(8)
	for _, i := range []int{1, 2, 7} {
		want.Set(i, seatmap.Held)
	}
	if counts.Faults != 0 || len(finals) != 1 || finals[0].Sessions != 20 || finals[0].N != 9 || string(finals[0].Map) != string(want) {
		t.Errorf("%+v, %+v", counts, finals)
	}
}

// step2 writes parts as one, so that they are read together.
func step2(parts ...string) string { return strings.Join(parts, "") }

func TestWhatAServerMayNotDoIsAFault(t *testing.T) {
	for name, said := range map[string]string{
		"a lost change":               greeting(5) + step(7, 8, 1),
		"back in time":                greeting(5) + sse("snapshot", 4, seatmap.Snapshot{N: 4, Map: seatmap.NewMap(8)}),
		"a beat ahead of the map":     greeting(5) + sse("beat", 6, map[string]int64{"n": 6}),
		"a delta before any snapshot": sse("hello", 0, seatmap.Hello{N: 5}) + step(4, 5, 1) + greeting(5)[len(": padding\nretry: 10\n\n"):],
		"a hello in the middle":       greeting(5) + sse("hello", 0, seatmap.Hello{N: 5}),
		"a hello of another's number": sse("hello", 3, seatmap.Hello{N: 5}) + sse("snapshot", 5, seatmap.Snapshot{N: 5, Map: seatmap.NewMap(8)}),
	} {
		t.Run(name, func(t *testing.T) {
			to := stream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, said) })
			if _, counts := read(t, to, 1); counts.Faults == 0 {
				t.Errorf("no fault is seen: %+v", counts)
			}
		})
	}
}

func TestAResetMayGoBackInTime(t *testing.T) {
	to := stream(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, greeting(5)+sse("reset", 0, map[string]int64{"n": 3})+sse("snapshot", 3, seatmap.Snapshot{N: 3, Map: seatmap.NewMap(8)}))
	})
	if _, counts := read(t, to, 1); counts.Faults != 0 || counts.Resets != 1 {
		t.Errorf("%+v", counts)
	}
}

func TestAHerdComesBackWithItsNumber(t *testing.T) {
	var resumed atomic.Int64
	to := stream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") == "5" {
			resumed.Add(1)
			_, _ = fmt.Fprint(w, sse("hello", 5, seatmap.Hello{N: 5})) // nothing was missed
			return
		}
		_, _ = fmt.Fprint(w, greeting(5))
	})
	r, _ := read(t, to, 30)
	opened, err := r.Herd(context.Background(), true, 10*time.Second)
	if err != nil || opened.On != 30 || resumed.Load() != 30 {
		t.Errorf("%+v, %v; %d came with their number", opened, err, resumed.Load())
	}
	if opened, err = r.Herd(context.Background(), false, 10*time.Second); err != nil || opened.On != 30 || resumed.Load() != 30 {
		t.Errorf("%+v, %v; %d came with their number", opened, err, resumed.Load())
	}
}

func TestWhoIsSentElsewhereComesThereWithItsNumber(t *testing.T) {
	second := stream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, sse("hello", 5, seatmap.Hello{N: 6})+step(5, 6, 3))
	})
	leave := make(chan struct{})
	first := stream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, greeting(5))
		_ = http.NewResponseController(w).Flush()
		<-leave
		_, _ = fmt.Fprint(w, "retry: 20\n\n")
		panic(http.ErrAbortHandler)
	})
	r, _ := read(t, first, 10)
	if err := r.Follow(context.Background(), second); err != nil {
		t.Fatal(err)
	}
	close(leave)
	d, err := r.Drained(context.Background(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	back := 0
	for _, n := range d.BackPerSecond {
		back += n
	}
	if back != 10 || d.On != 10 || d.Faults != 0 {
		t.Errorf("%+v", d)
	}
}

func TestARefusalIsCountedAndTriedAgain(t *testing.T) {
	var asked atomic.Int64
	to := stream(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, greeting(5))
	})
	if _, counts := read(t, to, 1); counts.Refused["HTTP status 503"] != 1 || counts.On != 1 {
		t.Errorf("%+v", counts)
	}
}
