package holds

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"seatcast/seatmap"
)

//go:embed take.lua
var takeLua string

var takeScript = newScript("take", takeLua)

// Take holds every seat asked for, or none. The same request with the same
// token again is answered with the basket as it is.
//
// It returns a *TakenError, an *AreaFullError, ErrOverCap or ErrReused;
// seatmap.ErrSold or ErrHoldExpired when the token's basket is over, so that a new token
// is needed; seatmap.ErrNotYours when it is another account's. Each changed
// nothing. Places in areas are not held: they are only refused early.
func (s *Store) Take(ctx context.Context, r TakeRequest) (seatmap.Basket, error) {
	b, _, err := s.take(ctx, r)
	return b, err
}

// take is Take, and says whether the basket is new.
func (s *Store) take(ctx context.Context, r TakeRequest) (b seatmap.Basket, fresh bool, err error) {
	defer func() { s.metrics.came("take", err) }()
	if len(r.Seats) > MaxSeats || len(r.Seats)+len(r.Areas) == 0 {
		return b, false, fmt.Errorf("take: %d seats and %d areas", len(r.Seats), len(r.Areas))
	}
	if s.lately.any(r.Event, r.Seats) {
		gone, err := s.peek(ctx, r)
		if err != nil {
			return b, false, err
		}
		if len(gone) > 0 {
			return b, false, s.taken(r, gone)
		}
	}
	args, err := takeArgs(r)
	if err != nil {
		return b, false, err
	}
	answer, err := s.do(ctx, r.Event, s.warm, takeScript, takeKeys(r), args...)
	if err != nil {
		return b, false, err
	}
	switch answer.word {
	case "held":
		s.publish(ctx, r.Event, answer.text(0))
		s.lately.taken(r.Event, r.Seats)
		b, err = r.basket(answer.rest[1])
		return b, true, err
	case "same":
		b, err = r.repeated(answer.rest)
		return b, false, err
	case "taken":
		gone := make([]int, len(answer.rest))
		for k, which := range answer.rest {
			n, _ := which.(int64)
			gone[k] = r.Seats[n]
		}
		return b, false, s.taken(r, gone)
	default:
		return b, false, refused(answer)
	}
}

// taken refuses r for the seats that are gone.
func (s *Store) taken(r TakeRequest, gone []int) error {
	s.lately.taken(r.Event, gone)
	return &TakenError{Seats: gone}
}

// basket is what r has become when it was first held.
func (r TakeRequest) basket(first any) (b seatmap.Basket, err error) {
	b = seatmap.Basket{Event: r.Event, Token: r.Token, User: r.User, Seats: r.Seats, Areas: r.Areas,
		Quote: r.Quote, Hash: r.Hash, State: seatmap.BasketHeld}
	b.First, err = millis(first)
	b.Cap = b.First.Add(r.most())
	b.Until = b.First.Add(min(r.hold(), r.most()))
	return b, err
}

// hold and most are how long a basket lasts and how long at most, as Redis is
// told them: in whole milliseconds, grace included.
func (r TakeRequest) hold() time.Duration {
	return (r.Terms.Hold + r.Terms.Grace).Truncate(time.Millisecond)
}

func (r TakeRequest) most() time.Duration {
	return (r.Terms.Cap + r.Terms.Grace).Truncate(time.Millisecond)
}

// repeated is the basket r became when it was asked for the first time: its
// times, seats, areas and quote.
func (r TakeRequest) repeated(fields []any) (seatmap.Basket, error) {
	b, err := r.basket(fields[0])
	if err != nil {
		return b, err
	}
	if b.Until, err = millis(fields[1]); err != nil {
		return b, err
	}
	if b.Cap, err = millis(fields[2]); err != nil {
		return b, err
	}
	rest := texts(fields[3:])
	if b.Seats, err = parseSeats(rest[0]); err != nil {
		return b, err
	}
	if b.Areas, err = parseAreas(rest[1]); err != nil {
		return b, err
	}
	b.Quote = json.RawMessage(rest[2])
	return b, nil
}

// refused is the error a script's word stands for.
func refused(r reply) error {
	switch r.word {
	case "lost":
		seats, err := parseEach(texts(r.rest))
		if err != nil {
			return err
		}
		return &seatmap.LostError{Seats: seats}
	case "area":
		return &AreaFullError{Area: r.text(0)}
	case "cap":
		return ErrOverCap
	case "reused":
		return ErrReused
	case "over":
		return seatmap.ErrHoldExpired
	case "sold":
		return seatmap.ErrSold
	case "foreign":
		return seatmap.ErrNotYours
	case "none":
		return seatmap.ErrNoBasket
	default:
		return fmt.Errorf("holds: script says %q", r.word)
	}
}
