package idempotency_test

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
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"seatcast/internal/devstack/devtest"
	"seatcast/internal/idempotency"
	"seatcast/web"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// office is a node with an admin API of one path, which does what a test says,
// and whose calls are counted.
type office struct {
	t      *testing.T
	pool   *pgxpool.Pool
	keys   *idempotency.Keys
	url    string
	tokens map[string]string

	done  atomic.Int64
	trail trail
}

// trail remembers outcomes.
type trail struct {
	sync.Mutex
	outcomes []web.Outcome
}

func (l *trail) Begin(context.Context, web.Call) (int64, error) { return 0, nil }

func (l *trail) End(_ context.Context, _ int64, o web.Outcome) error {
	l.Lock()
	defer l.Unlock()
	l.outcomes = append(l.outcomes, o)
	return nil
}

func (l *trail) last() web.Outcome {
	l.Lock()
	defer l.Unlock()
	return l.outcomes[len(l.outcomes)-1]
}

// open starts a node; nobody renews what it carries out unless Run is called.
func open(t *testing.T, pool *pgxpool.Pool, lease time.Duration, do echo.HandlerFunc) *office {
	t.Helper()
	key, err := web.ParseKey(web.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	s, err := web.OpenSessions(t.Context(), web.SessionOptions{Key: key, Claims: "roles=r", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t, pool: pool, tokens: map[string]string{},
		keys: idempotency.New(idempotency.Options{Pool: pool, Lease: lease, Log: slog.New(slog.DiscardHandler)})}
	for _, who := range []string{"ada", "bob"} {
		if o.tokens[who], err = s.Mint(who, time.Hour, "operator"); err != nil {
			t.Fatal(err)
		}
	}
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	_, admin := s.Groups(e, &o.trail, o.keys)
	admin.Any("/do", func(c echo.Context) error {
		o.done.Add(1)
		return do(c)
	})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

type reply struct {
	status int
	header http.Header
	body   string
	code   string
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// call is one of a's with a key, of as many headers as there are keys.
func (o *office) call(method, who, path, body string, keys ...string) (r reply) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), method, o.url+"/v1/admin"+path, strings.NewReader(body))
	if err != nil {
		o.t.Error(err)
		return r
	}
	req.Header.Set("Authorization", "Bearer "+o.tokens[who])
	for _, key := range keys {
		req.Header.Add("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Error(err)
		return r
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Error(err)
	}
	var p struct{ Code string }
	_ = json.Unmarshal(text, &p) // no problem has none
	return reply{resp.StatusCode, resp.Header, string(text), p.Code}
}

func (o *office) post(body, key string) reply {
	o.t.Helper()
	return o.call(http.MethodPost, "ada", "/do", body, key)
}

func (o *office) effects(want int64) {
	o.t.Helper()
	if got := o.done.Load(); got != want {
		o.t.Errorf("%d effects, want %d", got, want)
	}
}

// made answers 201 with what nobody could guess.
func made(c echo.Context) error {
	c.Response().Header().Set("Location", "/made")
	c.Response().Header().Add("Link", "one")
	c.Response().Header().Add("Link", "two")
	return c.JSON(http.StatusCreated, time.Now())
}

func TestARepeatIsAnsweredAsBeforeAndChangesNothing(t *testing.T) {
	o := open(t, devtest.Postgres(t), time.Minute, made)
	for k, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		key := fmt.Sprint("k", k)
		first := o.call(method, "ada", "/do?x=1", `{"a":1}`, key)
		if first.status != http.StatusCreated || first.replayed() || o.trail.last() != (web.Outcome{Status: http.StatusCreated}) {
			t.Fatalf("%s: %+v, written down as %+v", method, first, o.trail.last())
		}
		again := o.call(method, "ada", "/do?x=1", `{"a":1}`, key)
		if again.status != first.status || again.body != first.body || !again.replayed() {
			t.Errorf("%s: the repeat is %+v, the first was %+v", method, again, first)
		}
		for _, name := range []string{"Location", "Link", "Content-Type", "Content-Length"} {
			if fmt.Sprint(again.header[name]) != fmt.Sprint(first.header[name]) {
				t.Errorf("%s: %s is %v, was %v", method, name, again.header[name], first.header[name])
			}
		}
		if again.header.Get("X-Request-Id") == first.header.Get("X-Request-Id") {
			t.Error("the repeat has the id of another request")
		}
		if got := o.trail.last(); got != (web.Outcome{Status: http.StatusCreated, Replayed: true}) {
			t.Errorf("%s: the repeat is written down as %+v", method, got)
		}
		o.effects(int64(k + 1))
	}
}

func TestAKeyIsOfItsOperatorAndOfOneCall(t *testing.T) {
	o := open(t, devtest.Postgres(t), time.Minute, made)
	first := o.post(`{"a":1}`, "k")
	for name, r := range map[string]reply{
		"another body":   o.post(`{"a":2}`, "k"),
		"another query":  o.call(http.MethodPost, "ada", "/do?x=1", `{"a":1}`, "k"),
		"another path":   o.call(http.MethodPost, "ada", "/do/", `{"a":1}`, "k"),
		"another method": o.call(http.MethodPut, "ada", "/do", `{"a":1}`, "k"),
	} {
		if r.status != http.StatusUnprocessableEntity || r.code != "idempotency_key_reused" || r.replayed() {
			t.Errorf("%s: %+v", name, r)
		}
	}
	o.effects(1)
	if r := o.call(http.MethodPost, "bob", "/do", `{"a":1}`, "k"); r.status != http.StatusCreated || r.replayed() || r.body == first.body {
		t.Errorf("another operator: %+v", r)
	}
	if again := o.post(`{"a":1}`, "k"); !again.replayed() || again.body != first.body {
		t.Errorf("after others: %+v", again)
	}
}

func TestACallThatChangesNothingHasNoKeyAndOthersHaveAGoodOne(t *testing.T) {
	o := open(t, devtest.Postgres(t), time.Minute, made)
	for range 2 {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
			if r := o.call(method, "ada", "/do", "", "one", "two"); r.status != http.StatusCreated || r.replayed() {
				t.Errorf("%s: %+v", method, r)
			}
		}
		if r := o.call(http.MethodPost, "ada", "/do", ""); r.status != http.StatusCreated || r.replayed() {
			t.Errorf("without a key: %+v", r)
		}
	}
	o.effects(8)
	for _, bad := range [][]string{{""}, {"a", "a"}, {strings.Repeat("x", 256)}, {"\xe9"}} {
		if r := o.call(http.MethodPost, "ada", "/do", "", bad...); r.status != http.StatusBadRequest || r.code != "bad_request" {
			t.Errorf("key %q: %+v", bad, r)
		}
	}
	o.effects(8)
}

func TestAnAnswerOfTheMomentIsNotRememberedAndEveryOtherIs(t *testing.T) {
	for name, tt := range map[string]struct {
		do         echo.HandlerFunc
		status     int
		remembered bool
	}{
		"NoContent":    {func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }, 204, true},
		"Nothing":      {func(echo.Context) error { return nil }, 200, true},
		"BadRequest":   {func(echo.Context) error { return web.Bad("bad_time", "when?") }, 400, true},
		"NotFound":     {func(echo.Context) error { return echo.ErrNotFound }, 404, true},
		"Refused":      {func(echo.Context) error { return &web.Problem{Status: 422, Code: "unknown_seat"} }, 422, true},
		"Conflict":     {func(echo.Context) error { return &web.Problem{Status: 409, Code: "seats_sold"} }, 409, false},
		"WroteOne":     {func(c echo.Context) error { return c.String(409, "no") }, 409, false},
		"TooMany":      {func(echo.Context) error { return &web.Problem{Status: 429, Code: "slower"} }, 429, false},
		"Unavailable":  {func(echo.Context) error { return &web.Problem{Status: 503, Code: "store_unavailable"} }, 503, false},
		"Failed":       {func(echo.Context) error { return io.ErrUnexpectedEOF }, 500, false},
		"Panicked":     {func(echo.Context) error { panic("no") }, 500, false},
		"PanickedLate": {func(c echo.Context) error { _ = c.String(201, "made"); panic("no") }, 201, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, devtest.Postgres(t), time.Minute, tt.do)
			first, again := o.post("", "k"), o.post("", "k")
			if first.status != tt.status || again.status != tt.status || again.body != first.body || again.code != first.code {
				t.Errorf("%+v, and then %+v", first, again)
			}
			if first.replayed() || again.replayed() != tt.remembered {
				t.Errorf("replayed: %v, %v", first.replayed(), again.replayed())
			}
			if tt.remembered {
				o.effects(1)
				if got := o.trail.last(); got != (web.Outcome{Status: tt.status, Code: first.code, Replayed: true}) {
					t.Errorf("written down as %+v", got)
				}
				return
			}
			o.effects(2)
			if other := o.post("other", "k"); other.status != tt.status {
				t.Errorf("another call with the key: %+v", other)
			}
		})
	}
}

// gate is a handler that waits, and says when it has begun.
type gate struct{ begun, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 10), make(chan struct{})} }

func (g gate) do(c echo.Context) error {
	g.begun <- struct{}{}
	<-g.open
	return made(c)
}

func TestOfManyCallsAtOnceOneIsCarriedOut(t *testing.T) {
	pool, g := devtest.Postgres(t), newGate()
	nodes := []*office{open(t, pool, time.Minute, g.do), open(t, pool, time.Minute, g.do)}
	var (
		calls    sync.WaitGroup
		mu       sync.Mutex
		answers  []reply
		refusals int
	)
	const many = 20
	refused := make(chan struct{}, many)
	for n := range many {
		calls.Go(func() {
			for {
				r := nodes[n%2].post("", "k")
				if r.status == http.StatusConflict && r.code == "idempotency_in_flight" && r.header.Get("Retry-After") == "5" {
					select {
					case refused <- struct{}{}:
					default:
					}
					time.Sleep(20 * time.Millisecond) // a client that is told 5 s would wait them
					continue
				}
				mu.Lock()
				answers = append(answers, r)
				mu.Unlock()
				return
			}
		})
	}
	<-g.begun
	for refusals < many { // all others have been refused, and the one is at it
		<-refused
		refusals++
	}
	if r := nodes[0].post("other", "k"); r.code != "idempotency_key_reused" {
		t.Errorf("another call meanwhile: %+v", r)
	}
	close(g.open)
	calls.Wait()
	replays := 0
	for _, r := range answers {
		if r.status != http.StatusCreated || r.body != answers[0].body {
			t.Errorf("one is told %+v", r)
		}
		if r.replayed() {
			replays++
		}
	}
	if done := nodes[0].done.Load() + nodes[1].done.Load(); done != 1 || replays != many-1 {
		t.Errorf("%d effects, %d replays", done, replays)
	}
}

// eventually polls until a query says true.
func eventually(t *testing.T, pool *pgxpool.Pool, what, query string, args ...any) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var yes bool
		if err := pool.QueryRow(t.Context(), query, args...).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		if yes {
			return
		}
		if devtest.Late(begun, 10*time.Second) {
			t.Fatal("never: " + what)
		}
	}
}

func TestACallThatIsAliveKeepsItsKeyHoweverLongItTakes(t *testing.T) {
	pool, g := devtest.Postgres(t), newGate()
	o := open(t, pool, 5*time.Second, g.do)
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = o.keys.Run(ctx) })
	defer work.Wait()
	defer stop()
	var first reply
	work.Go(func() { first = o.post("", "k") })
	<-g.begun
	// As if all its time but a moment were gone.
	if _, err := pool.Exec(t.Context(), `UPDATE admin_keys SET lease = clock_timestamp() + interval '2 s'`); err != nil {
		t.Fatal(err)
	}
	eventually(t, pool, "the lease is renewed", `SELECT lease > clock_timestamp() + interval '3 s' FROM admin_keys`)
	if r := o.post("", "k"); r.code != "idempotency_in_flight" {
		t.Errorf("a repeat meanwhile: %+v", r)
	}
	close(g.open)
	stop()
	work.Wait()
	if again := o.post("", "k"); again.body != first.body || !again.replayed() {
		t.Errorf("the first was told %+v, its repeat %+v", first, again)
	}
	o.effects(1)
}

func TestACallWhoseProcessDiedIsCarriedOutByItsRepeatAndKeepsNothing(t *testing.T) {
	pool, g := devtest.Postgres(t), newGate()
	dead, o := open(t, pool, 200*time.Millisecond, g.do), open(t, pool, time.Minute, made)
	var work sync.WaitGroup
	work.Go(func() { dead.post("", "k") }) // nobody renews it
	<-g.begun
	eventually(t, pool, "the lease runs out", `SELECT lease < clock_timestamp() FROM admin_keys`)
	if r := o.post("other", "k"); r.code != "idempotency_key_reused" {
		t.Errorf("the key of a dead call is good for another: %+v", r)
	}
	repeat := o.post("", "k")
	if repeat.status != http.StatusCreated || repeat.replayed() {
		t.Fatalf("its repeat: %+v", repeat)
	}
	close(g.open) // it was only cut off
	work.Wait()
	if again := o.post("", "k"); again.body != repeat.body || !again.replayed() {
		t.Errorf("the repeat was told %+v, the next %+v", repeat, again)
	}
	o.effects(1)
}

func TestAnAnswerThatIsNotKeptIsNeitherToldNorMadeTwice(t *testing.T) {
	long := strings.Repeat("x", web.BodyLimit+1)
	for name, do := range map[string]echo.HandlerFunc{
		long: func(c echo.Context) error { return c.String(http.StatusCreated, long) },
		"the secret": func(c echo.Context) error {
			web.TellOnce(c)
			return c.String(http.StatusCreated, "the secret")
		},
	} {
		pool := devtest.Postgres(t)
		o := open(t, pool, time.Minute, do)
		if first := o.post("", "k"); first.status != http.StatusCreated || first.body != name {
			t.Fatalf("%d of %d bytes", first.status, len(first.body))
		}
		again := o.post("", "k")
		if again.status != http.StatusConflict || again.code != "answer_not_kept" || !again.replayed() || !strings.Contains(again.body, "201") {
			t.Errorf("its repeat: %+v", again)
		}
		o.effects(1)
		if got := o.trail.last(); got != (web.Outcome{Status: http.StatusConflict, Code: "answer_not_kept", Replayed: true}) {
			t.Errorf("written down as %+v", got)
		}
		eventually(t, pool, "nothing of it is kept", `SELECT body IS NULL AND admin_keys::text NOT LIKE '%secret%' FROM admin_keys`)
	}
}

func TestADayLaterAKeyIsFreeAndItsRowIsRemoved(t *testing.T) {
	pool := devtest.Postgres(t)
	o := open(t, pool, time.Minute, made)
	first := o.post("", "old")
	if _, err := pool.Exec(t.Context(), `UPDATE admin_keys SET at = at - interval '24 h 1 s'`); err != nil {
		t.Fatal(err)
	}
	if other := o.post("other", "old"); other.status != http.StatusCreated || other.replayed() || other.body == first.body {
		t.Errorf("another call with a key of yesterday: %+v", other)
	}
	if again := o.post("other", "old"); !again.replayed() {
		t.Errorf("its repeat: %+v", again)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE admin_keys SET at = at - interval '24 h 1 s'`); err != nil {
		t.Fatal(err)
	}
	young := o.post("", "young")
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = o.keys.Tidy(ctx) })
	eventually(t, pool, "what is old is removed", `SELECT count(*) = 1 FROM admin_keys`)
	stop()
	work.Wait()
	if again := o.post("", "young"); !again.replayed() || again.body != young.body {
		t.Errorf("what is young: %+v", again)
	}
}

func TestWithoutPostgresACallWithAKeyIsNotCarriedOut(t *testing.T) {
	dead, err := pgxpool.New(t.Context(), "postgres:///x?host="+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dead.Close)
	o := open(t, dead, time.Minute, made)
	if r := o.post("", "k"); r.status != http.StatusServiceUnavailable || r.code != "store_unavailable" {
		t.Errorf("%+v", r)
	}
	o.effects(0)
}
