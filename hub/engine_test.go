package hub

import (
	"context"
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
