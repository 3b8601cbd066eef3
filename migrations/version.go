package migrations

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// SchemaError says that a database has another schema than this program was built
// for. An older one cannot be used. A newer one can, until the program is replaced
// too: migrations add, and take away only what no program in use asks for.
type SchemaError struct {
	Of     string // "the schema" or "the job queue's schema"
	Has    int    // its version; 0: there is none
	Wanted int

	query string // what tells Has
}

// Newer says that the database is ahead of the program.
func (e *SchemaError) Newer() bool { return e.Has > e.Wanted }

func (e *SchemaError) Error() string {
	switch {
	case e.Newer():
		return fmt.Sprintf("the database has version %d of %s, and this seatcast knows %d: replace it by the newer one", e.Has, e.Of, e.Wanted)
	case e.Has == 0:
		return fmt.Sprintf("the database does not have %s, of which version %d is wanted: run seatcast migrate", e.Of, e.Wanted)
	}
	return fmt.Sprintf("the database has version %d of %s, and %d is wanted: run seatcast migrate", e.Has, e.Of, e.Wanted)
}

// Check returns nil when Up would find nothing to do and nothing it does not know,
// and a *SchemaError when the database is behind, or else ahead.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	ours, err := newest()
	if err != nil {
		return err
	}
	queue, err := newestOfRiver(pool)
	if err != nil {
		return err
	}
	var ahead error
	for _, part := range []SchemaError{
		{Of: "the schema", Wanted: ours, query: `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`},
		{Of: "the job queue's schema", Wanted: queue, query: `SELECT coalesce(max(version), 0) FROM river_migration WHERE line = 'main'`},
	} {
		if part.Has, err = version(ctx, pool, part.query); err != nil {
			return fmt.Errorf("read the version of %s: %w", part.Of, err)
		}
		switch {
		case part.Has < part.Wanted:
			return &part
		case part.Newer() && ahead == nil:
			ahead = &part
		}
	}
	return ahead
}

// newest is the number of the last of our files.
func newest() (n int, err error) {
	all, err := files.ReadDir(".")
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(all[len(all)-1].Name(), "_") // they come in the order of their names
	return strconv.Atoi(number)
}

func newestOfRiver(pool *pgxpool.Pool) (n int, err error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return 0, err
	}
	for _, m := range migrator.AllVersions() {
		n = max(n, m.Version)
	}
	return n, nil
}

const undefinedTable = "42P01"

// version is what a query of a table of versions says; 0 when there is no table.
func version(ctx context.Context, pool *pgxpool.Pool, query string) (n int, err error) {
	err = pool.QueryRow(ctx, query).Scan(&n)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == undefinedTable {
		return 0, nil
	}
	return n, err
}
