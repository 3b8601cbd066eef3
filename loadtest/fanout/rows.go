package fanout

import (
	"math"

	"seatcast/loadtest/report"
)

// Row is one server's figures in the file of --json: medians over pairs, null
// when the server is missing.
type Row struct {
	Server           string   `json:"server"`
	Transport        string   `json:"transport"`
	Conns            int      `json:"conns"`
	Rate             float64  `json:"rate"`
	Deliveries       *int64   `json:"deliveries"`
	Expected         *int64   `json:"expected"`
	DeliveriesPerS   *float64 `json:"deliveries_per_s"`
	CPUUsPerDelivery *float64 `json:"cpu_us_per_delivery"`
	P50Ms            *float64 `json:"p50_ms"`
	P99Ms            *float64 `json:"p99_ms"`
	MaxMs            *float64 `json:"max_ms"`
	RSSKBPerConn     *float64 `json:"rss_kb_per_conn"`
	Missing          bool     `json:"missing"`
}

func (o *Options) transport() string {
	if o.WS {
		return "ws"
	}
	return "sse"
}

// row makes a server's row of its rounds; without any it is missing.
func (o *Options) row(server string, rate float64, rounds []figures) Row {
	r := Row{Server: server, Transport: o.transport(), Conns: o.Conns, Rate: rate, Missing: len(rounds) == 0}
	if r.Missing {
		return r
	}
	whole := func(of func(figures) float64) *int64 {
		n := int64(math.Round(report.MedianOf(rounds, of)))
		return &n
	}
	number := func(of func(figures) float64) *float64 {
		x := report.MedianOf(rounds, of)
		return &x
	}
	r.Deliveries = whole(func(f figures) float64 { return float64(f.Deliveries) })
	r.Expected = whole(func(f figures) float64 { return float64(f.Expected) })
	r.DeliveriesPerS = number(func(f figures) float64 { return f.rate })
	r.CPUUsPerDelivery = number(cpu)
	r.P50Ms = number(func(f figures) float64 { return f.P50 })
	r.P99Ms = number(p99)
	r.MaxMs = number(func(f figures) float64 { return f.Max })
	r.RSSKBPerConn = number(func(f figures) float64 { return f.rss / 1024 })
	return r
}

func cpu(f figures) float64 { return f.cpu }
func p99(f figures) float64 { return f.P99 }
func rss(f figures) float64 { return f.rss }
