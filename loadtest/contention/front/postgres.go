package front

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// inPostgres is what the attempts in Postgres share.
type inPostgres struct {
	pool  *pgxpool.Pool
	hold  time.Duration
	extra int
}

func openPostgres(ctx context.Context, o Options) (p inPostgres, err error) {
	c, err := pgxpool.ParseConfig(o.Postgres)
	if err != nil {
		return p, fmt.Errorf("postgres: %w", err)
	}
	c.MaxConns, c.MinConns = int32(o.Pool), int32(o.Pool)
	if p.pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return p, fmt.Errorf("postgres: %w", err)
	}
	p.hold, p.extra = o.Hold, o.RoundTrips
	if err := p.schema(ctx, Tickets(Hall(o.Seats))); err != nil {
		p.close()
		return p, fmt.Errorf("postgres: %w", err)
	}
	return p, nil
}

func (p inPostgres) close() { p.pool.Close() }

// schema makes the tables anew: every seat free.
func (p inPostgres) schema(ctx context.Context, seats []string) error {
	_, err := p.pool.Exec(ctx, `
		DROP TABLE IF EXISTS front_seats, front_bookings, front_log;
		CREATE TABLE front_seats (
			id              text PRIMARY KEY,
			status          text NOT NULL DEFAULT 'free',
			holder          text,
			hold_expires_at timestamptz,
			price           bigint NOT NULL DEFAULT 1000
		);
		CREATE INDEX front_seats_holder ON front_seats (holder);
		CREATE TABLE front_bookings (
			id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			seat       text NOT NULL REFERENCES front_seats,
			buyer      text NOT NULL,
			expires_at timestamptz NOT NULL
		);
		CREATE TABLE front_log (
			id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			seat text NOT NULL,
			word text NOT NULL,
			at   timestamptz NOT NULL DEFAULT now()
		)`)
	if err != nil {
		return err
	}
	if _, err = p.pool.Exec(ctx, `INSERT INTO front_seats (id) SELECT unnest($1::text[])`, seats); err != nil {
		return err
	}
	_, err = p.pool.Exec(ctx, `VACUUM ANALYZE front_seats`)
	return err
}

// naive looks first and writes then.
type naive struct {
	inPostgres
	between func() // a test's: between the two
}

func openNaive(ctx context.Context, o Options) (keeper, error) {
	p, err := openPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	return naive{p, func() {}}, nil
}

func (n naive) take(ctx context.Context, user, seat string) (until time.Time, ok bool, err error) {
	err = n.pool.QueryRow(ctx, `SELECT status = 'free' OR hold_expires_at < now() FROM front_seats WHERE id = $1`, seat).Scan(&ok)
	if err != nil || !ok {
		return until, false, err
	}
	n.between()
	err = n.pool.QueryRow(ctx, `
		UPDATE front_seats SET status = 'held', holder = $2, hold_expires_at = now() + $3
		WHERE id = $1
		RETURNING hold_expires_at`, seat, user, n.hold).Scan(&until)
	return until, err == nil, err
}

// conditional has the condition in the UPDATE.
type conditional struct {
	inPostgres
	transaction string
}

func openConditional(ctx context.Context, o Options) (keeper, error) {
	p, err := openPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	return conditional{p, o.Transaction}, nil
}

func (c conditional) take(ctx context.Context, user, seat string) (until time.Time, ok bool, err error) {
	if c.transaction == "simple" {
		return c.update(ctx, c.pool, user, seat)
	}
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) (err error) {
		if c.transaction == "locked" {
			until, ok, err = c.locked(ctx, tx, user, seat)
		} else {
			until, ok, err = c.realistic(ctx, tx, user, seat)
		}
		return err
	})
	return until, ok && err == nil, err
}

// asker is a pool or a transaction.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// update is the statement everybody ends up with.
func (c conditional) update(ctx context.Context, in asker, user, seat string) (until time.Time, ok bool, err error) {
	err = in.QueryRow(ctx, `
		UPDATE front_seats SET status = 'held', holder = $2, hold_expires_at = now() + $3
		WHERE id = $1 AND (status = 'free' OR hold_expires_at < now())
		RETURNING hold_expires_at`, seat, user, c.hold).Scan(&until)
	if errors.Is(err, pgx.ErrNoRows) {
		return until, false, nil
	}
	return until, err == nil, err
}

// realistic looks at the buyer's other holds first, and books and logs with the
// seat in one transaction.
func (c conditional) realistic(ctx context.Context, tx pgx.Tx, user, seat string) (until time.Time, ok bool, err error) {
	var holds int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM front_seats WHERE holder = $1 AND hold_expires_at > now()`, user).Scan(&holds); err != nil {
		return until, false, err
	}
	until, ok, err = c.update(ctx, tx, user, seat)
	if err != nil {
		return until, false, err
	}
	return until, ok, c.carry(ctx, tx, user, seat, until, ok)
}

// locked has everybody wait for the row before it is looked at.
func (c conditional) locked(ctx context.Context, tx pgx.Tx, user, seat string) (until time.Time, ok bool, err error) {
	err = tx.QueryRow(ctx, `SELECT status = 'free' OR hold_expires_at < clock_timestamp() FROM front_seats WHERE id = $1 FOR UPDATE`, seat).Scan(&ok)
	if err != nil {
		return until, false, err
	}
	if ok {
		err = tx.QueryRow(ctx, `
			UPDATE front_seats SET status = 'held', holder = $2, hold_expires_at = clock_timestamp() + $3
			WHERE id = $1
			RETURNING hold_expires_at`, seat, user, c.hold).Scan(&until)
	}
	if err != nil {
		return until, false, err
	}
	return until, ok, c.carry(ctx, tx, user, seat, until, ok)
}

// carry is what else a transaction does once it has its answer: the further
// round trips, and for a hold a booking and a line in a log.
func (c conditional) carry(ctx context.Context, tx pgx.Tx, user, seat string, until time.Time, ok bool) error {
	for range c.extra {
		var price int64
		if err := tx.QueryRow(ctx, `SELECT price FROM front_seats WHERE id = $1`, seat).Scan(&price); err != nil {
			return err
		}
	}
	if !ok {
		return nil
	}
	if _, err := tx.Exec(ctx, `INSERT INTO front_bookings (seat, buyer, expires_at) VALUES ($1, $2, $3)`, seat, user, until); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO front_log (seat, word) VALUES ($1, 'held')`, seat)
	return err
}
