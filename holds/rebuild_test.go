package holds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"seatcast/holds"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// private is an event on a Redis of its own, which may be emptied.
func private(tb testing.TB, seats int) *house {
	server := devtest.RedisServer(tb, devstack.RedisOptions{})
	rdb := server.Client()
	tb.Cleanup(func() { _ = rdb.Close() })
	h := cold(tb, rdb, seats)
	h.must(h.store.Rebuild(tb.Context(), h.event, 0))
	return h
}

// paying is a basket as Postgres remembers it.
func paying(b seatmap.Basket) seatmap.Basket {
	b.Until, b.Sealed = b.Until.Add(time.Minute), true
	return b
}

func TestAColdEventIsRebuiltByWhoeverFindsIt(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(h *house) error{
		"take": func(h *house) error { _, err := h.store.Take(h.Context(), h.asks("ann", 3)); return err },
		"extend": func(h *house) error {
			_, err := h.store.Extend(h.Context(), h.event, "token-bob", "user-bob", time.Minute, 0)
			return err
		},
		"release": func(h *house) error { return h.store.Release(h.Context(), h.event, "token-bob", "user-bob") },
		"basket":  func(h *house) error { _, err := h.store.Basket(h.Context(), h.event, "token-bob"); return err },
		"spend":   func(h *house) error { return h.store.Spend(h.Context(), h.event, seatmap.Marks{Seats: []int{7}}) },
		"restore": func(h *house) error { return h.store.Restore(h.Context(), h.event, seatmap.Marks{Seats: []int{9}}) },
		"lapse":   func(h *house) error { return h.store.Lapse(h.Context(), h.event) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := cold(t, devtest.Redis(t), 40)
			now := time.Now()
			h.truth.Sold, h.truth.Closed, h.truth.Left = []int{8, 39}, []int{9}, map[string]int{"pit": 5}
			h.truth.Baskets = []seatmap.Basket{{Token: "token-bob", User: "user-bob", Seats: []int{1, 2}, Quote: quote, Hash: "hash",
				First: now, Until: now.Add(time.Minute), Cap: now.Add(2 * time.Minute)}}
			h.must(call(h))
			if h.asked != 1 || !h.log()[0].Reset || h.log()[0].Prev != 0 {
				t.Errorf("asked for the truth %d times; log begins %+v", h.asked, h.log()[0])
			}
			if h.holder(8) != seatmap.SoldMark || h.rdb.HGet(t.Context(), seatmap.AreasKey(h.event), "pit").Val() != "5" {
				t.Error("the truth is not all there")
			}
			h.sound()
			h.told()
		})
	}
}

func TestAColdEventGrantsAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.takes("ann", 3)
	h.rdb.Del(t.Context(), seatmap.SeqKey(h.event))
	down := errors.New("postgres is down")
	deaf := holds.New(h.rdb, failing{down}, voice(h.hear), quiet)
	for name, call := range map[string]func() error{
		"take": func() error { _, err := deaf.Take(t.Context(), h.asks("bob", 4)); return err },
		"same": func() error { _, err := deaf.Take(t.Context(), h.asks("ann", 3)); return err },
		"extend": func() error {
			_, err := deaf.Extend(t.Context(), h.event, ann.Token, ann.User, time.Hour, 0)
			return err
		},
		"release": func() error { return deaf.Release(t.Context(), h.event, ann.Token, ann.User) },
		"basket":  func() error { _, err := deaf.Basket(t.Context(), h.event, ann.Token); return err },
		"spend": func() error {
			return deaf.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{5}, Areas: map[string]int{"a": 1}})
		},
		"restore": func() error { return deaf.Restore(t.Context(), h.event, seatmap.Marks{Seats: []int{3}}) },
		"lapse":   func() error { return deaf.Lapse(t.Context(), h.event) },
	} {
		h.unchanged(name, func() {
			if err := call(); !errors.Is(err, down) {
				t.Errorf("%s of a cold event: %v", name, err)
			}
		})
	}
}

// failing is a judge who cannot be asked.
type failing struct{ err error }

func (f failing) Truth(context.Context, string, func(context.Context, seatmap.Truth) error) error {
	return f.err
}

func TestAnEmptiedRedisNeverGrantsASoldSeat(t *testing.T) {
	t.Parallel()
	h := private(t, 40)
	h.truth.Sold = []int{17}
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{17}}))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, err := h.store.Take(t.Context(), h.asks(fmt.Sprint(k, "-", n), 17))
				if !errors.As(err, new(*holds.TakenError)) && !errors.Is(err, seatmap.ErrUnavailable) { // emptied twice in one take
					t.Errorf("a sold seat: %v", err)
					return
				}
			}
		})
	}
	for range 30 {
		h.must(h.rdb.FlushAll(t.Context()).Err())
		h.eventually("somebody rebuilds", func() bool { return h.rdb.Exists(t.Context(), seatmap.SeqKey(h.event)).Val() == 1 })
	}
	stop()
	wg.Wait()
	h.sound()
}

func TestAnEmptiedRedisKeepsThePayingAndNumbersOn(t *testing.T) {
	t.Parallel()
	h := private(t, 40)
	ann, bob := h.takes("ann", 3, 4), h.takes("bob", 5)
	h.truth.Baskets = []seatmap.Basket{paying(ann)}
	position := time.Now().Add(time.Hour).UnixMicro() // numbers of a clock that was ahead
	h.must(h.rdb.FlushAll(t.Context()).Err())
	h.must(h.store.Rebuild(t.Context(), h.event, position))

	if reset := h.log()[0]; reset.N <= position || !reset.Reset {
		t.Errorf("numbers go on with %+v after %d", reset, position)
	}
	got, err := h.store.Basket(t.Context(), h.event, ann.Token)
	h.must(err)
	want := paying(ann)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ann's basket is\n%v\nwas\n%v", got, want)
	}
	_, err = h.store.Take(t.Context(), h.asks("eve", 4))
	if !errors.As(err, new(*holds.TakenError)) {
		t.Errorf("a seat being paid for: %v", err)
	}
	if n := h.counts(ann.User); n != 2 {
		t.Errorf("%d of ann's seats count", n)
	}
	if _, err := h.store.Basket(t.Context(), h.event, bob.Token); !errors.Is(err, seatmap.ErrNoBasket) {
		t.Errorf("a basket nobody was paying for: %v", err)
	}
	h.takes("eve", 5)
	if _, err := h.store.Extend(t.Context(), h.event, ann.Token, ann.User, time.Hour, 0); err != nil {
		t.Errorf("extend after the rebuild: %v", err)
	}
	h.sound()
}

func TestAWarmRebuildKeepsEveryLiveHold(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann, bob := h.takes("ann", 3, 4), h.takes("bob", 5, 6, 7)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{20, 21}}))
	// What a failover may have lost or brought back.
	h.truth.Sold, h.truth.Closed = []int{20, 30, 7}, []int{31}
	h.truth.Baskets = []seatmap.Basket{paying(ann)}
	h.rdb.Del(t.Context(), seatmap.HoldKey(h.event, 4), seatmap.HeldKey(h.event), seatmap.AreasKey(h.event))
	h.rdb.SetRange(t.Context(), seatmap.MapKey(h.event), 0, "\xff\x00\xff")
	before := h.log()
	position := before[len(before)-1].N + 1000
	h.must(h.store.Rebuild(t.Context(), h.event, position))

	changes := h.log()
	if last := changes[len(changes)-1]; !last.Reset || last.N <= position || len(changes) != len(before)+1 {
		t.Errorf("logged %+v above %d", last, position)
	}
	for seat, want := range map[int]string{3: ann.Token, 4: ann.Token, 5: bob.Token, 6: bob.Token, 7: seatmap.SoldMark,
		20: seatmap.SoldMark, 21: "", 30: seatmap.SoldMark, 31: seatmap.ClosedMark} {
		if got := h.holder(seat); got != want {
			t.Errorf("seat %d is held by %q, want %q", seat, got, want)
		}
	}
	for _, b := range []seatmap.Basket{paying(ann), bob} {
		end := h.rdb.PExpireTime(t.Context(), seatmap.HoldKey(h.event, b.Seats[0])).Val()
		if end.Milliseconds() != b.Until.UnixMilli() {
			t.Errorf("%s ends %v, want %v", b.Token, time.UnixMilli(end.Milliseconds()), b.Until)
		}
	}
	h.sound()
	h.told()
	h.unchanged("a rebuild from the same position", func() { h.must(h.store.Rebuild(t.Context(), h.event, position)) })
}

func TestAnEventWhoseNumberIsDeletedIsRebuiltWhereItStands(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.takes("ann", 3, 4)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	h.must(h.store.Rebuild(t.Context(), h.event, ahead))
	h.must(h.rdb.Del(t.Context(), seatmap.SeqKey(h.event), seatmap.ResetKey(h.event), seatmap.MapKey(h.event)).Err())
	if _, err := h.store.Take(t.Context(), h.asks("bob", 4)); !errors.As(err, new(*holds.TakenError)) {
		t.Errorf("a seat held all the time: %v", err)
	}
	if all := h.log(); !all[3].Reset || all[3].N <= all[2].N || all[3].Prev != all[2].N {
		t.Errorf("numbers go on with %+v after %+v", all[3], all[2])
	}
	if got, err := h.store.Basket(t.Context(), h.event, ann.Token); err != nil || got.State != seatmap.BasketHeld || got.Lost != nil {
		t.Errorf("ann has %+v %v", got, err)
	}
	h.sound()
	h.told()
}

func TestARebuildGivesNothingBackTwice(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.takes("ann", 3, 4)
	h.must(h.store.Release(t.Context(), h.event, ann.Token, ann.User))
	h.takes("bob", 4)
	late := paying(ann)
	late.Until = time.Now().Add(-time.Second)
	late.Token = "token-late"
	h.truth.Baskets = []seatmap.Basket{paying(ann), late} // read just before it was given back
	h.must(h.store.Rebuild(t.Context(), h.event, time.Now().UnixMicro()))
	if h.holder(3) != "" || h.holder(4) != "token-bob" {
		t.Errorf("holders are %q and %q", h.holder(3), h.holder(4))
	}
	h.sound()
}

func TestManyRebuildOnce(t *testing.T) {
	t.Parallel()
	h := cold(t, devtest.Redis(t), 400)
	var wg sync.WaitGroup
	for k := range 100 {
		wg.Go(func() {
			if _, err := h.store.Take(t.Context(), h.asks(strconv.Itoa(k), k)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	resets := slices.DeleteFunc(h.log(), func(c seatmap.Change) bool { return !c.Reset })
	if len(resets) != 1 {
		t.Errorf("rebuilt %d times", len(resets))
	}
	position := h.log()[100].N
	for range 20 {
		wg.Go(func() {
			if err := h.store.Rebuild(t.Context(), h.event, position); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if resets := slices.DeleteFunc(h.log(), func(c seatmap.Change) bool { return !c.Reset }); len(resets) != 2 {
		t.Errorf("rebuilt %d times for one fork", len(resets)-1)
	}
	h.sound()
}

func TestRebuildOfAStadium(t *testing.T) {
	t.Parallel()
	const seats = 60_000
	h := private(t, seats)
	for i := 0; i < seats; i += 3 {
		h.truth.Sold = append(h.truth.Sold, i)
	}
	for k := range 50 {
		r := h.asks(strconv.Itoa(k))
		r.Terms.SeatsPerUser = 1000
		for i := range 400 {
			r.Seats = append(r.Seats, 3*(400*k+i)+1)
		}
		_, err := h.store.Take(t.Context(), r)
		h.must(err)
		b := paying(h.takesAgain(r))
		h.truth.Baskets = append(h.truth.Baskets, b)
	}
	for _, state := range []string{"warm", "cold"} {
		if state == "cold" {
			h.must(h.rdb.FlushAll(t.Context()).Err())
		}
		start := time.Now()
		h.must(h.store.Rebuild(t.Context(), h.event, time.Now().UnixMicro()))
		t.Logf("%s rebuild of %d seats, 20,000 sold and 20,000 held: %v", state, seats, time.Since(start))
		m := h.seatmap()
		for i := range seats {
			if want := [...]seatmap.Status{seatmap.Sold, seatmap.Held, seatmap.Available}[i%3]; m.At(i) != want {
				t.Fatalf("%s: seat %d is %s, want %s", state, i, m.At(i), want)
			}
		}
		if n := h.rdb.ZCard(t.Context(), seatmap.HeldKey(h.event)).Val(); n != 20_000 {
			t.Errorf("%s: %d seats are indexed", state, n)
		}
	}
	h.chained()
}

func TestRebuildRefusesATruthThatCannotBe(t *testing.T) {
	t.Parallel()
	h := cold(t, devtest.Redis(t), 40)
	h.truth.Sold = []int{40}
	h.unchanged("rebuild", func() {
		if err := h.store.Rebuild(t.Context(), h.event, 0); err == nil {
			t.Error("seat 40 of 40 passes")
		}
	})
	lost := holds.New(h.rdb, failing{seatmap.ErrNoEvent}, voice(h.hear), quiet)
	if _, err := lost.Take(t.Context(), h.asks("ann", 1)); !errors.Is(err, seatmap.ErrNoEvent) {
		t.Errorf("an event nobody knows: %v", err)
	}
}

// Two nodes saw a history that was lost, one more of it than the other, and
// the other has the event rebuilt. Were the numbers in between given again, a
// reader who has one of them would take the new history for his own.
func TestAResetIsAboveWhatOthersHaveSeenOfALostHistory(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ahead := time.Now().Add(time.Hour).UnixMicro() // numbers follow each other closely when the clock is behind them
	h.must(h.store.Rebuild(t.Context(), h.event, ahead))
	for seat := range 10 {
		h.takes(fmt.Sprint("ann-", seat), seat)
	}
	seen := h.log()
	less, most := seen[len(seen)-5].N, seen[len(seen)-1].N
	h.must(h.rdb.Del(t.Context(), seatmap.SeqKey(h.event), seatmap.ResetKey(h.event), seatmap.LogKey(h.event)).Err())

	h.must(h.store.Rebuild(t.Context(), h.event, less))
	if reset := h.log()[0]; reset.N <= most {
		t.Errorf("the reset is %d, and somebody has %d", reset.N, most)
	}
	h.unchanged("the other node, which had more", func() { h.must(h.store.Rebuild(t.Context(), h.event, most)) })
}
