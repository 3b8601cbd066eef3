package holds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seatcast/holds"
	"seatcast/seatmap"
)

// world is what holds promises, said in maps: a store must agree with it after
// any sequence of calls.
type world struct {
	*house
	seats   []string           // by seat: who has it, or a mark
	baskets map[string]*basket // by token
	paying  map[string]bool    // tokens Postgres knows
	bought  map[string]int     // tickets by account
	last    int64              // highest number seen
	serial  int
}

// basket is a seatmap.Basket and whether its hold is over.
type basket struct {
	request holds.TakeRequest
	has     []int // seats: those of the request until they are swapped
	last    seatmap.Basket
	state   seatmap.BasketState
}

const worldSeats = 10

// TestStoreAgreesWithItsModel drives a real Redis and the model with the same
// random calls, emptied Redis and all, and compares them after each.
func TestStoreAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	first := private(t, worldSeats)
	rapid.Check(t, func(rt *rapid.T) {
		h := cold(t, first.rdb, worldSeats)
		w := &world{house: h, seats: make([]string, worldSeats), baskets: map[string]*basket{}, paying: map[string]bool{}, bought: map[string]int{}}
		rt.Repeat(map[string]func(*rapid.T){
			"take":    w.take,
			"again":   w.again,
			"brief":   w.brief,
			"extend":  w.extend,
			"swap":    w.swap,
			"release": w.release,
			"pay":     w.pay,
			"spend":   w.spend,
			"restore": w.restore,
			"rebuild": w.rebuild,
			"flush":   w.flush,
			"lapse":   func(rt *rapid.T) { w.none(rt, h.store.Lapse(context.Background(), h.event)) },
			"":        w.agrees,
		})
	})
}

func (w *world) none(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

// drawSeats is some seats, ascending.
func drawSeats(rt *rapid.T, least int) []int {
	s := rapid.SliceOfNDistinct(rapid.IntRange(0, worldSeats-1), least, 4, rapid.ID).Draw(rt, "seats")
	slices.Sort(s)
	return s
}

func (w *world) request(rt *rapid.T) holds.TakeRequest {
	w.serial++
	r := w.asks(fmt.Sprint(w.serial), drawSeats(rt, 1)...)
	r.User = rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "user")
	r.Terms.SeatsPerUser, r.Terms.HoldsPerUser = 5, 2
	return r
}

// wants is the error the model gives a take: nil, *TakenError, ErrBought, ErrOverCap or ErrMany.
func (w *world) wants(r holds.TakeRequest) error {
	var gone []int
	for _, i := range r.Seats {
		if w.seats[i] != "" {
			gone = append(gone, i)
		}
	}
	if gone != nil {
		return &holds.TakenError{Seats: gone}
	}
	if err := w.over(r.User, "", len(r.Seats)); err != nil {
		return err
	}
	baskets := map[string]bool{}
	for _, holder := range w.seats {
		if b := w.baskets[holder]; b != nil && b.request.User == r.User {
			baskets[holder] = true
		}
	}
	if len(baskets) >= r.Terms.HoldsPerUser {
		return holds.ErrMany
	}
	return nil
}

// over says which cap an account exceeds with so many seats in a basket.
func (w *world) over(user, basket string, seats int) error {
	bought := w.bought[user]
	switch {
	case bought > 0 && bought+seats > 5:
		return holds.ErrBought
	case bought+w.held(user, basket)+seats > 5:
		return holds.ErrOverCap
	}
	return nil
}

// held is how many seats an account holds in baskets other than one.
func (w *world) held(user, but string) (n int) {
	for _, holder := range w.seats {
		if b := w.baskets[holder]; b != nil && b.request.User == user && holder != but {
			n++
		}
	}
	return n
}

func same(got, want error) bool {
	var a, b *holds.TakenError
	if errors.As(want, &b) {
		return errors.As(got, &a) && slices.Equal(a.Seats, b.Seats)
	}
	var c, d *seatmap.LostError
	if errors.As(want, &d) {
		return errors.As(got, &c) && slices.Equal(c.Seats, d.Seats)
	}
	return errors.Is(got, want)
}

func (w *world) take(rt *rapid.T) {
	r := w.request(rt)
	want := w.wants(r)
	got, err := w.store.Take(context.Background(), r)
	if !same(err, want) {
		rt.Fatalf("take of %v: %v, want %v", r.Seats, err, want)
	}
	if err == nil {
		w.holds(r, got)
	}
}

func (w *world) holds(r holds.TakeRequest, b seatmap.Basket) {
	w.baskets[r.Token] = &basket{request: r, has: r.Seats, last: b, state: seatmap.BasketHeld}
	for _, i := range r.Seats {
		w.seats[i] = r.Token
	}
}

// pick is one of the baskets there are.
func (w *world) pick(rt *rapid.T) *basket {
	if len(w.baskets) == 0 {
		rt.Skip("no baskets")
	}
	return w.baskets[rapid.SampledFrom(slices.Sorted(maps.Keys(w.baskets))).Draw(rt, "basket")]
}

// again repeats the take that made a basket.
func (w *world) again(rt *rapid.T) {
	b := w.pick(rt)
	got, err := w.store.Take(context.Background(), b.request)
	if b.state != seatmap.BasketHeld {
		if !errors.Is(err, seatmap.ErrHoldExpired) {
			rt.Fatalf("repeat of a basket that is %s: %v", b.state, err)
		}
		return
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(b.last) {
		rt.Fatalf("repeat gives %v %v, want %v", got, err, b.last)
	}
}

// brief is a take that ends by itself.
func (w *world) brief(rt *rapid.T) {
	r := w.request(rt)
	r.Terms.Hold, r.Terms.Grace = 2*time.Millisecond, 0
	want := w.wants(r)
	_, err := w.store.Take(context.Background(), r)
	if !same(err, want) {
		rt.Fatalf("brief take of %v: %v, want %v", r.Seats, err, want)
	}
	if err != nil {
		return
	}
	w.baskets[r.Token] = &basket{request: r, has: r.Seats, state: seatmap.BasketExpired}
	w.eventually("brief hold ends", func() bool { return w.holder(r.Seats[0]) == "" })
	got, err := w.store.Basket(context.Background(), w.event, r.Token)
	if err != nil || got.State != seatmap.BasketExpired {
		rt.Fatalf("brief basket is %s %v", got.State, err)
	}
}

// mine says what an act of user on b must answer, nil when it may act.
func (w *world) mine(b *basket, user string) error {
	if b.request.User != user {
		return seatmap.ErrNotYours
	}
	if b.state != seatmap.BasketHeld {
		return seatmap.ErrHoldExpired
	}
	return w.still(b, b.has)
}

// still says what has become of seats of b, nil when it has them.
func (w *world) still(b *basket, seats []int) error {
	var lost []int
	missing := false
	for _, i := range seats {
		switch w.seats[i] {
		case b.request.Token:
		case "":
			missing = true
		default:
			lost = append(lost, i)
		}
	}
	if lost != nil {
		return &seatmap.LostError{Seats: lost}
	}
	if missing {
		return seatmap.ErrHoldExpired
	}
	return nil
}

func (w *world) extend(rt *rapid.T) {
	b := w.pick(rt)
	user := rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "user")
	by := time.Duration(rapid.IntRange(1, 40).Draw(rt, "minutes")) * time.Minute
	want := w.mine(b, user)
	got, err := w.store.Extend(context.Background(), w.event, b.request.Token, user, by, 0)
	if !same(err, want) {
		rt.Fatalf("extend: %v, want %v", err, want)
	}
	if err == nil {
		if got.Until.Before(b.last.Until) || got.Until.After(b.last.Cap) {
			rt.Fatalf("extended from %v to %v, cap %v", b.last.Until, got.Until, b.last.Cap)
		}
		b.last = got
	}
}

// swaps says what a swap of b for seats must answer, nil when it is done.
func (w *world) swaps(b *basket, user string, seats []int) error {
	switch {
	case b.request.User != user:
		return seatmap.ErrNotYours
	case b.state == seatmap.BasketHeld && b.last.Sealed:
		return holds.ErrSealed
	case b.state != seatmap.BasketHeld:
		return seatmap.ErrHoldExpired
	}
	var kept, gone []int
	for _, i := range seats {
		switch {
		case slices.Contains(b.has, i):
			kept = append(kept, i)
		case w.seats[i] != "":
			gone = append(gone, i)
		}
	}
	switch err := w.still(b, kept); {
	case err != nil:
		return err
	case gone != nil:
		return &holds.TakenError{Seats: gone}
	case len(seats) > len(b.has):
		return w.over(user, b.request.Token, len(seats))
	}
	return nil
}

func (w *world) swap(rt *rapid.T) {
	b := w.pick(rt)
	user := rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "user")
	seats := drawSeats(rt, 1)
	want := w.swaps(b, user, seats)
	got, err := w.store.Swap(context.Background(), holds.SwapRequest{Event: w.event, Token: b.request.Token, User: user, Seats: seats,
		Terms: b.request.Terms, Quote: func(seatmap.Basket) (json.RawMessage, error) { return quote, nil }})
	if !same(err, want) {
		rt.Fatalf("swap of %v for %v: %v, want %v", b.has, seats, err, want)
	}
	if err != nil {
		return
	}
	if !got.Until.Equal(b.last.Until) || !got.Cap.Equal(b.last.Cap) || !slices.Equal(got.Seats, seats) {
		rt.Fatalf("swapped for %v: %+v, was %+v", seats, got, b.last)
	}
	w.free(b.request.Token)
	for _, i := range seats {
		w.seats[i] = b.request.Token
	}
	b.has, b.last = seats, got
}

func (w *world) release(rt *rapid.T) {
	b := w.pick(rt)
	user := rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "user")
	var want error
	switch {
	case b.request.User != user:
		want = seatmap.ErrNotYours
	case b.state == seatmap.BasketSold:
		want = seatmap.ErrHoldExpired
	}
	if err := w.store.Release(context.Background(), w.event, b.request.Token, user); !errors.Is(err, want) {
		rt.Fatalf("release: %v, want %v", err, want)
	}
	if want == nil {
		w.free(b.request.Token)
		b.state = seatmap.BasketReleased
		delete(w.paying, b.request.Token)
		w.tell()
	}
}

func (w *world) free(holder string) {
	for i := range w.seats {
		if w.seats[i] == holder {
			w.seats[i] = ""
		}
	}
}

// pay makes Postgres know a basket.
func (w *world) pay(rt *rapid.T) {
	b := w.pick(rt)
	if b.state != seatmap.BasketHeld {
		rt.Skip("not held")
	}
	w.paying[b.request.Token] = true
	w.tell()
	sealed, err := w.store.Seal(context.Background(), w.event, b.request.Token)
	b.last.Sealed = true
	if err != nil || fmt.Sprint(sealed) != fmt.Sprint(b.last) {
		rt.Fatalf("sealed it is %v %v, want %v", sealed, err, b.last)
	}
}

// payers are the tokens Postgres knows, always in one order: of two who once
// had a seat the first gets it back.
func (w *world) payers() []string { return slices.Sorted(maps.Keys(w.paying)) }

// tell writes the model's facts into the truth Postgres would tell.
func (w *world) tell() {
	t := seatmap.Truth{Seats: worldSeats, Bought: maps.Clone(w.bought)}
	for i, holder := range w.seats {
		switch holder {
		case seatmap.SoldMark:
			t.Sold = append(t.Sold, i)
		case seatmap.ClosedMark:
			t.Closed = append(t.Closed, i)
		}
	}
	for _, token := range w.payers() {
		t.Baskets = append(t.Baskets, w.baskets[token].last)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.truth = t
}

func (w *world) spend(rt *rapid.T) {
	seats := drawSeats(rt, 0)
	cut := rapid.IntRange(0, len(seats)).Draw(rt, "closed from")
	m := seatmap.Marks{Seats: seats[:cut], Closed: seats[cut:]}
	if len(w.baskets) > 0 && rapid.Bool().Draw(rt, "a basket is sold") {
		b := w.pick(rt)
		if b.state == seatmap.BasketHeld {
			m.Baskets = []string{b.request.Token}
			b.state = seatmap.BasketSold
			delete(w.paying, b.request.Token)
			for _, i := range b.has {
				if w.seats[i] == b.request.Token && !slices.Contains(seats, i) {
					m.Seats = append(slices.Clone(m.Seats), i)
				}
			}
		}
	}
	user := rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "buyer")
	w.bought[user] = rapid.IntRange(0, 3).Draw(rt, "tickets")
	m.Bought = map[string]int{user: w.bought[user]}
	for _, i := range m.Closed {
		w.seats[i] = seatmap.ClosedMark
	}
	for _, i := range m.Seats {
		w.seats[i] = seatmap.SoldMark
	}
	w.tell()
	w.none(rt, w.store.Spend(context.Background(), w.event, m))
}

func (w *world) restore(rt *rapid.T) {
	seats := drawSeats(rt, 1)
	for _, i := range seats {
		if w.seats[i] == seatmap.SoldMark || w.seats[i] == seatmap.ClosedMark {
			w.seats[i] = ""
		}
	}
	w.tell()
	w.none(rt, w.store.Restore(context.Background(), w.event, seatmap.Marks{Seats: seats}))
}

// reclaimed is what a rebuild gives back: seats nobody has to those who pay.
func (w *world) reclaimed() {
	for _, token := range w.payers() {
		b := w.baskets[token]
		for _, i := range b.has {
			if w.seats[i] == "" {
				w.seats[i] = token
			}
		}
	}
}

func (w *world) rebuild(rt *rapid.T) {
	position := w.last + int64(rapid.IntRange(0, 1000).Draw(rt, "ahead"))
	w.tell()
	w.none(rt, w.store.Rebuild(context.Background(), w.event, position))
	w.reclaimed()
	w.last = max(w.last, position)
}

// flush loses everything but what Postgres knows.
func (w *world) flush(rt *rapid.T) {
	w.tell()
	w.none(rt, w.rdb.FlushAll(context.Background()).Err())
	w.none(rt, w.store.Rebuild(context.Background(), w.event, w.last))
	maps.DeleteFunc(w.baskets, func(token string, _ *basket) bool { return !w.paying[token] })
	for i, holder := range w.seats {
		if holder != seatmap.SoldMark && holder != seatmap.ClosedMark && !w.paying[holder] {
			w.seats[i] = ""
		}
	}
	w.reclaimed()
}

// agrees compares Redis with the model and its own invariants.
func (w *world) agrees(rt *rapid.T) {
	if w.rdb.Exists(context.Background(), seatmap.SeqKey(w.event)).Val() == 0 {
		w.tell()
		w.none(rt, w.store.Rebuild(context.Background(), w.event, w.last))
	}
	for i, want := range w.seats {
		if got := w.holder(i); got != want {
			rt.Fatalf("seat %d is held by %q, want %q", i, got, want)
		}
	}
	w.sound()
	changes := w.log()
	if n := changes[len(changes)-1].N; n < w.last {
		rt.Fatalf("number %d after %d", n, w.last)
	} else {
		w.last = n
	}
}
