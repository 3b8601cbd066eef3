package fanout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/proc"
	"seatcast/loadtest/reader"
)

// figures are what a round has measured.
type figures struct {
	reader.Report
	cpu    float64 // microseconds of the server a frame read
	rate   float64 // deliveries a second
	rss    float64 // bytes a session at rest
	bytes  float64 // a frame read
	busy   float64 // share of its core the reader was on
	others float64 // share of the server's core that others used meanwhile
	grown  int64   // bytes the server's memory grew by while publishing
	wrong  error   // a check that failed
	closed int     // dead sessions the server has closed
}

// lateness is how long after the last change was due deliveries may still come.
const lateness = 15 * time.Second

// round measures one server once.
func (b *bench) round(ctx context.Context, name string, rate float64, dead int) (f figures, err error) {
	s, err := b.open(ctx, name, dead)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	b.bar.Done(int64(b.o.Conns))
	if f, err = b.publish(ctx, s, rate, b.o.frames(), lateness, nil); err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	b.bar.Done(f.Expected)
	f.rss = s.rss
	f.wrong = b.check(ctx, s, f)
	if dead > 0 {
		f.closed = awaitClosed(ctx, s, dead)
	}
	if note := s.server.Note(); note != "" {
		b.note(note)
	}
	return f, nil
}

// publish publishes frames at a rate and waits until all have come or late is
// over. during, when given, runs meanwhile.
func (b *bench) publish(ctx context.Context, s *scene, rate float64, frames int, late time.Duration, during func(context.Context) error) (f figures, err error) {
	start := time.Now().Add(300 * time.Millisecond)
	plan := b.changes.Plan(s.server, s.published, warm+frames, warm, start, rate)
	if err := s.reader.Expect(ctx, plan); err != nil {
		return f, err
	}
	first := s.published
	s.published += len(plan.Changes)
	var from meter
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return send(gctx, s.server, first, plan, func() (err error) {
			from, err = b.meter(s)
			return err
		})
	})
	g.Go(func() (err error) {
		if during != nil {
			err = during(gctx)
		}
		if err == nil {
			end := time.Unix(0, plan.Changes[len(plan.Changes)-1].Due)
			f.Report, err = s.reader.Await(gctx, time.Until(end)+late)
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return f, err
	}
	to, err := b.meter(s)
	if err != nil {
		return f, err
	}
	f.grown = to.server.RSS - s.rested.RSS
	spent, span := to.server.CPU-from.server.CPU, float64(to.at.Sub(from.at))
	f.busy = float64(to.reader.CPU-from.reader.CPU) / span
	f.others = float64(to.core-from.core-spent) / span
	if f.Frames > 0 {
		f.cpu = float64(spent.Microseconds()) / float64(f.Frames)
		f.bytes = float64(f.Bytes) / float64(f.Frames)
		f.rate = float64(f.Deliveries) / max(time.Duration(f.Last-f.First).Seconds(), 1/rate)
	}
	return f, nil
}

// meter is what was used up to a moment.
type meter struct {
	at             time.Time
	server, reader proc.Usage
	core           time.Duration // the server's core was busy, for anybody
}

func (b *bench) meter(s *scene) (m meter, err error) {
	m.at = time.Now()
	if m.server, err = proc.Of(s.server.Pid()); err != nil {
		return m, err
	}
	if m.reader, err = proc.Of(s.reader.Pid()); err != nil {
		return m, err
	}
	m.core, err = proc.Busy(b.server[0])
	return m, err
}

// justBefore is how long before the first measured change is due its server's
// usage is read.
const justBefore = 5 * time.Millisecond

// send publishes every change of a plan, from number first on, when it is due, and calls measure just before
// the first that is measured.
func send(ctx context.Context, s peers.Server, first int, p reader.Plan, measure func() error) error {
	for i, c := range p.Changes {
		due := time.Unix(0, c.Due)
		if i == warm {
			if err := peers.Wait(ctx, time.Until(due)-justBefore); err != nil {
				return err
			}
			if err := measure(); err != nil {
				return err
			}
		}
		if err := peers.Wait(ctx, time.Until(due)); err != nil {
			return err
		}
		if err := s.Publish(ctx, first+i); err != nil {
			return fmt.Errorf("publish change %d: %w", first+i, err)
		}
	}
	return nil
}

// check returns what a server has done wrong, if anything.
func (b *bench) check(ctx context.Context, s *scene, f figures) error {
	var wrong []error
	if f.Deliveries < f.Expected {
		wrong = append(wrong, fmt.Errorf("%d of %d deliveries are missing", f.Expected-f.Deliveries, f.Expected))
	}
	if f.Faults > 0 {
		wrong = append(wrong, fmt.Errorf("%d faults; the first: %s", f.Faults, f.Fault))
	}
	if len(f.Closed) > 0 {
		wrong = append(wrong, fmt.Errorf("it closed sessions: %v", f.Closed))
	}
	if hub, ok := s.server.(*peers.Hub); ok {
		wrong = append(wrong, checkMaps(ctx, s.reader, hub, f.On))
	}
	return errors.Join(wrong...)
}

// mapsWithin is how long sessions may take to reach the map a poll shows.
const mapsWithin = 5 * time.Second

// checkMaps waits until every session has the map the hub shows.
func checkMaps(ctx context.Context, r *reader.Reader, hub *peers.Hub, sessions int) error {
	for deadline := time.Now().Add(mapsWithin); ; {
		finals, err := r.Finals(ctx)
		if err != nil {
			return err
		}
		truth, err := hub.Map(ctx)
		if err != nil {
			return err
		}
		if len(finals) == 1 && finals[0].Sessions == sessions && finals[0].N == truth.N && bytes.Equal(finals[0].Map, truth.Map) {
			return nil
		}
		if time.Now().After(deadline) {
			right := 0
			for _, one := range finals {
				if bytes.Equal(one.Map, truth.Map) {
					right += one.Sessions
				}
			}
			return fmt.Errorf("%d of %d sessions have not the true map: there are %d maps", sessions-right, sessions, len(finals))
		}
		if err := peers.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// deadWithin is how long a server may take to notice who never reads.
const deadWithin = 20 * time.Second

// awaitClosed returns how many of the dead sessions the server has closed: by
// the files it has open.
func awaitClosed(ctx context.Context, s *scene, dead int) int {
	closed := 0
	for deadline := time.Now().Add(deadWithin); time.Now().Before(deadline) && closed < dead; {
		now, err := proc.Of(s.server.Pid())
		if err != nil || peers.Wait(ctx, 250*time.Millisecond) != nil {
			break
		}
		closed = max(closed, min(s.rested.FDs-now.FDs, dead))
	}
	return closed
}

func (b *bench) note(text string) {
	for _, n := range b.notes {
		if n == text {
			return
		}
	}
	b.notes = append(b.notes, text)
}
