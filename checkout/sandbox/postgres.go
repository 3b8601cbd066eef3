package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/checkout"
)

// Books are the sandbox's ledger: what is in them is what happened to the
// money.
type Books struct{ pool *pgxpool.Pool }

// NewBooks returns the books kept in a migrated database.
func NewBooks(pool *pgxpool.Pool) *Books { return &Books{pool} }

const entryColumns = `id, idempotency_key, card, currency, amount, state, reason, refunded,
	capture_before, coalesce(back_at > clock_timestamp(), false)`

func scanEntry(row pgx.Row) (e entry, err error) {
	err = row.Scan(&e.ID, &e.Key, &e.Card, &e.Currency, &e.Amount, &e.State, &e.Reason, &e.Refunded, &e.Until, &e.Away)
	return e, err
}

// open enters a payment, or returns the one its key has entered before.
func (b *Books) open(ctx context.Context, e entry, begins beginning) (got entry, fresh bool, err error) {
	e.ID = "pay_" + strings.ToLower(rand.Text())
	err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		got, err = scanEntry(tx.QueryRow(ctx, `
			INSERT INTO sandbox_payments (id, idempotency_key, card, currency, amount, state, reason, decide_at, capture_before, back_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $6 = 'processing' THEN now() + $8::interval END,
				now() + NULLIF($9::interval, '0'), now() + NULLIF($10::interval, '0'))
			ON CONFLICT (idempotency_key) DO NOTHING RETURNING `+entryColumns,
			e.ID, e.Key, e.Card, e.Currency, e.Amount, begins.state, begins.reason, begins.in, begins.lapses, begins.down))
		if errors.Is(err, pgx.ErrNoRows) {
			got, err = scanEntry(tx.QueryRow(ctx, `SELECT `+entryColumns+` FROM sandbox_payments WHERE idempotency_key = $1`, e.Key))
			return err
		}
		if err != nil {
			return err
		}
		fresh = true
		if got.State == checkout.PaymentProcessing || got.Card == CardEarly { // the early one is sent by hand
			return nil
		}
		return announce(ctx, tx, got)
	})
	return got, fresh, err
}

// entry returns a payment as it stands.
func (b *Books) entry(ctx context.Context, id string) (entry, error) {
	return scanEntry(b.pool.QueryRow(ctx, `SELECT `+entryColumns+` FROM sandbox_payments WHERE id = $1`, id))
}

// decide does what the time of payments has come for, one or every one: who has
// thought long enough approves, who was never asked fails, what was not captured
// lapses.
func (b *Books) decide(ctx context.Context, id string) error {
	_, err := b.step(ctx, `
		UPDATE sandbox_payments SET updated_at = now(),
			state = CASE WHEN state = 'authorized' THEN 'expired' WHEN card = $2 THEN 'failed' ELSE 'authorized' END,
			reason = CASE WHEN state = 'authorized' THEN 'authorization_expired' WHEN card = $2 THEN 'authentication_abandoned' ELSE '' END
		WHERE id IN (
			SELECT id FROM sandbox_payments WHERE ($1 = '' OR id = $1)
				AND (state = 'processing' AND decide_at <= now() OR state = 'authorized' AND capture_before <= now())
			FOR UPDATE `+others(id)+`)
		RETURNING `+entryColumns, id, CardAuthenticate)
	return err
}

// others is, in SQL, what is made of rows that somebody else is deciding: a round
// over all leaves them out, who asks about one waits, to be told what is decided.
func others(id string) string {
	if id == "" {
		return "SKIP LOCKED"
	}
	return ""
}

// authenticate decides what its owner has said of a payment, unless it is
// decided.
func (b *Books) authenticate(ctx context.Context, id string, approved bool) error {
	_, err := b.step(ctx, `
		UPDATE sandbox_payments SET updated_at = now(), state = CASE WHEN $3 THEN 'authorized' ELSE 'failed' END,
			reason = CASE WHEN $3 THEN '' ELSE 'authentication_failed' END
		WHERE id = $1 AND card = $2 AND state = 'processing' RETURNING `+entryColumns, id, CardAuthenticate, approved)
	return err
}

// capture takes the money of an authorised payment, or does what its card does
// then. errDown when there is no answer.
func (b *Books) capture(ctx context.Context, id string) error {
	tried, err := b.step(ctx, `
		UPDATE sandbox_payments SET captures = captures + 1, updated_at = now(),
			state = CASE WHEN card = $2 THEN 'refused' WHEN card = $3 THEN 'expired' WHEN card = $4 AND captures < $5 THEN state ELSE 'captured' END,
			reason = CASE card WHEN $2 THEN 'capture_declined' WHEN $3 THEN 'authorization_expired' ELSE '' END
		WHERE id = $1 AND state = 'authorized' AND (back_at IS NULL OR back_at <= now()) RETURNING `+entryColumns,
		id, CardRefused, CardLapse, CardFlaky, flakes)
	if err == nil && len(tried) > 0 && tried[0].State == checkout.PaymentAuthorized {
		err = errDown
	}
	return err
}

func (b *Books) void(ctx context.Context, id string) error {
	_, err := b.step(ctx, `
		UPDATE sandbox_payments SET state = 'voided', updated_at = now()
		WHERE id = $1 AND state IN ('processing', 'authorized') AND (back_at IS NULL OR back_at <= now()) RETURNING `+entryColumns, id)
	return err
}

// refund gives money back, or returns the refund its key has made before. More
// than is there fails, and leaves no trace. A pending one is decided after so long.
func (b *Books) refund(ctx context.Context, r checkout.Refund, in time.Duration) (got refund, err error) {
	err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		e, err := scanEntry(tx.QueryRow(ctx, `SELECT `+entryColumns+` FROM sandbox_payments WHERE id = $1 FOR UPDATE`, r.Payment))
		if err != nil {
			return err
		}
		if e.Away {
			return errDown
		}
		got, err = scanRefund(tx.QueryRow(ctx, `SELECT `+refundColumns+` FROM sandbox_refunds WHERE idempotency_key = $1`, r.Key))
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var pending int64
		err = tx.QueryRow(ctx, `SELECT coalesce(sum(amount), 0)::bigint FROM sandbox_refunds WHERE payment_id = $1 AND state = 'pending'`,
			e.ID).Scan(&pending)
		if err != nil {
			return err
		}
		got = refund{ID: "re_" + strings.ToLower(rand.Text()), Payment: r.Payment, Money: r.Money}
		if e.State != checkout.PaymentCaptured || r.Money.Currency != e.Currency || r.Money.Amount > e.Amount-e.Refunded-pending {
			got = refund{Payment: r.Payment, Money: r.Money, State: checkout.RefundFailed, Reason: "more_than_was_captured"}
			return nil
		}
		got.State, got.Reason = refunds(e.Card)
		_, err = tx.Exec(ctx, `INSERT INTO sandbox_refunds (idempotency_key, id, payment_id, amount, state, reason, settle_at)
			VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $5 = 'pending' THEN now() + $7::interval END)`,
			r.Key, got.ID, r.Payment, r.Money.Amount, got.State, got.Reason, in)
		if err != nil {
			return err
		}
		return enter(ctx, tx, e.Card, got)
	})
	return got, err
}

// enter takes a refund off its payment, once it has succeeded, and announces
// what became of it.
func enter(ctx context.Context, tx pgx.Tx, card string, r refund) error {
	switch r.State {
	case checkout.RefundPending:
		return nil
	case checkout.RefundSucceeded:
		_, err := tx.Exec(ctx, `UPDATE sandbox_payments SET refunded = refunded + $2, updated_at = now() WHERE id = $1`, r.Payment, r.Money.Amount)
		if err != nil {
			return err
		}
	}
	return post(ctx, tx, card, notice{ID: "evt_" + r.ID, Payment: r.Payment, Type: "refund." + string(r.State), Refund: r.ID})
}

// decideRefunds ends the pending refunds whose time has come: of one payment, or
// every one.
func (b *Books) decideRefunds(ctx context.Context, payment string) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			UPDATE sandbox_refunds SET state = CASE WHEN card = $2 THEN 'failed' ELSE 'succeeded' END,
				reason = CASE WHEN card = $2 THEN 'account_closed' ELSE '' END
			FROM (SELECT r.id AS due, card FROM sandbox_refunds r JOIN sandbox_payments p ON p.id = payment_id
				WHERE r.state = 'pending' AND settle_at <= now() AND ($1 = '' OR payment_id = $1) FOR UPDATE OF r `+others(payment)+`) d
			WHERE id = due RETURNING `+refundColumns+`, card`, payment, CardRefundReturned)
		if err != nil {
			return err
		}
		type decided struct {
			refund
			card string
		}
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d decided, err error) {
			return d, row.Scan(&d.ID, &d.Payment, &d.Money.Amount, &d.Money.Currency, &d.State, &d.Reason, &d.card)
		})
		if err != nil {
			return err
		}
		for _, d := range all {
			if err := enter(ctx, tx, d.card, d.refund); err != nil {
				return err
			}
		}
		return nil
	})
}

const refundColumns = `id, payment_id, amount, (SELECT currency FROM sandbox_payments p WHERE p.id = payment_id), state, reason`

func scanRefund(row pgx.Row) (r refund, err error) {
	err = row.Scan(&r.ID, &r.Payment, &r.Money.Amount, &r.Money.Currency, &r.State, &r.Reason)
	return r, err
}

// step runs a change of payments, returns those it changed and announces their
// states, together.
func (b *Books) step(ctx context.Context, sql string, args ...any) (changed []entry, err error) {
	err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		changed, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (entry, error) { return scanEntry(row) })
		if err != nil {
			return err
		}
		for _, e := range changed {
			if err := announce(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	return changed, err
}

func announce(ctx context.Context, tx pgx.Tx, e entry) error {
	return post(ctx, tx, e.Card, notice{ID: eventID(e.ID, e.State), Payment: e.ID, Type: kind(e.State)})
}

// post has the webhook about a step sent, as often as the card says, once its
// provider answers; of a card that reverses them, that a payment is authorised
// after whatever came of it.
func post(ctx context.Context, tx pgx.Tx, card string, n notice) error {
	waits := card == CardReversed && n.Type == kind(checkout.PaymentAuthorized)
	for range webhooks(card) {
		_, err := tx.Exec(ctx, `INSERT INTO sandbox_webhooks (event_id, payment_id, type, step, due_at)
			SELECT $1, id, $3, $4, CASE WHEN $5 THEN 'infinity' ELSE greatest(now(), back_at) END FROM sandbox_payments WHERE id = $2`,
			n.ID, n.Payment, n.Type, n.Refund, waits)
		if err != nil {
			return err
		}
	}
	return nil
}

// dueWebhook is a webhook to be sent now.
type dueWebhook struct {
	row int64
	notice
}

// claim takes webhooks that are due. Each becomes due again after 1, 2, 4 …
// 60 s, whatever happens to the process that took it.
func (b *Books) claim(ctx context.Context, limit int) ([]dueWebhook, error) {
	rows, err := b.pool.Query(ctx, `
		UPDATE sandbox_webhooks SET tries = tries + 1, due_at = now() + least(60, 2 ^ least(tries, 6)) * interval '1 second'
		WHERE id IN (SELECT id FROM sandbox_webhooks WHERE sent_at IS NULL AND due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
		RETURNING id, event_id, payment_id, type, step`, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d dueWebhook, err error) {
		return d, row.Scan(&d.row, &d.ID, &d.Payment, &d.Type, &d.Refund)
	})
}

// sent notes that a webhook has arrived, and lets go of one that waited for it.
func (b *Books) sent(ctx context.Context, row int64) error {
	_, err := b.pool.Exec(ctx, `
		WITH arrived AS (UPDATE sandbox_webhooks SET sent_at = now() WHERE id = $1 RETURNING payment_id)
		UPDATE sandbox_webhooks SET due_at = now()
		WHERE payment_id = (SELECT payment_id FROM arrived) AND sent_at IS NULL AND due_at = 'infinity'`, row)
	return err
}

// Account is a payment in the ledger.
type Account struct {
	Key      string // the attempt's
	Card     string
	Amount   int64 // minor units
	Currency string
	State    checkout.PaymentState
	Refunded int64 // of what was captured
}

// Taken is what its owner is poorer by.
func (a Account) Taken() int64 {
	if a.State != checkout.PaymentCaptured {
		return 0
	}
	return a.Amount - a.Refunded
}

// Ledger returns every payment there is, the oldest first: what happened to the
// money.
func (b *Books) Ledger(ctx context.Context) ([]Account, error) {
	rows, err := b.pool.Query(ctx, `SELECT idempotency_key, card, amount, currency, state, refunded FROM sandbox_payments ORDER BY created_at, id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Account])
}
