package peers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"seatcast/loadtest/proc"
)

// sessionKey signs the sessions of a house.
const sessionKey = "a key that guards nothing but a load test"

// SessionKey signs sessions the house's nodes accept, with HS256.
func (h *House) SessionKey() []byte { return []byte(sessionKey) }

// RedisURL is the address of its Redis.
func (h *House) RedisURL() string {
	if h.o.RedisTCP {
		return "redis://" + h.redis.Addr()
	}
	return h.redis.URL()
}

// PostgresURL is the address of a database, which is made when it is missing.
func (h *House) PostgresURL(ctx context.Context, database string) (string, error) {
	return h.pg.Database(ctx, database)
}

// Stores are the processes of a house's stores.
type Stores struct{ Redis, Postgres, NATS int }

// Pids finds the processes of the stores; NATS is 0 when it is inside this one.
func (h *House) Pids(ctx context.Context) (s Stores, err error) {
	if h.natsd != nil {
		s.NATS = h.natsd.child.Pid()
	}
	rdb := h.redis.Client()
	defer func() { _ = rdb.Close() }() // nothing is buffered in it
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return s, fmt.Errorf("redis: %w", err)
	}
	_, rest, _ := strings.Cut(info, "process_id:")
	first, _, _ := strings.Cut(rest, "\r\n")
	if s.Redis, err = strconv.Atoi(first); err != nil {
		return s, fmt.Errorf("redis: its process: %w", err)
	}
	var file string
	err = h.query(ctx, `SELECT pg_read_file('postmaster.pid')`, &file)
	if err != nil {
		return s, err
	}
	first, _, _ = strings.Cut(file, "\n")
	if s.Postgres, err = strconv.Atoi(first); err != nil {
		return s, fmt.Errorf("postgres: its process: %w", err)
	}
	return s, nil
}

// query asks the house's own database for one value.
func (h *House) query(ctx context.Context, sql string, into any) error {
	conn, err := pgx.Connect(ctx, h.pg.URL("seatcast"))
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return conn.QueryRow(ctx, sql).Scan(into)
}

// noGrace has holds end when shoppers are told they do, to the millisecond: no
// command of an operator's does that.
func (h *House) noGrace(ctx context.Context) error {
	var n int64
	err := h.query(ctx, `WITH e AS (UPDATE events SET grace_ms = 1 RETURNING 1) SELECT count(*) FROM e`, &n)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d events", n)
	}
	if err != nil {
		return fmt.Errorf("holds without grace: %w", err)
	}
	return nil
}

// Calls is how many commands Redis has been asked for so far, by command, what
// scripts call included.
func (h *House) Calls(ctx context.Context, rdb *redis.Client) (map[string]int64, error) {
	info, err := rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return commands(info), nil
}

// API is a node of a house with the role api.
type API struct {
	house *House
	node  *node
}

// StartAPI starts one, and returns when it is ready.
func (h *House) StartAPI(ctx context.Context, dir string, on proc.Cores) (*API, error) {
	n, err := h.serve(ctx, "api", "api", dir, on)
	if err != nil {
		return nil, err
	}
	return &API{house: h, node: n}, nil
}

// everything is what one node alone needs to do.
const everything = "api,hub,worker"

// StartWhole starts a node that has every role, on those cores or, with nil, on
// ours; name tells several apart. It returns when it is ready.
func (h *House) StartWhole(ctx context.Context, name, dir string, on proc.Cores, more ...string) (*API, error) {
	n, err := h.serve(ctx, name, everything, dir, on, more...)
	if err != nil {
		return nil, err
	}
	return &API{house: h, node: n}, nil
}

// Check is what seatcast check says of the house, as JSON.
func (h *House) Check(ctx context.Context) ([]byte, error) {
	out, err := h.command(ctx, "check", "--json", "--event", Event, "--postgres", h.pg.URL("seatcast"), "--redis", h.RedisURL())
	if out != "" { // it has looked, whatever it found
		return []byte(out), nil
	}
	return nil, err
}

// UnderWay is how much of the event's business is not done yet: bookings and
// payments that are open, and what Redis has not been told.
func (h *House) UnderWay(ctx context.Context) (n int, err error) {
	err = h.query(ctx, `SELECT (SELECT count(*) FROM bookings WHERE state IN ('held', 'paying') OR mirror_due)
		+ (SELECT count(*) FROM attempts WHERE state IN ('created', 'authorized', 'capturing', 'refunding'))
		+ (SELECT count(*) FROM refunds WHERE state = 'pending') + (SELECT count(*) FROM seats WHERE mirror_due)
		+ (SELECT count(*) FROM sandbox_payments WHERE state IN ('processing', 'authorized'))`, &n)
	return n, err
}

// Kill ends it at once, as a crash does.
func (a *API) Kill() { a.node.child.Kill() }

// Died tells how it ended, when it has ended.
func (a *API) Died() error {
	select {
	case <-a.node.child.Done():
		return a.node.child.Death()
	default:
		return nil
	}
}

// Addr is where it answers.
func (a *API) Addr() string { return a.node.addr }

// Pid is its process.
func (a *API) Pid() int { return a.node.child.Pid() }

// Stop ends it. When it returns no process of it is left.
func (a *API) Stop() error {
	a.house.http.CloseIdleConnections()
	return a.node.child.Stop(patience + 10*time.Second)
}
