package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// tellEvery is how often Run looks for charts that Redis has not been told of.
const tellEvery = time.Second

// Run tells Redis of every published chart that its publisher has not told it
// of, until ctx ends. Any number of processes may run it; none leads.
func (p *Publisher) Run(ctx context.Context) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := p.tellAll(ctx); err != nil && ctx.Err() == nil {
			p.log.ErrorContext(ctx, "Redis was not told of a chart; it is tried again", "err", err)
		}
	}
}

func (p *Publisher) tellAll(ctx context.Context) error {
	events, err := p.store.untold(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, event := range events {
		all = errors.Join(all, p.tell(ctx, event))
	}
	return all
}

// untold returns the events whose chart Redis has not been told of.
func (s *Store) untold(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.db.Query(ctx, `SELECT id FROM events WHERE chart_version <> chart_told`)
	if err != nil {
		return nil, fmt.Errorf("look for charts to tell of: %w", translate(err))
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for charts to tell of: %w", translate(err))
	}
	return events, nil
}

// tell has Redis know the chart in force, unless it does or somebody is about
// it, which a lock of its own says: the event's is what the reset takes. Nobody
// waits for it, with a connection that the reset of another may want.
func (p *Publisher) tell(ctx context.Context, event string) error {
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	err := pgx.BeginFunc(ctx, p.store.db, func(tx pgx.Tx) error {
		var mine bool
		err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('seatcast chart:' || $1, 0))`, event).Scan(&mine)
		if err != nil || !mine {
			return err
		}
		var version int
		err = tx.QueryRow(ctx, `SELECT chart_version FROM events WHERE id = $1 AND chart_version <> chart_told`, event).Scan(&version)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.holds.Reset(ctx, event); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE events SET chart_told = $2 WHERE id = $1`, event, version)
		return err
	})
	if err != nil {
		return fmt.Errorf("tell of the chart of %s: %w", event, translate(err))
	}
	return nil
}

func (s *Store) chartVersions(ctx context.Context, event string) ([]ChartVersion, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.db.Query(ctx, `SELECT version, chart_sha, at, operator FROM event_charts WHERE event_id = $1 ORDER BY version DESC`, event)
	if err != nil {
		return nil, translate(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v ChartVersion, err error) {
		return v, row.Scan(&v.Version, &v.Chart, &v.From, &v.By)
	})
	return all, translate(err)
}
