package history_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/seatmap"
)

func TestWhatRedisHasForgottenIsAGapAndWhatDiffersIsSeen(t *testing.T) {
	h := setup(t)
	h.hold("ann-the-first", 1, 2)
	h.record()
	h.change(seatmap.Change{Released: []int{1}}) // forgotten
	h.hold("bob-the-second", 3)                  // forgotten
	h.hold("cyd-the-third", 2)                   // forgotten: another one's, and held as before
	lost := h.change(seatmap.Change{Booked: []int{4}})
	h.change(seatmap.Change{Booked: []int{3}})
	if err := h.rdb.XTrimMinID(t.Context(), seatmap.LogKey(h.event), strconv.FormatInt(lost.N+1, 10)).Err(); err != nil {
		t.Fatal(err)
	}
	h.record()
	want(t, "entries", h.rows(), "1 held ann-the-first", "2 held ann-the-first",
		"1 released!", "2 held! cyd-the-third", "3 sold", "4 sold!")
	want(t, "gaps", h.gaps(), "began", "trimmed")
	h.hold("dan-the-fourth", 9)
	h.record()
	if got, m := h.shown(), h.m; string(got) != string(m) {
		t.Errorf("the entries show %v, the map %v", got, m)
	}
	if n := h.count("seat_log_gaps_total"); n != 2 {
		t.Errorf("%v gaps are counted", n)
	}
}

func TestAnEmptiedRedisIsAGapOnceItIsRebuilt(t *testing.T) {
	h := setup(t)
	h.hold("ann-the-first", 1, 2)
	h.change(seatmap.Change{Booked: []int{2}})
	h.record()
	h.empty()
	h.record() // cold: nothing is known of it yet
	want(t, "gaps", h.gaps(), "began")
	h.m.Set(1, seatmap.Available)
	h.change(seatmap.Change{Reset: true})
	h.hold("bob-the-second", 7)
	h.record()
	want(t, "gaps", h.gaps(), "began", "emptied")
	want(t, "entries", h.rows(), "1 held ann-the-first", "2 held ann-the-first", "2 sold", "1 released!", "7 held bob-the-second")
}

func (h *house) empty() {
	h.tb.Helper()
	ctx := context.Background()
	keys := h.rdb.Keys(ctx, "*{"+h.event+"}*").Val()
	if err := h.rdb.Del(ctx, keys...).Err(); err != nil {
		h.tb.Fatal(err)
	}
}

// A primary that never saw the last changes goes on from before them.
func TestChangesThatAFailoverLostAreAFork(t *testing.T) {
	for name, goesOn := range map[string]bool{"nothing happened since": false, "and it has gone on": true} {
		t.Run(name, func(t *testing.T) {
			h := setup(t)
			h.hold("ann-the-first", 1)
			old, kept, shown := len(h.said), h.dump(), slices.Clone(h.m)
			h.hold("bob-the-second", 2)
			h.change(seatmap.Change{Booked: []int{3}})
			h.record()
			recorded := h.position()

			h.restore(kept)
			h.said, h.m = h.said[:old], shown
			if goesOn {
				h.hold("cyd-the-third", 4)
			}
			h.record()
			want(t, "gaps", h.gaps(), "began", "fork")
			if got := h.shown(); string(got) != string(h.m) {
				t.Errorf("the entries show %v, the map %v", got, h.m)
			}
			if !goesOn && !slices.Equal(h.rebuilds, []int64{recorded}) {
				t.Errorf("recorded up to %d, and rebuilt at %v", recorded, h.rebuilds)
			}
			if h.position() <= recorded {
				t.Error("the log goes back")
			}
			h.hold("dan-the-fourth", 9)
			h.record()
			if rows := h.rows(); rows[len(rows)-1] != "9 held dan-the-fourth" {
				t.Errorf("after the gap: %q", rows)
			}
		})
	}
}

// While numbers are ahead of the clock a lost history and the one that goes on
// give the same numbers.
func TestAnotherChangeOfTheSameNumberIsAFork(t *testing.T) {
	for name, goesOn := range map[string]bool{"nothing happened since": false, "and it has gone on": true} {
		t.Run(name, func(t *testing.T) {
			h := setup(t)
			if err := h.Rebuild(t.Context(), h.event, time.Now().Add(time.Minute).UnixMicro()); err != nil {
				t.Fatal(err)
			}
			kept, shown := h.dump(), slices.Clone(h.m)
			lost := h.hold("ann-the-first", 1)
			h.record()
			h.restore(kept)
			h.m = shown
			h.eventually("another millisecond", func() bool { return time.Now().UnixMilli() > lost.At })
			if c := h.hold("bob-the-second", 2); c.N != lost.N {
				t.Fatalf("numbers %d and %d", lost.N, c.N)
			}
			if goesOn {
				h.hold("cyd-the-third", 4)
			}
			h.record()
			want(t, "gaps", h.gaps(), "began", "fork")
			if got := h.shown(); string(got) != string(h.m) {
				t.Errorf("the entries show %v, the map %v", got, h.m)
			}
		})
	}
}

// dump is every key of the event.
func (h *house) dump() map[string]string {
	ctx, all := context.Background(), map[string]string{}
	for _, key := range h.rdb.Keys(ctx, "*{"+h.event+"}*").Val() {
		all[key] = h.rdb.Dump(ctx, key).Val()
	}
	return all
}

func (h *house) restore(all map[string]string) {
	h.tb.Helper()
	h.empty()
	for key, value := range all {
		if err := h.rdb.Restore(context.Background(), key, 0, value).Err(); err != nil {
			h.tb.Fatal(err)
		}
	}
}

func TestARebuildByHandIsAGap(t *testing.T) {
	h := setup(t)
	h.hold("ann-the-first", 1)
	h.m.Set(8, seatmap.Sold)
	h.change(seatmap.Change{Reset: true})
	h.record()
	h.hold("bob-the-second", 2)
	h.m.Set(9, seatmap.Unavailable)
	h.change(seatmap.Change{Reset: true})
	h.hold("cyd-the-third", 3)
	h.record()
	want(t, "gaps", h.gaps(), "began", "reset")
	want(t, "entries", h.rows(), "1 held! ann-the-first", "8 sold!", "2 held bob-the-second", "3 held cyd-the-third", "9 closed!")
}

// One entry written by hand must not stop the log for ever.
func TestWhatCannotBeReadIsAGap(t *testing.T) {
	whole := func(c seatmap.Change) string { b, _ := json.Marshal(c); return string(b) }
	for name, text := range map[string]func(n, prev int64) string{
		"no JSON":        func(int64, int64) string { return "{" },
		"another number": func(n, prev int64) string { return whole(seatmap.Change{N: n + 1, Prev: prev, At: 1}) },
		"no such seat":   func(n, prev int64) string { return whole(seatmap.Change{N: n, Prev: prev, At: 1, Booked: []int{-1}}) },
		"no time":        func(n, prev int64) string { return whole(seatmap.Change{N: n, Prev: prev, At: 9e15, Booked: []int{1}}) },
		"no tag": func(n, prev int64) string {
			return whole(seatmap.Change{N: n, Prev: prev, At: 1, Tag: "a\x00b", Reserved: []int{1}})
		},
		"a number beneath": func(n, _ int64) string { return whole(seatmap.Change{N: n, Prev: n, At: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			h := setup(t)
			h.hold("ann-the-first", 1)
			h.record()
			last := h.said[len(h.said)-1].N
			n := time.Now().UnixMicro()
			ctx := t.Context()
			if err := h.rdb.XAdd(ctx, &redis.XAddArgs{Stream: seatmap.LogKey(h.event), ID: strconv.FormatInt(n, 10) + "-0", Values: []any{"c", text(n, last)}}).Err(); err != nil {
				t.Fatal(err)
			}
			h.rdb.Set(ctx, seatmap.SeqKey(h.event), n, 0)
			h.record()
			h.hold("bob-the-second", 2)
			h.record()
			want(t, "gaps", h.gaps(), "began", "unreadable")
			want(t, "entries", h.rows(), "1 held ann-the-first", "2 held bob-the-second")
		})
	}
}

// A change that names a seat twice means what it says last, as in the map.
func TestASeatNamedTwiceIsWhatWasSaidLast(t *testing.T) {
	h := setup(t)
	h.record()
	h.change(seatmap.Change{Reserved: []int{1, 1}, Booked: []int{1}})
	h.record()
	want(t, "entries", h.rows(), "1 sold")
}
