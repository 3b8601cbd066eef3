package catalog

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// cache remembers answers for as long as their loader says and loads each key
// once, however many wait for it. When a load fails, the answer it would have
// replaced stands for another second, if there is one.
type cache[V any] struct {
	name string
	max  int // answers kept; past it the one that ends first goes
	load func(ctx context.Context, key string) (V, time.Duration, error)

	flight singleflight.Group

	mu      sync.Mutex
	answers map[string]answer[V]
	epoch   int // raised by forget: a load begun before is not kept
}

type answer[V any] struct {
	value V
	until time.Time
}

// get returns the answer for key, loading it when none is fresh. The load
// belongs to everybody who waits, so it does not end with ctx; only the wait
// does.
func (c *cache[V]) get(ctx context.Context, key string) (V, error) {
	a, ok, epoch := c.kept(key)
	if ok && time.Now().Before(a.until) {
		return a.value, nil
	}
	// Nobody joins a load begun before the last forget: it may miss what was changed.
	flight := strconv.Itoa(epoch) + " " + key
	select {
	case r := <-c.flight.DoChan(flight, func() (any, error) { return c.fill(context.WithoutCancel(ctx), key, epoch) }):
		v, _ := r.Val.(V)
		return v, r.Err
	case <-ctx.Done():
		var zero V
		return zero, ctx.Err()
	}
}

func (c *cache[V]) fill(ctx context.Context, key string, epoch int) (V, error) {
	v, fresh, err := c.load(ctx, key)
	if err != nil {
		old, ok, _ := c.kept(key)
		if !ok {
			return v, err
		}
		slog.WarnContext(ctx, "the last answer stands", "of", c.name, "key", key, "err", err)
		v, fresh = old.value, time.Second
	}
	c.keep(key, answer[V]{value: v, until: time.Now().Add(fresh)}, epoch)
	return v, nil
}

// kept returns the answer for key, fresh or not, and the epoch it is seen in.
func (c *cache[V]) kept(key string) (a answer[V], ok bool, epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok = c.answers[key]
	return a, ok, c.epoch
}

func (c *cache[V]) keep(key string, a answer[V], epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return
	}
	if c.answers == nil {
		c.answers = map[string]answer[V]{}
	}
	c.answers[key] = a
	for len(c.answers) > c.max {
		c.dropFirstLocked(key)
	}
}

// dropFirstLocked makes room for the answer just kept.
func (c *cache[V]) dropFirstLocked(kept string) {
	first := ""
	for key, a := range c.answers {
		if key != kept && (first == "" || a.until.Before(c.answers[first].until)) {
			first = key
		}
	}
	delete(c.answers, first)
}

// forget makes the next get load key anew, because this process changed it.
func (c *cache[V]) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	delete(c.answers, key)
}

// forgetAll makes every get load anew.
func (c *cache[V]) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	clear(c.answers)
}
