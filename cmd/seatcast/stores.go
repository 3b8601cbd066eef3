package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/migrations"
	"seatcast/seatmap/live"
)

// stores are the servers a process talks to.
type stores struct {
	pool *pgxpool.Pool
	rdb  redis.UniversalClient
	say  *nats.Conn // publishes
	hear *nats.Conn // reads and does nothing else
}

func openStores(ctx context.Context, cfg Config, m *live.Metrics, log *slog.Logger) (_ *stores, err error) {
	st := &stores{}
	defer func() {
		if err != nil {
			st.close()
		}
	}()
	if st.pool, err = openPool(ctx, cfg.Postgres); err != nil {
		return nil, err
	}
	if err = usable(ctx, st.pool, log); err != nil {
		return nil, err
	}
	if st.rdb, err = holds.Client(cfg.Redis); err != nil {
		return nil, err
	}
	if err = st.rdb.Ping(ctx).Err(); err != nil && !unheld(ctx, st.pool) {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if err != nil {
		log.WarnContext(ctx, "started without Redis, which answers no node", "err", err)
	}
	if st.say, err = live.Connect(cfg.NATS, "seatcast voice", m, log); err != nil {
		return nil, err
	}
	if st.hear, err = live.Connect(cfg.NATS, "seatcast feed", m, log); err != nil {
		return nil, err
	}
	return st, nil
}

// unheld says that some event is without holds: then Redis is away for everybody,
// and what its URL leads to was right.
func unheld(ctx context.Context, pool *pgxpool.Pool) (away bool) {
	err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM events WHERE unheld_since IS NOT NULL)`).Scan(&away)
	return err == nil && away
}

// usable refuses a database with an older schema than this program was built for.
// One that is newer is a deployment under way.
func usable(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	err := migrations.Check(ctx, pool)
	var told *migrations.SchemaError
	if errors.As(err, &told) && told.Newer() {
		log.WarnContext(ctx, "the schema is newer", "err", err)
		return nil
	}
	return err
}

func openPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	o, err := poolConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: the URL %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return pool, nil
}

// poolConfig reads the URL of a database. What is wrong with one is told without
// repeating it.
func poolConfig(url string) (*pgxpool.Config, error) {
	if err := checkURL(url, postgresSchemes...); err != nil {
		return nil, err
	}
	o, err := pgxpool.ParseConfig(url)
	var parse *pgconn.ParseConfigError // begins with the URL
	if errors.As(err, &parse) && errors.Unwrap(parse) != nil {
		err = errors.Unwrap(parse)
	}
	if err != nil {
		return nil, fmt.Errorf("has a parameter that cannot be used: %w", err)
	}
	o.MaxConns = max(o.MaxConns, 16) // the arbiter, the jobs and the mirror each hold one for a moment
	return o, nil
}

func (st *stores) close() {
	for _, nc := range []*nats.Conn{st.hear, st.say} {
		if nc != nil {
			nc.Close()
		}
	}
	if st.rdb != nil {
		_ = st.rdb.Close() // nothing is buffered in it
	}
	if st.pool != nil {
		st.pool.Close()
	}
}
