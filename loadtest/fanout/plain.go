package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/report"
)

// servers are those to measure, seatcast first.
func (b *bench) servers() []string { return append([]string{peers.Seatcast}, b.o.Against...) }

// results are the rounds of each server, by pair.
type results map[string][]figures

// pairs runs one round of every server a pair, every other pair in reverse. A
// server that is missing is noted and left out.
func (b *bench) pairs(ctx context.Context, rate float64, servers []string, one func(ctx context.Context, name string) (figures, error)) (results, error) {
	got := make(results)
	for pair := range b.o.Pairs {
		order := slices.Clone(servers)
		if pair%2 == 1 {
			slices.Reverse(order)
		}
		for _, name := range order {
			if b.missing[name] != "" {
				continue
			}
			b.bar.What(fmt.Sprintf("pair %d of %d: %s", pair+1, b.o.Pairs, name))
			f, err := one(ctx, name)
			if errors.Is(err, peers.ErrMissing) {
				b.missing[name] = err.Error()
				continue
			}
			if err != nil {
				return got, err
			}
			b.bar.Line("pair %d of %d: %-10s %6.2f µs a delivery, p99 %.1f ms, %.2f KB a session\n", pair+1, b.o.Pairs, name, f.cpu, f.P99, f.rss/1024)
			got[name] = append(got[name], f)
		}
	}
	return got, nil
}

// work is how much the bar has to show for one round.
func (b *bench) work() int64 { return int64(b.o.Conns) * int64(1+b.o.frames()) }

// plain compares the servers.
func (b *bench) plain(ctx context.Context) error {
	servers := b.servers()
	b.bar = report.NewBar(b.o.Err, b.work()*int64(len(servers)*b.o.Pairs))
	got, err := b.pairs(ctx, b.o.Rate, servers, func(ctx context.Context, name string) (figures, error) {
		return b.round(ctx, name, b.o.Rate, 0)
	})
	b.bar.End()
	if err != nil {
		return err
	}
	return b.finish(servers, b.o.Rate, got)
}

// finish prints and writes what was measured.
func (b *bench) finish(servers []string, rate float64, got results) error {
	rows := make([]Row, 0, len(servers))
	for _, name := range servers {
		rows = append(rows, b.o.row(name, rate, got[name]))
	}
	b.print(servers, rate, got)
	return errors.Join(report.Write(b.o.JSON, rows), wrongs(got))
}

// wrongs is what seatcast has done wrong in any round.
func wrongs(got results) error {
	var all []error
	for pair, f := range got[peers.Seatcast] {
		if f.wrong != nil {
			all = append(all, fmt.Errorf("seatcast failed in pair %d: %w", pair+1, f.wrong))
		}
	}
	return errors.Join(all...)
}
