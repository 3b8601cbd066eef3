package web

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// answered bounds how long a body may take, whoever answers before it is read, gives
// every answer its headers, answers errors, and writes a line of the log. It is one
// link of the chain, as guarded is: echo makes every link anew for every request.
func answered(log *slog.Logger, headers []header) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start, h := time.Now(), c.Response().Header()
			if c.Request().ContentLength != 0 {
				// The deadline is the request's own: one for the whole server would end a
				// stream too. A writer that knows no deadlines is a test's: it needs none.
				_ = http.NewResponseController(c.Response()).SetReadDeadline(start.Add(bodyTimeout))
			}
			h.Set(echo.HeaderXRequestID, requestID(c.Request()))
			for _, o := range headers {
				h[o.name] = o.value
			}
			err := next(c)
			if err != nil {
				c.Error(err) // answer now, so that the status logged is the one sent
			}
			accessLog(c, log, start, err)
			return nil
		}
	}
}

// guarded lets a request pass that no handler can be harmed by, and survives a panic
// of one.
func guarded(larger map[string]int64) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			defer recoverPanic(&err)
			if err := queryIsText(c); err != nil {
				return err
			}
			return limitBody(c, larger, next)
		}
	}
}

// requestID keeps the id a proxy in front has given, when it looks like one,
// and makes one otherwise. It is answered and logged as X-Request-Id.
func requestID(r *http.Request) string {
	if id := r.Header.Get(echo.HeaderXRequestID); plainID(id) {
		return id
	}
	return rand.Text()
}

// plainID says whether s may be repeated in a log and a header.
func plainID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.' {
			return false
		}
	}
	return true
}

// accessLog writes the line of a request that has been answered. A stream or a
// socket that the hub has parked is logged when it has begun, any other when it
// ends. What machines ask for all the time, and answers that are
// one of thousands a second, are lines of level debug.
func accessLog(c echo.Context, log *slog.Logger, start time.Time, err error) {
	r, w, level := c.Request(), c.Response(), slog.LevelInfo
	if quiet(c.Path()) || common(err) {
		level = slog.LevelDebug
	}
	if !log.Enabled(r.Context(), level) {
		return
	}
	log.LogAttrs(r.Context(), level, "request",
		slog.String("id", w.Header().Get(echo.HeaderXRequestID)),
		slog.String("method", r.Method),
		slog.String("uri", maskedURI(r.URL)),
		slog.String("route", c.Path()),
		slog.Int("status", w.Status),
		slog.Int64("bytes", w.Size),
		slog.Float64("took_ms", float64(time.Since(start).Microseconds())/1000),
		slog.String("from", c.RealIP()))
}

// queryIsText refuses a query that no store could look up: one with a zero byte in
// it, or that is not UTF-8. What a path names, each call looks up in its own way.
func queryIsText(c echo.Context) error {
	if c.Request().URL.RawQuery == "" {
		return nil
	}
	for name, values := range c.QueryParams() {
		if text := name + strings.Join(values, ""); strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return Bad("bad_request", "the query holds a zero byte or is not UTF-8")
		}
	}
	return nil
}

// quiet names the routes a machine asks for all the time.
func quiet(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics"
}

// common says that an answer is one of thousands a second.
func common(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Common
}

// secrets are query parameters that let their bearer in; a browser cannot send
// a header with an EventSource or a WebSocket.
var secrets = []string{"ticket", "token", "access_token", "pass"}

// maskedURI is path and query with the value of every secret replaced.
func maskedURI(u *url.URL) string {
	if u.RawQuery == "" {
		return u.EscapedPath()
	}
	// By hand: url.ParseQuery drops pairs it dislikes, and a log must not.
	pairs := strings.Split(u.RawQuery, "&")
	for i, pair := range pairs {
		rawName, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			name = rawName
		}
		for _, s := range secrets {
			if strings.EqualFold(name, s) {
				pairs[i] = rawName + "=***"
			}
		}
	}
	return u.EscapedPath() + "?" + strings.Join(pairs, "&")
}

// contentPolicy lets the page load its own scripts, styles and data and
// nothing else, and lets nobody frame it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// policyWith is the policy of a page that also loads from other sites.
func policyWith(sources map[string]string) string {
	policy := strings.Split(contentPolicy, "; ")
	for _, directive := range slices.Sorted(maps.Keys(sources)) {
		at := slices.IndexFunc(policy, func(one string) bool { return strings.HasPrefix(one, directive+" ") })
		if at < 0 {
			policy = append(policy, directive+" "+sources[directive])
			continue
		}
		policy[at] += " " + sources[directive]
	}
	return strings.Join(policy, "; ")
}

// header is one of every answer, which share its value: who adds to it gets a
// slice of his own.
type header struct {
	name  string // as net/http spells it
	value []string
}

// ours are those that are the same everywhere.
var ours = []header{
	{"X-Content-Type-Options", []string{"nosniff"}},
	{"X-Frame-Options", []string{"DENY"}},
	{"Referrer-Policy", []string{"no-referrer"}},
	{"Cross-Origin-Opener-Policy", []string{"same-origin"}},
}

func securityHeaders(sources map[string]string) []header {
	return append([]header{{"Content-Security-Policy", []string{policyWith(sources)}}}, ours...)
}

// recoverPanic, deferred, turns a panic of a handler into an error with its stack,
// which the error handler logs and answers as a 500.
func recoverPanic(err *error) {
	switch r := recover(); r {
	case nil:
	case http.ErrAbortHandler:
		panic(r) // net/http's own way to drop a connection
	default:
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}

var bodyLimit = middleware.BodyLimit(strconv.Itoa(BodyLimit))

// limitBody bounds a body in bytes, by route where that is in larger.
func limitBody(c echo.Context, larger map[string]int64, next echo.HandlerFunc) error {
	size, most, limited := c.Request().ContentLength, int64(BodyLimit), bodyLimit
	if n, is := larger[c.Path()]; is && size != 0 {
		most, limited = n, middleware.BodyLimit(strconv.FormatInt(n, 10))
	}
	if 0 <= size && size <= most { // net/http gives no more than was announced
		return next(c)
	}
	return limited(next)(c)
}
