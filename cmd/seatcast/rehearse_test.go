package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rehearses runs the command against a node, as an operator would.
func (h *house) rehearses(n *node, more ...string) (out string, err error) {
	h.t.Helper()
	key := ""
	for _, one := range h.env {
		if value, ok := strings.CutPrefix(one, "SEATCAST_SESSION_KEY="); ok {
			key = value
		}
	}
	var stdout, stderr strings.Builder
	err = run(h.t.Context(), append([]string{"rehearse", "--url", n.url, "--event", h.event, "--postgres", h.pool.Config().ConnString(),
		"--key", key, "--claims", demoClaims}, more...), &stdout, &stderr)
	return stdout.String() + stderr.String(), err
}

func TestARehearsalKeepsWhatTheRoomPromisesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	room := map[string]any{"rate": 1200, "burst": 40, "cap": 500, "sessionSeconds": 300,
		"joinsAt": time.Now().Add(10 * time.Hour), "closesAt": time.Now().Add(11 * time.Hour), "opensAt": time.Now().Add(12 * time.Hour)}
	h.operator(n, "olga").do(http.MethodPut, "/v1/admin/rooms/"+h.event, "", room).want(t, http.StatusOK, "")
	out, err := h.rehearses(n, "--fans", "120", "--joining", "3s", "--stay", "500ms", "--sleep", "0")
	t.Log(out)
	if err != nil && !errors.Is(err, errKept) {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) { // a machine that is busy may be slow, and nothing else
		slow := strings.HasPrefix(line, "rate while") || strings.HasPrefix(line, "longest wait")
		if strings.Contains(line, "NOT KEPT") && !slow {
			t.Errorf("%s", line)
		}
	}
	for _, want := range []string{"waiting", "let in in all", "inside at most", "longest wait", "errors"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not printed", want)
		}
	}
	if got := h.count(t.Context(), `SELECT count(*) FROM rooms WHERE event_id <> $1`, h.event); got != 0 {
		t.Errorf("%d rooms are left of it", got)
	}
	if got := h.count(t.Context(), `SELECT count(*) FROM events WHERE id LIKE $1 || '-rehearsal-%' AND state = 'closed'`, h.event); got != 1 {
		t.Errorf("%d copies are closed", got)
	}
	if got := h.count(t.Context(), `SELECT count(*) FROM bookings WHERE state IN ('held', 'paying')`); got != 0 {
		t.Errorf("%d seats are held", got)
	}
	if got := h.rdb.Exists(t.Context(), "q:{"+h.event+"}", "pre:{"+h.event+"}").Val(); got != 0 {
		t.Error("somebody simulated is in the real line")
	}
}

func TestNobodyRehearsesWhileTheRealFansAreThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	if _, err := h.rehearses(n); err == nil || !strings.Contains(err.Error(), "no waiting room") {
		t.Errorf("of an event without one: %v", err)
	}
	h.waits(nil, n)
	if _, err := h.rehearses(n); err == nil || !strings.Contains(err.Error(), "has begun") {
		t.Errorf("of one that is open: %v", err)
	}
	other := newHouse(t, plan{})
	on := other.node()
	room := map[string]any{"rate": 60, "cap": 50, "sessionSeconds": 300, "joinsAt": time.Now().Add(5 * time.Minute), "opensAt": time.Now().Add(time.Hour)}
	other.operator(on, "olga").do(http.MethodPut, "/v1/admin/rooms/"+other.event, "", room).want(t, http.StatusOK, "")
	if _, err := other.rehearses(on); err == nil || !strings.Contains(err.Error(), "may join") {
		t.Errorf("of one that is joined in five minutes: %v", err)
	}
	if _, err := other.rehearses(on, "--claims", "user=sub"); err == nil || !strings.Contains(err.Error(), "roles") {
		t.Errorf("without an operator: %v", err)
	}
	for args, want := range map[string]string{"--fans 1": "--fans is 10", "--stay 1ms": "--stay is", "--leave 1": "--leave is", "--url nowhere": "--url is"} {
		if _, err := other.rehearses(on, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if got := h.count(t.Context(), `SELECT count(*) FROM events`) + other.count(t.Context(), `SELECT count(*) FROM events`); got != 2 {
		t.Errorf("there are %d events", got)
	}
}
