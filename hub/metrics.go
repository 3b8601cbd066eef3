package hub

import "github.com/prometheus/client_golang/prometheus"

// engine names how this build writes to its sessions.
const engine = "portable"

type metrics struct {
	sessions  *prometheus.GaugeVec
	closes    *prometheus.CounterVec
	joins     *prometheus.CounterVec
	snapshots *prometheus.CounterVec
	bytes     *prometheus.CounterVec
	lag       prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hub_sessions",
			Help: "Sessions open now."}, []string{"transport", "engine"}),
		closes: counter("hub_closes_total", "Sessions ended, by why.", "transport", "code"),
		joins: counter("hub_joins_total",
			"Topics joined: fresh, resumed from the ring, or with a number that needs a snapshot.", "how"),
		snapshots: counter("hub_snapshots_total", "Snapshots sent, and asked for again because none would do.", "result"),
		bytes:     counter("hub_written_bytes_total", "Bytes given to connections.", "transport"),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "hub_write_lag_seconds",
			Help:    "Time from Publish until a session's write of the frame was taken.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}),
	}
	if r != nil {
		r.MustRegister(m.sessions, m.closes, m.joins, m.snapshots, m.bytes, m.lag)
	}
	return m
}

func (m *metrics) joined(c *cursor) {
	how := "resumed"
	switch {
	case c.claimed:
		how = "unknown"
	case c.owed:
		how = "fresh"
	}
	m.joins.WithLabelValues(how).Inc()
}
