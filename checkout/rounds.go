package checkout

import (
	"context"
	"errors"
	"sync"
)

// rounds lets one mirror of an event run at a time in this process. Whoever
// comes meanwhile shares the next one with all others who do: it reads what is
// due when it begins, which is theirs too. So a hundred sales at once are a few
// mirrors, and those who wait do so here and not on a connection of the pool.
type rounds struct {
	mu     sync.Mutex
	events map[string]*queue
}

type queue struct {
	turn chan struct{} // of one: whoever is in it runs
	next *round        // has not begun; nil when nobody waits
}

type round struct {
	over chan struct{}
	err  error // once over
}

// share returns when a run that began after the call has ended, with its
// error. When the one whose context a shared run had is gone, another runs.
func (r *rounds) share(ctx context.Context, name string, run func(context.Context) error) error {
	for {
		e, mine, first := r.join(name)
		if first {
			mine.err = r.lead(ctx, e, run)
			close(mine.over)
			return mine.err
		}
		select {
		case <-mine.over:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !errors.Is(mine.err, context.Canceled) && !errors.Is(mine.err, context.DeadlineExceeded) {
			return mine.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (r *rounds) join(name string) (e *queue, mine *round, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events == nil {
		r.events = make(map[string]*queue)
	}
	if e = r.events[name]; e == nil {
		e = &queue{turn: make(chan struct{}, 1)}
		r.events[name] = e
	}
	if e.next == nil {
		e.next, first = &round{over: make(chan struct{})}, true
	}
	return e, e.next, first
}

// lead waits for its turn and runs. From when it begins, others join another round.
func (r *rounds) lead(ctx context.Context, e *queue, run func(context.Context) error) error {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
	}
	r.mu.Lock()
	e.next = nil
	r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return run(ctx)
}
