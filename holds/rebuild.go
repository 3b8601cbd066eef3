package holds

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"seatcast/seatmap"
)

//go:embed rebuild.lua
var rebuildLua string

var rebuildScript = newScript("rebuild", seatsLua, storedLua, accountLua, indexLua, rebuildLua)

// Rebuild makes the keys of an event anew from what Postgres says. It keeps
// every live hold, gives the seats of bookings underway back to them, and
// numbers a reset above position and every other number there is. When
// somebody has done so already, above position, it does nothing.
//
// Position is a number the caller has seen; 0 will do for a cold event.
func (s *Store) Rebuild(ctx context.Context, event string, position int64) (err error) {
	defer func() { s.metrics.came("rebuild", err) }()
	if done, err := s.rebuilt(ctx, event, position); done || err != nil {
		return err
	}
	return s.judge.Truth(ctx, event, func(ctx context.Context, t seatmap.Truth) error {
		// Whoever had the lock before may have done it.
		if done, err := s.rebuilt(ctx, event, position); done || err != nil {
			return err
		}
		keys, args, err := rebuildInput(event, position, t)
		if err != nil {
			return err
		}
		answer, err := s.run(ctx, rebuildScript, keys, args...)
		if err != nil {
			return err
		}
		if change := answer.text(0); change != "" {
			s.log.InfoContext(ctx, "event rebuilt", "event", event, "position", position, "change", change)
			s.publish(ctx, event, change)
		}
		return nil
	})
}

// Reset is Rebuild of an event as it stands: for when what Postgres says of it
// has changed as a whole. Whoever asks for what has changed since takes the
// whole map.
func (s *Store) Reset(ctx context.Context, event string) error {
	last, _, err := s.numbers(ctx, event)
	if err != nil {
		return err
	}
	return s.Rebuild(ctx, event, last)
}

// rebuilt says whether an event is warm and was reset above position.
func (s *Store) rebuilt(ctx context.Context, event string, position int64) (bool, error) {
	last, reset, err := s.numbers(ctx, event)
	return last > 0 && reset > position, err
}

// rebuildTimeout is how long many who found an event cold wait for the one of
// them who rebuilds it, whatever becomes of that one's own request.
const rebuildTimeout = 10 * time.Second

// warm rebuilds a cold event once for all who ask at the same time.
func (s *Store) warm(ctx context.Context, event string) error {
	done := s.rebuilds.DoChan(event, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rebuildTimeout)
		defer cancel()
		return nil, s.Rebuild(ctx, event, 0)
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return translate("rebuild", ctx.Err())
	}
}

// do runs a script; on a cold event it rebuilds and runs it once more.
func (s *Store) do(ctx context.Context, event string, rebuild func(context.Context, string) error, sc script, keys []string, args ...any) (reply, error) {
	return warmed(ctx, event, rebuild, func() (reply, error) { return s.run(ctx, sc, keys, args...) })
}

// warmed returns what f returns, of a warm event: when f finds it cold, it is
// rebuilt and f called once more.
func warmed[T any](ctx context.Context, event string, rebuild func(context.Context, string) error, f func() (T, error)) (T, error) {
	answer, err := f()
	if !errors.Is(err, errCold) {
		return answer, err
	}
	if err := rebuild(ctx, event); err != nil {
		return answer, err
	}
	answer, err = f()
	if errors.Is(err, errCold) {
		err = fmt.Errorf("%w: %w", seatmap.ErrUnavailable, err) // emptied again, or nobody could fill it
	}
	return answer, err
}

// publish tells a change, if there is one.
func (s *Store) publish(ctx context.Context, event, change string) {
	if change != "" {
		s.voice.Publish(ctx, event, []byte(change))
	}
}

// rebuildInput is what the script reads: see rebuild.lua.
func rebuildInput(event string, position int64, t seatmap.Truth) (keys []string, args []any, err error) {
	keys = make([]string, 0, 6+t.Seats+2*len(t.Baskets)+len(t.Bought))
	keys = append(keys, seatmap.SeqKey(event), seatmap.MapKey(event), seatmap.HeldKey(event), seatmap.LogKey(event),
		seatmap.AreasKey(event), seatmap.ResetKey(event))
	for i := range t.Seats {
		keys = append(keys, seatmap.HoldKey(event, i))
	}
	letters := bytes.Repeat([]byte{'0'}, t.Seats)
	for _, part := range []struct {
		seats  []int
		letter byte
	}{{t.Closed, '3'}, {t.Sold, '2'}} {
		for _, i := range part.seats {
			if i < 0 || i >= t.Seats {
				return nil, nil, fmt.Errorf("rebuild %s: seat %d of %d", event, i, t.Seats)
			}
			letters[i] = part.letter
		}
	}
	args = append(args, position, letters, len(t.Baskets), len(t.Bought))
	for _, b := range t.Baskets {
		b.Sealed = true // Postgres knows of it since its first payment
		text, err := writeBody(b)
		if err != nil {
			return nil, nil, err
		}
		keys = append(keys, seatmap.BasketKey(event, b.Token), seatmap.UserKey(event, b.User))
		args = append(args, b.Token, writeSeats(b.Seats), text, b.First.UnixMilli(), b.Until.UnixMilli(), b.Cap.UnixMilli())
	}
	for user, tickets := range t.Bought {
		keys, args = append(keys, seatmap.UserKey(event, user)), append(args, tickets)
	}
	return keys, areaArgs(args, t.Left), nil
}
