package hub_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seatcast/hub"
)

// node is a hub on a loopback port, until the test ends.
type node struct {
	*hub.Hub
	tb   testing.TB
	url  string
	reg  *prometheus.Registry
	stop func() // ends Run and waits for it

	begun map[string]bool // the series there were at the start
	ends  time.Time       // of what comes from now on, unless zero
	mixed bool            // sessions of either engine are in order
}

// serve starts a node. Its streams are of topic, or of what ?topic= says.
func serve(tb testing.TB, o hub.Options) *node {
	tb.Helper()
	n := &node{tb: tb}
	if n.reg, _ = o.Registerer.(*prometheus.Registry); n.reg == nil {
		n.reg = prometheus.NewRegistry()
		o.Registerer = n.reg
	}
	n.Hub = hub.New(o)
	n.begun = n.series()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			tb.Error(err)
		}
	})
	n.stop = func() { stop(); running.Wait() }
	if !o.Portable && runtime.GOOS == "linux" {
		eventually(tb, "sessions are parked", n.Parks)
	}
	server := httptest.NewServer(n.routes())
	n.url = server.URL
	tb.Cleanup(func() {
		n.checkEngine(o.Portable || runtime.GOOS != "linux")
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := n.Drain(ctx, 0); err != nil {
			tb.Error("drain:", err)
		}
		n.stop()
		for s := range n.series() { // rate sees no event that makes its own series
			if !n.begun[s] {
				tb.Errorf("%s was not there from the start", s)
			}
		}
		server.CloseClientConnections()
		server.Close()
		server.Client().CloseIdleConnections()
	})
	return n
}

// checkEngine fails when another engine than the one that was meant has served.
func (n *node) checkEngine(portable bool) {
	n.tb.Helper()
	other := map[bool]string{true: "parked", false: "portable"}[portable]
	if got := n.metric("hub_opens_total", other); got != 0 && !n.mixed {
		n.tb.Errorf("%v sessions were %s", got, other)
	}
}

func (n *node) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/live", func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("topic")
		if name == "" {
			name = topic
		}
		if !n.ends.IsZero() {
			ctx, cancel := context.WithDeadline(r.Context(), n.ends)
			defer cancel()
			r = r.WithContext(ctx)
		}
		if err := n.Serve(w, r, name); err != nil {
			n.tb.Error(err)
		}
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		n.ServeWS(w, r, func(ctx context.Context, name, ticket string) (time.Time, string, string) {
			_, code, detail := allow(ctx, name, ticket)
			return n.ends, code, detail
		})
	})
	return mux
}

func allow(_ context.Context, name, _ string) (end time.Time, code, detail string) {
	if !strings.HasPrefix(name, "seatmap/") {
		return end, "unknown_topic", "there is no topic of this name"
	}
	return end, "", ""
}

// series are the names and labels of all that is counted.
func (n *node) series() map[string]bool {
	n.tb.Helper()
	families, err := n.reg.Gather()
	if err != nil {
		n.tb.Error(err)
	}
	all := map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			all[fmt.Sprint(family.GetName(), m.GetLabel())] = true
		}
	}
	return all
}

// metric is the sum of what a metric counts under the given label values.
func (n *node) metric(name string, labels ...string) (sum float64) {
	families, err := n.reg.Gather()
	if err != nil {
		n.tb.Error(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			have := map[string]bool{}
			for _, l := range m.GetLabel() {
				have[l.GetValue()] = true
			}
			if all(labels, have) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func all(labels []string, have map[string]bool) bool {
	for _, l := range labels {
		if !have[l] {
			return false
		}
	}
	return true
}

// forgotten waits until nothing is left of any session.
func (n *node) forgotten() {
	n.tb.Helper()
	eventually(n.tb, "no session is left", func() bool { return n.metric("hub_sessions") == 0 })
	eventually(n.tb, "no session is behind", func() bool { return n.metric("hub_sessions_behind") == 0 })
}

// eventually polls until what is said is so.
func eventually(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("it never came about: ", what)
		}
	}
}

// engines runs a claim on both engines. The node sees to it that the one that
// was meant serves.
func engines(t *testing.T, claim func(t *testing.T, o hub.Options)) {
	t.Helper()
	t.Run("parked", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("sessions are parked on Linux")
		}
		claim(t, hub.Options{})
	})
	t.Run("portable", func(t *testing.T) { claim(t, hub.Options{Portable: true}) })
}

// everywhere runs a claim on both engines for both transports.
func everywhere(t *testing.T, claim func(t *testing.T, o hub.Options, transport string)) {
	t.Helper()
	for _, transport := range []string{"sse", "ws"} {
		t.Run(transport, func(t *testing.T) {
			engines(t, func(t *testing.T, o hub.Options) { claim(t, o, transport) })
		})
	}
}
