package live_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/seatmap/live"
)

// streams stands for the hub: it says which topic it was given. Its status is
// what the query says.
type streams struct{}

func (streams) answer(w http.ResponseWriter, r *http.Request) {
	if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
		w.WriteHeader(status)
	}
}

func (s streams) Serve(w http.ResponseWriter, r *http.Request, topic string) error {
	s.answer(w, r)
	_, err := io.WriteString(w, "stream of "+topic)
	return err
}

func (s streams) ServeWS(w http.ResponseWriter, r *http.Request, allow func(context.Context, string, string) (time.Time, string, string)) {
	s.answer(w, r)
	_, code, _ := allow(r.Context(), r.URL.Query().Get("topic"), "")
	_, _ = fmt.Fprintf(w, "%q", code)
}

func (b *bundle) handler() http.Handler {
	return newHouse(b.tb, b, live.TicketOptions{Redis: b.rdb})
}

// get asks for a path; headers are name and value in turn.
func get(tb testing.TB, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

type pageJSON struct {
	seatmap.Snapshot
	Mode  string  `json:"mode"`
	Live  *string `json:"live"`
	Poll  int     `json:"poll_after_ms"`
	Stale bool    `json:"stale"`
}

func decode[T any](tb testing.TB, body io.Reader) (v T) {
	tb.Helper()
	if err := json.NewDecoder(body).Decode(&v); err != nil {
		tb.Fatal(err)
	}
	return v
}

func TestTheAccessLogTellsWhatStreamsAndSocketsWereAnswered(t *testing.T) {
	b := setup(t)
	h := newHouse(t, b, live.TicketOptions{Redis: b.rdb})
	for _, c := range []struct {
		path   string
		status int
	}{{"/v1/ws?status=101", 101}, {"/v1/ws?status=403", 403}, {"/v1/events/" + b.event + "/live?status=429", 429}, {"/v1/events/" + b.event + "/live", 200}} {
		h.log.Reset()
		get(t, h, c.path)
		if want := fmt.Sprintf("status=%d", c.status); !strings.Contains(h.log.String(), want) {
			t.Errorf("%s is logged as %s, want %s", c.path, h.log, want)
		}
	}
}

func TestPolledMapOfAHotEvent(t *testing.T) {
	b := setup(t)
	c := b.change(reserve(3, 4))
	b.say(c)
	b.reaches(c.N, time.Second)
	h, path := b.handler(), "/v1/events/"+b.event+"/seatmap"

	w := get(t, h, path)
	p := decode[pageJSON](t, w.Body)
	m, _ := b.state()
	if p.N != c.N || string(p.Map) != string(m) || p.Areas["floor"] != 500 || p.Chart != "c0ffee" {
		t.Errorf("got %+v", p)
	}
	if p.Mode != "hot" || p.Live == nil || *p.Live != "/v1/events/"+b.event+"/live" || p.Poll != 2000 || p.Stale {
		t.Errorf("got mode %s, live %v, poll %d, stale %v", p.Mode, p.Live, p.Poll, p.Stale)
	}
	if got := w.Header().Get("Cache-Control"); got != "public, max-age=1" {
		t.Errorf("Cache-Control %q", got)
	}
	if got := w.Header().Get("Vary"); got != "Accept-Encoding" {
		t.Errorf("Vary %q", got)
	}

	zipped := get(t, h, path, "Accept-Encoding", "br, gzip;q=0.8")
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if q := decode[pageJSON](t, z); q.N != c.N {
		t.Errorf("gzip variant is of %d", q.N)
	}
	tag := w.Header().Get("ETag")
	if tag == "" || tag == zipped.Header().Get("ETag") {
		t.Errorf("ETag %q must differ by encoding", tag)
	}
	for header, want := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304,
		zipped.Header().Get("ETag"): 200, `"x"`: 200} {
		if w := get(t, h, path, "If-None-Match", header); w.Code != want || (want == 304 && w.Body.Len() > 0) {
			t.Errorf("If-None-Match %s: %d with %d bytes, want %d", header, w.Code, w.Body.Len(), want)
		}
	}
}

func TestPolledMapOfAnOrdinaryEventLapsesFirst(t *testing.T) {
	b := setup(t)
	other := newWriter(t, b.rdb, b.nc)
	b.sales.put(other.event, false)
	b.writer.event = other.event // the feed's rebuilder and Redis keys are of this event now
	c := other.change(reserve(1))
	w := get(t, b.handler(), "/v1/events/"+other.event+"/seatmap")
	p := decode[pageJSON](t, w.Body)
	if p.N != c.N || p.Mode != "ordinary" || p.Live != nil || p.Poll != 30000 {
		t.Errorf("got %+v", p)
	}
	if got := w.Header().Get("Cache-Control"); got != "public, max-age=30" {
		t.Errorf("Cache-Control %q", got)
	}
	if b.lapses == 0 {
		t.Error("holds that ended were not let lapse")
	}
}

func TestDeltaSinceANumberElseTheWholeMap(t *testing.T) {
	b := setup(t)
	first, second, third := b.change(reserve(1)), b.change(reserve(2)), b.change(seatmap.Change{Released: []int{1}})
	b.say(first, second, third)
	b.reaches(third.N, time.Second)
	h, path := b.handler(), "/v1/events/"+b.event+"/seatmap?since="

	w := get(t, h, path+fmt.Sprint(first.N))
	d := decode[seatmap.Delta](t, w.Body)
	if d.Prev != first.N || d.N != third.N || len(d.Reserved) != 1 || len(d.Released) != 1 {
		t.Errorf("got %+v", d)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}
	if d := decode[seatmap.Delta](t, get(t, h, path+fmt.Sprint(third.N)).Body); d.N != third.N || d.Prev != third.N {
		t.Errorf("up to date: got %+v", d)
	}
	for _, since := range []string{"5", fmt.Sprint(second.N - 1), fmt.Sprint(third.N + 1000)} {
		w := get(t, h, path+since)
		if w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != "/v1/events/"+b.event+"/seatmap" {
			t.Errorf("since %s: %d to %q, want a redirect to the plain map", since, w.Code, w.Header().Get("Location"))
		}
	}
	for _, since := range []string{"x", "-1", ""} {
		if w := get(t, h, path+since); w.Code != http.StatusBadRequest {
			t.Errorf("since %q: %d, want 400", since, w.Code)
		}
	}
}

func TestPollersOfAHotEventAskTheNodeNotRedis(t *testing.T) {
	b := setup(t)
	first, second := b.change(reserve(1)), b.change(reserve(2))
	b.say(first, second)
	b.reaches(second.N, time.Second)
	if err := b.rdb.Del(t.Context(), seatmap.LogKey(b.event)).Err(); err != nil {
		t.Fatal(err)
	}
	w := get(t, b.handler(), "/v1/events/"+b.event+"/seatmap?since="+fmt.Sprint(first.N))
	if d := decode[seatmap.Delta](t, w.Body); w.Code != http.StatusOK || d.Prev != first.N || d.N != second.N {
		t.Errorf("%d: %+v without a log in Redis, want what this node has heard", w.Code, d)
	}
}

func TestDeltaOfAnOrdinaryEventComesFromTheLog(t *testing.T) {
	b := setup(t)
	other := newWriter(t, b.rdb, b.nc)
	b.sales.put(other.event, false)
	first, second := other.change(reserve(1)), other.change(reserve(2))
	h, path := b.handler(), "/v1/events/"+other.event+"/seatmap?since="
	d := decode[seatmap.Delta](t, get(t, h, path+fmt.Sprint(first.N)).Body)
	if d.Prev != first.N || d.N != second.N || len(d.Reserved) != 1 {
		t.Errorf("got %+v", d)
	}
	if w := get(t, h, path+"5"); w.Code != http.StatusTemporaryRedirect {
		t.Errorf("since 5: %d, want a redirect to the plain map", w.Code)
	}
}

func TestAnotherModeIsAnotherETag(t *testing.T) {
	b := setup(t)
	h, path := b.handler(), "/v1/events/"+b.event+"/seatmap"
	tag := get(t, h, path).Header().Get("ETag")
	b.sales.put(b.event, false)
	w := get(t, h, path, "If-None-Match", tag)
	if w.Code != http.StatusOK || decode[pageJSON](t, w.Body).Mode != "ordinary" {
		t.Errorf("%d: who polled a hot event must learn that it is ordinary now", w.Code)
	}
}

func TestWhoMayWatchWhat(t *testing.T) {
	b := setup(t)
	b.sales.put("theatre", false)
	h := b.handler()
	for path, want := range map[string]string{
		"/v1/events/" + b.event + "/live":         "200 stream of seatmap/" + b.event,
		"/v1/events/theatre/live":                 "204 ",
		"/v1/ws?topic=seatmap/" + b.event:         `200 ""`,
		"/v1/ws?topic=seatmap/theatre":            `200 "not_pushed"`,
		"/v1/ws?topic=seatmap/nowhere":            `200 "unknown_topic"`,
		"/v1/ws?topic=queue/" + b.event:           `200 "unknown_topic"`,
		"/v1/events/nowhere/live?problem=true":    "404 unknown_event",
		"/v1/events/nowhere/seatmap?problem=true": "404 unknown_event",
	} {
		w := get(t, h, path)
		got := fmt.Sprint(w.Code, " ", w.Body)
		if w.Code == http.StatusNotFound {
			got = fmt.Sprint(w.Code, " ", decode[map[string]any](t, w.Body)["code"])
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestMapIsServedStaleWhileRedisDoesNotAnswer(t *testing.T) {
	server := devtest.RedisServer(t, devstack.RedisOptions{})
	rdb := server.Client()
	defer func() { _ = rdb.Close() }()
	w := newWriter(t, rdb, devtest.NATS(t))
	b := node(t, w, devtest.NATS(t), live.FeedOptions{Silent: 100 * time.Millisecond})
	h, path := b.handler(), "/v1/events/"+b.event+"/seatmap"
	server.Kill()
	b.until(10*time.Second, "a stale map", func() bool {
		return decode[pageJSON](t, get(t, h, path).Body).Stale
	})
	b.sales.put("cold", true)
	got := get(t, h, "/v1/events/cold/seatmap")
	if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "1" {
		t.Errorf("an event this node knows nothing of: %d, Retry-After %q", got.Code, got.Header().Get("Retry-After"))
	}
}
