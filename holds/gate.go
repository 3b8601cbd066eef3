package holds

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"seatcast/seatmap"
)

// Hearsay is what this process has heard of the events whose map it follows;
// the feed of their maps has it.
type Hearsay interface {
	// Known returns what was heard of seats and of the tag of who asks for them;
	// ok is false for an event that is not followed.
	Known(event string, tag seatmap.Tag, seats []int) (k seatmap.Known, ok bool)
}

// Gate says no from memory where Redis would: to a request for a seat that this
// process has heard is taken. Nearly every request of a rush is one, and then
// costs no call. It grants nothing, and in any doubt it lets Redis answer:
//
//   - the token has held something: the request may be a repeat, whose answer
//     only Redis has. Nobody is refused her own seats;
//   - the hold may be over, or its end was not heard;
//   - nothing has said for longer than sureFor that Redis is where memory is.
//
// So a seat given back is refused until this process hears of it, and if that
// message is lost for at most sureFor. The refusal is that of Take and names
// every seat that is gone as of the last change heard.
type Gate struct {
	store   *Store
	heard   Hearsay
	every   int64
	log     *slog.Logger
	metrics gateMetrics
	turns   turns

	refused atomic.Int64
	samples chan sample // 64: a second's worth of them, as many as are looked at
	limit   *rate.Limiter
}

// sureFor is how old what memory knows may be.
const sureFor = time.Second

// GateOptions say what a Gate knows. All but Every are needed.
type GateOptions struct {
	Store *Store
	Heard Hearsay
	Log   *slog.Logger
	Every int // one of how many refusals is compared with Redis; 1000
}

// samplesPerSecond bounds the comparisons, however many are refused.
const samplesPerSecond = 64

// NewGate returns a Gate whose refusals are compared with Redis once Run runs.
func NewGate(o GateOptions) *Gate {
	if o.Every == 0 {
		o.Every = 1000
	}
	return &Gate{store: o.Store, heard: o.Heard, every: int64(o.Every), log: o.Log, metrics: newGateMetrics(),
		samples: make(chan sample, samplesPerSecond), limit: rate.NewLimiter(samplesPerSecond, samplesPerSecond)}
}

// ask returns the *TakenError that r is to be answered with, or, when Redis is to be
// asked, what is to be called once it has answered. While somebody asks Redis for one
// of the seats it waits: that answer may be r's. A nil Gate knows nothing.
func (g *Gate) ask(ctx context.Context, r TakeRequest) (answered func(), err error) {
	if g == nil || len(r.Seats) == 0 {
		return func() {}, nil
	}
	for waited := false; ; waited = true {
		said, err := g.look(r)
		if err != nil || said == saysNothing {
			return func() {}, err
		}
		end, busy := g.turns.take(r, waited)
		if busy != nil {
			await(ctx, busy)
			continue
		}
		if said, err = g.look(r); err != nil { // an answer came before this turn
			end()
			return nil, err
		}
		if said != saysNothing {
			g.metrics.answers[said].Inc()
		}
		return end, nil
	}
}

// look returns the *TakenError that r is to be answered with, or why it has none.
func (g *Gate) look(r TakeRequest) (saying, error) {
	known, followed := g.heard.Known(r.Event, seatmap.TagOf(r.Token), r.Seats)
	if !followed {
		return saysNothing, nil
	}
	said, gone := weigh(r.Seats, known)
	if said != saysNo {
		return said, nil
	}
	g.metrics.answers[said].Inc()
	g.compare(r, known.Age)
	return said, &TakenError{Seats: gone}
}

// compare has one of so many refusals looked at.
func (g *Gate) compare(r TakeRequest, age time.Duration) {
	if g.refused.Add(1)%g.every != 0 || !g.limit.Allow() {
		return
	}
	select {
	case g.samples <- sample{r.Event, slices.Clone(r.Seats), age}:
	default: // Redis is slow: it is not made slower
	}
}

// saying is what a Gate makes of a request.
type saying int

const (
	saysNo      saying = iota // refused
	asksOwn                   // the token has held something
	asksStale                 // what memory knows is too old
	asksEnds                  // a seat is held, and until when is not known, or past
	letsPass                  // no seat of it is known to be taken
	allSayings  = iota
	saysNothing = allSayings // of an event that is not followed
)

var sayings = [allSayings]string{"refused", "asked_own", "asked_stale", "asked_unknown", "passed"}

// weigh judges a request by what is known of its seats.
func weigh(seats []int, known seatmap.Known) (said saying, gone []int) {
	ends := false
	for k, seat := range known.Seats {
		switch {
		case seat.Status == seatmap.Available:
		case seat.Status == seatmap.Held && seat.Left <= 0:
			ends = true
		default:
			gone = append(gone, seats[k])
		}
	}
	switch {
	case len(gone) == 0 && !ends:
		return letsPass, nil
	case known.Holder:
		return asksOwn, nil
	case ends: // it may be the token's own, of before this process
		return asksEnds, nil
	case known.Age > sureFor:
		return asksStale, nil
	}
	return saysNo, gone
}

// sample is a refusal to be compared with Redis.
type sample struct {
	event string
	seats []int
	age   time.Duration // of what was known
}

// Run compares refusals with Redis, off their path, until ctx ends.
func (g *Gate) Run(ctx context.Context) error {
	failing := false
	for {
		var s sample
		select {
		case <-ctx.Done():
			return nil
		case s = <-g.samples:
		}
		taken, err := g.store.anyTaken(ctx, s.event, s.seats)
		switch {
		case err == nil:
			failing = false
			g.metrics.compared(s.age, !taken)
		case !failing && ctx.Err() == nil:
			failing = true
			g.log.WarnContext(ctx, "refusals from memory are not compared with Redis", "err", err)
		}
	}
}
