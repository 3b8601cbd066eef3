package checkout

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
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

// OutageOptions say what is watched. All but the times are needed.
type OutageOptions struct {
	Store *Store
	Holds Renewal
	Log   *slog.Logger

	Every  time.Duration // how often a node looks; 2 s
	Stale  time.Duration // an answer of Redis says nothing after it; 5 s
	Settle time.Duration // for so long Redis must answer until it is relied on again; 10 s
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
// others hold. Nor does one that has not asked Postgres for all of these five
// seconds: others could not say more either. In a cluster an event is judged by the
// primary it lives on.
//
// The events are those on sale, and those with a booking held or being paid.
type Outage struct {
	store                *Store
	holds                Renewal
	log                  *slog.Logger
	every, stale, settle time.Duration

	node    string
	silent  map[string]time.Time // since when Redis does not answer, by event that holds seats
	answers map[string]time.Time // since when it answers, by event in the mode

	unheld prometheus.Gauge
	seen   prometheus.Gauge
}

// endWithin bounds how long the keys of one event may take to be made anew.
const endWithin = 15 * time.Second

// NewOutage returns a watch, which Run begins.
func NewOutage(o OutageOptions) *Outage {
	return &Outage{store: o.Store, holds: o.Holds, log: o.Log, node: newID("node_"),
		every: orElse(o.Every, 2*time.Second), stale: orElse(o.Stale, 5*time.Second), settle: orElse(o.Settle, 10*time.Second),
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

// Run watches until ctx ends. Making keys anew takes its time, and keeps nobody
// from noting that Redis answers. What fails is logged when it begins to fail.
func (o *Outage) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	ready := make(chan []string, 1) // 1: only the last look counts
	g.Go(func() error { return o.watch(ctx, ready) })
	g.Go(func() error { return o.leave(ctx, ready) })
	return g.Wait()
}

func (o *Outage) watch(ctx context.Context, ready chan []string) error {
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	failing := false
	for {
		over, err := o.look(ctx)
		select {
		case <-ready:
		default:
		}
		ready <- over
		if err != nil && !failing && ctx.Err() == nil {
			o.log.ErrorContext(ctx, "whether events can hold seats is not judged", "err", err)
		}
		if failing = err != nil; failing {
			o.silent = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks Redis, tells the others, and judges. It returns the events whose mode
// is over.
func (o *Outage) look(ctx context.Context) (over []string, err error) {
	events, err := o.store.selling(ctx, o.stale)
	if err != nil {
		return nil, err
	}
	var all, held, away []string
	for _, e := range events {
		all = append(all, e.ID)
		if e.Unheld {
			away = append(away, e.ID)
		} else {
			held = append(held, e.ID)
		}
	}
	o.unheld.Set(float64(len(away)))
	silent, mute := o.holds.Silent(ctx, all)
	if !mute {
		o.seen.SetToCurrentTime()
		if err := o.store.answered(ctx, o.node, silent); err != nil {
			return nil, err
		}
	}
	var gone []string
	o.silent, gone = lasting(o.silent, both(held, silent), o.stale)
	o.answers, over = lasting(o.answers, without(away, silent), o.settle)
	return over, o.enter(ctx, gone)
}

// lasting notes since when events are so, and returns those that are for so long.
func lasting(before map[string]time.Time, now []string, long time.Duration) (since map[string]time.Time, ready []string) {
	since = make(map[string]time.Time, len(now))
	for _, event := range now {
		at, known := before[event]
		if !known {
			at = time.Now()
		}
		since[event] = at
		if time.Since(at) >= long {
			ready = append(ready, event)
		}
	}
	return since, ready
}

func both(events, among []string) []string {
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool { return !slices.Contains(among, e) })
}

func without(events, these []string) []string {
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool { return slices.Contains(these, e) })
}

// enter puts those of the events into the mode that Redis answers for to nobody.
func (o *Outage) enter(ctx context.Context, events []string) error {
	if len(events) == 0 {
		return nil
	}
	entered, err := o.store.endHolds(ctx, events, o.stale)
	for _, event := range entered {
		o.log.WarnContext(ctx, "Redis answers no node: bookings are taken without holds", "event", event)
	}
	return err
}

// leave ends the mode of events one after the other. One whose keys cannot be made
// anew stays in it, and is tried again. Nodes begin anywhere, to share the work.
func (o *Outage) leave(ctx context.Context, ready chan []string) error {
	for {
		var events []string
		select {
		case <-ctx.Done():
			return nil
		case events = <-ready:
		}
		rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		for _, event := range events {
			if err := o.end(ctx, event); err != nil && ctx.Err() == nil {
				o.log.ErrorContext(ctx, "seats are not held again yet", "event", event, "err", err)
			}
		}
	}
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
func (o *Outage) Alone(ctx context.Context) (bool, error) {
	return o.store.alone(ctx, o.node, o.stale, 2*o.every)
}

// Unheld is how many events take bookings without holds.
func (o *Outage) Unheld(ctx context.Context) (int, error) { return o.store.unheldEvents(ctx) }
