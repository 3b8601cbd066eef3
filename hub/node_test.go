package hub_test

import (
	"context"
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
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := n.Drain(ctx, 0); err != nil {
			tb.Error("drain:", err)
		}
		n.stop()
		server.CloseClientConnections()
		server.Close()
		server.Client().CloseIdleConnections()
	})
	return n
}

func (n *node) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/live", func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("topic")
		if name == "" {
			name = topic
		}
		if err := n.Serve(w, r, name); err != nil {
			n.tb.Error(err)
		}
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) { n.ServeWS(w, r, allow) })
	return mux
}

func allow(_ context.Context, name, _ string) (code, detail string) {
	if !strings.HasPrefix(name, "seatmap/") {
		return "unknown_topic", "there is no topic of this name"
	}
	return "", ""
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

// engines runs a claim on both engines and sees to it that the one that was
// meant has served it.
func engines(t *testing.T, claim func(t *testing.T, o hub.Options)) {
	t.Helper()
	for _, engine := range []string{"parked", "portable"} {
		if engine == "parked" && runtime.GOOS != "linux" {
			continue
		}
		t.Run(engine, func(t *testing.T) {
			n := &node{tb: t, reg: prometheus.NewRegistry()}
			claim(t, hub.Options{Portable: engine == "portable", Registerer: n.reg})
			if served, all := n.metric("hub_opens_total", engine), n.metric("hub_opens_total"); served == 0 || served != all {
				t.Errorf("%v of %v sessions were %s", served, all, engine)
			}
		})
	}
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
