package holds_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"seatcast/holds"
	"seatcast/seatmap"
)

// swaps is a request for other seats in a basket.
func (h *house) swaps(b seatmap.Basket, seats ...int) holds.SwapRequest {
	return holds.SwapRequest{Event: h.event, Token: b.Token, User: b.User, Seats: seats, Terms: terms,
		Quote: func(b seatmap.Basket) (json.RawMessage, error) {
			return json.RawMessage(fmt.Sprintf(`{"seats":[],"areas":[],"total":{"amount":%d,"currency":"EUR"}}`, len(seats))), nil
		}}
}

func TestASwapIsOneChangeAndKeepsTheEnd(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 4, 9)
	got, err := h.store.Swap(t.Context(), h.swaps(b, 2, 3, 11, 12))
	if h.must(err); !slices.Equal(got.Seats, []int{2, 3, 11, 12}) || !got.Until.Equal(b.Until) || !got.Cap.Equal(b.Cap) || !got.First.Equal(b.First) ||
		got.Hash != b.Hash || string(got.Quote) == string(b.Quote) {
		t.Errorf("swapped it is\n%+v\nwas\n%+v", got, b)
	}
	changes := h.log()
	last := changes[len(changes)-1]
	if len(changes) != 3 || !slices.Equal(last.Reserved, []int{2, 11, 12}) || !slices.Equal(last.Released, []int{4, 9}) ||
		last.Until != b.Until.UnixMilli() || last.Tag != "token-" {
		t.Errorf("logged %+v", last)
	}
	for seat, want := range map[int]string{2: b.Token, 3: b.Token, 4: "", 9: "", 11: b.Token, 12: b.Token} {
		if h.holder(seat) != want {
			t.Errorf("seat %d is held by %q", seat, h.holder(seat))
		}
	}
	if end := h.rdb.PExpireTime(t.Context(), seatmap.HoldKey(h.event, 11)).Val(); end.Milliseconds() != b.Until.UnixMilli() {
		t.Errorf("a new seat ends at %v, want %v", end, b.Until)
	}
	if n := h.counts(b.User); n != 4 {
		t.Errorf("the account counts %d seats", n)
	}
	if stored, err := h.store.Basket(t.Context(), h.event, b.Token); err != nil || fmt.Sprint(stored) != fmt.Sprint(got) {
		t.Errorf("the basket reads %+v %v", stored, err)
	}
	if again := h.takesAgain(h.asks("ann", 3, 4, 9)); !slices.Equal(again.Seats, got.Seats) {
		t.Errorf("the request that made it is answered %+v", again)
	}
	h.takes("bob", 4, 9)
	h.sound()
	h.told()
}

func TestASwapForTheSameSeatsChangesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 4)
	first, err := h.store.Swap(t.Context(), h.swaps(b, 4, 5))
	h.must(err)
	h.unchanged("the same again", func() {
		if again, err := h.store.Swap(t.Context(), h.swaps(b, 4, 5)); err != nil || fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("%+v %v, first %+v", again, err, first)
		}
	})
}

func TestASwapThatCannotBeChangesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann, bob := h.takes("ann", 3, 4), h.takes("bob", 10, 11)
	released, sold, sealed := h.takes("cid", 20), h.takes("dan", 21), h.takes("eve", 22)
	h.must(h.store.Release(t.Context(), h.event, released.Token, released.User))
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{21}, Baskets: []string{sold.Token}}))
	h.truth.Sold = []int{21}
	_, err := h.store.Seal(t.Context(), h.event, sealed.Token)
	h.must(err)
	theirs := h.swaps(ann, 30)
	theirs.User = "user-bob"
	unpriced := h.swaps(ann, 30)
	noPrice := errors.New("no price")
	unpriced.Quote = func(seatmap.Basket) (json.RawMessage, error) { return nil, noPrice }
	var many []int
	for i := range 9 {
		many = append(many, 30+i)
	}
	for what, c := range map[string]struct {
		r    holds.SwapRequest
		want error
	}{
		"a seat is taken":   {h.swaps(ann, 3, 10, 12, 21), &holds.TakenError{Seats: []int{10, 21}}},
		"somebody else's":   {theirs, seatmap.ErrNotYours},
		"no such basket":    {h.swaps(seatmap.Basket{Token: "guessed", User: "ann"}, 30), seatmap.ErrNoBasket},
		"given back":        {h.swaps(released, 30), seatmap.ErrHoldExpired},
		"sold":              {h.swaps(sold, 30), seatmap.ErrSold},
		"being paid for":    {h.swaps(sealed, 30), holds.ErrSealed},
		"paid for, and all": {h.swaps(sealed, 22), holds.ErrSealed},
		"over the cap":      {h.swaps(bob, many...), holds.ErrOverCap},
		"no price":          {unpriced, noPrice},
	} {
		h.unchanged(what, func() {
			if _, err := h.store.Swap(t.Context(), c.r); !same(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
		})
	}
	h.sound()
}

func TestASeatThatWasLostCanBeSwappedAway(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 4)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{4}}))
	h.truth.Sold = []int{4}
	h.unchanged("keeping it", func() {
		var lost *seatmap.LostError
		if _, err := h.store.Swap(t.Context(), h.swaps(b, 4, 5)); !errors.As(err, &lost) || !slices.Equal(lost.Seats, []int{4}) {
			t.Errorf("kept: %v", err)
		}
	})
	if got, err := h.store.Swap(t.Context(), h.swaps(b, 3, 5)); err != nil || !slices.Equal(got.Seats, []int{3, 5}) {
		t.Errorf("swapped away: %+v %v", got, err)
	}
	if h.holder(4) != seatmap.SoldMark {
		t.Errorf("seat 4 is %q", h.holder(4))
	}
	h.sound()
}

func TestASwappedBasketEndsAsItWouldHave(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	r := h.asks("ann", 3, 4)
	r.Terms.Hold, r.Terms.Grace = 400*time.Millisecond, 0
	b, err := h.store.Take(t.Context(), r)
	h.must(err)
	_, err = h.store.Swap(t.Context(), h.swaps(b, 4, 5))
	h.must(err)
	h.eventually("its seats are free", func() bool { return h.holder(4)+h.holder(5) == "" })
	if _, err := h.store.Swap(t.Context(), h.swaps(b, 6)); !errors.Is(err, seatmap.ErrHoldExpired) {
		t.Errorf("swapped after its end: %v", err)
	}
	h.sound()
	for _, i := range []int{3, 4, 5} {
		if h.seatmap().At(i) != seatmap.Available {
			t.Errorf("seat %d is shown %s", i, h.seatmap().At(i))
		}
	}
}

// Two nodes: one swaps again and again, one extends, and then one seals. What
// the seal has seen is what the basket is for ever after.
func TestWhatASealHasSeenIsNeverSwapped(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	other := holds.New(h.rdb, judge(h.ask), voice(h.hear), quiet)
	for round := range 40 {
		b := h.takes(fmt.Sprint(round), 0)
		var wg sync.WaitGroup
		refused := make(chan struct{})
		wg.Go(func() {
			defer close(refused)
			for k := 0; ; k++ {
				_, err := h.store.Swap(t.Context(), h.swaps(b, k%40))
				if errors.Is(err, holds.ErrSealed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			for {
				select {
				case <-refused:
					return
				default:
				}
				if _, err := other.Extend(t.Context(), h.event, b.Token, b.User, time.Minute, 0); err != nil {
					t.Error(err)
				}
			}
		})
		sealed, err := other.Seal(t.Context(), h.event, b.Token)
		wg.Wait()
		after, err2 := h.store.Basket(t.Context(), h.event, b.Token)
		if h.must(errors.Join(err, err2)); !slices.Equal(sealed.Seats, after.Seats) || string(sealed.Quote) != string(after.Quote) || !after.Sealed || len(after.Lost) > 0 {
			t.Fatalf("round %d: sealed as %v, is %+v", round, sealed.Seats, after)
		}
		h.must(h.store.Release(t.Context(), h.event, b.Token, b.User))
	}
	h.sound()
}

// Twenty shoppers at two nodes swap among seats that suffice for most: no seat
// is in two baskets, and none is held for nobody.
func TestASwapNeverTakesWhatAnotherHolds(t *testing.T) {
	t.Parallel()
	const seats, shoppers = 24, 10
	h := setup(t, seats)
	stores := [2]*holds.Store{h.store, holds.New(h.rdb, judge(h.ask), voice(h.hear), quiet)}
	var baskets []seatmap.Basket
	for k := range shoppers {
		baskets = append(baskets, h.takes(fmt.Sprint(k), 2*k, 2*k+1))
	}
	var wg sync.WaitGroup
	for k, b := range baskets {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(k)))
			for range 100 {
				to := random.Perm(seats)[:2]
				slices.Sort(to)
				_, err := stores[random.IntN(2)].Swap(t.Context(), h.swaps(b, to...))
				var taken *holds.TakenError
				if err != nil && !errors.As(err, &taken) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	in := map[int]string{}
	for k := range shoppers {
		token := fmt.Sprint("token-", k)
		b, err := h.store.Basket(t.Context(), h.event, token)
		if h.must(err); len(b.Seats) != 2 || len(b.Lost) > 0 {
			t.Errorf("%s has %v, lost %v", token, b.Seats, b.Lost)
		}
		for _, i := range b.Seats {
			in[i] = token
		}
	}
	for i := range seats {
		if h.holder(i) != in[i] {
			t.Errorf("seat %d is held by %q and in the basket of %q", i, h.holder(i), in[i])
		}
	}
	h.sound()
}
