package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// silence is a Redis as one node sees it, which can be away.
type silence struct {
	away  atomic.Bool
	reset func(ctx context.Context, event string) error

	mu       sync.Mutex
	released []string
}

func (s *silence) Silent(_ context.Context, events []string) ([]string, bool) {
	if s.away.Load() {
		return events, true
	}
	return nil, false
}

func (s *silence) Reset(ctx context.Context, event string) error {
	if s.away.Load() {
		return seatmap.ErrUnavailable
	}
	if s.reset != nil {
		return s.reset(ctx, event)
	}
	return nil
}

func (s *silence) Release(_ context.Context, _, token, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, token)
	return nil
}

// node runs a watch that judges within seconds: a stall of this machine must not
// look like the silence of a node.
func (h *house) node(redis *silence) (stop func(), watch *checkout.Outage) {
	h.t.Helper()
	watch = checkout.NewOutage(checkout.OutageOptions{Store: h.store, Holds: redis, Log: quiet(h.t),
		Every: 20 * time.Millisecond, Stale: time.Second, Settle: 1300 * time.Millisecond})
	return h.run(watch.Run), watch
}

func (h *house) away() bool {
	h.t.Helper()
	return ask[bool](h, `SELECT unheld_since IS NOT NULL FROM events WHERE id = $1`, event)
}

func (h *house) turns(away bool) {
	h.t.Helper()
	h.eventually(func() (string, bool) { return fmt.Sprintf("without holds: %v", !away), h.away() == away })
}

// stays fails when the mode changes within a while.
func (h *house) stays(away bool) {
	h.t.Helper()
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if h.away() != away {
			h.t.Fatalf("without holds: %v", !away)
		}
	}
}

func TestAnEventIsWithoutHoldsOnlyWhenRedisAnswersNoNode(t *testing.T) {
	h := setup(t)
	var near, far silence
	h.node(&near)
	stopFar, lonely := h.node(&far)
	h.stays(false)

	far.away.Store(true)
	h.eventually(func() (string, bool) {
		alone, err := lonely.Alone(t.Context())
		must(t, err)
		return "it is not alone", alone
	})
	h.stays(false)

	near.away.Store(true)
	h.turns(true)
	if alone, err := lonely.Alone(t.Context()); alone || err != nil {
		t.Errorf("without holds a node is alone: %v %v", alone, err)
	}
	near.away.Store(false) // it may have been for a moment
	time.AfterFunc(100*time.Millisecond, func() { near.away.Store(true) })
	h.stays(true)
	near.away.Store(false)
	h.turns(false)
	h.stays(false)

	// A node that died says nothing, however lately it had an answer.
	stopFar()
	near.away.Store(true)
	h.turns(true)
	if n := ask[int](h, `SELECT count(*) FROM nodes`); n == 0 {
		t.Error("no node has noted anything")
	}
}

func TestAnEventNobodySellsKeepsItsHolds(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE events SET state = 'closed'`)
	var redis silence
	redis.away.Store(true)
	h.node(&redis)
	h.stays(false)
	h.exec(`UPDATE events SET state = 'open', opens_at = now() - interval '1 second'`)
	h.turns(true)
}

func TestNodesThatWereGoneForAnHourAreForgotten(t *testing.T) {
	h := setup(t)
	h.exec(`INSERT INTO nodes VALUES ('old', now() - interval '2 hours', '{}'), ('young', now() - interval '1 minute', '{}')`)
	h.node(&silence{})
	h.eventually(func() (string, bool) {
		return "the old one is there", ask[int](h, `SELECT count(*) FROM nodes WHERE id = 'old'`) == 0
	})
	if n := ask[int](h, `SELECT count(*) FROM nodes`); n != 2 {
		t.Errorf("%d nodes", n)
	}
}

// Of a cluster one part is dead: only its events are without holds, and only when
// it is dead for every node.
func TestAnEventIsJudgedByWhatNodesSayOfIt(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE events SET unheld_since = NULL`)
	h.exec(`INSERT INTO nodes VALUES ('near', now() + interval '1 hour', $1)`, []string{event})
	var redis silence
	redis.away.Store(true)
	h.node(&redis)
	h.turns(true) // the other has an answer, but not for this event
	h.exec(`UPDATE events SET unheld_since = NULL`)
	h.exec(`UPDATE nodes SET silent = '{}' WHERE id = 'near'`)
	h.stays(false)
}

// Many book all the time while the mode ends: whoever was told that he has a
// booking is among those whose holds are made anew, and nobody is told so later.
func TestABookingIsMadeBeforeHoldsBeginAgainOrNotAtAll(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE events SET unheld_since = now()`)
	seen := map[string]bool{}
	redis := silence{reset: func(ctx context.Context, event string) error {
		return h.store.Truth(ctx, event, func(_ context.Context, truth seatmap.Truth) error {
			for _, b := range truth.Baskets {
				seen[b.Token] = true
			}
			return nil
		})
	}}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		made []string
	)
	for n := range 8 {
		wg.Go(func() {
			for k := 0; ; k++ {
				token := fmt.Sprintf("%016d%016d", n, k)
				_, _, err := h.tryBook(fmt.Sprint("user", n), token, anything, n)
				if errors.Is(err, seatmap.ErrHeld) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				made = append(made, token)
				mu.Unlock()
			}
		})
	}
	h.node(&redis)
	h.turns(false)
	wg.Wait()
	if len(made) == 0 {
		t.Fatal("nobody has booked")
	}
	for _, token := range made {
		if !seen[token] {
			t.Errorf("%s of %d was made and has no hold", token, len(made))
		}
	}
}

// Who comes to nothing while Redis is away has his seats given back once it is not.
func TestWhatWasGivenBackWithoutRedisIsGivenBackInIt(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardDecline)
	h.goWithout()
	if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusNoContent {
		t.Fatalf("given back: %+v", r)
	}
	var redis silence
	h.node(&redis)
	h.turns(false)
	h.eventually(func() (string, bool) {
		redis.mu.Lock()
		defer redis.mu.Unlock()
		return fmt.Sprint("given back: ", redis.released), slices.Contains(redis.released, id[len(event)+1:])
	})
}
