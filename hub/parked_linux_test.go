package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seatcast/hub"
)

// Any progress is a sign of life: a reader that takes a little again and again
// outlives many deadlines.
func TestAReaderThatTakesALittleIsNotClosed(t *testing.T) {
	t.Parallel()
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src, WriteTimeout: 150 * time.Millisecond})
	c := n.viewed(view{transport: "sse", window: 4 << 10})
	c.expect("hello", "snapshot#1")
	src.big(n, 1<<20)
	piece := make([]byte, 32<<10)
	for start := time.Now(); time.Since(start) < 800*time.Millisecond; time.Sleep(30 * time.Millisecond) {
		if _, err := io.ReadFull(c.in, piece); err != nil {
			t.Fatalf("%v while it took a little", err)
		}
	}
	if n.metric("hub_sessions_behind") != 1 {
		t.Error("it was not behind: the test proves nothing")
	}
}

// One who takes a little again and again is never late, and could have more kept
// for it all its life.
func TestAClientThatPingsWithoutReadingIsClosed(t *testing.T) {
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src, Limits: hub.Limits{Messages: -1}})
	c := n.viewed(view{transport: "ws", window: 4 << 10})
	c.expect("hello", "snapshot#1")
	src.big(n, 512<<10)
	eventually(t, "it is behind", func() bool { return n.metric("hub_sessions_behind") == 1 })
	c.write(strings.Repeat(masked(0x89, "kept"), 200))
	eventually(t, "it is closed", func() bool { return n.metric("hub_closes_total", "too_many_asks") == 1 })
	if got := n.metric("hub_refused_total", "asks"); got != 1 {
		t.Errorf("200 pings were sent, and %v times it was one too many: want once", got)
	}
	n.forgotten()
}

// descriptors is how many this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestRunEndsThoughSessionsAreOn(t *testing.T) {
	before := descriptors(t)
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src})
	n.mixed = true
	var cs []*viewer
	for i := range 60 {
		c := n.viewed(view{transport: []string{"sse", "ws"}[i%2], window: 4 << 10})
		c.expect("hello", "snapshot#1")
		cs = append(cs, c)
	}
	for range 3 { // every second of them is behind when it happens
		src.big(n, 64<<10)
	}
	n.stop()
	for i, c := range cs {
		if _, err := c.rest(); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("session %d hangs", i)
		}
		_ = c.conn.Close()
	}
	n.forgotten()
	if got := n.metric("hub_closes_total", "drain"); got != 60 {
		t.Errorf("%v of 60 were closed as by a drain", got)
	}
	late := n.viewed(view{transport: "sse"})
	late.expect("hello", fmt.Sprintf("snapshot#%d", src.at()))
	if got := n.metric("hub_sessions", "portable"); got != 1 {
		t.Errorf("%v sessions are portable after Run, want the late one", got)
	}
	_ = late.conn.Close()
	n.forgotten()
	eventually(t, "every descriptor is closed", func() bool { return descriptors(t) <= before+2 }) // the listener, and Go's poller
}

// Requests come all the time while Run ends: each is served or refused, none
// hangs.
func TestRunMayEndWhileSessionsAreBeingParked(t *testing.T) {
	for round := range 25 {
		t.Run("", func(t *testing.T) {
			n := serve(t, hub.Options{Source: &truth{n: 1}})
			n.mixed = true
			over := make(chan struct{})
			var herd sync.WaitGroup
			for i := range 6 {
				herd.Go(func() {
					for {
						select {
						case <-over:
							return
						default:
							opened(t, n, i%2 == 0)
						}
					}
				})
			}
			time.Sleep(time.Duration(round%10) * time.Millisecond) // some are on, some are on their way
			n.stop()
			close(over)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := n.Drain(ctx, 0); err != nil {
				t.Error(err)
			}
			herd.Wait()
			n.forgotten()
		})
	}
}

// opened opens a session and reads until the server ends it, or a moment has
// passed.
func opened(t *testing.T, n *node, stream bool) {
	c, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	head := "GET /live HTTP/1.1\r\nHost: hub\r\n\r\n"
	if !stream {
		head = "GET /ws HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " + hub.Subprotocol + "\r\n\r\n"
	}
	if _, err := io.WriteString(c, head); err != nil {
		t.Error(err)
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	answer := make([]byte, 16)
	if _, err := c.Read(answer); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a request was neither served nor refused")
	}
}

func TestParkedStreamsHaveNoGoroutine(t *testing.T) {
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src})
	n.viewed(view{transport: "sse"}).expect("hello", "snapshot#1")
	before := runtime.NumGoroutine()
	var cs []*viewer
	for range 500 {
		cs = append(cs, n.viewed(view{transport: "sse"}))
	}
	for _, c := range cs {
		c.expect("hello", "snapshot#1")
	}
	eventually(t, "goroutines do not grow with streams", func() bool { return runtime.NumGoroutine() < before+20 })
	src.step(n.Hub, 1)
	for _, c := range cs {
		c.expect("delta#2")
	}
}

// Descriptors are used again and again while some sessions stay.
func TestSessionsThatStayOutliveThoseThatComeAndGo(t *testing.T) {
	t.Parallel()
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src})
	var stay []*viewer
	for i := range 6 {
		c := n.viewed(view{transport: []string{"sse", "ws"}[i%2]})
		c.expect("hello", "snapshot#1")
		stay = append(stay, c)
	}
	for round := range 60 {
		for i := range 8 {
			c := n.viewed(view{transport: []string{"sse", "ws"}[i%2], since: src.at()})
			if i%4 < 2 {
				_ = c.conn.SetLinger(0)
			}
			_ = c.conn.Close()
		}
		src.step(n.Hub, 1)
		for _, c := range stay {
			c.expect(fmt.Sprintf("delta#%d", round+2))
		}
	}
	eventually(t, "those who went are forgotten", func() bool { return n.metric("hub_sessions") == 6 })
}

// Frames are published while sessions come and go and at last Run ends: every
// fan-out comes to its end.
func TestEveryFanOutEnds(t *testing.T) {
	t.Parallel()
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src})
	n.mixed = true
	var going sync.WaitGroup
	quit := make(chan struct{})
	for range 3 {
		going.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
					opened(t, n, true)
				}
			}
		})
	}
	for range 200 {
		n.viewed(view{transport: "sse"})
	}
	for i := range 200 {
		at := src.next()
		walked := n.Publish(topic, at-1, []int64{at}, time.Now(), delta(at-1, at))
		select {
		case <-walked:
		case <-time.After(5 * time.Second):
			t.Fatalf("fan-out %d never ended", i)
		}
		if i == 120 {
			going.Go(n.stop)
		}
	}
	close(quit)
	going.Wait()
}

// Without a descriptor to spare a stream is told when to come back, and once
// there are some the next is served.
func TestAStreamThatCannotBeParkedIsToldWhenToComeBack(t *testing.T) {
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src})
	on := n.viewed(view{transport: "sse"})
	on.expect("hello", "snapshot#1")
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	accepted := func(path string) string { // an answer over the connection that is open
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: hub\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		b := make([]byte, 4096)
		k, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:k])
	}
	accepted("/nowhere") // the server has accepted it
	restore := exhaust(t)
	answer := accepted("/live")
	restore()
	if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") || !strings.Contains(answer, "\r\n\r\nretry: ") {
		t.Errorf("answered %q, want when to come back", answer)
	}
	src.step(n.Hub, 1)
	on.expect("delta#2")
	n.viewed(view{transport: "sse"}).expect("hello", "snapshot#2")
	eventually(t, "the other is forgotten", func() bool { return n.metric("hub_sessions") == 2 })
}

// Nobody reads what a stream's client goes on to send, and it costs it nothing
// to send it.
func TestWhatAStreamsClientSendsIsNotKept(t *testing.T) {
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src})
	c := n.viewed(view{transport: "sse"})
	c.expect("hello", "snapshot#1")
	_ = c.conn.SetWriteBuffer(4 << 10)
	_ = c.conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	sent, err := io.Copy(c.conn, endless{})
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%v, want that no more is taken", err)
	}
	if sent > 56<<10 { // more than both ends are given
		t.Errorf("%d bytes are kept", sent)
	}
	src.step(n.Hub, 1)
	c.expect("delta#2")
}

// endless is a client that never stops talking.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return min(len(b), 512), nil }

// exhaust takes every descriptor there is, until restore gives them back.
func exhaust(t *testing.T) (restore func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = uint64(descriptors(t) + 64)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		taken = append(taken, f)
	}
	return func() {
		for _, f := range taken {
			_ = f.Close()
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}
}
