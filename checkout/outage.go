package checkout

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Renewal is what the watch needs of whoever holds seats.
type Renewal interface {
	// Silent returns those of the events whose seats nobody can hold now; all
	// says that Redis does not answer at all.
	Silent(ctx context.Context, events []string) (silent []string, all bool)
	// Reset makes the keys of an event anew from the truth, keeping live holds,
	// whether they were lost or not.
	Reset(ctx context.Context, event string) error
	// Release gives the seats of a basket back.
	Release(ctx context.Context, event, token, user string) error
}

// OutageOptions say what is watched. All are needed.
type OutageOptions struct {
	Store *Store
	Holds Renewal
	Log   *slog.Logger
}

// Outage is one node's part in judging whether an event can hold seats. Every two
// seconds a node that takes bookings notes in Postgres that Redis answers it. Who
// gets no answer puts events into the mode without holds, once no node has had one
// for five seconds; who gets answers for ten ends it:
//
//	holds ──── no node had an answer for 5 s ────▶ no holds
//	  ▲                                               │
//	  └── this node had answers for 10 s, keys made anew
//
// The mode is of the event, in Postgres, by whose clock all of it is judged. A node
// whose Redis is silent while another's answers changes nothing: it would sell what
// others hold. In a cluster an event is judged by the primary it lives on.
//
// The events are those on sale, and those with a booking held or being paid.
type Outage struct {
	store   *Store
	holds   Renewal
	log     *slog.Logger
	node    string
	answers map[string]time.Time // since when, by event in the mode

	unheld prometheus.Gauge
	seen   prometheus.Gauge
}

const (
	lookEvery  = 2 * time.Second
	staleAfter = 5 * time.Second  // an answer of Redis says nothing after it
	settles    = 10 * time.Second // for so long Redis must answer until it is relied on again
	forgotten  = time.Hour        // a node that says nothing
	endWithin  = 15 * time.Second
)

// NewOutage returns a watch, which Run begins.
func NewOutage(o OutageOptions) *Outage {
	return &Outage{store: o.Store, holds: o.Holds, log: o.Log, node: newID("node_"), answers: make(map[string]time.Time),
		unheld: prometheus.NewGauge(prometheus.GaugeOpts{Name: "checkout_unheld_events",
			Help: "Events that take bookings without holds because Redis answers no node, as this node saw last."}),
		seen: prometheus.NewGauge(prometheus.GaugeOpts{Name: "checkout_redis_seen_timestamp_seconds",
			Help: "When Redis answered this node last, in Unix time; 0: never."}),
	}
}

var _ prometheus.Collector = (*Outage)(nil)

// Describe and Collect make an Outage a collector of its own metrics.
func (o *Outage) Describe(to chan<- *prometheus.Desc) {
	o.unheld.Describe(to)
	o.seen.Describe(to)
}

// Collect sends the metrics as they are.
func (o *Outage) Collect(to chan<- prometheus.Metric) {
	o.unheld.Collect(to)
	o.seen.Collect(to)
}

// Run watches until ctx ends. What fails is logged when it begins to fail.
func (o *Outage) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failing := false
	for {
		err := o.look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			o.log.ErrorContext(ctx, "whether events can hold seats is not judged", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks Redis, tells the others, and judges.
func (o *Outage) look(ctx context.Context) error {
	events, err := o.store.selling(ctx)
	if err != nil {
		return err
	}
	names, away := make([]string, len(events)), 0
	for k, e := range events {
		names[k] = e.ID
		if e.Unheld {
			away++
		}
	}
	o.unheld.Set(float64(away))
	silent, all := o.holds.Silent(ctx, names)
	if !all {
		o.seen.SetToCurrentTime()
		if err := o.store.answered(ctx, o.node, silent); err != nil {
			return err
		}
	}
	if err := o.enter(ctx, events, silent); err != nil {
		return err
	}
	return o.leave(ctx, o.settled(events, silent))
}

// enter puts those of the events into the mode that Redis answers for to nobody.
func (o *Outage) enter(ctx context.Context, events []selling, silent []string) error {
	var held []string
	for _, e := range events {
		if !e.Unheld && slices.Contains(silent, e.ID) {
			held = append(held, e.ID)
		}
	}
	if len(held) == 0 {
		return nil
	}
	entered, err := o.store.endHolds(ctx, held)
	for _, event := range entered {
		o.log.WarnContext(ctx, "Redis answers no node: bookings are taken without holds", "event", event)
	}
	return err
}

// settled are the events in the mode that Redis has answered for all the time
// lately.
func (o *Outage) settled(events []selling, silent []string) (ready []string) {
	still := make(map[string]time.Time)
	for _, e := range events {
		if !e.Unheld || slices.Contains(silent, e.ID) {
			continue
		}
		since, known := o.answers[e.ID]
		if !known {
			since = time.Now()
		}
		still[e.ID] = since
		if time.Since(since) >= settles {
			ready = append(ready, e.ID)
		}
	}
	o.answers = still
	return ready
}

// leave ends the mode of events one after the other. One whose keys cannot be made
// anew stays in it.
func (o *Outage) leave(ctx context.Context, events []string) (all error) {
	for _, event := range events {
		if err := o.end(ctx, event); err != nil {
			delete(o.answers, event) // it begins to settle anew
			all = errors.Join(all, err)
		}
	}
	return all
}

func (o *Outage) end(ctx context.Context, event string) error {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	since, err := o.store.beginHolds(ctx, event, func(ctx context.Context) error { return o.holds.Reset(ctx, event) })
	if err != nil || since.IsZero() {
		return err
	}
	o.log.WarnContext(ctx, "seats are held again", "event", event, "without", time.Since(since).Round(time.Second))
	over, err := o.store.overSince(ctx, event, since)
	if err != nil {
		return err
	}
	for _, b := range over {
		if err := o.holds.Release(ctx, event, b.Token, b.User); err != nil && !gone(err) {
			o.log.WarnContext(ctx, "hold left to lapse", "booking", b.ID, "err", err)
		}
	}
	return nil
}

// Alone says whether Redis has answered another node since it fell silent here.
func (o *Outage) Alone(ctx context.Context) (bool, error) { return o.store.alone(ctx, o.node) }

// Unheld is how many events take bookings without holds.
func (o *Outage) Unheld(ctx context.Context) (int, error) { return o.store.unheldEvents(ctx) }
