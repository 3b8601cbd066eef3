package holds_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"seatcast/holds"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// highest is the largest number after which one more is exact everywhere.
const highest = 1<<53 - 2

func TestNumbersAreExactUpToTheLastOneThereIs(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.must(h.rdb.Set(t.Context(), seatmap.SeqKey(h.event), int64(highest-3), 0).Err())
	h.must(h.rdb.Del(t.Context(), seatmap.LogKey(h.event)).Err())
	for k := range 4 {
		h.takes(fmt.Sprint(k), k)
	}
	for k, c := range h.log() {
		if c.Prev != highest-3+int64(k) || c.N != c.Prev+1 {
			t.Errorf("change %d is %d after %d", k, c.N, c.Prev)
		}
	}
	h.chained()
}

func TestBeyondTheLastNumberNothingIsWritten(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	ann := h.takes("ann", 3, 4)
	for _, n := range []string{fmt.Sprint(int64(highest + 1)), fmt.Sprint(int64(1) << 53), "9999999999999999", "99999999999999999999"} {
		h.must(h.rdb.Set(t.Context(), seatmap.SeqKey(h.event), n, 0).Err())
		for name, call := range map[string]func() error{
			"take": func() error { _, err := h.store.Take(t.Context(), h.asks("bob", 7)); return err },
			"extend": func() error {
				_, err := h.store.Extend(t.Context(), h.event, ann.Token, ann.User, 9*time.Minute, 0)
				return err
			},
			"swap":    func() error { _, err := h.store.Swap(t.Context(), h.swaps(ann, 4, 5)); return err },
			"release": func() error { return h.store.Release(t.Context(), h.event, ann.Token, ann.User) },
			"spend":   func() error { return h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{9}}) },
			"restore": func() error { return h.store.Restore(t.Context(), h.event, seatmap.Marks{Seats: []int{9}}) },
			"rebuild": func() error { return h.store.Rebuild(t.Context(), h.event, highest) },
		} {
			h.unchanged(name, func() {
				if err := call(); err == nil || errors.Is(err, seatmap.ErrUnavailable) || !strings.Contains(err.Error(), "2^53") {
					t.Errorf("%s after number %s: %v", name, n, err)
				}
			})
		}
	}
}

// The clock of a node is nobody's: a Redis whose clock is minutes from the
// node's gives and ends holds as any other.
func TestTheClockOfANodeChangesNothing(t *testing.T) {
	t.Parallel()
	for _, offset := range []time.Duration{-11 * time.Minute, 11 * time.Minute, 36 * time.Hour} {
		t.Run(offset.String(), func(t *testing.T) {
			t.Parallel()
			rdb := devtest.RedisServer(t, devstack.RedisOptions{ClockOffset: offset}).Client()
			t.Cleanup(func() { _ = rdb.Close() })
			h := cold(t, rdb, 40)
			h.everyVerb()
			b := h.takes("dan", 20)
			now, err := rdb.Time(t.Context()).Result()
			h.must(err)
			if age := now.Sub(b.First); age < 0 || age > time.Minute {
				t.Errorf("held %v ago by the clock of Redis", age)
			}
			if got, err := h.store.Basket(t.Context(), h.event, b.Token); err != nil || got.State != seatmap.BasketHeld {
				t.Errorf("the basket is %s %v", got.State, err)
			}
			brief := h.asks("eve", 21)
			brief.Terms.Hold, brief.Terms.Grace = 30*time.Millisecond, 0
			ends := time.Now().Add(brief.Terms.Hold)
			h.takesAgain(brief)
			h.eventually("the next taker has the seat", func() bool {
				_, err := h.store.Take(t.Context(), h.asks("fay", 21))
				return err == nil
			})
			if early := time.Until(ends); early > 0 {
				t.Errorf("given to the next %v before its hold ended", early)
			}
			h.sound()
		})
	}
}

// An extension in the very millisecond in which a hold ends: it lasts longer and
// nobody else has had the seat, or it is over and the next taker has it.
func TestExtendAgainstExpiryInTheSameMillisecond(t *testing.T) {
	t.Parallel()
	h := setup(t, 4)
	extended, over := 0, 0
	for n := 0; n < 400 && (n < 120 || extended < 10 || over < 10); n++ {
		r := h.asks(fmt.Sprint("holder-", n), 1)
		r.Terms.Hold, r.Terms.Grace = 8*time.Millisecond, 0
		b := h.takesAgain(r)
		won := make(chan error, 1)
		taker := h.asks(fmt.Sprint("taker-", n), 1)
		go func() { // joined by the receive below
			for {
				_, err := h.store.Take(t.Context(), taker)
				if !errors.As(err, new(*holds.TakenError)) || time.Since(b.Until) > 4*time.Millisecond {
					won <- err
					return
				}
			}
		}()
		for time.Until(b.Until) > time.Duration(n%5)*500*time.Microsecond-time.Millisecond { // spins: a sleep is as long as a hold
			continue
		}
		longer, err := h.store.Extend(t.Context(), h.event, b.Token, b.User, time.Minute, 0)
		took := <-won
		var lost *seatmap.LostError
		switch {
		case err == nil && errors.As(took, new(*holds.TakenError)) && h.holder(1) == b.Token && longer.Until.After(b.Until):
			extended++
			h.must(h.store.Release(t.Context(), h.event, b.Token, b.User))
		case errors.Is(err, seatmap.ErrHoldExpired) || errors.As(err, &lost) && slices.Equal(lost.Seats, []int{1}):
			over++
			if took != nil {
				h.eventually("the next taker has the seat", func() bool {
					_, err := h.store.Take(t.Context(), taker)
					return err == nil
				})
			}
			h.must(h.store.Release(t.Context(), h.event, taker.Token, taker.User))
		default:
			t.Fatalf("round %d: extend says %v, the taker %v, and %q has the seat", n, err, took, h.holder(1))
		}
	}
	t.Logf("%d were extended and %d over", extended, over)
	if extended == 0 || over == 0 {
		t.Error("the two never met")
	}
	h.sound()
}

// Whatever an account, an area or a price is called, a hold of it is read,
// extended, swapped, sold and given back as any other.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"ann", `a"b'c\`, "{x}", "}{", "a:b c", "b7 p1,2,3 99:1,2", "日本\u202e語", "line\nbreak\r\n", "nul\x00", "%s%d%%", strings.Repeat("long", 99), "", "]]", "[[x]]", "*?[a-z]"} {
		f.Add(name, name, uint8(len(name)))
	}
	f.Fuzz(func(t *testing.T, user, area string, seat uint8) {
		if !utf8.ValidString(user) || !utf8.ValidString(area) {
			t.Skip("names come from JSON")
		}
		h := cold(t, devtest.Redis(t), 300)
		h.truth.Left, h.truth.Bought = map[string]int{area: 9}, map[string]int{user: 1}
		h.must(h.store.Rebuild(t.Context(), h.event, 0))
		r := h.asksAs(user, "fuzz", int(seat), int(seat)+1)
		r.Areas, r.Hash = map[string]int{area: 2}, user
		b := h.takesAgain(r)
		if again, err := h.store.Take(t.Context(), r); err != nil || fmt.Sprint(again) != fmt.Sprint(b) || again.User != user || again.Areas[area] != 2 {
			t.Errorf("%v %v", again, err)
		}
		b, err := h.store.Swap(t.Context(), h.swaps(b, int(seat), int(seat)+2))
		h.must(err)
		if n := h.counts(user); n != 2 {
			t.Errorf("%d seats count", n)
		}
		h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{int(seat)}, Areas: map[string]int{area: 7}, Baskets: []string{b.Token}, Bought: map[string]int{user: 3}}))
		if index := h.rdb.Get(t.Context(), seatmap.UserKey(h.event, user)).Val(); !strings.HasPrefix(index, "b3") {
			t.Errorf("the index says %q", index)
		}
		if _, left, err := h.store.Shown(t.Context(), h.event); err != nil || left[area] != 7 {
			t.Errorf("left %v %v", left, err)
		}
		h.sound()
		h.must(h.rdb.Del(t.Context(), h.rdb.Keys(t.Context(), "*{"+h.event+"}*").Val()...).Err())
	})
}

// A token stands in a change as it is, so none is taken that could end the text.
func TestOnlyATokenIsAToken(t *testing.T) {
	t.Parallel()
	h := setup(t, 4)
	for _, token := range []string{"", `"`, "a b", "a}b", "ä", "a\nb", strings.Repeat("a", 65)} {
		r := h.asks("ann", 1)
		r.Token = token
		h.unchanged(fmt.Sprintf("a take with token %q", token), func() {
			if _, err := h.store.Take(t.Context(), r); err == nil {
				t.Errorf("%q is taken for a token", token)
			}
		})
	}
}
