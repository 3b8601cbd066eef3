package waitingroom_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	lowest := 6000 // it may have been slowed down again meanwhile
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, f := b.frame(b.rooms)
		lowest = min(lowest, f.Pace)
		if f.Pace > lowest {
			if f.Slowed == nil || *f.Slowed != "failures" || f.Eta.Slow > f.Pace || f.Pace == 6000 {
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
	now, err := b.rdb.Time(t.Context()).Result()
	b.must(err)
	did := "did:{" + b.event + "}"
	b.must(b.rdb.HSet(t.Context(), did, "dead", fmt.Sprintf(`%d {"holds":{"calls":100,"failed":100}}`, now.Add(-6*time.Second).UnixMilli())).Err())
	b.run(b.rooms)
	eventually(t, "it is forgotten", func() bool { return !b.rdb.HExists(t.Context(), did, "dead").Val() })
	if n := b.rdb.HLen(t.Context(), did).Val(); n != 1 {
		t.Errorf("%d nodes say what they did", n)
	}
	if _, f := b.frame(b.rooms); f.Slowed != nil {
		t.Errorf("it slows the room down: %+v", f)
	}
}

func TestWhatWasMeasuredIsOverWhenARoomLetsNobodyIn(t *testing.T) {
	b := newBox(t)
	b.put(slowly(6000, 5))
	hub := waitingroom.New(waitingroom.Options{Line: waitingroom.NewLine(b.rdb), Store: waitingroom.NewStore(b.pool), Keys: b.keys, Seats: b, Log: quiet})
	hears, isHub := prometheus.NewRegistry(), prometheus.NewRegistry()
	hears.MustRegister(b.rooms)
	isHub.MustRegister(hub)
	b.run(b.rooms)
	b.run(hub)
	const p99, of = "waitingroom_checkout_p99_seconds", `"failed":0,`
	eventually(t, "something is measured", func() bool {
		b.rooms.Began(b.event, waitingroom.Paying)(waitingroom.Failed)
		return told(t, hears)[p99] > 0 && strings.Count(b.admin("GET", "", "").Body, of) == 1
	})
	b.admin("POST", "/pause", "").wants(t, "pause", 200, "")
	eventually(t, "nothing is", func() bool {
		return told(t, hears)[p99] == 0 && strings.Count(b.admin("GET", "", "").Body, of) == 2
	})
	eventually(t, "a node that measures nothing knows the room", func() bool { return told(t, isHub)["waitingroom_rate"] == 6000 })
	if _, says := told(t, isHub)[p99]; says {
		t.Error("a node that measures nothing says that nothing is slow")
	}
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
