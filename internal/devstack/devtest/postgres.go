package devtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/internal/devstack"
	"seatcast/migrations"
)

const template = "template_seatcast"

// postgres is the server this binary shares, with a migrated template.
type postgres struct {
	server *devstack.Postgres
}

// Postgres is a pool on a fresh migrated database of this test alone, dropped
// when the test ends.
func Postgres(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(tb.Context(), PostgresURL(tb))
	must(tb, err)
	tb.Cleanup(pool.Close)
	return pool
}

// PostgresURL is the address of a fresh migrated database of this test alone,
// dropped when the test ends.
func PostgresURL(tb testing.TB) string {
	tb.Helper()
	pg := once(tb, &shared.postgres, startPostgres)
	name := fmt.Sprintf("test_%d", serial.Add(1))
	must(tb, pg.exec(tb.Context(), "CREATE DATABASE "+name+" TEMPLATE "+template))
	tb.Cleanup(func() {
		if err := pg.exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Error(err)
		}
	})
	return pg.server.URL(name)
}

func startPostgres(ctx context.Context, h *devstack.Home) (*postgres, error) {
	server, err := h.Postgres(ctx, devstack.PostgresOptions{Fast: true})
	if err != nil {
		return nil, err
	}
	url, err := server.Database(ctx, template)
	if err == nil {
		err = migrations.Up(ctx, url)
	}
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &postgres{server: server}, nil
}

func (p *postgres) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, p.server.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
