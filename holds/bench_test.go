package holds_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// plain is the script everybody writes first: check all, then set all. It has
// no number, no log, no map, no index, no basket and no caps.
var plain = redis.NewScript(`
for i = 1, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then return 0 end
end
for i = 1, #KEYS do
  redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
end
return 1`)

const benchSeats = 60_000

// others is how many keys of other sales the Redis has. With those of the event
// they stay within one size of its dictionary, 2^19, so that no run pays for
// the growth that the one before it has paid for.
const others = 300_000

// bench is one Redis on one core, as it is in the middle of a day's sales, a
// warm stadium, and the same client for both.
type bench struct {
	rdb   *redis.Client
	store *holds.Store
	round atomic.Int64
}

func newBench(tb testing.TB) *bench {
	server := devtest.RedisServer(tb, devstack.RedisOptions{CPU: strconv.Itoa(runtime.NumCPU() - 1)})
	rdb := server.Client()
	tb.Cleanup(func() { _ = rdb.Close() })
	x := &bench{rdb: rdb}
	x.fill(tb)
	x.warm(tb)
	drive(tb, benchSeats/2, x.take) // the memory that a run needs is there from now on
	return x
}

func (x *bench) fill(tb testing.TB) {
	for from := 0; from < others; from += 1000 {
		_, err := x.rdb.Pipelined(context.Background(), func(p redis.Pipeliner) error {
			for k := from; k < from+1000; k++ {
				p.Set(context.Background(), "hold:{another}:"+strconv.Itoa(k), fmt.Sprintf("%032d", k), time.Hour)
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// forget begins with a node that has seen nothing.
func (x *bench) forget() {
	judge := judge(func(context.Context, string) seatmap.Truth { return seatmap.Truth{Seats: benchSeats} })
	x.store = holds.New(x.rdb, judge, voice(func(string, []byte) {}), quiet)
}

// warm takes the event out of Redis and rebuilds it, so that every run starts
// alike. It is not FLUSHALL, which gives all memory back to the system: the
// next run would pay for getting it again, page by page, as no sale does that
// follows another.
func (x *bench) warm(tb testing.TB) {
	ctx := context.Background()
	keys, err := x.rdb.Keys(ctx, "*:{stadium}*").Result()
	if err != nil {
		tb.Fatal(err)
	}
	for part := range slices.Chunk(keys, 1000) {
		if err := x.rdb.Del(ctx, part...).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	x.forget()
	if err := x.store.Rebuild(ctx, "stadium", 0); err != nil {
		tb.Fatal(err)
	}
}

// drive calls f total times from many goroutines, as requests would, and
// returns how long that took.
func drive(tb testing.TB, total int, f func(k int) error) time.Duration {
	const clients = 16
	var (
		wg   sync.WaitGroup
		next atomic.Int64
	)
	start := time.Now()
	for range clients {
		wg.Go(func() {
			for k := next.Add(1) - 1; k < int64(total); k = next.Add(1) - 1 {
				if err := f(int(k)); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func (x *bench) request(k int) holds.TakeRequest {
	n := x.round.Add(1)
	return holds.TakeRequest{Event: "stadium", Token: fmt.Sprintf("%032d", n), User: "user-" + strconv.FormatInt(n, 10),
		Seats: []int{2 * k, 2*k + 1}, Quote: quote, Hash: "0123456789abcdef0123456789abcdef", Terms: terms}
}

func (x *bench) take(k int) error {
	_, err := x.store.Take(context.Background(), x.request(k))
	return err
}

func (x *bench) refused(k int) error {
	var taken *holds.TakenError
	if err := x.take(k); !errors.As(err, &taken) {
		return fmt.Errorf("not refused: %w", err)
	}
	return nil
}

func (x *bench) plain(want int) func(k int) error {
	return func(k int) error {
		r := x.request(k)
		got, err := plain.Run(context.Background(), x.rdb, []string{seatmap.HoldKey(r.Event, r.Seats[0]), seatmap.HoldKey(r.Event, r.Seats[1])},
			r.Token, r.Terms.Hold.Milliseconds()).Int()
		if err == nil && got != want {
			err = fmt.Errorf("plain script says %d", got)
		}
		return err
	}
}

// wanted is how many pairs of seats are fought for while others are refused:
// each of them by a hundred and fifty.
const wanted = 200

// BenchmarkTake takes and refuses pairs of seats with our script
// and with the plain one in turn, and reports medians of five pairs:
//
//	granted-%           our throughput of that of the plain script
//	refusal-cost        our time of its time, on seats many want at once
//	first-refusal-cost  the same, on seats this node sees taken for the first time
func BenchmarkTake(b *testing.B) {
	x := newBench(b)
	const total = benchSeats / 2
	hot := func(f func(k int) error) func(k int) error { return func(k int) error { return f(k % wanted) } }
	var granted, refusal, first, rate []float64
	for b.Loop() {
		for range 5 {
			x.warm(b)
			ours := drive(b, total, x.take)
			oursHot := drive(b, total, hot(x.refused))
			x.forget()
			oursFirst := drive(b, total, x.refused)
			x.warm(b)
			theirs := drive(b, total, x.plain(1))
			theirsHot := drive(b, total, hot(x.plain(0)))
			theirsFirst := drive(b, total, x.plain(0))
			granted = append(granted, 100*theirs.Seconds()/ours.Seconds())
			refusal = append(refusal, oursHot.Seconds()/theirsHot.Seconds())
			first = append(first, oursFirst.Seconds()/theirsFirst.Seconds())
			rate = append(rate, total/ours.Seconds())
		}
	}
	for name, values := range map[string][]float64{"granted-%": granted, "refusal-cost": refusal, "first-refusal-cost": first, "takes/s": rate} {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
}
