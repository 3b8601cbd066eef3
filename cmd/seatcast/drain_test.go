package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// hinted is the wait a stream's last words tell; 0 when they tell none.
func (e end) hinted() time.Duration {
	ms, said := strings.CutPrefix(e.hint, "retry: ")
	if !said {
		ms, said = strings.CutPrefix(e.hint, "drain retry_ms=")
	}
	n, err := strconv.Atoi(ms)
	if !said || err != nil {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// Three hundred watch a node that is told to stop, while seats are held on
// another: each is told when to come back, comes back with its number, and has
// every change once.
func TestADrainLosesNoChangeAndNobodyInTheMiddleOfASale(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	const drain, sessions = 5 * time.Second, 300
	leaving, staying := h.node("SEATCAST_DRAIN="+drain.String()), h.node()
	var all []*watcher
	for range sessions / 2 {
		all = append(all, watch(t, h.event, leaving.url, staying.url), watchSocket(t, h.event, leaving.url, staying.url))
	}
	for _, w := range all {
		w.obey()
		eventually(t, 20*time.Second, "the first map", func() bool { return w.number() > 0 })
	}
	begun := time.Now()
	over := make(chan time.Duration, 1)
	go func() {
		leaving.stop(t, drain+15*time.Second)
		over <- time.Since(begun)
	}()
	h.stillServes(leaving)
	took := h.sellUntil(over, staying)
	if took < drain/2 || devtest.Late(begun, drain+3*time.Second) {
		t.Errorf("a drain of %v took %v", drain, took)
	}

	var left []time.Duration
	for _, w := range all {
		w.sees(10*time.Second, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
		w.mu.Lock()
		if len(w.ends) != 1 || w.ends[0].base != leaving.url || w.ends[0].hinted() < time.Second || w.ends[0].hinted() > 5*time.Second {
			t.Errorf("a watcher's streams ended with %v", w.ends)
		} else {
			left = append(left, w.ends[0].at.Sub(begun))
		}
		if w.snapshots != 1 || w.repeats != 0 {
			t.Errorf("a watcher was sent %d whole maps and %d changes it had; it left after %v", w.snapshots, w.repeats, w.ends[0].at.Sub(begun))
		}
		w.mu.Unlock()
	}
	spread(t, left, drain*4/5)
}

// A balancer that asks each second must notice, also when nobody has to be sent
// elsewhere first.
func TestANodeNobodyWatchesIsUnreadyForAWhileBeforeItIsGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	const drain = 1500 * time.Millisecond
	leaving := h.node("SEATCAST_DRAIN=" + drain.String())
	begun := time.Now()
	over := make(chan time.Duration, 1)
	go func() {
		leaving.stop(t, drain+15*time.Second)
		over <- time.Since(begun)
	}()
	h.stillServes(leaving)
	if took := <-over; took < drain {
		t.Errorf("it was gone after %v, want %v at least", took, drain)
	}
}

// stillServes fails unless a node that is stopping lets no watcher in and
// answers everything else.
func (h *house) stillServes(n *node) {
	h.t.Helper()
	eventually(h.t, 2*time.Second, "it is unready", func() bool {
		return shopper{h.t, n.url, ""}.do(http.MethodGet, "/readyz", "", nil).status == http.StatusServiceUnavailable
	})
	if _, what := knock(h.t, n, h.event); what != "hub_drain" {
		h.t.Errorf("who came to a node that stops was answered %q", what)
	}
	seats := h.seats(h.chart.Seats)
	h.shopper(n, "zoe").hold(h.event, "", seats[len(seats)-1]).want(h.t, http.StatusCreated, "")
}

// sellUntil holds one seat after the other until the other end of over says
// how long it took.
func (h *house) sellUntil(over <-chan time.Duration, n *node) time.Duration {
	h.t.Helper()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	seats := h.seats(h.chart.Seats)
	for i := 0; ; {
		select {
		case took := <-over:
			return took
		case <-every.C:
		}
		if i < len(seats)-1 { // the last is zoe's
			h.shopper(n, fmt.Sprint("buyer ", i)).hold(h.event, "", seats[i]).want(h.t, http.StatusCreated, "")
			i++
		}
	}
}

// spread fails when some moment has three times its share of what happened
// over a time.
func spread(t *testing.T, at []time.Duration, over time.Duration) {
	t.Helper()
	slices.Sort(at)
	const slots = 20
	var in [slots]int
	first := at[0]
	for _, d := range at {
		in[min(slots-1, int((d-first)*slots/over))]++
	}
	if most := slices.Max(in[:]); most > 3*len(at)/slots {
		t.Errorf("of %d, %d left within %v: %v", len(at), most, over/slots, in)
	}
}
