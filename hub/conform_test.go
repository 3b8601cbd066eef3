package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seatcast/hub"
)

// What a session promises, it promises on both engines and over both
// transports. Each claim here is tested over real connections.

func TestEverySessionOpensWithHelloThenSnapshotThenDeltas(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 3}
		o.Source = src
		n := serve(t, o)
		c := n.viewed(view{transport: transport})
		c.expect("hello", "snapshot#3")
		src.step(n.Hub, 2)
		c.expect("delta#5")
		src.step(n.Hub, 1)
		c.expect("delta#6")
	})
}

// Two nodes merge the same changes differently; a client comes with every
// number there is, also one in the middle of a frame.
func TestEverySessionResumesWithExactlyWhatItMissed(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 0}
		o.Source = src
		n := serve(t, o)
		for i, merges := range [][]int{{1, 3, 2, 4}, {10}} {
			base := int64(100 * (i + 1))
			src.set(base) // from what went before a gap: the ring starts anew
			for _, m := range merges {
				src.step(n.Hub, m)
			}
			for since := base; since <= base+10; since++ {
				c := n.viewed(view{transport: transport, since: since})
				c.expect("hello")
				have := since
				for have < base+10 {
					e, err := c.next()
					if err != nil || e.Event != "delta" || e.number("prev") > have || e.number("n") <= have {
						t.Fatalf("merges %v since %d: %v (%v) after %d", merges, since, e, err, have)
					}
					have = e.number("n")
				}
				_ = c.conn.Close()
			}
		}
	})
}

func TestEverySessionWithAnUnknownNumberGetsASnapshot(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1000}
		o.Source, o.RingSize, o.Patience = src, 4, 60*time.Millisecond
		n := serve(t, o)
		for range 10 {
			src.step(n.Hub, 2)
		}
		for _, since := range []int64{1004, 7, 1011} { // trimmed; of another life; trimmed, mid-frame
			n.viewed(view{transport: transport, since: since}).expect("hello", "snapshot#1020")
		}
		// A number of a history that was lost: nothing older is sent before it
		// is said aloud.
		n.viewed(view{transport: transport, since: 5000}).expect("hello", "reset", "snapshot#1020")
	})
}

func TestEverySessionIsToldOfAReset(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 10}
		o.Source = src
		n := serve(t, o)
		c := n.viewed(view{transport: transport})
		c.expect("hello", "snapshot#10")
		src.step(n.Hub, 1)
		c.expect("delta#11")
		src.set(8)
		n.Reset(topic, 8, []byte(`{"n":8}`))
		c.expect("reset", "snapshot#8")
		src.step(n.Hub, 1)
		c.expect("delta#9")
		n.Reset(topic, 9, []byte(`{"n":9,"mended":true}`)) // at the number held: it corrects what is drawn
		c.expect("reset")
		if e, err := c.next(); err != nil || !strings.Contains(e.Data, "mended") {
			t.Errorf("after the reset came %v (%v), want the mended snapshot", e, err)
		}
		n.viewed(view{transport: transport, since: 11}).expect("hello") // a forked number: nothing is resumed from it
		n.viewed(view{transport: transport, since: 9}).expect("hello")
		if got := n.metric("hub_joins_total", "unknown"); got != 1 {
			t.Errorf("%v joined with an unknown number, want the forked one", got)
		}
	})
}

func TestEverySessionIsToldOnceThatATopicIsDegraded(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1}
		o.Source = src
		n := serve(t, o)
		before := n.viewed(view{transport: transport})
		before.expect("hello", "snapshot#1")
		n.Degrade(topic, "redis", "/poll")
		before.expect("degraded")
		during := n.viewed(view{transport: transport})
		during.expect("hello", "degraded", "snapshot#1")
		n.Degrade(topic, "", "")
		after := n.viewed(view{transport: transport})
		after.expect("hello", "snapshot#1")
		src.step(n.Hub, 1)
		before.expect("degraded", "delta#2")
		during.expect("degraded", "delta#2")
		after.expect("delta#2")
	})
}

func TestEverySessionHearsBeatsWithTheNumberItHolds(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 5}
		o.Source, o.Beat = src, 250*time.Millisecond // a client that two pings find busy is closed
		n := serve(t, o)
		c := n.viewed(view{transport: transport})
		c.expect("hello", "snapshot#5")
		for want := int64(5); want < 9; want++ {
			e, err := c.next()
			if err != nil || e.Event != "beat" || e.ID != want || e.number("n") != want || e.number("at") == 0 {
				t.Fatalf("got %v %s (%v), want a beat at %d", e, e.Data, err, want)
			}
			src.step(n.Hub, 1)
			c.expect(fmt.Sprintf("delta#%d", want+1))
		}
		if c.ws && c.pings == 0 {
			t.Error("no ping came with the beats")
		}
	})
}

func TestEverySessionEndsAtARandomAge(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		o.Source, o.MaxAge = &truth{n: 1}, 250*time.Millisecond
		n := serve(t, o)
		start, first := time.Now(), time.Duration(0)
		var cs []*viewer
		for range 12 {
			cs = append(cs, n.viewed(view{transport: transport}))
		}
		for _, c := range cs {
			c.ended(hub.CloseAge)
			if first == 0 {
				first = time.Since(start)
			}
		}
		if first < 200*time.Millisecond {
			t.Errorf("the first ended after %v, want four fifths of the greatest age", first)
		}
		n.forgotten()
		if got := n.metric("hub_closes_total", "age"); got != 12 {
			t.Errorf("%v of 12 ended by their age", got)
		}
	})
}

func TestEverySessionEndsWhenWhatLetItInDoes(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1}
		o.Source = src
		n := serve(t, o)
		n.ends = time.Now().Add(time.Second)
		c := n.viewed(view{transport: transport})
		c.expect("hello", "snapshot#1")
		src.step(n.Hub, 1)
		c.expect("delta#2")
		c.ended(hub.CloseAge)
		if early := time.Until(n.ends); early > 10*time.Millisecond {
			t.Errorf("it ended %v too early", early)
		}
		n.forgotten()
		if got := n.metric("hub_closes_total", "age"); got != 1 {
			t.Errorf("%v ended by their age", got)
		}
	})
}

func TestEveryStreamEndsWithItsTopicAndASocketGoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		o.Source = &truth{n: 1}
		n := serve(t, o)
		c := n.viewed(view{transport: transport})
		c.expect("hello", "snapshot#1")
		n.End(topic)
		if !c.ws {
			c.ended(hub.CloseEnded)
			n.forgotten()
			return
		}
		if e, err := c.next(); err != nil || e.Event != "error" || !strings.Contains(e.Data, `"ended"`) {
			t.Fatalf("got %v (%v), want to be told", e, err)
		}
		c.say(`{"sub":"seatmap/other"}`)
		c.expect("hello", "snapshot#1")
	})
}

// A source as slow as the ticks are fast: what it brings is old when it comes,
// and the ring has the rest.
func TestEverySessionJoinsThoughItsSnapshotIsAlwaysOvertaken(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1, pause: func() time.Duration { return 30 * time.Millisecond }}
		o.Source, o.Patience = src, 200*time.Millisecond
		n := serve(t, o)
		stop := publishing(n, src, 5*time.Millisecond, 1)
		defer stop()
		for range 3 {
			c := n.viewed(view{transport: transport})
			c.expect("hello")
			have := int64(0)
			for range 10 {
				e, err := c.next()
				if err != nil {
					t.Fatalf("ended with %v at %d", err, have)
				}
				have = checkOne(t, e, have)
			}
		}
	})
}

// Sessions stay for a moment while frames are published as fast as can be:
// each joins between, before or in the middle of some.
func TestEverySessionThatJoinsWhilePublishingMissesNothing(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		src := &truth{n: 1, lag: nil}
		o.Source, o.RingSize = src, 16
		n := serve(t, o)
		stop := publishing(n, src, 200*time.Microsecond, 3)
		defer stop()
		for i := range 150 {
			v := view{transport: transport}
			if i%2 == 0 {
				v.since = src.at() - int64(i%40)
			}
			c := n.viewed(v)
			c.expect("hello")
			have := v.since
			for range 5 {
				e, err := c.next()
				if told, is := err.(closed); is && told.code == hub.CloseSlow {
					break // the ring is small, and this machine busy
				}
				if err != nil {
					t.Fatal(err)
				}
				have = checkOne(t, e, have)
			}
			_ = c.conn.Close()
		}
	})
}

// checkOne fails when e would take a client that has a number back in time or
// past a change.
func checkOne(t testing.TB, e event, have int64) int64 {
	t.Helper()
	switch got := e.number("n"); e.Event {
	case "snapshot":
		if got < have {
			t.Fatalf("%v after %d: back in time", e, have)
		}
		return got
	case "delta":
		if e.number("prev") > have || got <= have {
			t.Fatalf("%v (prev %d) after %d", e, e.number("prev"), have)
		}
		return got
	case "reset":
		return 0
	}
	return have
}

// publishing steps src every pause by up to most numbers, until it is stopped.
func publishing(n *node, src *truth, pause time.Duration, most int) (stop func()) {
	i := 0
	return again(pause, func() { src.step(n.Hub, 1+i%most); i++ })
}
