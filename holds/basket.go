package holds

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
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
	basketScript  = newScript("basket", seatsLua, basketLua)
	extendScript  = newScript("extend", seatsLua, extendLua)
	releaseScript = newScript("release", seatsLua, releaseLua)
)

// Basket returns what a token has taken, as it is now: State is expired when
// Until is behind, and Lost names the seats of a held basket that it no longer
// holds. It returns seatmap.ErrNoBasket.
func (s *Store) Basket(ctx context.Context, event, token string) (b seatmap.Basket, err error) {
	defer func() { s.metrics.came("basket", err) }()
	answer, err := s.settled(ctx, event, token, func(list string, seats []int) (reply, error) {
		keys := holdKeys([]string{seatmap.SeqKey(event), seatmap.BasketKey(event, token)}, event, seats)
		return s.do(ctx, event, s.warm, basketScript, keys, seatArgs([]any{token, list}, seats)...)
	})
	if err != nil {
		return b, err
	}
	if b, err = parseBasket(event, token, answer.rest[1]); err != nil {
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
	answer, err := s.settled(ctx, event, token, func(list string, seats []int) (reply, error) {
		args := seatArgs([]any{token, user, (by + grace).Milliseconds(), list}, seats)
		return s.do(ctx, event, s.warm, extendScript, basketKeys(event, token, user, seats), args...)
	})
	if err != nil {
		return b, err
	}
	s.publish(ctx, event, answer.text(0))
	return parseBasket(event, token, answer.rest[1])
}

// Release gives back what a basket still holds; giving it back again changes
// nothing and is no error.
//
// It returns seatmap.ErrNoBasket, seatmap.ErrNotYours, or seatmap.ErrSold. Each changed nothing.
func (s *Store) Release(ctx context.Context, event, token, user string) (err error) {
	defer func() { s.metrics.came("release", err) }()
	answer, err := s.settled(ctx, event, token, func(list string, seats []int) (reply, error) {
		args := seatArgs([]any{token, user, list}, seats)
		return s.do(ctx, event, s.warm, releaseScript, basketKeys(event, token, user, seats), args...)
	})
	if err != nil {
		return err
	}
	s.publish(ctx, event, answer.text(0))
	return nil
}

// settled calls f with the seats of a basket, which only the basket itself can
// tell, until they are still its seats when the script looks.
func (s *Store) settled(ctx context.Context, event, token string, f func(list string, seats []int) (reply, error)) (reply, error) {
	for range 3 {
		list, err := s.seats(ctx, event, token)
		if err != nil {
			return reply{}, err
		}
		seats, err := parseSeats(list)
		if err != nil {
			return reply{}, err
		}
		answer, err := f(list, seats)
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
	return reply{}, errors.New("holds: basket changes all the time")
}

// parseBasket reads a basket as HGETALL returns it.
func parseBasket(event, token string, hash any) (b seatmap.Basket, err error) {
	pairs, _ := hash.([]any)
	fields := make(map[string]string, len(pairs)/2)
	for kv := texts(pairs); len(kv) > 1; kv = kv[2:] {
		fields[kv[0]] = kv[1]
	}
	b = seatmap.Basket{Event: event, Token: token, User: fields["user"], Quote: json.RawMessage(fields["quote"]),
		Hash: fields["hash"], State: seatmap.BasketState(fields["state"])}
	if b.Seats, err = parseSeats(fields["seats"]); err != nil {
		return b, err
	}
	if b.Areas, err = parseAreas(fields["areas"]); err != nil {
		return b, err
	}
	for name, to := range map[string]*time.Time{"first": &b.First, "until": &b.Until, "cap": &b.Cap} {
		if *to, err = millis(fields[name]); err != nil {
			return b, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b, nil
}
