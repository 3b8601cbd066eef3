package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// finding is what a check has found: what is so, why that matters, and what to
// do about it.
type finding struct {
	Severity severity `json:"severity"`
	Name     string   `json:"name"`
	What     string   `json:"what"`
	Why      string   `json:"why"`
	Do       string   `json:"do"`
	Count    int      `json:"count,omitempty"` // of what is concerned, when it can be counted
	Rows     []string `json:"rows,omitempty"`  // the first of it
}

// severity says how bad it is: an error is wrong now, a warning may become so,
// and a note is worth knowing.
type severity string

const (
	isError   severity = "error"
	isWarning severity = "warning"
	isNote    severity = "note"
)

// oldestPostgres and oldestRedis are the releases that everything is tested with.
const (
	oldestPostgres = 15
	oldestRedis    = 7
)

// pgSettings are the settings of a database server by their names, with what
// else says whether they are safe.
type pgSettings struct {
	of       map[string]string
	standbys int
	nodes    int   // that take bookings now
	pool     int32 // connections of each at most
}

// postgresSettings says what of a database's settings a sale should not be
// trusted to.
func postgresSettings(ctx context.Context, pool *pgxpool.Pool) ([]finding, error) {
	s := pgSettings{of: map[string]string{}, pool: pool.Config().MaxConns}
	rows, err := pool.Query(ctx, `SELECT name, setting FROM pg_settings`)
	if err != nil {
		return nil, err
	}
	var name, setting string
	if _, err := pgx.ForEachRow(rows, []any{&name, &setting}, func() error { s.of[name] = setting; return nil }); err != nil {
		return nil, err
	}
	err = pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup'),
		(SELECT count(*) FROM nodes WHERE redis_ok_at > now() - interval '10 seconds')`).Scan(&s.standbys, &s.nodes)
	return s.findings(), err
}

func (s pgSettings) findings() (all []finding) {
	for _, f := range []struct {
		bad bool
		finding
	}{
		{s.of["fsync"] == "off", finding{isError, "postgres_fsync", "fsync is off",
			"a crash of the machine may forget sales that were confirmed, or damage the database", "set fsync = on", 0, nil}},
		{s.of["full_page_writes"] == "off", finding{isError, "postgres_full_page_writes", "full_page_writes is off",
			"a crash of the machine may damage the database", "set full_page_writes = on", 0, nil}},
		{s.of["synchronous_commit"] == "off", finding{isError, "postgres_synchronous_commit", "synchronous_commit is off",
			"a crash forgets the sales of its last moments, whose buyers were told", "set synchronous_commit = on", 0, nil}},
		{s.of["synchronous_commit"] == "local" && s.standbys > 0, finding{isError, "postgres_synchronous_commit", "synchronous_commit is local and there are standbys",
			"a failover forgets the sales the standby had not heard of", "set synchronous_commit = on", 0, nil}},
		{s.of["synchronous_standby_names"] == "" && s.standbys > 0, finding{isError, "postgres_standbys", "there are standbys and synchronous_standby_names is empty",
			"a failover forgets the sales the standby had not heard of", "name a standby in synchronous_standby_names, and fail over to no other", 0, nil}},
		{s.of["default_transaction_isolation"] != "read committed", finding{isError, "postgres_isolation",
			fmt.Sprintf("default_transaction_isolation is %q", s.of["default_transaction_isolation"]),
			"payments of neighbours fail at each other's locks instead of waiting", "set default_transaction_isolation = 'read committed'", 0, nil}},
		{s.of["default_transaction_read_only"] == "on", finding{isError, "postgres_read_only", "default_transaction_read_only is on",
			"nothing can be sold", "set it to off, or lead the nodes to the primary", 0, nil}},
		{s.left() < s.wanted(), finding{isWarning, "postgres_connections",
			fmt.Sprintf("%d connections are for everybody, and %d nodes that take bookings open up to %d", s.left(), max(s.nodes, 1), s.wanted()),
			"in a rush payments fail because no connection is left", "raise max_connections, or set pool_max_conns in the nodes' URL", 0, nil}},
		{s.version() < oldestPostgres, finding{isError, "postgres_version", fmt.Sprintf("it is Postgres %d", s.version()),
			"nothing here is tested with it", fmt.Sprintf("upgrade to %d or newer", oldestPostgres), 0, nil}},
		{s.of["data_checksums"] == "off", finding{isNote, "postgres_checksums", "data_checksums is off",
			"a page that a disk has damaged is read as if it were right", "stop it, run pg_checksums --enable, start it", 0, nil}},
	} {
		if f.bad {
			all = append(all, f.finding)
		}
	}
	return all
}

func (s pgSettings) number(name string) int {
	n, _ := strconv.Atoi(s.of[name]) // Postgres wrote it; what it has not is 0
	return n
}

func (s pgSettings) version() int { return s.number("server_version_num") / 10_000 }

// left is how many connections there are for whoever is no superuser.
func (s pgSettings) left() int {
	return s.number("max_connections") - s.number("superuser_reserved_connections") - s.number("reserved_connections")
}

// wanted is how many the nodes open at most that are known to run.
func (s pgSettings) wanted() int { return max(s.nodes, 1) * int(s.pool) }

// clock is somebody's, beside this machine's.
type clock struct {
	of    string
	ahead time.Duration
	blur  time.Duration // it may be so much more or less
}

// clocksApart is how far two clocks may be from each other.
const clocksApart = time.Second

// readClock compares a clock with this machine's. Half the time that asking
// took is what is not known.
func readClock(of string, ask func() (time.Time, error)) (clock, error) {
	asked := time.Now()
	there, err := ask()
	took := time.Since(asked)
	return clock{of, there.Sub(asked.Add(took / 2)), took / 2}, err
}

// apart says which clocks are certainly too far from each other.
func apart(clocks []clock) (all []finding) {
	var rows []string
	for i, a := range clocks {
		for _, b := range clocks[:i] {
			if d := a.ahead - b.ahead; d.Abs()-a.blur-b.blur > clocksApart {
				rows = append(rows, fmt.Sprintf("%s is %v ahead of %s", a.of, d.Round(time.Millisecond), b.of))
			}
		}
	}
	if rows == nil {
		return nil
	}
	return []finding{{isWarning, "clocks", "clocks are more than a second apart",
		"a hold ends by the clock of Redis, and whether it was in time is judged by that of Postgres; session tokens are judged by the nodes'",
		"run a time daemon on every machine", len(rows), rows}}
}
