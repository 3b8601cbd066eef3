package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Queue is the queue of jobs as operators see it.
type Queue struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx] // works nothing
	kinds  []string
	log    *slog.Logger

	count, stuck, oldest *prometheus.GaugeVec
}

// waiting are the states a job that is not done may have.
var waiting = []string{"available", "running", "scheduled", "retryable", "pending", "discarded", "cancelled"}

// New returns the queue of a migrated database. Of kinds there are figures also
// while there is no such job. It does no I/O.
func New(pool *pgxpool.Pool, kinds []string, log *slog.Logger) (*Queue, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	q := &Queue{pool: pool, client: client, kinds: kinds, log: log,
		count:  gauge("jobs", "Jobs that are not done, by kind and state, as this worker saw last.", "kind", "state"),
		stuck:  gauge("jobs_stuck", "Jobs that have failed five times at least, or were given up, by kind, as this worker saw last.", "kind"),
		oldest: gauge("jobs_oldest_due_seconds", "How long the job that waits longest has been due, by kind, as this worker saw last.", "kind"),
	}
	q.reset()
	return q, nil
}

// reset makes every figure nought.
func (q *Queue) reset() {
	q.count.Reset()
	q.stuck.Reset()
	q.oldest.Reset()
	for _, kind := range q.kinds {
		for _, state := range waiting {
			q.count.WithLabelValues(kind, state).Set(0)
		}
		q.stuck.WithLabelValues(kind).Set(0)
		q.oldest.WithLabelValues(kind).Set(0)
	}
}

var _ prometheus.Collector = (*Queue)(nil)

// Describe and Collect make a Queue a collector of its own metrics.
func (q *Queue) Describe(to chan<- *prometheus.Desc) {
	for _, g := range []*prometheus.GaugeVec{q.count, q.stuck, q.oldest} {
		g.Describe(to)
	}
}

// Collect sends the metrics as they are.
func (q *Queue) Collect(to chan<- prometheus.Metric) {
	for _, g := range []*prometheus.GaugeVec{q.count, q.stuck, q.oldest} {
		g.Collect(to)
	}
}

const (
	lookEvery = 15 * time.Second
	patience  = 3 * time.Second
)

// Run counts jobs until ctx ends.
func (q *Queue) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := q.Look(ctx); err != nil && ctx.Err() == nil {
			q.log.ErrorContext(ctx, "jobs are not counted", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// isStuck is the condition of a job that gets nowhere.
const isStuck = `(state IN ('discarded', 'cancelled') OR state <> 'completed' AND cardinality(errors) >= 5)`

// Look counts jobs now.
func (q *Queue) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := q.pool.Query(ctx, `SELECT kind, state::text, count(*), count(*) FILTER (WHERE `+isStuck+`),
			coalesce(extract(epoch FROM now() - min(scheduled_at) FILTER (WHERE state IN ('available', 'scheduled', 'retryable') AND scheduled_at <= now())), 0)::float8
		FROM river_job WHERE state <> 'completed' GROUP BY kind, state`)
	if err != nil {
		return fmt.Errorf("count jobs: %w", err)
	}
	type figures struct {
		kind, state   string
		n, stuck, due float64
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f figures, err error) {
		err = row.Scan(&f.kind, &f.state, &f.n, &f.stuck, &f.due)
		return f, err
	})
	if err != nil {
		return fmt.Errorf("count jobs: %w", err)
	}
	q.reset()
	dueOf := map[string]float64{}
	for _, f := range all {
		q.count.WithLabelValues(f.kind, f.state).Set(f.n)
		q.stuck.WithLabelValues(f.kind).Add(f.stuck)
		dueOf[f.kind] = max(dueOf[f.kind], f.due)
		q.oldest.WithLabelValues(f.kind).Set(dueOf[f.kind])
	}
	return nil
}

// List returns a page of jobs.
func (q *Queue) List(ctx context.Context, what Query) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := q.pool.Query(ctx, `SELECT id, kind, state::text, args, coalesce(cardinality(errors), 0), coalesce(errors[cardinality(errors)] ->> 'error', ''),
			CASE WHEN state IN ('available', 'scheduled', 'retryable') AND scheduled_at > now() THEN scheduled_at END, created_at, (errors[1] ->> 'at')::timestamptz
		FROM river_job WHERE (CASE WHEN $1 = 'stuck' THEN `+isStuck+` ELSE state::text = $1 END)
			AND ($2 = '' OR kind = $2) AND id > $3 ORDER BY id LIMIT $4`, what.State, what.Kind, what.After, what.Limit+1)
	if err != nil {
		return Page{}, fmt.Errorf("list jobs: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (j Job, err error) {
		err = row.Scan(&j.ID, &j.Kind, &j.State, &j.Args, &j.Tries, &j.LastError, &j.NextAt, &j.At, &j.Since)
		return j, err
	})
	if err != nil {
		return Page{}, fmt.Errorf("list jobs: %w", err)
	}
	p := Page{Jobs: all}
	if len(all) > what.Limit {
		p.Jobs, p.Next = all[:what.Limit], all[what.Limit-1].ID
	}
	return p, nil
}

// Retry has a job tried now. ErrNoJob, ErrRunning, ErrDone, ErrTwin.
func (q *Queue) Retry(ctx context.Context, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		var state string
		err := tx.QueryRow(ctx, `SELECT state::text FROM river_job WHERE id = $1 FOR UPDATE`, id).Scan(&state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoJob
		case err != nil:
			return err
		case state == "running":
			return ErrRunning
		case state == "completed":
			return ErrDone
		}
		_, err = q.client.JobRetryTx(ctx, tx, id)
		return err
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "23505" {
		err = ErrTwin
	}
	if err != nil {
		return fmt.Errorf("retry job %d: %w", id, err)
	}
	return nil
}
