package web_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/web"
)

func TestPagesOfOtherSitesMayCallWhatShoppersCallAndOnlyThoseNamed(t *testing.T) {
	const shop, port, plain, elsewhere = "https://shop.example", "https://shop.example:8443", "http://a.b.example", "https://evil-shop.example"
	for _, c := range []struct {
		hosts  []string
		origin string
		path   string
		want   string
	}{
		{nil, shop, "/v1/events", ""},
		{[]string{"shop.example"}, shop, "/v1/events", shop},
		{[]string{"SHOP.example"}, shop, "/v1/events", shop},
		{[]string{"shop.example"}, port, "/v1/events", ""},
		{[]string{"shop.example:8443"}, port, "/v1/events", port},
		{[]string{"shop.example"}, elsewhere, "/v1/events", ""},
		{[]string{"shop.example"}, "null", "/v1/events", ""},
		{[]string{"shop.example"}, "https://shop.example.evil.example", "/v1/events", ""},
		{[]string{"shop.example"}, "", "/v1/events", ""},
		{[]string{"*.example"}, plain, "/v1/events", plain},
		{[]string{"https://*.example"}, plain, "/v1/events", ""},
		{[]string{"*"}, elsewhere, "/v1/events", "*"},
		{[]string{"*"}, elsewhere, "/v1/nowhere", "*"},
		{[]string{"*"}, elsewhere, "/v1/broken", "*"},
		{[]string{"*"}, elsewhere, "/v1/admin/events", ""},
		{[]string{"*"}, elsewhere, "/v1/admin", ""},
		{[]string{"*"}, elsewhere, "/metrics", ""},
	} {
		e := web.New(web.Options{Log: slog.New(slog.DiscardHandler), Origins: c.hosts})
		answer := web.Cacheable{Kind: "text/plain", Tag: "a", Plain: func() []byte { return nil }, Gzip: func() []byte { return nil }}.Serve
		for _, path := range []string{"/v1/events", "/v1/admin", "/v1/admin/events", "/metrics"} {
			e.GET(path, answer)
			e.POST(path, answer)
		}
		e.GET("/v1/broken", func(echo.Context) error { panic("a bug") })
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			r, w := httptest.NewRequest(method, c.path, nil), httptest.NewRecorder()
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			if method == http.MethodOptions {
				r.Header.Set("Access-Control-Request-Method", http.MethodPost)
				r.Header.Set("Access-Control-Request-Headers", "authorization,idempotency-key")
			}
			e.ServeHTTP(w, r)
			h := w.Header()
			if got := h.Get("Access-Control-Allow-Origin"); got != c.want {
				t.Errorf("%s %s from %q where %q may: allowed is %q, want %q", method, c.path, c.origin, c.hosts, got, c.want)
			}
			if h.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("cookies are asked for")
			}
			if c.want != "" && method == http.MethodOptions && (w.Code != http.StatusNoContent || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "Idempotency-Key")) {
				t.Errorf("a preflight is answered %d, with %v", w.Code, h)
			}
			if exposed := h.Get("Access-Control-Expose-Headers"); c.want != "" && method == http.MethodGet && (!strings.Contains(exposed, "Age") || !strings.Contains(exposed, "Date")) {
				t.Errorf("a page cannot read how old an answer is: it may read %q", exposed)
			}
			if c.want == c.origin && c.want != "" && !slices.Contains(h.Values("Vary"), "Origin") {
				t.Errorf("a cache would give what %s gets to others: Vary is %q", c.origin, h.Values("Vary"))
			}
		}
	}
}
