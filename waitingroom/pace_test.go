package waitingroom_test

import (
	"encoding/json"
	"testing"
	"time"

	"seatcast/waitingroom"
)

// slowly is a plan of a room that slows down.
func slowly(rate, burst int) waitingroom.Plan {
	p := plan(rate, burst, 1000)
	p.Terms.Slow = waitingroom.Slow{Hold: time.Second, Checkout: time.Second, Failures: 10}
	return p
}

// fails has a node's checkout fail until the test ends, or stop is called.
func (b *box) fails(rooms *waitingroom.Rooms) (stop func()) {
	over := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-over:
				tick.Stop()
				return
			case <-tick.C:
				rooms.Began(b.event, waitingroom.Paying)(waitingroom.Failed)
			}
		}
	}()
	var stopped bool
	stop = func() {
		if !stopped {
			stopped = true
			close(over)
			<-done
		}
	}
	b.Cleanup(stop)
	return stop
}

func TestARoomSlowsDownOnceWhateverNodeIsInTroubleAndSaysWhyUntilItHasRecovered(t *testing.T) {
	b := newBox(t)
	p := slowly(6000, 5)
	b.must(p.Check())
	b.put(p)
	other := b.node()
	b.run(b.rooms)
	b.run(other)
	b.until("it is at its rate", func(f frame) bool { return f.Pace == 6000 && f.Slowed == nil })
	stop := b.fails(other)
	b.until("it is slow", func(f frame) bool { return f.Pace == 4200 && f.Slowed != nil && *f.Slowed == "failures" })
	var told struct {
		Slow     map[string]int
		Measured map[string]map[string]int
	}
	eventually(t, "an operator is told", func() bool { // also by the node that did not slow it down
		b.must(json.Unmarshal([]byte(b.admin("GET", "", "").Body), &told))
		did := told.Measured["checkout"]
		return did["failed"] > 0 && did["failed"] == did["calls"] && told.Slow["checkoutMs"] == 1000
	})
	stop()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, f := b.frame(b.rooms)
		if f.Pace > 4200 && f.Pace < 6000 {
			if f.Slowed == nil || *f.Slowed != "failures" || f.Eta.Slow > f.Pace {
				t.Errorf("recovering, %+v", f)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not recover: %+v", f)
		}
	}
	p.Terms.Slow = waitingroom.Slow{}
	_, err := b.rooms.Put(t.Context(), b.event, p)
	b.must(err)
	eventually(t, "without limits it is at its rate", func() bool {
		_, f := b.frame(b.rooms)
		return f.Pace == 6000 && f.Slowed == nil
	})
}

func TestARoomThatRedisHadLostBeginsCarefully(t *testing.T) {
	b := newBox(t)
	b.put(slowly(6000, 5))
	b.run(b.rooms)
	b.joins("ann", "")
	b.until("it is at its rate", func(f frame) bool { return f.Pace == 6000 && f.Slowed == nil && f.Serving == 1 })
	eventually(t, "how far it has called is kept", func() bool { return b.count(`SELECT serving FROM rooms`) == 1 })
	b.must(b.rdb.FlushAll(t.Context()).Err())
	b.until("it begins carefully", func(f frame) bool { return f.Pace == 3000 && f.Slowed != nil && *f.Slowed == "restart" })
	b.until("it rises", func(f frame) bool { return f.Slowed != nil && f.Pace > 3000 })
}

func TestWhatADeadNodeSaidIsForgotten(t *testing.T) {
	b := newBox(t)
	b.put(slowly(6000, 5))
	other := b.node()
	stop := b.run(other)
	for range 20 {
		other.Began(b.event, waitingroom.Holding)(waitingroom.Failed)
	}
	said := func() int64 { return b.rdb.HLen(t.Context(), "did:{"+b.event+"}").Val() }
	eventually(t, "it says what it did", func() bool { return said() == 1 })
	stop()
	b.run(b.rooms)
	eventually(t, "another does too", func() bool { return said() == 2 })
	eventually(t, "the dead one is forgotten", func() bool { return said() == 1 })
}

func TestNoMoreAreInsideThanSeatsCanServe(t *testing.T) {
	h := newHall(t, selling(60_000, 1000, 1000))
	for n := range 100 {
		h.join(n)
	}
	h.must(h.line.Left(t.Context(), h.event, 10, 5))
	h.call()
	for n := range 100 {
		h.claim(n)
	}
	f := h.look()
	if f.Inside != 35 || f.Slowed != "" { // all are called
		t.Errorf("with 10 seats free and 5 held %d are inside, slowed by %q", f.Inside, f.Slowed)
	}
	if turn := h.claim(99); !turn.Called || turn.Ahead != 64 {
		t.Errorf("the last is told %+v", turn)
	}
	h.leave(0)
	if turn := h.claim(35); turn.Inside.IsZero() {
		t.Errorf("who is next once one has left is told %+v", turn)
	}
	h.must(h.line.Left(t.Context(), h.event, 3, 0))
	if h.join(200); h.look().Slowed != "seats" {
		t.Errorf("more are inside than will find a seat, and who waits is told %+v", h.look())
	}
}
