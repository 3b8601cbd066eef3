package checkout

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"

	"seatcast/internal/pg"
)

// An inspection asks the books for contradictions, for who is alerted by a
// metric before anybody complains. Each is done by one worker, whichever it is.

type inspectArgs struct{}

func (inspectArgs) Kind() string { return "inspect" }

func (inspectArgs) InsertOpts() river.InsertOpts { return auditArgs{}.InsertOpts() }

// inspector is the worker of inspections: they read whole tables and may take
// longer than jobs that call a provider.
type inspector struct {
	river.WorkerDefaults[inspectArgs]
	desk *Desk
}

func (inspector) Timeout(*river.Job[inspectArgs]) time.Duration { return time.Minute }

func (i inspector) Work(ctx context.Context, _ *river.Job[inspectArgs]) error {
	return i.desk.inspect(ctx)
}

// inspect checks every event that something happens to, and tells what is
// wrong when it is other than the last time.
func (d *Desk) inspect(ctx context.Context) error {
	events, err := d.store.underWay(ctx)
	if err != nil {
		return err
	}
	var r Report
	if len(events) > 0 {
		if r, err = d.store.Check(ctx, events...); err != nil {
			return err
		}
	}
	for _, f := range d.found.note(r.Faults) {
		log := d.log.ErrorContext
		if f.Late {
			log = d.log.WarnContext
		}
		log(ctx, f.What, "fault", f.Kind, "count", f.Count, "rows", f.Rows, "do", f.Do)
	}
	return nil
}

// underWay returns the events with a sale, or the end of one, of the last day,
// and those in which something is open.
func (s *Store) underWay(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT event_id FROM bookings WHERE state IN ('sold', 'lost', 'refunded') AND updated_at > now() - interval '1 day'
		UNION SELECT event_id FROM bookings WHERE state IN ('held', 'paying')
		UNION SELECT event_id FROM bookings b JOIN attempts p ON p.booking_id = b.id WHERE p.state = 'refund_failed'
		UNION SELECT event_id FROM bookings b JOIN attempts p ON p.booking_id = b.id WHERE p.state IN ('created', 'authorized', 'capturing', 'refunding')
		UNION SELECT event_id FROM seats WHERE mirror_due
		UNION SELECT event_id FROM areas WHERE mirror_due
		UNION SELECT event_id FROM buyers WHERE changes <> told`)
	if err != nil {
		return nil, pg.Said("look for events to check", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return events, pg.Said("look for events to check", err)
}

func (d *Desk) inspectEvery() time.Duration { return 2 * d.auditEvery }

// foundLasts is how many periods an inspection counts. Any worker may do the
// next, and what this one has found is told only while nobody can know better.
const foundLasts = 4

// findings are the last inspection of this process.
type findings struct {
	lasts time.Duration

	mu     sync.Mutex
	at     time.Time // zero: there was none
	counts map[string]int
}

// note keeps what was found, and returns what was not so before.
func (f *findings) note(faults []Fault) (news []Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := make(map[string]int, len(faults))
	for _, fault := range faults {
		counts[fault.Kind] = fault.Count
		if f.counts[fault.Kind] != fault.Count {
			news = append(news, fault)
		}
	}
	f.at, f.counts = time.Now(), counts
	return news
}

var (
	violations = prometheus.NewDesc("checkout_invariant_violations",
		"Contradictions in the books, and what ought to have been done by now, as this process found them last; 0 when it did not look for some minutes.", []string{"kind"}, nil)
	violationsAt = prometheus.NewDesc("checkout_invariant_checked_timestamp_seconds",
		"When this process looked for contradictions in the books last, in Unix time; 0: never.", nil, nil)
)

var _ prometheus.Collector = (*Desk)(nil)

// Describe and Collect make a Desk a collector of what its inspections find, and
// of refunds.
func (d *Desk) Describe(to chan<- *prometheus.Desc) {
	to <- refundsBy
	to <- refundsOldest
	to <- violations
	to <- violationsAt
}

// Collect sends the metrics as they are.
func (d *Desk) Collect(to chan<- prometheus.Metric) {
	d.collectRefunds(to)
	f := &d.found
	f.mu.Lock()
	defer f.mu.Unlock()
	at, counts := 0.0, map[string]int{}
	if !f.at.IsZero() {
		at = float64(f.at.UnixMilli()) / 1000
	}
	if time.Since(f.at) < f.lasts {
		counts = f.counts
	}
	to <- prometheus.MustNewConstMetric(violationsAt, prometheus.GaugeValue, at)
	for _, kind := range Kinds() {
		to <- prometheus.MustNewConstMetric(violations, prometheus.GaugeValue, float64(counts[kind]), kind)
	}
}
