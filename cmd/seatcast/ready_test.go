package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap/live"
)

type readyAnswer struct {
	Ready  bool
	Checks map[string]struct{ Status, Detail string }
}

func readyz(t *testing.T, n *node, status int) (r readyAnswer) {
	t.Helper()
	a := shopper{t, n.url, ""}.do(http.MethodGet, "/readyz", "", nil).want(t, status, "")
	if err := json.Unmarshal(a.raw, &r); err != nil {
		t.Fatal(err)
	}
	if r.Ready != (status == http.StatusOK) {
		t.Errorf("%d, and ready: %v", status, r.Ready)
	}
	return r
}

// readyz asks without expecting anything.
func (n *node) readyz(t *testing.T) answer {
	t.Helper()
	return shopper{t, n.url, ""}.do(http.MethodGet, "/readyz", "", nil)
}

// check is how one of its checks went.
func (n *node) check(t *testing.T, name string) string {
	t.Helper()
	return said[map[string]struct{ Status string }](n.readyz(t), "checks")[name].Status
}

func TestReadinessKnowsTheSettingsASaleDependsOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	checks := readyz(t, n, http.StatusOK).Checks
	for name, want := range map[string]string{"serving": "ok", "sessions": "ok", "nats": "ok", "redis": "ok", "holds": "ok", "redis_eviction": "ok", "redis_memory": "ok", "postgres": "ok", "schema": "ok",
		"redis_persistence": "warn", "postgres_settings": "warn"} { // servers of tests forget everything
		if checks[name].Status != want {
			t.Errorf("%s is %+v, want %s", name, checks[name], want)
		}
	}
	set := func(policy string) {
		if err := h.rdb.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("volatile-lru")
	if c := readyz(t, n, http.StatusServiceUnavailable).Checks["redis_eviction"]; c.Status != "fail" {
		t.Errorf("a Redis that evicts holds is %+v", c)
	}
	set("noeviction")
	limit := func(bytes string) {
		if err := h.rdb.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("1mb")
	if c := readyz(t, n, http.StatusOK).Checks["redis_memory"]; c.Status != "warn" || !strings.Contains(c.Detail, "refuses every hold") {
		t.Errorf("a Redis that is full is %+v", c)
	}
	limit("0")
	readyz(t, n, http.StatusOK)
	if err := h.rdb.ConfigSet(t.Context(), "appendonly", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	if c := readyz(t, n, http.StatusOK).Checks["redis_persistence"]; c.Status != "ok" {
		t.Errorf("a Redis that remembers is %+v", c)
	}
	h.redis.Kill()
	if c := readyz(t, n, http.StatusOK).Checks["redis"]; c.Status != "warn" { // it answers nobody: see outage_test.go
		t.Errorf("a Redis that is gone is %+v", c)
	}
}

func TestAStartTellsWhichSettingsAreUnsafe(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	var told bytes.Buffer
	log := slog.New(slog.NewTextHandler(&told, nil))
	nc, err := live.Connect(devtest.NATSURL(t), "test", live.NewMetrics(nil), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	newReadiness(&stores{pool: h.pool, rdb: h.rdb, say: nc, hear: nc}, nil).warn(t.Context(), log)
	for check, unsafe := range map[string]bool{"without NATS": false, "redis_eviction": false, "redis_memory": false,
		"redis_persistence": true, "postgres_settings": true} { // servers of tests forget everything
		if strings.Contains(told.String(), check) != unsafe {
			t.Errorf("unsafe %s: %v is wanted, and told was %s", check, unsafe, told.String())
		}
	}
}
