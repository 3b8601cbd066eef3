package web

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// crossOrigin lets scripts of pages from other hosts call what shoppers call: the
// hosts that a pattern names, or all of them where one is "*". Calls of operators are
// made from our own pages and by machines. No cookie is ever asked for: who calls says
// so in a header, which no page of another host can have a browser add.
func crossOrigin(hosts []string) echo.MiddlewareFunc {
	c := middleware.CORSConfig{
		Skipper:       func(c echo.Context) bool { return !forShoppers(c.Request().URL.Path) },
		AllowMethods:  []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete},
		AllowHeaders:  []string{"Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "Seatcast-Pass"},
		ExposeHeaders: []string{"Age", "Date", "ETag", "Idempotent-Replayed", "Retry-After", "X-Request-Id"},
		MaxAge:        2 * 60 * 60, // seconds: no browser keeps it longer than this
	}
	if slices.Contains(hosts, "*") {
		c.AllowOrigins = []string{"*"}
	} else {
		c.AllowOriginFunc = func(origin string) (bool, error) { return hostIsOf(origin, hosts), nil }
	}
	return middleware.CORSWithConfig(c)
}

func forShoppers(path string) bool {
	return strings.HasPrefix(path, "/v1/") && path != "/v1/admin" && !strings.HasPrefix(path, "/v1/admin/")
}

// hostIsOf says whether a pattern names an origin, as a WebSocket's is compared: its
// host with its port, and with its scheme where the pattern has one.
func hostIsOf(origin string, hosts []string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return slices.ContainsFunc(hosts, func(pattern string) bool {
		target := u.Host
		if strings.Contains(pattern, "://") {
			target = u.Scheme + "://" + u.Host
		}
		ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(target))
		return ok && err == nil
	})
}
