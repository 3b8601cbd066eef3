package room

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seatcast/loadtest/proc"
)

// meter is what was used up to a moment.
type meter struct {
	at            time.Time
	server, redis time.Duration // CPU
	memory        int64         // of Redis
	calls         map[string]int64
}

func (b *bench) meter(ctx context.Context) (m meter, err error) {
	m.at = time.Now()
	for pid, into := range map[int]*time.Duration{b.node.Pid(): &m.server, b.stores.Redis: &m.redis} {
		u, err := proc.Of(pid)
		if err != nil {
			return m, err
		}
		*into = u.CPU
	}
	info, err := b.rdb.Info(ctx, "memory").Result()
	if err != nil {
		return m, fmt.Errorf("redis: %w", err)
	}
	_, rest, _ := strings.Cut(info, "used_memory:")
	first, _, _ := strings.Cut(rest, "\r\n")
	if m.memory, err = strconv.ParseInt(first, 10, 64); err != nil {
		return m, fmt.Errorf("redis: its memory: %w", err)
	}
	m.calls, err = b.house.Calls(ctx, b.rdb)
	return m, err
}

// spent is what was used between two moments.
type spent struct {
	wall, server, redis time.Duration
	memory              int64
	calls               map[string]int64
}

func (m meter) since(from meter) spent {
	s := spent{m.at.Sub(from.at), m.server - from.server, m.redis - from.redis, m.memory - from.memory, map[string]int64{}}
	for name, n := range m.calls {
		if n -= from.calls[name]; n > 0 {
			s.calls[name] = n
		}
	}
	return s
}

func (s spent) plus(o spent) spent {
	return spent{s.wall + o.wall, s.server + o.server, s.redis + o.redis, s.memory + o.memory, nil}
}

// during measures what something costs.
func (b *bench) during(ctx context.Context, do func() error) (s spent, err error) {
	before, err := b.meter(ctx)
	if err != nil {
		return s, err
	}
	if err := do(); err != nil {
		return s, err
	}
	after, err := b.meter(ctx)
	return after.since(before), err
}

// us is a time for each of n, in microseconds.
func us(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1000 / float64(n) }
