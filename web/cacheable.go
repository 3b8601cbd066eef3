package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// Cacheable is an answer that caches may keep, in two encodings. Plain and
// Gzip are called only for the one that is sent.
type Cacheable struct {
	Control string // Cache-Control
	Kind    string // Content-Type
	Tag     string // names what Plain returns; the ETag of either encoding is made of it
	Plain   func() []byte
	Gzip    func() []byte
}

// Serve answers with the encoding the client takes, or with 304 when it has
// that one already.
func (a Cacheable) Serve(c echo.Context) error {
	h, asked := c.Response().Header(), c.Request().Header
	body, tag := a.Plain, `"`+a.Tag+`"`
	zipped := takesGzip(asked.Get(echo.HeaderAcceptEncoding))
	if zipped {
		body, tag = a.Gzip, `"`+a.Tag+`-gzip"`
	}
	h.Set("Cache-Control", a.Control)
	h.Set("ETag", tag)
	h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if matches(asked.Get("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	if zipped {
		h.Set(echo.HeaderContentEncoding, "gzip")
	}
	b := body()
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(b)))
	return c.Blob(http.StatusOK, a.Kind, b)
}

// takesGzip reads an Accept-Encoding header: gzip, or else anything, is named
// and not given weight nought.
func takesGzip(header string) bool {
	anything := false
	for part := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(part, ";")
		switch coding = strings.TrimSpace(coding); {
		case strings.EqualFold(coding, "gzip"):
			return weighs(weight)
		case coding == "*":
			anything = weighs(weight)
		}
	}
	return anything
}

// weighs reads the q of a list element; without one it is 1.
func weighs(parameter string) bool {
	name, q, ok := strings.Cut(parameter, "=")
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return true
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
	return err == nil && n > 0
}

// matches compares an If-None-Match with a tag, weakly as RFC 9110 asks.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}
