package holds

import (
	"context"
	_ "embed"
	"maps"
	"slices"

	"seatcast/seatmap"
)

//go:embed spend.lua
var spendLua string

//go:embed restore.lua
var restoreLua string

var (
	spendScript   = newScript("spend", seatsLua, storedLua, accountLua, indexLua, spendLua)
	restoreScript = newScript("restore", seatsLua, restoreLua)
)

// Spend marks seats sold or closed, whoever holds them, sets the places left
// and the tickets accounts have, and makes baskets sold. It is called with the event's advisory lock held, by
// whoever has just read these facts from Postgres; see Judge. What is so
// already is not numbered again.
func (s *Store) Spend(ctx context.Context, event string, m seatmap.Marks) (err error) {
	defer func() { s.metrics.came("spend", err) }()
	seats := slices.Concat(m.Seats, m.Closed)
	baskets, err := s.holders(ctx, event, seats, slices.Clone(m.Baskets))
	if err != nil {
		return err
	}
	users, entries := overridden(baskets, seats)
	users = unique(slices.AppendSeq(users, maps.Keys(m.Bought)))
	keys := holdKeys(markKeys(event), event, seats)
	for _, token := range m.Baskets {
		keys = append(keys, seatmap.BasketKey(event, token))
	}
	for _, user := range users {
		keys = append(keys, seatmap.UserKey(event, user))
	}
	args := seatArgs([]any{len(m.Seats), len(m.Closed), len(m.Baskets), len(entries)}, seats)
	args = append(args, entries...)
	args = append(args, owners(m.Baskets, baskets, users)...)
	for _, user := range users {
		bought, told := m.Bought[user]
		if !told {
			bought = -1
		}
		args = append(args, bought)
	}
	return s.mark(ctx, event, spendScript, keys, areaArgs(args, m.Areas))
}

// owners says of each token which of users its basket belongs to, counted from
// 1; 0 when that is not known, or it had no seats: it then was no hold.
func owners(tokens []string, baskets []seatmap.Basket, users []string) []any {
	of := make(map[string]int, len(baskets))
	for _, b := range baskets {
		if at, known := slices.BinarySearch(users, b.User); known && len(b.Seats) > 0 {
			of[b.Token] = at + 1
		}
	}
	owners := make([]any, len(tokens))
	for k, token := range tokens {
		owners[k] = of[token]
	}
	return owners
}

// overridden are the accounts of baskets, and the entries of held
// whose every seat is marked. Other entries end with their hold.
func overridden(baskets []seatmap.Basket, seats []int) (users []string, entries []any) {
	marked := make(map[int]bool, len(seats))
	for _, i := range seats {
		marked[i] = true
	}
	for _, b := range baskets {
		users = append(users, b.User)
		if len(b.Seats) > 0 && !slices.ContainsFunc(b.Seats, func(i int) bool { return !marked[i] }) {
			entries = append(entries, writeSeats(b.Seats))
		}
	}
	return users, entries
}

// Restore takes the marks of seats away, sold and closed alike, so that they
// can be held, and sets the places left. A live hold stays. It is called as
// Spend is.
func (s *Store) Restore(ctx context.Context, event string, m seatmap.Marks) (err error) {
	defer func() { s.metrics.came("restore", err) }()
	seats := slices.Concat(m.Seats, m.Closed)
	args := areaArgs(seatArgs([]any{len(seats)}, seats), m.Areas)
	return s.mark(ctx, event, restoreScript, holdKeys(markKeys(event), event, seats), args)
}

func (s *Store) mark(ctx context.Context, event string, sc script, keys []string, args []any) error {
	// Not s.warm: who waits there may wait for the lock this caller holds.
	rebuild := func(ctx context.Context, event string) error { return s.Rebuild(ctx, event, 0) }
	answer, err := s.do(ctx, event, rebuild, sc, keys, args...)
	if err != nil {
		return err
	}
	if answer.word != "done" {
		return refused(answer)
	}
	s.publish(ctx, event, answer.text(0))
	return nil
}

func markKeys(event string) []string {
	return []string{seatmap.SeqKey(event), seatmap.MapKey(event), seatmap.HeldKey(event), seatmap.LogKey(event), seatmap.AreasKey(event)}
}

func areaArgs(args []any, left map[string]int) []any {
	for area, places := range left {
		args = append(args, area, places)
	}
	return args
}
