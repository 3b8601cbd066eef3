package holds_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/seatmap"
)

func TestSpendOverridesWhoeverHolds(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann, bob := h.takes("ann", 3, 4), h.takes("bob", 5, 6)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{3, 4, 5, 20}, Closed: []int{21}, Baskets: []string{ann.Token, "token-gone"}}))

	changes := h.log()
	if last := changes[len(changes)-1]; !slices.Equal(last.Booked, []int{3, 4, 5, 20}) || !slices.Equal(last.Closed, []int{21}) || last.Released != nil {
		t.Errorf("logged %+v", last)
	}
	for name, want := range map[string]seatmap.BasketState{ann.Token: seatmap.BasketSold, bob.Token: seatmap.BasketHeld} {
		if got, err := h.store.Basket(t.Context(), h.event, name); err != nil || got.State != want {
			t.Errorf("%s is %s %v, want %s", name, got.State, err, want)
		}
	}
	if got, _ := h.store.Basket(t.Context(), h.event, bob.Token); !slices.Equal(got.Lost, []int{5}) {
		t.Errorf("bob lost %v, want seat 5", got.Lost)
	}
	for user, want := range map[string]int{ann.User: 0, bob.User: 1} {
		if n := h.counts(user); n != want {
			t.Errorf("%s still counts %d seats, want %d", user, n, want)
		}
	}
	if _, err := h.store.Basket(t.Context(), h.event, "token-gone"); !errors.Is(err, seatmap.ErrNoBasket) {
		t.Errorf("a basket that was not there: %v", err)
	}
	h.sound()
	h.told()
}

func TestMarksAreNumberedOnlyWhenTheyDiffer(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	m := seatmap.Marks{Seats: []int{3}, Closed: []int{4}, Areas: map[string]int{`the "pit"`: 7}}
	h.must(h.store.Spend(t.Context(), h.event, m))
	if last := h.log()[1]; last.Areas[`the "pit"`] != 7 {
		t.Errorf("logged %+v", last)
	}
	h.unchanged("the same marks", func() { h.must(h.store.Spend(t.Context(), h.event, m)) })
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{3}, Areas: map[string]int{`the "pit"`: 6}}))
	if last := h.log()[2]; last.Areas[`the "pit"`] != 6 || last.Booked != nil {
		t.Errorf("logged %+v", last)
	}
	h.unchanged("no marks", func() { h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{})) })

	back := seatmap.Marks{Seats: []int{3}, Closed: []int{4}}
	h.must(h.store.Restore(t.Context(), h.event, back))
	if last := h.log()[3]; !slices.Equal(last.Released, []int{3, 4}) {
		t.Errorf("logged %+v", last)
	}
	h.unchanged("the same seats back", func() { h.must(h.store.Restore(t.Context(), h.event, back)) })
	h.sound()
	h.told()
}

func TestRestoreLeavesASeatTakeable(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.takes("ann", 3, 4)
	sold := seatmap.Marks{Seats: []int{3, 4}, Baskets: []string{ann.Token}}
	h.must(h.store.Spend(t.Context(), h.event, sold))
	if _, err := h.store.Take(t.Context(), h.asks("bob", 3)); !errors.As(err, new(*holds.TakenError)) {
		t.Errorf("a sold seat: %v", err)
	}
	h.must(h.store.Restore(t.Context(), h.event, sold))
	h.takes("bob", 3, 4)
	if got := h.holder(3); got != "token-bob" {
		t.Errorf("seat 3 is held by %q", got)
	}
	h.sound()
}

func TestRestoreKeepsALiveHold(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.takes("ann", 3)
	h.must(h.store.Restore(t.Context(), h.event, seatmap.Marks{Seats: []int{3, 4}}))
	if h.holder(3) != "token-ann" || len(h.log()) != 2 {
		t.Errorf("seat 3 is held by %q, the log has %d changes", h.holder(3), len(h.log()))
	}
	h.rdb.SetRange(t.Context(), seatmap.MapKey(h.event), 0, "\x80") // the map says sold
	h.must(h.store.Restore(t.Context(), h.event, seatmap.Marks{Seats: []int{3}}))
	if last := h.log()[2]; !slices.Equal(last.Reserved, []int{3}) {
		t.Errorf("logged %+v", last)
	}
	h.sound()
}

func TestMarksOfAWholeHouse(t *testing.T) {
	t.Parallel()
	const seats = 12_000
	h := setup(t, seats)
	every := make([]int, seats)
	for i := range every {
		every[i] = i
	}
	half := seatmap.Marks{Seats: every[:seats/2], Closed: every[seats/2:]}
	h.must(h.store.Spend(t.Context(), h.event, half))
	if m := h.seatmap(); m.At(0) != seatmap.Sold || m.At(seats-1) != seatmap.Unavailable {
		t.Error("the map does not tell")
	}
	h.must(h.store.Restore(t.Context(), h.event, half))
	if m := h.seatmap(); slices.Max(m) != 0 {
		t.Error("the map still shows marks")
	}
	h.chained()
}

func TestLapseMakesTheMapTell(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	r := h.asks("ann", 3, 4)
	r.Terms.Hold, r.Terms.Grace = 20*time.Millisecond, 0
	_, err := h.store.Take(t.Context(), r)
	h.must(err)
	h.takes("bob", 5)
	h.eventually("both seats lapse", func() bool {
		h.must(h.store.Lapse(t.Context(), h.event))
		return h.seatmap().At(4) == seatmap.Available
	})
	if last := h.log()[3]; !slices.Equal(last.Released, []int{3, 4}) {
		t.Errorf("logged %+v", last)
	}
	h.unchanged("the next lapse", func() { h.must(h.store.Lapse(t.Context(), h.event)) })
	h.sound()
	h.told()
}

func TestLapseTrustsTheKeyNotItsIndex(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.takes("ann", 3)
	h.rdb.ZAdd(t.Context(), seatmap.HeldKey(h.event), zs(1, 3)...)    // too early
	h.rdb.ZAdd(t.Context(), seatmap.HeldKey(h.event), zs(1, 4, 5)...) // nobody holds these
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{6}}))
	h.rdb.ZAdd(t.Context(), seatmap.HeldKey(h.event), zs(1, 6)...) // nor this
	changes := len(h.log())
	h.must(h.store.Lapse(t.Context(), h.event))
	if len(h.log()) != changes {
		t.Error("numbered though no hold had ended")
	}
	if n := h.rdb.ZCard(t.Context(), seatmap.HeldKey(h.event)).Val(); n != 1 {
		t.Errorf("%d entries are left, want seat 3's", n)
	}
	h.sound()
}

func TestLapseTellsOfEachSeatOnceThoughHoldsOverlapped(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	brief := func(name string, seats ...int) {
		r := h.asks(name, seats...)
		r.Terms.Hold, r.Terms.Grace = 20*time.Millisecond, 0
		h.eventually(name+" takes", func() bool {
			_, err := h.store.Take(t.Context(), r)
			return err == nil
		})
	}
	brief("ann", 3, 4, 5)
	brief("bob", 3, 4)
	h.eventually("seat 3 is free", func() bool { return h.holder(3) == "" })
	h.takes("cid", 3)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{5}}))
	h.eventually("only cid's hold is indexed", func() bool {
		h.must(h.store.Lapse(t.Context(), h.event))
		return h.rdb.ZCard(t.Context(), seatmap.HeldKey(h.event)).Val() == 1
	})
	var released []int
	for _, c := range h.log() {
		released = append(released, c.Released...)
	}
	if !slices.Equal(released, []int{4}) || h.seatmap().At(3) != seatmap.Held {
		t.Errorf("released %v; seat 3 is %s", released, h.seatmap().At(3))
	}
	h.sound()
}

func TestASoldHoldIsIndexedNoLonger(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.takes("ann", 3, 4)
	h.takes("bob", 5, 6)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{3, 4}, Closed: []int{5}}))
	if got := h.rdb.ZRange(t.Context(), seatmap.HeldKey(h.event), 0, -1).Val(); !slices.Equal(got, []string{"5,6"}) {
		t.Errorf("indexed are %q", got)
	}
	h.sound()
}

func TestLapseOfMoreThanOneBatch(t *testing.T) {
	t.Parallel()
	const seats = 2_500
	h := setup(t, seats)
	for from := 0; from < seats; from += 500 {
		r := h.asks("many")
		for i := range 500 {
			r.Seats = append(r.Seats, from+i)
		}
		r.Token += string(rune('a' + from/500))
		r.Terms = seatmap.Terms{Hold: time.Second, Cap: time.Minute, SeatsPerUser: seats}
		_, err := h.store.Take(t.Context(), r)
		h.must(err)
	}
	h.eventually("the map is free", func() bool {
		h.must(h.store.Lapse(t.Context(), h.event))
		return slices.Max(h.seatmap()) == 0
	})
	h.sound()
}

func TestLapserLapsesHotEventsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	r := h.asks("ann", 3)
	r.Terms.Hold, r.Terms.Grace = 20*time.Millisecond, 0
	_, err := h.store.Take(t.Context(), r)
	h.must(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1) // one value: the end
	go func() { ended <- holds.Lapser{Store: h.store, Sales: hot{h.event}, Log: quiet}.Run(ctx) }()
	h.eventually("the seat lapses", func() bool { return h.seatmap().At(3) == seatmap.Available })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// silence is a Redis that answers nothing about one event until it ends.
type silence struct {
	event string
	asked atomic.Int64
	begun chan struct{} // closed when it is asked for the first time
	ended <-chan struct{}
}

func (s *silence) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *silence) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (s *silence) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(cmd.Args(), any(seatmap.SeqKey(s.event))) {
			if s.asked.Add(1) == 1 {
				close(s.begun)
			}
			<-s.ended
		}
		return next(ctx, cmd)
	}
}

func TestNoHotEventWaitsForOneThatIsSilent(t *testing.T) {
	t.Parallel()
	mute, other := setup(t, 40), setup(t, 40)
	brief := func(h *house, seat int) {
		t.Helper()
		r := h.asks("ann", seat)
		r.Token += strconv.Itoa(seat)
		r.Terms.Hold, r.Terms.Grace = 20*time.Millisecond, 0
		_, err := h.store.Take(t.Context(), r)
		h.must(err)
	}
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	defer end()
	silent := &silence{event: mute.event, begun: make(chan struct{}), ended: ended}
	rdb := redis.NewClient(other.rdb.Options())
	t.Cleanup(func() { _ = rdb.Close() })
	rdb.AddHook(silent)
	lapser := holds.Lapser{Store: holds.New(rdb, judge(other.ask), voice(other.hear), quiet), Sales: hot{mute.event, other.event}, Log: quiet}
	brief(mute, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	over := make(chan error, 1) // one value: the end
	go func() { over <- lapser.Run(ctx) }()

	<-silent.begun
	for _, seat := range []int{3, 4} { // one round after the other
		brief(other, seat)
		other.eventually("the other's seat lapses", func() bool { return other.seatmap().At(seat) == seatmap.Available })
	}
	if n := silent.asked.Load(); n != 1 {
		t.Errorf("the silent one is asked %d times at once", n)
	}
	end()
	mute.eventually("its seat lapses, now that Redis answers", func() bool { return mute.seatmap().At(3) == seatmap.Available })
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
