package outgoing

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Queue is the queue of the jobs that send, and JobKind what they are called.
const (
	Queue   = "webhooks"
	JobKind = "webhook"
)

// sendArgs name the turn of a delivery.
type sendArgs struct {
	Delivery int64 `json:"delivery"`
	Turn     int   `json:"turn"`
}

func (sendArgs) Kind() string { return JobKind }

// Of jobs that wait those of webhooks that answer are taken first.
const (
	priority        = 1
	priorityFailing = 4
)

// maxAttempts is of a job whose try cannot be noted, because Postgres is away: a
// try that fails is noted and followed by another job.
const maxAttempts = 10_000

func sendOpts(failing bool, at time.Time) *river.InsertOpts {
	o := &river.InsertOpts{Queue: Queue, Priority: priority, ScheduledAt: at, MaxAttempts: maxAttempts,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateScheduled,
			rivertype.JobStateRunning, rivertype.JobStateRetryable,
		}}}
	if failing {
		o.Priority = priorityFailing
	}
	return o
}

// Announce writes a message for every webhook that wants it, and the jobs that
// send it, in the transaction of what happened. When none wants it that costs one
// look.
func Announce(ctx context.Context, tx pgx.Tx, jobs *river.Client[pgx.Tx], a Announcement) error {
	var (
		now    time.Time
		wanted bool
	)
	err := tx.QueryRow(ctx, `SELECT now(), EXISTS (SELECT FROM webhooks WHERE `+wants+`)`, a.Type, a.Event).Scan(&now, &wanted)
	if err != nil || !wanted {
		return err
	}
	data, err := a.Data()
	if err != nil {
		return err
	}
	body, err := envelope{a.Type, now.UTC(), data}.text()
	if err != nil {
		return err
	}
	// One that is deleted meanwhile is not told, and fails nothing.
	rows, err := tx.Query(ctx, `
		WITH m AS (INSERT INTO webhook_messages (id, type, event_id, body) VALUES ($3, $1, $2, $4)),
			told AS (SELECT id, enabled, failing_since FROM webhooks WHERE `+wants+` ORDER BY id FOR KEY SHARE),
			d AS (INSERT INTO webhook_deliveries (message_id, webhook_id, state)
				SELECT $3, id, CASE WHEN enabled THEN 'pending' ELSE 'dead' END FROM told RETURNING id, webhook_id, state)
		SELECT d.id, told.failing_since IS NOT NULL FROM d JOIN told ON told.id = d.webhook_id WHERE d.state = 'pending'`,
		a.Type, a.Event, newID("msg_"), body)
	if err != nil {
		return err
	}
	return queue(ctx, tx, jobs, rows)
}

// wants is the condition of a webhook that is told of $1 of event $2.
const wants = `(types IS NULL OR $1 = ANY(types)) AND (events IS NULL OR $2 = ANY(events))`

// queue queues the first try of deliveries.
func queue(ctx context.Context, tx pgx.Tx, jobs *river.Client[pgx.Tx], rows pgx.Rows) error {
	var (
		all     []river.InsertManyParams
		id      int64
		failing bool
	)
	_, err := pgx.ForEachRow(rows, []any{&id, &failing}, func() error {
		all = append(all, river.InsertManyParams{Args: sendArgs{Delivery: id}, InsertOpts: sendOpts(failing, time.Time{})})
		return nil
	})
	if err != nil || len(all) == 0 {
		return err
	}
	_, err = jobs.InsertManyTx(ctx, tx, all)
	return err
}

func (e envelope) text() (string, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", e.Type, err)
	}
	return string(body), nil
}

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }
