package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seatcast/hub"
)

// big publishes a frame of about size bytes, all of them known, and waits until
// it was offered to all.
func (s *truth) big(n *node, size int) {
	at := s.next()
	<-n.Publish(topic, at-1, []int64{at}, time.Now(), fmt.Appendf(nil, `{"n":%d,"prev":%d,"x":"%s"}`, at, at-1, filling(at, size)))
}

func filling(n int64, size int) string {
	piece := fmt.Sprintf("%d-", n)
	return strings.Repeat(piece, size/len(piece)+1)[:size]
}

// readable fails unless e is the next frame and whole.
func readable(t testing.TB, e event, have int64) int64 {
	t.Helper()
	n := checkOne(t, e, have)
	if _, x, is := strings.Cut(e.Data, `"x":"`); is && e.Event == "delta" {
		x, _, _ = strings.Cut(x, `"`)
		if x != filling(n, len(x)) {
			t.Fatalf("frame %d is broken", n)
		}
	}
	return n
}

// A window of a few packets and reads of half a kilobyte: nearly every frame
// is taken in pieces, and what was begun is finished before anything else.
func TestAReaderInSmallPiecesGetsEveryByte(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1}
		o.Source, o.Beat = src, 10*time.Millisecond
		n := serve(t, o)
		c := n.viewed(view{transport: transport, window: 8 << 10})
		c.expect("hello", "snapshot#1")
		for i := range 40 {
			src.big(n, 1+i*i*53%30_000)
		}
		if !o.Portable && n.metric("hub_sessions_behind") != 1 {
			t.Error("the reader was never behind: the test proves nothing")
		}
		for have := int64(1); have < 41; {
			e, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			if now := readable(t, e, have); e.Event == "delta" && now != have+1 {
				t.Fatalf("%v after %d: the ring has what lies between", e, have)
			} else {
				have = now
			}
		}
		eventually(t, "it has caught up", func() bool { return n.metric("hub_sessions_behind") == 0 })
	})
}

// fill publishes until the connection of who does not read takes no more.
func (n *node) fill(src *truth) {
	const size = 64 << 10
	for taken := true; taken; {
		before := n.metric("hub_written_bytes_total")
		src.big(n, size)
		taken = false
		for start := time.Now(); !taken && time.Since(start) < 100*time.Millisecond; time.Sleep(time.Millisecond) {
			taken = n.metric("hub_written_bytes_total") >= before+size
		}
	}
}

func TestEverySessionThatFallsOffTheRingOnceGetsASnapshot(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1}
		o.Source, o.RingSize = src, 16
		n := serve(t, o)
		c := n.viewed(view{transport: transport, window: 16 << 10})
		c.expect("hello", "snapshot#1")
		n.fill(src)
		for range 40 {
			src.big(n, 64<<10)
		}
		have, snapshots := int64(1), 0
		for have < src.at() {
			e, err := c.next()
			if err != nil {
				t.Fatalf("ended with %v at %d", err, have)
			}
			have = readable(t, e, have)
			if e.Event == "snapshot" {
				snapshots++
			}
		}
		src.step(n.Hub, 1)
		c.expect(fmt.Sprintf("delta#%d", src.at()))
		if fell := n.metric("hub_fell_off_total"); snapshots != 1 || fell != 1 {
			t.Errorf("fell off %v times and got %d snapshots, want one for one", fell, snapshots)
		}
	})
}

func TestEverySessionSlowerThanTheRingIsClosedAsSlow(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1, fill: 512 << 10}
		o.Source, o.RingSize = src, 2
		n := serve(t, o)
		c := n.viewed(view{transport: transport, window: 16 << 10})
		c.expect("hello", "snapshot#1")
		end, over := make(chan error, 1), make(chan struct{})
		go func() {
			for {
				if _, err := c.next(); err != nil {
					end <- err
					return
				}
				select {
				case <-over:
				case <-time.After(30 * time.Millisecond):
				}
			}
		}()
		eventually(t, "it is closed as slow", func() bool {
			for range 8 {
				src.big(n, 64<<10)
			}
			return n.metric("hub_closes_total", "slow") == 1
		})
		close(over)
		if told, is := (<-end).(closed); is && told.code != hub.CloseSlow {
			t.Errorf("was told %v", told)
		}
		n.forgotten()
	})
}

// A client that never reads is closed at its write deadline, and meanwhile
// nobody waits for it.
func TestADeadReaderDelaysNobodyAndIsClosed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1}
		o.Source, o.WriteTimeout = src, 1200*time.Millisecond
		n := serve(t, o)
		n.view(view{transport: transport, window: 4 << 10})
		well := n.viewed(view{transport: transport})
		well.expect("hello", "snapshot#1")
		worst := time.Duration(0)
		eventually(t, "it is closed as slow", func() bool {
			start := time.Now()
			src.big(n, 256<<10)
			well.expect(fmt.Sprintf("delta#%d", src.at()))
			worst = max(worst, time.Since(start))
			time.Sleep(10 * time.Millisecond) // as ticks come
			return n.metric("hub_closes_total", "slow") == 1
		})
		if worst > time.Second { // had it waited for the write, it would be its whole deadline
			t.Errorf("a reader waited %v for a dead one", worst)
		}
		if got := n.metric("hub_sessions"); got != 1 {
			t.Errorf("%v sessions are left, want the well one", got)
		}
		eventually(t, "nobody is behind", func() bool { return n.metric("hub_sessions_behind") == 0 })
	})
}
