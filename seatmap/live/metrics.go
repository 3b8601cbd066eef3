package live

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what the machines of this package do.
type Metrics struct {
	unsaid    prometheus.Counter
	missed    *prometheus.CounterVec
	reconnect *prometheus.CounterVec
	gaps      *prometheus.CounterVec
	reordered prometheus.Counter
	repaired  *prometheus.CounterVec
	reset     *prometheus.CounterVec
	drift     prometheus.Counter
	lag       prometheus.Histogram
	merged    prometheus.Histogram
	degraded  prometheus.Gauge
}

// NewMetrics registers them with r, which may be nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	m := &Metrics{
		unsaid: prometheus.NewCounter(counter("seatmap_unpublished_total",
			"Changes that could not be given to NATS; other nodes repair them from the log.")),
		missed: prometheus.NewCounterVec(counter("seatmap_missed_total",
			"Messages of changes lost on this node, by why."), []string{"why"}),
		reconnect: prometheus.NewCounterVec(counter("seatmap_nats_reconnects_total",
			"Connections to NATS that came back, by name; what was said meanwhile is repaired from the log."), []string{"name"}),
		gaps: prometheus.NewCounterVec(counter("seatmap_gaps_total",
			"Times a change was found missing, by what showed it: one that came early, or the event's number in Redis."), []string{"seen"}),
		reordered: prometheus.NewCounter(counter("seatmap_reordered_total",
			"Changes that came early and were applied once the one before had come.")),
		repaired: prometheus.NewCounterVec(counter("seatmap_repaired_total",
			"Gaps closed from the log, or by a snapshot."), []string{"from"}),
		reset: prometheus.NewCounterVec(counter("seatmap_reset_total",
			"Times watchers were told to start over, by why."), []string{"why"}),
		drift: prometheus.NewCounter(counter("seatmap_drift_total",
			"Projections that differed from Redis at the same number.")),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seatmap_change_lag_seconds",
			Help:    "Age of the oldest change of a frame, by the clock of Redis, when the frame was given to the hub.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)}),
		merged: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seatmap_frame_changes",
			Help:    "Changes merged into a frame given to the hub: the count is frames, the sum changes.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13)}),
		degraded: prometheus.NewGauge(prometheus.GaugeOpts{Name: "seatmap_degraded",
			Help: "1 while Redis cannot be asked for the numbers of hot events."}),
	}
	if r != nil {
		r.MustRegister(m.unsaid, m.missed, m.reconnect, m.gaps, m.reordered, m.repaired, m.reset, m.drift, m.lag, m.merged, m.degraded)
	}
	m.begin()
	return m
}

// begin has every counter there is at 0: one that appears with its first event
// hides that event from rate. Those of connections begin with theirs.
func (m *Metrics) begin() {
	for vec, values := range map[*prometheus.CounterVec][]string{
		m.missed:   {"behind", "slow_consumer", "unreadable"},
		m.gaps:     {"early", "number"},
		m.repaired: {"log", "snapshot"},
		m.reset:    {"told", "chart", "fork", "cold", "drift"},
	} {
		for _, v := range values {
			vec.WithLabelValues(v)
		}
	}
}
