package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"seatcast/web"
)

// Log keeps the record in Postgres.
type Log struct {
	pool   *pgxpool.Pool
	failed *prometheus.CounterVec
}

var _ web.Trail = (*Log)(nil)

// New returns the record of a migrated database. It does no I/O.
func New(pool *pgxpool.Pool) *Log {
	l := &Log{pool: pool, failed: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "admin_audit_failures_total",
		Help: "Entries of the record of operators' calls that could not be written: a call that was refused therefore, or an outcome that is missing.",
	}, []string{"entry"})}
	for _, entry := range []string{"call", "outcome"} {
		l.failed.WithLabelValues(entry) // at 0: rate sees no event that makes its own series
	}
	return l
}

// Describe makes a Log a prometheus.Collector.
func (l *Log) Describe(ch chan<- *prometheus.Desc) { l.failed.Describe(ch) }

// Collect makes a Log a prometheus.Collector.
func (l *Log) Collect(ch chan<- prometheus.Metric) { l.failed.Collect(ch) }

// Begin writes down a call.
func (l *Log) Begin(ctx context.Context, c web.Call) (id int64, err error) {
	body := c.Body[:min(len(c.Body), keptBody)]
	if body == nil {
		body = []byte{}
	}
	err = l.pool.QueryRow(ctx, `
		INSERT INTO admin_calls (request_id, operator, address, method, path, event_id, body, body_bytes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id`,
		c.ID, c.Operator, c.From, c.Method, plain(c.Path), plain(c.Event), body, len(c.Body)).Scan(&id)
	if err != nil {
		l.failed.WithLabelValues("call").Inc()
		return 0, fmt.Errorf("write down a call of %s: %w", c.Operator, err)
	}
	return id, nil
}

// plain is s as Postgres takes it.
func plain(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// End writes down how a call was answered.
func (l *Log) End(ctx context.Context, call int64, o web.Outcome) error {
	_, err := l.pool.Exec(ctx, `INSERT INTO admin_outcomes (call_id, status, code, replayed) VALUES ($1, $2, $3, $4)`, call, o.Status, o.Code, o.Replayed)
	if err != nil {
		l.failed.WithLabelValues("outcome").Inc()
		return fmt.Errorf("write down the outcome of call %d: %w", call, err)
	}
	return nil
}

// Read returns the calls q means.
func (l *Log) Read(ctx context.Context, q Query) (Page, error) {
	rows, err := l.pool.Query(ctx, `
		SELECT c.id, c.at, c.request_id, c.operator, c.address, c.method, c.path, c.event_id, c.body, c.body_bytes, o.at, o.status, o.code, o.replayed
		FROM admin_calls c LEFT JOIN admin_outcomes o ON o.call_id = c.id
		WHERE ($1 = '' OR c.event_id = $1) AND ($2 = 0 OR c.id < $2) AND ($3 OR c.method NOT IN ('GET', 'HEAD'))
		ORDER BY c.id DESC LIMIT $4 + 1`, q.Event, q.Before, q.Reads, q.Limit)
	if err != nil {
		return Page{}, fmt.Errorf("read the record: %w", err)
	}
	calls, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return Page{}, fmt.Errorf("read the record: %w", err)
	}
	page := Page{Calls: calls}
	if len(calls) > q.Limit {
		page.Calls = calls[:q.Limit]
		page.Next = page.Calls[q.Limit-1].ID
	}
	return page, nil
}

func scan(row pgx.CollectableRow) (e Entry, err error) {
	var (
		body     []byte
		at       *time.Time
		status   *int
		code     *string
		replayed *bool
	)
	err = row.Scan(&e.ID, &e.At, &e.RequestID, &e.Operator, &e.Address, &e.Method, &e.Path, &e.Event, &body, &e.BodyBytes, &at, &status, &code, &replayed)
	e.At, e.Body = e.At.UTC(), plain(string(body))
	if at != nil {
		e.Outcome = &Outcome{At: at.UTC(), Status: *status, Code: *code, Replayed: *replayed}
	}
	return e, err
}
