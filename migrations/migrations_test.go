package migrations_test

import (
	"context"
	"net/url"
	"testing"

	"golang.org/x/sync/errgroup"

	"seatcast/internal/devstack/devtest"
	"seatcast/migrations"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestNodesThatStartTogetherMigrateOnce(t *testing.T) {
	pool := devtest.Postgres(t)
	if _, err := pool.Exec(t.Context(), `CREATE DATABASE empty TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), `DROP DATABASE empty WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	empty, err := url.Parse(pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	empty.Path = "/empty"

	var nodes errgroup.Group
	for range 5 {
		nodes.Go(func() error { return migrations.Up(t.Context(), empty.String()) })
	}
	if err := nodes.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), empty.String()); err != nil {
		t.Errorf("a start later: %v", err)
	}
}
