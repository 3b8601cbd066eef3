package front

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// inRedis holds a seat as a key that expires.
type inRedis struct {
	rdb  *redis.Client
	hold time.Duration
}

func openRedis(ctx context.Context, o Options) (keeper, error) {
	u, err := redis.ParseURL(o.Redis)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	k := inRedis{redis.NewClient(u), o.Hold}
	if err := k.rdb.Ping(ctx).Err(); err != nil {
		k.close()
		return nil, fmt.Errorf("redis: %w", err)
	}
	return k, nil
}

func (k inRedis) take(ctx context.Context, user, seat string) (until time.Time, ok bool, err error) {
	until = time.Now().Add(k.hold) // before Redis's own end, so what is told is true
	ok, err = k.rdb.SetNX(ctx, "front:seat:"+seat, user, k.hold).Result()
	return until, ok, err
}

func (k inRedis) close() { _ = k.rdb.Close() } // nothing is buffered in it
