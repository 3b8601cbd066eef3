package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"seatcast/seatmap"
)

// Holds is what publishing needs of whoever holds seats.
type Holds interface {
	// SetAside holds all of these seats for nobody, or none, and returns those
	// that somebody has. They come back by themselves after so long.
	SetAside(ctx context.Context, event string, seats []int, hold time.Duration) (baskets []string, gone []int, err error)
	// GiveBack frees what SetAside held.
	GiveBack(ctx context.Context, event string, baskets []string) error
	// Shown is the map of an event as it was announced last; nil while there is
	// none.
	Shown(ctx context.Context, event string) (seatmap.Map, map[string]int, error)
	// Reset makes the event's keys anew from what Postgres says, keeping live
	// holds, and has every reader of changes start over.
	Reset(ctx context.Context, event string) error
}

// Publication is a new chart for an event.
type Publication struct {
	Event    string
	Chart    *seatmap.Chart   // as it was drawn: its indexes do not count; or
	ChartSHA string           // one that PutChart stored
	Prices   map[string]int64 // new ones, by category; a category left out keeps its price
	By       string           // the operator's account; empty: the command line
}

// Published is what has become of a Publication.
type Published struct {
	Chart    string `json:"chart"`   // SHA-256 of the chart in force
	Version  int    `json:"version"` // counts the event's charts from 1
	Changed  bool   `json:"changed"` // false: it was the chart in force, at these prices
	Added    int    `json:"added"`   // seats
	Dropped  int    `json:"dropped"`
	Restored int    `json:"restored"` // dropped by an earlier chart and here again
}

// ChartVersion is a chart an event has, or had.
type ChartVersion struct {
	Version int       `json:"version"`
	Chart   string    `json:"chart"`
	From    time.Time `json:"from"`
	By      string    `json:"by,omitempty"` // the operator's account; absent: the command line
}

// ErrOvertaken says that another chart was published, or seats put on sale,
// while this one was being judged. Nothing was published.
var ErrOvertaken = errors.New("catalog: the event changed while its chart was judged")

// Why a seat cannot be dropped.
const (
	InUseSold   = "sold"
	InUseBooked = "booked" // in a booking that is being paid for
	InUseHeld   = "held"
)

// SeatInUse is a seat a chart would drop that somebody has.
type SeatInUse struct {
	TicketID string `json:"ticketId"`
	Section  string `json:"section"`
	Row      string `json:"row"`
	Label    string `json:"label"`
	Use      string `json:"use"`

	i int
}

// AreaInUse is an area in which more places are sold, or being paid for, than
// a chart would leave it.
type AreaInUse struct {
	Area     string `json:"area"`
	Used     int    `json:"used"`
	Capacity int    `json:"capacity"` // it would have; 0: it would be dropped
}

// InUseError names all that a chart would take from those who have it. Nothing
// was published.
type InUseError struct {
	Seats []SeatInUse // by index
	Areas []AreaInUse // by id
}

func (e *InUseError) Error() string {
	text := "catalog: the chart would take what somebody has:"
	for _, s := range e.Seats {
		text += fmt.Sprintf("\nseat %s (%s, row %s, seat %s) is %s", s.TicketID, s.Section, s.Row, s.Label, s.Use)
	}
	for _, a := range e.Areas {
		text += fmt.Sprintf("\narea %s would have %d places, and %d are sold or being paid for", a.Area, a.Capacity, a.Used)
	}
	return text
}

// Publisher puts a new chart in place of the one an event is sold on.
//
// What it promises: an index never moves and is never given to another seat. A
// chart that would drop a seat somebody has, or an area's sold places, is
// refused, and names them all; a free seat is dropped or taken, never both. A
// chart is published whole, in one transaction, or not at all. Whatever dies
// after that, Redis is told by any process that runs Run.
//
// A free seat is first held as a shopper would hold it, so nobody else can,
// then dropped in Postgres, then closed in Redis. Holds of a Publisher that
// died end by themselves.
type Publisher struct {
	store *Store
	holds Holds
	log   *slog.Logger
}

// NewPublisher returns a publisher. It does no I/O; Run does what a publisher
// that died has left to do.
func NewPublisher(store *Store, holds Holds, log *slog.Logger) *Publisher {
	return &Publisher{store: store, holds: holds, log: log}
}

const (
	// publishWithin bounds all of it, and telling Redis alone.
	publishWithin = time.Minute
	// commitWithin of setting seats aside the commit is reached, or never.
	commitWithin = 20 * time.Second
	// asideFor is how long those are held: longer, see lockEvent.
	asideFor = 40 * time.Second
)

// Publish puts a chart in force. The same chart again, at the same prices,
// changes nothing. It returns *InUseError, seatmap.Faults for a chart or prices
// that cannot be, ErrNoChart, ErrOvertaken, seatmap.ErrNoEvent, and
// seatmap.ErrUnavailable, after which it may have been published or not: call
// again.
func (p *Publisher) Publish(ctx context.Context, n Publication) (Published, error) {
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	done, err := p.publish(ctx, n)
	if err != nil {
		return Published{}, fmt.Errorf("publish a chart of %s: %w", n.Event, err)
	}
	p.store.changed(n.Event)
	if err := p.tell(ctx, n.Event); err != nil {
		p.log.WarnContext(ctx, "a chart is published, and Redis not told yet", "event", n.Event, "err", err)
	}
	return done, nil
}

func (p *Publisher) publish(ctx context.Context, n Publication) (Published, error) {
	d, err := p.draft(ctx, n)
	if err != nil {
		return Published{}, err
	}
	if !d.changes() {
		return d.done(), nil
	}
	if err := d.inUse.err(); err != nil {
		return Published{}, p.withHeld(ctx, d, err)
	}
	by := time.Now().Add(commitWithin)
	baskets, err := p.setAside(ctx, d)
	if err != nil {
		return Published{}, err
	}
	certain, err := p.store.commit(ctx, d, by)
	if err != nil && certain { // else they may be dropped, and nobody may have them
		err = errors.Join(err, p.holds.GiveBack(context.WithoutCancel(ctx), d.Event, baskets))
	}
	return d.done(), err
}

// setAside holds the free seats that are to be dropped.
func (p *Publisher) setAside(ctx context.Context, d *draft) (baskets []string, err error) {
	if len(d.free) == 0 {
		return nil, nil
	}
	baskets, gone, err := p.holds.SetAside(ctx, d.Event, d.free, asideFor)
	if err == nil && len(gone) > 0 {
		err = &InUseError{Seats: d.seatsInUse(gone, InUseHeld)}
	}
	return baskets, err
}

// withHeld adds the seats that are only held to a refusal that is certain
// without them: as they are shown, since nobody shall be kept from them for it.
func (p *Publisher) withHeld(ctx context.Context, d *draft, refusal error) error {
	var in *InUseError
	if !errors.As(refusal, &in) {
		return refusal
	}
	shown, _, err := p.holds.Shown(ctx, d.Event)
	if err != nil {
		p.log.WarnContext(ctx, "a chart is refused without telling which seats are held", "event", d.Event, "err", err)
		return refusal
	}
	var held []int
	for _, i := range d.free {
		if shown.At(i) == seatmap.Held && !slices.ContainsFunc(in.Seats, func(s SeatInUse) bool { return s.i == i }) {
			held = append(held, i)
		}
	}
	in.Seats = append(in.Seats, d.seatsInUse(held, InUseHeld)...)
	slices.SortFunc(in.Seats, func(a, b SeatInUse) int { return a.i - b.i })
	return in
}

// Charts returns the charts an event has had, the one in force first, or
// seatmap.ErrNoEvent.
func (p *Publisher) Charts(ctx context.Context, event string) ([]ChartVersion, error) {
	all, err := p.store.chartVersions(ctx, event)
	if err == nil && len(all) == 0 {
		err = seatmap.ErrNoEvent
	}
	if err != nil {
		return nil, fmt.Errorf("charts of %q: %w", event, err)
	}
	return all, nil
}

// pricesOn are the prices of an event on another chart: those it had, without
// the categories that are no more, and the new ones.
func pricesOn(chart *seatmap.Chart, had, given map[string]int64) map[string]int64 {
	prices := maps.Clone(given)
	if prices == nil {
		prices = map[string]int64{}
	}
	for _, c := range chart.Categories {
		if _, is := prices[c.Name]; is {
			continue
		}
		if amount, was := had[c.Name]; was {
			prices[c.Name] = amount
		}
	}
	return prices
}
