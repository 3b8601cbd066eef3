package outgoing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"seatcast/internal/pg"
)

// store is what Postgres keeps of webhooks.
type store struct {
	pool   *pgxpool.Pool
	jobs   *river.Client[pgx.Tx] // inserts only
	sealer sealer
}

// patience is how long a call waits for Postgres.
const patience = 3 * time.Second

func (s *store) within(ctx context.Context, call string, do func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return pg.Said(call, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return do(ctx, tx) }))
}

const webhookColumns = `id, url, types, events, enabled, disabled_why, failing_since, created_at`

func scanWebhook(row pgx.CollectableRow) (w Webhook, err error) {
	err = row.Scan(&w.ID, &w.URL, &w.Types, &w.Events, &w.Enabled, &w.DisabledWhy, &w.FailingSince, &w.CreatedAt)
	return w, err
}

// notText is the verdict on an id with a zero byte, or that is not UTF-8.
const notText = "22021"

// one returns the webhook a query names, or ErrNoWebhook.
func one(ctx context.Context, tx pgx.Tx, sql string, args ...any) (Webhook, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return Webhook{}, err
	}
	w, err := pgx.CollectExactlyOneRow(rows, scanWebhook)
	var refused *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &refused) && refused.Code == notText {
		err = ErrNoWebhook
	}
	return w, err
}

func (s *store) list(ctx context.Context) (all []Webhook, err error) {
	err = s.within(ctx, "list webhooks", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+webhookColumns+` FROM webhooks ORDER BY created_at, id`)
		if err == nil {
			all, err = pgx.CollectRows(rows, scanWebhook)
		}
		return err
	})
	return all, err
}

func (s *store) get(ctx context.Context, id string) (w Webhook, err error) {
	err = s.within(ctx, "read webhook "+id, func(ctx context.Context, tx pgx.Tx) error {
		w, err = one(ctx, tx, `SELECT `+webhookColumns+` FROM webhooks WHERE id = $1`, id)
		return err
	})
	return w, err
}

// unknown are those ids that no event has.
func (s *store) unknown(ctx context.Context, events []string) (none []string, err error) {
	if len(events) == 0 {
		return nil, nil
	}
	err = s.within(ctx, "look for events", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT named FROM unnest($1::text[]) named WHERE NOT EXISTS (SELECT FROM events WHERE id = named)`, events)
		if err == nil {
			none, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return none, err
}

// create makes a webhook with a secret, which it returns this once. ErrTooMany.
func (s *store) create(ctx context.Context, n Webhook) (w Webhook, err error) {
	key, id := newSecret(), newID("wh_")
	err = s.within(ctx, "create a webhook", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE webhooks IN SHARE ROW EXCLUSIVE MODE`); err != nil { // they are counted one after the other
			return err
		}
		w, err = one(ctx, tx, `INSERT INTO webhooks (id, url, types, events) SELECT $1, $2, $3, $4
			WHERE (SELECT count(*) FROM webhooks) < $5 RETURNING `+webhookColumns, id, n.URL, n.Types, n.Events, mostWebhooks)
		if errors.Is(err, ErrNoWebhook) {
			return ErrTooMany
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO webhook_secrets (webhook_id, sealed) VALUES ($1, $2)`, id, s.sealer.seal(id, key))
		return err
	})
	w.Secret = secretText(key)
	return w, err
}

// change is what an operator changes of a webhook; nil: nothing.
type change struct {
	URL     *string
	Types   *[]Type // of nil: all
	Events  *[]string
	Enabled *bool
}

func (s *store) change(ctx context.Context, id string, c change) (w Webhook, err error) {
	var types []Type
	if c.Types != nil {
		types = *c.Types
	}
	var events []string
	if c.Events != nil {
		events = *c.Events
	}
	err = s.within(ctx, "change webhook "+id, func(ctx context.Context, tx pgx.Tx) error {
		w, err = one(ctx, tx, `UPDATE webhooks SET url = coalesce($2, url), types = CASE WHEN $3 THEN $4 ELSE types END,
				events = CASE WHEN $5 THEN $6 ELSE events END, enabled = coalesce($7, enabled),
				disabled_why = CASE WHEN $7 IS NULL THEN disabled_why ELSE '' END, failing_since = CASE WHEN $7 THEN NULL ELSE failing_since END
			WHERE id = $1 RETURNING `+webhookColumns, id, c.URL, c.Types != nil, types, c.Events != nil, events, c.Enabled)
		return err
	})
	if err == nil && !w.Enabled {
		err = s.bury(ctx, id)
	}
	return w, err
}

// disable disables a webhook. False: it was already.
func (s *store) disable(ctx context.Context, id, why string) (did bool, err error) {
	err = s.within(ctx, "disable webhook "+id, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE webhooks SET enabled = false, disabled_why = $2 WHERE id = $1 AND enabled`, id, why)
		did = tag.RowsAffected() == 1
		return err
	})
	if err == nil {
		err = s.bury(ctx, id)
	}
	return did, err
}

// bury makes what is pending of a webhook that is disabled dead. It is no part of
// the transaction that disables it: whoever notes a try locks the delivery first. A
// job of what it has missed buries that.
func (s *store) bury(ctx context.Context, id string) error {
	return s.within(ctx, "bury deliveries of "+id, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET state = 'dead', turn = turn + 1 WHERE id IN (
			SELECT d.id FROM webhook_deliveries d JOIN webhooks w ON w.id = webhook_id
			WHERE webhook_id = $1 AND state = 'pending' AND NOT enabled ORDER BY d.id FOR UPDATE OF d)`, id)
		return err
	})
}

// mostDeleted is how many deliveries are deleted at once.
const mostDeleted = 1000

// remove deletes the log of a webhook, a part at a time, and then the webhook: while
// that is being deleted every sale that is to tell it of something waits.
func (s *store) remove(ctx context.Context, id string) error {
	if _, err := s.get(ctx, id); err != nil {
		return err
	}
	for n := int64(mostDeleted); n == mostDeleted; {
		err := s.within(ctx, "delete deliveries of "+id, func(ctx context.Context, tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `DELETE FROM webhook_deliveries WHERE id IN (
				SELECT id FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY id LIMIT $2 FOR UPDATE)`, id, mostDeleted)
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.within(ctx, "delete webhook "+id, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM webhooks WHERE id = $1`, id)
		return err
	})
}

// rotate replaces the secret of a webhook. The old one signs beside it until then.
// At most two that were replaced do: each is a signature more.
func (s *store) rotate(ctx context.Context, id string) (w Webhook, until time.Time, err error) {
	key := newSecret()
	err = s.within(ctx, "rotate the secret of "+id, func(ctx context.Context, tx pgx.Tx) error {
		if w, err = one(ctx, tx, `SELECT `+webhookColumns+` FROM webhooks WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM webhook_secrets WHERE webhook_id = $1 AND ends_at IS NOT NULL AND (ends_at <= now()
			OR id NOT IN (SELECT id FROM webhook_secrets WHERE webhook_id = $1 AND ends_at IS NOT NULL ORDER BY id DESC LIMIT 1))`, id); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `UPDATE webhook_secrets SET ends_at = now() + $2::interval
			WHERE webhook_id = $1 AND ends_at IS NULL RETURNING ends_at`, id, oldSecret).Scan(&until)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO webhook_secrets (webhook_id, sealed) VALUES ($1, $2)`, id, s.sealer.seal(id, key))
		return err
	})
	w.Secret = secretText(key)
	return w, until, err
}

// test writes a message to one webhook, whatever it wants, and returns the number
// of its delivery. ErrNoWebhook, ErrDisabled.
func (s *store) test(ctx context.Context, id string) (delivery int64, err error) {
	err = s.within(ctx, "test webhook "+id, func(ctx context.Context, tx pgx.Tx) error {
		w, err := one(ctx, tx, `SELECT `+webhookColumns+` FROM webhooks WHERE id = $1 FOR KEY SHARE`, id)
		if err != nil {
			return err
		}
		if !w.Enabled {
			return ErrDisabled
		}
		var now time.Time
		if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
			return err
		}
		body, err := envelope{ping, now.UTC(), map[string]string{"webhook": id}}.text()
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `WITH m AS (INSERT INTO webhook_messages (id, type, event_id, body) VALUES ($1, $2, '', $3))
			INSERT INTO webhook_deliveries (message_id, webhook_id, state) VALUES ($1, $4, 'pending') RETURNING id`,
			newID("msg_"), ping, body, id).Scan(&delivery)
		if err != nil {
			return err
		}
		_, err = s.jobs.InsertTx(ctx, tx, sendArgs{Delivery: delivery}, sendOpts(w.FailingSince != nil, time.Time{}))
		return err
	})
	return delivery, err
}

// again has a delivery sent anew, whatever became of it. ErrNoDelivery, ErrDisabled.
func (s *store) again(ctx context.Context, delivery int64) error {
	return s.within(ctx, fmt.Sprint("deliver again ", delivery), func(ctx context.Context, tx pgx.Tx) error {
		var enabled bool
		err := tx.QueryRow(ctx, `SELECT enabled FROM webhook_deliveries d JOIN webhooks w ON w.id = webhook_id WHERE d.id = $1`, delivery).Scan(&enabled)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoDelivery
		case err == nil && !enabled:
			return ErrDisabled
		case err != nil:
			return err
		}
		_, err = s.requeue(ctx, tx, `id = $1`, delivery)
		return err
	})
}

// mostAgain is how many deliveries are sent anew by one call.
const mostAgain = 1000

// allAgain has what is dead of a webhook and was written since then sent anew, the
// oldest first, and returns how many that are. ErrNoWebhook, ErrDisabled.
func (s *store) allAgain(ctx context.Context, id string, since time.Time) (n int, err error) {
	err = s.within(ctx, "deliver again what is dead of "+id, func(ctx context.Context, tx pgx.Tx) error {
		w, err := one(ctx, tx, `SELECT `+webhookColumns+` FROM webhooks WHERE id = $1`, id)
		switch {
		case err != nil:
			return err
		case !w.Enabled:
			return ErrDisabled
		}
		n, err = s.requeue(ctx, tx, `webhook_id = $1 AND state = 'dead' AND created_at >= $2`, id, since)
		return err
	})
	return n, err
}

// requeue begins the tries of deliveries anew.
func (s *store) requeue(ctx context.Context, tx pgx.Tx, which string, args ...any) (int, error) {
	rows, err := tx.Query(ctx, fmt.Sprintf(`UPDATE webhook_deliveries SET state = 'pending', turn = turn + 1, tries = 0, due_at = now()
		WHERE id IN (SELECT id FROM webhook_deliveries WHERE %s ORDER BY id LIMIT %d FOR UPDATE) RETURNING id, turn`, which, mostAgain), args...)
	if err != nil {
		return 0, err
	}
	turns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sendArgs])
	if err != nil || len(turns) == 0 {
		return 0, err
	}
	jobs := make([]river.InsertManyParams, len(turns))
	for n, turn := range turns {
		jobs[n] = river.InsertManyParams{Args: turn, InsertOpts: sendOpts(false, time.Time{})}
	}
	_, err = s.jobs.InsertManyTx(ctx, tx, jobs)
	return len(turns), err
}

// query says which deliveries are meant, the newest first.
type query struct {
	Webhook string
	State   State // empty: any
	Before  int64 // 0: from the newest on
	Limit   int
}

// deliveries returns one more than asked for when there is another page.
func (s *store) deliveries(ctx context.Context, q query) (all []Delivery, err error) {
	err = s.within(ctx, "list deliveries of "+q.Webhook, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := one(ctx, tx, `SELECT `+webhookColumns+` FROM webhooks WHERE id = $1`, q.Webhook); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT d.id, m.id, m.type, m.event_id, state, d.created_at, CASE state WHEN 'pending' THEN due_at END, body,
				(SELECT coalesce(jsonb_agg(jsonb_build_object('at', at, 'status', status, 'ms', ms, 'error', error, 'answer', answer) ORDER BY t.id), '[]')
					FROM webhook_tries t WHERE delivery_id = d.id)
			FROM webhook_deliveries d JOIN webhook_messages m ON m.id = message_id
			WHERE webhook_id = $1 AND ($2 = '' OR state = $2) AND ($3 = 0 OR d.id < $3) ORDER BY d.id DESC LIMIT $4`,
			q.Webhook, q.State, q.Before, q.Limit+1)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Delivery, err error) {
			err = row.Scan(&d.ID, &d.MessageID, &d.Type, &d.Event, &d.State, &d.At, &d.NextAt, &d.Body, &d.Tries)
			return d, err
		})
		return err
	})
	return all, err
}

// parcel returns what a turn of a delivery sends; false when another turn has come
// since, or its webhook is disabled or gone.
func (s *store) parcel(ctx context.Context, turn sendArgs) (p parcel, ok bool, err error) {
	err = s.within(ctx, fmt.Sprint("read delivery ", turn.Delivery), func(ctx context.Context, tx pgx.Tx) error {
		var enabled bool
		err := tx.QueryRow(ctx, `SELECT w.id, w.url, w.enabled, m.id, m.type, m.event_id, m.body,
				ARRAY(SELECT sealed FROM webhook_secrets WHERE webhook_id = w.id AND (ends_at IS NULL OR ends_at > now()) ORDER BY id DESC)
			FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id JOIN webhook_messages m ON m.id = d.message_id
			WHERE d.id = $1 AND d.turn = $2 AND d.state = 'pending'`, turn.Delivery, turn.Turn).
			Scan(&p.Webhook, &p.URL, &enabled, &p.Message, &p.Type, &p.Event, &p.Body, &p.Sealed)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return err
		case !enabled:
			_, err := tx.Exec(ctx, `UPDATE webhook_deliveries SET state = 'dead', turn = turn + 1 WHERE id = $1 AND turn = $2`, turn.Delivery, turn.Turn)
			return err
		}
		ok = true
		return nil
	})
	return p, ok, err
}

// note writes a try down, with what it leads to: the job of the next one among
// others. When another turn has come meanwhile it leads to nothing.
func (s *store) note(ctx context.Context, turn sendArgs, p parcel, t Try, jitter func(time.Duration) time.Duration) (o outcome, err error) {
	err = s.within(ctx, fmt.Sprint("note a try of delivery ", turn.Delivery), func(ctx context.Context, tx pgx.Tx) error {
		o = outcome{}
		var (
			mine    bool
			nth     int
			failing time.Duration
		)
		err := tx.QueryRow(ctx, `SELECT turn = $2 AND state = 'pending', tries + 1,
				coalesce(clock_timestamp() - (SELECT failing_since FROM webhooks WHERE id = webhook_id), '0')
			FROM webhook_deliveries WHERE id = $1 FOR UPDATE`, turn.Delivery, turn.Turn).Scan(&mine, &nth, &failing)
		if errors.Is(err, pgx.ErrNoRows) { // deleted meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO webhook_tries (delivery_id, at, status, ms, error, answer) VALUES ($1, $2, $3, $4, $5, $6)`,
			turn.Delivery, t.At, t.Status, t.Ms, t.Error, t.Answer)
		if err != nil || !mine {
			return err
		}
		o = judge(t, p.Type, nth, failing)
		return s.follow(ctx, tx, turn, p.Webhook, o, jitter(o.Wait))
	})
	return o, err
}

func (s *store) follow(ctx context.Context, tx pgx.Tx, turn sendArgs, webhook string, o outcome, wait time.Duration) error {
	var due time.Time
	err := tx.QueryRow(ctx, `UPDATE webhook_deliveries SET state = $2, turn = turn + 1, tries = tries + 1, due_at = clock_timestamp() + $3::interval
		WHERE id = $1 RETURNING due_at`, turn.Delivery, o.State, wait).Scan(&due)
	if err != nil {
		return err
	}
	if o.State == Delivered {
		_, err = tx.Exec(ctx, `UPDATE webhooks SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL`, webhook)
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE webhooks SET failing_since = clock_timestamp() WHERE id = $1 AND failing_since IS NULL`, webhook); err != nil {
		return err
	}
	if o.State == Pending {
		_, err = s.jobs.InsertTx(ctx, tx, sendArgs{turn.Delivery, turn.Turn + 1}, sendOpts(true, due))
	}
	return err
}

// overdue queues pending deliveries anew whose time was a while ago; those that have
// a job keep it. Of very many it looks at any.
func (s *store) overdue(ctx context.Context, by time.Duration) error {
	return s.within(ctx, "look for deliveries without a job", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, turn FROM webhook_deliveries WHERE state = 'pending' AND due_at < now() - $1::interval
			ORDER BY random() LIMIT 500`, by)
		if err != nil {
			return err
		}
		turns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sendArgs])
		if err != nil || len(turns) == 0 {
			return err
		}
		jobs := make([]river.InsertManyParams, len(turns))
		for n, turn := range turns {
			jobs[n] = river.InsertManyParams{Args: turn, InsertOpts: sendOpts(true, time.Time{})}
		}
		_, err = s.jobs.InsertManyTx(ctx, tx, jobs)
		return err
	})
}

// forget deletes messages that are older than so, with the tries of them, unless one
// is still to be sent. It returns how many.
func (s *store) forget(ctx context.Context, keep time.Duration) (n int64, err error) {
	err = s.within(ctx, "forget old messages", func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM webhook_messages WHERE id IN (
			SELECT id FROM webhook_messages m WHERE at < now() - $1::interval
				AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE message_id = m.id AND state = 'pending')
			ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED)`, keep)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// backlog returns how many deliveries are to be sent, and since when the oldest of
// them is.
func (s *store) backlog(ctx context.Context) (n int, age time.Duration, err error) {
	err = s.within(ctx, "count pending deliveries", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*), coalesce(now() - min(created_at), '0') FROM webhook_deliveries WHERE state = 'pending'`).Scan(&n, &age)
	})
	return n, age, err
}
