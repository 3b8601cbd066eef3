package devtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"seatcast/internal/devstack"
)

// hush drops what go-redis prints of its own accord, as the program does: the
// same errors come back from its calls.
func hush() { logging.Disable() }

// Redis is a client of the redis-server this binary shares: use keys of a fresh
// Event and flush nothing. It is closed when the test ends.
func Redis(tb testing.TB) *redis.Client {
	tb.Helper()
	server := once(tb, &shared.redis, func(ctx context.Context, h *devstack.Home) (*devstack.Redis, error) {
		return h.Redis(ctx, devstack.RedisOptions{})
	})
	return closing(tb, server.Client())
}

// RedisServer is a redis-server of this test alone, stopped when the test ends.
// It answers by TCP too, so that it can be a primary.
func RedisServer(tb testing.TB, o devstack.RedisOptions) *devstack.Redis {
	tb.Helper()
	o.Name, o.TCP = fmt.Sprintf("r%d", serial.Add(1)), true
	server, err := home(tb).Redis(tb.Context(), o)
	must(tb, err)
	tb.Cleanup(func() {
		if err := server.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return server
}

// RedisCluster is a Redis Cluster of this test alone, stopped when the test
// ends.
func RedisCluster(tb testing.TB) *devstack.RedisCluster {
	tb.Helper()
	cluster, err := home(tb).RedisCluster(tb.Context(), fmt.Sprintf("c%d", serial.Add(1)))
	must(tb, err)
	tb.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return cluster
}

// RedisSentinel is a Redis watched by sentinels, of this test alone, stopped
// when the test ends.
func RedisSentinel(tb testing.TB) *devstack.RedisSentinel {
	tb.Helper()
	watched, err := home(tb).RedisSentinel(tb.Context(), fmt.Sprintf("w%d", serial.Add(1)))
	must(tb, err)
	tb.Cleanup(func() {
		if err := watched.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return watched
}

func closing(tb testing.TB, client *redis.Client) *redis.Client {
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Error(err)
		}
	})
	return client
}
