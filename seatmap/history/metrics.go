package history

import "github.com/prometheus/client_golang/prometheus"

// seen is what an entry is counted as that was only seen after a gap.
const seen What = "seen"

type metrics struct {
	entries *prometheus.CounterVec
	gaps    *prometheus.CounterVec
	failed  prometheus.Counter
}

func newMetrics(r prometheus.Registerer, lag func() float64) *metrics {
	m := &metrics{
		entries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "seat_log_entries_total",
			Help: "Entries made in the seat log, by what became of the seat; those of what was only seen after a gap are seen."}, []string{"what"}),
		gaps: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "seat_log_gaps_total",
			Help: "Gaps entered in the seat log, by why what happened is not known."}, []string{"reason"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "seat_log_failures_total",
			Help: "Events whose changes could not be recorded just now; they are tried again."}),
	}
	for _, what := range []What{Held, Released, Sold, Closed, GivenBack, Swapped, Lapsed, Restored, seen} {
		m.entries.WithLabelValues(string(what)) // at 0: rate sees no event that makes its own series
	}
	for _, why := range []Reason{Began, Trimmed, Fork, Emptied, Reset, Unreadable} {
		m.gaps.WithLabelValues(string(why))
	}
	if r != nil {
		r.MustRegister(m.entries, m.gaps, m.failed, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "seat_log_lag_seconds",
			Help: "For how long this process has known of changes that are not recorded, of the event that waits the longest; above 120 they are lost."}, lag))
	}
	return m
}

func (m *metrics) count(p *page) {
	for _, e := range p.entries {
		what := e.What
		if e.Seen {
			what = seen
		}
		m.entries.WithLabelValues(string(what)).Inc()
	}
	if p.gap != nil {
		m.gaps.WithLabelValues(string(p.gap.Reason)).Inc()
	}
}
