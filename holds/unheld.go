package holds

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"seatcast/seatmap"
	"seatcast/web"
)

// While an event is without holds, because Redis answers no node, a booking is
// written down in Postgres and holds nothing: its seats go to whoever pays first.
// Seats that are sold are refused at once; caps are judged by what Postgres knows,
// the pace of an account by a limit on each node.

// Books are where bookings are made while an event is without holds; checkout has
// them. Whatever is to be written is refused with seatmap.ErrHeld when the event's
// seats are held after all, and then Redis is asked.
type Books interface {
	// Book writes r, to last for hold and for most at the longest, or returns the
	// booking its token has. It returns the error of may.
	Book(ctx context.Context, sale *seatmap.Sale, r seatmap.Basket, hold, most time.Duration, may func(seatmap.Facts) error) (b seatmap.Basket, fresh bool, err error)
	// Booked returns the booking of a token, or seatmap.ErrNoBasket: it may be in
	// Redis.
	Booked(ctx context.Context, event, token string) (seatmap.Basket, error)
	// Prolong makes a booking last until by from now, as Extend does.
	Prolong(ctx context.Context, event, token, user string, by time.Duration) (seatmap.Basket, error)
	// Exchange gives a booking other seats. It returns the error of quote.
	Exchange(ctx context.Context, event, token, user string, seats []int, quote func(seatmap.Basket, seatmap.Facts) (json.RawMessage, error)) (seatmap.Basket, error)
	// Sold is the map of what is sold, and Free the same with what others are
	// about to buy shown as held. Neither must be written.
	Sold(ctx context.Context, event string) (seatmap.Map, map[string]int, error)
	Free(ctx context.Context, event string) (seatmap.Map, error)
}

// Without has bookings written into b while their event is without holds.
func (a *API) Without(b Books) *API {
	a.books, a.rush = b, newRush()
	return a
}

// away says that an event is without holds.
func (a *API) away(sale *seatmap.Sale) bool { return sale.NoHolds && a.books != nil }

// held is a sale whose event turned out to hold seats.
func held(sale *seatmap.Sale) *seatmap.Sale {
	known := *sale
	known.NoHolds = false
	return &known
}

// unheld books what a body asks for without holding it. Its errors are ready to be
// returned; seatmap.ErrHeld when seats are held.
func (a *API) unheld(ctx context.Context, sale *seatmap.Sale, r TakeRequest, body takeBody) (g granted, err error) {
	defer func() { a.store.metrics.came("unheld", err) }()
	if err := a.rush.enter(r.User); err != nil {
		return g, err
	}
	if r.Hash, err = digest(r, body.BestAvailable); err != nil {
		return g, err
	}
	g.basket, err = a.books.Booked(ctx, r.Event, r.Token)
	switch {
	case err == nil:
		err = r.mine(g.basket)
	case errors.Is(err, seatmap.ErrNoBasket) && body.BestAvailable != nil:
		choose := func(_ int, gone []int) ([]int, error) { return a.chooseUnheld(ctx, sale, *body.BestAvailable, gone) }
		g.basket, g.fresh, err = win(sale, r, choose, func(r TakeRequest) (seatmap.Basket, bool, error) { return a.book(ctx, sale, r) })
	case errors.Is(err, seatmap.ErrNoBasket):
		g.basket, g.fresh, err = a.bookChosen(ctx, sale, r)
	}
	if err != nil {
		return g, problem(sale, err)
	}
	if body.BestAvailable != nil {
		together := sale.Index.Seating().Together(g.basket.Seats)
		g.together = &together
		return g, nil
	}
	g.warnings = a.warnOfOrphans(ctx, sale, nil, g.basket.Seats)
	return g, nil
}

// bookChosen books seats that were chosen by hand.
func (a *API) bookChosen(ctx context.Context, sale *seatmap.Sale, r TakeRequest) (b seatmap.Basket, fresh bool, err error) {
	if err := a.refuseOrphans(ctx, sale, nil, r.Seats); err != nil {
		return b, false, err
	}
	if err := r.price(sale); err != nil {
		return b, false, err
	}
	return a.book(ctx, sale, r)
}

func (a *API) book(ctx context.Context, sale *seatmap.Sale, r TakeRequest) (b seatmap.Basket, fresh bool, err error) {
	asked := seatmap.Basket{Event: r.Event, Token: r.Token, User: r.User, Seats: r.Seats, Areas: r.Areas, Quote: r.Quote, Hash: r.Hash}
	b, fresh, err = a.books.Book(ctx, sale, asked, r.hold(), r.most(), r.may)
	if err == nil && !fresh {
		err = r.mine(b)
	}
	return b, fresh, err
}

// may judges r by what Postgres knows, as take.lua does by what Redis knows.
func (r TakeRequest) may(f seatmap.Facts) error {
	wanted, limit := len(r.Seats)+places(r.Areas), r.Terms.SeatsPerUser
	if len(r.Seats) == 0 {
		f.Seats = 0 // places are not held
	}
	switch {
	case len(f.Gone) > 0:
		return &TakenError{Seats: f.Gone}
	case f.Full != "":
		return &AreaFullError{Area: f.Full}
	case f.Tickets > 0 && f.Tickets+wanted > limit:
		return ErrBought
	case f.Tickets+f.Seats+wanted > limit:
		return ErrOverCap
	case len(r.Seats) > 0 && int64(f.Bookings) >= orAny(r.Terms.HoldsPerUser):
		return ErrMany
	}
	return nil
}

// chooseUnheld chooses from seats nobody is about to buy, and where those are too
// few from all that are not sold. Nobody's choice is seen by others until it is
// written, and by other nodes for a second: so all draw from many.
func (a *API) chooseUnheld(ctx context.Context, sale *seatmap.Sale, w seatmap.Wish, gone []int) ([]int, error) {
	free, err := a.books.Free(ctx, sale.Event)
	if err != nil {
		return nil, err
	}
	seats, few := pick(sale, slices.Clone(free), w, gone, drawFrom)
	if !errors.As(few, new(*seatmap.TooFewError)) {
		return seats, few
	}
	sold, _, err := a.books.Sold(ctx, sale.Event)
	if err != nil {
		return nil, err
	}
	return pick(sale, slices.Clone(sold), w, gone, drawFrom)
}

// drawFrom is how many choices each draws from.
const drawFrom = 64

// prolong extends a booking without a hold.
func (a *API) prolong(ctx context.Context, sale *seatmap.Sale, token, user string) (seatmap.Basket, error) {
	b, err := a.books.Prolong(ctx, sale.Event, token, user, sale.Terms.Hold+sale.Terms.Grace)
	return b, inRedis(err)
}

// exchangeUnheld swaps the seats of a booking without a hold. Own are those it
// had.
func (a *API) exchangeUnheld(ctx context.Context, sale *seatmap.Sale, token, user string, seats []int) (b seatmap.Basket, own []int, err error) {
	if err := a.rush.enter(user); err != nil {
		return b, nil, err
	}
	b, err = a.books.Booked(ctx, sale.Event, token)
	if err == nil {
		err = a.refuseOrphans(ctx, sale, b.Seats, seats)
	}
	if err != nil {
		return b, nil, inRedis(err)
	}
	b, err = a.books.Exchange(ctx, sale.Event, token, user, seats, func(b seatmap.Basket, f seatmap.Facts) (json.RawMessage, error) {
		if b.Sealed {
			return nil, ErrSealed
		}
		own = b.Seats
		r := TakeRequest{Seats: seats, Areas: b.Areas, Terms: sale.Terms}
		if len(own) > 0 {
			r.Terms.HoldsPerUser = 0 // it has counted as a booking with seats
		}
		if err := cmp.Or(fits(sale, b, seats), r.may(f)); err != nil {
			return nil, err
		}
		return price(sale, seats, b.Areas)
	})
	return b, own, inRedis(err)
}

// inRedis is the error about a booking without a row while Redis is away: what
// became of it nobody knows.
func inRedis(err error) error {
	if errors.Is(err, seatmap.ErrNoBasket) {
		return fmt.Errorf("only Redis knows: %w", seatmap.ErrUnavailable)
	}
	return err
}

// rush bounds what one node writes down without holds: each costs Postgres a
// transaction. Accounts share one of many limits, so that one of them leaves the
// others their part.
type rush struct {
	seed maphash.Seed
	all  *rate.Limiter
	each [1 << 12]*rate.Limiter
}

const (
	rushAll  = 100 // a second on this node, twice as many at once
	rushEach = 1   // a second of one account
	rushOnce = 10  // of one account at once
)

func newRush() *rush {
	r := &rush{seed: maphash.MakeSeed(), all: rate.NewLimiter(rushAll, 2*rushAll)}
	for k := range r.each {
		r.each[k] = rate.NewLimiter(rushEach, rushOnce)
	}
	return r
}

func (r *rush) enter(user string) error {
	of := r.each[maphash.String(r.seed, user)%uint64(len(r.each))]
	if of.Allow() && r.all.Allow() {
		return nil
	}
	wait := time.Second + rand.N(time.Second)
	return &web.Problem{Status: http.StatusTooManyRequests, Code: "too_many_requests", RetryAfter: wait,
		Detail: "seats cannot be held at the moment, and bookings without a hold are taken one after the other: send the same request again"}
}
