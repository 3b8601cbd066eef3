package holds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/seatmap"
)

func TestABasketIsReadWithGET(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	b := h.takes("ann", 3, 9)
	stored, err := h.rdb.Get(t.Context(), seatmap.BasketKey(h.event, b.Token)).Result()
	h.must(err)
	head, body, _ := strings.Cut(stored, " {")
	if want := fmt.Sprint("held ", b.First.UnixMilli(), " ", b.Until.UnixMilli(), " ", b.Cap.UnixMilli()); head != want {
		t.Errorf("it begins %q, want %q", head, want)
	}
	var said struct {
		User  string
		Seats []int
		Quote struct{ Total seatmap.Money }
	}
	h.must(json.Unmarshal([]byte("{"+body), &said))
	if said.User != b.User || fmt.Sprint(said.Seats) != "[3 9]" || said.Quote.Total.Amount != 19000 {
		t.Errorf("it says %+v", said)
	}
}

func TestABasketThatCannotBeReadIsSaidSoAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.takes("ann", 3, 4)
	for _, text := range []string{"", "held 1 2 3", "held 1 2 3 ", "held 1 2 3 {", "held x 2 3 {}", "asleep 1 2 3 {}",
		"held 1 2 99999999999999999999 {}", `held 1 2 3 {"seats":"3"}`, "garbage"} {
		h.must(h.rdb.Set(t.Context(), seatmap.BasketKey(h.event, ann.Token), text, time.Hour).Err())
		for name, call := range map[string]func() error{
			"take": func() error { _, err := h.store.Take(t.Context(), h.asks("ann", 3, 4)); return err },
			"extend": func() error {
				_, err := h.store.Extend(t.Context(), h.event, ann.Token, ann.User, time.Hour, 0)
				return err
			},
			"release": func() error { return h.store.Release(t.Context(), h.event, ann.Token, ann.User) },
			"basket":  func() error { _, err := h.store.Basket(t.Context(), h.event, ann.Token); return err },
		} {
			h.unchanged(name, func() {
				if err := call(); err == nil || !strings.Contains(err.Error(), "cannot be read") || !strings.Contains(err.Error(), ann.Token) {
					t.Errorf("%s of %q: %v", name, text, err)
				}
			})
		}
	}
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{3}, Baskets: []string{ann.Token}})) // what is sold is sold
	h.truth.Sold, h.truth.Baskets = []int{3}, []seatmap.Basket{paying(ann)}
	h.must(h.store.Rebuild(t.Context(), h.event, time.Now().UnixMicro()))
	if got, err := h.store.Basket(t.Context(), h.event, ann.Token); err != nil || fmt.Sprint(got.Lost) != "[3]" {
		t.Errorf("rebuilt it is %+v %v", got, err)
	}
	h.sound()
}

// meddler calls f behind every plain read of a basket.
type meddler func()

func (m meddler) DialHook(next redis.DialHook) redis.DialHook { return next }
func (m meddler) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (m meddler) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "mget" {
			m()
		}
		return err
	}
}

// Between the read that tells whose a basket is and the script that acts on
// it, the basket may become another.
func TestABasketThatMovedIsJudgedAnew(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	key := seatmap.BasketKey(h.event, "token-ann")
	read := func(name string, seats ...int) string {
		b := h.takes(name, seats...)
		return h.rdb.Get(t.Context(), seatmap.BasketKey(h.event, b.Token)).Val()
	}
	mine, bobs, more := read("ann", 3), read("bob", 4), read("cid", 5, 6)
	more = strings.ReplaceAll(more, "user-cid", "user-ann")
	var times atomic.Int64
	meddling := func(f func(n int64)) *holds.Store {
		times.Store(0)
		rdb := redis.NewClient(h.rdb.Options())
		t.Cleanup(func() { _ = rdb.Close() })
		rdb.AddHook(meddler(func() { f(times.Add(1)) }))
		return holds.New(rdb, judge(h.ask), voice(h.hear), quiet)
	}
	becomes := func(texts ...string) func(int64) {
		return func(n int64) {
			h.must(h.rdb.Set(context.Background(), key, texts[(n-1)%int64(len(texts))], time.Hour).Err())
		}
	}
	for _, c := range []struct {
		name    string
		becomes func(int64)
		says    string
		want    error
	}{
		{"somebody else's", becomes(bobs), "", seatmap.ErrNotYours},
		{"garbage", becomes("garbage"), "cannot be read", nil},
		{"gone", func(int64) { h.rdb.Del(context.Background(), key) }, "", seatmap.ErrNoBasket},
		{"another again and again", becomes(more, mine), "all the time", seatmap.ErrUnavailable},
	} {
		for name, act := range map[string]func(*holds.Store) error{
			"extend": func(s *holds.Store) error {
				_, err := s.Extend(t.Context(), h.event, "token-ann", "user-ann", time.Hour, 0)
				return err
			},
			"release": func(s *holds.Store) error { return s.Release(t.Context(), h.event, "token-ann", "user-ann") },
			"swap": func(s *holds.Store) error {
				_, err := s.Swap(t.Context(), h.swaps(seatmap.Basket{Token: "token-ann", User: "user-ann"}, 3, 9))
				return err
			},
		} {
			h.must(h.rdb.Set(t.Context(), key, mine, time.Hour).Err())
			changes := len(h.log())
			err := act(meddling(c.becomes))
			if err == nil || !errors.Is(err, c.want) && c.want != nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s of what is %s: %v", name, c.name, err)
			}
			if len(h.log()) != changes || h.holder(3) != "token-ann" || h.counts("user-ann") != 1 {
				t.Errorf("%s of what is %s changed something", name, c.name)
			}
		}
	}
	h.must(h.rdb.Set(t.Context(), key, mine, time.Hour).Err())
	h.must(meddling(func(int64) {}).Release(t.Context(), h.event, "token-ann", "user-ann"))
	h.sound()
}

func TestTheIndexOfAnAccountEndsWithItsLastHoldAndAnHourAfterItsPaceBegan(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.asks("ann", 1, 2)
	ann.Terms.Hold, ann.Terms.Cap = 2*time.Hour, 9*time.Hour
	first := h.takesAgain(ann)
	short := h.asks("short", 3)
	short.User, short.Terms.Cap = ann.User, 9*time.Hour
	second := h.takesAgain(short)
	ends := func(want time.Time, seats int) {
		t.Helper()
		end := h.rdb.PExpireTime(t.Context(), seatmap.UserKey(h.event, ann.User)).Val().Milliseconds()
		if end != want.UnixMilli() || h.counts(ann.User) != seats {
			t.Errorf("%d seats count until %d, want %d until %d", h.counts(ann.User), end, seats, want.UnixMilli())
		}
	}
	ends(first.Until, 3)
	second, err := h.store.Extend(t.Context(), h.event, second.Token, ann.User, 5*time.Hour, 0)
	h.must(err)
	ends(second.Until, 3)
	h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{1}}))
	ends(second.Until, 2)
	h.must(h.store.Release(t.Context(), h.event, second.Token, ann.User))
	ends(first.Until, 1)
	h.must(h.store.Release(t.Context(), h.event, first.Token, ann.User))
	ends(first.First.Add(time.Hour), 0)
	h.must(h.rdb.Set(t.Context(), seatmap.UserKey(h.event, ann.User), "garbage 99999999999999999999:1,2 1:3 :", 0).Err())
	third := h.asks("third", 5)
	third.User = ann.User
	ends(h.takesAgain(third).First.Add(time.Hour), 1)
	h.sound()
}
