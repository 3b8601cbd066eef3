package fanout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/reader"
	"seatcast/loadtest/report"
)

// drainBy is how long a node and all its sessions may take to leave: the window
// of ten seconds, what net/http gives requests, and waits to come back.
const drainBy = 60 * time.Second

// drained is how it went.
type drained struct {
	figures
	reader.Drained
	exited time.Duration // from SIGTERM; 0 when it did not by itself
}

// drain stops the node that has all sessions while changes are published, and
// has them go to a second one.
func (b *bench) drain(ctx context.Context) (err error) {
	b.bar = report.NewBar(b.o.Err, int64(b.o.Conns))
	b.bar.What("connecting")
	s, err := b.open(ctx, peers.Seatcast, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	first := s.server.(*peers.Hub)
	dir, err := os.MkdirTemp(b.dir, "second-")
	if err != nil {
		return err
	}
	second, err := b.house.StartHub(ctx, b.setup(dir), "second")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.Stop()) }()
	var d drained
	f, err := b.publish(ctx, &scene{server: &pair{Hub: first, next: second}, reader: s.reader, rested: s.rested}, b.o.Rate,
		max(b.o.frames(), int(b.o.Rate*25)), drainBy, func(ctx context.Context) error { return b.leave(ctx, s.reader, first, second, &d) })
	b.bar.End()
	if err != nil {
		return err
	}
	f.Closed = nil // that is what a drain is
	d.figures = f
	wrong := b.check(ctx, &scene{server: second, reader: s.reader}, d.figures)
	b.printDrain(d, wrong)
	if d.exited == 0 {
		wrong = errors.Join(wrong, errors.New("the node did not exit by itself"))
	}
	return wrong
}

// pair is two hubs that are fed the same; the usage counted is the second's,
// which lives longer.
type pair struct {
	*peers.Hub
	next *peers.Hub
}

func (p *pair) Pid() int { return p.next.Pid() }

// leave tells the first node to stop and waits until everybody is at the second.
func (b *bench) leave(ctx context.Context, r *reader.Reader, first, second *peers.Hub, d *drained) (err error) {
	if err := peers.Wait(ctx, 2*time.Second); err != nil {
		return err
	}
	if err := r.Follow(ctx, second.Target()); err != nil {
		return err
	}
	start := time.Now()
	if err := first.Process().Terminate(); err != nil {
		return err
	}
	b.bar.What("drain")
	if d.Drained, err = r.Drained(ctx, drainBy); err != nil {
		return err
	}
	select {
	case <-first.Process().Done():
		d.exited = first.Process().Ended().Sub(start)
	case <-time.After(drainBy):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (b *bench) printDrain(d drained, wrong error) {
	report.Say(b.o.Out, "%d %s sessions; their node is told to stop while %.3g changes a second are published\n\n", b.o.Conns, b.o.transport(), b.o.Rate)
	report.Say(b.o.Out, "left, by second:  %s\n", spread(d.LeftPerSecond))
	report.Say(b.o.Out, "back, by second:  %s\n", spread(d.BackPerSecond))
	report.Say(b.o.Out, "not told when to come back: %d; refused, and tried again: %d\n", d.Unannounced, sum(d.figures.Refused))
	report.Say(b.o.Out, "changes: %d of %d deliveries, p99 %.0f ms, max %.0f ms (who is between two nodes waits); %d snapshots, %d told twice, %d resets\n",
		d.Deliveries, d.Expected, d.P99, d.Max, d.figures.Snapshots, d.figures.Repeats, d.figures.Resets)
	if d.exited > 0 {
		report.Say(b.o.Out, "the process ended by itself %.1f s after SIGTERM\n", d.exited.Seconds())
	} else {
		report.Say(b.o.Out, "the process did not end by itself within %s\n", drainBy)
	}
	if wrong == nil {
		report.Say(b.o.Out, "no change was lost, and every session has the true map\n")
	}
	b.printNotes(nil, nil)
}

func sum(by map[string]int) (n int) {
	for _, one := range by {
		n += one
	}
	return n
}

// spread shows counts a second, and how far the busiest is from the mean of
// those that had any.
func spread(bySecond []int) string {
	var words []string
	sum, some := 0, 0
	for _, n := range bySecond {
		words = append(words, fmt.Sprint(n))
		if n > 0 {
			sum, some = sum+n, some+1
		}
	}
	if some == 0 {
		return "none"
	}
	mean := float64(sum) / float64(some)
	return fmt.Sprintf("%s (mean %.0f, most %.2f times that)", strings.Join(words, " "), mean, float64(slices.Max(bySecond))/mean)
}
