package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"seatcast/web"
)

// server serves e for one test, with its log kept.
func server(t *testing.T, mount func(e *echo.Echo)) (url string, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	e := web.New(web.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	mount(e)
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s.URL, log
}

// do sends a request and reads the whole answer.
func do(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func code(t *testing.T, body string) string {
	t.Helper()
	var p struct{ Code string }
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("not a problem: %q", body)
	}
	return p.Code
}

func TestPanicIsAProblemAndIsLoggedWithItsStack(t *testing.T) {
	url, log := server(t, func(e *echo.Echo) {
		e.GET("/boom", func(echo.Context) error { panic("seat 7 fell over") })
	})
	res, body := do(t, "GET", url+"/boom", "")
	if res.StatusCode != 500 || code(t, body) != "internal" || strings.Contains(body, "seat 7") {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	if l := log.String(); !strings.Contains(l, "seat 7 fell over") || !strings.Contains(l, "web_test.go") {
		t.Errorf("log lacks the panic or its stack: %s", l)
	}
}

func TestSecretsStayOutOfTheLog(t *testing.T) {
	url, log := server(t, func(e *echo.Echo) {
		e.GET("/x", func(c echo.Context) error { return c.NoContent(204) })
	})
	do(t, "GET", url+"/x?since=5&ticket=s3cret1&%74oken=s3cret2&TICKET=s3cret3&q=a%zz&pass=s3cret4", "",
		"Authorization", "Bearer s3cret5")
	l := log.String()
	if strings.Contains(l, "s3cret") {
		t.Errorf("a secret was logged: %s", l)
	}
	if !strings.Contains(l, "since=5") || !strings.Contains(l, "status=204") {
		t.Errorf("the rest is missing: %s", l)
	}
}

func TestAProblemIsAnsweredAndItsCauseIsLogged(t *testing.T) {
	url, log := server(t, func(e *echo.Echo) {
		e.GET("/x", func(echo.Context) error {
			return fmt.Errorf("%w: %w", &web.Problem{Status: 503, Code: "store_unavailable"}, errors.New("dial redis: refused"))
		})
	})
	res, body := do(t, "GET", url+"/x", "")
	if res.StatusCode != 503 || code(t, body) != "store_unavailable" || strings.Contains(body, "redis") {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	if !strings.Contains(log.String(), "dial redis: refused") {
		t.Errorf("the cause is missing: %s", log)
	}
}

func TestARefusalThatIsCommonIsLoggedAtDebugOnly(t *testing.T) {
	answer := func(level slog.Level, common bool) string {
		log := new(bytes.Buffer)
		e := web.New(web.Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))})
		e.GET("/x", func(echo.Context) error {
			return fmt.Errorf("seat 7: %w", &web.Problem{Status: 409, Code: "seats_taken", Common: common})
		})
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
		return log.String()
	}
	if l := answer(slog.LevelInfo, true); l != "" {
		t.Errorf("a common refusal was logged: %s", l)
	}
	if l := answer(slog.LevelInfo, false); !strings.Contains(l, "status=409") {
		t.Errorf("a refusal that is not common was not logged: %q", l)
	}
	if l := answer(slog.LevelDebug, true); !strings.Contains(l, "level=DEBUG msg=request") || !strings.Contains(l, "status=409") {
		t.Errorf("at debug a common refusal was logged as %q", l)
	}
}

func TestTheTimeARequestTookIsLoggedInMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(bytes.Buffer)
		e := web.New(web.Options{Log: slog.New(slog.NewJSONHandler(log, nil))})
		e.GET("/x", func(c echo.Context) error {
			time.Sleep(1500 * time.Microsecond)
			return c.NoContent(http.StatusNoContent)
		})
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
		var line struct {
			Took float64 `json:"took_ms"`
		}
		if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Took != 1.5 {
			t.Errorf("1.5 ms are logged as %s (%v)", log, err)
		}
	})
}

func TestAClientThatLeavesIsNoErrorOfOurs(t *testing.T) {
	log := new(bytes.Buffer)
	e := web.New(web.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	e.GET("/x", func(c echo.Context) error { return fmt.Errorf("read map: %w", c.Request().Context().Err()) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/x", nil))
	if l := log.String(); strings.Contains(l, "level=ERROR") || !strings.Contains(l, "msg=request") {
		t.Errorf("logged %s", l)
	}
}

// What a client writes into X-Forwarded-For comes before what the proxy adds.
func TestTheAddressLoggedIsWhatTheProxySaw(t *testing.T) {
	url, log := server(t, func(e *echo.Echo) {})
	do(t, "GET", url, "", "X-Forwarded-For", "192.0.2.66, 198.51.100.7")
	if !strings.Contains(log.String(), "from=198.51.100.7") {
		t.Errorf("logged %s", log)
	}
}

func TestAProxyWithAPublicAddressIsBelievedOnceItIsNamed(t *testing.T) {
	_, network, err := net.ParseCIDR("203.0.113.0/24")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		proxies []*net.IPNet
		want    string
	}{{nil, "203.0.113.9"}, {[]*net.IPNet{network}, "198.51.100.7"}} {
		e := web.New(web.Options{Log: slog.New(slog.DiscardHandler), Proxies: c.proxies})
		var from string
		e.GET("/", func(c echo.Context) error { from = c.RealIP(); return nil })
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr = "203.0.113.9:1234"
		r.Header.Set("X-Forwarded-For", "192.0.2.66, 198.51.100.7, 203.0.113.8, 10.0.0.1")
		if e.ServeHTTP(httptest.NewRecorder(), r); from != c.want {
			t.Errorf("behind %v a request comes from %s, not %s", c.proxies, from, c.want)
		}
	}
}

func TestRequestIDIsKeptWhenPlainAndMadeOtherwise(t *testing.T) {
	url, _ := server(t, func(e *echo.Echo) {})
	if res, _ := do(t, "GET", url, "", "X-Request-Id", "abc-123"); res.Header.Get("X-Request-Id") != "abc-123" {
		t.Error("a plain id was not kept")
	}
	for _, id := range []string{"", "a b", strings.Repeat("x", 65), "<script>"} {
		res, _ := do(t, "GET", url, "", "X-Request-Id", id)
		if got := res.Header.Get("X-Request-Id"); got == id || got == "" {
			t.Errorf("id %q became %q", id, got)
		}
	}
}

func TestAPageMayLoadFromOtherSitesOnlyWhenTheyAreNamed(t *testing.T) {
	for _, sources := range []map[string]string{nil, {"script-src": "https://js.example", "frame-src": "https://f.example"}} {
		e := web.New(web.Options{Sources: sources})
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		policy := w.Header().Get("Content-Security-Policy")
		for _, part := range []string{"script-src 'self' https://js.example;", "; frame-src https://f.example"} {
			if strings.Contains(policy, part) != (sources != nil) {
				t.Errorf("with %v the policy is %s", sources, policy)
			}
		}
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Count(policy, "script-src") != 1 {
			t.Errorf("the policy is %s", policy)
		}
	}
}

func TestEveryAnswerCarriesSecurityHeaders(t *testing.T) {
	url, _ := server(t, func(e *echo.Echo) {})
	res, body := do(t, "GET", url+"/nowhere", "")
	if res.StatusCode != 404 || code(t, body) != "not_found" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	for _, h := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"} {
		if res.Header.Get(h) == "" {
			t.Errorf("no %s", h)
		}
	}
}

func TestBindNamesWhatIsWrongWithABody(t *testing.T) {
	url, _ := server(t, func(e *echo.Echo) {
		e.POST("/", func(c echo.Context) error {
			var in struct {
				Seats []string `json:"seats"`
				N     int      `json:"n"`
			}
			if err := web.Bind(c, &in); err != nil {
				return err
			}
			return c.JSON(200, in)
		})
	})
	huge := `{"seats":["` + strings.Repeat("x", web.BodyLimit) + `"]}`
	for _, tt := range []struct {
		name, body string
		status     int
		code, says string
	}{
		{"good", ` {"seats":["a"],"n":1} ` + "\n", 200, "", ""},
		{"empty", "", 400, "bad_json", "empty"},
		{"broken", `{"n":`, 400, "bad_json", "not valid"},
		{"syntax", `{n:1}`, 400, "bad_json", "not valid"},
		{"unknown field", `{"m":1}`, 400, "bad_json", `unknown field "m"`},
		{"wrong type", `{"n":"1"}`, 400, "bad_json", "field n has the wrong type: string"},
		{"float for int", `{"n":1.5}`, 400, "bad_json", "field n"},
		{"array", `[1]`, 400, "bad_json", "has the wrong type: array"},
		{"two values", `{"n":1}{"n":2}`, 400, "bad_json", "one JSON value"},
		{"trailing word", `{"n":1} x`, 400, "bad_json", "one JSON value"},
		{"too large", huge, 413, "body_too_large", ""},
		{"too large behind a good value", `{"n":1}` + strings.Repeat(" ", web.BodyLimit), 413, "body_too_large", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, chunked := range []bool{false, true} {
				var r io.Reader = strings.NewReader(tt.body)
				if chunked {
					r = io.MultiReader(r) // of unknown length
				}
				res, err := http.Post(url, "application/json", r)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != tt.status || !strings.Contains(string(b), strings.ReplaceAll(tt.says, `"`, `\"`)) {
					t.Fatalf("chunked %v: got %d %s", chunked, res.StatusCode, b)
				}
				if tt.code != "" && code(t, string(b)) != tt.code {
					t.Errorf("chunked %v: got %s", chunked, b)
				}
			}
		})
	}
	if res, body := do(t, "POST", url, "n=1", "Content-Type", "application/x-www-form-urlencoded"); res.StatusCode != 400 || code(t, body) != "bad_json" {
		t.Errorf("a form: got %d %s", res.StatusCode, body)
	}
}

func TestReadyNamesEveryCheckAndOnlyFailuresMakeItUnready(t *testing.T) {
	broken := make(chan bool, 1)
	broken <- false
	url, _ := server(t, func(e *echo.Echo) {
		web.Health{Checks: map[string]func(context.Context) error{
			"postgres": func(context.Context) error { return nil },
			"replica":  func(context.Context) error { return web.Warning("none") },
			"redis": func(context.Context) error {
				b := <-broken
				broken <- b
				if b {
					return errors.New("no route")
				}
				return nil
			},
		}, Metrics: prometheus.NewRegistry()}.Mount(e)
	})
	type answer struct {
		Ready  bool
		Checks map[string]struct{ Status, Detail string }
	}
	ready := func() (int, answer) {
		res, body := do(t, "GET", url+"/readyz", "")
		var a answer
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, a
	}
	if s, a := ready(); s != 200 || !a.Ready || a.Checks["replica"].Status != "warn" || a.Checks["redis"].Status != "ok" {
		t.Errorf("got %d %+v", s, a)
	}
	<-broken
	broken <- true
	if s, a := ready(); s != 503 || a.Ready || a.Checks["redis"].Detail != "no route" || a.Checks["postgres"].Status != "ok" {
		t.Errorf("got %d %+v", s, a)
	}
	for _, path := range []string{"/healthz", "/metrics"} {
		if res, _ := do(t, "GET", url+path, ""); res.StatusCode != 200 {
			t.Errorf("%s: got %d", path, res.StatusCode)
		}
	}
}

func TestReadyEndsACheckThatHangs(t *testing.T) {
	url, _ := server(t, func(e *echo.Echo) {
		web.Health{Checks: map[string]func(context.Context) error{
			"nats": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		}}.Mount(e)
	})
	if res, _ := do(t, "GET", url+"/readyz", ""); res.StatusCode != 503 {
		t.Errorf("got %d", res.StatusCode)
	}
}

func TestAStreamIsNotBuffered(t *testing.T) {
	release := make(chan struct{})
	url, _ := server(t, func(e *echo.Echo) {
		e.GET("/stream", func(c echo.Context) error {
			if err := http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				return err
			}
			c.Response().WriteHeader(200)
			_, err := c.Response().Write([]byte("first\n"))
			c.Response().Flush()
			<-release
			return err
		})
	})
	res, err := http.Get(url + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer close(release)
	first := make([]byte, 6)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first\n" {
		t.Errorf("got %q, %v", first, err)
	}
}

func TestARouteMayTakeLargerBodiesThanTheOthers(t *testing.T) {
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler), Bodies: map[string]int64{"/large/:name": 2 * web.BodyLimit}})
	read := func(c echo.Context) error {
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, strconv.Itoa(len(body)))
	}
	e.PUT("/large/:name", read)
	e.PUT("/small", read)
	for _, c := range []struct {
		path      string
		size      int
		announced bool
		want      int
	}{
		{"/small", web.BodyLimit, true, 200}, {"/small", web.BodyLimit + 1, true, 413}, {"/small", web.BodyLimit + 1, false, 413},
		{"/large/x", 2 * web.BodyLimit, true, 200}, {"/large/x", 2 * web.BodyLimit, false, 200},
		{"/large/x", 2*web.BodyLimit + 1, true, 413}, {"/large/x", 2*web.BodyLimit + 1, false, 413},
	} {
		req := httptest.NewRequest(http.MethodPut, c.path, strings.NewReader(strings.Repeat("x", c.size)))
		if !c.announced {
			req.ContentLength = -1
		}
		res := httptest.NewRecorder()
		e.ServeHTTP(res, req)
		if res.Code != c.want || c.want == 200 && res.Body.String() != strconv.Itoa(c.size) {
			t.Errorf("%d bytes to %s, announced %v: %d %.40s", c.size, c.path, c.announced, res.Code, res.Body)
		}
	}
}

func TestAQueryThatIsNoTextIsRefusedAndReachesNoHandler(t *testing.T) {
	reached := 0
	url, _ := server(t, func(e *echo.Echo) {
		e.GET("/bookings/:booking", func(c echo.Context) error {
			reached++
			return c.NoContent(http.StatusNoContent)
		})
	})
	for _, path := range []string{"/bookings/x?state=%00", "/bookings/x?state=a%ff", "/bookings/x?state=%00&q=100%", "/bookings/x?%C3%28=1"} {
		if res, body := do(t, http.MethodGet, url+path, ""); res.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"bad_request"`) {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
	if reached != 0 {
		t.Errorf("%d reached it", reached)
	}
	for _, path := range []string{"/bookings/%F0%9F%98%80?q=%C3%A9", "/bookings/x?q=100%"} {
		if res, _ := do(t, http.MethodGet, url+path, ""); res.StatusCode != http.StatusNoContent {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// timed is an answer that knows until when the body of its request may be read.
type timed struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (w *timed) SetReadDeadline(t time.Time) error {
	w.until = t
	return nil
}

func TestABodyHasADeadlineWhoeverAnswersBeforeItIsRead(t *testing.T) {
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler), Origins: []string{"*"}})
	e.POST("/v1/x", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	for _, ask := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, "/v1/x", "{}", http.StatusNoContent},
		{http.MethodPost, "/v1/x?name=%00", "{}", http.StatusBadRequest},
		{http.MethodPost, "/v1/x", strings.Repeat(" ", web.BodyLimit+1), http.StatusRequestEntityTooLarge},
		{http.MethodPost, "/v1/nothing", "{}", http.StatusNotFound},
		{http.MethodOptions, "/v1/x", "{}", http.StatusNoContent},
	} {
		r := httptest.NewRequestWithContext(t.Context(), ask.method, ask.path, strings.NewReader(ask.body))
		r.Header.Set("Origin", "https://house.example")
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		e.ServeHTTP(w, r)
		if w.Code != ask.status || !w.until.After(time.Now()) {
			t.Errorf("%s %s: answered %d, want %d, and its body may be read until %v", ask.method, ask.path, w.Code, ask.status, w.until)
		}
	}
}
