package fanout

import (
	"context"
	"errors"
	"time"

	"seatcast/loadtest/reader"
	"seatcast/loadtest/report"
)

// hurried is how many frames are published one right after the other to find
// out how much a server can do.
const hurried = 40

// saturate finds how much raw can deliver, and compares at half of that.
func (b *bench) saturate(ctx context.Context) error {
	if len(b.o.Against) == 0 {
		b.o.Against = []string{"raw"}
	}
	servers := b.servers()
	b.bar = report.NewBar(b.o.Err, b.work()*int64(len(servers)*b.o.Pairs+1))
	b.bar.What("how much raw can do")
	most, busy, err := b.most(ctx)
	if err != nil {
		b.bar.End()
		return err
	}
	rate := most / 2 / float64(b.o.Conns)
	if rate > mostRate {
		b.note("half of what raw can do is more than 8 frames a second: 8 it is; take more sessions")
		rate = mostRate
	}
	got, err := b.pairs(ctx, rate, servers, func(ctx context.Context, name string) (figures, error) {
		return b.round(ctx, name, rate, 0)
	})
	b.bar.End()
	if err != nil {
		return err
	}
	report.Say(b.o.Out, "raw can do %.0f deliveries/s (the reader was busy %.0f%% of that time)\n", most, 100*busy)
	err = b.finish(servers, rate, got)
	last := func(f figures) float64 { return f.LastP50 }
	for _, name := range servers {
		if len(got[name]) > 0 {
			report.Say(b.o.Out, "%s: from due to the last session, median over changes: %.1f ms\n", name, report.MedianOf(got[name], last))
		}
	}
	return err
}

// most is how many deliveries a second raw makes when it never waits.
func (b *bench) most(ctx context.Context) (perSecond, busy float64, err error) {
	s, err := b.open(ctx, "raw", 0)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	f, err := b.publish(ctx, s, 1000, hurried, lateness, nil)
	if err != nil {
		return 0, 0, err
	}
	b.bar.Done(b.work())
	return float64(f.Deliveries) / spanOf(f.Report).Seconds(), f.busy, nil
}

func spanOf(r reader.Report) time.Duration {
	return max(time.Duration(r.Last-r.First), time.Millisecond)
}
