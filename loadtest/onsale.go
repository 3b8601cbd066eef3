package main

import (
	"context"
	"fmt"
	"time"

	"seatcast/loadtest/fanout"
	"seatcast/loadtest/onsale"
)

type onsaleCmd struct {
	Users    int           `default:"5000" help:"Shoppers, each with an account of her own."`
	Fail     string        `default:"20%" help:"So many payments are made with cards that fail, in all the ways the sandbox has, in turn."`
	Seats    int           `placeholder:"N" help:"Seats on sale (default: so many that they sell out)."`
	AtOnce   int           `default:"200" help:"Shoppers in the shop at a time."`
	For      time.Duration `default:"8m" help:"Nobody comes after that."`
	Kill     time.Duration `placeholder:"DURATION" help:"Kill one of two nodes so often, and start another one."`
	JSON     string        `name:"json" placeholder:"FILE" help:"Write what came of it to this file."`
	Seatcast string        `placeholder:"BINARY" type:"existingfile" help:"The program to sell with (default: built from this module)."`
}

// Help is printed below the flags.
func (onsaleCmd) Help() string {
	return "Ends with an error when the books, the sandbox's ledger and what shoppers are told do not agree. docs/benchmarks.md tells what is compared."
}

// Run sells.
func (c *onsaleCmd) Run(ctx context.Context, s *streams) error {
	o := onsale.Options{Users: c.Users, Seats: c.Seats, Wide: c.AtOnce, For: c.For, Kill: c.Kill, JSON: c.JSON, Program: c.Seatcast, Out: s.out, Err: s.err}
	if c.Fail != "0" && c.Fail != "0%" {
		var err error
		if o.Fail, err = fanout.Share(c.Fail); err != nil {
			return fmt.Errorf("--fail %w", err)
		}
	}
	return onsale.Run(ctx, o)
}
