package hub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever happens in whatever order, nobody goes back in time, everybody ends
// at the truth, and nobody is stepped for nothing.
func TestWhateverHappensEverybodyEndsAtTheTruth(t *testing.T) {
	t.Parallel()
	seeds := uint64(350)
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

func TestWhatIsAskedWithoutReadingTheAnswersWaitsAndHasABound(t *testing.T) {
	src := &state{n: 1}
	machine(t, Options{Source: src, WriteTimeout: time.Hour}, func(t *testing.T, b *bench) {
		s, k := b.sit(ws, 0)
		b.pass(time.Millisecond)
		ask := func(times int) {
			k.room = 10
			src.step(b.hub, 1, 0)
			b.pass(time.Millisecond)
			for range times {
				s.put(ask{topic: "nowhere", data: []byte("{}")})
				b.pass(time.Millisecond)
				if len(k.kept) > 1 {
					t.Fatalf("%d answers are kept behind a frame that is not taken", len(k.kept)-1)
				}
			}
		}
		ask(maxAsked)
		k.room = -1
		s.rouse()
		b.pass(time.Millisecond)
		answers := 0
		for _, g := range k.got {
			if g.event == eventError {
				answers++
			}
		}
		if answers != maxAsked || k.ended {
			t.Fatalf("%d of %d were answered once it read, ended: %v %v", answers, maxAsked, k.ended, k.code)
		}
		ask(maxAsked + 1)
		if !k.ended || k.code != CloseTooMany {
			t.Errorf("ended %v %v, want too_many_asks", k.ended, k.code)
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
