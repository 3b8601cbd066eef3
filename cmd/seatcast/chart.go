package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/catalog"
	"seatcast/checkout"
	"seatcast/holds"
)

type eventChartCmd struct {
	database
	Redis  string `env:"SEATCAST_REDIS_URL" name:"redis" required:"" placeholder:"URL" help:"Where seats are held, as SEATCAST_REDIS_URL of the servers: a seat that is dropped must not be taken meanwhile."`
	Prices string `placeholder:"'Stalls A=8500,…'" help:"Prices in minor units: of every category that is new, and of others to change them."`
	Event  string `arg:"" help:"The event's id."`
	Chart  string `arg:"" placeholder:"FILE|SHA" help:"Chart file, or the SHA-256 of an imported chart. Its seats are told by their ticketId; their indexes do not count."`
}

// Run publishes the chart, prints the SHA-256 of what is in force and tells what
// it did; or names every seat that somebody has and publishes nothing.
func (c eventChartCmd) Run(ctx context.Context, s *streams) error {
	n := catalog.Publication{Event: c.Event}
	if err := c.read(s, &n); err != nil {
		return err
	}
	pool, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	done, err := c.publish(ctx, pool, n)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(s.out, done.Chart); err != nil {
		return err
	}
	if !done.Changed {
		say(s.err, "it is in force already, as version %d\n", done.Version)
		return nil
	}
	say(s.err, "version %d: %d seats added, %d dropped, %d restored\n", done.Version, done.Added, done.Dropped, done.Restored)
	return nil
}

func (c eventChartCmd) read(s *streams, n *catalog.Publication) (err error) {
	if c.Prices != "" {
		if n.Prices, err = catalog.ParsePrices(c.Prices, ""); err != nil {
			return err
		}
	}
	if shaPattern.MatchString(c.Chart) {
		n.ChartSHA = c.Chart
		return nil
	}
	n.Chart, err = readChart(s.err, c.Chart)
	return err
}

// publish does what a server would, but tells no other server of what it
// changes: they look twice a second.
func (c eventChartCmd) publish(ctx context.Context, pool *pgxpool.Pool, n catalog.Publication) (done catalog.Published, err error) {
	rdb, err := holds.Client(c.Redis)
	if err != nil {
		return done, err
	}
	defer func() { _ = rdb.Close() }() // nothing is buffered in it
	ledger, err := checkout.NewStore(pool)
	if err != nil {
		return done, err
	}
	log := slog.Default()
	return catalog.NewPublisher(catalog.New(pool), holds.New(rdb, ledger, nobodyHears{}, log), log).Publish(ctx, n)
}

// nobodyHears is the voice of a command.
type nobodyHears struct{}

func (nobodyHears) Publish(context.Context, string, []byte) {}
