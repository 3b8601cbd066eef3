// Package migrations holds the schema as numbered SQL files, embedded, and
// brings a database up to it.
package migrations

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed *.sql
var files embed.FS

// Up applies what the database at pgURL lacks: our files first, then the
// tables of the job queue. Nodes that start together take turns, by an advisory
// lock, and the later ones find nothing left to do.
func Up(ctx context.Context, pgURL string) error {
	cfg, err := pgxpool.ParseConfig(pgURL)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	cfg.MaxConns = 4 // the lock holds one while the work needs others
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer pool.Close()
	return locked(ctx, pool, func() error {
		if err := ours(ctx, pool); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if err := river(ctx, pool); err != nil {
			return fmt.Errorf("migrate the job queue: %w", err)
		}
		return nil
	})
}

// locked runs work while one session of the database holds the lock. The lock
// goes with the session, so a migrating node that dies blocks nobody.
func locked(ctx context.Context, pool *pgxpool.Pool, work func() error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	session := conn.Hijack()
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	if _, err := session.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended('seatcast migrations', 0))`); err != nil {
		return fmt.Errorf("migrate: wait for the lock: %w", err)
	}
	return work()
}

func ours(ctx context.Context, pool *pgxpool.Pool) error {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

func river(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
