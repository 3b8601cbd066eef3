package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
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
