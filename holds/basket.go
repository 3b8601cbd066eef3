package holds

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"seatcast/seatmap"
)

//go:embed basket.lua
var basketLua string

//go:embed extend.lua
var extendLua string

//go:embed release.lua
var releaseLua string

var (
	basketScript  = newScript("basket", seatsLua, storedLua, basketLua)
	extendScript  = newScript("extend", seatsLua, storedLua, accountLua, indexLua, extendLua)
	releaseScript = newScript("release", seatsLua, storedLua, accountLua, indexLua, releaseLua)
)

// Basket returns what a token has taken, as it is now: State is expired when
// Until is behind, and Lost names the seats of a held basket that it no longer
// holds. It returns seatmap.ErrNoBasket.
func (s *Store) Basket(ctx context.Context, event, token string) (b seatmap.Basket, err error) {
	defer func() { s.metrics.came("basket", err) }()
	answer, err := s.settled(ctx, event, token, func(b seatmap.Basket, body string) (reply, error) {
		keys := holdKeys([]string{seatmap.SeqKey(event), seatmap.BasketKey(event, token)}, event, b.Seats)
		return s.do(ctx, event, s.warm, basketScript, keys, seatArgs([]any{token, body}, b.Seats)...)
	})
	if err != nil {
		return b, err
	}
	if b, _, err = parseBasket(event, token, answer.text(1)); err != nil {
		return b, err
	}
	now, err := millis(answer.rest[0])
	if err != nil {
		return b, err
	}
	lost, _ := answer.rest[2].([]any)
	switch {
	case b.State != seatmap.BasketHeld:
	case !b.Until.After(now):
		b.State = seatmap.BasketExpired
	case len(lost) > 0:
		b.Lost, err = parseEach(texts(lost))
	}
	return b, err
}

// Extend makes a basket last until by and grace from now, never shorter than it
// would have and never past its cap.
//
// It returns seatmap.ErrNoBasket, seatmap.ErrNotYours, seatmap.ErrSold,
// seatmap.ErrHoldExpired or, when somebody else has seats of it, a *seatmap.LostError. Each changed
// nothing.
func (s *Store) Extend(ctx context.Context, event, token, user string, by, grace time.Duration) (b seatmap.Basket, err error) {
	defer func() { s.metrics.came("extend", err) }()
	answer, err := s.settled(ctx, event, token, func(b seatmap.Basket, body string) (reply, error) {
		if b.User != user {
			return reply{}, seatmap.ErrNotYours
		}
		args := seatArgs([]any{token, body, (by + grace).Milliseconds()}, b.Seats)
		return s.do(ctx, event, s.warm, extendScript, basketKeys(event, token, user, b.Seats), args...)
	})
	if err != nil {
		return b, err
	}
	s.publish(ctx, event, answer.text(0))
	b, _, err = parseBasket(event, token, answer.text(1))
	return b, err
}

// Release gives back what a basket still holds; giving it back again changes
// nothing and is no error.
//
// It returns seatmap.ErrNoBasket, seatmap.ErrNotYours, or seatmap.ErrSold. Each changed nothing.
func (s *Store) Release(ctx context.Context, event, token, user string) (err error) {
	defer func() { s.metrics.came("release", err) }()
	answer, err := s.settled(ctx, event, token, func(b seatmap.Basket, body string) (reply, error) {
		if b.User != user {
			return reply{}, seatmap.ErrNotYours
		}
		args := seatArgs([]any{token, body}, b.Seats)
		return s.do(ctx, event, s.warm, releaseScript, basketKeys(event, token, user, b.Seats), args...)
	})
	if err != nil {
		return err
	}
	s.publish(ctx, event, answer.text(0))
	return nil
}

// settled calls f with a basket, which only the basket itself can tell, and its
// body, until that is still its body when the script looks: what f has judged
// by it then holds. Only its own account changes a basket; one that does so all
// the time is told after patience that nothing was done.
func (s *Store) settled(ctx context.Context, event, token string, f func(b seatmap.Basket, body string) (reply, error)) (reply, error) {
	for began := time.Now(); time.Since(began) < patience; {
		stored, err := warmed(ctx, event, s.warm, func() (string, error) { return s.stored(ctx, event, token) })
		if err != nil {
			return reply{}, err
		}
		b, body, err := parseBasket(event, token, stored)
		if err != nil {
			return reply{}, err
		}
		answer, err := f(b, body)
		switch {
		case err != nil:
			return reply{}, err
		case answer.word == "moved":
			continue
		case answer.word == "held", answer.word == "done", answer.word == "basket":
			return answer, nil
		default:
			return reply{}, refused(answer)
		}
	}
	return reply{}, fmt.Errorf("basket changes all the time: %w", seatmap.ErrUnavailable)
}
