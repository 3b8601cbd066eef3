package hub

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// asker is a session that waits for a flight.
type asker struct {
	session
	turn   uint64
	roused int
}

func newAsker() *asker {
	a := &asker{}
	a.driver = rouser{&a.roused}
	return a
}

type rouser struct{ n *int }

func (r rouser) rouse(*session)              { *r.n++ }
func (r rouser) enter(*room, *cursor) member { return nil }
func (r rouser) leave(*cursor) member        { return nil }

func (a *asker) ask(fl *flight, atLeast int64) (n int64, start bool, err error) {
	f, start, err := fl.ask(0, atLeast, &a.turn, &a.session)
	if f != nil {
		n = f.n
	}
	return n, start, err
}

func shot(n int64) *frame { return &frame{n: n} }

func TestAFetchThatBeganBeforeTheAskIsNotTrusted(t *testing.T) {
	fl := &flight{}
	first, second := newAsker(), newAsker()
	if _, start, _ := first.ask(fl, 5); !start {
		t.Fatal("nobody fetches for the first")
	}
	if _, start, _ := second.ask(fl, 9); start {
		t.Fatal("two fetches at once")
	}
	fl.land(0, shot(5), nil)
	if first.roused != 1 || second.roused != 1 {
		t.Fatal("a fetch landed and who waits was not roused")
	}
	if n, _, err := first.ask(fl, 5); n != 5 || err != nil {
		t.Errorf("the first gets %d, %v", n, err)
	}
	n, start, err := second.ask(fl, 9)
	if n != 0 || err != nil || !start {
		t.Fatalf("the second gets %d, %v, fetch %v; want a fetch of its own", n, err, start)
	}
	fl.land(0, shot(8), nil)
	if _, _, err := second.ask(fl, 9); !errors.Is(err, errStale) {
		t.Errorf("its own fetch was too old and it is told %v", err)
	}
	if _, start, err := second.ask(fl, 9); err != nil || !start {
		t.Errorf("then it may ask again: %v", err)
	}
	fl.land(0, shot(9), nil)
	if n, _, _ := second.ask(fl, 9); n != 9 {
		t.Errorf("got %d", n)
	}
}

func TestAFailedFetchIsOnlyForWhoAskedBeforeItBegan(t *testing.T) {
	fl := &flight{}
	first, late := newAsker(), newAsker()
	first.ask(fl, 1)
	late.ask(fl, 1)
	boom := errors.New("boom")
	fl.land(0, nil, boom)
	if _, _, err := first.ask(fl, 1); !errors.Is(err, boom) {
		t.Errorf("who fetched is told %v", err)
	}
	if _, start, err := late.ask(fl, 1); err != nil || !start {
		t.Errorf("who came later is told %v and fetches: %v", err, start)
	}
}

func TestASnapshotOfAnEpochThatIsOverIsNotKept(t *testing.T) {
	fl := &flight{}
	a := newAsker()
	a.ask(fl, 1)
	fl.put(1, shot(3)) // a reset meanwhile
	fl.land(0, shot(50), nil)
	if f, _, _ := fl.ask(1, 3, &a.turn, &a.session); f == nil || f.n != 3 {
		t.Errorf("got %v, want what the reset brought", f)
	}
	fl.put(1, shot(2))
	if f, _, _ := fl.ask(1, 3, &a.turn, &a.session); f == nil || f.n != 3 {
		t.Error("an older snapshot took the place of a newer one")
	}
}

func TestAThousandWhoWaitAreTwoFetchesAtMost(t *testing.T) {
	src := &state{n: 7, pause: func() time.Duration { return 50 * time.Millisecond }}
	machine(t, Options{Source: src, RingSize: 100, Limits: Limits{Rate: -1}}, func(t *testing.T, b *bench) {
		var ks []*tank
		for i := range 1000 {
			_, k := b.sit(sse, 0)
			ks = append(ks, k)
			if i == 500 { // the rest ask while a fetch is under way that began before the change
				for _, s := range b.on {
					b.step(s)
				}
				src.step(b.hub, 1, 0)
			}
		}
		b.pass(time.Second)
		for _, k := range ks {
			if forward(t, 0, k.got) != 8 {
				t.Fatalf("one got %v", k.got)
			}
		}
		if src.asked > 2 {
			t.Errorf("the source was asked %d times", src.asked)
		}
	})
}

// The topic moves on faster than the source answers.
func TestASnapshotThatIsOvertakenWhileItIsFetchedIsGoodEnough(t *testing.T) {
	src := &state{n: 1, pause: func() time.Duration { return 150 * time.Millisecond }}
	machine(t, Options{Source: src}, func(t *testing.T, b *bench) {
		src.step(b.hub, 1, 0)
		_, k := b.sit(sse, 0)
		for range 10 {
			b.pass(50 * time.Millisecond)
			src.step(b.hub, 1, 0)
		}
		b.pass(time.Millisecond)
		if have := forward(t, 0, k.got); have != src.n || k.ended {
			t.Errorf("at %d of %d: %v", have, src.n, k.got)
		}
		if src.asked != 1 {
			t.Errorf("asked %d times for one who joined", src.asked)
		}
	})
}

func TestWorkGivenToACrewThatIsWaitedForIsDone(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var c crew
			c.Go(func() { time.Sleep(time.Millisecond) })
			done := make(chan struct{})
			go func() {
				time.Sleep(time.Millisecond)
				c.Go(func() { close(done) })
			}()
			c.Wait()
			<-done
			c.Wait()
		})
	}
}
