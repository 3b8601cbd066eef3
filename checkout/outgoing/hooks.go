package outgoing

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Options of New. Pool, ServerKey and Log are needed.
type Options struct {
	Pool      *pgxpool.Pool
	ServerKey []byte // what the secrets are encrypted with is derived from it
	Log       *slog.Logger

	HTTP    bool          // http:// will do
	Private bool          // so will addresses that are not public
	Keep    time.Duration // how long messages and their tries are kept; 30 days

	Every time.Duration                     // how often it is looked for what was left undone; 15 s
	Wait  func(time.Duration) time.Duration // of what is waited after a failure; give or take a fifth
}

// Hooks are the webhooks of one house.
type Hooks struct {
	store      *store
	poster     poster
	log        *slog.Logger
	o          Options
	lanes      lanes
	tries      *prometheus.CounterVec
	waiting    prometheus.Gauge
	oldest     prometheus.Gauge
	collectors []prometheus.Collector
}

// New returns the webhooks of a migrated database. It does no I/O.
func New(o Options) (*Hooks, error) {
	if o.Keep == 0 {
		o.Keep = 30 * 24 * time.Hour
	}
	if o.Every == 0 {
		o.Every = 15 * time.Second
	}
	if o.Wait == nil {
		o.Wait = func(d time.Duration) time.Duration { return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())) }
	}
	sealer, err := newSealer(o.ServerKey)
	if err != nil {
		return nil, err
	}
	jobs, err := river.NewClient(riverpgxv5.New(o.Pool), &river.Config{})
	if err != nil {
		return nil, err
	}
	h := &Hooks{store: &store{o.Pool, jobs, sealer}, poster: newPoster(sealer, o.Private), log: o.Log, o: o,
		lanes: lanes{most: workers / 2, busy: map[string]int{}},
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "webhook_tries_total",
			Help: "Tries to deliver an outgoing webhook, by result: delivered, refused (another status than 2xx) or unanswered."}, []string{"result"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "webhook_deliveries_pending",
			Help: "Outgoing webhooks that are still to be delivered, as this worker saw last."}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{Name: "webhook_oldest_pending_seconds",
			Help: "Age of the oldest outgoing webhook that is still to be delivered, as this worker saw last; 0: there is none."}),
	}
	for _, result := range []string{"delivered", "refused", "unanswered"} {
		h.tries.WithLabelValues(result)
	}
	h.collectors = []prometheus.Collector{h.tries, h.waiting, h.oldest}
	return h, nil
}

var _ prometheus.Collector = (*Hooks)(nil)

// Describe and Collect make Hooks a collector of its own metrics.
func (h *Hooks) Describe(to chan<- *prometheus.Desc) {
	for _, c := range h.collectors {
		c.Describe(to)
	}
}

// Collect sends the metrics as they are.
func (h *Hooks) Collect(to chan<- prometheus.Metric) {
	for _, c := range h.collectors {
		c.Collect(to)
	}
}

// workers is how many tries a process makes at a time.
const workers = 20

// Work adds the job that sends to those of a client of the job queue, and returns
// how Queue is to be worked.
func (h *Hooks) Work(to *river.Workers) river.QueueConfig {
	river.AddWorker(to, &sender{hooks: h})
	return river.QueueConfig{MaxWorkers: workers}
}

type sender struct {
	river.WorkerDefaults[sendArgs]
	hooks *Hooks
}

// Timeout leaves time to note what came of a try.
func (*sender) Timeout(*river.Job[sendArgs]) time.Duration { return postTimeout + 3*patience }

func (s *sender) Work(ctx context.Context, job *river.Job[sendArgs]) error {
	return s.hooks.try(ctx, job.Args)
}

// crowded is how long a job waits at least when its webhook is sent enough already.
const crowded = time.Second

// try makes one try of a delivery. When this process ends before that is noted it is
// made again, with the same id.
func (h *Hooks) try(ctx context.Context, turn sendArgs) error {
	p, ok, err := h.store.parcel(ctx, turn)
	if err != nil || !ok {
		return err
	}
	if !h.lanes.enter(p.Webhook) {
		return river.JobSnooze(crowded + rand.N(crowded))
	}
	defer h.lanes.leave(p.Webhook)
	t := h.poster.post(ctx, p)
	if err := ctx.Err(); err != nil { // it says nothing of the other side
		return err
	}
	o, err := h.store.note(ctx, turn, p, t, h.o.Wait)
	if err != nil {
		return err
	}
	h.count(t)
	if o.State == Dead {
		h.log.WarnContext(ctx, "outgoing webhook is dead: it is not sent again unless somebody asks for it", "webhook", p.Webhook,
			"delivery", turn.Delivery, "message", p.Message, "type", p.Type, "event", p.Event, "err", t.Error)
	}
	if o.Disabled == "" {
		return nil
	}
	did, err := h.store.disable(ctx, p.Webhook, o.Disabled)
	if did {
		h.log.ErrorContext(ctx, "webhook is disabled", "webhook", p.Webhook, "why", o.Disabled)
	}
	return err
}

func (h *Hooks) count(t Try) {
	result := "refused"
	switch {
	case t.Status/100 == 2:
		result = "delivered"
	case t.Status == 0:
		result = "unanswered"
	}
	h.tries.WithLabelValues(result).Inc()
}

// lanes let so many tries at a time go to one webhook, so that one that hangs leaves
// room for the others.
type lanes struct {
	most int
	mu   sync.Mutex
	busy map[string]int
}

func (l *lanes) enter(webhook string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[webhook] == l.most {
		return false
	}
	l.busy[webhook]++
	return true
}

func (l *lanes) leave(webhook string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[webhook]--; l.busy[webhook] == 0 {
		delete(l.busy, webhook)
	}
}

// lostAfter is how long after its time a delivery is taken to have no job any more: a
// release that does not know it may have thrown it away.
const lostAfter = 2 * time.Minute

// Run does what no job does, until ctx ends: deliveries that have lost theirs get
// another, what is old is forgotten, what waits is counted. Every worker runs it.
func (h *Hooks) Run(ctx context.Context) error {
	tick := time.NewTicker(h.o.Every)
	defer tick.Stop()
	for {
		err := errors.Join(h.store.overdue(ctx, lostAfter), h.forget(ctx), h.look(ctx))
		if err != nil && ctx.Err() == nil {
			h.log.ErrorContext(ctx, "round failed", "of", "webhooks", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (h *Hooks) forget(ctx context.Context) error {
	for {
		if n, err := h.store.forget(ctx, h.o.Keep); err != nil || n == 0 {
			return err
		}
	}
}

func (h *Hooks) look(ctx context.Context) error {
	n, age, err := h.store.backlog(ctx)
	if err == nil {
		h.waiting.Set(float64(n))
		h.oldest.Set(age.Seconds())
	}
	return err
}
