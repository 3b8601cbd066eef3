package main

import (
	"context"
	"time"

	"seatcast/loadtest/room"
)

type roomCmd struct {
	Fans     int           `default:"200000" help:"Fans, each with an account of her own."`
	Conns    int           `default:"500" help:"Connections, all of which ask at the same time."`
	Pairs    int           `default:"3" help:"How often everybody joins, beside redis-benchmark; 0: hold the draw alone."`
	Draw     bool          `default:"true" negatable:"" help:"Hold a draw, and have everybody learn their place."`
	Idle     time.Duration `default:"8s" help:"How long is looked what a tick costs."`
	JSON     string        `name:"json" placeholder:"FILE" help:"Write what was measured to this file."`
	Seatcast string        `placeholder:"BINARY" type:"existingfile" help:"The program to measure (default: built from this module)."`
}

// Help is printed below the flags.
func (roomCmd) Help() string {
	return "Ends with an error when a place is given twice or lost. docs/benchmarks.md tells what each figure means."
}

// Run measures.
func (c *roomCmd) Run(ctx context.Context, s *streams) error {
	return room.Run(ctx, room.Options{Fans: c.Fans, Conns: c.Conns, Pairs: c.Pairs, Draw: c.Draw, Idle: c.Idle, JSON: c.JSON, Program: c.Seatcast, Out: s.out, Err: s.err})
}
