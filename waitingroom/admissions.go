package waitingroom

import (
	"context"
	"errors"
	"slices"
	"time"

	"seatcast/seatmap"
)

func (a admission) revoked() admission {
	a.ended, a.became = time.Now(), "revoked"
	return a
}

// booked has an admission written down, soon. Nobody waits for it: while Postgres
// is away people are let in all the same.
func (r *Rooms) booked(ctx context.Context, a admission) {
	select {
	case r.books <- a:
	default:
		r.o.Log.WarnContext(ctx, "an admission is not written down: too many wait to be", "event", a.event, "pass", a.jti)
	}
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
			}
			return nil
		}
		err := r.flush(ctx, batch)
		if err != nil && !errors.Is(err, seatmap.ErrUnavailable) {
			r.o.Log.ErrorContext(ctx, "admissions not written down", "how many", len(batch), "err", err)
		}
		if !errors.Is(err, seatmap.ErrUnavailable) {
			batch = batch[:0]
		}
	}
}

func (r *Rooms) flush(ctx context.Context, batch []admission) error {
	for part := range slices.Chunk(batch, bookSize) {
		if err := r.o.Store.book(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
