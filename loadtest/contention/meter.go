package contention

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seatcast/loadtest/proc"
)

// meter is what was used up to a moment.
type meter struct {
	at     time.Time
	server []time.Duration // CPU of each process that is counted
	client time.Duration   // CPU of this process
	core   time.Duration   // the servers' core was busy, for anybody
	calls  int64           // commands Redis was asked for
	gate   gate
	looked window // at the gate
}

// window is when something was done: at some moment from its first to its last,
// in nanoseconds of the wall clock.
type window struct{ first, last int64 }

// middle is the moment that is wrong by least, whenever it was.
func (w window) middle() int64 { return w.first + (w.last-w.first)/2 }

func (w window) touches(other window) bool { return w.first <= other.last && other.first <= w.last }

// gate is what seatcast says of its memory.
type gate struct {
	refused, asked float64 // from memory; of Redis
	sampled, wrong float64 // refusals compared with Redis, and false ones among them
}

// asks are the answers of the gate that let Redis answer.
var asks = []string{"asked_own", "asked_stale", "asked_unknown", "passed"}

func (b *bench) meter(ctx context.Context, s *scene) (m meter, err error) {
	m.at = time.Now()
	for _, p := range s.served {
		u, err := proc.Of(p.pid)
		if err != nil {
			return m, err
		}
		m.server = append(m.server, u.CPU)
	}
	if m.client, err = ownCPU(); err != nil {
		return m, err
	}
	if m.core, err = proc.Busy(b.server[0]); err != nil {
		return m, err
	}
	calls, err := b.house.Calls(ctx, b.rdb)
	if err != nil {
		return m, err
	}
	for _, n := range calls {
		m.calls += n
	}
	if s.api != nil {
		m.gate, m.looked, err = readGate(ctx, s.addr)
	}
	return m, err
}

// toGate asks over a new connection each time, so that none is left which a
// server that stops would wait for.
var toGate = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

// readGate reads all counts from one answer, so that they are of one moment. A
// server that is busy may take long to give it, and the counts are of any
// moment of that time.
func readGate(ctx context.Context, addr string) (g gate, looked window, err error) {
	looked.first = time.Now().UnixNano()
	shown, err := metrics(ctx, addr)
	looked.last = time.Now().UnixNano()
	if err != nil {
		return g, looked, fmt.Errorf("what the gate says: %w", err)
	}
	read := func(name string) float64 {
		value, ok := shown[name]
		if !ok && err == nil {
			err = fmt.Errorf("there is no metric %s", name)
		}
		return value
	}
	g.refused = read(`holds_gate_total{answer="refused"}`)
	for _, a := range asks {
		g.asked += read(`holds_gate_total{answer="` + a + `"}`)
	}
	g.sampled = read("holds_gate_sampled_total")
	g.wrong = read("holds_gate_false_total")
	return g, looked, err
}

// metrics are the numbers a server shows of itself, by name and labels.
func metrics(ctx context.Context, addr string) (map[string]float64, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	a, err := toGate.Do(q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Body.Close() }() // was read to the end
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics: %s: %.300s", a.Status, text)
	}
	shown := make(map[string]float64)
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSpace(l)
		space := strings.LastIndexByte(l, ' ')
		if space < 0 || l[0] == '#' {
			continue
		}
		if shown[l[:space]], err = strconv.ParseFloat(l[space+1:], 64); err != nil {
			return nil, fmt.Errorf("/metrics: %w", err)
		}
	}
	return shown, nil
}

func (g gate) since(from gate) gate {
	return gate{g.refused - from.refused, g.asked - from.asked, g.sampled - from.sampled, g.wrong - from.wrong}
}

// ownCPU is what this process has used, without its children.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("usage of this process: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
