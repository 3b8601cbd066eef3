package outgoing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"seatcast/checkout/outgoing"
	"seatcast/internal/devstack/devtest"
	"seatcast/web"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// house is webhooks over a database, and a receiver of them.
type house struct {
	t     *testing.T
	pool  *pgxpool.Pool
	hooks *outgoing.Hooks
	jobs  *river.Client[pgx.Tx]
	echo  *echo.Echo
	other *receiver
}

func setup(t *testing.T, set ...func(*outgoing.Options)) *house {
	t.Helper()
	h := &house{t: t, pool: devtest.Postgres(t), other: receive(t)}
	o := outgoing.Options{Pool: h.pool, ServerKey: []byte("the server's key of 32 characters"), Log: slog.New(slog.DiscardHandler),
		HTTP: true, Private: true, Every: 20 * time.Millisecond, Wait: func(time.Duration) time.Duration { return 0 }} // which is up to five seconds: so often the queue looks for what is due later
	for _, s := range set {
		s(&o)
	}
	var err error
	h.hooks, err = outgoing.New(o)
	must(t, err)
	for _, event := range []string{"opera", "circus"} {
		_, err := h.pool.Exec(t.Context(), `WITH chart AS (INSERT INTO charts (sha, name, seats, body) VALUES (repeat('0', 64), 'House', 1, '') ON CONFLICT DO NOTHING)
			INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user)
			VALUES ($1, 'Evening', 'House', 'UTC', now(), now(), repeat('0', 64), 'hot', 'open', 'EUR', 1, 1, 1, 1, 1, 1)`, event)
		must(t, err)
	}
	h.jobs, err = river.NewClient(riverpgxv5.New(h.pool), &river.Config{})
	must(t, err)
	h.echo = web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	h.hooks.MountAdmin(h.echo.Group("/v1/admin", web.AsOperator("ann")))
	return h
}

// work runs the jobs until stop is called, or the test ends.
func (h *house) work() (stop func()) {
	h.t.Helper()
	workers := river.NewWorkers()
	client, err := river.NewClient(riverpgxv5.New(h.pool), &river.Config{
		Queues: map[string]river.QueueConfig{outgoing.Queue: h.hooks.Work(workers)}, Workers: workers,
		FetchPollInterval: 20 * time.Millisecond, FetchCooldown: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	must(h.t, err)
	must(h.t, client.Start(context.WithoutCancel(h.t.Context())))
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// run looks for what was left undone until the test ends.
func (h *house) run() {
	ctx, cancel := context.WithCancel(h.t.Context())
	over := make(chan error, 1)
	go func() { over <- h.hooks.Run(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			h.t.Error(err)
		}
	})
}

// announce tells of something, in a transaction of its own.
func (h *house) announce(what outgoing.Type, event string) {
	h.t.Helper()
	must(h.t, pgx.BeginFunc(h.t.Context(), h.pool, func(tx pgx.Tx) error {
		return outgoing.Announce(h.t.Context(), tx, h.jobs, outgoing.Announcement{Type: what, Event: event,
			Data: func() (any, error) { return map[string]string{"event": event}, nil }})
	}))
}

// call makes an operator's call and reads its answer into v, unless it is nil.
func (h *house) call(method, path, body string, status int, v any) {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.echo.ServeHTTP(w, httptest.NewRequest(method, "/v1/admin"+path, strings.NewReader(body)))
	if w.Code != status {
		h.t.Fatalf("%s %s %s: %d %s", method, path, body, w.Code, w.Body)
	}
	if v != nil {
		must(h.t, json.Unmarshal(w.Body.Bytes(), v))
	}
}

// add makes a webhook to the receiver; more is more of the body.
func (h *house) add(more string) (w outgoing.Webhook) {
	h.t.Helper()
	h.call(http.MethodPost, "/webhooks", fmt.Sprintf(`{"url":%q%s}`, h.other.URL, more), http.StatusCreated, &w)
	return w
}

type page struct {
	Deliveries []outgoing.Delivery
	Next       int64
}

func (h *house) deliveries(id, query string) (p page) {
	h.t.Helper()
	h.call(http.MethodGet, "/webhooks/"+id+"/deliveries?"+query, "", http.StatusOK, &p)
	return p
}

// becomes waits until the newest delivery of a webhook is so, and returns it.
func (h *house) becomes(id string, state outgoing.State) (d outgoing.Delivery) {
	h.t.Helper()
	h.eventually(func() (string, bool) {
		p := h.deliveries(id, "limit=1")
		if len(p.Deliveries) == 0 {
			return "there is no delivery", false
		}
		d = p.Deliveries[0]
		return fmt.Sprintf("it is %+v", d), d.State == state
	})
	return d
}

func (h *house) eventually(f func() (string, bool)) {
	h.t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		what, ok := f()
		if ok {
			return
		}
		if devtest.Late(begun, 30*time.Second) {
			h.t.Fatal("never happened: ", what)
		}
	}
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	_, err := h.pool.Exec(h.t.Context(), sql, args...)
	must(h.t, err)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// message is a request that came.
type message struct {
	header http.Header
	body   []byte
}

func (m message) id() string { return m.header.Get("webhook-id") }

// receiver is another system.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	all    []message
	answer func(n int, w http.ResponseWriter, r *http.Request) // to the nth, from 1 on; nil: 204
}

func receive(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.all = append(r.all, message{req.Header, body})
		n, answer := len(r.all), r.answer
		r.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(n, w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(f func(n int, w http.ResponseWriter, req *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *receiver) came() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message(nil), r.all...)
}
