package waitingroom

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seatcast/seatmap"
)

// metrics tell of the rooms there are and of no others.
type metrics struct {
	joins     *prometheus.CounterVec
	claims    *prometheus.CounterVec
	unwritten atomic.Int64 // admissions
}

var _ prometheus.Collector = (*Rooms)(nil)

// claimed is how a claim ends.
var claimed = []string{"admitted", "inside", "called", "waits", "no_place", "over", "unavailable", "error"}

func newMetrics() *metrics {
	return &metrics{
		joins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waitingroom_joins_total", Help: "Places given on this node, and tickets of draws.",
		}, []string{"event"}),
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waitingroom_claims_total", Help: "Passes asked for on this node, by what became of it; admitted: let in.",
		}, []string{"event", "outcome"}),
	}
}

// begin has the counters of a room at 0.
func (m *metrics) begin(event string) {
	m.joins.WithLabelValues(event)
	for _, outcome := range claimed {
		m.claims.WithLabelValues(event, outcome)
	}
}

// drop forgets a room that is not there any more.
func (m *metrics) drop(event string) {
	m.joins.DeleteLabelValues(event)
	m.claims.DeletePartialMatch(prometheus.Labels{"event": event})
}

func (m *metrics) claim(event string, t Turn, err error) {
	outcome := "waits"
	switch {
	case errors.Is(err, ErrNoPlace):
		outcome = "no_place"
	case errors.Is(err, ErrOver):
		outcome = "over"
	case errors.Is(err, seatmap.ErrUnavailable):
		outcome = "unavailable"
	case err != nil:
		outcome = "error"
	case t.New:
		outcome = "admitted"
	case !t.Inside.IsZero():
		outcome = "inside"
	case t.Called:
		outcome = "called"
	}
	m.claims.WithLabelValues(event, outcome).Inc()
}

// gauge is a number of a room.
type gauge struct {
	desc  *prometheus.Desc
	value func(*Room, *hall) float64
}

func ofRoom(name, help string, value func(*Room, *hall) float64) gauge {
	return gauge{prometheus.NewDesc("waitingroom_"+name, help, []string{"event"}, nil), value}
}

var gauges = []gauge{
	ofRoom("rate", "People let in a minute, as it is set.", func(r *Room, _ *hall) float64 { return float64(r.Terms.Rate) }),
	ofRoom("pace", "People let in a minute, as it is now.", func(_ *Room, h *hall) float64 { return float64(h.now.Pace) }),
	ofRoom("waiting", "People not called yet, or on the list of the draw.", func(_ *Room, h *hall) float64 { return float64(h.now.Waiting) }),
	ofRoom("inside", "People in the sale.", func(_ *Room, h *hall) float64 { return float64(h.now.Inside) }),
	ofRoom("serving", "The highest number that is called.", func(_ *Room, h *hall) float64 { return float64(h.now.Serving) }),
	ofRoom("seats_left", "Seats that are free.", func(_ *Room, h *hall) float64 { return float64(h.now.SeatsLeft) }),
	ofRoom("seen_timestamp_seconds", "When this node has looked at the room last, in Unix time.", func(_ *Room, h *hall) float64 {
		return float64(h.looked.UnixNano()) / float64(time.Second)
	}),
}

// heardGauges are those of what the sale did, which only who calls the next numbers hears.
var heardGauges = []gauge{
	ofRoom("hold_p99_seconds", "What 99 of a hundred holds took on the slowest node.", func(_ *Room, h *hall) float64 { return float64(h.did.Holds.P99) / 1000 }),
	ofRoom("checkout_p99_seconds", "What 99 of a hundred payments and confirmations took on the slowest node.", func(_ *Room, h *hall) float64 { return float64(h.did.Checkout.P99) / 1000 }),
}

// gauges are those of this process.
func (r *Rooms) gauges() []gauge {
	if r.o.Calls {
		return slices.Concat(gauges, heardGauges)
	}
	return gauges
}

var (
	stateDesc     = prometheus.NewDesc("waitingroom_state", "1 for what the room does.", []string{"event", "state"}, nil)
	drawDesc      = prometheus.NewDesc("waitingroom_draw", "1 for how far the draw is.", []string{"event", "state"}, nil)
	unwrittenDesc = prometheus.NewDesc("waitingroom_admissions_unwritten", "Admissions of this node, and ends of them, that are not in Postgres yet.", nil, nil)
)

// Describe and Collect make Rooms a collector of the rooms' metrics.
func (r *Rooms) Describe(to chan<- *prometheus.Desc) {
	r.metrics.joins.Describe(to)
	r.metrics.claims.Describe(to)
	r.o.Line.scripts.Describe(to)
	for _, g := range r.gauges() {
		to <- g.desc
	}
	to <- stateDesc
	to <- drawDesc
	to <- unwrittenDesc
}

// Collect sends the metrics as they are. A room that this node has not looked at
// yet has none.
func (r *Rooms) Collect(to chan<- prometheus.Metric) {
	r.metrics.joins.Collect(to)
	r.metrics.claims.Collect(to)
	r.o.Line.scripts.Collect(to)
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	send(unwrittenDesc, float64(r.metrics.unwritten.Load()))
	for _, room := range r.all() {
		h := r.hall(room)
		h.mu.Lock()
		if h.text != nil {
			for _, g := range r.gauges() {
				send(g.desc, g.value(room, h), room.Event)
			}
			for _, state := range []State{Draw, Closed, Open, Paused, Over} {
				send(stateDesc, is(state == h.now.State), room.Event, string(state))
			}
		}
		h.mu.Unlock()
		if room.HasDraw() {
			for _, state := range []string{"announced", "frozen", "drawn"} {
				send(drawDesc, is(state == room.drawState()), room.Event, state)
			}
		}
	}
}

func is(so bool) float64 {
	if so {
		return 1
	}
	return 0
}
