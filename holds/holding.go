package holds

import (
	"context"
	"slices"

	"seatcast/seatmap"
)

// Holding returns the baskets that hold seats now, by seat. Who holds a seat
// and has a basket that cannot be read is a basket with a token only. What is set
// aside nobody holds.
func (s *Store) Holding(ctx context.Context, event string, seats []int) (map[int]seatmap.Basket, error) {
	tokens, err := warmed(ctx, event, s.warm, func() (map[int]string, error) { return s.tokens(ctx, event, seats) })
	if err != nil || len(tokens) == 0 {
		return nil, err
	}
	held := make([]int, 0, len(tokens))
	for i := range tokens {
		held = append(held, i)
	}
	slices.Sort(held)
	baskets, err := s.holders(ctx, event, held, nil)
	if err != nil {
		return nil, err
	}
	byToken := make(map[string]seatmap.Basket, len(baskets))
	for _, b := range baskets {
		byToken[b.Token] = b
	}
	holding := make(map[int]seatmap.Basket, len(tokens))
	for i, token := range tokens {
		b, ok := byToken[token]
		switch {
		case !ok:
			b = seatmap.Basket{Event: event, Token: token}
		case isAside(b):
			continue
		}
		holding[i] = b
	}
	return holding, nil
}

// tokens reads who holds seats. Its error is errCold, or of Redis.
func (s *Store) tokens(ctx context.Context, event string, seats []int) (map[int]string, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	tokens := map[int]string{}
	for part := range slices.Chunk(seats, 1000) {
		values, err := s.rdb.MGet(ctx, holdKeys([]string{seatmap.SeqKey(event)}, event, part)...).Result()
		if err != nil {
			return nil, translate("holding", err)
		}
		if values[0] == nil {
			return nil, errCold
		}
		for k, holder := range texts(values[1:]) {
			if holder != "" && holder != seatmap.SoldMark && holder != seatmap.ClosedMark {
				tokens[part[k]] = holder
			}
		}
	}
	return tokens, nil
}
