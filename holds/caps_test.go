package holds_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/seatmap"
)

// twoNodes are two stores on one event, each with connections of its own.
func (h *house) twoNodes() [2]*holds.Store {
	var nodes [2]*holds.Store
	for k := range nodes {
		rdb := redis.NewClient(h.rdb.Options())
		h.Cleanup(func() { _ = rdb.Close() })
		nodes[k] = holds.New(rdb, judge(h.ask), voice(h.hear), quiet)
	}
	return nodes
}

// asksAs is a request of an account that has others.
func (h *house) asksAs(user, name string, seats ...int) holds.TakeRequest {
	r := h.asks(name, seats...)
	r.User = user
	return r
}

func TestCapsOfAnAccountHoldWhenTwoNodesRace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terms  func(*seatmap.Terms)
		bought int
		want   int64 // takes of two seats granted
		refuse func(error) bool
	}{
		"seats":    {func(t *seatmap.Terms) { t.SeatsPerUser = 7 }, 0, 3, func(err error) bool { return errors.Is(err, holds.ErrOverCap) }},
		"tickets":  {func(t *seatmap.Terms) { t.SeatsPerUser = 7 }, 4, 1, func(err error) bool { return errors.Is(err, holds.ErrOverCap) }},
		"bookings": {func(t *seatmap.Terms) { t.SeatsPerUser, t.HoldsPerUser = 100, 3 }, 0, 3, func(err error) bool { return errors.Is(err, holds.ErrMany) }},
		"pace": {func(t *seatmap.Terms) { t.SeatsPerUser, t.HoldsPerHour, t.CoolDown = 100, 5, time.Minute }, 0, 5,
			func(err error) bool { return errors.As(err, new(*holds.PaceError)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const takers = 100
			h := setup(t, 2*takers)
			h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Bought: map[string]int{"ann": c.bought}}))
			nodes := h.twoNodes()
			var won, refused atomic.Int64
			var wg sync.WaitGroup
			for k := range takers {
				wg.Go(func() {
					r := h.asksAs("ann", strconv.Itoa(k), 2*k, 2*k+1)
					c.terms(&r.Terms)
					switch _, err := nodes[k%2].Take(t.Context(), r); {
					case err == nil:
						won.Add(1)
					case c.refuse(err):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if won.Load() != c.want || refused.Load() != takers-c.want {
				t.Errorf("%d takes were granted, want %d; %d refused", won.Load(), c.want, refused.Load())
			}
			h.sound()
		})
	}
}

func TestWhatAnAccountHasBoughtCountsUntilItIsTakenBack(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	bought := func(n int) seatmap.Marks { return seatmap.Marks{Bought: map[string]int{"ann": n}} }
	refused := func(what string, want error, name string, seats ...int) {
		t.Helper()
		h.unchanged(what, func() {
			if _, err := h.store.Take(t.Context(), h.asksAs("ann", name, seats...)); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		})
	}
	h.must(h.store.Spend(t.Context(), h.event, bought(6)))
	h.unchanged("the same tickets again", func() { h.must(h.store.Spend(t.Context(), h.event, bought(6))) })
	if end := h.rdb.PTTL(t.Context(), seatmap.UserKey(h.event, "ann")).Val(); end != -1 {
		t.Errorf("what she has bought is forgotten in %v", end)
	}
	refused("three more than six of eight", holds.ErrBought, "three", 1, 2, 3)
	one := h.takesAgain(h.asksAs("ann", "one", 1))
	refused("two more than six and one held", holds.ErrOverCap, "two", 2, 3)
	if _, err := h.store.Swap(t.Context(), h.swaps(one, 1, 2, 3)); !errors.Is(err, holds.ErrBought) {
		t.Errorf("swapped for more than she may have: %v", err)
	}

	// Lost, and rebuilt warm with another number.
	h.truth.Bought = map[string]int{"ann": 6, "bob": 0, "cid": 8}
	h.must(h.rdb.Del(t.Context(), seatmap.SeqKey(h.event), seatmap.UserKey(h.event, "ann")).Err())
	h.must(h.store.Lapse(t.Context(), h.event))
	refused("three more than six, after a rebuild", holds.ErrBought, "more", 5, 6, 7)
	if h.rdb.Exists(t.Context(), seatmap.UserKey(h.event, "bob")).Val() != 0 {
		t.Error("who has given all back has an index")
	}
	h.truth.Bought["ann"] = 5
	h.must(h.store.Rebuild(t.Context(), h.event, time.Now().Add(time.Minute).UnixMicro()))
	h.takesAgain(h.asksAs("ann", "fits", 5, 6)) // beside the one held
	h.must(h.store.Spend(t.Context(), h.event, bought(0)))
	if index := h.rdb.Get(t.Context(), seatmap.UserKey(h.event, "ann")).Val(); strings.HasPrefix(index, "b") {
		t.Errorf("given back, and the index says %s", index)
	}
	if end := h.rdb.PTTL(t.Context(), seatmap.UserKey(h.event, "ann")).Val(); end <= 0 {
		t.Errorf("without tickets an index ends; this in %v", end)
	}
}

func TestPlacesCountAmongWhatAnAccountMayBuy(t *testing.T) {
	t.Parallel()
	h := setup(t, 4)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Areas: map[string]int{"pit": 50}, Bought: map[string]int{"ann": 6}}))
	r := h.asksAs("ann", "three")
	r.Areas = map[string]int{"pit": 3}
	if _, err := h.store.Take(t.Context(), r); !errors.Is(err, holds.ErrBought) {
		t.Errorf("six tickets and three places of eight: %v", err)
	}
	r = h.asksAs("ann", "two")
	r.Areas = map[string]int{"pit": 2}
	h.takesAgain(r)
	if n := h.counts("ann"); n != 0 {
		t.Errorf("places are held: %d count", n)
	}
}

// drops holds a seat and gives it back.
func (h *house) drops(r holds.TakeRequest) {
	h.Helper()
	b := h.takesAgain(r)
	h.must(h.store.Release(h.Context(), h.event, b.Token, b.User))
}

// hurried is a request of an account that has three holds an hour.
func (h *house) hurried(n int, pause time.Duration) holds.TakeRequest {
	r := h.asksAs("ann", fmt.Sprint("turn-", n), 7)
	r.Terms.HoldsPerHour, r.Terms.CoolDown = 3, pause
	return r
}

func TestHoldAndDropWaitsLongerEachTime(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	const pause = 300 * time.Millisecond
	for n := range 3 {
		h.drops(h.hurried(n, pause))
	}
	for n, times := range []time.Duration{1, 2, 4, 8} {
		r, last := h.hurried(3+n, pause), h.pace("ann").last
		var must *holds.PaceError
		if _, err := h.store.Take(t.Context(), r); !errors.As(err, &must) || must.Wait <= 0 || must.Wait > times*pause {
			t.Fatalf("hold %d: %v, want a wait of at most %v", 4+n, err, times*pause)
		}
		h.eventually("the wait is over", func() bool {
			_, err := h.store.Take(t.Context(), r) // each of these is refused, and none counts
			return err == nil
		})
		if waited := h.pace("ann").last - last; waited < (times * pause).Milliseconds() {
			t.Errorf("hold %d was granted %d ms after the one before, want %v", 4+n, waited, times*pause)
		}
		h.must(h.store.Release(t.Context(), h.event, r.Token, r.User))
	}
	for range 5 {
		h.must(h.rdb.Set(t.Context(), seatmap.UserKey(h.event, "ann"), fmt.Sprintf("p%d,900,%d", time.Now().UnixMilli()-1, time.Now().UnixMilli()-1), 0).Err())
		var must *holds.PaceError
		if _, err := h.store.Take(t.Context(), h.hurried(90, pause)); !errors.As(err, &must) || must.Wait > 20*pause {
			t.Errorf("after 900 holds: %v, want a wait of at most %v", err, 20*pause)
		}
	}
}

func TestAfterAnHourThePaceBeginsAnew(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	for n := range 3 {
		h.drops(h.hurried(n, time.Hour))
	}
	if _, err := h.store.Take(t.Context(), h.hurried(3, time.Hour)); !errors.As(err, new(*holds.PaceError)) {
		t.Errorf("the fourth: %v", err)
	}
	began := h.pace("ann")
	ago := began.since - time.Hour.Milliseconds()
	h.must(h.rdb.Set(t.Context(), seatmap.UserKey(h.event, "ann"), fmt.Sprintf("p%d,3,%d", ago, began.last), 0).Err())
	for n := 4; n < 7; n++ {
		h.drops(h.hurried(n, time.Hour))
	}
	if got := h.pace("ann"); got.n != 3 || got.since < began.last {
		t.Errorf("an hour later the pace is %+v", got)
	}
}

func TestOnlyANewHoldCountsInThePace(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Areas: map[string]int{"pit": 50}}))
	h.takes("bob", 9)
	r := h.hurried(0, time.Hour)
	b := h.takesAgain(r)
	h.takesAgain(r) // the same request again
	for range 5 {
		if _, err := h.store.Take(t.Context(), h.asksAs("ann", "refused", 9)); !errors.As(err, new(*holds.TakenError)) {
			t.Fatal(err)
		}
	}
	b, err := h.store.Extend(t.Context(), h.event, b.Token, b.User, 9*time.Minute, 0)
	h.must(err)
	b, err = h.store.Swap(t.Context(), h.swaps(b, 1, 2))
	h.must(err)
	places := h.asksAs("ann", "places")
	places.Areas = map[string]int{"pit": 2}
	h.takesAgain(places)
	if got := h.pace("ann"); got.n != 1 || got.since != b.First.UnixMilli() || got.last != got.since {
		t.Errorf("the pace is %+v, want one hold at %d", got, b.First.UnixMilli())
	}
}

func TestTheFirstSeatsOfABookingOfPlacesAreAHoldLikeAnyOther(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Areas: map[string]int{"pit": 50}}))
	swap := func(name string, seat int) (seatmap.Basket, error) {
		r := h.asksAs("ann", name)
		r.Areas = map[string]int{"pit": 1}
		s := h.swaps(h.takesAgain(r), seat)
		s.Terms.HoldsPerUser, s.Terms.HoldsPerHour, s.Terms.CoolDown = 1, 2, time.Hour
		return h.store.Swap(t.Context(), s)
	}
	first, err := swap("a", 1)
	h.must(err)
	if got := h.pace("ann"); got.n != 1 || got.since != first.First.UnixMilli() {
		t.Errorf("the pace is %+v", got)
	}
	if _, err := swap("b", 2); !errors.Is(err, holds.ErrMany) {
		t.Errorf("a second hold: %v", err)
	}
	h.must(h.store.Release(t.Context(), h.event, first.Token, first.User))
	second, err := swap("c", 2)
	h.must(err)
	h.must(h.store.Release(t.Context(), h.event, second.Token, second.User))
	if _, err := swap("d", 3); !errors.As(err, new(*holds.PaceError)) {
		t.Errorf("a third within the hour: %v", err)
	}
	if n := h.rdb.Exists(t.Context(), seatmap.HoldKey(h.event, 3)).Val(); n != 0 {
		t.Error("who was refused has the seat")
	}
}

// The places were booked before the hour of the account's pace began.
func TestSeatsOfABookingOfPlacesThatArePaidForDoNotCountInThePace(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Areas: map[string]int{"pit": 50}}))
	r := h.asksAs("ann", "places")
	r.Areas = map[string]int{"pit": 1}
	places := h.takesAgain(r)
	h.tick()
	h.takesAgain(h.asksAs("ann", "seat", 1))
	_, err := h.store.Swap(t.Context(), h.swaps(places, 2))
	h.must(err)
	if got := h.pace("ann"); got.n != 2 || got.since != places.First.UnixMilli() {
		t.Errorf("two holds count %+v, want an hour from %d on", got, places.First.UnixMilli())
	}
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{2}, Baskets: []string{places.Token}, Bought: map[string]int{"ann": 2}}))
	if got := h.pace("ann"); got.n != 1 {
		t.Errorf("two holds of which one is paid for count %d", got.n)
	}
}

func TestAHoldThatIsPaidForDoesNotCountInThePace(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	a, b := h.asksAs("ann", "a", 1), h.asksAs("ann", "b", 2)
	h.takesAgain(a)
	h.takesAgain(b)
	sold := seatmap.Marks{Seats: []int{1}, Baskets: []string{a.Token, "token-gone"}, Bought: map[string]int{"ann": 1}}
	for range 3 { // the mirror may tell it again
		h.must(h.store.Spend(t.Context(), h.event, sold))
		if got := h.pace("ann"); got.n != 1 {
			t.Errorf("two holds of which one is paid for count %d", got.n)
		}
	}
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{2}, Baskets: []string{b.Token}, Bought: map[string]int{"ann": 2}}))
	if index := h.rdb.Get(t.Context(), seatmap.UserKey(h.event, "ann")).Val(); index != "b2" {
		t.Errorf("the index says %q, want two tickets and no more", index)
	}
}

// pace is what an account's index says of its holds in the hour.
type pace struct{ since, n, last int64 }

func (h *house) pace(user string) (p pace) {
	h.Helper()
	index, err := h.rdb.Get(h.Context(), seatmap.UserKey(h.event, user)).Result()
	h.must(err)
	for word := range strings.FieldsSeq(index) {
		if _, err := fmt.Sscanf(word, "p%d,%d,%d", &p.since, &p.n, &p.last); err == nil {
			return p
		}
	}
	h.Fatalf("the index of %s has no pace: %q", user, index)
	return p
}
