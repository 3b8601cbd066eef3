package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seatcast/catalog"
	"seatcast/seatmap"
)

// gate is a house in which nobody holds anything, or what a test says. What
// the real one does is tested where both are at hand, in cmd/seatcast.
type gate struct {
	mu     sync.Mutex
	held   []int
	aside  int // seats set aside and not given back
	resets int
	fails  error // what a reset answers
}

func (g *gate) SetAside(_ context.Context, _ string, seats []int, _ time.Duration) (baskets []string, gone []int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, i := range seats {
		if slices.Contains(g.held, i) {
			gone = append(gone, i)
		}
	}
	if len(gone) > 0 {
		return nil, gone, nil
	}
	g.aside += len(seats)
	return []string{fmt.Sprint(len(seats))}, nil, nil
}

func (g *gate) GiveBack(_ context.Context, _ string, baskets []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(baskets) > 0 {
		g.aside = 0
	}
	return nil
}

func (g *gate) Shown(context.Context, string) (seatmap.Map, map[string]int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := seatmap.NewMap(1000)
	for _, i := range g.held {
		m.Set(i, seatmap.Held)
	}
	return m, nil, nil
}

func (g *gate) Reset(context.Context, string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails == nil {
		g.resets++
	}
	return g.fails
}

// publisher is a shop with an event on the club's chart, and what publishes
// charts of it.
type publisher struct {
	*shop
	*catalog.Publisher
	gate  *gate
	event string
}

func publishing(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{shop: setup(t), gate: &gate{}}
	p.Publisher = catalog.NewPublisher(p.Store, p.gate, slog.New(slog.DiscardHandler))
	p.event = p.create(t, p.night()).ID
	return p
}

func (p *publisher) put(t *testing.T, c *seatmap.Chart) catalog.Published {
	t.Helper()
	done, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c, By: "olga"})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// without is the club's chart without its first n seats.
func without(n int) *seatmap.Chart {
	c := seatmap.Club()
	row := &c.Sections[0].Rows[0]
	row.Seats = row.Seats[n:]
	row.Seats[0].Break = false
	return c
}

// with is the club's chart with new seats of these ids in a row of their own.
func with(ids ...string) *seatmap.Chart {
	c := seatmap.Club()
	row := seatmap.Row{Label: "New"}
	for k, id := range ids {
		row.Seats = append(row.Seats, seatmap.Seat{TicketID: id, Label: fmt.Sprint(k), I: c.Seats, X: float64(20 * k), Y: 500, Category: c.Categories[0].Name})
		c.Seats++
	}
	c.Sections[0].Rows = append(c.Sections[0].Rows, row)
	return c
}

func ids(c *seatmap.Chart) (all []string) {
	c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { all = append(all, s.TicketID) })
	return all
}

func TestTheSameChartAgainChangesNothing(t *testing.T) {
	p := publishing(t)
	for _, n := range []catalog.Publication{{Event: p.event, Chart: seatmap.Club()}, {Event: p.event, ChartSHA: p.sha}} {
		done, err := p.Publish(t.Context(), n)
		if err != nil || done.Changed || done.Chart != p.sha || done.Version != 1 {
			t.Errorf("%+v, %v", done, err)
		}
	}
	first := p.put(t, with("n1"))
	if again := p.put(t, with("n1")); again.Changed || again.Chart != first.Chart || again.Version != 2 {
		t.Errorf("%+v, then %+v", first, again)
	}
	if p.gate.resets != 1 {
		t.Errorf("%d resets of one change", p.gate.resets)
	}
	charts, err := p.Charts(t.Context(), p.event)
	if err != nil || len(charts) != 2 || charts[0].Chart != first.Chart || charts[0].By != "olga" || charts[1].Chart != p.sha || charts[1].By != "" {
		t.Errorf("its charts are %+v, %v", charts, err)
	}
}

func TestADroppedSeatComesBackWithItsIndex(t *testing.T) {
	p := publishing(t)
	gone := ids(seatmap.Club())[:2]
	was := p.count(t, `SELECT i FROM seats WHERE event_id = $1 AND ticket_id = $2`, p.event, gone[1])
	if done := p.put(t, without(2)); done.Dropped != 2 || done.Added != 0 {
		t.Fatalf("%+v", done)
	}
	if n := p.count(t, `SELECT count(*) FROM seats WHERE event_id = $1 AND dropped AND status = 'unavailable' AND ticket_id = ANY($2)`, p.event, gone); n != 2 {
		t.Errorf("%d of the two are closed", n)
	}
	if done := p.put(t, with("n1", "n2")); done.Restored != 2 || done.Added != 2 || done.Dropped != 0 {
		t.Fatalf("%+v", done)
	}
	if i := p.count(t, `SELECT i FROM seats WHERE event_id = $1 AND ticket_id = $2 AND status = 'available'`, p.event, gone[1]); i != was {
		t.Errorf("it had index %d and has %d", was, i)
	}
	if i := p.count(t, `SELECT i FROM seats WHERE event_id = $1 AND ticket_id = 'n1'`, p.event); i != 80 {
		t.Errorf("a new seat has index %d", i)
	}
	// Killed while it is gone, it stays closed when it is back.
	p.exec(t, `UPDATE seats SET killed = 'broken', killed_by = 'olga', status = 'unavailable' WHERE event_id = $1 AND ticket_id = $2`, p.event, gone[0])
	p.put(t, without(1))
	p.put(t, seatmap.Club())
	if n := p.count(t, `SELECT count(*) FROM seats WHERE event_id = $1 AND NOT dropped AND status = 'unavailable'`, p.event); n != 1 {
		t.Errorf("%d seats of the chart are closed", n)
	}
}

func (s *shop) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAChartTakesFromSomebodyIsRefusedWithAllOfIt(t *testing.T) {
	p := publishing(t)
	id := ids(seatmap.Club())
	p.book(t, "sold", 0)
	p.exec(t, `UPDATE seats SET status = 'sold', booking_id = 'b-sold' WHERE event_id = $1 AND i = 0`, p.event)
	p.exec(t, `UPDATE areas SET sold = 30 WHERE event_id = $1`, p.event)
	p.book(t, "paying", 1)
	p.gate.held = []int{3, 40}
	c := without(5)
	c.Areas[0].Capacity = 32

	_, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c})
	var used *catalog.InUseError
	if !errors.As(err, &used) {
		t.Fatal(err)
	}
	uses := map[string]string{}
	for _, s := range used.Seats {
		uses[s.TicketID] = s.Use
	}
	if len(uses) != 3 || uses[id[0]] != "sold" || uses[id[1]] != "booked" || uses[id[3]] != "held" {
		t.Errorf("in use are %v", used.Seats)
	}
	if len(used.Areas) != 1 || used.Areas[0].Used != 33 || used.Areas[0].Capacity != 32 {
		t.Errorf("in use are %v", used.Areas)
	}
	for _, word := range []string{id[0] + " (", "is sold", "is booked", "is held", "would have 32 places, and 33"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not told: %v", word, err)
		}
	}

	c = without(5) // and by holds alone
	p.exec(t, `UPDATE bookings SET state = 'expired'; UPDATE seats SET status = 'available', booking_id = NULL`)
	if _, err = p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c}); !errors.As(err, &used) || len(used.Seats) != 1 || used.Seats[0].Use != "held" {
		t.Errorf("a held seat: %v", err)
	}
	p.gate.held = nil
	if done := p.put(t, c); done.Dropped != 5 {
		t.Errorf("%+v", done)
	}
	c.Areas = nil
	c.Categories = slices.DeleteFunc(c.Categories, func(c seatmap.Category) bool { return c.Name == "Standing" })
	if _, err = p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c}); !errors.As(err, &used) || len(used.Areas) != 1 || used.Areas[0].Capacity != 0 {
		t.Errorf("an area with places sold is dropped: %v", err)
	}
	p.exec(t, `UPDATE areas SET sold = 0`)
	p.put(t, c)
	if n := p.count(t, `SELECT capacity FROM areas WHERE event_id = $1`, p.event); n != 0 {
		t.Errorf("%d places of an area that is no more", n)
	}
	if n := p.count(t, `SELECT count(*) FROM prices WHERE event_id = $1 AND category = 'Standing'`, p.event); n != 0 {
		t.Error("a category that is no more has a price")
	}
}

// book puts a booking underway, or one that was, into the books: of one seat
// and three places.
func (p *publisher) book(t *testing.T, state string, seat int) {
	t.Helper()
	p.exec(t, `INSERT INTO bookings (id, event_id, user_id, state, seats, areas, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
		SELECT 'b-' || $2, $1, 'ann', $2, ARRAY[$3::int], jsonb_build_object(area, 3), 'EUR', 1, '{}', 'h', now(), now(), now() FROM areas WHERE event_id = $1`,
		p.event, state, seat)
}

func TestAChartBringsItsPrices(t *testing.T) {
	p := publishing(t)
	c := seatmap.Club()
	c.Categories = append(c.Categories, seatmap.Category{Name: "Bar"})
	c.Sections[0].Rows[0].Seats[0].Category = "Bar"
	var faults seatmap.Faults
	if _, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c}); !errors.As(err, &faults) || !strings.Contains(err.Error(), `"Bar"`) {
		t.Errorf("a category without a price: %v", err)
	}
	for _, prices := range []map[string]int64{{"Bar": -1}, {"Bar": 1, "Balcony": 2}} {
		if _, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c, Prices: prices}); !errors.As(err, &faults) {
			t.Errorf("prices %v: %v", prices, err)
		}
	}
	prices := map[string]int64{"Bar": 900, "Front": 4100}
	if _, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c, Prices: prices}); err != nil {
		t.Fatal(err)
	}
	sale, err := p.Sale(t.Context(), p.event)
	if err != nil {
		t.Fatal(err)
	}
	q, err := sale.Quote([]int{0, 1}, nil)
	if err != nil || q.Total.Amount != 900+4100 || sale.Prices["Standing"] != 1500 {
		t.Errorf("a quote of %+v, %v; prices %v", q, err, sale.Prices)
	}
	if n := p.count(t, `SELECT count(*) FROM seats WHERE event_id = $1 AND category = 'Bar'`, p.event); n != 1 {
		t.Errorf("%d seats of the new category", n)
	}
	// Prices alone are no version.
	done, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c, Prices: map[string]int64{"Bar": 950}})
	if err != nil || !done.Changed || done.Version != 2 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestBadInputPublishesNothing(t *testing.T) {
	p := publishing(t)
	faulty := seatmap.Club()
	faulty.Sections[0].Rows[0].Seats[0].TicketID = ""
	var faults seatmap.Faults
	for want, n := range map[error]catalog.Publication{
		seatmap.ErrNoEvent: {Event: "nothing", Chart: seatmap.Club()},
		catalog.ErrNoChart: {Event: p.event, ChartSHA: strings.Repeat("0", 64)},
		nil:                {Event: p.event, Chart: faulty},
	} {
		if _, err := p.Publish(t.Context(), n); err == nil || want != nil && !errors.Is(err, want) || want == nil && !errors.As(err, &faults) {
			t.Errorf("%+v: %v; want %v", n, err, want)
		}
	}
	if _, err := p.Publish(t.Context(), catalog.Publication{Event: "Nothing/..", Chart: seatmap.Club()}); !errors.Is(err, seatmap.ErrNoEvent) {
		t.Errorf("an id that cannot be: %v", err)
	}
	if _, err := p.Charts(t.Context(), "nothing"); !errors.Is(err, seatmap.ErrNoEvent) {
		t.Errorf("charts of no event: %v", err)
	}
	if n := p.count(t, `SELECT count(*) FROM charts`); n != 1 {
		t.Errorf("%d charts are stored", n)
	}
}

// Whoever closes seats locks them ascending, dropped ones of a channel among them.
func TestAChartThatRestoresAndDropsLocksSeatsInTheirOrder(t *testing.T) {
	p := publishing(t)
	p.put(t, without(2))
	ctx := t.Context()
	tx, err := p.db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing
	lock := func(seat int) error {
		_, err := tx.Exec(ctx, `SELECT FROM seats WHERE event_id = $1 AND i = $2 FOR UPDATE`, p.event, seat)
		return err
	}
	if err := lock(0); err != nil {
		t.Fatal(err)
	}
	next := seatmap.Club()
	next.Sections[0].Rows[0].Seats = slices.Delete(next.Sections[0].Rows[0].Seats, 5, 6)
	published := make(chan error, 1)
	go func() { // joined by what it sends
		_, err := p.Publish(ctx, catalog.Publication{Event: p.event, Chart: next})
		published <- err
	}()
	within(t, 20*time.Second, "the publisher waits for seat 0", func() (waits bool) {
		err := p.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
		return waits
	})
	if err := lock(5); err != nil {
		t.Errorf("who has seat 0 cannot have seat 5: %v", err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	if err := <-published; err != nil {
		t.Error(err)
	}
}

func TestOfTwoChartsPublishedAtOnceOneIsOvertaken(t *testing.T) {
	p := publishing(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := map[string]bool{}
	for k := range 8 {
		wg.Go(func() {
			done, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: with(fmt.Sprint("n", k))})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won[done.Chart] = true
			case !errors.Is(err, catalog.ErrOvertaken):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := p.count(t, `SELECT count(*) FROM event_charts WHERE event_id = $1 AND version > 1`, p.event); n != len(won) || n == 0 {
		t.Errorf("%d versions of %d that were told so", n, len(won))
	}
	if n := p.count(t, `SELECT count(*) - count(DISTINCT i) FROM seats WHERE event_id = $1`, p.event); n != 0 {
		t.Errorf("%d indexes are twice", n)
	}
}

func TestNothingIsDroppedWhileAnEventIsSoldWithoutHolds(t *testing.T) {
	p := publishing(t)
	p.exec(t, `UPDATE events SET unheld_since = now()`)
	if _, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: without(1)}); !errors.Is(err, seatmap.ErrUnavailable) {
		t.Errorf("a free seat is dropped: %v", err)
	}
	if done := p.put(t, with("n1")); done.Added != 1 {
		t.Errorf("%+v", done)
	}
}

// Somebody pays for a seat that is to be dropped, and takes long over it.
func TestAChartWaitsForNobodyForEver(t *testing.T) {
	p := publishing(t)
	tx, err := p.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM seats WHERE event_id = $1 AND i = 0 FOR UPDATE`, p.event); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: without(1)}); !errors.Is(err, seatmap.ErrUnavailable) {
		t.Errorf("while a seat is locked: %v", err)
	}
	if p.gate.aside != 0 {
		t.Errorf("%d seats are still set aside", p.gate.aside)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.put(t, without(1))
}

func TestRedisIsToldOfAChartByWhoeverRuns(t *testing.T) {
	p := publishing(t)
	p.gate.fails = seatmap.ErrUnavailable
	p.put(t, with("n1")) // is published all the same
	if n := p.count(t, `SELECT count(*) FROM events WHERE chart_version <> chart_told`); n != 1 {
		t.Fatalf("%d events are owed a reset", n)
	}
	p.gate.mu.Lock()
	p.gate.fails = nil
	p.gate.mu.Unlock()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	within(t, 10*time.Second, "Redis is told", func() bool {
		return p.count(t, `SELECT count(*) FROM events WHERE chart_version <> chart_told`) == 0
	})
	stop()
	wg.Wait()
	if p.gate.resets != 1 {
		t.Errorf("%d resets by three", p.gate.resets)
	}
}

// Over any sequence of charts Postgres and the charts that are served agree:
// each seat has the index it had first, and what is for sale is what is drawn.
func TestBooksAndChartAgreeOverAnySequenceOfVersions(t *testing.T) {
	p := publishing(t)
	first := map[string]int{}
	seatmap.Club().Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { first[s.TicketID] = s.I })
	rapid.Check(t, func(r *rapid.T) {
		c := with(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n1", "n2", "n3", "n4", "n5"}), 1, 4, rapid.ID).Draw(r, "new")...)
		row := &c.Sections[0].Rows[0]
		row.Seats = row.Seats[rapid.IntRange(0, len(row.Seats)-1).Draw(r, "less"):]
		done, err := p.Publish(t.Context(), catalog.Publication{Event: p.event, Chart: c})
		if err != nil {
			r.Fatalf("%v", err)
		}
		p.agrees(t, r, done.Chart, first)
	})
}

func (p *publisher) agrees(t *testing.T, r *rapid.T, sha string, first map[string]int) {
	sale, err := p.Sale(t.Context(), p.event)
	if err != nil || sale.ChartSHA != sha {
		r.Fatalf("sold is %v, %v; published was %s", sale, err, sha)
	}
	sale.Chart.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
		if i, known := first[s.TicketID]; known && i != s.I {
			r.Fatalf("%s has moved from %d to %d", s.TicketID, i, s.I)
		}
		first[s.TicketID] = s.I
	})
	rows, err := p.db.Query(t.Context(), `SELECT i, ticket_id, dropped FROM seats WHERE event_id = $1`, p.event)
	if err != nil {
		r.Fatalf("%v", err)
	}
	defer rows.Close()
	for rows.Next() {
		var i int
		var id string
		var dropped bool
		if err := rows.Scan(&i, &id, &dropped); err != nil {
			r.Fatalf("%v", err)
		}
		if _, drawn := sale.Index.Seat(id); first[id] != i || drawn == dropped {
			r.Fatalf("%s is %d in the books and was %d; drawn: %v, dropped: %v", id, i, first[id], drawn, dropped)
		}
	}
}
