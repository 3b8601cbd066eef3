package holds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/seatmap"
	"seatcast/web"
)

// books remember what they are told, and fail when told to.
type books struct {
	mu       sync.Mutex
	open     []string
	failing  error
	followed map[string]seatmap.Basket
	kept     []seatmap.Basket
}

func (b *books) Keep(_ context.Context, _ *seatmap.Sale, basket seatmap.Basket) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failing != nil {
		return b.failing
	}
	b.kept = append(b.kept, basket)
	return nil
}

func (b *books) Booked(_ context.Context, _, token string) (seatmap.Basket, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.kept {
		if one.Token == token {
			return one, nil
		}
	}
	return seatmap.Basket{}, seatmap.ErrNoBasket
}

func (b *books) Open(context.Context, string) ([]string, error) { return b.open, nil }

func (b *books) Follow(_ context.Context, _ string, baskets []seatmap.Basket) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failing != nil {
		return b.failing
	}
	if b.followed == nil {
		b.followed = map[string]seatmap.Basket{}
	}
	for _, one := range baskets {
		b.followed[one.Token] = one
	}
	return nil
}

// ends is when a hold key ends.
func (h *house) ends(seat int) time.Time {
	h.Helper()
	ms, err := h.rdb.PExpireTime(h.Context(), seatmap.HoldKey(h.event, seat)).Result()
	h.must(err)
	return time.UnixMilli(int64(ms / time.Millisecond)).UTC()
}

func (h *house) basket(name string) seatmap.Basket {
	h.Helper()
	b, err := h.store.Basket(h.Context(), h.event, "token-"+name)
	h.must(err)
	return b
}

func TestAllHoldsAreExtendedWithTheirCapsAndNobodyElsesIndex(t *testing.T) {
	h := setup(t, 40)
	a, b := h.takes("ann", 1, 2), h.takes("bob", 7)
	other := h.asks("ann2", 9)
	other.User = "user-ann" // two holds of one account
	c, err := h.store.Take(t.Context(), other)
	h.must(err)
	before := len(h.log())
	done, err := h.store.ShiftAll(t.Context(), h.event, "op", 5*time.Minute, &books{})
	h.must(err)
	if done != (holds.Shift{Moved: 3}) {
		t.Fatalf("it came to %+v", done)
	}
	for name, was := range map[string]seatmap.Basket{"ann": a, "bob": b, "ann2": c} {
		now := h.basket(name)
		if !now.Until.Equal(was.Until.Add(5*time.Minute)) || !now.Cap.Equal(was.Cap.Add(5*time.Minute)) || !now.First.Equal(was.First) {
			t.Errorf("%s: %v to %v, cap %v to %v", name, was.Until, now.Until, was.Cap, now.Cap)
		}
		for _, i := range was.Seats {
			if got := h.ends(i); !got.Equal(now.Until) {
				t.Errorf("the key of seat %d ends %v, its basket %v", i, got, now.Until)
			}
		}
		entry := strings.Trim(strings.ReplaceAll(fmt.Sprint(was.Seats), " ", ","), "[]")
		if score := h.rdb.ZScore(t.Context(), seatmap.HeldKey(h.event), entry).Val(); int64(score) != now.Until.UnixMilli() {
			t.Errorf("held has %s until %.0f, not %d", entry, score, now.Until.UnixMilli())
		}
	}
	index := h.rdb.Get(t.Context(), seatmap.UserKey(h.event, "user-ann")).Val()
	for _, b := range []seatmap.Basket{h.basket("ann"), h.basket("ann2")} {
		if !strings.Contains(index, fmt.Sprint(b.Until.UnixMilli(), ":")) {
			t.Errorf("the index of ann is %q", index)
		}
	}
	var told []int
	for _, c := range h.log()[before:] {
		if c.Until == 0 || c.Tag == "" {
			t.Errorf("a change tells no node until when: %+v", c)
		}
		told = append(told, c.Reserved...)
	}
	if slices.Sort(told); !slices.Equal(told, []int{1, 2, 7, 9}) {
		t.Errorf("told of %v", told)
	}
	h.sound()
	h.told()
}

func TestAnInterruptedExtensionGoesOnAndExtendsNoHoldTwice(t *testing.T) {
	h := setup(t, 400)
	was := map[string]seatmap.Basket{}
	for n := range 130 {
		name := fmt.Sprint("n", n)
		was[name] = h.takes(name, 3*n, 3*n+1)
	}
	b := &books{failing: errors.New("no room")}
	first, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Minute, b)
	if err == nil || first.Moved == 0 || first.Moved == len(was) {
		t.Fatalf("it came to %+v, %v", first, err)
	}
	h.takes("late", 399)
	b.failing = nil
	second, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Minute, b)
	h.must(err)
	if second.Again != first.Moved || first.Moved+second.Moved != len(was) {
		t.Errorf("first %+v, then %+v", first, second)
	}
	third, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Minute, b)
	h.must(err)
	if third != (holds.Shift{Again: len(was)}) {
		t.Errorf("then %+v", third)
	}
	for name, before := range was {
		if now := h.basket(name); !now.Until.Equal(before.Until.Add(time.Minute)) {
			t.Fatalf("%s was moved by %v", name, now.Until.Sub(before.Until))
		}
		if row := b.followed["token-"+name]; !row.Until.Equal(before.Until.Add(time.Minute)) || !row.Cap.Equal(before.Cap.Add(time.Minute)) {
			t.Fatalf("the books have %s until %v", name, row.Until)
		}
	}
	h.sound()
	if late := h.basket("late"); late.Until.Sub(late.First) > 9*time.Minute {
		t.Error("a hold of after the operation's beginning was extended")
	}
	if _, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Hour, b); !errors.Is(err, holds.ErrOtherShift) {
		t.Errorf("the same operation by another time: %v", err)
	}
}

func TestARebuildBeforeTheBooksFollowShortensNothing(t *testing.T) {
	h := setup(t, 10)
	was := h.takes("ann", 1)
	if _, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Hour, &books{failing: errors.New("no room")}); err == nil {
		t.Fatal("the books have followed")
	}
	h.mu.Lock()
	h.truth.Baskets = []seatmap.Basket{was}
	h.mu.Unlock()
	h.must(h.store.Rebuild(t.Context(), h.event, h.last().N))
	now := h.basket("ann")
	if !now.Until.Equal(was.Until.Add(time.Hour)) || !now.Cap.Equal(was.Cap.Add(time.Hour)) {
		t.Errorf("%v to %v, cap %v to %v", was.Until, now.Until, was.Cap, now.Cap)
	}
	longer, err := h.store.Extend(t.Context(), h.event, was.Token, was.User, time.Minute, 0)
	h.must(err)
	if longer.Until.Before(now.Until) {
		t.Errorf("extended from %v to %v", now.Until, longer.Until)
	}
	h.sound()
}

func TestWhatHasEndedIsNotRevivedAndWhatIsSoldStaysSold(t *testing.T) {
	h := setup(t, 40)
	short := h.asks("short", 1)
	short.Terms.Hold, short.Terms.Grace = 30*time.Millisecond, 0
	_, err := h.store.Take(t.Context(), short)
	h.must(err)
	h.takes("back", 2)
	h.must(h.store.Release(t.Context(), h.event, "token-back", "user-back"))
	h.takes("paid", 3)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{3}, Baskets: []string{"token-paid"}}))
	h.takes("half", 4, 5)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Closed: []int{4}}))
	for h.rdb.Exists(t.Context(), seatmap.HoldKey(h.event, 1)).Val() == 1 {
		time.Sleep(time.Millisecond)
	}
	was := h.basket("half")
	b := &books{open: []string{"token-short", "token-back", "token-paid", "token-half", "token-nobody"}}
	done, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Minute, b)
	h.must(err)
	if done != (holds.Shift{Moved: 1, Ended: 3}) {
		t.Errorf("it came to %+v", done)
	}
	if got := slices.Collect(maps.Keys(b.followed)); !slices.Equal(got, []string{"token-half"}) {
		t.Errorf("followed: %v", got)
	}
	for seat, want := range map[int]string{1: "", 2: "", 3: "sold", 4: "closed", 5: "token-half"} {
		if got := h.rdb.Get(t.Context(), seatmap.HoldKey(h.event, seat)).Val(); got != want {
			t.Errorf("seat %d is held by %q, not %q", seat, got, want)
		}
	}
	if !h.ends(5).Equal(was.Until.Add(time.Minute)) {
		t.Error("what is left of a hold was not extended")
	}
	h.sound()
}

// While an operation runs holds come, go and are swapped: at the end none has
// lost a seat, and each was moved once or not at all.
func TestHoldsMayChangeWhileAllAreExtended(t *testing.T) {
	h := setup(t, 600)
	for n := range 100 {
		h.takes(fmt.Sprint("n", n), 2*n)
	}
	var work sync.WaitGroup
	for k := range 4 {
		work.Go(func() {
			for n := k; n < 100; n += 4 {
				name := fmt.Sprint("n", n)
				switch n % 3 {
				case 0:
					_ = h.store.Release(t.Context(), h.event, "token-"+name, "user-"+name)
				case 1:
					if _, err := h.store.Swap(t.Context(), h.swaps(seatmap.Basket{Token: "token-" + name, User: "user-" + name}, 2*n+1)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	work.Go(func() {
		if _, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Minute, &books{}); err != nil {
			t.Error(err)
		}
	})
	work.Wait()
	h.sound()
	for n := range 100 {
		if n%3 == 0 {
			continue
		}
		b := h.basket(fmt.Sprint("n", n))
		if len(b.Lost) > 0 || b.State != seatmap.BasketHeld {
			t.Errorf("n%d is %s and has lost %v", n, b.State, b.Lost)
		}
		if moved := b.Cap.Sub(b.First) - terms.Cap - terms.Grace; moved != time.Minute {
			t.Errorf("n%d was moved by %v", n, moved)
		}
		if !h.ends(b.Seats[0]).Equal(b.Until) {
			t.Errorf("n%d: its key ends %v, it %v", n, h.ends(b.Seats[0]), b.Until)
		}
	}
}

// busyBooks are books of an event of which somebody takes a seat whenever all
// its holds are looked for.
type busyBooks struct {
	books
	takes func()
}

func (b *busyBooks) Open(ctx context.Context, event string) ([]string, error) {
	b.takes()
	return b.books.Open(ctx, event)
}

func TestHoldsThatBeginWhileAllAreExtendedKeepNobodyFromTheEnd(t *testing.T) {
	h := setup(t, 600)
	for n := range 100 {
		h.takes(fmt.Sprint("n", n), 2*n)
	}
	came := 0
	b := &busyBooks{takes: func() {
		h.tick()
		h.takes(fmt.Sprint("late", came), 200+came)
		came++
	}}
	done, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Minute, b)
	if err != nil || done.Moved != 100 {
		t.Errorf("%+v, %v", done, err)
	}
	again, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Minute, b)
	if err != nil || again.Moved != 0 || again.Again != 100 {
		t.Errorf("once more: %+v, %v", again, err)
	}
	for k := range came {
		if late := h.basket(fmt.Sprint("late", k)); late.Cap.Sub(late.First) != terms.Cap+terms.Grace {
			t.Errorf("one that began meanwhile was moved too: %+v", late)
		}
	}
}

// Its seats were read where it held none yet, and where it held none any more.
func TestABasketThatIsSwappedWhileAllAreListedIsExtended(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.takes("ann", 3)
	rdb := redis.NewClient(h.rdb.Options())
	t.Cleanup(func() { _ = rdb.Close() })
	var swapped atomic.Bool
	rdb.AddHook(behind{seatmap.MapKey(h.event), func() {
		if swapped.CompareAndSwap(false, true) {
			_, err := h.store.Swap(t.Context(), h.swaps(ann, 4))
			h.must(err)
		}
	}})
	done, err := holds.New(rdb, judge(h.ask), voice(h.hear), quiet).ShiftAll(t.Context(), h.event, "op", time.Minute, &books{})
	if err != nil || done.Moved != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// behind calls f behind every pipeline that asks for a key.
type behind struct {
	key string
	f   func()
}

func (b behind) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (b behind) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (b behind) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return slices.Contains(c.Args(), any(b.key)) }) {
			b.f()
		}
		return err
	}
}

func TestAHoldOfTheBoxOfficeThatWasNotWrittenDownMayBeAskedForAgain(t *testing.T) {
	s := newShop(t, onStore)
	b := &books{failing: seatmap.ErrUnavailable}
	e := web.New(web.Options{Log: quiet})
	holds.NewOffice(s.api, b).MountAdmin(e.Group("/v1/admin", web.AsOperator("boss")))
	ask := func(status int) (booking string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/v1/admin/events/"+s.event+"/hold", strings.NewReader(`{"ticketIds":["n-a-1"],"for":"1h","reason":"press"}`))
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		var told struct{ BookingID string }
		if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Code != status {
			t.Fatalf("%d %s, want %d", w.Code, w.Body, status)
		}
		return told.BookingID
	}
	ask(http.StatusServiceUnavailable)
	ask(http.StatusServiceUnavailable)
	if holder := s.holder(1); holder != "" {
		t.Errorf("%s holds what is in no book", holder)
	}
	b.failing = nil
	first := ask(http.StatusCreated)
	if again := ask(http.StatusOK); again != first {
		t.Errorf("the same request is %s, and then %s", first, again)
	}
	_, token, _ := seatmap.ParseBookingID(first)
	s.must(s.store.Release(t.Context(), s.event, token, "boss"))
	ask(http.StatusConflict) // what was held and given back is not held anew
}
