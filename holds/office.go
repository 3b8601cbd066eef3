package holds

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"seatcast/seatmap"
	"seatcast/web"
)

// Office holds seats for the box office, by the scripts everybody's holds go
// through. Its holds last for days, so they are in the books from the beginning.
type Office struct {
	api   *API
	books Keeper
}

// NewOffice returns the calls of operators beside those of shoppers.
func NewOffice(api *API, books Keeper) *Office { return &Office{api, books} }

// Bounds of what an operator asks for.
const (
	shortestHold = time.Minute
	longestHold  = 30 * 24 * time.Hour
	longestShift = 24 * time.Hour
	shortShift   = time.Second
	maxNote      = 500
	maxUser      = 200
)

// holdBody is what an operator holds, for whom and why.
type holdBody struct {
	TicketIDs []string `json:"ticketIds"`
	User      string   `json:"user"` // empty: the operator
	For       string   `json:"for"`
	Reason    string   `json:"reason"`
}

// request is what the body asks for. Its errors are ready to be returned.
func (b holdBody) request(sale *seatmap.Sale, operator string) (r TakeRequest, err error) {
	r = TakeRequest{Event: sale.Event, User: b.User, Operator: operator, Note: b.Reason}
	if r.User == "" {
		r.User = operator
	}
	switch {
	case len(b.TicketIDs) == 0:
		return r, web.Bad("empty_booking", "name at least one seat, with ticketIds")
	case len(b.TicketIDs) > MaxSeats:
		return r, tooMany(MaxSeats)
	case len(r.User) > maxUser || !utf8.ValidString(r.User) || strings.ContainsFunc(r.User, unicode.IsControl):
		return r, web.Bad("bad_request", fmt.Sprintf("user is an account of 1 to %d bytes", maxUser))
	case strings.TrimSpace(b.Reason) == "" || utf8.RuneCountInString(b.Reason) > maxNote || strings.ContainsFunc(b.Reason, unicode.IsControl):
		return r, web.Bad("bad_request", fmt.Sprintf("say what for, with reason: 1 to %d characters", maxNote))
	}
	last, err := span(b.For, shortestHold, longestHold)
	if err != nil {
		return r, web.Bad("bad_time", "for is how long the seats are held, such as 30m, 12h or 7d: a minute at least, and 30 days at most")
	}
	// No cap of the account applies, and no swap either.
	r.Terms = seatmap.Terms{Hold: last, Cap: last, Grace: sale.Terms.Grace, SeatsPerUser: noCap}
	if r.Seats, err = seatsOf(sale, b.TicketIDs); err != nil {
		return r, err
	}
	if err := r.price(sale); err != nil {
		return r, err
	}
	asked, err := json.Marshal([]any{r.Seats, r.User, last.String(), r.Note})
	if err != nil {
		return r, fmt.Errorf("hash of a request: %w", err)
	}
	sum := sha256.Sum256(asked)
	r.Hash = hex.EncodeToString(sum[:16])
	return r, nil
}

// noCap is more than any account can have, and a number every script can add to.
const noCap = 1 << 30

// span reads a duration that may be written in days.
func span(text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		if n, err = strconv.Atoi(days); err == nil && n > 0 && n <= int(most/(24*time.Hour)) {
			d = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || d < least || d > most {
		return 0, fmt.Errorf("holds: %q is no duration from %v to %v", text, least, most)
	}
	return d, nil
}

// officeTries is how often the same request may have come to nothing and still
// hold its seats.
const officeTries = 20

// take holds what is asked for and writes it into the books. When that fails
// the seats are given back, and the same request may be sent again: its basket is
// over, and in no book, so another token is its next try.
func (o *Office) take(ctx context.Context, sale *seatmap.Sale, r TakeRequest, operator, key string) (b seatmap.Basket, fresh bool, err error) {
	for try := range officeTries {
		r.Token = o.token(sale.Event, operator, key, try)
		if b, fresh, err = o.api.store.take(ctx, r); !errors.Is(err, seatmap.ErrHoldExpired) {
			break
		}
		if _, booked := o.books.Booked(ctx, r.Event, r.Token); !errors.Is(booked, seatmap.ErrNoBasket) {
			err = cmp.Or(booked, err)
			break
		}
	}
	if errors.Is(err, seatmap.ErrNotYours) { // the token is this operator's: it was for another account
		err = ErrReused
	}
	if err != nil {
		return b, false, problem(sale, err)
	}
	if err := o.books.Keep(ctx, sale, b); err != nil {
		if fresh {
			err = errors.Join(err, o.api.store.Release(context.WithoutCancel(ctx), r.Event, r.Token, r.User))
		}
		return b, false, problem(sale, err)
	}
	return b, fresh, nil
}

// token is no account's own: it is derived from a control character.
func (o *Office) token(event, operator, key string, try int) string {
	who := "office\n" + operator
	if try > 0 {
		who += fmt.Sprint("\n", try)
	}
	return o.api.token(who, event, key)
}
