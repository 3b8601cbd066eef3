package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/web"
)

func TestACacheableAnswerIsNegotiated(t *testing.T) {
	answer := web.Cacheable{Control: "public, max-age=1", Kind: "text/plain", Tag: "v1",
		Plain: func() []byte { return []byte("plain") }, Gzip: func() []byte { return []byte("zipped") }}
	e := echo.New()
	e.GET("/", answer.Serve)
	for _, c := range []struct {
		accept, have string
		want         int
		body, tag    string
	}{
		{"", "", 200, "plain", `"v1"`},
		{"br, gzip", "", 200, "zipped", `"v1-gzip"`},
		{"GZIP;q=0.5", "", 200, "zipped", `"v1-gzip"`},
		{"gzip; Q=0.000, *", "", 200, "plain", `"v1"`},
		{"gzip;q=x", "", 200, "plain", `"v1"`},
		{"*, gzip;q=0", "", 200, "plain", `"v1"`},
		{"br, *;q=0.1", "", 200, "zipped", `"v1-gzip"`},
		{"x-gzip-not", "", 200, "plain", `"v1"`},
		{"", `"v1"`, 304, "", `"v1"`},
		{"", `"v0", W/"v1"`, 304, "", `"v1"`},
		{"", "*", 304, "", `"v1"`},
		{"", `"v1-gzip"`, 200, "plain", `"v1"`},
		{"gzip", `"v1-gzip"`, 304, "", `"v1-gzip"`},
		{"gzip", `"v1"`, 200, "zipped", `"v1-gzip"`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", c.accept)
		r.Header.Set("If-None-Match", c.have)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != c.want || w.Body.String() != c.body || h.Get("ETag") != c.tag {
			t.Errorf("%+v: got %d %q %s", c, w.Code, w.Body, h.Get("ETag"))
		}
		if zipped := h.Get("Content-Encoding") == "gzip"; zipped != (c.body == "zipped") {
			t.Errorf("%+v: Content-Encoding %q", c, h.Get("Content-Encoding"))
		}
		if h.Get("Cache-Control") != "public, max-age=1" || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%+v: headers %v", c, h)
		}
	}
}
