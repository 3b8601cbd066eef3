package hub

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// kinds of session there are.
const (
	sse      = "sse"
	ws       = "ws"
	parked   = "parked"
	portable = "portable"
)

type metrics struct {
	kinds     map[[2]string]*kind
	sessions  *prometheus.GaugeVec
	limit     prometheus.Gauge
	opens     *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	closes    *prometheus.CounterVec
	joins     *prometheus.CounterVec
	snapshots *prometheus.CounterVec
	bytes     *prometheus.CounterVec
	frames    *prometheus.CounterVec
	resets    *prometheus.CounterVec
	trims     prometheus.Counter
	behind    prometheus.Gauge
	fanout    prometheus.Histogram
	lag, age  prometheus.Histogram
	pong      prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	times := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)})
	}
	m := &metrics{
		kinds:    make(map[[2]string]*kind),
		sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hub_sessions", Help: "Sessions open now."}, []string{"transport", "engine"}),
		limit:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "hub_sessions_limit", Help: "Sessions that may be open at once."}),
		opens:    counters("hub_opens_total", "Sessions opened.", "transport", "engine"),
		refusals: counters("hub_refused_total", "Sessions, topics and messages refused, by the limit they met.", "transport", "reason"),
		closes:   counters("hub_closes_total", "Sessions ended, by why.", "transport", "code"),
		joins: counters("hub_joins_total",
			"Topics joined: fresh, resumed from the ring, or with a number that needs a snapshot.", "how"),
		snapshots: counters("hub_snapshots_total", "Snapshots sent, and asked for again because none would do.", "result"),
		bytes:     counters("hub_written_bytes_total", "Bytes given to connections.", "transport"),
		frames:    counters("hub_written_frames_total", "Frames given to connections.", "transport"),
		resets: counters("hub_resets_total",
			"Times somebody was told to start over: everybody who watches a topic, or one session that came with a number nothing reaches.", "who"),
		trims:  prometheus.NewCounter(prometheus.CounterOpts{Name: "hub_fell_off_total", Help: "Times a session fell off its topic's ring."}),
		behind: prometheus.NewGauge(prometheus.GaugeOpts{Name: "hub_sessions_behind", Help: "Parked sessions whose connection does not take what is kept for it."}),
		fanout: times("hub_fanout_seconds", "Time from Publish until the frame was offered to the last parked session."),
		lag:    times("hub_write_lag_seconds", "Time from Publish until a session's write of the frame was taken; every 16th write."),
		age:    times("hub_write_age_seconds", "Age of the oldest change in a frame when a session's write of it was taken; every 16th write."),
		pong:   times("hub_pong_seconds", "Time from a ping until the WebSocket's client answered it."),
	}
	if r != nil {
		r.MustRegister(m.sessions, m.limit, m.opens, m.refusals, m.closes, m.joins, m.snapshots, m.bytes, m.frames, m.resets, m.trims,
			m.behind, m.fanout, m.lag, m.age, m.pong)
	}
	for _, transport := range []string{sse, ws} {
		for _, engine := range []string{parked, portable} {
			m.kinds[[2]string{transport, engine}] = &kind{transport: transport, engine: engine, many: transport == ws,
				traffic: &traffic{m: m, bytes: m.bytes.WithLabelValues(transport), frames: m.frames.WithLabelValues(transport)}}
		}
	}
	m.begin()
	return m
}

// begin has every counter there is at 0: one that appears with its first event
// hides that event from rate.
func (m *metrics) begin() {
	reasons := []string{errLeaving.reason, errFull.reason, errBusy.reason, errAddress.reason}
	for _, k := range m.kinds {
		m.sessions.WithLabelValues(k.transport, k.engine)
		m.opens.WithLabelValues(k.transport, k.engine)
		for _, why := range reasons {
			m.refusals.WithLabelValues(k.transport, why)
		}
		for why, row := range closings {
			if k.many || !why.socketOnly() {
				m.closes.WithLabelValues(k.transport, row.name)
			}
		}
	}
	for _, why := range []string{"topics", "messages", "message_size", "asks"} {
		m.refusals.WithLabelValues(ws, why)
	}
	for vec, values := range map[*prometheus.CounterVec][]string{
		m.joins: {"fresh", "resumed", "unknown"}, m.snapshots: {"sent", "asked_again"}, m.resets: {everybody, oneSession},
	} {
		for _, v := range values {
			vec.WithLabelValues(v)
		}
	}
}

// who is told to start over.
const (
	everybody  = "everybody"
	oneSession = "session"
)

func (m *metrics) kind(transport, engine string) *kind { return m.kinds[[2]string{transport, engine}] }

func (m *metrics) opened(k *kind) {
	m.sessions.WithLabelValues(k.transport, k.engine).Inc()
	m.opens.WithLabelValues(k.transport, k.engine).Inc()
}

func (m *metrics) closed(k *kind, why Code) {
	m.closes.WithLabelValues(k.transport, why.String()).Inc()
	m.sessions.WithLabelValues(k.transport, k.engine).Dec()
}

func (m *metrics) refused(k *kind, reason string) {
	m.refusals.WithLabelValues(k.transport, reason).Inc()
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

// sent counts a snapshot given to c, and why it was owed one.
func (m *metrics) sent(c *cursor) {
	m.snapshots.WithLabelValues("sent").Inc()
	if c.fell > 0 {
		m.trims.Inc()
	}
}

// traffic counts what sessions of one kind are written.
type traffic struct {
	m      *metrics
	bytes  prometheus.Counter
	frames prometheus.Counter
	writes atomic.Uint32
}

func (t *traffic) gave(bytes int) { t.bytes.Add(float64(bytes)) }

// wrote counts a frame. Looking at the clock costs as much as a part of the
// write, so only every 16th is timed.
func (t *traffic) wrote(f *frame) {
	t.frames.Inc()
	if t.writes.Add(1)%16 != 1 || f.numbers == nil {
		return
	}
	now := time.Now()
	t.m.lag.Observe(now.Sub(f.made).Seconds())
	if !f.at.IsZero() {
		t.m.age.Observe(max(0, now.Sub(f.at).Seconds()))
	}
}
