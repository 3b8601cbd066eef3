package devtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"seatcast/internal/devstack"
)

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

func closing(tb testing.TB, client *redis.Client) *redis.Client {
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Error(err)
		}
	})
	return client
}
