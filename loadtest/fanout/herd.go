package fanout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/proc"
	"seatcast/loadtest/report"
)

// herded is how one herd went.
type herded struct {
	server, how string
	seconds     float64
	cpu         float64 // milliseconds of the server
	asked       string  // of the stores, by a herd and by as much time without one
}

// herds has everybody reconnect at once: without their number, and at a
// server that knows numbers with it too.
func (b *bench) herds(ctx context.Context) error {
	var all []herded
	var wrong []error
	b.bar = report.NewBar(b.o.Err, int64(3*b.o.Conns*len(b.servers())))
	for _, name := range b.servers() {
		b.bar.What("herd: " + name)
		some, err := b.herd(ctx, name)
		all = append(all, some...)
		switch {
		case errors.Is(err, peers.ErrMissing):
			b.missing[name] = err.Error()
		case err != nil && (name == peers.Seatcast || ctx.Err() != nil):
			wrong = append(wrong, err)
		case err != nil:
			b.note(err.Error())
		}
	}
	b.bar.End()
	b.printHerds(all)
	return errors.Join(wrong...)
}

func (b *bench) herd(ctx context.Context, name string) (all []herded, err error) {
	s, err := b.open(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b.bar.Done(int64(b.o.Conns))
	first := herded{server: name, how: "first connect", seconds: s.opened.Seconds, cpu: ms(s.rested.CPU - s.before.CPU)}
	all = append(all, first)
	for _, numbers := range []bool{false, true} {
		if numbers && !s.server.Target().Numbered {
			continue
		}
		one, err := b.oneHerd(ctx, s, numbers)
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		b.bar.Done(int64(b.o.Conns))
		one.server = name
		all = append(all, one)
	}
	return all, nil
}

// oneHerd publishes while everybody comes back, and checks that all end in the
// true map.
func (b *bench) oneHerd(ctx context.Context, s *scene, numbers bool) (h herded, err error) {
	_, ours := s.server.(*peers.Hub)
	if h.how = "without numbers"; numbers {
		h.how = "with numbers"
	}
	var idle, herd asked
	if ours {
		if idle, err = b.asking(ctx, func() error { return peers.Wait(ctx, 3*time.Second) }); err != nil {
			return h, err
		}
	}
	before, err := proc.Of(s.server.Pid())
	if err != nil {
		return h, err
	}
	back := func() error {
		opened, err := s.reader.Herd(ctx, numbers, openWithin)
		h.seconds = opened.Seconds
		return err
	}
	if ours {
		herd, err = b.asking(ctx, back)
		h.asked = herd.over(idle)
	} else {
		err = back()
	}
	if err != nil {
		return h, err
	}
	after, err := proc.Of(s.server.Pid())
	if err != nil {
		return h, err
	}
	h.cpu = ms(after.CPU - before.CPU)
	f, err := b.publish(ctx, s, b.o.Rate, min(b.o.frames(), 10), lateness, nil)
	if err != nil {
		return h, err
	}
	f.Closed, f.On = nil, b.o.Conns // what the server has ended while it was overrun has come back
	return h, b.check(ctx, s, f)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// asked is what the stores were asked in a time.
type asked struct {
	peers.Queries
	took time.Duration
}

// asking reads what the stores are asked while use runs.
func (b *bench) asking(ctx context.Context, use func() error) (a asked, err error) {
	before, err := b.house.Asked(ctx)
	if err != nil {
		return a, err
	}
	start := time.Now()
	if err := use(); err != nil {
		return a, err
	}
	after, err := b.house.Asked(ctx)
	if err != nil {
		return a, err
	}
	a.took, a.Redis = time.Since(start), make(map[string]int64)
	a.Postgres = after.Postgres - before.Postgres
	for name, n := range after.Redis {
		a.Redis[name] = n - before.Redis[name]
	}
	return a, nil
}

// over tells what a was asked, and what would have been asked in that time
// anyway.
func (a asked) over(idle asked) string {
	scale := a.took.Seconds() / idle.took.Seconds()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a.Redis)) {
		if n := a.Redis[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d (idle %.0f)", name, n, float64(idle.Redis[name])*scale))
		}
	}
	return fmt.Sprintf("redis: %s; postgres: %d (idle %.0f)", strings.Join(parts, ", "), a.Postgres, float64(idle.Postgres)*scale)
}

func (b *bench) printHerds(all []herded) {
	report.Say(b.o.Out, "%d %s sessions reconnect at once\n\n", b.o.Conns, b.o.transport())
	w := tabwriter.NewWriter(b.o.Out, 0, 0, 2, ' ', 0)
	report.Say(w, "server\t\tall back s\taccepts/s\tCPU ms\tasked of the stores\n")
	for _, h := range all {
		report.Say(w, "%s\t%s\t%.2f\t%.0f\t%.0f\t%s\n", h.server, h.how, h.seconds, float64(b.o.Conns)/max(h.seconds, 0.001), h.cpu, h.asked)
	}
	_ = w.Flush() // a terminal that has gone
	b.printNotes(b.servers(), nil)
}
