package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/migrations"
)

// checks runs seatcast check and returns what it has found and how it ended.
func checks(t *testing.T, args ...string) (r checkReport, code int) {
	t.Helper()
	args = append([]string{"check", "--json"}, args...)
	var out, wrong strings.Builder
	code = exitCode(args, run(t.Context(), args, &out, &wrong))
	if code == 2 {
		return r, code
	}
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatalf("%v in %s%s", err, &out, &wrong)
	}
	for _, f := range r.Findings {
		if f.What == "" || f.Why == "" || f.Do == "" {
			t.Errorf("a finding should say what, why and what to do: %+v", f)
		}
	}
	return r, code
}

// of are the names of findings as bad as that.
func (r checkReport) of(s severity) (names []string) {
	for _, f := range r.Findings {
		if f.Severity == s {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (r checkReport) finding(name string) finding {
	for _, f := range r.Findings {
		if f.Name == name {
			return f
		}
	}
	return finding{}
}

// privatePostgres is a server of this test alone, with a migrated database.
func privatePostgres(t *testing.T, settings ...string) (database string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "seatcast-check-") // short: it is part of a socket's address
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	home, err := devstack.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	server, err := home.Postgres(t.Context(), devstack.PostgresOptions{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if database, err = server.Database(t.Context(), "seatcast"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	return database
}

func TestACheckOfSafeServersFindsNothing(t *testing.T) {
	t.Parallel()
	devtest.Postgres(t) // or there is none to be had, and this is skipped
	redis := devtest.RedisServer(t, devstack.RedisOptions{Keep: true})
	r, code := checks(t, "--postgres", privatePostgres(t), "--redis", redis.URL())
	if code != 0 || r.Verdict != "ok" || len(r.of(isError))+len(r.of(isWarning)) > 0 {
		t.Errorf("ended with %d: %+v", code, r)
	}
	if r.Versions["postgres"] == "" || r.Versions["redis"] == "" {
		t.Errorf("versions: %v", r.Versions)
	}
}

func TestACheckFindsUnsafeServers(t *testing.T) {
	t.Parallel()
	devtest.Postgres(t)
	database := privatePostgres(t, "fsync=off", "full_page_writes=off", "synchronous_commit=local", "max_connections=18",
		"default_transaction_isolation=repeatable read")
	standby(t, database)
	redis := devtest.RedisServer(t, devstack.RedisOptions{ClockOffset: -3 * time.Second, Settings: []string{"--maxmemory-policy", "allkeys-lru"}})
	r, code := checks(t, "--postgres", database, "--redis", redis.URL())
	wrong := []string{"postgres_fsync", "postgres_full_page_writes", "postgres_isolation", "postgres_standbys", "postgres_synchronous_commit", "redis_eviction"}
	if got := r.of(isError); code != 1 || r.Verdict != "wrong" || !slices.Equal(got, wrong) {
		t.Errorf("ended with %d, and errors %q, not %q", code, got, wrong)
	}
	if got := r.of(isWarning); !slices.Equal(got, []string{"clocks", "postgres_connections"}) {
		t.Errorf("warnings %q", got)
	}
	if got := r.finding("clocks").Rows; len(got) != 2 || !strings.HasPrefix(got[0], "Redis is -") {
		t.Errorf("clocks: %q", got)
	}
	if !slices.Contains(r.of(isNote), "redis_persistence") {
		t.Errorf("notes %q", r.of(isNote))
	}
}

// standby connects to a server as one that follows it does.
func standby(t *testing.T, database string) {
	t.Helper()
	o, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	o.RuntimeParams["replication"] = "true"
	conn, err := pgconn.ConnectConfig(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll(); err != nil {
		t.Fatal(err)
	}
}

func TestACheckFindsWhatTheBooksAndRedisContradict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	ann := h.shopper(n, "ann")
	seats := h.seats(2)
	id := said[string](ann.hold(h.event, "once", seats[0]).want(t, http.StatusCreated, ""), "bookingId")
	ann.pay(id, "paid", "4242424242424242").want(t, http.StatusCreated, "")
	on := []string{"--postgres", h.pool.Config().ConnString(), "--redis", h.redis.URL(), "--event", h.event}
	eventually(t, 10*time.Second, "the sale is in the books and in Redis", func() bool {
		r, _ := checks(t, on...)
		return len(r.Events) == 1 && r.Events[0].Seats == 1 && r.Events[0].Money.Amount > 0 && r.finding("redis_differs").Count == 0
	})
	n.kill() // or it mends what follows
	if _, err := h.pool.Exec(t.Context(), `UPDATE seats SET status = 'sold', booking_id = $1 WHERE ticket_id = $2`, id, seats[1]); err != nil {
		t.Fatal(err)
	}
	r, code := checks(t, on...)
	for _, name := range []string{"seat_without_ticket", "redis_differs"} {
		if f := r.finding(name); f.Severity != isError || f.Count != 1 || len(f.Rows) != 1 || !strings.Contains(f.Rows[0], "seat "+seats[1]) {
			t.Errorf("%s is %+v", name, f)
		}
	}
	if code != 1 {
		t.Errorf("ended with %d", code)
	}
	var text strings.Builder
	err := run(t.Context(), append([]string{"check"}, on...), &text, &text)
	if err == nil || !strings.Contains(text.String(), "ERROR seat_without_ticket: a seat is sold and has no live ticket of its booking (1)") {
		t.Errorf("%v, and says\n%s", err, &text)
	}
}

func TestACheckThatCannotLookSaysSo(t *testing.T) {
	t.Parallel()
	database := devtest.PostgresURL(t)
	for _, args := range [][]string{{"--postgres", "postgres://nobody@127.0.0.1:1/none?connect_timeout=1"}, {"--postgres", "mysql://x"},
		{"--postgres", database, "--event", "none-such"}, {"--nonsense"}} {
		if r, code := checks(t, args...); code != 2 {
			t.Errorf("%v ended with %d: %+v", args, code, r)
		}
	}
}

func TestACheckOfAnOldSchemaSaysWhatToDo(t *testing.T) {
	t.Parallel()
	pool := devtest.Postgres(t)
	if _, err := pool.Exec(t.Context(), `DELETE FROM goose_db_version WHERE version_id > 3`); err != nil {
		t.Fatal(err)
	}
	r, code := checks(t, "--postgres", pool.Config().ConnString())
	if f := r.finding("schema"); code != 1 || f.Severity != isError || f.Do != "run seatcast migrate" {
		t.Errorf("ended with %d: %+v", code, r)
	}
}
