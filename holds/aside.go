package holds

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"seatcast/seatmap"
)

// SetAside holds any number of seats, given ascending, for nobody who buys: all
// of them, or none, and returns all that somebody has. Nobody's cap counts
// them. They come back by themselves after so long, and earlier by GiveBack of
// the baskets, of which one has MaxSeats at most.
func (s *Store) SetAside(ctx context.Context, event string, seats []int, hold time.Duration) (baskets []string, gone []int, err error) {
	for part := range slices.Chunk(seats, MaxSeats) {
		token := rand.Text()
		baskets = append(baskets, token) // also of a take without an answer
		_, err := s.Take(ctx, TakeRequest{Event: event, Token: token, User: aside(token), Seats: part, Quote: json.RawMessage(`{}`), Hash: token,
			Terms: seatmap.Terms{Hold: hold, Cap: hold, SeatsPerUser: MaxSeats}})
		var taken *TakenError
		if errors.As(err, &taken) { // the others are tried, to name all there are
			gone = append(gone, taken.Seats...)
			continue
		}
		if err != nil {
			return nil, nil, errors.Join(err, s.GiveBack(context.WithoutCancel(ctx), event, baskets))
		}
	}
	if len(gone) > 0 {
		return nil, gone, s.GiveBack(context.WithoutCancel(ctx), event, baskets)
	}
	return baskets, nil, nil
}

// GiveBack frees what SetAside held. What is free already is no error. A Redis
// that does not answer is not asked for every basket: whoever gives back may keep
// others waiting, and what is not given back ends by itself.
func (s *Store) GiveBack(ctx context.Context, event string, baskets []string) error {
	var all error
	for _, token := range baskets {
		err := s.Release(ctx, event, token, aside(token))
		if errors.Is(err, seatmap.ErrNoBasket) {
			continue
		}
		all = errors.Join(all, err)
		if errors.Is(err, seatmap.ErrUnavailable) {
			break
		}
	}
	return all
}

const asideAccount = "aside\n"

// aside is the account of such a basket: no session's, for it holds a control
// character.
func aside(token string) string { return asideAccount + token }

// isAside says that a basket is nobody's: it ends when whoever set it aside
// said, and is given back by him alone.
func isAside(b seatmap.Basket) bool { return strings.HasPrefix(b.User, asideAccount) }
