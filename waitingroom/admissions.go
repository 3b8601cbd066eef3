package waitingroom

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"seatcast/seatmap"
)

// booked has an admission written down, soon. Nobody waits for it: while Postgres
// is away people are let in all the same.
func (r *Rooms) booked(ctx context.Context, a admission) {
	r.metrics.unwritten.Add(1)
	if !r.books.add(a) {
		r.lately.forget(a.jti)
		r.metrics.unwritten.Add(-1)
		r.o.Log.WarnContext(ctx, "an admission is not written down: too many wait to be", "event", a.event, "pass", a.jti)
	}
}

// books are the admissions that wait to be written down.
type books struct {
	many chan struct{} // bookSize of them wait, or more; one such signal is enough

	mu      sync.Mutex
	waiting []admission
}

// mostWaiting is how many may wait, beside those that are being written: those of a
// minute at the highest rate anybody has named.
const mostWaiting = 100_000

func newBooks() *books { return &books{many: make(chan struct{}, 1)} }

// add says whether there was room.
func (b *books) add(a admission) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= mostWaiting {
		return false
	}
	if b.waiting = append(b.waiting, a); len(b.waiting) >= bookSize {
		select {
		case b.many <- struct{}{}:
		default:
		}
	}
	return true
}

// take returns those that have waited longest, bookSize at most.
func (b *books) take() []admission {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), bookSize)
	taken := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil // they are forgotten with the last of them
	}
	return taken
}

// lately are the passes that were booked last: whoever is inside asks for theirs again
// and again. One that is forgotten is booked once more, which changes nothing.
type lately struct {
	mu         sync.Mutex
	young, old map[string]struct{} // when the young are many they are the old ones
}

// first says whether a pass is not known to be booked, and remembers that it is.
func (l *lately) first(jti string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, is := l.young[jti]; is {
		return false
	}
	_, is := l.old[jti]
	if l.young == nil || len(l.young) >= mostWaiting {
		l.young, l.old = make(map[string]struct{}), l.young
	}
	l.young[jti] = struct{}{}
	return !is
}

// forget says that a pass was not booked after all.
func (l *lately) forget(jti string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.young, jti)
	delete(l.old, jti)
}

// write writes admissions down until ctx ends, and then what is left. While Postgres is
// away it is asked once every bookEvery.
func (r *Rooms) write(ctx context.Context) error {
	tick := time.NewTicker(bookEvery)
	defer tick.Stop()
	var batch []admission // nil: all that was taken is written
	for many := r.books.many; ; {
		select {
		case <-many:
		case <-tick.C:
		case <-ctx.Done():
			if r.written(context.WithoutCancel(ctx), batch) != nil {
				r.o.Log.ErrorContext(ctx, "admissions not written down", "how many", r.metrics.unwritten.Load())
			}
			return nil
		}
		many = r.books.many
		if batch = r.written(context.WithoutCancel(ctx), batch); batch != nil {
			many = nil
		}
	}
}

// written writes batch and what waits, and returns the part that Postgres, being away,
// has not taken; nil when it has taken all.
func (r *Rooms) written(ctx context.Context, batch []admission) []admission {
	if batch == nil {
		batch = r.books.take()
	}
	for ; len(batch) > 0; batch = r.books.take() {
		if err := r.flush(ctx, batch); err != nil {
			return batch
		}
		r.metrics.unwritten.Add(-int64(len(batch)))
	}
	return nil
}

// flush writes admissions down; an error says that Postgres is away. Of those it does
// not take, as of a room that is gone, none keeps the others from being written.
func (r *Rooms) flush(ctx context.Context, batch []admission) error {
	err := r.o.Store.book(ctx, batch)
	switch {
	case err == nil, errors.Is(err, seatmap.ErrUnavailable):
		return err
	case len(batch) == 1 && ofNoRoom(err): // its lines went with it, and this one would have
		r.lately.forget(batch[0].jti)
		return nil
	case len(batch) == 1:
		r.lately.forget(batch[0].jti)
		r.o.Log.ErrorContext(ctx, "an admission is not written down", "event", batch[0].event, "pass", batch[0].jti, "err", err)
		return nil
	}
	half := len(batch) / 2
	return errors.Join(r.flush(ctx, batch[:half]), r.flush(ctx, batch[half:]))
}

// ofNoRoom says whether an admission was not taken because its room has been removed.
func ofNoRoom(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.ConstraintName == "room_admissions_event_id_fkey"
}
