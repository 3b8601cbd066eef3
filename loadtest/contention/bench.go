package contention

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/loadtest/contention/front"
	"seatcast/loadtest/peers"
	"seatcast/loadtest/proc"
	"seatcast/loadtest/report"
)

// bench is what all rounds share.
type bench struct {
	o        *Options
	dir      string
	server   proc.Cores
	client   proc.Cores
	house    *peers.House
	stores   peers.Stores
	rdb      *redis.Client
	database string   // address of the fronts' own
	seats    []string // names, the hot ones first
	tokens   []string // of the buyers, then of the bystander
	bar      *report.Bar
	notes    []string
}

// results are the rounds of each strategy, by pair.
type results map[string][]figures

// Run measures and prints. It returns an error when seatcast sold a seat twice.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	b := &bench{o: &o}
	if err := b.cores(); err != nil {
		return err
	}
	report.Say(o.Err, "starting private Redis, Postgres and NATS, and putting %d seats on sale\n", o.Seats)
	hall := front.Hall(o.Seats)
	b.seats = front.Tickets(hall)
	in := peers.HouseOptions{Program: o.Program, Chart: hall, Hold: o.Hold, Durable: o.Durable,
		StoresOn: b.server, RedisTCP: true, NATSBy: o.Self, NoAPI: true}
	return peers.InHouse(ctx, in, func(h *peers.House, dir string) error {
		b.house, b.dir = h, dir
		return b.run(ctx)
	})
}

// cores gives the servers the first core and the buyers the others.
func (b *bench) cores() error {
	all, err := proc.Allowed()
	if err != nil {
		return err
	}
	b.server, b.client = all[:1], all[:1]
	if len(all) == 1 {
		b.notes = append(b.notes, "there is one core only: servers and buyers share it, and no figure means anything")
		return nil
	}
	b.client = all[1:]
	runtime.GOMAXPROCS(len(b.client))
	return proc.Stay(b.client)
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.stores, err = b.house.Pids(ctx); err != nil {
		return err
	}
	if b.database, err = b.house.PostgresURL(ctx, "fronts"); err != nil {
		return err
	}
	o, err := redis.ParseURL(b.house.RedisURL())
	if err != nil {
		return err
	}
	b.rdb = redis.NewClient(o)
	defer func() { _ = b.rdb.Close() }() // nothing is buffered in it
	if err := b.mint(); err != nil {
		return err
	}
	b.bar = report.NewBar(b.o.Err, int64(len(b.o.measured())*b.o.Pairs))
	defer b.bar.End()
	rate := 0.0
	if b.o.has(Seatcast) {
		b.bar.What("how much bare can do")
		if rate, err = b.saturation(ctx); err != nil {
			return err
		}
	}
	got, err := b.pairs(ctx, rate/2)
	if err != nil {
		return err
	}
	b.bar.End()
	return b.finish(rate, got)
}

// sessions outlast any run.
const sessionsFor = 24 * time.Hour

func (b *bench) mint() error {
	for i := range b.o.Buyers + bystanders {
		token, err := front.Mint(b.house.SessionKey(), "buyer-"+strconv.Itoa(i), sessionsFor)
		if err != nil {
			return err
		}
		b.tokens = append(b.tokens, token)
	}
	return nil
}

// saturation is how many requests a second bare answers in a closed loop.
func (b *bench) saturation(ctx context.Context) (rate float64, err error) {
	s, err := b.open(ctx, Bare)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	p, err := b.measure(ctx, s, b.everybody(s, 0), b.o.idle())
	return float64(len(p.buyers.shots)) / p.seconds(), err
}

// pairs runs one round of every strategy a pair, every other pair in reverse.
func (b *bench) pairs(ctx context.Context, rate float64) (results, error) {
	got := make(results)
	for pair := range b.o.Pairs {
		order := slices.Clone(b.o.measured())
		if pair%2 == 1 {
			slices.Reverse(order)
		}
		for _, strategy := range order {
			b.bar.What(fmt.Sprintf("pair %d of %d: %s", pair+1, b.o.Pairs, strategy))
			at := 0.0
			if strategy == Seatcast || strategy == Bare {
				at = rate
			}
			f, err := b.round(ctx, strategy, at)
			if err != nil {
				return got, err
			}
			b.bar.Done(1)
			b.bar.Line("pair %d of %d: %-8s %6.0f requests/s, %6.1f µs a refusal, p99 %.1f ms, sold twice %d\n",
				pair+1, b.o.Pairs, strategy, f.rate, f.cpu, ms(f.p99), f.soldTwice)
			got[strategy] = append(got[strategy], f)
		}
	}
	return got, nil
}

// finish prints and writes what was measured.
func (b *bench) finish(rate float64, got results) error {
	b.print(rate, got)
	err := errors.Join(b.o.write(got), b.o.draw(got))
	if n := worst(got[Seatcast], func(f figures) int { return f.soldTwice }); n > 0 {
		err = errors.Join(err, fmt.Errorf("seatcast sold %d seats twice", n))
	}
	return err
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
