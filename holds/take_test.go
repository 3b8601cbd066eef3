package holds_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/holds"
	"seatcast/seatmap"
)

func TestTakeOneBuyerWins(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	var won, refused atomic.Int64
	var wg sync.WaitGroup
	for k := range 200 {
		wg.Go(func() {
			_, err := h.store.Take(t.Context(), h.asks(strconv.Itoa(k), 17))
			var taken *holds.TakenError
			switch {
			case err == nil:
				won.Add(1)
			case errors.As(err, &taken) && slices.Equal(taken.Seats, []int{17}):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || refused.Load() != 199 {
		t.Errorf("%d won and %d were refused", won.Load(), refused.Load())
	}
	if changes := h.log(); len(changes) != 2 || !slices.Equal(changes[1].Reserved, []int{17}) {
		t.Errorf("log has %+v, want a reset and one take", changes)
	}
	h.sound()
	h.told()
}

func TestTakeIsAllOrNothingAndNamesTheSeatsGone(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.takes("ann", 3, 9)
	h.unchanged("a take with a seat gone", func() {
		_, err := h.store.Take(t.Context(), h.asks("bob", 2, 3, 4, 9))
		var taken *holds.TakenError
		if !errors.As(err, &taken) || !slices.Equal(taken.Seats, []int{3, 9}) {
			t.Errorf("got %v, want seats 3 and 9 taken", err)
		}
	})
	h.sound()
}

func TestTakeTellsWhatItHolds(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 9)
	if b.Until.Sub(b.First) != terms.Hold+terms.Grace || b.Cap.Sub(b.First) != terms.Cap+terms.Grace {
		t.Errorf("held from %v until %v, at most %v", b.First, b.Until, b.Cap)
	}
	last := h.log()[1]
	if !slices.Equal(last.Reserved, []int{3, 9}) || last.Until != b.Until.UnixMilli() || last.Tag != "token-" || last.At != b.First.UnixMilli() {
		t.Errorf("logged %+v for %+v", last, b)
	}
	got, err := h.store.Basket(t.Context(), h.event, b.Token)
	if h.must(err); fmt.Sprint(got) != fmt.Sprint(b) {
		t.Errorf("basket reads\n%v\nwas\n%v", got, b)
	}
	if ttl := h.rdb.PTTL(t.Context(), seatmap.BasketKey(h.event, b.Token)).Val(); ttl < terms.Hold+10*time.Minute {
		t.Errorf("the basket is forgotten after %v, too early to say that it expired", ttl)
	}
}

func TestTakeOutlastsNoCap(t *testing.T) {
	t.Parallel()
	h := setup(t, 4)
	r := h.asks("ann", 1)
	r.Terms.Hold, r.Terms.Cap, r.Terms.Grace = time.Hour, time.Minute, time.Second
	b, err := h.store.Take(t.Context(), r)
	if h.must(err); !b.Until.Equal(b.Cap) {
		t.Errorf("held until %v, cap %v", b.Until, b.Cap)
	}
}

func TestTakeAgainAnswersTheSameHold(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.rdb.HSet(t.Context(), seatmap.AreasKey(h.event), "pit", 10)
	r := h.asks("ann", 3, 9)
	r.Areas = map[string]int{"pit": 2}
	first, err := h.store.Take(t.Context(), r)
	h.must(err)
	h.unchanged("the same take again", func() {
		r.Quote = []byte(`{"other":"price"}`)
		again, err := h.store.Take(t.Context(), r)
		if h.must(err); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("first\n%v\nagain\n%v", first, again)
		}
	})
}

func TestTakeRefusesATokenOfAnotherRequest(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.takes("ann", 3)
	other := h.asks("ann", 4)
	other.Hash = "other"
	foreign := h.asks("ann", 3)
	foreign.User = "user-bob"
	h.unchanged("another request with the token", func() {
		if _, err := h.store.Take(t.Context(), other); !errors.Is(err, holds.ErrReused) {
			t.Errorf("got %v, want ErrReused", err)
		}
		if _, err := h.store.Take(t.Context(), foreign); !errors.Is(err, seatmap.ErrNotYours) {
			t.Errorf("got %v, want ErrNotYours", err)
		}
	})
}

func TestTakeWithATokenThatIsOverBeginsNothing(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	given := h.takes("ann", 3)
	h.must(h.store.Release(t.Context(), h.event, given.Token, given.User))
	brief := h.asks("bob", 4)
	brief.Terms.Hold, brief.Terms.Grace = 20*time.Millisecond, 0
	_, err := h.store.Take(t.Context(), brief)
	h.must(err)
	h.eventually("hold ends", func() bool { return h.holder(4) == "" })
	h.unchanged("a take with a basket that is over", func() {
		for _, r := range []holds.TakeRequest{h.asks("ann", 3), brief} {
			if _, err := h.store.Take(t.Context(), r); !errors.Is(err, seatmap.ErrHoldExpired) {
				t.Errorf("got %v, want ErrHoldExpired", err)
			}
		}
	})
}

func TestTakeNeverExceedsTheSeatsOfAnAccount(t *testing.T) {
	t.Parallel()
	h := setup(t, 400)
	var held, over atomic.Int64
	var wg sync.WaitGroup
	for k := range 100 {
		wg.Go(func() {
			r := h.asks(strconv.Itoa(k), 3*k, 3*k+1, 3*k+2)
			r.User = "user-scalper"
			switch _, err := h.store.Take(t.Context(), r); {
			case err == nil:
				held.Add(3)
			case errors.Is(err, holds.ErrOverCap):
				over.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if held.Load() != 6 || over.Load() != 98 {
		t.Errorf("the account holds %d seats of %d, %d takes were refused", held.Load(), terms.SeatsPerUser, over.Load())
	}
	h.sound()
}

func TestTakeCountsOnlySeatsStillHeld(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	r := h.asks("ann", 0, 1, 2, 3, 4, 5, 6, 7)
	r.Terms.Hold, r.Terms.Grace = 20*time.Millisecond, 0
	_, err := h.store.Take(t.Context(), r)
	h.must(err)
	h.eventually("holds end", func() bool { return h.holder(7) == "" })
	again := h.asks("again", 10, 11, 12, 13, 14, 15, 16, 17)
	again.User = r.User
	if _, err := h.store.Take(t.Context(), again); err != nil {
		t.Errorf("seats that ended still count: %v", err)
	}
}

func TestTakeOfAreasIsRefusedEarlyAndNumbersNothing(t *testing.T) {
	t.Parallel()
	h := setup(t, 4)
	h.truth.Left = map[string]int{"pit": 3}
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Areas: h.truth.Left}))
	changes := len(h.log())
	fits, full, unknown := h.asks("ann"), h.asks("bob"), h.asks("eve", 1)
	fits.Areas, full.Areas, unknown.Areas = map[string]int{"pit": 3}, map[string]int{"pit": 4}, map[string]int{"moat": 1}
	if b, err := h.store.Take(t.Context(), fits); err != nil || b.Areas["pit"] != 3 || len(b.Seats) != 0 {
		t.Errorf("three of three places: %v %v", b, err)
	}
	h.unchanged("a full area", func() {
		for r, area := range map[*holds.TakeRequest]string{&full: "pit", &unknown: "moat"} {
			_, err := h.store.Take(t.Context(), *r)
			var none *holds.AreaFullError
			if !errors.As(err, &none) || none.Area != area {
				t.Errorf("got %v, want area %s full", err, area)
			}
		}
	})
	if len(h.log()) != changes || h.rdb.Exists(t.Context(), seatmap.UserKey(h.event, fits.User)).Val() != 0 {
		t.Error("places were numbered or counted as seats")
	}
	b, err := h.store.Extend(t.Context(), h.event, fits.Token, fits.User, 10*time.Minute, 0)
	if h.must(err); b.Until.Sub(b.First) < 10*time.Minute {
		t.Errorf("extended to %v", b.Until)
	}
	h.must(h.store.Release(t.Context(), h.event, fits.Token, fits.User))
	if len(h.log()) != changes {
		t.Error("giving places back was numbered")
	}
	h.sound()
}

func TestNumbersSurviveAClockBehind(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ahead := time.Now().Add(24*time.Hour).UnixMicro() + 1 // odd, so that a rounded number shows
	ahead |= 1
	h.rdb.Set(t.Context(), seatmap.SeqKey(h.event), ahead, 0)
	h.rdb.Del(t.Context(), seatmap.LogKey(h.event))
	for k := range 5 {
		h.takes(strconv.Itoa(k), k)
	}
	for k, c := range h.log() {
		if c.Prev != ahead+int64(k) || c.N != ahead+int64(k)+1 {
			t.Errorf("change %d is %d after %d, want %d", k, c.N, c.Prev, ahead+int64(k)+1)
		}
	}
	h.sound()
}

func TestNumbersAreExactEverywhere(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	for k := range 20 {
		h.takes(strconv.Itoa(k), k)
	}
	for _, c := range h.log() {
		if digits := len(strconv.FormatInt(c.N, 10)); digits != 16 || c.N >= 1<<53 {
			t.Errorf("number %d has %d digits", c.N, digits)
		}
		if apart := time.UnixMicro(c.N).Sub(time.UnixMilli(c.At)).Abs(); apart > time.Millisecond {
			t.Errorf("number %d is %v from its time", c.N, apart)
		}
	}
	h.sound() // compares numbers with log ids and seq
}

func TestTakeFindsAnEndedSeatFreeBeforeItLapses(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	brief := h.asks("ann", 5)
	brief.Terms.Hold, brief.Terms.Grace = 20*time.Millisecond, 0
	_, err := h.store.Take(t.Context(), brief)
	h.must(err)
	h.eventually("the next take wins", func() bool {
		_, err := h.store.Take(t.Context(), h.asks("bob", 5))
		return err == nil
	})
	if h.holder(5) != "token-bob" {
		t.Errorf("seat 5 is held by %q", h.holder(5))
	}
	h.sound()
	if h.seatmap().At(5) != seatmap.Held {
		t.Error("the lapse of the first hold took the second's seat off the map")
	}
}
