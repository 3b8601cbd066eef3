package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"seatcast/checkout"
	"seatcast/holds"
	"seatcast/migrations"
	"seatcast/web"
)

type checkCmd struct {
	database
	Redis string `env:"SEATCAST_REDIS_URL" name:"redis" placeholder:"URL" help:"The Redis of the nodes, to compare with the database (default: none is looked at)."`
	Event string `placeholder:"ID" help:"One event's books (default: all)."`
	JSON  bool   `name:"json" help:"One JSON object."`
}

// Help is printed below the flags.
func (checkCmd) Help() string {
	return "Changes nothing. Ends with 0 when all is well but for notes, with 1 when something is wrong, and with 2 when it could not be looked at."
}

// checkFor bounds all of a check.
const checkFor = 5 * time.Minute

// checkReport is all that a check has to say.
type checkReport struct {
	Verdict  string             `json:"verdict"`            // ok or wrong
	Versions map[string]string  `json:"versions,omitempty"` // of the servers
	Events   []checkout.Balance `json:"events"`
	Findings []finding          `json:"findings"`
}

// foundError says that a check has found something.
type foundError struct{ what string }

func (e *foundError) Error() string { return e.what }

// exitCode is what a process ends with that was called with args: a check tells
// what it has found from that it could not look.
func exitCode(args []string, err error) int {
	switch {
	case err == nil:
		return 0
	case len(args) > 0 && args[0] == "check" && !errors.As(err, new(*foundError)):
		return 2
	}
	return 1
}

// Run looks and prints.
func (c checkCmd) Run(ctx context.Context, s *streams) error {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	pool, err := openPool(ctx, c.Postgres)
	if err != nil {
		return err
	}
	defer pool.Close()
	l := &look{pool: pool, event: c.Event}
	if c.Redis != "" {
		if l.rdb, err = holds.Client(c.Redis); err != nil {
			return err
		}
		defer func() { _ = l.rdb.Close() }() // nothing is buffered in it
	}
	r, err := l.all(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(s.out).Encode(r)
	} else {
		err = r.print(s.out)
	}
	if err == nil && r.Verdict != "ok" {
		err = &foundError{r.count()}
	}
	return err
}

// look is a check under way.
type look struct {
	pool  *pgxpool.Pool
	rdb   redis.UniversalClient // nil: there is none to look at
	event string                // "": all

	versions map[string]string
	clocks   []clock
	found    []finding
}

// all looks at everything that can be looked at. Whatever Postgres does not
// tell is an error.
func (l *look) all(ctx context.Context) (r checkReport, err error) {
	l.versions, l.clocks, l.found = map[string]string{}, []clock{{of: "this machine"}}, []finding{}
	r.Events = []checkout.Balance{}
	usable, err := l.schema(ctx)
	if err != nil {
		return r, err
	}
	if usable {
		if r.Events, err = l.books(ctx); err != nil {
			return r, err
		}
	}
	if l.rdb != nil {
		if err := l.redis(ctx, usable); err != nil {
			return r, err
		}
	}
	l.found = append(l.found, apart(l.clocks)...)
	rank := map[severity]int{isError: 0, isWarning: 1, isNote: 2}
	slices.SortStableFunc(l.found, func(a, b finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	r.Verdict, r.Versions, r.Findings = "ok", l.versions, l.found
	if slices.ContainsFunc(l.found, func(f finding) bool { return f.Severity != isNote }) {
		r.Verdict = "wrong"
	}
	return r, nil
}

// schema looks at what the database is, and says whether it has what this
// program asks of it.
func (l *look) schema(ctx context.Context) (usable bool, err error) {
	now, err := readClock("Postgres", func() (t time.Time, err error) {
		var version string
		err = l.pool.QueryRow(ctx, `SELECT clock_timestamp(), current_setting('server_version')`).Scan(&t, &version)
		l.versions["postgres"] = version
		return t, err
	})
	if err != nil {
		return false, fmt.Errorf("postgres: %w", err)
	}
	l.clocks = append(l.clocks, now)
	err = migrations.Check(ctx, l.pool)
	var told *migrations.SchemaError
	if err != nil && !errors.As(err, &told) {
		return false, err
	}
	switch {
	case told != nil && !told.Newer():
		l.found = append(l.found, finding{isError, "schema", told.Error(), "nodes do not start on it, and the books are not looked at", "run seatcast migrate", 0, nil})
		return false, nil
	case told != nil:
		l.found = append(l.found, finding{isWarning, "schema", told.Error(), "what is newer is not looked at", "use the seatcast of the nodes", 0, nil})
	}
	return true, nil
}

// books looks at the settings of the database and at what is written in it.
func (l *look) books(ctx context.Context) ([]checkout.Balance, error) {
	unsafe, err := postgresSettings(ctx, l.pool)
	if err != nil {
		return nil, fmt.Errorf("read the settings of Postgres: %w", err)
	}
	l.found = append(l.found, unsafe...)
	ledger, err := checkout.NewStore(l.pool)
	if err != nil {
		return nil, err
	}
	var events []string
	if l.event != "" {
		events = []string{l.event}
	}
	report, err := ledger.Check(ctx, events...)
	if err != nil {
		return nil, err
	}
	if l.event != "" && len(report.Balances) == 0 {
		return nil, fmt.Errorf("there is no event %q: see seatcast event list", l.event)
	}
	for _, f := range report.Faults {
		how := isError
		if f.Late {
			how = isWarning
		}
		l.found = append(l.found, finding{how, f.Kind, f.What, f.Why, f.Do, f.Count, f.Rows})
	}
	return report.Balances, nil
}

// redis looks at Redis, and whether it shows what the books say.
func (l *look) redis(ctx context.Context, usable bool) error {
	if err := l.rdb.Ping(ctx).Err(); err != nil {
		l.found = append(l.found, finding{isError, "redis", "does not answer: " + err.Error(),
			"nothing is held; after some seconds bookings are taken without holds", "look whether it runs, and whether the URL is the nodes'", 0, nil})
		return nil
	}
	r := newReadiness(&stores{pool: l.pool, rdb: l.rdb}, nil)
	for _, one := range []struct {
		check func(context.Context) error
		finding
	}{
		{r.redisEviction, finding{Severity: isError, Name: "redis_eviction", Why: "holds are keys that end by themselves: a Redis that evicts gives held seats away",
			Do: "set maxmemory-policy noeviction"}},
		{r.redisMemory, finding{Severity: isWarning, Name: "redis_memory", Why: "at its limit Redis refuses every hold", Do: "raise maxmemory"}},
		{r.redisPersistence, finding{Severity: isNote, Name: "redis_persistence", Why: "holds that nobody is paying for are in Redis alone",
			Do: "set appendonly yes, or add a replica"}},
	} {
		err := one.check(ctx)
		if err == nil {
			continue
		}
		if one.Severity == isError && errors.Is(err, web.ErrWarning) { // it cannot be read
			one.Severity = isWarning
		}
		one.What = err.Error()
		l.found = append(l.found, one.finding)
	}
	if err := l.servers(ctx, r); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	if !usable {
		return nil
	}
	return l.compare(ctx)
}

// servers reads the release and the clock of each Redis.
func (l *look) servers(ctx context.Context, r *readiness) error {
	var mu sync.Mutex // those of a cluster are asked at once
	return r.eachRedis(ctx, func(ctx context.Context, rdb redis.Cmdable) error {
		info := rdb.InfoMap(ctx, "server")
		if err := info.Err(); err != nil {
			return err
		}
		name := "Redis"
		if one, ok := rdb.(*redis.Client); ok && one.Options().Network == "tcp" {
			name += " " + one.Options().Addr
		}
		now, err := readClock(name, func() (time.Time, error) { return rdb.Time(ctx).Result() })
		if err != nil {
			return err
		}
		version := info.Item("Server", "redis_version")
		mu.Lock()
		defer mu.Unlock()
		l.clocks = append(l.clocks, now)
		l.versions[strings.ToLower(name)] = version
		major, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(major); err == nil && n < oldestRedis {
			l.found = append(l.found, finding{isError, "redis_version", "it is Redis " + version, "nothing here is tested with it",
				fmt.Sprintf("upgrade to %d or newer", oldestRedis), 0, nil})
		}
		return nil
	})
}

// compare looks for what Redis shows otherwise than the books, of one event or
// of all that are not over.
func (l *look) compare(ctx context.Context) error {
	ledger, err := checkout.NewStore(l.pool)
	if err != nil {
		return err
	}
	rows, err := l.pool.Query(ctx, `SELECT id, unheld_since IS NOT NULL FROM events WHERE id = $1 OR $1 = '' AND starts_at > now() - interval '1 day' ORDER BY id`, l.event)
	if err != nil {
		return err
	}
	var (
		event           string
		away            bool
		events          []string
		unheld, differs []string
	)
	if _, err := pgx.ForEachRow(rows, []any{&event, &away}, func() error {
		if away {
			unheld = append(unheld, event)
		} else {
			events = append(events, event)
		}
		return nil
	}); err != nil {
		return err
	}
	shows := holds.New(l.rdb, ledger, nil, slog.New(slog.DiscardHandler)) // nothing is announced: it is only read
	for _, event := range events {
		differ, err := ledger.Compare(ctx, event, shows)
		if err != nil {
			return err
		}
		for _, one := range differ {
			differs = append(differs, event+": "+one)
		}
	}
	if len(unheld) > 0 {
		l.found = append(l.found, finding{isWarning, "unheld", "events take bookings without holds", "their seats go to whoever pays first",
			"look whether Redis answers the nodes", len(unheld), unheld[:min(len(unheld), mostRows)]})
	}
	if len(differs) > 0 {
		l.found = append(l.found, finding{isError, "redis_differs", "Redis shows other than the books, and no change is due", "shoppers see seats as free that are sold, or as gone that are free",
			"a worker tells Redis again within half a minute of an event that sells: look whether one runs", len(differs), differs[:min(len(differs), mostRows)]})
	}
	return nil
}

// mostRows is how many rows of a finding are told.
const mostRows = 20

func (r checkReport) count() string {
	n := map[severity]int{}
	for _, f := range r.Findings {
		n[f.Severity]++
	}
	return counted(n[isError], "error") + ", " + counted(n[isWarning], "warning") + ", " + counted(n[isNote], "note")
}

// counted is so many of a thing, in words.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func (r checkReport) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, server := range slices.Sorted(maps.Keys(r.Versions)) {
		say(table, "%s\t%s\n", server, r.Versions[server]) // errors show at Flush
	}
	say(table, "\nEVENT\tSEATS SOLD\tPLACES SOLD\tLIVE TICKETS\tMONEY\n")
	for _, e := range r.Events {
		say(table, "%s\t%d\t%d\t%d\t%s\n", e.Event, e.Seats, e.Places, e.Tickets, e.Money)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, f := range r.Findings {
		say(w, "\n%s %s: %s", strings.ToUpper(string(f.Severity)), f.Name, f.What)
		if f.Count > 0 {
			say(w, " (%d)", f.Count)
		}
		say(w, "\n  why: %s\n  do:  %s\n", f.Why, f.Do)
		for _, row := range f.Rows {
			say(w, "  - %s\n", row)
		}
		if more := f.Count - len(f.Rows); more > 0 {
			say(w, "  - and %d more\n", more)
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", cmp.Or(map[bool]string{true: "nothing is wrong"}[len(r.Findings) == 0], r.count()))
	return err
}
