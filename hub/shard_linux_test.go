package hub

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// pew is a shard whose sessions have tanks for connections; the kernel knows
// nothing of them.
type pew struct {
	*shard
	bench *bench
	fds   int
	ticks int // since the clock moved
	at    time.Duration
}

// still is the connection of such a session.
type still struct {
	fd   int
	gone func()
}

func (c *still) watch(*epoll, int32) (int, error) { return c.fd, nil }
func (c *still) part(*epoll, Code)                { c.gone() }

func newPews(tb testing.TB, o Options) *bench {
	b := newBench(tb, o)
	sh, err := newShard(&lot{hub: b.hub, ctx: context.Background()})
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { _ = sh.poll.close() })
	b.shard, b.awake = &pew{shard: sh, bench: b}, sh.wake
	return b
}

func (p *pew) sit(s *session) { p.park(s) }

func (p *pew) park(s *session) *berth {
	p.fds++
	c := &still{fd: p.fds, gone: func() { p.bench.forget(s) }}
	b := &berth{shard: p.shard, session: s, fd: -1, index: unparked, conn: c}
	p.rouse(b)
	return b
}

// busy reports whether there is anything to do now.
func (p *pew) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.roused)+len(p.heard)+len(p.walks) > 0 || len(p.agenda) > 0 && p.agenda[0].session.due <= p.at
}

// work is what run does until there is nothing to do now.
func (p *pew) work() (moved bool) {
	if now := p.bench.hub.now(); now != p.at {
		p.at, p.ticks = now, 0
	}
	for p.busy() {
		if p.ticks++; p.ticks > 50_000 {
			p.bench.tb.Fatalf("the shard works for ever at %v", p.at)
		}
		moved = true
		p.shard.work()
	}
	for _, b := range p.agenda {
		if b.session.due <= p.at {
			p.bench.tb.Fatalf("after its work at %v a session is due at %v", p.at, b.session.due)
		}
	}
	return moved
}

// The same interleavings through groups and walks.
func TestWhateverHappensEverybodyInAShardEndsAtTheTruth(t *testing.T) {
	t.Parallel()
	seeds := uint64(350)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			happen(&seeded{TB: t, seed: seed}, rand.New(rand.NewPCG(seed, 12)), newPews)
		})
	}
}

func shardOf(b *bench) *pew {
	p, _ := b.shard.(*pew)
	return p
}

// pews runs a claim on a shard with a clock of its own.
func pews(t *testing.T, o Options, claim func(t *testing.T, b *bench, p *pew)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newPews(t, o)
		claim(t, b, shardOf(b))
		b.finish()
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// next publishes the topic's next frame.
func (s *state) next(h *Hub, topic string) (walked <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return h.Publish(topic, s.n-1, []int64{s.n}, time.Now(), []byte("{}"))
}

func TestAFrameThatComesDuringAWalkHasAWalkOfItsOwn(t *testing.T) {
	src := &state{n: 1}
	pews(t, Options{Source: src}, func(t *testing.T, b *bench, p *pew) {
		var ks []*tank
		for range 3*stride + 1 {
			_, k := b.sit(sse, 0)
			ks = append(ks, k)
		}
		b.run()
		first := src.next(b.hub, "t")
		p.shard.work()
		second := src.next(b.hub, "t")
		for !isClosed(first) {
			if !p.shard.work() {
				t.Fatal("the first frame's fan-out never ended")
			}
		}
		if isClosed(second) {
			t.Error("the second frame was walked with the first, though some had been passed")
		}
		for p.shard.work() {
		}
		if !isClosed(second) {
			t.Error("the second frame's fan-out never ended")
		}
		for _, k := range ks {
			if forward(t, 0, k.got) != src.n {
				t.Fatalf("one got %v", k.got)
			}
		}
	})
}

func TestAWordThatComesDuringAWalkReachesThoseWhoWerePassed(t *testing.T) {
	for name, c := range map[string]struct {
		say   func(h *Hub)
		heard int // by all together: who was not passed yet hears only what is newest
	}{
		eventDegraded: {func(h *Hub) { h.Degrade("t", "redis", "/poll") }, 3 * stride},
		eventReset:    {func(h *Hub) { h.Reset("t", 2, []byte("{}")) }, 2 * stride},
	} {
		pews(t, Options{Source: &state{n: 2}}, func(t *testing.T, b *bench, p *pew) {
			var ks []*tank
			for range 2 * stride {
				_, k := b.sit(sse, 0)
				ks = append(ks, k)
			}
			b.run()
			b.hub.Degrade("t", "nats", "/poll")
			p.shard.work()
			c.say(b.hub)
			b.run()
			heard := 0
			for _, k := range ks {
				for _, got := range k.got {
					if got.event == name {
						heard++
					}
				}
			}
			if heard != c.heard {
				t.Errorf("%s was heard %d times, want %d", name, heard, c.heard)
			}
		})
	}
}

func TestAFanOutEndsThoughEverybodyLeavesMeanwhile(t *testing.T) {
	src := &state{n: 1}
	pews(t, Options{Source: src}, func(t *testing.T, b *bench, p *pew) {
		for range 2 * stride {
			b.sit(sse, 0)
		}
		b.run()
		walked := src.next(b.hub, "t")
		p.shard.work()
		if isClosed(walked) {
			t.Fatal("walked at once: the test proves nothing")
		}
		for _, s := range append([]*session(nil), b.on...) {
			s.stop(CloseDrain)
		}
		for p.shard.work() {
		}
		if len(b.on) != 0 || !isClosed(walked) {
			t.Errorf("%d are left, walked: %v", len(b.on), isClosed(walked))
		}
		if len(p.groups) != 0 {
			t.Errorf("%d groups of nobody are kept", len(p.groups))
		}
	})
}

// A frame published while the shard parts with its sessions, one after the
// other, is told to those who are left.
func TestAFanOutEndsThoughRunEndsMeanwhile(t *testing.T) {
	src := &state{n: 1}
	pews(t, Options{Source: src}, func(t *testing.T, b *bench, p *pew) {
		var walked []<-chan struct{}
		for range 10 {
			b.sit(sse, 0)
		}
		b.run()
		for _, a := range p.agenda {
			c, _ := a.conn.(*still)
			gone := c.gone
			c.gone = func() { gone(); walked = append(walked, src.next(b.hub, "t")) }
		}
		if err := p.shut(); err != nil {
			t.Error(err)
		}
		for i, c := range walked {
			if !isClosed(c) {
				t.Fatalf("the fan-out of frame %d never ended", i)
			}
		}
		if len(walked) != 10 {
			t.Errorf("%d of 10 parted", len(walked))
		}
	})
}

func TestABigTopicDoesNotStarveASmallOne(t *testing.T) {
	src := &state{n: 1}
	pews(t, Options{Source: src}, func(t *testing.T, b *bench, p *pew) {
		for range 20 * stride {
			b.sit(sse, 0)
		}
		s := b.hub.newSession(b.hub.metrics.kind(sse, parked), "", ask{topic: "small", sub: true, data: []byte("{}")})
		k := &tank{now: b.hub.now, room: -1}
		s.out = k
		if err := b.hub.open(s); err != nil {
			t.Fatal(err)
		}
		b.on = append(b.on, s)
		p.park(s)
		b.run()
		other := &state{n: 1}
		for range 5 {
			big := src.next(b.hub, "t")
			if p.shard.work(); isClosed(big) {
				t.Fatal("one turn walks everybody")
			}
			before := len(k.got)
			small := other.next(b.hub, "small")
			for turns := 0; len(k.got) == before; turns++ {
				if turns > 2 {
					t.Fatalf("the small topic waits for %d turns of the big one", turns)
				}
				p.shard.work()
			}
			if !isClosed(small) {
				t.Error("its fan-out is not over")
			}
		}
		b.run()
	})
}

// The kernel may still tell of one who had a descriptor before.
func TestNewsOfWhoHadADescriptorBeforeIsNotForItsSuccessor(t *testing.T) {
	pews(t, Options{Source: &state{n: 1}}, func(t *testing.T, b *bench, p *pew) {
		b.sit(sse, 0)
		b.run()
		old := p.agenda[0]
		p.end(old, CloseGone)
		b.sit(sse, 0)
		p.shard.mu.Lock()
		c, _ := p.shard.roused[0].conn.(*still)
		p.shard.mu.Unlock()
		c.fd = old.fd
		b.run()
		p.hear(event{fd: old.fd, life: old.life, gone: true})
		if len(b.on) != 1 {
			t.Fatal("the successor was ended by its predecessor's going")
		}
		p.hear(event{fd: old.fd + 1000, life: old.life, gone: true}) // never parked
		p.hear(event{fd: old.fd, life: p.agenda[0].life, gone: true})
		if len(b.on) != 0 {
			t.Error("it did not end though its own client has gone")
		}
	})
}

// A descriptor the kernel will not watch: its session ends and it is closed.
func TestAConnectionThatCannotBeWatchedIsClosed(t *testing.T) {
	h := New(Options{Source: &state{n: 1}})
	l := &lot{hub: h, ctx: t.Context()}
	sh, err := newShard(l)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0) // a file cannot be waited for
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	s := h.newSession(h.metrics.kind(sse, parked), "", ask{topic: "t", sub: true, data: []byte("{}")})
	if err := h.open(s); err != nil {
		t.Fatal(err)
	}
	p := &stream{now: h.now, traffic: s.kind.traffic}
	p.berth = berth{shard: sh, session: s, fd: fd, index: unparked, conn: p}
	s.out = p
	sh.rouse(&p.berth)
	sh.work()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, syscall.EBADF) {
		t.Errorf("its descriptor is still open (%v)", err)
	}
	if len(h.sessions) != 0 {
		t.Error("its session is still on")
	}
	if err := sh.shut(); err != nil {
		t.Error(err)
	}
}

func TestAClientThatLeavesBeforeItIsParkedIsNoWarning(t *testing.T) {
	var said bytes.Buffer
	h := New(Options{Source: &state{n: 1}, Log: slog.New(slog.NewTextHandler(&said, nil))})
	sh, err := newShard(&lot{hub: h, ctx: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range []error{&net.OpError{Op: "raw-control", Err: net.ErrClosed}, syscall.EPERM} {
		s := h.newSession(h.metrics.kind(sse, parked), "", ask{topic: "t", sub: true, data: []byte("{}")})
		if err := h.open(s); err != nil {
			t.Fatal(err)
		}
		s.out = &tank{now: h.now}
		sh.rouse(&berth{shard: sh, session: s, fd: -1, index: unparked, conn: lost{why}})
		sh.work()
	}
	if lines := strings.Count(said.String(), "\n"); lines != 1 || !strings.Contains(said.String(), syscall.EPERM.Error()) {
		t.Errorf("the log says %q, want what the kernel refused alone", said.String())
	}
	if err := sh.shut(); err != nil {
		t.Error(err)
	}
}

// lost is a connection that cannot be watched.
type lost struct{ why error }

func (c lost) watch(*epoll, int32) (int, error) { return -1, c.why }
func (lost) part(*epoll, Code)                  {}
