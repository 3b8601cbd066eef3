package holds

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// aliveKey is never there: it is what Silent writes when it is.
func aliveKey(event string) string { return "alive:{" + event + "}" }

// Silent returns those of the events whose seats nobody can hold now, because
// Redis does not answer for them or takes no writes; all says that it does so for
// none. In a cluster each event is asked about where it lives. Nothing changes.
func (s *Store) Silent(ctx context.Context, events []string) (silent []string, all bool) {
	ctx, cancel := patient(ctx)
	defer cancel()
	if _, cluster := s.rdb.(*redis.ClusterClient); !cluster || len(events) == 0 {
		// A write that is refused where one of a hold would be: by a replica, or without memory.
		if err := s.rdb.SetXX(ctx, aliveKey(""), 1, 0).Err(); err != nil {
			return events, true
		}
		return nil, false
	}
	asked := make([]*redis.BoolCmd, len(events))
	_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for k, event := range events {
			asked[k] = p.SetXX(ctx, aliveKey(event), 1, 0)
		}
		return nil
	})
	for k, event := range events { // each says itself how it went
		if asked[k].Err() != nil {
			silent = append(silent, event)
		}
	}
	return silent, len(silent) == len(events)
}
