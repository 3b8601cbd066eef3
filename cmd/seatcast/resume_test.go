package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/seatmap"
)

// history makes changes, in bursts that fall into one tick, until each node
// has merged some into one frame. It returns every number the log has from the
// first that all nodes have in a frame.
func (h *house) history(nodes ...*node) []int64 {
	h.t.Helper()
	var read []*frames
	for _, n := range nodes {
		fs := openSSE(h.t, n, h.event, 0)
		for _, want := range []string{"hello", "snapshot"} {
			if f := fs.next(); f.Type != want {
				h.t.Fatalf("a stream began with %v, not a %s", f, want)
			}
		}
		read = append(read, fs)
	}
	var first int64
	merged := make([]bool, len(nodes))
	seats := h.seats(h.chart.Seats)
	for burst := 0; slices.Contains(merged, false); burst++ {
		if len(seats) < 5 {
			h.t.Fatal("no node merged two changes into one frame")
		}
		h.burst(nodes, seats[:5])
		seats = seats[5:]
		last := h.last()
		for i, fs := range read {
			for f := fs.next(); ; f = fs.next() {
				if first == 0 || burst == 0 {
					first = max(first, f.Prev)
				}
				merged[i] = merged[i] || h.merged(f) > 1
				if f.N >= last {
					break
				}
			}
		}
	}
	var numbers []int64
	for _, c := range h.log(context.Background()) {
		if c.N >= first {
			numbers = append(numbers, c.N)
		}
	}
	return numbers
}

// burst holds each seat for an account of its own, all at once.
func (h *house) burst(nodes []*node, seats []string) {
	h.t.Helper()
	var all sync.WaitGroup
	for i, seat := range seats {
		s := h.shopper(nodes[i%len(nodes)], "buyer of "+seat)
		all.Go(func() {
			if a := s.hold(h.event, "", seat); a.status != http.StatusCreated {
				h.t.Errorf("hold: %d %s", a.status, a.raw)
			}
		})
	}
	all.Wait()
}

// last is the number of the event's last change.
func (h *house) last() int64 {
	h.t.Helper()
	n, err := h.rdb.Get(context.Background(), seatmap.SeqKey(h.event)).Int64()
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// merged counts the changes of the log that are in a frame.
func (h *house) merged(f frame) (n int) {
	for _, c := range h.log(context.Background()) {
		if c.N > f.Prev && c.N <= f.N {
			n++
		}
	}
	return n
}

// mapAt is the map as the log says it was at number n.
func mapAt(log []seatmap.Change, seats int, n int64) seatmap.Map {
	m := seatmap.NewMap(seats)
	for _, c := range log {
		if c.N <= n {
			c.Apply(m)
		}
	}
	return m
}

// Every number there ever was, on the node that sent it and on the other one,
// at the end of a frame and in the middle.
func TestAWatcherThatResumesGetsExactlyWhatItMissed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	numbers := h.history(nodes...)
	log := h.log(t.Context())
	last := numbers[len(numbers)-1]
	var upToDate []*frames
	for way, open := range ways {
		for i, n := range nodes {
			for _, have := range numbers {
				fs := open(t, n, h.event, have)
				who := fmt.Sprintf("%s, node %d, from %d of %v", way, i, have, numbers)
				hello := fs.next()
				if hello.Type != "hello" || hello.id != "" && hello.id != fmt.Sprint(have) {
					t.Fatalf("%s: began with %v, id %s", who, hello, hello.id)
				}
				if have == last {
					upToDate = append(upToDate, fs)
					continue
				}
				m := mapAt(log, h.chart.Seats, have)
				catchUp(t, who, fs, m, have, last)
				if want := mapAt(log, h.chart.Seats, last); !bytes.Equal(m, want) {
					t.Errorf("%s: %s", who, differ(want, m))
				}
			}
		}
	}
	h.burst(nodes, h.seats(h.chart.Seats)[h.chart.Seats-1:])
	for _, fs := range upToDate {
		if f := fs.next(); f.Type != "delta" || f.Prev != last {
			t.Errorf("to a watcher who had everything, up to %d, came %v", last, f)
		}
	}
}

// catchUp applies the deltas that take m from one number to another, and fails
// when there is one too many or too few.
func catchUp(t *testing.T, who string, fs *frames, m seatmap.Map, have, last int64) {
	t.Helper()
	for first := true; have < last; first = false {
		f := fs.next()
		fits := f.Prev == have || first && f.Prev < have
		if f.Type != "delta" || !fits || f.N <= have {
			t.Fatalf("%s: at %d came %v", who, have, f)
		}
		applyDelta(t, m, f)
		have = f.N
	}
	if have != last {
		t.Fatalf("%s: came to %d, past %d", who, have, last)
	}
}

func applyDelta(t *testing.T, m seatmap.Map, f frame) {
	t.Helper()
	var d seatmap.Delta
	if err := json.Unmarshal(f.raw, &d); err != nil {
		t.Fatal(err)
	}
	c := seatmap.Change{Reserved: d.Reserved, Released: d.Released, Booked: d.Booked, Closed: d.Closed}
	c.Apply(m)
}

// A number that is in nobody's ring: never given, too old for this node, of
// a future nobody ever reaches, and of a history Redis has forgotten.
func TestANumberTheServerDoesNotKnowGetsASnapshot(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	old := h.node()
	numbers := h.history(old)
	last := numbers[len(numbers)-1]
	young := h.node() // its ring begins now
	cases := []struct {
		why   string
		n     *node
		since int64
		reset bool
	}{
		{"never given, between two that were", old, numbers[0] + 1, false},
		{"from before everything", old, 12345, false},
		{"known to the old node, too old for the young one", young, numbers[1], false},
		{"above everything there ever is", old, last + time.Hour.Microseconds(), true},
		{"above everything there ever is", young, last + time.Hour.Microseconds(), true},
	}
	var all sync.WaitGroup
	for _, c := range cases {
		for way, open := range ways {
			all.Go(func() {
				who := way + ": " + c.why
				fs := open(t, c.n, h.event, c.since)
				wantSnapshot(t, who, fs, last, c.reset)
			})
		}
	}
	all.Wait()

	told := []*watcher{watch(t, h.event, old.url), watch(t, h.event, young.url)}
	eventually(t, 5*time.Second, "both nodes are watched", func() bool { return told[0].number() > 0 && told[1].number() > 0 })
	lost := h.forget(func() { h.burst([]*node{old}, h.seats(h.chart.Seats)[h.chart.Seats-1:]) })
	eventually(t, 5*time.Second, "the fork is seen, numbered over, and told by both nodes", func() bool {
		return h.last() > lost && told[0].restarts() > 0 && told[1].restarts() > 0
	})
	for way, open := range ways {
		for _, n := range []*node{old, young} {
			wantSnapshot(t, way+": of a lost history", open(t, n, h.event, lost), lost+1, false)
		}
	}
}

// wantSnapshot reads hello, a reset if there is to be one, and a snapshot of
// atLeast.
func wantSnapshot(t *testing.T, who string, fs *frames, atLeast int64, reset bool) {
	t.Helper()
	want := []string{"hello", "snapshot"}
	if reset {
		want = []string{"hello", "reset", "snapshot"}
	}
	for _, kind := range want {
		f, err := fs.read()
		switch {
		case err != nil || f.Type != kind:
			t.Errorf("%s: got %v, %v, want a %s", who, f, err, kind)
			return
		case kind == "snapshot" && f.N < atLeast:
			t.Errorf("%s: snapshot %d is older than %d", who, f.N, atLeast)
		case kind != "snapshot" && f.id != "" && f.id != "0":
			t.Errorf("%s: %s has id %s although nothing is held", who, kind, f.id)
		}
	}
}

// forget has Redis lose what change writes, as a failover does, and returns
// the last number that was lost.
func (h *house) forget(change func()) (lost int64) {
	h.t.Helper()
	ctx := h.t.Context()
	kept := map[string]*redis.StringCmd{}
	for _, key := range h.rdb.Keys(ctx, "*").Val() {
		kept[key] = h.rdb.Dump(ctx, key)
	}
	before := h.last()
	change()
	eventually(h.t, 5*time.Second, "the change is true", func() bool { return h.last() > before })
	lost = h.last()
	_, err := h.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.FlushAll(ctx)
		for key, dump := range kept {
			p.Restore(ctx, key, 0, dump.Val())
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return lost
}

// Cut again and again, each time to the other node, while the map changes all
// the time: a watcher's map never goes back, and in the end it is the truth.
func TestAWatcherThatHopsBetweenNodesNeverGoesBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	hopping := []*watcher{
		watch(t, h.event, nodes[0].url, nodes[1].url),
		watchSocket(t, h.event, nodes[1].url, nodes[0].url),
	}
	for _, w := range hopping {
		eventually(t, 5*time.Second, "the first map", func() bool { return w.number() > 0 })
	}
	seats := h.seats(40)
	for i, seat := range seats {
		s := h.shopper(nodes[i%2], fmt.Sprint("buyer ", i))
		b := s.hold(h.event, "", seat).want(t, http.StatusCreated, "")
		if i%3 == 0 {
			s.giveBack(b.BookingID).want(t, http.StatusNoContent, "")
		}
		hopping[i%2].hop()
	}
	for _, w := range hopping {
		w.sees(2*time.Second, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
	}
}
