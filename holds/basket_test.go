package holds_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"seatcast/seatmap"
)

func TestAStrangerNeitherExtendsNorReleases(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.takes("ann", 3, 9)
	h.takes("bob", 4)
	h.unchanged("a stranger", func() {
		if _, err := h.store.Extend(t.Context(), h.event, ann.Token, "user-bob", time.Hour, 0); !errors.Is(err, seatmap.ErrNotYours) {
			t.Errorf("extend: %v", err)
		}
		if err := h.store.Release(t.Context(), h.event, ann.Token, "user-bob"); !errors.Is(err, seatmap.ErrNotYours) {
			t.Errorf("release: %v", err)
		}
		if _, err := h.store.Extend(t.Context(), h.event, "token-guessed", "user-bob", time.Hour, 0); !errors.Is(err, seatmap.ErrNoBasket) {
			t.Errorf("extend of no basket: %v", err)
		}
		if err := h.store.Release(t.Context(), h.event, "token-guessed", "user-bob"); !errors.Is(err, seatmap.ErrNoBasket) {
			t.Errorf("release of no basket: %v", err)
		}
		if _, err := h.store.Basket(t.Context(), h.event, "token-guessed"); !errors.Is(err, seatmap.ErrNoBasket) {
			t.Errorf("basket: %v", err)
		}
	})
}

func TestExtendNeverShortensAndRespectsTheCap(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 9)
	for _, step := range []struct {
		by, grace time.Duration
		least     time.Time
		most      time.Time
	}{
		{time.Minute, 0, b.Until, b.Until},
		{10 * time.Minute, 30 * time.Second, b.First.Add(10*time.Minute + 30*time.Second), b.First.Add(11 * time.Minute)},
		{time.Minute, 0, b.First.Add(10*time.Minute + 30*time.Second), b.First.Add(11 * time.Minute)},
		{time.Hour, 0, b.Cap, b.Cap},
		{time.Hour, 0, b.Cap, b.Cap},
	} {
		got, err := h.store.Extend(t.Context(), h.event, b.Token, b.User, step.by, step.grace)
		h.must(err)
		if got.Until.Before(step.least) || got.Until.After(step.most) {
			t.Errorf("extended by %v: ends %v, want %v to %v", step.by, got.Until, step.least, step.most)
		}
		end := time.UnixMilli(h.rdb.PExpireTime(t.Context(), seatmap.HoldKey(h.event, 9)).Val().Milliseconds())
		if !end.Equal(got.Until) {
			t.Errorf("key ends %v, basket %v", end, got.Until)
		}
	}
	if len(h.log()) != 2 {
		t.Error("an extension the map does not show was numbered")
	}
	h.sound()
}

func TestExtendOfWhatIsOverChangesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	given := h.takes("ann", 3)
	h.must(h.store.Release(t.Context(), h.event, given.Token, given.User))
	gone := h.takes("bob", 4, 5)
	h.rdb.Del(t.Context(), seatmap.HoldKey(h.event, 4))
	h.unchanged("extend", func() {
		for _, b := range []seatmap.Basket{given, gone} {
			if _, err := h.store.Extend(t.Context(), h.event, b.Token, b.User, time.Hour, 0); !errors.Is(err, seatmap.ErrHoldExpired) {
				t.Errorf("%s: got %v, want ErrHoldExpired", b.Token, err)
			}
		}
	})
}

func TestExtendNamesTheSeatsLost(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 4, 5)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{4}}))
	h.rdb.Set(t.Context(), seatmap.HoldKey(h.event, 5), "token-eve", time.Minute)
	h.unchanged("extend", func() {
		_, err := h.store.Extend(t.Context(), h.event, b.Token, b.User, time.Hour, 0)
		var lost *seatmap.LostError
		if !errors.As(err, &lost) || !slices.Equal(lost.Seats, []int{4, 5}) {
			t.Errorf("got %v, want seats 4 and 5 lost", err)
		}
	})
	got, err := h.store.Basket(t.Context(), h.event, b.Token)
	if h.must(err); !slices.Equal(got.Lost, []int{4, 5}) || got.State != seatmap.BasketHeld {
		t.Errorf("basket is %+v", got)
	}
}

func TestExtendMendsIndexAndMap(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 4)
	h.rdb.ZRem(t.Context(), seatmap.HeldKey(h.event), "3,4")
	h.rdb.SetRange(t.Context(), seatmap.MapKey(h.event), 0, "\x00\x00") // as if a lapse had come too early
	_, err := h.store.Extend(t.Context(), h.event, b.Token, b.User, time.Minute, 0)
	h.must(err)
	if last := h.log()[2]; !slices.Equal(last.Reserved, []int{3, 4}) || last.Until != b.Until.UnixMilli() {
		t.Errorf("numbered %+v, want seats 3 and 4 reserved", last)
	}
	h.sound()
	h.told()
}

func TestReleaseFreesOnceAndIsIdempotent(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 9)
	h.must(h.store.Release(t.Context(), h.event, b.Token, b.User))
	h.unchanged("the second release", func() { h.must(h.store.Release(t.Context(), h.event, b.Token, b.User)) })
	if changes := h.log(); len(changes) != 3 || !slices.Equal(changes[2].Released, []int{3, 9}) {
		t.Errorf("log has %+v", changes)
	}
	if n := h.counts(b.User); n != 0 {
		t.Errorf("%d seats given back still count", n)
	}
	got, err := h.store.Basket(t.Context(), h.event, b.Token)
	if h.must(err); got.State != seatmap.BasketReleased {
		t.Errorf("basket is %s", got.State)
	}
	h.takes("bob", 3, 9)
	h.sound()
	h.told()
}

func TestReleaseTouchesNoSeatOfAnother(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 4, 5)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{4}}))
	h.rdb.Del(t.Context(), seatmap.HoldKey(h.event, 5)) // lost, and then
	h.takes("eve", 5)
	h.must(h.store.Release(t.Context(), h.event, b.Token, b.User))
	if h.holder(4) != seatmap.SoldMark || h.holder(5) != "token-eve" || h.holder(3) != "" {
		t.Errorf("holders are %q %q %q", h.holder(3), h.holder(4), h.holder(5))
	}
	changes := h.log()
	if last := changes[len(changes)-1]; !slices.Equal(last.Released, []int{3}) {
		t.Errorf("released %v", last.Released)
	}
	h.sound()
}

func TestReleaseOfAnEndedBasketLeavesTheNextOneCounted(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	brief := h.asks("ann", 3)
	brief.Terms.Hold, brief.Terms.Grace = 20*time.Millisecond, 0
	_, err := h.store.Take(t.Context(), brief)
	h.must(err)
	next := h.asks("next", 3)
	next.User = brief.User
	h.eventually("the same account takes the seat again", func() bool {
		_, err := h.store.Take(t.Context(), next)
		return err == nil
	})
	h.must(h.store.Release(t.Context(), h.event, brief.Token, brief.User))
	if n := h.counts(next.User); n != 1 {
		t.Errorf("%d seats count, want the one held", n)
	}
	h.sound()
}

func TestReleaseOfASoldBasketIsRefused(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{3}, Baskets: []string{b.Token}}))
	h.unchanged("release", func() {
		if err := h.store.Release(t.Context(), h.event, b.Token, b.User); !errors.Is(err, seatmap.ErrHoldExpired) {
			t.Errorf("got %v, want ErrHoldExpired", err)
		}
	})
}

func TestBasketSaysExpiredAfterItsEnd(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	r := h.asks("ann", 3)
	r.Terms.Hold, r.Terms.Grace = 20*time.Millisecond, 0
	b, err := h.store.Take(t.Context(), r)
	h.must(err)
	h.eventually("basket is expired", func() bool {
		got, err := h.store.Basket(t.Context(), h.event, b.Token)
		h.must(err)
		return got.State == seatmap.BasketExpired && len(got.Lost) == 0
	})
	if _, err := h.store.Extend(t.Context(), h.event, b.Token, b.User, time.Hour, 0); !errors.Is(err, seatmap.ErrHoldExpired) {
		t.Errorf("extend of an expired basket: %v", err)
	}
	h.must(h.store.Release(t.Context(), h.event, b.Token, b.User))
	h.sound()
}
