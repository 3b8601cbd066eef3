package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"seatcast/waitingroom/draw"
)

type verifyDrawCmd struct {
	File         string `arg:"" help:"The draw, as the house has published it: a record and a line a ticket. - is standard input."`
	Ticket       string `placeholder:"ID" help:"Your ticket: tells its rank too."`
	Announcement string `placeholder:"SHA256" help:"What your receipt says was announced: the draw must be of that."`
	Root         string `placeholder:"SHA256" help:"The root you saved when the list was frozen: the tickets must be those."`
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
	for _, given := range []struct{ flag, digest string }{{"--announcement", c.Announcement}, {"--root", c.Root}} {
		if given.digest != "" && !shaPattern.MatchString(strings.ToLower(given.digest)) {
			return fmt.Errorf("%s is 64 hex digits; %q is not, and nothing was checked", given.flag, given.digest)
		}
	}
	r, list, ranks, err := draw.Read(in)
	if errors.Is(err, draw.ErrNone) {
		return fmt.Errorf("%s: %w. Once the draw is held GET /v1/queue/{event}/draw says \"state\":\"drawn\", and its \"list\" is where the file is", c.File, err)
	}
	if err != nil {
		return err
	}
	if err := r.Verify(list, ranks); err != nil {
		return fmt.Errorf("this draw was not held as announced: %w", err)
	}
	a := r.Announcement
	for _, told := range []struct{ what, yours, is string }{
		{"is of another announcement than your receipt", c.Announcement, a.Digest().String()},
		{"has another root than the one you saved: the list was changed after that", c.Root, r.Root.String()},
	} {
		if told.yours != "" && !strings.EqualFold(told.yours, told.is) {
			return fmt.Errorf("this draw %s: %s", told.what, told.is)
		}
	}
	say(s.out, "The draw of %s was held as announced.\n\n", a.Event)
	say(s.out, "announcement  %s\n", a.Digest())
	say(s.out, "list          %d tickets; it was to close at %s\n", r.Tickets, a.Closes.Format(time.RFC3339))
	say(s.out, "root          %s\n", r.Root)
	say(s.out, "seed          %s\n", r.Seed)
	say(s.out, "beside it     %s\n", beside(a))
	say(s.out, "ranks         all %d follow from the key %s\n", r.Tickets, r.Key)
	c.doubts(s.out, a.External)
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
func beside(a draw.Announcement) string {
	switch e := a.External; {
	case e.Known():
		return fmt.Sprintf("round %d of quicknet, the beacon of the League of Entropy, which came out at %s, %v after the list was to close",
			e.Round, out(e), e.At().Sub(a.Closes))
	case e.Kind == draw.Drand:
		return fmt.Sprintf("round %d of an unknown beacon, whose key is %s; that it came out at %s is its word", e.Round, e.PublicKey, out(e))
	case e.Kind == draw.Committer:
		return fmt.Sprintf("the seed of %s, committed to as %v", e.Name, *e.Commitment)
	}
	return "nothing: you trust the organiser not to have tried seeds or tickets"
}

func out(e draw.External) string { return e.At().UTC().Format(time.RFC3339) }

// doubts says what the file alone does not show.
func (c verifyDrawCmd) doubts(w io.Writer, e draw.External) {
	if c.Announcement == "" {
		say(w, "\nNot checked: that this was announced before anybody joined. Give the digest in your receipt with --announcement.\n")
	}
	var told string // the external value, when
	switch {
	case e.Known():
		told = out(e)
	case e.Kind == draw.Drand:
		told = "that round came out"
		say(w, "\nThe beacon is none that this program knows: it is as trustworthy as whoever runs it, which may be the house.\n")
	case e.Kind == draw.Committer:
		told = e.Name + " told their seed"
		say(w, "\nCannot be checked: that %s and the house did not tell each other their seeds before the list was frozen.\n", e.Name)
	default:
		return
	}
	if c.Root == "" {
		say(w, "\nNot checked: that the list was frozen before %s. Give a root that somebody saved before then with --root.\n", told)
		return
	}
	say(w, "\nThe root is the one you gave. If it was saved before %s, the list was frozen before anybody could know the order.\n", told)
}
