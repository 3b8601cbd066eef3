package holds_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"seatcast/holds"
	"seatcast/seatmap"
)

// move is one call on one seat, as its caller saw it.
type move struct {
	seat  int
	take  bool // otherwise it gives the seat back
	token string
}

// register is a seat: it holds a token, or nothing. A take succeeds exactly
// when it holds nothing, a release when it holds the releaser's token.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		seats := map[int][]porcupine.Operation{}
		for _, op := range history {
			seat := op.Input.(move).seat
			seats[seat] = append(seats[seat], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range seats {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		m, ok, holder := input.(move), output.(bool), state.(string)
		switch {
		case m.take && ok:
			return holder == "", m.token
		case m.take:
			return holder != "", holder
		default:
			return holder == m.token, ""
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " ", output) },
}

// TestHoldsAreLinearizable lets many shoppers take, swap and give back a few
// seats at once. Each take of two seats is a move on each of them: won together,
// or the ones named as taken were refused. A swap is a take of what it adds and a
// release of what it drops.
func TestHoldsAreLinearizable(t *testing.T) {
	t.Parallel()
	const shoppers, rounds, seats = 12, 150, 6
	h := setup(t, seats)
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		wg      sync.WaitGroup
		turn    atomic.Int64
	)
	note := func(shopper int, m move, ok bool, call, ret time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: shopper, Input: m, Output: ok, Call: call.Nanoseconds(), Return: ret.Nanoseconds()})
	}
	start := time.Now()
	for shopper := range shoppers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(shopper)))
			for range rounds {
				one := random.IntN(seats - 1)
				r := h.asks(fmt.Sprint(turn.Add(1)), one, one+1+random.IntN(seats-one-1))
				call := time.Since(start)
				_, err := h.store.Take(t.Context(), r)
				ret := time.Since(start)
				var taken *holds.TakenError
				if errors.As(err, &taken) {
					for _, seat := range taken.Seats {
						note(shopper, move{seat, true, r.Token}, false, call, ret)
					}
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, seat := range r.Seats {
					note(shopper, move{seat, true, r.Token}, true, call, ret)
				}
				if kept, other := r.Seats[0], random.IntN(seats); other != kept && other != r.Seats[1] {
					to := []int{min(kept, other), max(kept, other)}
					call = time.Since(start)
					_, err := h.store.Swap(t.Context(), h.swaps(seatmap.Basket{Token: r.Token, User: r.User}, to...))
					ret = time.Since(start)
					if err != nil && !errors.As(err, &taken) {
						t.Error(err)
						return
					}
					note(shopper, move{other, true, r.Token}, err == nil, call, ret)
					if err == nil {
						note(shopper, move{r.Seats[1], false, r.Token}, true, call, ret)
						r.Seats = to
					}
				}
				call = time.Since(start)
				if err := h.store.Release(t.Context(), h.event, r.Token, r.User); err != nil {
					t.Error(err)
					return
				}
				ret = time.Since(start)
				for _, seat := range r.Seats {
					note(shopper, move{seat, false, r.Token}, true, call, ret)
				}
			}
		})
	}
	wg.Wait()
	won := 0
	for _, op := range history {
		if op.Input.(move).take && op.Output.(bool) {
			won++
		}
	}
	if won == 0 || won == len(history) {
		t.Fatalf("%d of %d moves won: nobody contended", won, len(history))
	}
	if got := porcupine.CheckOperationsTimeout(register, history, 30*time.Second); got != porcupine.Ok {
		t.Errorf("history of %d moves is %s", len(history), got)
	}
	h.sound()
}
