package main

import (
	"bufio"
	"errors"
	"fmt"

	"seatcast/waitingroom"
)

// codesCmd mints codes for a waiting room. It asks nobody: the servers know a code by
// its signature.
type codesCmd struct {
	ServerKey string `env:"SEATCAST_SERVER_KEY" required:"" placeholder:"KEY" help:"The servers' own key: codes are signed with one derived from it."`
	Event     string `required:"" placeholder:"ID" help:"The event they are for."`
	Count     int    `required:"" placeholder:"N" help:"How many."`
	From      int    `default:"1" placeholder:"N" help:"The number of the first: that of the next batch is behind the last of this one. The same numbers are the same codes."`
}

// Validate is called by the parser.
func (c codesCmd) Validate() error {
	switch {
	case len(c.ServerKey) < 32:
		return errors.New("the server key has at least 32 characters, as the servers have it")
	case c.Event == "":
		return errors.New("--event names none")
	case c.From < 1 || c.Count < 1 || c.Count > waitingroom.LastCode || c.From > waitingroom.LastCode-c.Count+1:
		return fmt.Errorf("codes have numbers from 1 to %d", waitingroom.LastCode)
	}
	return nil
}

// Run prints the codes, one a line.
func (c codesCmd) Run(s *streams) error {
	keys, err := waitingroom.ParseKeys("", c.ServerKey)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(s.out)
	for serial := c.From; serial < c.From+c.Count; serial++ {
		_, _ = fmt.Fprintln(w, keys.Code(c.Event, serial)) // Flush tells
	}
	return w.Flush()
}
