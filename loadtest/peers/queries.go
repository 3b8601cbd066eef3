package peers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// Queries is what the stores of a house have been asked so far.
type Queries struct {
	Redis    map[string]int64 // by command, scripts and what they call included
	Postgres int64            // transactions
}

// statsDelay is how long Postgres may keep what it counts to itself.
const statsDelay = 1500 * time.Millisecond

// Asked reads what the stores have been asked. It takes a while, so that what
// came before is counted.
func (h *House) Asked(ctx context.Context) (q Queries, err error) {
	if err := Wait(ctx, statsDelay); err != nil {
		return q, err
	}
	o, err := redis.ParseURL(h.redis.URL())
	if err != nil {
		return q, err
	}
	rdb := redis.NewClient(o)
	defer func() { _ = rdb.Close() }() // nothing is buffered in it
	info, err := rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return q, fmt.Errorf("redis: %w", err)
	}
	q.Redis = commands(info)
	conn, err := pgx.Connect(ctx, h.pg.URL("postgres"))
	if err != nil {
		return q, fmt.Errorf("postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'seatcast'`).Scan(&q.Postgres)
	return q, err
}

// commands reads what INFO says of them, but for those that only tell of Redis.
func commands(info string) map[string]int64 {
	all := make(map[string]int64)
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || name == "info" || name == "ping" || strings.HasPrefix(name, "client") || name == "hello" {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		all[name], _ = strconv.ParseInt(calls, 10, 64) // Redis wrote it
	}
	return all
}
