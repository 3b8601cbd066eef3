package hub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The machine of rings, cursors and deadlines, without a network: an engine
// that steps sessions as the parked one does, and connections that take as
// much as the test says.

// tank is a sink that takes no more than its room. What it has no room for is
// kept, a frame half-written first of all.
type tank struct {
	now   func() time.Duration
	room  int // bytes it takes before it is full; negative: any
	kept  []told
	part  int // bytes of kept[0] that were taken
	since time.Duration
	got   []told
	pings int
	code  Code
	ended bool
}

// told is one thing a client was sent.
type told struct {
	event   string
	n, prev int64
	size    int
}

func (k *tank) greet(_ string, id int64, hello []byte) error {
	return k.give(told{event: eventHello, n: id, size: len(hello)})
}

func (k *tank) send(f *frame) error {
	if _, yes := k.stuck(); yes {
		panic("a stuck sink is sent a frame")
	}
	event, _, _ := strings.Cut(strings.TrimPrefix(string(f.sse), "event: "), "\n")
	return k.give(told{event: event, n: f.n, prev: f.prev, size: len(f.sse)})
}

func (k *tank) say(_, event string, id int64, data []byte) error {
	return k.give(told{event: event, n: id, size: len(data)})
}

func (k *tank) ping() error { k.pings++; return nil }
func (k *tank) bye(c Code)  { k.code, k.ended = c, true }

func (k *tank) give(t told) error {
	if len(k.kept) == 0 {
		k.since = k.now()
	}
	k.kept = append(k.kept, t)
	return k.pour()
}

// pour takes what there is room for.
func (k *tank) pour() error {
	for len(k.kept) > 0 && k.room != 0 {
		left := k.kept[0].size - k.part
		if k.room > 0 && k.room < left {
			k.part += k.room
			k.room, k.since = 0, k.now()
			break
		}
		if k.room > 0 {
			k.room -= left
		}
		k.got = append(k.got, k.kept[0])
		k.kept, k.part, k.since = k.kept[1:], 0, k.now()
	}
	return nil
}

func (k *tank) flush() error { return k.pour() }

func (k *tank) stuck() (time.Duration, bool) { return k.since, len(k.kept) > 0 }

// bench is an engine: it steps one session at a time, where the test says.
type bench struct {
	tb    testing.TB
	hub   *Hub
	shard interface { // of the parked engine, to step the sessions instead
		sit(*session)
		work() (moved bool)
	}
	mu     sync.Mutex
	roused map[*session]bool
	awake  chan struct{} // 1: somebody is roused
	on     []*session
	steps  int // since the clock moved
	at     time.Duration
}

// seat is a session's place on the bench.
type seat struct {
	bench   *bench
	session *session
}

func (p *seat) rouse(s *session) {
	p.bench.mu.Lock()
	defer p.bench.mu.Unlock()
	p.bench.roused[p.session] = true
	select {
	case p.bench.awake <- struct{}{}:
	default:
	}
}

func (p *seat) enter(*room, *cursor) member { return p }
func (p *seat) leave(*cursor) member        { return p }
func (p *seat) tell(*fanout)                { p.rouse(nil) }

func newBench(tb testing.TB, o Options) *bench {
	return &bench{tb: tb, hub: New(o), roused: make(map[*session]bool), awake: make(chan struct{}, 1)}
}

// sit opens a session that watches a topic after number since.
func (b *bench) sit(transport string, since int64) (*session, *tank) {
	s := b.hub.newSession(b.hub.metrics.kind(transport, portable), "",
		ask{topic: "t", sub: true, since: since, data: []byte("{}")})
	if err := b.hub.open(s); err != nil {
		b.tb.Fatal(err)
	}
	k := &tank{now: b.hub.now, room: -1}
	s.out = k
	b.on = append(b.on, s)
	if b.shard != nil {
		b.shard.sit(s)
	} else {
		s.drive(&seat{b, s})
	}
	return s, k
}

// run steps whoever is due or roused until nobody is.
func (b *bench) run() {
	for {
		synctest.Wait() // for fetches that can end
		moved := b.shard != nil && b.shard.work()
		for _, s := range append([]*session(nil), b.on...) {
			b.mu.Lock()
			roused := b.roused[s]
			delete(b.roused, s)
			b.mu.Unlock()
			if b.shard == nil && (roused || s.due <= b.hub.now()) {
				moved = true
				b.step(s)
			}
		}
		if !moved {
			return
		}
	}
}

func (b *bench) step(s *session) {
	if now := b.hub.now(); now != b.at {
		b.at, b.steps = now, 0
	}
	if b.steps++; b.steps > 50_000 {
		b.tb.Fatalf("sessions are stepped for ever at %v", b.at)
	}
	if err := s.step(); err != nil {
		b.end(s, codeOf(err))
		return
	}
	if s.due <= b.hub.now() {
		b.tb.Fatalf("after a step at %v the next was due at %v", b.hub.now(), s.due)
	}
}

func (b *bench) end(s *session, why Code) {
	s.out.bye(why)
	b.hub.close(s, why)
	b.forget(s)
}

func (b *bench) forget(s *session) {
	for i, other := range b.on {
		if other == s {
			b.on = append(b.on[:i], b.on[i+1:]...)
			return
		}
	}
}

// pass lets time go by, from one thing that is due to the next.
func (b *bench) pass(d time.Duration) {
	for until := b.hub.now() + d; ; {
		b.run()
		now := b.hub.now()
		if now >= until {
			return
		}
		next := until
		for _, s := range b.on {
			next = min(next, s.due)
		}
		select {
		case <-time.After(next - now):
		case <-b.awake:
		}
	}
}

// state is the source of a topic whose whole state is its number.
type state struct {
	mu    sync.Mutex
	n     int64
	lag   func() int64
	pause func() time.Duration
	fail  error
	asked int
}

func (s *state) Snapshot(context.Context, string) (int64, []byte, error) {
	s.mu.Lock()
	s.asked++
	n, pause, fail := s.n, time.Duration(0), s.fail
	if s.lag != nil {
		n -= s.lag()
	}
	if s.pause != nil {
		pause = s.pause()
	}
	s.mu.Unlock()
	time.Sleep(pause)
	return n, []byte(`{"n":` + strconv.FormatInt(n, 10) + `}`), fail
}

func (*state) Hello(context.Context, string) ([]byte, error) { return []byte("{}"), nil }
func (*state) Poll(string) string                            { return "/poll" }

func (s *state) set(use func()) { s.mu.Lock(); defer s.mu.Unlock(); use() }

// step publishes a frame of count numbers; skip loses as many before it.
func (s *state) step(h *Hub, count, skip int64) {
	s.mu.Lock()
	s.n += skip
	prev := s.n
	s.n += count
	var numbers []int64
	for n := prev + 1; n <= s.n; n++ {
		numbers = append(numbers, n)
	}
	s.mu.Unlock()
	h.Publish("t", prev, numbers, time.Now(), []byte(`{"x":"`+strings.Repeat("x", 50)+`"}`))
}

// forward fails when a client would have gone back in time or missed a change.
func forward(tb testing.TB, since int64, got []told) (have int64) {
	tb.Helper()
	have = since
	for i, t := range got {
		switch t.event {
		case eventSnapshot:
			if t.n < have {
				tb.Fatalf("%d of %v: back in time from %d", i, got, have)
			}
			have = t.n
		case eventDelta:
			if t.prev > have || t.n <= have {
				tb.Fatalf("%d of %v: does not follow %d", i, got, have)
			}
			have = t.n
		case eventReset:
			have = 0
		}
	}
	return have
}

// Whatever happens in whatever order, nobody goes back in time, everybody ends
// at the truth, and nobody is stepped for nothing.
func TestWhateverHappensEverybodyEndsAtTheTruth(t *testing.T) {
	seeds := uint64(500)
	if testing.Short() {
		seeds = 200
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			tb := &seeded{TB: t, seed: seed}
			happen(tb, rand.New(rand.NewPCG(seed, 11)), newBench)
		})
	}
}

// seeded says which seed failed.
type seeded struct {
	testing.TB
	seed uint64
}

func (s *seeded) Fatalf(format string, args ...any) {
	s.Helper()
	s.TB.Fatalf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

func happen(t *seeded, rng *rand.Rand, newBench func(testing.TB, Options) *bench) {
	src := &state{n: 1000}
	var lag int64
	src.lag = func() int64 { return lag }
	src.pause = func() time.Duration { return time.Duration(rand.IntN(120)) * time.Millisecond }
	b := newBench(t, Options{Source: src, RingSize: 1 + rng.IntN(10), Patience: 20 * time.Second,
		WriteTimeout: time.Minute, Beat: time.Second, MaxAge: time.Hour})
	type client struct {
		since int64
		s     *session
		k     *tank
	}
	var all []client
	for range 50 {
		switch rng.IntN(12) {
		case 0, 1:
			c := client{}
			if rng.IntN(2) == 0 {
				c.since = src.n - rng.Int64N(20)
			}
			c.s, c.k = b.sit([]string{sse, ws}[rng.IntN(2)], c.since)
			all = append(all, c)
		case 2, 3, 4:
			src.step(b.hub, 1+rng.Int64N(4), 0)
		case 5:
			src.step(b.hub, 1, rng.Int64N(3)) // a hole
		case 6:
			if rng.IntN(3) == 0 {
				src.set(func() { src.n += 5 })
				b.hub.Reset("t", src.n, []byte("{}"))
			}
		case 7:
			b.hub.Degrade("t", []string{"", "redis"}[rng.IntN(2)], "/poll")
		case 8, 9:
			if len(all) > 0 { // stalled, at once or after a few frames
				c := all[rng.IntN(len(all))]
				c.k.room = rng.IntN(400) * rng.IntN(2)
				c.s.rouse()
			}
		case 10:
			if len(all) > 0 {
				c := all[rng.IntN(len(all))]
				c.k.room = -1
				c.s.rouse()
			}
		case 11:
			behind := rng.Int64N(6) * rng.Int64N(2)
			src.set(func() { lag = behind })
		}
		b.pass(time.Duration(rng.IntN(150)) * time.Millisecond)
	}
	src.set(func() { lag = 0 })
	for _, c := range all {
		c.k.room = -1
		c.s.rouse()
	}
	b.pass(8 * time.Second)
	for i, c := range all {
		start := c.since
		if len(c.k.got) > 0 && c.k.got[0].n == 0 {
			start = 0 // it was told that it holds nothing
		}
		have := forward(t, start, c.k.got)
		switch {
		case c.k.ended && c.k.code != CloseSlow:
			t.Fatalf("client %d was closed %v: %v", i, c.k.code, c.k.got)
		case !c.k.ended && have != src.n:
			t.Fatalf("client %d ends at %d of %d: %v", i, have, src.n, c.k.got)
		}
	}
	b.finish()
}

// finish ends what is left, and checks that nothing is.
func (b *bench) finish() {
	b.tb.Helper()
	for _, s := range append([]*session(nil), b.on...) {
		s.stop(CloseDrain)
	}
	b.run()
	if len(b.on) != 0 || len(b.hub.sessions) != 0 {
		b.tb.Fatalf("%d sessions outlived their end", len(b.on))
	}
	for _, r := range b.hub.rooms {
		if len(r.members) != 0 {
			b.tb.Fatalf("%s has %d members who left", r.name, len(r.members))
		}
	}
	b.hub.fetches.Wait()
}

// machine runs a claim with a clock of its own.
func machine(t *testing.T, o Options, claim func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, o)
		claim(t, b)
		b.finish()
	})
}

func TestAStuckSessionIsClosedOnceNothingWasTakenForItsDeadline(t *testing.T) {
	src := &state{n: 1}
	machine(t, Options{Source: src, WriteTimeout: 5 * time.Second, Beat: time.Second}, func(t *testing.T, b *bench) {
		_, k := b.sit(sse, 0)
		b.pass(time.Millisecond)
		k.room = 10
		src.step(b.hub, 1, 0)
		b.pass(3 * time.Second)
		s := b.on[0]
		k.room = 10 // a little progress, and it has its whole time again
		s.rouse()
		b.pass(4900 * time.Millisecond)
		if k.ended {
			t.Fatal("closed though its connection took something 4.9 s ago")
		}
		b.pass(200 * time.Millisecond)
		if !k.ended || k.code != CloseSlow {
			t.Fatalf("ended %v %v, want slow", k.ended, k.code)
		}
	})
}

func TestNoBeatIsKeptForAStuckSession(t *testing.T) {
	src := &state{n: 1}
	machine(t, Options{Source: src, WriteTimeout: time.Hour, Beat: time.Second}, func(t *testing.T, b *bench) {
		s, k := b.sit(ws, 0)
		b.pass(time.Millisecond)
		k.room = 10
		src.step(b.hub, 1, 0)
		b.pass(time.Minute)
		if len(k.kept) != 1 || k.pings != 0 {
			t.Fatalf("%d things are kept and %d pings were sent, want the frame alone", len(k.kept), k.pings)
		}
		k.room = -1
		s.rouse()
		b.pass(time.Millisecond)
		if last := k.got[len(k.got)-1]; last.event != eventBeat || last.n != 2 || k.pings != 1 {
			t.Errorf("then came %v and %d pings, want the beat that was due", last, k.pings)
		}
	})
}

func TestAStuckSessionEndsByItsAgeToo(t *testing.T) {
	src := &state{n: 1}
	machine(t, Options{Source: src, WriteTimeout: time.Hour, MaxAge: 10 * time.Second}, func(t *testing.T, b *bench) {
		_, k := b.sit(sse, 0)
		b.pass(time.Millisecond)
		k.room = 0
		src.step(b.hub, 1, 0)
		b.pass(10 * time.Second)
		if !k.ended || k.code != CloseAge {
			t.Errorf("ended %v %v, want age", k.ended, k.code)
		}
	})
}

func TestASessionOwedASnapshotThatNeverComesIsClosedAfterItsPatience(t *testing.T) {
	src := &state{n: 1, fail: context.DeadlineExceeded}
	machine(t, Options{Source: src, Patience: 2 * time.Second}, func(t *testing.T, b *bench) {
		_, k := b.sit(sse, 0)
		b.pass(1900 * time.Millisecond)
		if k.ended {
			t.Fatal("closed before its patience was over")
		}
		if src.asked < 5 || src.asked > 15 {
			t.Errorf("asked %d times in 1.9 s, want it spaced out", src.asked)
		}
		b.pass(600 * time.Millisecond)
		if !k.ended || k.code != CloseNoSnapshot {
			t.Errorf("ended %v %v, want no_snapshot", k.ended, k.code)
		}
	})
}

func TestASecondFallOffTheRingWithoutCatchingUpIsSlow(t *testing.T) {
	src := &state{n: 1}
	machine(t, Options{Source: src, RingSize: 3}, func(t *testing.T, b *bench) {
		s, k := b.sit(sse, 0)
		b.pass(time.Millisecond)
		fall := func(room int) {
			k.room = 0
			for range 6 {
				src.step(b.hub, 1, 0)
				b.pass(time.Millisecond)
			}
			k.room = room
			s.rouse()
			b.pass(time.Millisecond)
		}
		fall(-1)
		fall(-1)
		if forward(t, 0, k.got) != src.n || k.ended {
			t.Fatalf("who catches up each time may fall again: %v", k.got)
		}
		fall(100) // room for the frame that was begun and a part of the snapshot
		fall(-1)
		if !k.ended || k.code != CloseSlow {
			t.Errorf("ended %v %v, want slow: %v", k.ended, k.code, k.got)
		}
	})
}

// A source that lags is behind whatever is asked of it, but reaches what the
// topic was at when it was asked first.
func TestASourceThatLagsLetsASessionJoin(t *testing.T) {
	src := &state{n: 10}
	src.lag = func() int64 { return 6 }
	machine(t, Options{Source: src, Patience: 2 * time.Second}, func(t *testing.T, b *bench) {
		src.step(b.hub, 1, 0)
		_, k := b.sit(sse, 0)
		for range 40 {
			b.pass(50 * time.Millisecond)
			src.step(b.hub, 1, 0)
		}
		b.pass(time.Millisecond)
		if have := forward(t, 0, k.got); have != src.n {
			t.Errorf("at %d of %d, ended: %v %v", have, src.n, k.ended, k.code)
		}
	})
}

// A client comes from a node that is a little ahead.
func TestANumberThisNodeHasNotHeardOfYetIsWaitedFor(t *testing.T) {
	src := &state{n: 10}
	machine(t, Options{Source: src, Patience: 2 * time.Second}, func(t *testing.T, b *bench) {
		src.step(b.hub, 1, 0)
		b.sit(sse, 0)
		b.pass(time.Millisecond)
		_, k := b.sit(sse, 14)
		b.pass(time.Second)
		if len(k.got) != 1 {
			t.Fatalf("got %v before this node knows the number", k.got)
		}
		if src.asked > 2 {
			t.Errorf("the source was asked %d times though nothing had changed", src.asked)
		}
		src.step(b.hub, 3, 0)
		b.pass(500 * time.Millisecond)
		src.step(b.hub, 1, 0)
		b.pass(time.Millisecond)
		if have := forward(t, 14, k.got); have != 15 || k.got[1].event != eventSnapshot {
			t.Errorf("got %v, want the state at its number, and what follows", k.got)
		}
	})
}

func TestAStopBeforeAnyEngineHasTheSessionCounts(t *testing.T) {
	machine(t, Options{Source: &state{n: 1}}, func(t *testing.T, b *bench) {
		s := b.hub.newSession(b.hub.metrics.kind(sse, portable), "", ask{topic: "t", sub: true, data: []byte("{}")})
		if err := b.hub.open(s); err != nil {
			t.Fatal(err)
		}
		drained := make(chan error, 1)
		go func() { drained <- b.hub.Drain(context.Background(), 0) }()
		synctest.Wait()
		s.out = &tank{now: b.hub.now, room: -1}
		s.drive(&seat{b, s})
		b.on = append(b.on, s)
		b.run()
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}
