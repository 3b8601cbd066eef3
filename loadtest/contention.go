package main

import (
	"context"
	"os"
	"time"

	"seatcast/loadtest/contention"
)

type contentionCmd struct {
	Strategy  []string      `default:"naive,postgres,redis,seatcast,bare" placeholder:"naive,postgres,…" help:"What is measured: naive, postgres, redis, seatcast, bare. The file of --json has a row for each of them; bare, the yardstick of seatcast, runs beside it in any case (default: all)."`
	Buyers    int           `default:"500" help:"Buyers, each with a session and a connection of her own."`
	Hot       int           `default:"200" help:"Seats all of them want."`
	Seats     int           `default:"20000" help:"Seats there are."`
	Seconds   float64       `default:"20" help:"How long a storm is measured."`
	Pairs     int           `default:"3" help:"How often every strategy is measured."`
	Hold      time.Duration `default:"2s" help:"How long a hold lasts."`
	Bystander float64       `default:"50" help:"Quiet seats a second that somebody else takes meanwhile."`
	Rate      float64       `placeholder:"N" help:"Storm at so many requests a second, at fixed moments, whoever waits (default: each buyer asks again once she is answered)."`

	Pool        int    `default:"16" help:"Connections to Postgres of naive and postgres."`
	Transaction string `default:"simple" help:"What postgres does for a seat: simple is the UPDATE alone; realistic looks at the buyer's holds, updates, books and logs in one transaction; locked begins with SELECT … FOR UPDATE."`
	RoundTrips  int    `default:"0" help:"Further statements of such a transaction, one after the other, once the UPDATE or the lock is there."`
	Fsync       bool   `default:"true" negatable:"" help:"Postgres confirms only what is on disk."`

	JSON     string `name:"json" placeholder:"FILE" help:"Write one row a strategy to this file."`
	Plot     string `placeholder:"FILE" help:"Draw CPU and p99 to this file, as SVG."`
	Seatcast string `placeholder:"BINARY" type:"existingfile" help:"The program to measure (default: built from this module)."`
}

// Help is printed below the flags.
func (contentionCmd) Help() string {
	return "All servers share one core, the buyers have another. docs/benchmarks.md tells what each figure means."
}

// Run measures.
func (c *contentionCmd) Run(ctx context.Context, s *streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return contention.Run(ctx, contention.Options{Strategies: c.Strategy, Buyers: c.Buyers, Hot: c.Hot, Seats: c.Seats, Seconds: c.Seconds,
		Pairs: c.Pairs, Hold: c.Hold, Bystander: c.Bystander, Rate: c.Rate, Pool: c.Pool, Transaction: c.Transaction, RoundTrips: c.RoundTrips,
		Durable: c.Fsync, JSON: c.JSON, Plot: c.Plot, Program: c.Seatcast, Self: self, Out: s.out, Err: s.err})
}
