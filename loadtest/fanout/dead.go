package fanout

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"seatcast/loadtest/report"
)

// dead compares each server with itself: some of the sessions never read, and
// all do. The rows are of the rounds with the dead.
func (b *bench) dead(ctx context.Context) error {
	n := max(1, int(float64(b.o.Conns)*b.o.Dead))
	servers := b.servers()
	b.bar = report.NewBar(b.o.Err, 2*b.work()*int64(len(servers)*b.o.Pairs))
	without := make(results)
	got, err := b.pairs(ctx, b.o.Rate, servers, func(ctx context.Context, name string) (figures, error) {
		all, err := b.round(ctx, name, b.o.Rate, 0)
		if err != nil {
			return all, err
		}
		without[name] = append(without[name], all)
		return b.round(ctx, name, b.o.Rate, n)
	})
	b.bar.End()
	if err != nil {
		return err
	}
	b.noteDead(servers, n, got)
	err = b.finish(servers, b.o.Rate, got)
	b.printDead(servers, n, without, got)
	return errors.Join(err, wrongs(without))
}

// noteDead says of whom it was not seen that it gets rid of who does not read.
func (b *bench) noteDead(servers []string, n int, with results) {
	for _, name := range servers {
		for pair, f := range with[name] {
			if f.closed < n {
				b.note(fmt.Sprintf("%s, pair %d: %d of %d sessions that never read were closed: if their buffers did not fill, they were not noticed; take more --frames, or --changes",
					name, pair+1, f.closed, n))
			}
		}
	}
}

func (b *bench) printDead(servers []string, n int, without, with results) {
	report.Say(b.o.Out, "\n%d of %d sessions never read:\n\n", n, b.o.Conns)
	w := tabwriter.NewWriter(b.o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	report.Say(w, "server\tp99 ms without\tp99 ms with\tratio\tmemory grew KB without\twith\tof the dead closed\t\n")
	for _, name := range servers {
		if len(with[name]) == 0 {
			continue
		}
		r, _ := report.Ratios(report.Each(with[name], p99), report.Each(without[name], p99))
		grown := func(f figures) float64 { return float64(f.grown) / 1024 }
		report.Say(w, "%s\t%.1f\t%.1f\t%s\t%.0f\t%.0f\t%.0f\t\n", name, report.MedianOf(without[name], p99), report.MedianOf(with[name], p99), r,
			report.MedianOf(without[name], grown), report.MedianOf(with[name], grown),
			report.MedianOf(with[name], func(f figures) float64 { return float64(f.closed) }))
	}
	_ = w.Flush() // a terminal that has gone
}
