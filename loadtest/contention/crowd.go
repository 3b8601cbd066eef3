package contention

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/loadtest/peers"
)

// crowd is buyers who ask for seats, each over a line of her own.
type crowd struct {
	lines []*line
	first int32 // number of the first buyer
	seats []string
	next  func(k int64) int32 // which seat the k-th request is for
	hold  time.Duration       // the longest a hold lasts once it is answered, where its end is told inexactly; 0: told exactly
	rate  float64             // requests a second, due at fixed moments whatever becomes of those before; 0: each asks again once she is answered
}

// tally is what a crowd was answered.
type tally struct {
	shots  []shot
	grants []grant
	odd    int    // answers that are neither a hold nor a refusal
	oddest string // the first of them
}

func (t *tally) add(more tally) {
	t.shots = append(t.shots, more.shots...)
	t.grants = append(t.grants, more.grants...)
	t.odd += more.odd
	if t.oddest == "" {
		t.oddest = more.oddest
	}
}

// anySeat is a choice among so many seats.
func anySeat(n int) func(int64) int32 { return func(int64) int32 { return int32(rand.IntN(n)) } }

// inTurn takes the seats from first up to end in turn.
func inTurn(first, end int) func(int64) int32 {
	return func(k int64) int32 { return int32(first + int(k%int64(end-first))) }
}

// run asks from start to end.
func (c crowd) run(ctx context.Context, start, end time.Time) (all tally, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { // who waits for an answer hears of it too
		for _, l := range c.lines {
			l.interrupt()
		}
	})()
	var (
		g     errgroup.Group // its own context would end with it, and the lines are needed after that
		count atomic.Int64
		mu    sync.Mutex
	)
	for i, l := range c.lines {
		g.Go(func() error {
			mine, err := c.buy(ctx, l, c.first+int32(i), &count, start, end)
			mu.Lock()
			defer mu.Unlock()
			all.add(mine)
			if err != nil {
				cancel()
			}
			return err
		})
	}
	err = g.Wait() // before all is read
	return all, err
}

// buy is one buyer's part.
func (c crowd) buy(ctx context.Context, l *line, buyer int32, count *atomic.Int64, start, end time.Time) (t tally, err error) {
	for {
		k := count.Add(1) - 1
		due := time.Now()
		if c.rate > 0 {
			due = start.Add(time.Duration(float64(k) / c.rate * float64(time.Second)))
		}
		if due.Before(start) {
			due = start
		}
		if !due.Before(end) {
			return t, nil
		}
		if err := peers.Wait(ctx, time.Until(due)); err != nil {
			return t, err
		}
		if err := l.fresh(ctx); err != nil {
			return t, err
		}
		if err := t.ask(l, c, c.next(k), buyer, due); err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return t, err
		}
	}
}

// ask asks for one seat and notes what came of it.
func (t *tally) ask(l *line, c crowd, seat, buyer int32, due time.Time) error {
	sent := time.Now()
	a, err := l.ask(c.seats[seat])
	got := time.Now()
	if err != nil {
		return fmt.Errorf("no answer to a buyer: %w", err)
	}
	switch a.status {
	case 201:
		until, err := a.until()
		if err != nil {
			return err
		}
		last := until.Add(blur)
		if c.hold > 0 {
			last = got.Add(c.hold)
		}
		t.grants = append(t.grants, grant{seat, buyer, sent.UnixNano(), got.UnixNano(), until.UnixNano(), last.UnixNano()})
	case 409:
	default:
		if t.odd++; t.oddest == "" {
			t.oddest = a.String()
		}
		return nil
	}
	t.shots = append(t.shots, shot{seat: seat, held: a.status == 201, due: due.UnixNano(), sent: sent.UnixNano(), got: got.UnixNano()})
	return nil
}
