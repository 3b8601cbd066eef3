package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"seatcast/seatmap"
	"seatcast/seatmap/history"
)

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n%q, not\n%q", what, got, want)
	}
}

func TestEveryChangeIsAnEntryOfEachSeatItNames(t *testing.T) {
	h := setup(t)
	h.record()
	h.hold("ann-the-first", 1, 2)
	h.hold("bob-the-second", 5)
	h.change(seatmap.Change{Released: []int{1}, Reserved: []int{3}, Why: seatmap.Swapped, Tag: "ann-th", Until: time.Now().UnixMilli()})
	h.change(seatmap.Change{Released: []int{2, 3}, Why: seatmap.GivenBack, Tag: "ann-th"})
	h.change(seatmap.Change{Booked: []int{5}, Closed: []int{6}})
	h.change(seatmap.Change{Released: []int{6}, Why: seatmap.Restored})
	h.change(seatmap.Change{Reserved: []int{7}, Until: time.Now().UnixMilli(), Tag: "gone__"})
	h.change(seatmap.Change{Released: []int{7}, Why: seatmap.Lapsed})
	h.change(seatmap.Change{Released: []int{5}})
	h.change(seatmap.Change{Areas: map[string]int{"floor": 3}})
	h.record()
	want(t, "entries", h.rows(),
		"1 held ann-the-first", "2 held ann-the-first", "5 held bob-the-second",
		"1 swapped ann-th", "3 held ann-th", "2 given_back ann-th", "3 given_back ann-th",
		"5 sold", "6 closed", "6 restored", "7 held gone__", "7 lapsed", "5 released")
	want(t, "gaps", h.gaps(), "began")
	h.entered()
	if n := h.count("seat_log_entries_total"); n != 13 {
		t.Errorf("%v entries are counted", n)
	}
}

// An event that was on sale before anybody recorded it is entered as it is found.
func TestWhatWasThereBeforeTheFirstLookIsSeen(t *testing.T) {
	h := setup(t)
	h.hold("ann-the-first", 1)
	h.change(seatmap.Change{Reset: true})
	h.change(seatmap.Change{Booked: []int{2}})
	h.record()
	want(t, "entries", h.rows(), "1 held! ann-the-first", "2 sold")
	want(t, "gaps", h.gaps(), "began")
}

// sell changes the event n times.
func (h *house) sell(n int) {
	for k := range n {
		i := k % seats
		switch k / seats % 3 {
		case 0:
			h.hold(fmt.Sprintf("token-%d", k), i, (i+1)%seats)
		case 1:
			h.change(seatmap.Change{Released: []int{i, (i + 7) % seats}, Why: seatmap.Lapsed})
		default:
			h.change(seatmap.Change{Booked: []int{i}})
		}
	}
}

func TestRecordersTogetherEnterEveryChangeOnce(t *testing.T) {
	h := setup(t)
	h.record()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all errgroup.Group
	for range 3 {
		r := h.recorder(nil)
		all.Go(func() error { return r.Run(ctx) })
	}
	h.sell(2000)
	last := h.said[len(h.said)-1].N
	h.eventually("all is recorded", func() bool { return h.position() == last })
	cancel()
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	h.entered()
	want(t, "gaps", h.gaps(), "began")
	if len(h.rebuilds) > 0 {
		t.Errorf("rebuilt at %v", h.rebuilds)
	}
}

func (h *house) position() (n int64) {
	h.tb.Helper()
	if err := h.pool.QueryRow(context.Background(), `SELECT n FROM seat_log_positions WHERE event_id = $1`, h.event).Scan(&n); err != nil {
		h.tb.Fatal(err)
	}
	return n
}

// Whatever it is killed in, the next one goes on from there.
func TestARecorderKilledAtAnyMomentLosesNothingAndRepeatsNothing(t *testing.T) {
	h := setup(t)
	h.record()
	var sale errgroup.Group
	sale.Go(func() error { h.sell(3000); return nil })
	killed := 0
	for range 150 {
		ctx, kill := context.WithTimeout(t.Context(), time.Duration(rand.IntN(12000))*time.Microsecond)
		if err := h.recorder(nil).Record(ctx, h.event); err != nil {
			killed++
		}
		kill()
	}
	_ = sale.Wait() // it returns none
	last := h.said[len(h.said)-1].N
	h.eventually("the last one has the event for itself", func() bool { h.record(); return h.position() == last })
	h.entered()
	want(t, "gaps", h.gaps(), "began")
	if killed < 20 {
		t.Errorf("only %d were killed in their work", killed)
	}
}

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

// Cold events, and such as nobody sells any more, cost nothing but a look.
func TestAnEventThatIsColdOrLongOverIsNotRecorded(t *testing.T) {
	sold := setup(t)
	over, cold := another(t, sold.pool), another(t, sold.pool)
	over.exec(`UPDATE events SET starts_at = now() - interval '31 days' WHERE id = $1`, over.event)
	cold.empty()
	run(t, sold.Recorder, func() {
		sold.eventually("the third is recorded", func() bool { return len(sold.gaps()) == 1 })
	})
	cold.record()
	if n := len(over.gaps()) + len(cold.gaps()); n != 0 {
		t.Errorf("%d gaps of the others", n)
	}
}

// run runs a recorder while do does something.
func run(t *testing.T, r *history.Recorder, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	do()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheLagGrowsWhilePostgresIsAwayAndIsMadeUpFor(t *testing.T) {
	h := setup(t)
	h.record()
	away, err := pgxpool.New(t.Context(), h.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	r := history.NewRecorder(history.Options{Book: history.NewBook(away), Redis: h.rdb, Rebuilder: h, Registerer: reg, Every: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	h.reg = reg
	run(t, r, func() {
		h.sell(10)
		h.eventually("it records", func() bool { return h.position() == h.said[len(h.said)-1].N })
		away.Close()
		h.sell(10)
		h.eventually("it says that it is late", func() bool { return h.count("seat_log_lag_seconds") > 0.2 && h.count("seat_log_failures_total") > 2 })
	})
	h.record()
	h.entered()
}

func TestTheDatabaseRefusesToChangeHistory(t *testing.T) {
	h := setup(t)
	h.hold("ann-the-first", 1)
	h.record()
	ctx := t.Context()
	for _, sql := range []string{
		`UPDATE seat_log SET what = 'sold'`, `DELETE FROM seat_log`, `TRUNCATE seat_log`,
		`UPDATE seat_log_gaps SET reason = 'fork'`, `DELETE FROM seat_log_gaps`, `TRUNCATE seat_log_gaps`,
		`SELECT forget_seat_log('` + h.event + `')`,
	} {
		if _, err := h.pool.Exec(ctx, sql); err == nil || !refused(err) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	h.exec(`UPDATE events SET starts_at = now() - interval '31 days'`)
	var entries int
	if err := h.pool.QueryRow(ctx, `SELECT forget_seat_log($1)`, h.event).Scan(&entries); err != nil || entries != 1 {
		t.Errorf("%d entries forgotten, %v", entries, err)
	}
	if len(h.rows())+len(h.gaps()) > 0 {
		t.Error("something of it is left")
	}
}

func refused(err error) bool {
	var state interface{ SQLState() string }
	return errors.As(err, &state) && state.SQLState() == "23001"
}
