package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"seatcast/loadtest/fanout"
)

type fanoutCmd struct {
	Conns     int           `default:"10000" help:"Sessions, all of one event."`
	Rate      float64       `default:"5" help:"Frames a second, at most 8."`
	Frames    int           `default:"60" help:"Frames to measure."`
	Transport string        `default:"sse" enum:"sse,ws" help:"sse or ws."`
	Against   []string      `placeholder:"raw,nchan,…" help:"Servers to compare with: raw, nchan, centrifugo, nethttp (default: none)."`
	Pairs     int           `default:"5" help:"How often every server is measured."`
	Changes   int           `placeholder:"N" help:"Seats a frame changes (default 2)."`
	JSON      string        `name:"json" placeholder:"FILE" help:"Write one row a server to this file."`
	Seatcast  string        `placeholder:"BINARY" type:"existingfile" help:"The program to measure (default: built from this module)."`
	For       time.Duration `placeholder:"DURATION" help:"Publish for so long, instead of --frames."`

	Burst     bool    `help:"1,000 seats a frame."`
	Dead      string  `placeholder:"1%" help:"So many of the sessions never read: each server with and without them."`
	Herd      bool    `help:"Everybody reconnects at once, without and with the number they hold."`
	Churn     bool    `help:"Sessions leave and come back all the time; with --for, a soak."`
	ChurnRate float64 `placeholder:"N" help:"So many a second (default: one in a hundred)."`
	Drain     bool    `help:"The node that has all sessions is told to stop; another takes them."`
	Saturate  bool    `help:"Find how much raw can do, and compare at half of that."`
}

// Help is printed below the flags.
func (fanoutCmd) Help() string {
	return "Every server runs alone on one core and is read from another. docs/benchmarks.md tells what each figure means."
}

// Run measures.
func (c *fanoutCmd) Run(ctx context.Context, s *streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	o.Out, o.Err = s.out, s.err
	if o.Self, err = os.Executable(); err != nil {
		return err
	}
	return fanout.Run(ctx, o)
}

func (c *fanoutCmd) options() (o fanout.Options, err error) {
	o = fanout.Options{Conns: c.Conns, Rate: c.Rate, Frames: c.Frames, Size: c.Changes, WS: c.Transport == "ws", Against: c.Against,
		Pairs: c.Pairs, Churn: c.ChurnRate, For: c.For, JSON: c.JSON, Program: c.Seatcast}
	if o.Mode, err = c.mode(); err != nil {
		return o, err
	}
	if c.Dead != "" {
		if o.Dead, err = fanout.Share(c.Dead); err != nil {
			return o, fmt.Errorf("--dead %w", err)
		}
	}
	if c.Burst && c.Changes > 0 {
		return o, errors.New("--burst is 1,000 seats a frame: leave --changes out")
	}
	if c.Burst {
		o.Size = 1000
	}
	if c.ChurnRate != 0 && !c.Churn {
		return o, errors.New("--churn-rate says how fast --churn is: give that too")
	}
	return o, o.Validate()
}

// mode is the one that was asked for.
func (c *fanoutCmd) mode() (fanout.Mode, error) {
	var all []string
	for mode, on := range map[fanout.Mode]bool{fanout.Dead: c.Dead != "", fanout.Herd: c.Herd, fanout.Churn: c.Churn, fanout.Drain: c.Drain, fanout.Saturate: c.Saturate} {
		if on {
			all = append(all, string(mode))
		}
	}
	switch len(all) {
	case 0:
		return fanout.Plain, nil
	case 1:
		return fanout.Mode(all[0]), nil
	}
	return "", fmt.Errorf("--%s: one of them at a time", strings.Join(all, ", --"))
}
