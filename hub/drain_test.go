package hub_test

import (
	"context"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"seatcast/hub"
)

// drained is what a client saw of a drain.
type drained struct {
	last int64 // number it held at the end
	at   time.Time
	hint string
}

// Sessions are sent away evenly over the window, each with its own hint, and
// until its turn a session gets every frame.
func TestADrainServesEverySessionUntilItsTurn(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o hub.Options, transport string) {
		const sessions, over = 40, 600 * time.Millisecond
		src := &truth{n: 1}
		o.Source = src
		n := serve(t, o)
		ends := make([]drained, sessions)
		var reading sync.WaitGroup
		for i := range sessions {
			c := n.viewed(view{transport: transport})
			c.expect("hello", "snapshot#1")
			reading.Go(func() { ends[i] = c.drained() })
		}
		pace := newPace(n, src)
		begun := time.Now()
		if err := n.Drain(context.Background(), over); err != nil {
			t.Error(err)
		}
		reading.Wait()
		pace.stop()

		sort.Slice(ends, func(i, j int) bool { return ends[i].at.Before(ends[j].at) })
		hints := map[string]bool{}
		for i, e := range ends {
			hints[e.hint] = true
			if want := pace.before(e.at.Add(-200 * time.Millisecond)); e.last < want {
				t.Errorf("session %d left with %d when %d was long published", i, e.last, want)
			}
		}
		if len(hints) < sessions/2 {
			t.Errorf("only %d different hints", len(hints))
		}
		if half := ends[sessions/2].at.Sub(begun); half < over/4 || half > 4*over { // a busy machine is late; in fake time it is exact
			t.Errorf("half had left after %v of %v", half, over)
		}
		if got := n.metric("hub_closes_total", "drain"); got != sessions {
			t.Errorf("%v were closed by the drain", got)
		}
		n.forgotten()
	})
}

// drained reads to the end, and closes then as a client does.
func (c *viewer) drained() drained {
	d := drained{last: 1}
	for {
		e, err := c.next()
		if err != nil {
			d.at, d.hint = time.Now(), c.retry
			_ = c.conn.Close()
			if told, is := err.(closed); is && told.code != hub.CloseDrain {
				c.tb.Error(err)
			}
			return d
		}
		if e.Event != "delta" {
			continue
		}
		if e.number("prev") != d.last {
			c.tb.Errorf("%v (prev %d) after %d", e, e.number("prev"), d.last)
		}
		d.last = e.ID
	}
}

// pace publishes, and remembers when it did.
type pace struct {
	stop  func()
	times []time.Time // of the frames 2, 3, …
}

func newPace(n *node, src *truth) *pace {
	p := &pace{}
	p.stop = again(3*time.Millisecond, func() {
		src.step(n.Hub, 1)
		p.times = append(p.times, time.Now())
	})
	return p
}

// before is the last number published before a moment.
func (p *pace) before(at time.Time) int64 {
	i, _ := slices.BinarySearchFunc(p.times, at, time.Time.Compare)
	return int64(i) + 1
}
