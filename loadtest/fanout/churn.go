package fanout

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/proc"
	"seatcast/loadtest/report"
)

// sample is what a server used at one moment of a soak.
type sample struct {
	at         float64 // minutes
	rss        float64 // KB
	goroutines float64 // 0 of servers that do not say
}

// churn publishes while sessions leave and join all the time, and looks at
// what the server uses. Rows are of that one round.
func (b *bench) churn(ctx context.Context) error {
	if b.o.Churn == 0 {
		b.o.Churn = max(1, float64(b.o.Conns)/100)
	}
	servers := b.servers()
	samples := make(map[string][]sample)
	b.o.Pairs = 1
	b.bar = report.NewBar(b.o.Err, b.work()*int64(len(servers)))
	got, err := b.pairs(ctx, b.o.Rate, servers, func(ctx context.Context, name string) (figures, error) {
		f, some, err := b.soak(ctx, name)
		samples[name] = some
		return f, err
	})
	b.bar.End()
	if err != nil {
		return err
	}
	err = b.finish(servers, b.o.Rate, got)
	b.printSoak(servers, got, samples)
	return err
}

func (b *bench) soak(ctx context.Context, name string) (f figures, samples []sample, err error) {
	s, err := b.open(ctx, name, 0)
	if err != nil {
		return f, nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b.bar.Done(int64(b.o.Conns))
	if err := s.reader.Churn(ctx, b.o.Churn); err != nil {
		return f, nil, err
	}
	stop := make(chan struct{})
	sampled := make(chan error, 1)
	go func() { // joined below
		var err error
		samples, err = watch(ctx, s.server, stop)
		sampled <- err
	}()
	f, err = b.publish(ctx, s, b.o.Rate, b.o.frames(), time.Second, nil)
	close(stop)
	if err := errors.Join(err, <-sampled, s.reader.Churn(ctx, 0)); err != nil {
		return f, samples, fmt.Errorf("%s: %w", name, err)
	}
	// Who joins in the middle of a plan is owed what follows; that nothing of it
	// was lost is seen by the numbers and the maps.
	f.Expected, f.rss = f.Deliveries, s.rss
	if err := s.reader.Settle(ctx, openWithin); err != nil {
		return f, samples, err
	}
	f.On = b.o.Conns
	f.wrong = b.check(ctx, s, f)
	b.bar.Done(int64(b.o.Conns * b.o.frames()))
	return f, samples, nil
}

// watch samples a server every second until stop.
func watch(ctx context.Context, s peers.Server, stop <-chan struct{}) (all []sample, err error) {
	start := time.Now()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return all, ctx.Err()
		case <-stop:
			return all, nil
		case <-every.C:
		}
		u, err := proc.Of(s.Pid())
		if err != nil {
			return all, err
		}
		one := sample{at: time.Since(start).Minutes(), rss: float64(u.RSS) / 1024}
		if hub, ok := s.(*peers.Hub); ok {
			if one.goroutines, err = hub.Goroutines(ctx); err != nil {
				return all, err
			}
		}
		all = append(all, one)
	}
}

// trend is the slope of the last four fifths of the samples, a minute.
func trend(all []sample, of func(sample) float64) float64 {
	var x, y []float64
	for _, s := range all[len(all)/5:] {
		x, y = append(x, s.at), append(y, of(s))
	}
	return slope(x, y)
}

func (b *bench) printSoak(servers []string, got results, samples map[string][]sample) {
	report.Say(b.o.Out, "\n%.0f sessions a second leave and come back:\n\n", b.o.Churn)
	w := tabwriter.NewWriter(b.o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	report.Say(w, "server\tminutes\tcame back\tRSS MB first\tlast\tKB a minute\tgoroutines first\tlast\ta minute\t\n")
	for _, name := range servers {
		all := samples[name]
		if len(all) < 2 || len(got[name]) == 0 {
			continue
		}
		first, last := all[0], all[len(all)-1]
		report.Say(w, "%s\t%.1f\t%d\t%.1f\t%.1f\t%+.0f\t%.0f\t%.0f\t%+.1f\t\n", name, last.at, got[name][0].Joined, first.rss/1024, last.rss/1024,
			trend(all, func(s sample) float64 { return s.rss }), first.goroutines, last.goroutines,
			trend(all, func(s sample) float64 { return s.goroutines }))
	}
	_ = w.Flush() // a terminal that has gone
}
