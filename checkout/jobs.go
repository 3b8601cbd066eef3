package checkout

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"seatcast/checkout/outgoing"
	"seatcast/internal/pg"
)

// Jobs talk to the payment provider after the transaction that wanted it has
// committed: they are inserted by that transaction, so neither can be lost
// without the other. Each may run twice and on any worker.

type captureArgs struct {
	Attempt string `json:"attempt"`
}

func (captureArgs) Kind() string                 { return "capture" }
func (captureArgs) InsertOpts() river.InsertOpts { return jobOpts() }

type voidArgs struct {
	Attempt string `json:"attempt"`
}

func (voidArgs) Kind() string                 { return "void" }
func (voidArgs) InsertOpts() river.InsertOpts { return jobOpts() }

type refundArgs struct {
	Attempt string `json:"attempt"`
}

func (refundArgs) Kind() string                 { return "refund" }
func (refundArgs) InsertOpts() river.InsertOpts { return jobOpts() }

type giveBackArgs struct {
	Refund string `json:"refund"`
	Notice string `json:"notice,omitempty"` // the webhook that made somebody ask again
}

func (giveBackArgs) Kind() string                 { return "give_back" }
func (giveBackArgs) InsertOpts() river.InsertOpts { return jobOpts() }

type reconcileArgs struct {
	Booking string `json:"booking"`
}

func (reconcileArgs) Kind() string                 { return "reconcile" }
func (reconcileArgs) InsertOpts() river.InsertOpts { return jobOpts() }

// JobKinds are the kinds of jobs a desk works, those of webhooks beside its own.
var JobKinds = []string{captureArgs{}.Kind(), voidArgs{}.Kind(), refundArgs{}.Kind(), giveBackArgs{}.Kind(), reconcileArgs{}.Kind(),
	auditArgs{}.Kind(), inspectArgs{}.Kind(), outgoing.JobKind}

const (
	jobQueue   = "checkout"
	jobWorkers = 20

	jobTimeout = 10 * time.Second
	// A killed worker's job stays running, and blocks its unique replacement,
	// until it is rescued.
	rescueAfter = 15 * time.Second

	maxBackoff = 60 * time.Second
	maxTries   = 10_000 // a week of maxBackoff, as long as an authorisation lives
)

// jobOpts makes a job unique while it is not over. By args alone River would
// also count completed ones, and a second void would never be queued.
func jobOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       jobQueue,
		MaxAttempts: maxTries,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateScheduled,
			rivertype.JobStateRunning, rivertype.JobStateRetryable,
		}},
	}
}

// backoff waits 1, 2, 4 … 60 s. River's own is far slower than a shopper's
// patience with a card hold.
type backoff struct{}

func (backoff) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(backoffAfter(len(job.Errors) + 1))
}

func backoffAfter(tries int) time.Duration {
	if tries > 6 {
		return maxBackoff
	}
	return time.Second << (max(tries, 1) - 1)
}

func inserter(pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(pool), &river.Config{})
}

// requireVoid marks an attempt whose authorisation must be given back and
// queues the job that does it.
func (s *Store) requireVoid(ctx context.Context, tx pgx.Tx, a *attempt) error {
	if _, err := tx.Exec(ctx, `UPDATE attempts SET void_due = true, updated_at = now() WHERE id = $1`, a.ID); err != nil {
		return err
	}
	_, err := s.jobs.InsertTx(ctx, tx, voidArgs{a.ID}, nil)
	return err
}

// requireRefund queues the job that gives back what was taken for nothing.
func (s *Store) requireRefund(ctx context.Context, tx pgx.Tx, a *attempt) error {
	_, err := s.jobs.InsertTx(ctx, tx, refundArgs{a.ID}, nil)
	return err
}

// requireCapture queues the job that takes the money, unless it was taken.
func (s *Store) requireCapture(ctx context.Context, tx pgx.Tx, a *attempt, p Payment) error {
	if p.State == PaymentCaptured {
		return nil
	}
	_, err := s.jobs.InsertTx(ctx, tx, captureArgs{a.ID}, nil)
	return err
}

// requireReconcile queues the reconciler for bookings; one that is queued
// already is left alone.
func (s *Store) requireReconcile(ctx context.Context, bookings []string) error {
	if len(bookings) == 0 {
		return nil
	}
	jobs := make([]river.InsertManyParams, len(bookings))
	for i, id := range bookings {
		jobs[i].Args = reconcileArgs{id}
	}
	_, err := s.jobs.InsertMany(ctx, jobs)
	return pg.Said("queue the reconciler", err)
}

// work runs jobs until ctx ends, and returns after the last of them has. A
// queue that cannot start, because Postgres is away, is started again: this
// process has more to do than jobs.
func (d *Desk) work(ctx context.Context) error {
	queue, err := d.queue()
	if err != nil {
		return err
	}
	for {
		err := queue.Start(ctx)
		if err == nil {
			<-queue.Stopped()
			return nil
		}
		if ctx.Err() == nil {
			d.log.ErrorContext(ctx, "job queue not started yet", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(d.every):
		}
	}
}

// queue is the client of the job queue that works. There is one for all kinds: it
// rescues jobs of every process, and throws away those of a kind it does not know.
func (d *Desk) queue() (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[captureArgs]) error {
		return d.capture(ctx, job.Args.Attempt)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[voidArgs]) error {
		return d.void(ctx, job.Args.Attempt)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[refundArgs]) error {
		return d.refund(ctx, job.Args.Attempt)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[giveBackArgs]) error {
		return d.giveMoneyBack(ctx, job.Args.Refund)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[reconcileArgs]) error {
		return d.reconcile(ctx, job.Args.Booking)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[auditArgs]) error {
		return d.audit(ctx)
	}))
	river.AddWorker(workers, inspector{desk: d})
	queues := map[string]river.QueueConfig{jobQueue: {MaxWorkers: jobWorkers}}
	if d.outgoing != nil {
		queues[outgoing.Queue] = d.outgoing.Work(workers)
	}
	queue, err := river.NewClient(riverpgxv5.New(d.store.pool), &river.Config{
		Queues:                      queues,
		Workers:                     workers,
		PeriodicJobs:                d.audits(),
		Logger:                      d.log,
		JobTimeout:                  jobTimeout,
		RescueStuckJobsAfter:        rescueAfter,
		RetryPolicy:                 backoff{},
		SoftStopTimeout:             jobTimeout,
		CompletedJobRetentionPeriod: time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("checkout: job queue: %w", err)
	}
	return queue, nil
}
