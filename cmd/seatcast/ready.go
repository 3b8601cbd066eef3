package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/checkout"
	"seatcast/migrations"
	"seatcast/web"
)

// pingTimeout leaves time to ask what other nodes say.
const pingTimeout = time.Second

// settingsTimeout bounds the look at settings at start.
const settingsTimeout = 3 * time.Second

// readiness answers whether this process should be given requests: not the
// same as being alive. A store that answers no node makes none of them unready:
// what still works would be turned away with the rest.
type readiness struct {
	st       *stores
	sessions *web.Sessions
	outage   *checkout.Outage // nil: a Redis that is silent is missed here alone
	peers    *peers
	leaving  atomic.Bool
	natsMet  atomic.Bool // NATS has been there once
}

func newReadiness(st *stores, sessions *web.Sessions) *readiness {
	return &readiness{st: st, sessions: sessions}
}

// leave makes the process unready for good: it is stopping.
func (r *readiness) leave() { r.leaving.Store(true) }

func (r *readiness) checks() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"serving":           r.serving,
		"sessions":          r.sessions.Ready,
		"nats":              r.nats,
		"redis":             r.redis,
		"holds":             r.holds,
		"redis_eviction":    r.redisEviction,
		"redis_memory":      r.redisMemory,
		"redis_persistence": r.redisPersistence,
		"postgres":          r.postgres,
		"schema":            r.schema,
		"postgres_settings": r.postgresSettings,
	}
}

// warn logs at start what /readyz would say of the settings this process
// depends on.
func (r *readiness) warn(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	checks := r.checks()
	if err := r.nats(ctx); err != nil {
		log.WarnContext(ctx, "started without NATS", "err", err)
	}
	for _, name := range []string{"redis_eviction", "redis_memory", "redis_persistence", "postgres_settings"} {
		if err := checks[name](ctx); err != nil {
			log.WarnContext(ctx, "unsafe setting", "check", name, "err", err)
		}
	}
}

func (r *readiness) serving(context.Context) error {
	if r.leaving.Load() {
		return errors.New("stopping")
	}
	return nil
}

// nats: maps are repaired by polling without it. Who has never met it may have been
// told a wrong address.
func (r *readiness) nats(context.Context) error {
	switch {
	case r.st.say.IsConnected() && r.st.hear.IsConnected():
		r.natsMet.Store(true)
		return nil
	case !r.natsMet.Load():
		return errors.New("has not answered since the start")
	}
	return web.Warning("away: maps are repaired by polling")
}

// postgres: without it holds go on and payments do not begin, on this node or, when
// it answers nobody, on all.
func (r *readiness) postgres(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := r.st.pool.Ping(ctx)
	switch {
	case err == nil:
		return nil
	case r.peers.alone():
		return fmt.Errorf("answers other nodes, and not this one: %w", err)
	}
	return web.Warning("does not answer; holds go on, payments do not begin: " + err.Error())
}

// schema: with an older one this process would not have started. A newer one is a
// deployment under way.
func (r *readiness) schema(ctx context.Context) error {
	err := migrations.Check(ctx, r.st.pool)
	var told *migrations.SchemaError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &told) && !told.Newer():
		return err
	case told != nil:
		return web.Warning(err.Error())
	}
	return web.Warning("cannot be read: " + err.Error())
}

// redis: without it this node must not take bookings, since others may hold the
// seats. When it is away for everybody they are taken without holds.
func (r *readiness) redis(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := r.st.rdb.Ping(asked).Err()
	if err == nil || r.outage == nil {
		return err
	}
	if alone, unknown := r.outage.Alone(ctx); alone || unknown != nil {
		return err
	}
	return web.Warning("answers no node: " + err.Error())
}

// holds warns of events that take bookings without holds.
func (r *readiness) holds(ctx context.Context) error {
	if r.outage == nil {
		return nil
	}
	n, err := r.outage.Unheld(ctx)
	switch {
	case err != nil:
		return web.Warning("cannot be read: " + err.Error())
	case n > 0:
		return web.Warning(fmt.Sprintf("%d events take bookings without holds", n))
	}
	return nil
}

// redisEviction: holds are keys that expire, so a Redis that may evict them
// gives held seats away.
func (r *readiness) redisEviction(ctx context.Context) error {
	return r.eachRedis(ctx, func(ctx context.Context, rdb redis.Cmdable) error {
		policy, err := rdb.ConfigGet(ctx, "maxmemory-policy").Result()
		if err != nil {
			return web.Warning("cannot be read: " + err.Error())
		}
		if p := policy["maxmemory-policy"]; p != "noeviction" {
			return fmt.Errorf("maxmemory-policy is %q: set noeviction, or Redis may drop seats that are held", p)
		}
		return nil
	})
}

// eachRedis asks every primary of a cluster, or the one Redis there is, and
// returns what the first says of whom something is wrong.
func (r *readiness) eachRedis(ctx context.Context, ask func(context.Context, redis.Cmdable) error) error {
	cluster, many := r.st.rdb.(*redis.ClusterClient)
	if !many {
		return ask(ctx, r.st.rdb)
	}
	return cluster.ForEachMaster(ctx, func(ctx context.Context, one *redis.Client) error {
		if err := ask(ctx, one); err != nil {
			return fmt.Errorf("%s: %w", one.Options().Addr, err)
		}
		return nil
	})
}

// redisMemory: a Redis at its limit that evicts nothing refuses every hold.
func (r *readiness) redisMemory(ctx context.Context) error { return r.eachRedis(ctx, memoryLeft) }

func memoryLeft(ctx context.Context, rdb redis.Cmdable) error {
	memory := rdb.InfoMap(ctx, "memory")
	if err := memory.Err(); err != nil {
		return web.Warning("cannot be read: " + err.Error())
	}
	limit, _ := strconv.ParseInt(memory.Item("Memory", "maxmemory"), 10, 64) // 0: no limit, or not told
	used, _ := strconv.ParseInt(memory.Item("Memory", "used_memory"), 10, 64)
	switch {
	case limit == 0 || used < limit/10*8:
		return nil
	case used < limit:
		return web.Warning(fmt.Sprintf("%d of %d bytes are used: at the limit every hold is refused", used, limit))
	}
	return web.Warning(fmt.Sprintf("%d of %d bytes are used: Redis refuses every hold", used, limit))
}

func (r *readiness) redisPersistence(ctx context.Context) error { return r.eachRedis(ctx, persists) }

func persists(ctx context.Context, rdb redis.Cmdable) error {
	info, err := rdb.Info(ctx, "persistence", "replication").Result()
	if err != nil {
		return web.Warning("cannot be read: " + err.Error())
	}
	saves, err := rdb.ConfigGet(ctx, "save").Result()
	if err != nil {
		return web.Warning("cannot be read: " + err.Error())
	}
	if strings.Contains(info, "aof_enabled:1") || saves["save"] != "" || !strings.Contains(info, "connected_slaves:0") {
		return nil
	}
	return web.Warning("neither persistence nor a replica: a restart of Redis drops every hold that is not being paid")
}

// postgresSettings warns of a database that a sale should not be trusted to.
func (r *readiness) postgresSettings(ctx context.Context) error {
	all, err := postgresSettings(ctx, r.st.pool)
	if err != nil {
		return web.Warning("cannot be read: " + err.Error())
	}
	var unsafe []string
	for _, f := range all {
		if f.Severity != isNote {
			unsafe = append(unsafe, f.What+": "+f.Why)
		}
	}
	if len(unsafe) > 0 {
		return web.Warning(strings.Join(unsafe, "; "))
	}
	return nil
}
