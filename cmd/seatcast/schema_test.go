package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestADatabaseWithoutTheSchemaIsRefusedInOneSentenceThatSaysWhatToDo(t *testing.T) {
	h := newHouse(t, plan{})
	for _, setting := range h.env {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	for _, way := range []struct{ sql, says string }{
		{`DELETE FROM goose_db_version WHERE version_id > 3`, "the database has version 3 of the schema, and "},
		{`DROP SCHEMA public CASCADE; CREATE SCHEMA public`, "the database does not have the schema, of which version "},
	} {
		if _, err := h.pool.Exec(t.Context(), way.sql); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"serve"}, {"event", "list"}, {"event", "open", h.event}, {"event", "close", h.event}, {"import", "chart", pretixPlan},
			{"event", "chart", h.event, pretixPlan}} {
			lines := strings.Split(strings.TrimSpace(refused(t, args...)), "\n")
			last := lines[len(lines)-1]
			if !strings.Contains(last, way.says) || !strings.HasSuffix(last, "run seatcast migrate") || strings.Contains(last, "SQLSTATE") {
				t.Errorf("%v: %s", args, last)
			}
			for _, line := range lines[:len(lines)-1] {
				if args[0] != "serve" && !strings.HasPrefix(line, "warning: ") || args[0] == "serve" && !strings.HasPrefix(line, "SEATCAST_") {
					t.Errorf("%v also said %s", args, line)
				}
			}
		}
	}
}

// While a release is rolled out, old nodes run on the new schema.
func TestANewerSchemaIsServedWithAWarningAndOneThatGoesAwayMakesUnready(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	exec := func(sql string) {
		t.Helper()
		if _, err := h.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	old := h.node()
	if got := old.check(t, "schema"); got != "ok" {
		t.Errorf("the schema it was built for is told as %s", got)
	}
	exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	for _, n := range []*node{old, h.node()} {
		if c := readyz(t, n, http.StatusOK).Checks["schema"]; c.Status != "warn" || !strings.Contains(c.Detail, "version 9999") {
			t.Errorf("a newer schema is %+v", c)
		}
		h.shopper(n, "ann").hold(h.event, "once", h.seats(1)...).want(t, map[bool]int{true: http.StatusCreated, false: http.StatusOK}[n == old], "")
	}
	exec(`DELETE FROM goose_db_version WHERE version_id > 3`)
	eventually(t, 5*time.Second, "it is unready", func() bool { return old.check(t, "schema") == "fail" })
	if c := readyz(t, old, http.StatusServiceUnavailable).Checks["schema"]; !strings.Contains(c.Detail, "run seatcast migrate") {
		t.Errorf("an older schema is %+v", c)
	}
}
