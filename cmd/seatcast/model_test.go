package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"seatcast/seatmap"
)

// What the model test sells, and on which terms: holds are short, so that many
// lapse while it runs.
const (
	modelSeats = 900 // of the theatre's 1,350 are the model's, the rest the crowd's
	modelPit   = 60
	modelOps   = 2600
	crowdOps   = 2400
)

var modelTerms = seatmap.Terms{
	Hold: 700 * time.Millisecond, Pay: time.Second, Cap: 2 * time.Second, Grace: 100 * time.Millisecond,
	SeatsPerBooking: 6, SeatsPerUser: 9,
}

// Five thousand random operations at a third process, more than half of them
// with the one right answer of a model, the rest of a crowd beside it, while
// two hubs are watched over both transports, by watchers who stay and watchers
// who hop. At every checkpoint all of them see what Postgres and Redis say.
func TestEveryAnswerIsTheModelsAndBothHubsShowTheTruth(t *testing.T) {
	t.Parallel()
	seed := modelSeed(t)
	chart := seatmap.Theatre()
	corner := []seatmap.Point{{X: 0, Y: 0}, {X: 9, Y: 0}, {X: 9, Y: 9}}
	chart.Areas = append(chart.Areas,
		seatmap.Area{ID: "pit", Name: "Pit", Category: "Stalls", Capacity: modelPit, Points: corner},
		seatmap.Area{ID: "lawn", Name: "Lawn", Category: "Boxes", Capacity: 30, Points: corner})
	h := newHouse(t, plan{chart: chart, terms: modelTerms})
	hubs := []*node{h.node("SEATCAST_ROLES=hub"), h.node("SEATCAST_ROLES=hub")}
	api := h.node("SEATCAST_ROLES=api,worker")
	watchers := []*watcher{
		watch(t, h.event, hubs[0].url), watchSocket(t, h.event, hubs[1].url), // the last two hop
		watch(t, h.event, hubs[1].url, hubs[0].url), watchSocket(t, h.event, hubs[0].url, hubs[1].url),
	}
	for _, w := range watchers {
		eventually(t, 5*time.Second, "a first map", func() bool { return w.number() > 0 })
	}

	m := newModel(h, api, seed)
	c := &throng{house: h, api: api}
	c.start(seed)
	for i, o := range rapid.SliceOfN(drawOp(), modelOps, modelOps).Example(seed) {
		if i%40 == 20 {
			watchers[2+i/40%2].hop()
		}
		m.step(i, o)
		if (i+1)%(modelOps/5) == 0 {
			c.pause(func() { m.checkpoint(watchers) })
		}
	}
	c.wait()
	h.unbroken()
	m.checkpoint(watchers)
	t.Logf("%d bookings; the model was answered %v, the crowd %v", len(m.all), m.by, c.by)
}

// modelSeed is random; a failure names it, and SEATCAST_TEST_SEED repeats its
// operations.
func modelSeed(t *testing.T) int {
	t.Helper()
	seed := int(time.Now().UnixNano() & (1<<31 - 1))
	if text := os.Getenv("SEATCAST_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEATCAST_TEST_SEED=%d", seed)
	return seed
}

// checkpoint compares everybody's view, once all that was begun is done.
func (m *model) checkpoint(watchers []*watcher) {
	t := m.house.t
	t.Helper()
	ctx := context.Background()
	m.quiet()
	for _, w := range watchers {
		w.sees(2*time.Second, func() seatmap.Map { return m.truth(ctx, m.rdb) })
		m.seesPlaces(w, m.places())
	}
	m.balanced(ctx)

	sold := map[int]string{}
	rows, err := m.pool.Query(ctx, `SELECT i, booking_id FROM seats WHERE event_id = $1 AND status = 'sold' AND i < $2`, m.event, modelSeats)
	if err != nil {
		t.Fatal(err)
	}
	var i int
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&i, &id}, func() error { sold[i] = id; return nil }); err != nil {
		t.Fatal(err)
	}
	want := map[int]string{}
	for i, o := range m.has {
		if o.state == "sold" {
			want[i] = o.id
		}
	}
	if !maps.Equal(sold, want) {
		t.Fatalf("Postgres sold %v, the model %v", sold, want)
	}
	if left := m.places()["pit"]; left != m.pit {
		t.Fatalf("%d places are left in the pit, %d in the model's", left, m.pit)
	}
}

// places are those left as Postgres says; Redis must say the same.
func (h *house) places() map[string]int {
	h.t.Helper()
	ctx := context.Background()
	left := map[string]int{}
	rows, err := h.pool.Query(ctx, `SELECT area, capacity - sold FROM areas WHERE event_id = $1`, h.event)
	if err != nil {
		h.t.Fatal(err)
	}
	var area string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&area, &n}, func() error { left[area] = n; return nil }); err != nil {
		h.t.Fatal(err)
	}
	for area, text := range h.rdb.HGetAll(ctx, seatmap.AreasKey(h.event)).Val() {
		if text != strconv.Itoa(left[area]) {
			h.t.Errorf("area %s: %s places left in Redis, %d in Postgres", area, text, left[area])
		}
	}
	return left
}

// unbroken follows the log from its first entry to its last, and compares where
// it leads with what Postgres and Redis say when every hold has ended.
func (h *house) unbroken() {
	h.t.Helper()
	ctx := context.Background()
	eventually(h.t, 5*time.Second, "every hold has ended and the map tells", func() bool {
		return h.rdb.ZCard(ctx, seatmap.HeldKey(h.event)).Val() == 0
	})
	last := int64(0)
	log := h.log(ctx)
	for k, c := range log {
		if c.Prev != last || c.N <= c.Prev || c.Reset != (k == 0) {
			h.t.Fatalf("entry %d of the log, %+v, does not follow %d", k, c, last)
		}
		last = c.N
	}
	if last != h.last() {
		h.t.Errorf("the log ends at %d, the event is at %d", last, h.last())
	}
	if got, want := mapAt(log, h.chart.Seats, last), h.truth(ctx, h.rdb); !slices.Equal(got, want) {
		h.t.Errorf("the log of %d entries leads elsewhere: %s", len(log), differ(want, got))
	}
}

// tally counts answers by what they say.
type tally struct {
	mu sync.Mutex
	by map[string]int
}

func (c *tally) note(kind string, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[fmt.Sprintf("%s %d %s", kind, a.status, a.Code)]++
}
