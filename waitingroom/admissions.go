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
	select {
	case r.books <- a:
	default:
		r.lately.forget(a.jti)
		r.metrics.unwritten.Add(-1)
		r.o.Log.WarnContext(ctx, "an admission is not written down: too many wait to be", "event", a.event, "pass", a.jti)
	}
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
		case a := <-r.books:
			if batch = append(batch, a); len(batch) < bookSize {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
			for len(r.books) > 0 {
				batch = append(batch, <-r.books)
			}
			if err := r.flush(context.WithoutCancel(ctx), batch); err != nil {
				r.o.Log.ErrorContext(ctx, "admissions not written down", "how many", len(batch), "err", err)
				return nil
			}
			r.metrics.unwritten.Add(-int64(len(batch)))
			return nil
		}
		if err := r.flush(ctx, batch); err == nil {
			r.metrics.unwritten.Add(-int64(len(batch)))
			batch = batch[:0]
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
