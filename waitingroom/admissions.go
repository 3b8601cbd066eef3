package waitingroom

import (
	"context"
	"errors"
	"slices"
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
	many chan struct{} // of one: bookSize of them wait, or more

	mu      sync.Mutex
	waiting []admission
}

// booksSize is how many may wait: those of a minute at the highest rate anybody has
// named.
const booksSize = 100_000

func newBooks() *books { return &books{many: make(chan struct{}, 1)} }

// add says whether there was room.
func (b *books) add(a admission) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= booksSize {
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

// take returns what waits, which waits no longer.
func (b *books) take() []admission {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.waiting
	b.waiting = nil
	return all
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
	if l.young == nil || len(l.young) >= booksSize {
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

// write writes admissions down until ctx ends, and then what is left.
func (r *Rooms) write(ctx context.Context) error {
	var batch []admission
	tick := time.NewTicker(bookEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.books.many:
		case <-tick.C:
		case <-ctx.Done():
			batch = append(batch, r.books.take()...)
			if err := r.flush(context.WithoutCancel(ctx), batch); err != nil {
				r.o.Log.ErrorContext(ctx, "admissions not written down", "how many", len(batch), "err", err)
				return nil
			}
			r.metrics.unwritten.Add(-int64(len(batch)))
			return nil
		}
		if len(batch) == 0 {
			batch = r.books.take()
		}
		if err := r.flush(ctx, batch); err == nil {
			r.metrics.unwritten.Add(-int64(len(batch)))
			batch = nil
		}
	}
}

// flush writes admissions down; an error says that Postgres is away. Of those it does
// not take, as of a room that is gone, none keeps the others from being written.
func (r *Rooms) flush(ctx context.Context, batch []admission) error {
	for part := range slices.Chunk(batch, bookSize) {
		err := r.o.Store.book(ctx, part)
		switch {
		case err == nil:
		case errors.Is(err, seatmap.ErrUnavailable):
			return err
		case len(part) == 1 && ofNoRoom(err): // its lines went with it, and this one would have
			r.lately.forget(part[0].jti)
		case len(part) == 1:
			r.lately.forget(part[0].jti)
			r.o.Log.ErrorContext(ctx, "an admission is not written down", "event", part[0].event, "pass", part[0].jti, "err", err)
		default:
			for _, half := range [][]admission{part[:len(part)/2], part[len(part)/2:]} {
				if err := r.flush(ctx, half); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ofNoRoom says whether an admission was not taken because its room has been removed.
func ofNoRoom(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.ConstraintName == "room_admissions_event_id_fkey"
}
