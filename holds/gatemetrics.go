package holds

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gateMetrics count what a Gate says, and how often it is wrong.
type gateMetrics struct {
	said    *prometheus.CounterVec
	answers [allSayings]prometheus.Counter // of said
	sampled prometheus.Counter
	wrong   prometheus.Counter
	ages    *prometheus.HistogramVec
}

var _ prometheus.Collector = (*Gate)(nil)

func newGateMetrics() gateMetrics {
	m := gateMetrics{
		said: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holds_gate_total", Help: "Requests for seats of hot events, by what memory made of them.",
		}, []string{"answer"}),
		sampled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "holds_gate_sampled_total", Help: "Refusals from memory that were compared with Redis.",
		}),
		wrong: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "holds_gate_false_total", Help: "Refusals among them whose every seat was free in Redis.",
		}),
		ages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holds_gate_age_seconds", Help: "How old what memory knew was, of compared refusals, by whether they were right or false.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12), // 1 ms to 2 s
		}, []string{"was"}),
	}
	for k, word := range sayings {
		m.answers[k] = m.said.WithLabelValues(word)
	}
	for _, was := range []string{"right", "false"} {
		m.ages.WithLabelValues(was)
	}
	return m
}

func (m *gateMetrics) compared(age time.Duration, wrong bool) {
	m.sampled.Inc()
	was := "right"
	if wrong {
		was = "false"
		m.wrong.Inc()
	}
	m.ages.WithLabelValues(was).Observe(age.Seconds())
}

// Describe and Collect make a Gate a collector of its own metrics.
func (g *Gate) Describe(to chan<- *prometheus.Desc) {
	for _, c := range g.metrics.all() {
		c.Describe(to)
	}
}

// Collect sends the metrics as they are.
func (g *Gate) Collect(to chan<- prometheus.Metric) {
	for _, c := range g.metrics.all() {
		c.Collect(to)
	}
}

func (m *gateMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.said, m.sampled, m.wrong, m.ages}
}
