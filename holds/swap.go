package holds

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"seatcast/seatmap"
)

//go:embed swap.lua
var swapLua string

//go:embed seal.lua
var sealLua string

var (
	swapScript = newScript("swap", seatsLua, storedLua, accountLua, indexLua, swapLua)
	sealScript = newScript("seal", storedLua, sealLua)
)

// SwapRequest asks for other seats in a basket. Its places in areas stay.
type SwapRequest struct {
	Event string
	Token string
	User  string
	Seats []int // all it is to have, ascending, each once, one at least
	Terms seatmap.Terms

	// Quote judges whether the basket may have the seats, and prices them. It
	// is called with the basket as it is, and again when that has changed
	// meanwhile; its error is Swap's.
	Quote func(b seatmap.Basket) (json.RawMessage, error)
}

// Swap gives a basket other seats, all of them or none; its end and its cap
// stay. Seats it has already change nothing. What was lost can be swapped away.
// The first seats of a basket of places are a hold more of its account's.
//
// It returns a *TakenError that names the seats somebody has, ErrOverCap,
// ErrBought, ErrMany, a *PaceError or ErrSealed, and what Extend returns. Each changed nothing.
func (s *Store) Swap(ctx context.Context, r SwapRequest) (b seatmap.Basket, err error) {
	defer func() { s.metrics.came("swap", err) }()
	if len(r.Seats) == 0 || len(r.Seats) > MaxSeats {
		return b, fmt.Errorf("swap: %d seats", len(r.Seats))
	}
	var added []int
	answer, err := s.settled(ctx, r.Event, r.Token, func(b seatmap.Basket, body string) (reply, error) {
		switch {
		case b.User != r.User:
			return reply{}, seatmap.ErrNotYours
		case b.Sealed && b.State == seatmap.BasketHeld:
			return reply{}, ErrSealed
		}
		m := moveOf(b.Seats, r.Seats)
		added = m.added
		after, err := r.body(b, body)
		if err != nil {
			return reply{}, err
		}
		keys := basketKeys(r.Event, r.Token, r.User, m.all())
		return s.do(ctx, r.Event, s.warm, swapScript, keys, r.args(b, m, body, after)...)
	})
	if err != nil {
		return b, err
	}
	s.publish(ctx, r.Event, answer.text(0))
	s.lately.taken(r.Event, added)
	b, _, err = parseBasket(r.Event, r.Token, answer.text(1))
	return b, err
}

// body is what a basket says of itself once it has the seats asked for. With
// the seats it has, it goes on saying the same, price and all.
func (r SwapRequest) body(b seatmap.Basket, body string) (string, error) {
	if slices.Equal(b.Seats, r.Seats) {
		return body, nil
	}
	quote, err := r.Quote(b)
	if err != nil {
		return "", err
	}
	b.Seats, b.Quote = r.Seats, quote
	return writeBody(b)
}

func (r SwapRequest) args(b seatmap.Basket, m move, body, after string) []any {
	args := []any{r.Token, body, after, r.Terms.SeatsPerUser - places(b.Areas), len(m.kept), len(m.dropped), len(m.added), writeSeats(b.Seats), writeSeats(r.Seats),
		orAny(r.Terms.HoldsPerUser), orAny(r.Terms.HoldsPerHour), r.Terms.CoolDown.Milliseconds()}
	return seatArgs(args, m.all())
}

// move is what becomes of seats, each list ascending.
type move struct{ kept, dropped, added []int }

func moveOf(from, to []int) (m move) {
	for _, i := range from {
		if _, stays := slices.BinarySearch(to, i); stays {
			m.kept = append(m.kept, i)
		} else {
			m.dropped = append(m.dropped, i)
		}
	}
	for _, i := range to {
		if _, there := slices.BinarySearch(from, i); !there {
			m.added = append(m.added, i)
		}
	}
	return m
}

func (m move) all() []int { return slices.Concat(m.kept, m.dropped, m.added) }

// Seal fixes what a basket has, and returns it as it is: what is paid for from
// now on is what it holds. A swap either came before and shows, or is refused.
// Sealing again changes nothing. It returns seatmap.ErrNoBasket.
func (s *Store) Seal(ctx context.Context, event, token string) (b seatmap.Basket, err error) {
	defer func() { s.metrics.came("seal", err) }()
	answer, err := s.settled(ctx, event, token, func(b seatmap.Basket, body string) (reply, error) {
		b.Sealed = true
		sealed, err := writeBody(b)
		if err != nil {
			return reply{}, err
		}
		return s.do(ctx, event, s.warm, sealScript, []string{seatmap.SeqKey(event), seatmap.BasketKey(event, token)}, body, sealed)
	})
	if err != nil {
		return b, err
	}
	if b, _, err = parseBasket(event, token, answer.text(1)); err != nil {
		return b, err
	}
	now, err := millis(answer.rest[0])
	if err == nil && b.State == seatmap.BasketHeld && !b.Until.After(now) {
		b.State = seatmap.BasketExpired
	}
	return b, err
}
