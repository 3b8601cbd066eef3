package main

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/seatmap"
	"seatcast/web"
)

// BenchmarkMap draws the map of a stadium in a browser, with the renderer of the
// client and with another one. A step is all the script of one frame: 1,000 seats
// that change, a pan, a zoom. Time of script is that of the page's thread.
func BenchmarkMap(b *testing.B) {
	s := serveChart(b, seatmap.Stadium())
	for _, renderer := range []string{"canvas", "webgl"} {
		b.Run(renderer, func(b *testing.B) {
			for b.Loop() {
				measureMap(b, s.URL, renderer)
			}
		})
	}
}

// serveChart serves the pages, the steps of the benchmark, and a chart as c1.
func serveChart(t testing.TB, chart *seatmap.Chart) *httptest.Server {
	t.Helper()
	text, _, err := chart.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	web.MountPages(e)
	e.Static("/bench", "../../web/app/bench")
	e.GET("/v1/charts/c1.json", func(c echo.Context) error { return c.JSONBlob(200, text) })
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s
}

func measureMap(b *testing.B, url, renderer string) {
	p := browsertest.Open(b, url+"/events/none")
	empty := p.Heap()
	first := browsertest.Eval[float64](p, fmt.Sprintf(`
		const base = document.querySelector('script[type=module]').src;
		const { load } = await import('/bench/bench.js');
		document.querySelectorAll('#fatal, main').forEach((el) => el.remove());
		return load(base, %q);`, renderer))
	b.ReportMetric(first, "first-ms")
	for _, phase := range []string{"frame far", "frame near", "pan near", "pan between", "zoom", "frame far again"} {
		var took []time.Duration
		for n := range 40 {
			browsertest.Eval[int](p, fmt.Sprintf(`await ready(%q, %d); return 0;`, phase, n))
			before := p.ScriptTime()
			browsertest.Eval[int](p, `await step(); return 0;`)
			took = append(took, p.ScriptTime()-before)
		}
		slices.Sort(took)
		unit := strings.ReplaceAll(phase, " ", "-")
		b.ReportMetric(took[len(took)/2].Seconds()*1000, unit+"-p50-ms")
		b.ReportMetric(took[len(took)*95/100].Seconds()*1000, unit+"-p95-ms")
	}
	b.ReportMetric(float64(p.Heap()-empty)/1e6, "heap-MB")
}
