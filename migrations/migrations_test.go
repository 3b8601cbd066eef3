package migrations_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"seatcast/internal/devstack/devtest"
	"seatcast/migrations"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// empty is the address of a database without a schema, and a pool on it.
func empty(t *testing.T) (string, *pgxpool.Pool) {
	t.Helper()
	pool := devtest.Postgres(t)
	if _, err := pool.Exec(t.Context(), `CREATE DATABASE empty TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), `DROP DATABASE empty WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	at, err := url.Parse(pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/empty"
	on, err := pgxpool.New(t.Context(), at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(on.Close)
	return at.String(), on
}

func TestNodesThatStartTogetherMigrateOnce(t *testing.T) {
	at, pool := empty(t)
	var nodes errgroup.Group
	for range 5 {
		nodes.Go(func() error { return migrations.Up(t.Context(), at) })
	}
	if err := nodes.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), at); err != nil {
		t.Errorf("a start later: %v", err)
	}
	if err := migrations.Check(t.Context(), pool); err != nil {
		t.Errorf("what has been migrated is not what is wanted: %v", err)
	}
}

func TestADatabaseBehindOrAheadOfTheProgramIsTold(t *testing.T) {
	at, pool := empty(t)
	check := func(newer bool, says ...string) {
		t.Helper()
		err := migrations.Check(t.Context(), pool)
		var told *migrations.SchemaError
		if !errors.As(err, &told) || told.Newer() != newer {
			t.Fatalf("%v, and newer is to be %v", err, newer)
		}
		for _, word := range says {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("it does not say %q: %v", word, err)
			}
		}
	}
	check(false, "does not have the schema", "run seatcast migrate")
	if err := migrations.Up(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		sql   string
		newer bool
		says  string
	}{
		{`UPDATE goose_db_version SET version_id = 9999 WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`, true, "version 9999 of the schema"},
		{`UPDATE river_migration SET version = 9999 WHERE version = (SELECT max(version) FROM river_migration)`, true, "version 9999 of the schema"},
		{`DELETE FROM goose_db_version WHERE version_id > 2`, false, "version 2 of the schema"},
		{`UPDATE goose_db_version SET version_id = 9999 WHERE version_id = 2`, true, "version 9999 of the schema"},
		{`DELETE FROM river_migration WHERE version > 1`, false, "version 1 of the job queue's schema"},
		{`DROP TABLE river_migration`, false, "does not have the job queue's schema"},
	} {
		if _, err := pool.Exec(t.Context(), change.sql); err != nil {
			t.Fatal(err)
		}
		check(change.newer, change.says)
	}
	pool.Close()
	if err := migrations.Check(t.Context(), pool); err == nil || errors.As(err, new(*migrations.SchemaError)) {
		t.Errorf("a database that cannot be asked: %v", err)
	}
}
