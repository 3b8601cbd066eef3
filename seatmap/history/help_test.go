package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/seatmap/history"
	"seatcast/web"
)

const seats = 40

// house is one event on a Redis that all tests share and a Postgres of its own.
// It changes the event as the scripts of holds do: the map, the number and the
// log in one step.
type house struct {
	tb    testing.TB
	rdb   *redis.Client
	pool  *pgxpool.Pool
	event string
	reg   *prometheus.Registry
	*history.Recorder

	mu       sync.Mutex
	m        seatmap.Map
	said     []seatmap.Change
	rebuilds []int64 // the positions it was called with
}

func setup(tb testing.TB) *house { return another(tb, devtest.Postgres(tb)) }

// another is one event more in a database.
func another(tb testing.TB, pool *pgxpool.Pool) *house {
	tb.Helper()
	h := &house{tb: tb, rdb: devtest.Redis(tb), pool: pool, event: devtest.Event(tb), m: seatmap.NewMap(seats), reg: prometheus.NewRegistry()}
	h.exec(`INSERT INTO charts (sha, name, seats, body) VALUES (repeat('a', 64), 'hall', 40, '') ON CONFLICT DO NOTHING`)
	h.exec(`INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user)
		VALUES ($1, 'Night', 'Hall', 'UTC', now() + interval '1 day', now(), repeat('a', 64), 'ordinary', 'open', 'EUR', 1000, 1000, 1000, 0, 8, 8)`, h.event)
	h.exec(`INSERT INTO seats (event_id, i, ticket_id, category) SELECT $1, i, 'A' || i, 'one' FROM generate_series(0, 39) i`, h.event)
	h.change(seatmap.Change{Reset: true})
	h.Recorder = h.recorder(h.reg)
	return h
}

// recorder is another one on the same stores.
func (h *house) recorder(reg prometheus.Registerer) *history.Recorder {
	return history.NewRecorder(history.Options{Book: history.NewBook(h.pool), Redis: h.rdb, Rebuilder: h, Registerer: reg,
		Log: slog.New(slog.DiscardHandler), Every: 5 * time.Millisecond})
}

func (h *house) exec(sql string, args ...any) {
	h.tb.Helper()
	if _, err := h.pool.Exec(context.Background(), sql, args...); err != nil {
		h.tb.Fatal(err)
	}
}

// change gives c its numbers, writes it and returns it.
func (h *house) change(c seatmap.Change) seatmap.Change {
	h.tb.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	c, err := h.changeLocked(context.Background(), c, 0)
	if err != nil {
		h.tb.Fatal(err)
	}
	return c
}

func (h *house) changeLocked(ctx context.Context, c seatmap.Change, above int64) (seatmap.Change, error) {
	last, err := h.rdb.Get(ctx, seatmap.SeqKey(h.event)).Int64()
	if err != nil && err != redis.Nil {
		return c, err
	}
	now := time.Now()
	c.N, c.Prev, c.At = max(last+1, above+1, now.UnixMicro()), last, now.UnixMilli()
	c.Apply(h.m)
	body, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	_, err = h.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, seatmap.MapKey(h.event), []byte(h.m), 0)
		p.XAdd(ctx, &redis.XAddArgs{Stream: seatmap.LogKey(h.event), ID: strconv.FormatInt(c.N, 10) + "-0", Values: []any{"c", body}})
		p.Set(ctx, seatmap.SeqKey(h.event), c.N, 0)
		return nil
	})
	h.said = append(h.said, c)
	return c, err
}

// Rebuild is holds' rebuild: a reset numbered above position.
func (h *house) Rebuild(ctx context.Context, _ string, position int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rebuilds = append(h.rebuilds, position)
	_, err := h.changeLocked(ctx, seatmap.Change{Reset: true}, position)
	return err
}

// hold is a take: the change, and who holds the seats in Redis.
func (h *house) hold(token string, seats ...int) seatmap.Change {
	h.tb.Helper()
	for _, i := range seats {
		if err := h.rdb.Set(context.Background(), seatmap.HoldKey(h.event, i), token, time.Minute).Err(); err != nil {
			h.tb.Fatal(err)
		}
	}
	return h.change(seatmap.Change{Reserved: seats, Until: time.Now().Add(time.Minute).UnixMilli(), Tag: token[:6]})
}

// record enters what there is.
func (h *house) record() {
	h.tb.Helper()
	if err := h.Record(context.Background(), h.event); err != nil {
		h.tb.Fatal(err)
	}
}

// rows are all entries, as text: seat, what, holder, and ! when only seen.
func (h *house) rows() []string {
	h.tb.Helper()
	return h.texts(`SELECT i || ' ' || what || CASE WHEN seen THEN '!' ELSE '' END || coalesce(' ' || holder, '')
		FROM seat_log WHERE event_id = $1 ORDER BY n, i`)
}

// gaps are the reasons of all.
func (h *house) gaps() []string {
	h.tb.Helper()
	return h.texts(`SELECT reason FROM seat_log_gaps WHERE event_id = $1 ORDER BY to_n`)
}

func (h *house) texts(sql string) []string {
	h.tb.Helper()
	rows, err := h.pool.Query(context.Background(), sql, h.event)
	if err != nil {
		h.tb.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.tb.Fatal(err)
	}
	return all
}

// shown is the map as the entries tell it.
func (h *house) shown() seatmap.Map {
	h.tb.Helper()
	rows, err := h.pool.Query(context.Background(), `SELECT DISTINCT ON (i) i, what FROM seat_log WHERE event_id = $1 ORDER BY i, n DESC`, h.event)
	if err != nil {
		h.tb.Fatal(err)
	}
	m := seatmap.NewMap(seats)
	var i int
	var what history.What
	if _, err := pgx.ForEachRow(rows, []any{&i, &what}, func() error { m.Set(i, what.Status()); return nil }); err != nil {
		h.tb.Fatal(err)
	}
	return m
}

// entered fails unless every change is entered as it was said, and nothing else.
func (h *house) entered() {
	h.tb.Helper()
	var want []string
	for _, c := range h.said {
		var of [seats]string
		c.Each(func(i int, to seatmap.Status) { of[i] = fmt.Sprint(c.N, " ", i, " ", to, " ", c.At) })
		want = append(want, slices.DeleteFunc(of[:], func(s string) bool { return s == "" })...)
	}
	rows, err := h.pool.Query(context.Background(), `SELECT n, i, what, at FROM seat_log WHERE event_id = $1 AND NOT seen ORDER BY n, i`, h.event)
	if err != nil {
		h.tb.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var n, i int64
		var what history.What
		var at time.Time
		err := row.Scan(&n, &i, &what, &at)
		return fmt.Sprint(n, " ", i, " ", what.Status(), " ", at.UnixMilli()), err
	})
	if err != nil {
		h.tb.Fatal(err)
	}
	if len(got) != len(want) {
		h.tb.Fatalf("%d entries of %d things said", len(got), len(want))
	}
	for k := range want {
		if got[k] != want[k] {
			h.tb.Fatalf("entry %d is %s, said was %s", k, got[k], want[k])
		}
	}
}

// count is the sum of a metric's series.
func (h *house) count(name string) (sum float64) {
	h.tb.Helper()
	families, err := h.reg.Gather()
	if err != nil {
		h.tb.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// Sale is the catalog as these tests need it.
func (h *house) Sale(_ context.Context, event string) (*seatmap.Sale, error) {
	if event != h.event {
		return nil, seatmap.ErrNoEvent
	}
	chart := &seatmap.Chart{Seats: seats, Sections: []seatmap.Section{{Name: "Stalls", Rows: []seatmap.Row{{Label: "A"}}}}}
	row := &chart.Sections[0].Rows[0]
	for i := range seats {
		row.Seats = append(row.Seats, seatmap.Seat{I: i, TicketID: "A" + strconv.Itoa(i), Label: strconv.Itoa(i)})
	}
	row.Seats[seats-1].TicketID = "B 1/2"
	return &seatmap.Sale{Event: event, Chart: chart, Index: chart.Index()}, nil
}

func (h *house) Hot(context.Context) ([]string, error) { return nil, nil }

// Basket knows of none.
func (h *house) Basket(context.Context, string, string) (seatmap.Basket, error) {
	return seatmap.Basket{}, seatmap.ErrNoBasket
}

// ask asks the history of a seat as an operator does.
func (h *house) ask(seat, query string, status int) (a history.Answer) {
	h.tb.Helper()
	code, body := h.call("/v1/admin/events/"+h.event+"/seats/"+url.PathEscape(seat)+"/history?"+query, status)
	if code == http.StatusOK {
		if err := json.Unmarshal(body, &a); err != nil {
			h.tb.Fatal(err)
		}
	}
	return a
}

func (h *house) call(path string, status int) (int, []byte) {
	h.tb.Helper()
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	h.mount(e)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != status {
		h.tb.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Code, w.Body.Bytes()
}

func (h *house) mount(e *echo.Echo) {
	history.NewAPI(history.NewBook(h.pool), h, h).MountAdmin(e.Group("/v1/admin", web.AsOperator("ada")))
}

// eventually polls until ok says so, or fails.
func (h *house) eventually(what string, ok func() bool) {
	h.tb.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.tb.Fatalf("not within 20 s: %s", what)
		}
	}
}
