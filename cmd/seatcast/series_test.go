package main

import (
	"bytes"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"seatcast/seatmap"
)

// series are the names and labels of all a node counts. What belongs to the
// runtime is left out, and buckets.
func (n *node) series(t testing.TB) map[string]bool {
	t.Helper()
	a := shopper{t, n.url, ""}.do(http.MethodGet, "/metrics", "", nil).want(t, http.StatusOK, "")
	all := map[string]bool{}
	for line := range strings.Lines(string(a.raw)) {
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' || strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") || strings.Contains(line, "_bucket{") {
			continue
		}
		all[line[:end]] = true
	}
	return all
}

// how a call of holds ended is the one label whose values differ by another, and
// of which the rare are left out until they come.
var rare = regexp.MustCompile(`^holds_total\{outcome="(taken|not_yours)"`)

// rate sees no event that makes its own series.
func TestEverySeriesOfANodeIsThereBeforeItsFirstEvent(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	before := n.series(t)
	seats := h.seats(4)
	ann, bob := h.shopper(n, "ann"), h.shopper(n, "bob")
	w, s := watch(t, h.event, n.url), watchSocket(t, h.event, n.url)
	booking := ann.hold(h.event, "", seats[:2]...).want(t, http.StatusCreated, "").BookingID
	bob.hold(h.event, "", seats[1:3]...).want(t, http.StatusConflict, "seats_taken")
	bob.pay(booking, "", goodCard)
	ann.pay(booking, "", goodCard).want(t, http.StatusCreated, "")
	ann.ends(booking).wantSold(t, 2)
	other := ann.hold(h.event, "", seats[2:]...).want(t, http.StatusCreated, "").BookingID
	ann.giveBack(other).want(t, http.StatusNoContent, "")
	truth := func() seatmap.Map { return h.truth(t.Context(), h.rdb) }
	w.sees(5*time.Second, truth)
	s.sees(5*time.Second, truth)
	openSSE(t, n, h.event, 1<<53-1)
	dial(t, n.url).say("nonsense")
	eventually(t, 5*time.Second, "one is told to start over", func() bool { return n.metric(t, "hub_resets_total", `who="session"`) == 1 })
	for one := range n.series(t) {
		if !before[one] && !rare.MatchString(one) {
			t.Errorf("%s came with its first event", one)
		}
	}
}

// A row may name a family by its beginning alone, and others. Those of a waiting room
// are there once an event has one, and that of a draw once one is announced.
func TestEveryMetricOfTheDocsIsThereAtAStart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| metric | watch for |")
	table, _, _ = strings.Cut(table, "\n\n")
	h := newHouse(t, plan{})
	n := h.node()
	h.waits(nil, n)
	drawn, at := h.create(plan{chart: h.chart}), func(d time.Duration) time.Time { return time.Now().Add(d) }
	h.operator(n, "olga").do(http.MethodPut, "/v1/admin/rooms/"+drawn, "", map[string]any{"rate": 60, "cap": 10, "sessionSeconds": 300,
		"joinsAt": at(time.Hour), "closesAt": at(2 * time.Hour), "opensAt": at(3 * time.Hour)}).want(t, http.StatusOK, "")
	all := n.series(t)
	names := regexp.MustCompile("`([a-z]+_[a-z_]+)(?:\\{[^`]*)?`")
	told := 0
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, m := range names.FindAllStringSubmatch(first, -1) {
			told++
			there := false
			for one := range all {
				name, _, _ := strings.Cut(one, "{")
				there = there || name == m[1] || name == m[1]+"_count"
			}
			if !there {
				t.Errorf("%s is in the docs and not in /metrics", m[1])
			}
		}
	}
	if told < 30 {
		t.Errorf("the docs tell of %d metrics: is the table read?", told)
	}
}

func TestADurationInTheLogHasItsUnit(t *testing.T) {
	var b bytes.Buffer
	log, err := newLog(&b, "info")
	if err != nil {
		t.Fatal(err)
	}
	log.With("every", time.Minute).WithGroup("in").Info("draining", "for", 1500*time.Millisecond, "n", 3)
	for _, want := range []string{`"every":"1m0s"`, `"for":"1.5s"`, `"n":3`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in %s", want, &b)
		}
	}
}
