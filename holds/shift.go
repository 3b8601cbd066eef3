package holds

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"seatcast/seatmap"
)

//go:embed shift.lua
var shiftLua string

var shiftScript = newScript("shift", seatsLua, storedLua, accountLua, indexLua, shiftLua)

// ErrOtherShift is the answer to an operation that has begun with another time.
var ErrOtherShift = errors.New("holds: the operation extends by another time")

// Keeper is what the box office needs of the books.
type Keeper interface {
	// Keep writes a booking for a basket, unless it has one.
	Keep(ctx context.Context, sale *seatmap.Sale, b seatmap.Basket) error
	// Booked returns the booking of a token, or seatmap.ErrNoBasket.
	Booked(ctx context.Context, event, token string) (seatmap.Basket, error)
	// Open returns the tokens of the bookings of an event that are held or
	// being paid.
	Open(ctx context.Context, event string) ([]string, error)
	// Follow moves the ends and caps of bookings to those of their baskets.
	Follow(ctx context.Context, event string, baskets []seatmap.Basket) error
}

// Shift is what has come of extending all holds.
type Shift struct {
	Moved int // holds that last longer now
	Again int // that did before, by the same operation
	Ended int // that ended meanwhile
}

// A batch is so large that nobody is kept waiting by its script.
const (
	shiftBaskets = 50
	shiftSeats   = 300
)

// shiftPasses is how often all holds may be listed: each time only those are dealt
// with that were swapped meanwhile.
const shiftPasses = 10

// ShiftAll lets every hold of an event last longer by so much, and its cap with
// it: all that had begun when the operation did, but what is set aside for
// nobody. Bookings that are in the books follow. An operation may be run again after an error, for an hour: it goes on
// where it was and extends no hold twice. Those that end soonest come first.
//
// With an error it returns how far it came. ErrOtherShift changed nothing.
func (s *Store) ShiftAll(ctx context.Context, event, operation string, by time.Duration, books Keeper) (done Shift, err error) {
	defer func() { s.metrics.came("shift", err) }()
	if _, err := s.shift(ctx, event, operation, by, nil); err != nil { // from here on what begins is later
		return done, err
	}
	dealt := map[string]bool{}
	for pass := range shiftPasses {
		tokens, err := s.underway(ctx, event, books)
		if err != nil {
			return done, err
		}
		// A basket that was swapped while the list was made may be missing in it:
		// no list is the last that is the first.
		tokens = slices.DeleteFunc(tokens, func(token string) bool { return dealt[token] })
		more, err := s.shiftEach(ctx, event, operation, by, books, tokens, dealt, &done)
		if err != nil || !more && pass > 0 {
			return done, err
		}
	}
	return done, fmt.Errorf("baskets change all the time: %w", seatmap.ErrUnavailable)
}

// shiftEach extends baskets, batch by batch, and notes which are dealt with:
// all but those that have changed since they were read. There may be more when any
// was extended, now or before, or has changed: those that begin meanwhile are none of the operation's.
func (s *Store) shiftEach(ctx context.Context, event, operation string, by time.Duration, books Keeper, tokens []string, dealt map[string]bool, done *Shift) (more bool, err error) {
	for _, token := range tokens { // also one whose basket is gone
		dealt[token] = true
	}
	var all []readBasket
	err = s.eachBasket(ctx, event, tokens, func(b seatmap.Basket, body string) {
		if !isAside(b) {
			all = append(all, readBasket{b, body})
		}
	})
	if err != nil {
		return more, err
	}
	slices.SortFunc(all, func(a, b readBasket) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Token, b.Token)) })
	for len(all) > 0 {
		n := batchOf(all)
		came, err := s.shift(ctx, event, operation, by, all[:n])
		done.Moved, done.Again, done.Ended = done.Moved+came.Moved, done.Again+came.Again, done.Ended+came.Ended
		if err == nil && len(came.moved) > 0 {
			err = books.Follow(ctx, event, came.moved)
		}
		if err != nil {
			return more, err
		}
		for _, token := range came.changed {
			delete(dealt, token)
		}
		more = more || came.Moved+came.Again+len(came.changed) > 0
		all = all[n:]
	}
	return more, nil
}

// readBasket is a basket and its body as it was read.
type readBasket struct {
	seatmap.Basket
	body string
}

// batchOf is how many baskets go into the next batch: one at least.
func batchOf(all []readBasket) int {
	seats := 0
	for n, b := range all {
		if seats += len(b.Seats); n > 0 && (n == shiftBaskets || seats > shiftSeats) {
			return n
		}
	}
	return len(all)
}

// underway are the tokens of all baskets that may hold something now: what the
// map shows as held, and what the books know.
func (s *Store) underway(ctx context.Context, event string, books Keeper) ([]string, error) {
	shown, _, err := s.Shown(ctx, event)
	if err != nil {
		return nil, err
	}
	var held []int
	for i := range 4 * len(shown) {
		if shown.At(i) == seatmap.Held {
			held = append(held, i)
		}
	}
	holders, err := warmed(ctx, event, s.warm, func() (map[int]string, error) { return s.tokens(ctx, event, held) })
	if err != nil {
		return nil, err
	}
	open, err := books.Open(ctx, event)
	if err != nil {
		return nil, err
	}
	return unique(slices.AppendSeq(open, maps.Values(holders))), nil
}

// shifted is what came of one batch.
type shifted struct {
	Shift
	moved   []seatmap.Basket // as they are now, by this batch or one before
	changed []string         // tokens of baskets that are to be read again
}

// shift runs the script for some baskets; for none it begins the operation.
func (s *Store) shift(ctx context.Context, event, operation string, by time.Duration, baskets []readBasket) (out shifted, err error) {
	keys := []string{seatmap.SeqKey(event), seatmap.MapKey(event), seatmap.HeldKey(event), seatmap.LogKey(event), seatmap.ExtendedKey(event, operation)}
	args := []any{by.Milliseconds(), len(baskets)}
	for _, b := range baskets {
		keys = holdKeys(append(keys, seatmap.BasketKey(event, b.Token), seatmap.UserKey(event, b.User)), event, b.Seats)
		args = seatArgs(append(args, b.Token, b.body, len(b.Seats)), b.Seats)
	}
	answer, err := s.do(ctx, event, s.warm, shiftScript, keys, args...)
	if err != nil {
		return out, err
	}
	if answer.word == "other" {
		return out, ErrOtherShift
	}
	for k, b := range baskets {
		word, change, stored := answer.text(3*k+1), answer.text(3*k+2), answer.text(3*k+3)
		s.publish(ctx, event, change)
		switch word {
		case "moved":
			out.Moved++
		case "again":
			out.Again++
		case "over":
			out.Ended++
			continue
		case "changed":
			out.changed = append(out.changed, b.Token)
			continue
		default: // later: of no concern
			continue
		}
		now, _, err := parseBasket(event, b.Token, stored)
		if err != nil {
			return out, err
		}
		out.moved = append(out.moved, now)
	}
	return out, nil
}
