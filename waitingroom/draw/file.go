package draw

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Write writes a draw as whoever checks all of it reads it: a line of JSON with
// the record, and then a line for every ticket, [ticket, nonce, rank], in the
// order of the list.
func Write(w io.Writer, r Record, l *List, ranks []int) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	if err := enc.Encode(r); err != nil {
		return err
	}
	for n, t := range l.tickets {
		if err := enc.Encode(Ranked{t, ranks[n]}); err != nil {
			return err
		}
	}
	return out.Flush()
}

// ErrNone says that a file has no draw in it: nobody is accused of anything.
var ErrNone = errors.New("draw: this is no draw")

// Read reads what Write has written, and checks nothing but that: the lines may
// be in any order. ErrNone, ErrTwice, or which line is not as it should be.
func Read(r io.Reader) (rec Record, l *List, ranks []int, err error) {
	in := json.NewDecoder(bufio.NewReader(r))
	switch err := in.Decode(&rec); {
	case err == io.EOF:
		return rec, nil, nil, fmt.Errorf("%w: it is empty", ErrNone)
	case err != nil:
		return rec, nil, nil, fmt.Errorf("%w: the first line is not the record of one: %w", ErrNone, err)
	case rec.Announcement.Text() == "" || rec.Key == Digest{}:
		return rec, nil, nil, fmt.Errorf("%w: its first line has not both an announcement and a key, as a draw that was held has", ErrNone)
	}
	var (
		tickets []Ticket
		rankOf  = map[ID]int{}
	)
	for {
		var t Ranked
		err := in.Decode(&t)
		if err == io.EOF {
			break
		}
		if err != nil {
			return rec, nil, nil, fmt.Errorf("draw: ticket %d: %w", len(tickets)+1, err)
		}
		tickets, rankOf[t.ID] = append(tickets, t.Ticket), t.Rank
	}
	if len(tickets) == 0 && rec.Tickets > 0 {
		return rec, nil, nil, fmt.Errorf("%w: it has the record of one, and none of its %d tickets", ErrNone, rec.Tickets)
	}
	if l, err = Freeze(tickets); err != nil {
		return rec, nil, nil, err
	}
	for _, t := range l.tickets {
		ranks = append(ranks, rankOf[t.ID])
	}
	return rec, l, ranks, nil
}

// Find returns where a ticket is on the list, and whether it is.
func (l *List) Find(id ID) (t Ticket, at int, ok bool) {
	at, ok = slices.BinarySearchFunc(l.tickets, id, func(t Ticket, id ID) int { return bytes.Compare(t.ID[:], id[:]) })
	if !ok {
		return Ticket{}, at, false
	}
	return l.tickets[at], at, true
}
