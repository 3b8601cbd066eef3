package checkout

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// refund gives back all that was taken of an attempt that sells nothing. One
// the provider cannot give back is for a person.
func (d *Desk) refund(ctx context.Context, id string) error {
	a, err := d.store.attempt(ctx, id)
	if err != nil || a.State != AttemptRefunding {
		return err
	}
	provider, err := d.provider(a.Provider)
	if err != nil {
		return err
	}
	p, err := provider.Get(ctx, a.Ref)
	if err != nil {
		return err
	}
	if left := p.Money.Amount - p.Refunded; left > 0 {
		r := Refund{Payment: p.ID, Key: a.ID + ".refund", Money: seatmap.Money{Amount: left, Currency: p.Money.Currency}}
		answer, err := provider.Refund(ctx, r)
		if err != nil {
			return err
		}
		if answer.State == RefundFailed {
			d.log.ErrorContext(ctx, "money taken for nothing cannot be given back: do it by hand",
				"provider", a.Provider, "payment", p.ID, "attempt", a.ID, "booking", a.Booking, "money", r.Money, "reason", answer.Reason)
			return d.store.refundFailed(ctx, a.ID, answer.Reason)
		}
		if p, err = provider.Get(ctx, a.Ref); err != nil {
			return err
		}
	}
	return d.settle(ctx, a.Provider, p, nil) // while it is pending, the reconciler looks again
}

func (s *Store) refundFailed(ctx context.Context, id, reason string) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, a, err := lockAttempt(ctx, tx, id)
		if err != nil || a.State != AttemptRefunding {
			return err
		}
		return moveAttempt(ctx, tx, id, AttemptRefundFailed, reason)
	})
	return pg.Said(fmt.Sprintf("note that %s cannot be refunded", id), err)
}
