package hub_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"seatcast/hub"
)

// everyTopic publishes the same numbers for all topics, until it is stopped.
func everyTopic(n *node, src *truth, topics []string, pause time.Duration) (stop func()) {
	return again(pause, func() {
		at := src.next()
		for _, name := range topics {
			n.Publish(name, at-1, []int64{at}, time.Now(), delta(at-1, at))
		}
	})
}

// topicOf is which topic a message is of.
func topicOf(e event) string {
	var m struct{ Topic string }
	_ = json.Unmarshal([]byte(e.Data), &m)
	return m.Topic
}

// A socket takes topics on and leaves them as fast as it can while frames of
// all of them are published: a join lands at every point of a fan-out.
func TestTopicsTakenOnAndLeftWhilePublishingMissNothing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, o hub.Options) {
		src := &truth{n: 100}
		o.Source, o.RingSize, o.Limits.Messages = src, 5000, -1 // half a second: nobody here is too slow
		n := serve(t, o)
		topics := []string{"seatmap/a", "seatmap/b", "seatmap/c"}
		stop := everyTopic(n, src, topics, 100*time.Microsecond)
		defer stop()
		c := n.viewed(view{transport: "ws", mute: true})
		rng := rand.New(rand.NewPCG(3, 3))
		have := map[string]int64{} // of the topics that are on
		for round := range 1500 {
			name := topics[rng.IntN(3)]
			last, on := have[name]
			if on && rng.IntN(2) == 0 {
				c.say(fmt.Sprintf(`{"unsub":%q}`, name))
				on = false
			} else { // also what is on already, with the number it holds or without
				last *= rng.Int64N(2)
				c.say(fmt.Sprintf(`{"sub":%q,"since":%d}`, name, last))
				on = true
			}
			c.say(fmt.Sprintf(`{"sub":"barrier/%d"}`, round))
			for told := false; ; {
				e, err := c.next()
				if err != nil {
					t.Fatal(err)
				}
				of := topicOf(e)
				if of == fmt.Sprintf("barrier/%d", round) {
					break
				}
				if e.Event == "error" {
					t.Fatalf("%s", e.Data)
				}
				if of == name && on && e.Event == "hello" {
					have[name], told = last, true
					continue
				}
				if _, in := have[of]; !in && (of != name || !told) {
					t.Fatalf("%v of %s, which it does not watch", e, of)
				}
				have[of] = checkOne(t, e, have[of])
			}
			if !on {
				delete(have, name)
			}
		}
	})
}

// What is said in the packet of the request itself is heard, however much.
func TestWhatIsSaidWithTheHandshakeIsHeard(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		o.Source, o.Limits = &truth{n: 1}, hub.Limits{Topics: 64, Messages: 100}
		n := serve(t, o)
		for _, count := range []int{1, 3, 50} {
			var early strings.Builder
			for i := range count {
				early.WriteString(masked(0x81, fmt.Sprintf(`{"sub":"seatmap/%d-%s"}`, i, strings.Repeat("x", 50))))
			}
			c := n.viewed(view{transport: "ws", early: early.String()})
			for hellos := 0; hellos < count; {
				e, err := c.next()
				if err != nil {
					t.Fatalf("%v after %d of %d", err, hellos, count)
				}
				if e.Event == "hello" {
					if want := fmt.Sprintf("seatmap/%d-", hellos); !strings.HasPrefix(topicOf(e), want) {
						t.Fatalf("hello %d is of %s", hellos, topicOf(e))
					}
					hellos++
				}
			}
			_ = c.conn.Close()
		}
		c := n.viewed(view{transport: "sse", early: strings.Repeat("not a request\r\n", 100)})
		c.expect("hello", "snapshot#1")
	})
}
