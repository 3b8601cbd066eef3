package contention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/loadtest/peers"
)

// figures are what a round has measured.
type figures struct {
	requests, held, refused, odd int
	granted, unsure              int // between the looks at the gate, to the bystander too; and those that may be on the wrong side of a look
	soldTwice, falseRefusals     int
	judged                       int           // refusals among which false ones were looked for
	oldest                       time.Duration // of the false ones, after the seat was free
	cpu                          float64       // µs of all server processes a refusal
	parts                        []part        // of cpu, by process
	p50, p99                     time.Duration
	calls                        float64       // of Redis a refusal
	beside                       time.Duration // p99 of the bystander in the storm
	idle                         time.Duration // and alone
	open                         time.Duration // and in a storm at a fixed rate; 0: not measured
	openBusy                     float64       // the share of their core that all servers used then
	rate                         float64       // requests a second in the closed loop
	gate                         gate
	latency                      []int64
	busy, others                 float64 // share of its core the client used, and of the servers' core others did
	notes                        []string
}

// part is what one process had of the CPU, in µs a refusal.
type part struct {
	name string
	cpu  float64
}

// span is a part of a round that was measured.
type span struct {
	from, to          meter
	buyers, bystander tally // what was answered between
}

func (s span) seconds() float64 { return s.to.at.Sub(s.from.at).Seconds() }

// spent is the CPU of all processes that are counted.
func (s span) spent() (all time.Duration) {
	for i, to := range s.to.server {
		all += to - s.from.server[i]
	}
	return all
}

// round measures one strategy once; at rate requests a second too, unless that is 0.
func (b *bench) round(ctx context.Context, strategy string, rate float64) (f figures, err error) {
	s, err := b.open(ctx, strategy)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	silent, err := b.silence(ctx, s)
	if err != nil {
		return f, err
	}
	idle, err := b.measure(ctx, s, nil, b.o.idle())
	if err != nil {
		return f, err
	}
	storm, err := b.measure(ctx, s, b.everybody(s, b.o.Rate), b.o.storm())
	if err != nil {
		return f, err
	}
	f = b.figures(s, silent, idle, storm)
	if rate > 0 {
		open, err := b.measure(ctx, s, b.everybody(s, rate), b.o.idle())
		if err != nil {
			return f, err
		}
		f.open, f.openBusy = quantile(latencies(open.bystander.shots), 0.99), open.spent().Seconds()/open.seconds()
		f.soldTwice = soldTwice(s.ledger)
		f.judge(s, open.buyers)
		if odd := open.buyers.odd + open.bystander.odd; odd > 0 {
			f.notes = append(f.notes, fmt.Sprintf("at a fixed rate %d answers were neither a hold nor a refusal; the first: %s",
				odd, firstOf(open.buyers.oddest, open.bystander.oddest)))
		}
	}
	return f, nil
}

// everybody are the buyers: all want the same few seats.
func (b *bench) everybody(s *scene, rate float64) *crowd {
	c := &crowd{lines: s.buyers, seats: b.seats, next: anySeat(b.o.Hot), rate: rate}
	if s.strategy == Redis { // the front looks at its own clock, and may be kept waiting before it asks
		c.hold = b.o.Hold
	}
	return c
}

// silentFor is how long nobody asks for anything.
const silentFor = time.Second

// silence measures a server nobody asks.
func (b *bench) silence(ctx context.Context, s *scene) (p span, err error) {
	if p.from, err = b.meter(ctx, s); err != nil {
		return p, err
	}
	if err := peers.Wait(ctx, silentFor); err != nil {
		return p, err
	}
	p.to, err = b.meter(ctx, s)
	return p, err
}

// measure has the bystander take quiet seats, beside buyers when there are
// some, and measures so long once all is warm.
func (b *bench) measure(ctx context.Context, s *scene, buyers *crowd, long time.Duration) (p span, err error) {
	start := time.Now()
	from := start.Add(b.o.warm())
	end := from.Add(long)
	quiet := crowd{lines: s.bystander, first: int32(b.o.Buyers), seats: b.seats, next: inTurn(b.o.Hot, b.o.Seats), rate: b.o.Bystander}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		p.bystander, err = quiet.run(gctx, start, end)
		return err
	})
	if buyers != nil {
		g.Go(func() (err error) {
			p.buyers, err = buyers.run(gctx, start, end)
			return err
		})
	}
	g.Go(func() (err error) {
		if err = peers.Wait(gctx, time.Until(from)); err != nil {
			return err
		}
		if p.from, err = b.meter(gctx, s); err != nil {
			return err
		}
		if err = peers.Wait(gctx, time.Until(end)); err != nil {
			return err
		}
		p.to, err = b.meter(gctx, s)
		return err
	})
	if err := g.Wait(); err != nil {
		return p, fmt.Errorf("%s: %w", s.strategy, err)
	}
	s.ledger = append(append(s.ledger, p.buyers.grants...), p.bystander.grants...)
	p.buyers.cut(p.from.at, p.to.at)
	p.bystander.cut(p.from.at, p.to.at)
	return p, nil
}

// cut keeps the shots answered between two moments.
func (t *tally) cut(from, to time.Time) {
	kept := t.shots[:0]
	for _, s := range t.shots {
		if s.got >= from.UnixNano() && s.got < to.UnixNano() {
			kept = append(kept, s)
		}
	}
	t.shots = kept
}

func (t *tally) held() (n int) {
	for _, s := range t.shots {
		if s.held {
			n++
		}
	}
	return n
}

// figures are those of a storm.
func (b *bench) figures(s *scene, silent, idle, storm span) (f figures) {
	f.requests, f.held = len(storm.buyers.shots), storm.buyers.held()
	f.refused = f.requests - f.held
	f.granted, f.unsure = granted(s.ledger, storm.from.looked, storm.to.looked)
	f.odd = storm.buyers.odd + storm.bystander.odd + idle.bystander.odd
	f.soldTwice = soldTwice(s.ledger)
	f.judge(s, storm.buyers)
	f.latency = latencies(storm.buyers.shots)
	f.p50, f.p99 = quantile(f.latency, 0.5), quantile(f.latency, 0.99)
	f.beside = quantile(latencies(storm.bystander.shots), 0.99)
	f.idle = quantile(latencies(idle.bystander.shots), 0.99)
	spent, long := storm.spent(), storm.seconds()
	f.rate = float64(f.requests) / long
	f.busy = (storm.to.client - storm.from.client).Seconds() / long
	f.others = (storm.to.core - storm.from.core - spent).Seconds() / long
	f.gate = storm.to.gate.since(storm.from.gate)
	if f.refused > 0 {
		f.cpu = float64(spent.Microseconds()) / float64(f.refused)
		for i, p := range s.served {
			f.parts = append(f.parts, part{p.name, float64((storm.to.server[i] - storm.from.server[i]).Microseconds()) / float64(f.refused)})
		}
		f.calls = callsOfRefusals(s.strategy, silent, idle, storm) / float64(f.refused)
	}
	f.remark(storm, idle)
	return f
}

// judge adds the false refusals among a storm's; bare refuses whatever is free.
func (f *figures) judge(s *scene, storm tally) {
	if s.strategy == Bare {
		return
	}
	wrong, oldest := falseRefusals(s.ledger, s.opened, storm.shots)
	f.judged += len(storm.shots) - storm.held()
	f.falseRefusals += wrong
	f.oldest = max(f.oldest, oldest)
}

// callsOfRefusals is what Redis was asked for in a storm, without what it is
// asked for when nobody asks for seats and without what the holds cost; the
// bystander alone has shown how much a hold does.
func callsOfRefusals(strategy string, silent, idle, storm span) float64 {
	if strategy != Redis && strategy != Seatcast {
		return 0
	}
	calls := func(s span) float64 { return float64(s.to.calls - s.from.calls) }
	background := calls(silent) / silent.seconds()
	hold := 0.0
	if n := idle.bystander.held(); n > 0 {
		hold = (calls(idle) - background*idle.seconds()) / float64(n)
	}
	holds := float64(storm.buyers.held() + storm.bystander.held())
	return max(0, calls(storm)-background*storm.seconds()-hold*holds)
}

// remark says what makes figures worth less.
func (f *figures) remark(storm, idle span) {
	note := func(format string, a ...any) { f.notes = append(f.notes, fmt.Sprintf(format, a...)) }
	if f.odd > 0 {
		note("%d answers were neither a hold nor a refusal; the first: %s", f.odd, firstOf(storm.buyers.oddest, storm.bystander.oddest, idle.bystander.oddest))
	}
	for _, t := range []tally{idle.bystander, storm.bystander} {
		if n := len(t.shots) - t.held(); n > 0 {
			note("the bystander was refused %d of %d quiet seats", n, len(t.shots))
		}
	}
	if f.others > 0.1 {
		note("others used %.0f%% of the servers' core: figures are worth less", 100*f.others)
	}
	if f.reached() < 0 {
		note("%d holds were granted and Redis was asked %.0f times: the gate does not count all that it asks", f.granted, f.gate.asked)
	}
	if f.busy > 0.9 {
		note("the client was busy %.0f%% of the time: latencies are its own too", 100*f.busy)
	}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
