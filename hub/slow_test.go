package hub_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"seatcast/hub"
)

// Publishers race snapshots that lag and readers that dawdle, thousands of
// interleavings: nobody goes back in time, everybody ends at the truth.
func TestWatcherNeverGoesBackInTime(t *testing.T) {
	t.Parallel()
	rounds := 100
	if testing.Short() {
		rounds = 40
	}
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) { race(t, rand.New(rand.NewPCG(uint64(seed), 7))) })
	}
}

func race(t *testing.T, rng *rand.Rand) {
	ms := func(most int) time.Duration { return time.Duration(rand.IntN(most+1)) * time.Millisecond }
	src := &truth{n: 1000,
		lag:   func() int64 { return rand.Int64N(3) * rand.Int64N(4) },
		pause: func() time.Duration { return ms(60) }}
	h := hub.New(hub.Options{Source: src, RingSize: 1 + rng.IntN(12), Patience: time.Minute})
	var ws []*watcher
	add := func() {
		since := int64(0)
		if rng.IntN(2) == 0 {
			src.mu.Lock()
			since = src.n - rng.Int64N(12)
			src.mu.Unlock()
		}
		pace := rng.IntN(50)
		ws = append(ws, watch(t, h, since, func() time.Duration { return ms(pace) }))
	}
	for range 60 {
		if rng.IntN(4) == 0 {
			add()
		}
		src.step(h, 1+rng.IntN(4))
		time.Sleep(ms(40))
		if rng.IntN(30) == 0 {
			src.mu.Lock()
			src.n += 10
			n := src.n
			src.mu.Unlock()
			h.Reset(topic, n, delta(0, n))
		}
	}
	src.mu.Lock()
	src.lag = nil
	want := src.n
	src.mu.Unlock()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	for i, w := range ws {
		events := w.events()
		start := events[0].ID
		if have := checkStream(t, append([]event{{Event: "snapshot", ID: start}}, events...)); have != want && len(w.done) == 0 {
			t.Fatalf("watcher %d ends at %d, want %d: %s", i, have, want, names(events))
		}
	}
}

func TestSlowReaderDelaysNobodyAndIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 1}
		reg := prometheus.NewRegistry()
		h := hub.New(hub.Options{Source: src, WriteTimeout: 5 * time.Second, Registerer: reg})
		dead := watch(t, h, 0, func() time.Duration { return time.Hour })
		well := watch(t, h, 0, nil)
		synctest.Wait()
		for range 30 {
			src.step(h, 1)
			synctest.Wait()
			if have := checkStream(t, well.events()); have != src.n {
				t.Fatalf("the well reader is at %d, want %d at once", have, src.n)
			}
			time.Sleep(100 * time.Millisecond)
		}
		select {
		case <-dead.done:
			t.Fatal("closed before its write deadline")
		default:
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(dead.done) != 1 {
			t.Fatal("a reader that takes nothing outlived its write deadline")
		}
		n := &node{tb: t, reg: reg}
		if slow, all := n.metric("hub_closes_total", "slow", "sse"), n.metric("hub_closes_total"); slow != 1 || all != 1 {
			t.Errorf("of %v sessions that ended %v were slow, want one of one", all, slow)
		}
	})
}

func TestFallingOffTheRingOnceIsASnapshotTwiceACloseCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 1}
		h := hub.New(hub.Options{Source: src, RingSize: 4})
		var stall atomic.Int64
		w := watch(t, h, 0, func() time.Duration { return time.Duration(stall.Load()) })
		synctest.Wait()

		stall.Store(int64(2 * time.Second))
		for range 12 { // more than the ring holds while one write is under way
			src.step(h, 1)
			time.Sleep(100 * time.Millisecond)
		}
		stall.Store(0)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := names(w.events()); got != "hello#0 snapshot#1 delta#2 snapshot#13" {
			t.Fatalf("got %s, want one frame and then a snapshot", got)
		}

		stall.Store(int64(2 * time.Second))
		for range 100 {
			src.step(h, 1)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if len(w.done) != 1 {
			t.Error("a reader slower than the ring for good was not closed")
		}
		if last := w.stream()[strings.LastIndex(w.stream(), "\n\n")-20:]; !strings.Contains(last, "retry: ") {
			t.Errorf("the stream ends with %q, want a hint when to come back", last)
		}
	})
}

// Its reader takes each frame slowly but in time, so it can be told.
func TestSocketSlowerThanTheRingIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 1}
		h := hub.New(hub.Options{Source: src, RingSize: 4})
		s := dialPipe(t, h)
		s.send(`{"sub":"` + topic + `"}`)
		s.expect("hello "+topic+" 1", "snapshot "+topic+" 1")
		stop := steps(src, h)
		defer stop()
		for {
			time.Sleep(2 * time.Second)
			if _, err := s.next(); err != nil {
				if code := websocket.CloseStatus(err); int(code) != int(hub.CloseSlow) {
					t.Errorf("ended with %v, want close code %d", err, hub.CloseSlow)
				}
				return
			}
		}
	})
}

func TestDrainReachesAReaderThatNeverCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 1}
		h := hub.New(hub.Options{Source: src})
		w := watch(t, h, 0, func() time.Duration { return 150 * time.Millisecond })
		stop := steps(src, h)
		defer stop()
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Drain(ctx, 0); err != nil {
			t.Errorf("%v: drained behind a backlog that only grows", err)
		}
		<-w.done
	})
}

// steps publishes a frame each 100 ms until stop is called.
func steps(src *truth, h *hub.Hub) (stop func()) {
	return again(100*time.Millisecond, func() { src.step(h, 1) })
}

// dialPipe opens a socket to h over a connection without buffers.
func dialPipe(t *testing.T, h *hub.Hub) *socket {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		r, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil {
			t.Error(err)
			return
		}
		h.ServeWS(&pipeWriter{ResponseRecorder: httptest.NewRecorder(), conn: theirs}, r, allow)
	}()
	o := offer()
	o.HTTPClient = &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil },
	}}
	s := dial(t, "http://hub", o)
	t.Cleanup(func() { _ = s.conn.CloseNow(); <-served })
	return s
}

// pipeWriter answers a handshake by its headers, then gives the connection
// away.
type pipeWriter struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (w *pipeWriter) WriteHeader(code int) {
	_, _ = fmt.Fprintf(w.conn, "HTTP/1.1 %d %s\r\n", code, http.StatusText(code))
	_ = w.Header().Write(w.conn)
	_, _ = io.WriteString(w.conn, "\r\n")
}

func (w *pipeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

func TestManyWhoReturnShareOneSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 9, pause: func() time.Duration { return 50 * time.Millisecond }}
		h := hub.New(hub.Options{Source: src})
		var ws []*watcher
		for range 500 {
			ws = append(ws, watch(t, h, 0, nil))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, w := range ws {
			if got := names(w.events()); got != "hello#0 snapshot#9" {
				t.Fatalf("got %s", got)
			}
		}
		if src.asked != 1 {
			t.Errorf("the source was asked %d times for 500 watchers, want once", src.asked)
		}
	})
}
