package holds_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// deed is what a call did to one seat, as its caller knows after as many
// repeats as it took to get an answer.
type deed struct {
	seat  int
	verb  string // take, refused, extend, keep, leave, end, sold, restore
	token string
	until int64 // of the hold after it; of an end, the one that has come
}

// tenure is a seat: who has it, and until when.
type tenure struct {
	holder string
	until  int64
}

// seatOverTime says which deeds can follow each other on one seat.
var seatOverTime = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		seats := map[int][]porcupine.Operation{}
		for _, op := range history {
			seat := op.Input.(deed).seat
			seats[seat] = append(seats[seat], op)
		}
		for _, part := range seats {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return tenure{} },
	Step: func(state, input, _ any) (bool, any) {
		s, d := state.(tenure), input.(deed)
		mine := s.holder == d.token
		switch d.verb {
		case "take": // and what a swap adds
			return s.holder == "", tenure{d.token, d.until}
		case "refused":
			return s.holder != "", s
		case "extend":
			return mine, tenure{d.token, d.until}
		case "keep":
			return mine, s
		case "leave": // released, or swapped away: what is another's by now stays so
			if mine {
				return true, tenure{}
			}
			return true, s
		case "end": // comes for every end a hold ever had: one that was moved is none
			if mine && s.until == d.until {
				return true, tenure{}
			}
			return true, s
		case "sold":
			return true, tenure{holder: seatmap.SoldMark}
		case "restore":
			if s.holder == seatmap.SoldMark {
				return true, tenure{}
			}
			return true, s
		}
		return false, s
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// trial is a history in the making, on a Redis to which bad things happen.
type trial struct {
	*house
	server *devstack.Redis
	lossy  *lossy
	serial atomic.Int64
	calls  atomic.Int64 // those that had to be repeated among them count each time

	mu      sync.Mutex
	history []porcupine.Operation
}

func newTrial(t *testing.T, seats int) *trial {
	server := devtest.RedisServer(t, devstack.RedisOptions{Keep: true, Settings: []string{"--appendfsync", "always"}})
	rdb := server.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	x := &trial{house: cold(t, rdb, seats), server: server}
	x.must(x.store.Rebuild(t.Context(), x.event, 0))
	x.lossy = lose(t, server.Addr(), 40)
	return x
}

// node is a store of its own, behind the proxy that loses answers. It repeats
// nothing by itself: a request that was given up must be known of.
func (x *trial) node() *holds.Store {
	o, err := redis.ParseURL(x.lossy.url())
	x.must(err)
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1
	rdb := redis.NewClient(o)
	x.Cleanup(func() { _ = rdb.Close() })
	return holds.New(rdb, judge(x.ask), voice(x.hear), quiet)
}

func (x *trial) note(who int, call, ret int64, deeds ...deed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range deeds {
		x.history = append(x.history, porcupine.Operation{ClientId: who, Input: d, Call: call, Return: ret})
	}
}

// each makes a deed of every seat.
func each(seats []int, verb, token string, until time.Time) []deed {
	var all []deed
	for _, seat := range seats {
		all = append(all, deed{seat, verb, token, until.UnixMilli()})
	}
	return all
}

// ends notes the end a hold will have, unless it is moved: at its millisecond
// by the clock of Redis, of which a call sees a little more or less.
func (x *trial) ends(who int, seats []int, token string, until time.Time) {
	const slack = 6 * time.Millisecond
	x.note(who, until.Add(-slack).UnixNano(), until.Add(slack).UnixNano(), each(seats, "end", token, until)...)
}

// insist repeats a call until it is answered, and says between when it was.
func (x *trial) insist(f func(context.Context) error) (call, ret int64, err error) {
	call = time.Now().UnixNano()
	for {
		x.calls.Add(1)
		if err = f(x.Context()); !errors.Is(err, seatmap.ErrUnavailable) || x.Context().Err() != nil {
			return call, time.Now().UnixNano(), err
		}
		x.lossy.settled() // what was given up is not carried out behind what comes next
	}
}

// refused notes the seats an error names as somebody's.
func (x *trial) refused(who int, call, ret int64, err error) bool {
	var taken *holds.TakenError
	if !errors.As(err, &taken) {
		return false
	}
	x.note(who, call, ret, each(taken.Seats, "refused", "", time.Time{})...)
	return true
}

// shop takes seats, does this and that with them, and gives them back or lets
// them end.
func (x *trial) shop(who int, store *holds.Store, random *rand.Rand) {
	seats := x.truth.Seats
	one := random.IntN(seats - 1)
	r := x.asks(fmt.Sprint("shopper-", x.serial.Add(1)), one, one+1+random.IntN(seats-one-1))
	r.Terms.Hold, r.Terms.Grace = time.Duration(30+random.IntN(120))*time.Millisecond, 0
	var b seatmap.Basket
	call, ret, err := x.insist(func(ctx context.Context) (err error) { b, err = store.Take(ctx, r); return err })
	if errors.Is(err, seatmap.ErrHoldExpired) { // granted, the answer lost, and over when it was asked for again
		_, _, err = x.insist(func(ctx context.Context) (err error) { b, err = store.Basket(ctx, x.event, r.Token); return err })
	}
	if x.refused(who, call, ret, err) {
		return
	}
	if err != nil {
		x.Errorf("take: %v", err)
		return
	}
	x.note(who, call, ret, each(b.Seats, "take", b.Token, b.Until)...)
	x.ends(who, b.Seats, b.Token, b.Until)
	for range random.IntN(4) {
		if time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond); random.IntN(2) == 0 { // she thinks
			x.extend(who, store, &b, random)
		} else if !x.swap(who, store, &b, random) {
			return // it is not known which seats she has
		}
	}
	if random.IntN(3) == 0 {
		return
	}
	call, ret, err = x.insist(func(ctx context.Context) error { return store.Release(ctx, x.event, b.Token, b.User) })
	if err != nil {
		x.Errorf("release: %v", err)
	}
	x.note(who, call, ret, each(b.Seats, "leave", b.Token, time.Time{})...)
}

func (x *trial) extend(who int, store *holds.Store, b *seatmap.Basket, random *rand.Rand) {
	by := time.Duration(20+random.IntN(100)) * time.Millisecond
	// Each repeat may move the end again: that many ends it may have had.
	var got seatmap.Basket
	call, ret, err := x.insist(func(ctx context.Context) (err error) {
		from := time.Now()
		if got, err = store.Extend(ctx, x.event, b.Token, b.User, by, 0); errors.Is(err, seatmap.ErrUnavailable) {
			var now seatmap.Basket
			if _, _, err := x.insist(func(ctx context.Context) (err error) { now, err = store.Basket(ctx, x.event, b.Token); return err }); err == nil && now.Until.After(b.Until) {
				b.Until = now.Until
				x.note(who, from.UnixNano(), time.Now().UnixNano(), each(b.Seats, "extend", b.Token, b.Until)...)
				x.ends(who, b.Seats, b.Token, b.Until)
			}
		}
		return err
	})
	switch {
	case err == nil:
		x.note(who, call, ret, each(b.Seats, "extend", b.Token, got.Until)...)
		if got.Until.After(b.Until) {
			x.ends(who, b.Seats, b.Token, got.Until)
		}
		b.Until = got.Until
	case errors.As(err, new(*seatmap.LostError)) || errors.Is(err, seatmap.ErrHoldExpired):
	default:
		x.Errorf("extend: %v", err)
	}
}

// swap reports false when it was carried out and its answer lost for good.
func (x *trial) swap(who int, store *holds.Store, b *seatmap.Basket, random *rand.Rand) bool {
	kept, other := b.Seats[0], random.IntN(x.truth.Seats)
	if slices.Contains(b.Seats, other) {
		return true
	}
	to := []int{min(kept, other), max(kept, other)}
	var got seatmap.Basket
	call, ret, err := x.insist(func(ctx context.Context) (err error) { got, err = store.Swap(ctx, x.swaps(*b, to...)); return err })
	done := err == nil
	if !done && !errors.As(err, new(*holds.TakenError)) { // over by now: was it carried out before?
		if _, _, read := x.insist(func(ctx context.Context) (err error) { got, err = store.Basket(ctx, x.event, b.Token); return err }); read != nil {
			x.Errorf("read after a swap: %v", read)
			return false
		}
		done = slices.Equal(got.Seats, to)
	}
	switch {
	case done:
		x.note(who, call, ret, each([]int{kept}, "keep", b.Token, time.Time{})...)
		x.note(who, call, ret, each([]int{other}, "take", b.Token, b.Until)...)
		x.note(who, call, ret, each(b.Seats[1:], "leave", b.Token, time.Time{})...)
		x.ends(who, []int{other}, b.Token, b.Until)
		b.Seats = to
	case x.refused(who, call, ret, err):
	case errors.As(err, new(*seatmap.LostError)) || errors.Is(err, seatmap.ErrHoldExpired):
	default:
		x.Errorf("swap: %v", err)
		return false
	}
	return true
}

// arbitrate sells seats and takes sales back, one after the other as under the
// lock of the event.
func (x *trial) arbitrate(ctx context.Context, who int, store *holds.Store) {
	random := rand.New(rand.NewPCG(3, 3))
	for ctx.Err() == nil {
		seats := []int{random.IntN(x.truth.Seats)}
		call, ret, err := x.insist(func(ctx context.Context) error { return store.Spend(ctx, x.event, seatmap.Marks{Seats: seats}) })
		if err != nil {
			x.Errorf("spend: %v", err)
		}
		x.note(who, call, ret, each(seats, "sold", "", time.Time{})...)
		time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond) // sold for a while
		call, ret, err = x.insist(func(ctx context.Context) error { return store.Restore(ctx, x.event, seatmap.Marks{Seats: seats}) })
		if err != nil {
			x.Errorf("restore: %v", err)
		}
		x.note(who, call, ret, each(seats, "restore", "", time.Time{})...)
	}
}

// counts is how often each deed was done.
func (x *trial) counts() map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	counts := map[string]int{}
	for _, op := range x.history {
		counts[op.Input.(deed).verb]++
	}
	return counts
}

// rare says which deed was done too seldom for the history to say much of it.
func (x *trial) rare() string {
	counts := x.counts()
	for _, verb := range []string{"take", "refused", "extend", "keep", "leave", "end", "sold", "restore"} {
		if counts[verb] < 15 {
			return verb
		}
	}
	return ""
}

// harm pauses Redis, cuts every connection, and kills it, in turn, until every
// deed was done often.
func (x *trial) harm(ctx context.Context, enough func()) (kills int) {
	for n := 0; ctx.Err() == nil; n++ {
		if kills > 5 && x.rare() == "" {
			enough()
		}
		time.Sleep(250 * time.Millisecond) // some quiet, in which things are done
		switch n % 3 {
		case 0:
			mode := []string{"WRITE", "ALL"}[n/3%2]
			if err := x.rdb.Do(context.Background(), "CLIENT", "PAUSE", 150, mode).Err(); err != nil {
				x.Errorf("pause: %v", err)
			}
		case 1:
			x.lossy.cut()
		case 2:
			kills++
			x.server.Kill()
			if err := x.server.Restart(context.Background()); err != nil {
				x.Error(err)
				return kills
			}
		}
	}
	return kills
}

// Takes, extensions, swaps, releases, sales and ends of holds at two nodes, of
// which every fortieth answer is lost, while Redis is paused, cut off and killed,
// are as if they had been done one after the other.
func TestHoldsAreLinearizableWhateverBreaks(t *testing.T) {
	t.Parallel()
	const shoppers, seats = 10, 8
	x := newTrial(t, seats)
	nodes := []*holds.Store{x.node(), x.node()}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for who := range shoppers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(who)))
			for ctx.Err() == nil {
				x.shop(who, nodes[who%2], random)
			}
		})
	}
	all.Go(func() { x.arbitrate(ctx, shoppers, nodes[0]) })
	all.Go(func() {
		for ctx.Err() == nil {
			if err := nodes[1].Lapse(t.Context(), x.event); err != nil && !errors.Is(err, seatmap.ErrUnavailable) {
				t.Errorf("lapse: %v", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	var kills int
	all.Go(func() { kills = x.harm(ctx, cancel) })
	all.Wait()

	t.Logf("%d calls, %d answers lost, %d kills: %v", x.calls.Load(), x.lossy.count(), kills, x.counts())
	if verb := x.rare(); verb != "" {
		t.Errorf("only %d times %s", x.counts()[verb], verb)
	}
	if got := porcupine.CheckOperationsTimeout(seatOverTime, x.history, time.Minute); got != porcupine.Ok {
		t.Errorf("a history of %d deeds is %s", len(x.history), got)
	}

	x.sound()
}
