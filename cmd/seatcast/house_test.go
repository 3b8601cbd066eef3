package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"seatcast/catalog"
	"seatcast/checkout"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/web"
)

// house is one event on real servers of its own, for as many serving nodes as
// a test wants.
type house struct {
	t        testing.TB
	event    string
	chart    *seatmap.Chart
	pool     *pgxpool.Pool
	redis    *devstack.Redis
	rdb      *redis.Client
	sessions *web.Sessions
	env      []string // what every node is configured with
}

// plan changes what newHouse builds.
type plan struct {
	chart *seatmap.Chart // nil: the club
	mode  catalog.Mode   // empty: hot
	guard bool           // the map asks for tickets
	terms seatmap.Terms
	redis string // URL the nodes use, when not the house's own server
}

const testServerKey = "a server key of the tests, long enough"

// newHouse opens an event and returns once nodes can be started on it.
func newHouse(t testing.TB, p plan) *house {
	t.Helper()
	if p.chart == nil {
		p.chart = seatmap.Club()
	}
	if p.mode == "" {
		p.mode = catalog.Hot
	}
	h := &house{t: t, chart: p.chart, pool: devtest.Postgres(t)}
	if p.redis == "" {
		h.redis = devtest.RedisServer(t, devstack.RedisOptions{})
		h.rdb = h.redis.Client()
		t.Cleanup(func() { _ = h.rdb.Close() })
		p.redis = h.redis.URL()
	}
	h.event = h.create(p)
	key := web.GenerateKey()
	h.env = []string{
		"SEATCAST_ADDR=127.0.0.1:0", "SEATCAST_LOG_LEVEL=warn", "SEATCAST_DRAIN=100ms",
		"SEATCAST_POSTGRES_URL=" + h.pool.Config().ConnString(), "SEATCAST_REDIS_URL=" + p.redis, "SEATCAST_NATS_URL=" + devtest.NATSURL(t),
		"SEATCAST_SERVER_KEY=" + testServerKey, "SEATCAST_SESSION_KEY=" + key, "SEATCAST_SESSION_CLAIMS=" + demoClaims,
		"SEATCAST_SANDBOX=true", "SEATCAST_SANDBOX_SECRET=a sandbox secret of the tests",
	}
	parsed, err := web.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if h.sessions, err = web.OpenSessions(t.Context(), web.SessionOptions{Key: parsed, Claims: demoClaims}); err != nil {
		t.Fatal(err)
	}
	return h
}

// create makes the event under an id no other test of this NATS has.
func (h *house) create(p plan) string {
	h.t.Helper()
	ctx := h.t.Context()
	p.terms.HoldsPerUser = cmp.Or(p.terms.HoldsPerUser, 1000) // one shopper does what many would
	p.terms.HoldsPerHour = cmp.Or(p.terms.HoldsPerHour, 100_000)
	shop := catalog.New(h.pool)
	sha, err := shop.PutChart(ctx, p.chart)
	if err != nil {
		h.t.Fatal(err)
	}
	prices := map[string]int64{}
	for i, c := range p.chart.Categories {
		prices[c.Name] = int64(1000 * (i + 1))
	}
	e, err := shop.CreateEvent(ctx, catalog.NewEvent{
		ID: devtest.Event(h.t), Name: "A night out", Venue: "The house", Zone: "Europe/Paris", Mode: p.mode, Guarded: p.guard,
		Opens: time.Now().Add(-time.Hour), Starts: time.Now().Add(24 * time.Hour),
		ChartSHA: sha, Currency: "EUR", Prices: prices, Terms: p.terms,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := shop.SetState(ctx, e.ID, catalog.Open); err != nil {
		h.t.Fatal(err)
	}
	return e.ID
}

// node starts a serving process with extra settings.
func (h *house) node(extra ...string) *node {
	h.t.Helper()
	return h.fated("none", extra...)
}

// fated starts a node that dies at a seam.
func (h *house) fated(seam string, extra ...string) *node {
	h.t.Helper()
	return startNode(h.t, seam, append(slices.Clone(h.env), extra...))
}

// seats returns the ticket ids of the first n seats, in index order.
func (h *house) seats(n int) []string {
	ids := make([]string, h.chart.Seats)
	h.chart.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { ids[s.I] = s.TicketID })
	return ids[:n]
}

// truth is the map as Postgres and the holds of Redis say it ought to be.
func (h *house) truth(ctx context.Context, rdb *redis.Client) seatmap.Map {
	h.t.Helper()
	m := seatmap.NewMap(h.chart.Seats)
	for _, key := range rdb.Keys(ctx, "hold:{"+h.event+"}:*").Val() {
		i, err := strconv.Atoi(key[len("hold:{"+h.event+"}:"):])
		if err != nil {
			h.t.Fatal(err)
		}
		m.Set(i, seatmap.Held)
	}
	rows, err := h.pool.Query(ctx, `SELECT i, status FROM seats WHERE event_id = $1 AND status <> 'available'`, h.event)
	if err != nil {
		h.t.Fatal(err)
	}
	var i int
	var status string
	_, err = pgx.ForEachRow(rows, []any{&i, &status}, func() error {
		m.Set(i, map[string]seatmap.Status{"sold": seatmap.Sold, "unavailable": seatmap.Unavailable}[status])
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

// log returns the event's changes as Redis logged them.
func (h *house) log(ctx context.Context) []seatmap.Change {
	h.t.Helper()
	var all []seatmap.Change
	for _, entry := range h.rdb.XRange(ctx, seatmap.LogKey(h.event), "-", "+").Val() {
		var c seatmap.Change
		if err := json.Unmarshal([]byte(entry.Values["c"].(string)), &c); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// balanced fails unless sold seats, live tickets and money agree.
func (h *house) balanced(ctx context.Context) {
	h.t.Helper()
	ledger, err := checkout.NewStore(h.pool)
	if err != nil {
		h.t.Fatal(err)
	}
	report, err := ledger.Check(ctx, h.event)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(report.Faults) > 0 {
		h.t.Errorf("the books do not balance: %+v", report)
	}
}

func (h *house) count(ctx context.Context, query string, args ...any) int {
	h.t.Helper()
	var n int
	if err := h.pool.QueryRow(ctx, query, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// eventually polls until ok says so, or fails after d; later on a busy machine.
func eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(10 * time.Millisecond) {
		if devtest.Late(begun, d) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}
