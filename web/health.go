package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTimeout ends a check that hangs: it counts as failed.
const checkTimeout = 2 * time.Second

// ErrWarning marks the error of a check that is worth telling but does not
// make the server unready. Make one with Warning.
var ErrWarning = errors.New("warning")

// Warning returns an error that is ErrWarning and says so much.
func Warning(text string) error { return warning(text) }

type warning string

func (w warning) Error() string        { return string(w) }
func (w warning) Is(target error) bool { return target == ErrWarning }

// Health is what the health endpoints answer from.
type Health struct {
	// Checks by name. Each must return when its context ends; all are run at
	// once on every GET /readyz. An error makes the server unready, unless it
	// is ErrWarning.
	Checks map[string]func(ctx context.Context) error
	// Metrics is what GET /metrics tells; nil mounts no such route.
	Metrics prometheus.Gatherer
}

// checked is how one check went, as /readyz tells it.
type checked struct {
	Status string  `json:"status"` // ok, warn or fail
	Detail string  `json:"detail,omitempty"`
	TookMs float64 `json:"tookMs"`
}

// Mount adds GET /healthz (the process answers: 200 always), GET /readyz (it
// should be given requests: 200 or 503, with every check by name) and GET
// /metrics (Prometheus).
func (h Health) Mount(e *echo.Echo) {
	e.GET("/healthz", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
	})
	e.GET("/readyz", h.ready)
	if h.Metrics != nil {
		e.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(h.Metrics, promhttp.HandlerOpts{})))
	}
}

func (h Health) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), checkTimeout)
	defer cancel()
	checks := h.run(ctx)
	status, ready := http.StatusOK, true
	for _, r := range checks {
		if r.Status == "fail" {
			status, ready = http.StatusServiceUnavailable, false
		}
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(status, map[string]any{"ready": ready, "checks": checks})
}

// run runs all checks at once and returns when each has.
func (h Health) run(ctx context.Context) map[string]checked {
	var (
		mu  sync.Mutex
		all = make(map[string]checked, len(h.Checks))
		wg  sync.WaitGroup
	)
	for name, check := range h.Checks {
		wg.Go(func() {
			r := runCheck(ctx, check)
			mu.Lock()
			defer mu.Unlock()
			all[name] = r
		})
	}
	wg.Wait()
	return all
}

func runCheck(ctx context.Context, check func(context.Context) error) checked {
	start := time.Now()
	err := check(ctx)
	r := checked{Status: "ok", TookMs: float64(time.Since(start).Microseconds()) / 1000}
	switch {
	case err == nil:
	case errors.Is(err, ErrWarning):
		r.Status, r.Detail = "warn", err.Error()
	default:
		r.Status, r.Detail = "fail", err.Error()
	}
	return r
}
