package contention

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// page is what a server shows of its gate, between other things.
const page = `# HELP holds_gate_total What the gate said.
# TYPE holds_gate_total counter
holds_gate_total{answer="refused"} 1e+06
holds_gate_total{answer="asked_own"} 1
holds_gate_total{answer="asked_stale"} 2
holds_gate_total{answer="asked_unknown"} 3
holds_gate_total{answer="passed"} 40
holds_gate_sampled_total 7
holds_gate_false_total 5
go_memstats_heap_bytes 1.5e+07
`

func TestAllCountsOfTheGateAreOfOneAnswer(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = fmt.Fprint(w, page)
	}))
	defer s.Close()
	before := time.Now().UnixNano()
	g, looked, err := readGate(t.Context(), strings.TrimPrefix(s.URL, "http://"))
	if want := (gate{refused: 1e6, asked: 46, sampled: 7, wrong: 5}); err != nil || g != want || asked.Load() != 1 {
		t.Errorf("%+v after %d requests, %v", g, asked.Load(), err)
	}
	if looked.first < before || looked.last < looked.first || looked.last > time.Now().UnixNano() {
		t.Errorf("looked at some moment of %v", looked)
	}
}

func TestACountThatIsNotShownIsAnError(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, strings.ReplaceAll(page, "passed", "let_pass"))
	}))
	defer s.Close()
	if _, _, err := readGate(t.Context(), strings.TrimPrefix(s.URL, "http://")); err == nil || !strings.Contains(err.Error(), "passed") {
		t.Errorf("%v", err)
	}
}
