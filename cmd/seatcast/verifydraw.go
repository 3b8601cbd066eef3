package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"seatcast/waitingroom/draw"
)

type verifyDrawCmd struct {
	File         string `arg:"" help:"The draw, as the house has published it: a record and a line a ticket. - is standard input."`
	Ticket       string `placeholder:"ID" help:"Your ticket: tells its rank too."`
	Announcement string `placeholder:"SHA256" help:"What your receipt says was announced: the draw must be of that."`
}

// Run checks a draw. It asks nobody: what cannot be told from the file it says.
func (c verifyDrawCmd) Run(s *streams) error {
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	var ticket draw.ID
	if c.Ticket != "" {
		if err := ticket.UnmarshalText([]byte(c.Ticket)); err != nil {
			return fmt.Errorf("--ticket: %w", err)
		}
	}
	r, list, ranks, err := draw.Read(in)
	if err != nil {
		return err
	}
	if err := r.Verify(list, ranks); err != nil {
		return fmt.Errorf("this draw was not held as announced: %w", err)
	}
	announced := r.Announcement.Digest().String()
	if c.Announcement != "" && c.Announcement != announced {
		return fmt.Errorf("this draw is of another announcement than your receipt: %s", announced)
	}
	say(s.out, "The draw of %s was held as announced.\n\n", r.Event)
	say(s.out, "announcement  %s\n", announced)
	say(s.out, "list closed   %s, with %d tickets\n", r.Closes.Format(time.RFC3339), r.Tickets)
	say(s.out, "root          %s\n", r.Root)
	say(s.out, "seed          %s\n", r.Seed)
	say(s.out, "beside it     %s\n", beside(r.External))
	say(s.out, "ranks         all %d follow from the key %s\n", r.Tickets, r.Key)
	if c.Ticket == "" {
		return nil
	}
	_, at, ok := list.Find(ticket)
	if !ok {
		return fmt.Errorf("ticket %v: %w; with a receipt for it you can prove that it was dropped", ticket, draw.ErrNotListed)
	}
	say(s.out, "\nTicket %v has rank %d of %d.\n", ticket, ranks[at], r.Tickets)
	return nil
}

// beside says what the house did not control.
func beside(e draw.External) string {
	switch e.Kind {
	case draw.Drand:
		return fmt.Sprintf("round %d of a drand beacon, which came out at %s, signed by %s", e.Round, e.At().UTC().Format(time.RFC3339), e.PublicKey)
	case draw.Committer:
		return fmt.Sprintf("the seed of %s, committed to as %v", e.Name, *e.Commitment)
	}
	return "nothing: you trust the organiser not to have tried seeds or tickets"
}
