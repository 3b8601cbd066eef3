package seatmap_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"seatcast/seatmap"
)

// room is a chart with the prices 1, 2, … of its categories, and a map.
type room struct {
	c      *seatmap.Chart
	x      *seatmap.Index
	s      *seatmap.Seating
	prices map[string]int64
	m      seatmap.Map
}

func open(c *seatmap.Chart) *room {
	r := &room{c: c, x: c.Index(), prices: map[string]int64{}, m: seatmap.NewMap(c.Seats)}
	r.s = r.x.Seating()
	for i, cat := range c.Categories {
		r.prices[cat.Name] = int64(i + 1)
	}
	return r
}

// draw makes a room of rows written as seats: o is an ordinary one, w a
// wheelchair space, c a companion seat, x one that is sold, and a bar breaks a
// row. Rows are A, B, … and 10 apart, seats are numbered from 1 and 10 apart,
// and the focal point is before the middle of row A.
func draw(rows ...string) *room {
	c := &seatmap.Chart{Name: "drawn", Categories: []seatmap.Category{{Name: "any"}}}
	section := seatmap.Section{ID: "s", Name: "S"}
	var gone []int
	for k, text := range rows {
		row := seatmap.Row{Label: string(rune('A' + k))}
		broken := false
		for _, r := range strings.ReplaceAll(text, " ", "") {
			if r == '|' {
				broken = true
				continue
			}
			n := len(row.Seats) + 1
			label := fmt.Sprintf("%s-%d", row.Label, n)
			if r == 'x' {
				gone = append(gone, c.Seats)
			}
			row.Seats = append(row.Seats, seatmap.Seat{TicketID: label, Label: fmt.Sprint(n), I: c.Seats, Category: "any",
				X: float64(10 * n), Y: float64(10 * k), Break: broken, Accessible: r == 'w', Companion: r == 'c'})
			broken = false
			c.Seats++
		}
		c.Focal = seatmap.Point{X: max(c.Focal.X, float64(5*len(row.Seats)+5)), Y: -10}
		section.Rows = append(section.Rows, row)
	}
	c.Sections = []seatmap.Section{section}
	r := open(c)
	for _, i := range gone {
		r.m.Set(i, seatmap.Sold)
	}
	return r
}

// sell marks seats as gone.
func (r *room) sell(tickets ...string) *room {
	for _, i := range r.indexes(tickets...) {
		r.m.Set(i, seatmap.Sold)
	}
	return r
}

func (r *room) indexes(tickets ...string) (seats []int) {
	for _, id := range tickets {
		seat, ok := r.x.Seat(id)
		if !ok {
			panic("no seat " + id)
		}
		seats = append(seats, seat.I)
	}
	return seats
}

func (r *room) tickets(seats []int) string {
	var ids []string
	for _, i := range seats {
		at, _ := r.x.At(i)
		ids = append(ids, at.Seat.TicketID)
	}
	return strings.Join(ids, " ")
}

// told writes a choice as its groups.
func (r *room) told(c seatmap.Choice) string {
	var groups []string
	for _, g := range c.Groups {
		groups = append(groups, r.tickets(g))
	}
	return strings.Join(groups, " + ")
}

func (r *room) best(t *testing.T, w seatmap.Wish) string {
	t.Helper()
	c, err := r.s.Best(r.m, r.prices, w)
	if err != nil {
		return err.Error()
	}
	if c.Together != (len(c.Groups) == 1) || len(c.Seats) != w.Quantity || !slices.IsSorted(c.Seats) {
		t.Errorf("%+v for %d seats", c, w.Quantity)
	}
	return r.told(c)
}

func TestBestAvailableGivesTheKnownAnswers(t *testing.T) {
	c, _ := mustImport(t, "four-rows.json")
	for _, v := range []struct {
		name string
		sold []string
		w    seatmap.Wish
		want string
	}{
		{"nothing sold", nil, seatmap.Wish{Quantity: 2}, "A-4 A-5"},
		{"every pair in row A would leave a single", []string{"A-4", "A-5"}, seatmap.Wish{Quantity: 2}, "B-4 B-5"},
		{"orphans allowed", []string{"A-4", "A-5"}, seatmap.Wish{Quantity: 2, AllowOrphans: true}, "A-2 A-3"},
		{"one", nil, seatmap.Wish{Quantity: 1}, "A-5"},
		{"the space alone", nil, seatmap.Wish{Quantity: 1, Accessible: 1}, "A-7"},
		{"the space and two beside it, and A-8 not left alone", nil, seatmap.Wish{Quantity: 3, Accessible: 1}, "A-6 A-7 A-8"},
		{"a category", nil, seatmap.Wish{Quantity: 3, Categories: []string{"Back"}}, "C-4 C-5 C-6"},
		{"a price", nil, seatmap.Wish{Quantity: 2, MinPrice: 2}, "C-4 C-5"},
		{"a whole row", nil, seatmap.Wish{Quantity: 8}, "B-1 B-2 B-3 B-4 B-5 B-6 B-7 B-8"},
		{"nine are two groups", nil, seatmap.Wish{Quantity: 9}, "A-1 A-2 A-3 A-4 A-5 A-6 + B-3 B-4 B-5"},
	} {
		t.Run(v.name, func(t *testing.T) {
			if got := open(c).sell(v.sold...).best(t, v.w); got != v.want {
				t.Errorf("got %s; want %s", got, v.want)
			}
		})
	}
}

// Between equals the one drawn first wins: without the wheelchair space, and
// seen from the very middle, A-2 A-7 are mirror images.
func TestBestAvailableTakesTheFirstOfEquals(t *testing.T) {
	c, _ := mustImport(t, "four-rows.json")
	c.Focal.X = 221.9
	c.Sections[0].Rows[0].Seats[6].Accessible = false
	if got := open(c).sell("A-4", "A-5").best(t, seatmap.Wish{Quantity: 2, AllowOrphans: true}); got != "A-2 A-3" {
		t.Errorf("got %s", got)
	}
}

func TestBestAvailableNeverSitsAPairAcrossAnAisleOrAPillar(t *testing.T) {
	c, _ := mustImport(t, "pretix-theatre-odd-even.json")
	r := open(c)
	if got := r.best(t, seatmap.Wish{Quantity: 2}); got != "stalls-A-2 stalls-A-4" {
		t.Errorf("the best pair is %s; want neighbours on one side of the aisle", got)
	}
	for _, i := range indexes(c) { // row F is all that is left: 15 13 11 9 | 3 1 | 2 4 6 8 10 12 14 16
		if at, _ := r.x.At(i); at.Row.Label != "F" {
			r.m.Set(i, seatmap.Sold)
		}
	}
	for _, want := range []string{
		"stalls-F-2 stalls-F-4",
		"stalls-F-2 stalls-F-4 stalls-F-6",
		"stalls-F-2 stalls-F-4 stalls-F-6 stalls-F-8",
	} {
		quantity := len(strings.Fields(want))
		if got := r.best(t, seatmap.Wish{Quantity: quantity}); got != want {
			t.Errorf("%d in row F: %s; want %s", quantity, got, want)
		}
	}
	r.sell("stalls-F-2")
	if got := r.best(t, seatmap.Wish{Quantity: 2}); got != "stalls-F-3 stalls-F-1" {
		t.Errorf("without F-2: %s; want the pair between pillar and aisle", got)
	}
	pick, err := r.s.Best(r.m, r.prices, seatmap.Wish{Quantity: 9})
	if err != nil || pick.Together || len(pick.Groups) != 2 || len(pick.Orphans) != 0 {
		t.Errorf("9 in row F: %s, %v, %v; want two groups on the two sides", r.told(pick), pick.Orphans, err)
	}
}

func indexes(c *seatmap.Chart) (all []int) {
	c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { all = append(all, s.I) })
	return all
}

func TestBestAvailableLeavesAnOrphanRatherThanRefuse(t *testing.T) {
	r := draw("ooo")
	if got := r.best(t, seatmap.Wish{Quantity: 2}); got != "A-1 A-2" {
		t.Errorf("the last three: %s", got)
	}
	c, err := r.s.Best(r.m, r.prices, seatmap.Wish{Quantity: 2})
	if err != nil || !slices.Equal(c.Orphans, []int{2}) {
		t.Errorf("it does not tell the orphan it leaves: %v, %v", c.Orphans, err)
	}
	if got := draw("ooo", "xxx", "ooxx").best(t, seatmap.Wish{Quantity: 2}); got != "C-1 C-2" {
		t.Errorf("with a clean pair further back: %s", got)
	}
}

func TestBestAvailableSplitsAPartyIntoTheFewestNearGroups(t *testing.T) {
	for _, v := range []struct {
		name string
		r    *room
		n    int
		want string
	}{
		{"behind each other, not at two ends", draw("ooxxxxxoo", "ooxxxxxxx"), 4, "A-1 A-2 + B-1 B-2"},
		{"two groups rather than three near ones", draw("oxoxoxx", "xxxxxxx", "ooxxxxx"), 3, "A-3 + C-1 C-2"},
		{"what is left beside a wheelchair space is not alone", draw("oowxxx", "xxxxxx", "ooxxxx", "ooxxxx"), 3, "A-1 + C-1 C-2"},
		{"no single left when another run avoids it", draw("oooxxxx", "oxxoooxx", "ooxxxxx"), 5, "A-1 A-2 A-3 + C-1 C-2"},
	} {
		t.Run(v.name, func(t *testing.T) {
			if got := v.r.best(t, seatmap.Wish{Quantity: v.n}); got != v.want {
				t.Errorf("got %s; want %s", got, v.want)
			}
		})
	}
}

func TestAccessibleSeatingIsGivenToWhoAsksForIt(t *testing.T) {
	for _, v := range []struct {
		name string
		r    *room
		w    seatmap.Wish
		want string
	}{
		{"others sit elsewhere", draw("wcwcoo", "oooooo"), seatmap.Wish{Quantity: 3, Accessible: 0}, "B-1 B-2 B-3"},
		{"even when it is all there is", draw("wcwc", "xxxo"), seatmap.Wish{Quantity: 2}, "seatmap: too few seats match: 1 left, and 0 wheelchair spaces"},
		{"a space and its companion", draw("oooo", "wcoo"), seatmap.Wish{Quantity: 2, Accessible: 1}, "B-1 B-2"},
		{"up to three beside it", draw("oooooo", "wcoooo"), seatmap.Wish{Quantity: 4, Accessible: 1}, "B-1 B-2 B-3 B-4"},
		{"exactly as many spaces as asked for", draw("wcwc"), seatmap.Wish{Quantity: 3, Accessible: 2}, "A-1 A-2 A-3"},
		{"another space keeps its companion", draw("wcwc"), seatmap.Wish{Quantity: 2, Accessible: 1}, "A-1 A-2"},
		{"two spaces, each with company", draw("wcoxxwc", "ooooooo"), seatmap.Wish{Quantity: 4, Accessible: 2}, "A-1 A-2 + A-6 A-7"},
		{"the rest as near as possible", draw("wcxx", "ooxx"), seatmap.Wish{Quantity: 4, Accessible: 1}, "A-1 A-2 + B-1 B-2"},
		{"too few spaces", draw("wcoo"), seatmap.Wish{Quantity: 3, Accessible: 2}, "seatmap: too few seats match: 3 left, and 1 wheelchair spaces"},
	} {
		t.Run(v.name, func(t *testing.T) {
			if got := v.r.best(t, v.w); got != v.want {
				t.Errorf("got %s; want %s", got, v.want)
			}
		})
	}
}

func TestReleasedAccessibleSeatingIsGivenLast(t *testing.T) {
	for _, v := range []struct {
		r    *room
		want string
	}{
		{draw("wcwc", "oxox"), "B-1 + B-3"},
		{draw("wccx", "oxxx"), "A-2 A-3"},
		{draw("wcxx", "xxxx"), "A-1 A-2"},
	} {
		if got := v.r.best(t, seatmap.Wish{Quantity: 2, Released: true}); got != v.want {
			t.Errorf("got %s; want %s", got, v.want)
		}
	}
}

func TestBestAvailableHonoursSectionsAndPrices(t *testing.T) {
	r := open(seatmap.Theatre())
	for _, w := range []seatmap.Wish{
		{Quantity: 2, Sections: []string{"balcony"}},
		{Quantity: 2, Sections: []string{"box-A", "box-H"}, Categories: []string{"Boxes"}},
		{Quantity: 2, MinPrice: 3, MaxPrice: 4},
	} {
		c, err := r.s.Best(r.m, r.prices, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range c.Seats {
			if at, _ := r.x.At(i); !matches(at, r.prices, w) {
				t.Errorf("%s for %+v", at.Seat.TicketID, w)
			}
		}
	}
	delete(r.prices, "Balcony")
	var few *seatmap.TooFewError
	if _, err := r.s.Best(r.m, r.prices, seatmap.Wish{Quantity: 1, Sections: []string{"balcony"}}); !errors.As(err, &few) {
		t.Errorf("a category without a price is sold: %v", err)
	}
}

func TestAWishThatMakesNoSenseIsRefused(t *testing.T) {
	r := draw("oooo")
	for _, w := range []seatmap.Wish{
		{}, {Quantity: -1}, {Quantity: seatmap.MaxWish + 1}, {Quantity: 1, Accessible: 2}, {Quantity: 1, Accessible: -1},
		{Quantity: 1, MinPrice: -1}, {Quantity: 1, MinPrice: 5, MaxPrice: 4},
		{Quantity: 1, Sections: []string{"nowhere"}}, {Quantity: 1, Categories: []string{"gold"}},
	} {
		if _, err := r.s.Best(r.m, r.prices, w); !errors.Is(err, seatmap.ErrBadWish) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

func TestAlternativesShareNoSeatAndComeBestFirst(t *testing.T) {
	c, _ := mustImport(t, "four-rows.json")
	r := open(c)
	choices, err := r.s.Alternatives(r.m, r.prices, seatmap.Wish{Quantity: 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, c := range choices {
		told = append(told, r.told(c))
	}
	// A-5 A-6 would have been next, and A-2 A-3 leaves a single.
	if want := []string{"A-4 A-5", "B-4 B-5", "A-1 A-2"}; !slices.Equal(told, want) {
		t.Errorf("got %v; want %v", told, want)
	}
	choices, err = r.s.Alternatives(r.m, r.prices, seatmap.Wish{Quantity: 8}, 9)
	if err != nil || len(choices) != 3 {
		t.Errorf("%d alternatives of eight among 31 seats, %v; want three", len(choices), err)
	}
}

func TestAChartWithoutSeatsHasNoneToGive(t *testing.T) {
	c := seatmap.Club()
	c.Sections, c.Seats = nil, 0
	var few *seatmap.TooFewError
	if _, err := open(c).s.Best(nil, nil, seatmap.Wish{Quantity: 1}); !errors.As(err, &few) {
		t.Errorf("%v", err)
	}
}

func TestASaleGivesSeatsAtItsPrices(t *testing.T) {
	c := seatmap.Club()
	sale := &seatmap.Sale{Chart: c, Index: c.Index(), Prices: map[string]int64{"Front": 4000, "Seated": 2500}}
	choice, err := sale.Best(seatmap.NewMap(c.Seats), seatmap.Wish{Quantity: 2, MaxPrice: 3000})
	if err != nil {
		t.Fatal(err)
	}
	if q, err := sale.Quote(choice.Seats, nil); err != nil || q.Total.Amount != 5000 {
		t.Errorf("%+v, %v", q, err)
	}
}

func TestOneSeatingServesManyAtOnce(t *testing.T) {
	r := open(seatmap.Theatre())
	const seeds = 40
	var alone, beside [seeds]string
	ask := func(to *[seeds]string, seed int) {
		c, err := r.s.Best(r.m, r.prices, seatmap.Wish{Quantity: 1 + seed, Seed: uint64(seed)})
		if err != nil {
			t.Error(err)
		}
		to[seed] = r.told(c)
	}
	var all sync.WaitGroup
	for seed := range seeds {
		ask(&alone, seed)
	}
	for seed := range seeds {
		all.Go(func() { ask(&beside, seed) })
	}
	all.Wait()
	if alone != beside {
		t.Error("answers differ when many ask at once")
	}
}

// A storm asks at once and of one map: who comes second to a seat has lost.
// Without a seed one shopper of the thousand would win.
func TestSeedsSpreadAStorm(t *testing.T) {
	r := open(seatmap.Stadium())
	const shoppers = 1000
	taken, won := seatmap.NewMap(r.c.Seats), 0
	for seed := range uint64(shoppers) {
		c, err := r.s.Best(r.m, r.prices, seatmap.Wish{Quantity: 2, Seed: seed + 1})
		if err != nil || !c.Together {
			t.Fatal(c, err)
		}
		if taken.At(c.Seats[0]) == seatmap.Available && taken.At(c.Seats[1]) == seatmap.Available {
			won++
			taken.Set(c.Seats[0], seatmap.Held)
			taken.Set(c.Seats[1], seatmap.Held)
		}
	}
	if won < shoppers*2/5 {
		t.Errorf("%d of %d shoppers win their first seats", won, shoppers)
	}
}
