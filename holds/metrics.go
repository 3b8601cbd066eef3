package holds

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seatcast/seatmap"
	"seatcast/web"
)

// metrics count what is asked and how it ends.
type metrics struct {
	calls   *prometheus.CounterVec
	scripts *prometheus.HistogramVec
}

var _ prometheus.Collector = (*Store)(nil)

// verbs are what is asked of a Store. Each can end as one of always; how else,
// differs, and what is counted so begins with its first.
var (
	verbs  = []string{"basket", "best", "extend", "lapse", "rebuild", "release", "restore", "seal", "shift", "spend", "swap", "take", "unheld"}
	always = []string{"ok", "unavailable", "canceled", "error"}
	timed  = []string{"basket", "due", "extend", "lapse", "peek", "rebuild", "release", "restore", "seal", "shift", "spend", "swap", "take"}
)

func newMetrics() metrics {
	m := metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holds_total", Help: "Calls of the hold store by verb and outcome.",
		}, []string{"verb", "outcome"}),
		scripts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holds_script_seconds", Help: "How long a script, or the plain read before a take (peek), took from sending it to its answer.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 14), // 50 µs to 0.4 s
		}, []string{"verb"}),
	}
	for _, verb := range verbs {
		for _, outcome := range always {
			m.calls.WithLabelValues(verb, outcome) // at 0: rate sees no event that makes its own series
		}
	}
	for _, verb := range timed {
		m.scripts.WithLabelValues(verb)
	}
	return m
}

// Describe and Collect make a Store a collector of its own metrics.
func (s *Store) Describe(to chan<- *prometheus.Desc) {
	s.metrics.calls.Describe(to)
	s.metrics.scripts.Describe(to)
}

// Collect sends the metrics as they are.
func (s *Store) Collect(to chan<- prometheus.Metric) {
	s.metrics.calls.Collect(to)
	s.metrics.scripts.Collect(to)
}

func (m metrics) came(verb string, err error) { m.calls.WithLabelValues(verb, outcome(err)).Inc() }

func (m metrics) took(verb string, d time.Duration) {
	m.scripts.WithLabelValues(verb).Observe(d.Seconds())
}

// outcome is one word for how a call ended.
func outcome(err error) string {
	var (
		taken *TakenError
		lost  *seatmap.LostError
		full  *AreaFullError
		few   *seatmap.TooFewError
		pace  *PaceError
		said  *web.Problem
	)
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &taken):
		return "taken"
	case errors.As(err, &lost):
		return "lost"
	case errors.As(err, &full):
		return "area_full"
	case errors.As(err, &few):
		return "too_few"
	case errors.As(err, &pace):
		return "paced"
	case errors.As(err, &said): // by a rule of the event
		return "refused"
	}
	for _, o := range []struct {
		err  error
		word string
	}{
		{ErrOverCap, "over_cap"},
		{ErrBought, "bought"},
		{ErrMany, "many"},
		{ErrReused, "reused"},
		{ErrSealed, "sealed"},
		{errContended, "contended"},
		{seatmap.ErrBadWish, "bad_wish"},
		{seatmap.ErrSold, "sold"},
		{seatmap.ErrHoldExpired, "expired"},
		{seatmap.ErrNotYours, "not_yours"},
		{seatmap.ErrNoBasket, "no_basket"},
		{seatmap.ErrNoEvent, "no_event"},
		{seatmap.ErrUnavailable, "unavailable"},
		{context.Canceled, "canceled"},
	} {
		if errors.Is(err, o.err) {
			return o.word
		}
	}
	return "error"
}
