package holds

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"seatcast/seatmap"
)

//go:embed take.lua
var takeLua string

var takeScript = newScript("take", accountLua, takeLua)

// remembered is how long a basket outlives its hold, so that it can be told
// that the hold has expired.
const remembered = 10 * time.Minute

// Take holds every seat asked for, or none. The same request with the same
// token again is answered with the basket as it is.
//
// It returns a *TakenError, an *AreaFullError, ErrOverCap, ErrBought, ErrMany, a
// *PaceError, ErrRevoked or ErrReused;
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
	if _, _, ok := seatmap.ParseBookingID(seatmap.BookingID(r.Event, r.Token)); !ok { // a change shows a part of it as it is
		return b, false, fmt.Errorf("take: %q of %q is no token", r.Token, r.Event)
	}
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
	case "there":
		b, err = r.repeated(answer.rest[0], answer.text(1))
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
	b = r.asked()
	b.First, err = millis(first)
	b.Cap = b.First.Add(r.most())
	b.Until = b.First.Add(r.hold())
	return b, err
}

// asked is the basket r asks for.
func (r TakeRequest) asked() seatmap.Basket {
	return seatmap.Basket{Event: r.Event, Token: r.Token, User: r.User, Seats: r.Seats, Areas: r.Areas, Quote: r.Quote, Hash: r.Hash,
		State: seatmap.BasketHeld, Operator: r.Operator, Note: r.Note, Sealed: r.Operator != ""}
}

// hold and most are how long a basket lasts and how long at most, as Redis is
// told them: in whole milliseconds, grace included.
func (r TakeRequest) hold() time.Duration {
	return min((r.Terms.Hold + r.Terms.Grace).Truncate(time.Millisecond), r.most())
}

func (r TakeRequest) most() time.Duration {
	return (r.Terms.Cap + r.Terms.Grace).Truncate(time.Millisecond)
}

// repeated is what r is answered when its token has a basket already.
func (r TakeRequest) repeated(now any, stored string) (seatmap.Basket, error) {
	none := seatmap.Basket{}
	b, _, err := parseBasket(r.Event, r.Token, stored)
	if err != nil {
		return none, err
	}
	at, err := millis(now)
	if err != nil {
		return none, err
	}
	if b.State == seatmap.BasketHeld && !b.Until.After(at) {
		b.State = seatmap.BasketExpired
	}
	if err := r.mine(b); err != nil {
		return none, err
	}
	return b, nil
}

// mine is why a basket cannot be the answer to r, or nil.
func (r TakeRequest) mine(b seatmap.Basket) error {
	switch {
	case b.User != r.User:
		return seatmap.ErrNotYours
	case b.State == seatmap.BasketSold:
		return seatmap.ErrSold
	case b.State != seatmap.BasketHeld:
		return seatmap.ErrHoldExpired
	case b.Hash != r.Hash:
		return ErrReused
	}
	return nil
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
	case "taken":
		seats, err := parseEach(texts(r.rest))
		if err != nil {
			return err
		}
		return &TakenError{Seats: seats}
	case "area":
		return &AreaFullError{Area: r.text(0)}
	case "cap", "bought", "many", "pace":
		return overCap(r)
	case "revoked":
		return ErrRevoked
	case "over":
		return seatmap.ErrHoldExpired
	case "sold":
		return seatmap.ErrSold
	case "none":
		return seatmap.ErrNoBasket
	default:
		return fmt.Errorf("holds: script says %q", r.word)
	}
}
