package contention

import (
	"context"
	"fmt"
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
}

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
		m.gate, err = readGate(ctx, s)
	}
	return m, err
}

func readGate(ctx context.Context, s *scene) (g gate, err error) {
	read := func(name string) (value float64) {
		if err == nil {
			value, err = s.api.Metric(ctx, name)
		}
		return value
	}
	g.refused = read(`holds_gate_total{answer="refused"}`)
	for _, a := range asks {
		g.asked += read(`holds_gate_total{answer="` + a + `"}`)
	}
	g.sampled = read("holds_gate_sampled_total")
	g.wrong = read("holds_gate_false_total")
	return g, err
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
