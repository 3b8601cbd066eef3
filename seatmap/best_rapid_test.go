package seatmap_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"seatcast/seatmap"
)

// drawRoom draws a small house: rows with breaks, wheelchair spaces and
// companion seats, prices that change within a row, indexes in no order and
// with holes, and some of the seats gone.
func drawRoom(t *rapid.T) *room {
	c := &seatmap.Chart{Name: "drawn", Focal: seatmap.Point{X: 45, Y: -10},
		Categories: []seatmap.Category{{Name: "near"}, {Name: "far"}}}
	var all []*seatmap.Seat
	for _, id := range []string{"left", "right"}[:rapid.IntRange(1, 2).Draw(t, "sections")] {
		section := seatmap.Section{ID: id, Name: id}
		for k := range rapid.IntRange(1, 4).Draw(t, "rows") {
			row := seatmap.Row{Label: string(rune('A' + k))}
			for n := range rapid.IntRange(1, 8).Draw(t, "seats") {
				kind := rapid.IntRange(0, 19).Draw(t, "kind")
				row.Seats = append(row.Seats, seatmap.Seat{TicketID: id + row.Label + string(rune('1'+n)), Label: string(rune('1' + n)),
					X: float64(10*n + 3*len(section.Rows)), Y: float64(10 * k * len(id)), Break: n > 0 && kind%10 == 0,
					Category: []string{"near", "far"}[kind/16], Accessible: kind == 3 || kind == 4, Companion: kind == 5 || kind == 6})
			}
			section.Rows = append(section.Rows, row)
		}
		c.Sections = append(c.Sections, section)
	}
	c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { all = append(all, s) })
	c.Seats = len(all) + 3
	indexes := make([]int, c.Seats)
	for i := range indexes {
		indexes[i] = i
	}
	if rapid.Bool().Draw(t, "shuffled") {
		indexes = rapid.Permutation(indexes).Draw(t, "indexes")
	}
	for k, s := range all {
		s.I = indexes[k]
	}
	r := open(c)
	for i := range c.Seats {
		if rapid.IntRange(0, 9).Draw(t, "state") < 4 {
			r.m.Set(i, seatmap.Status(1+i%3))
		}
	}
	return r
}

func drawWish(t *rapid.T) seatmap.Wish {
	w := seatmap.Wish{
		Quantity:     rapid.IntRange(1, 9).Draw(t, "quantity"),
		AllowOrphans: rapid.Bool().Draw(t, "allowOrphans"),
		Released:     rapid.IntRange(0, 4).Draw(t, "released") == 0,
		Seed:         rapid.Uint64Range(0, 3).Draw(t, "seed"),
	}
	if rapid.IntRange(0, 3).Draw(t, "how") == 0 {
		w.Accessible = rapid.IntRange(0, w.Quantity).Draw(t, "accessible")
	}
	switch rapid.IntRange(0, 5).Draw(t, "filter") {
	case 0:
		w.Sections = []string{"left"}
	case 1:
		w.Categories = []string{"far"}
	case 2:
		w.MaxPrice = 1
	}
	return w
}

// oracle knows a house seat by seat, slowly.
type oracle struct {
	*room
	w    seatmap.Wish
	free map[int]bool // by index
	next map[int][]int
	runs [][]int // free seats of any kind, side by side
}

func (r *room) oracle(w seatmap.Wish) *oracle {
	o := &oracle{room: r, w: w, free: map[int]bool{}, next: map[int][]int{}}
	for _, section := range r.c.Sections {
		for _, row := range section.Rows {
			var run []int
			for k, s := range row.Seats {
				if k > 0 && !s.Break {
					before := row.Seats[k-1].I
					o.next[s.I], o.next[before] = append(o.next[s.I], before), append(o.next[before], s.I)
				} else {
					o.runs, run = append(o.runs, run), nil
				}
				if o.free[s.I] = r.m.At(s.I) == seatmap.Available; o.free[s.I] {
					run = append(run, s.I)
				} else {
					o.runs, run = append(o.runs, run), nil
				}
			}
			o.runs = append(o.runs, run)
		}
	}
	o.runs = slices.DeleteFunc(o.runs, func(run []int) bool { return len(run) == 0 })
	return o
}

func (o *oracle) seat(i int) *seatmap.Seat { at, _ := o.x.At(i); return at.Seat }

// singles tells which ordinary seats taking others leaves alone.
func (o *oracle) singles(take []int) (alone []int) {
	for i, free := range o.free {
		at := o.seat(i)
		if !free || at.Accessible || at.Companion || slices.Contains(take, i) {
			continue
		}
		before, after := 0, 0
		for _, n := range o.next[i] {
			if o.free[n] {
				before++
				if !slices.Contains(take, n) {
					after++
				}
			}
		}
		if before > 0 && after == 0 {
			alone = append(alone, i)
		}
	}
	slices.Sort(alone)
	return alone
}

// candidates are the runs of free seats, cut where the wish does not match or
// the seat is not for everybody.
func (o *oracle) candidates(good func(s *seatmap.Seat) bool) (cut [][]int) {
	for _, run := range o.runs {
		var part []int
		for _, i := range run {
			at, _ := o.x.At(i)
			if matches(at, o.prices, o.w) && good(at.Seat) {
				part = append(part, i)
				continue
			}
			cut, part = append(cut, part), nil
		}
		cut = append(cut, part)
	}
	return slices.DeleteFunc(cut, func(part []int) bool { return len(part) == 0 })
}

func (o *oracle) far(seats []int) (sum float64) {
	for _, i := range seats {
		s := o.seat(i)
		sum += math.Hypot(s.X-o.c.Focal.X, s.Y-o.c.Focal.Y)
	}
	return sum
}

func matches(at seatmap.SeatRef, prices map[string]int64, w seatmap.Wish) bool {
	price, ok := prices[at.Seat.Category]
	return ok && price >= w.MinPrice && (w.MaxPrice == 0 || price <= w.MaxPrice) &&
		(len(w.Sections) == 0 || slices.Contains(w.Sections, at.Section.ID)) &&
		(len(w.Categories) == 0 || slices.Contains(w.Categories, at.Seat.Category))
}

// honest checks what holds of every answer.
func (o *oracle) honest(t *rapid.T, c seatmap.Choice) {
	t.Helper()
	spaces := 0
	for k, i := range c.Seats {
		at, ok := o.x.At(i)
		if !ok || !o.free[i] || !matches(at, o.prices, o.w) || k > 0 && c.Seats[k-1] >= i {
			t.Fatalf("%v for %+v: seat %d is not free, matching and given once", c, o.w, i)
		}
		if at.Seat.Accessible {
			spaces++
		}
		if (at.Seat.Accessible || at.Seat.Companion) && o.w.Accessible == 0 && !o.w.Released {
			t.Fatalf("%v gives accessible seating to who did not ask", c)
		}
	}
	if len(c.Seats) != o.w.Quantity || o.w.Accessible > 0 && spaces != o.w.Accessible {
		t.Fatalf("%v has %d spaces; asked was for %+v", c, spaces, o.w)
	}
	var grouped []int
	for _, g := range c.Groups {
		for k := 1; k < len(g); k++ {
			if !slices.Contains(o.next[g[k]], g[k-1]) {
				t.Fatalf("%v: %d and %d are no neighbours", c, g[k-1], g[k])
			}
		}
		grouped = append(grouped, g...)
	}
	slices.Sort(grouped)
	if !slices.Equal(grouped, c.Seats) || c.Together != (len(c.Groups) == 1) {
		t.Fatalf("%+v: the groups are not the seats", c)
	}
	if want := o.singles(c.Seats); !slices.Equal(want, c.Orphans) {
		t.Fatalf("%v says it leaves %v; it leaves %v", c, c.Orphans, want)
	}
}

func TestEveryAnswerIsFreeMatchingAndHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, w := drawRoom(t), drawWish(t)
		o := r.oracle(w)
		c, err := r.s.Best(r.m, r.prices, w)
		others, spaces := 0, 0
		for _, i := range slices.Concat(o.candidates(func(*seatmap.Seat) bool { return true })...) {
			switch s := o.seat(i); {
			case s.Accessible:
				spaces++
			case !s.Companion || w.Accessible > 0 || w.Released:
				others++
			}
		}
		exists := spaces >= w.Accessible && others >= w.Quantity-w.Accessible
		if w.Accessible == 0 && w.Released {
			exists = others+spaces >= w.Quantity
		}
		var few *seatmap.TooFewError
		if exists != (err == nil) || err != nil && !errors.As(err, &few) {
			t.Fatalf("%d seats and %d spaces match %+v: %v", others, spaces, w, err)
		}
		if _, ever := r.s.Best(seatmap.NewMap(r.c.Seats), r.prices, w); err != nil && few.Never != (ever != nil) {
			t.Fatalf("with every seat free %+v is answered %v, and now %+v", w, ever, few)
		}
		if err == nil {
			o.honest(t, c)
		}
		again, _ := open(r.c).s.Best(r.m, r.prices, w)
		if !reflect.DeepEqual(c, again) {
			t.Fatalf("the same wish has the answers %v and %v", c, again)
		}
	})
}

// windows are all ways to sit n together, the tidy ones apart.
func (o *oracle) windows(runs [][]int, n int) (tidy, any [][]int) {
	for _, run := range runs {
		for k := 0; k+n <= len(run); k++ {
			any = append(any, run[k:k+n])
			if len(o.singles(run[k:k+n])) == 0 {
				tidy = append(tidy, run[k:k+n])
			}
		}
	}
	return tidy, any
}

func (o *oracle) nearest(windows [][]int) float64 {
	least := math.Inf(1)
	for _, w := range windows {
		least = math.Min(least, o.far(w))
	}
	return least
}

// fewest is how few runs hold n seats.
func fewest(runs [][]int, n int) (groups int) {
	var lengths []int
	for _, run := range runs {
		lengths = append(lengths, len(run))
	}
	slices.Sort(lengths)
	for ; n > 0; groups++ {
		n -= lengths[len(lengths)-1-groups]
	}
	return groups
}

func TestNothingIsBetterThanBestAvailable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, w := drawRoom(t), drawWish(t)
		w.Accessible, w.Released = 0, false
		c, err := r.s.Best(r.m, r.prices, w)
		if err != nil {
			return
		}
		o := r.oracle(w)
		runs := o.candidates(func(s *seatmap.Seat) bool { return !s.Accessible && !s.Companion })
		tidy, any := o.windows(runs, w.Quantity)
		band := float64(w.Quantity) * 0.002 // distances are counted in thousandths
		if w.Seed != 0 {
			band += r.s.Band() * float64(w.Quantity)
		}
		switch {
		case len(tidy) > 0 && !w.AllowOrphans:
			if !c.Together || len(c.Orphans) > 0 || o.far(c.Seats) > o.nearest(tidy)+band {
				t.Fatalf("%+v for %+v; tidy is %v", c, w, tidy)
			}
		case len(any) > 0:
			if !c.Together || o.far(c.Seats) > o.nearest(any)+band {
				t.Fatalf("%+v for %+v; possible is %v", c, w, any)
			}
		default:
			if want := fewest(runs, w.Quantity); len(c.Groups) != want {
				t.Fatalf("%+v for %+v; %d groups are enough", c, w, want)
			}
		}
	})
}

// Two groups can be tried exhaustively, with every way to cut the party.
func TestASplitInTwoLeavesNoOrphanThatCouldBeHelped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoom(t)
		w := seatmap.Wish{Quantity: rapid.IntRange(2, 9).Draw(t, "quantity"), Seed: rapid.Uint64Range(0, 2).Draw(t, "seed")}
		c, err := r.s.Best(r.m, r.prices, w)
		if err != nil || len(c.Groups) != 2 || len(c.Orphans) == 0 {
			return
		}
		o := r.oracle(w)
		runs := o.candidates(func(s *seatmap.Seat) bool { return !s.Accessible && !s.Companion })
		for n := 1; n < w.Quantity; n++ {
			_, first := o.windows(runs, n)
			_, second := o.windows(runs, w.Quantity-n)
			for _, a := range first {
				for _, b := range second {
					both := slices.Concat(a, b)
					slices.Sort(both)
					if len(slices.Compact(both)) == w.Quantity && len(o.singles(both)) < len(c.Orphans) {
						t.Fatalf("%+v leaves orphans; %v leaves fewer", c, both)
					}
				}
			}
		}
	})
}

func TestAlternativesAreDisjointAndHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, w := drawRoom(t), drawWish(t)
		o := r.oracle(w)
		choices, err := r.s.Alternatives(r.m, r.prices, w, rapid.IntRange(0, 5).Draw(t, "k"))
		if err != nil && len(choices) > 0 || err == nil && len(choices) == 0 {
			t.Fatalf("%v and %v", choices, err)
		}
		given := map[int]bool{}
		for _, c := range choices {
			o.honest(t, c)
			for _, i := range c.Seats {
				if given[i] {
					t.Fatalf("%v give seat %d twice", choices, i)
				}
				given[i] = true
			}
		}
	})
}

// The rule for seats chosen by hand, by the words of its promise: a single is
// reported when as many ordinary seats of that run could be taken and leave
// fewer.
func TestOrphansAreWhatAnotherChoiceInTheRunAvoids(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoom(t)
		var take []int
		for i := range r.c.Seats {
			if rapid.IntRange(0, 3).Draw(t, "take") == 0 {
				take = append(take, i)
			}
		}
		got := r.s.Orphans(r.m, take)
		r.c.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { // these are taken first
			if (s.Accessible || s.Companion) && slices.Contains(take, s.I) {
				r.m.Set(s.I, seatmap.Held)
			}
		})
		o := r.oracle(seatmap.Wish{})
		var want []int
		for _, run := range o.runs {
			taken := slices.DeleteFunc(slices.Clone(run), func(i int) bool { return !slices.Contains(take, i) })
			if now := o.singles(taken); len(now) > o.least(run, len(taken)) {
				want = append(want, now...)
			}
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("taking %v leaves %v; want %v", take, got, want)
		}
	})
}

// least tries every way to take n ordinary seats of a run.
func (o *oracle) least(run []int, n int) int {
	least := math.MaxInt
	for bits := range 1 << len(run) {
		var take []int
		for k, i := range run {
			if s := o.seat(i); bits>>k&1 == 1 && !s.Accessible && !s.Companion {
				take = append(take, i)
			}
		}
		if len(take) == n {
			least = min(least, len(o.singles(take)))
		}
	}
	return least
}

// Whoever chooses by hand gets past the rule, too, if she takes what the house
// would give: without filters, that is.
func TestBestAvailableKeepsTheRuleForChoiceByHand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoom(t)
		c, err := r.s.Best(r.m, r.prices, seatmap.Wish{Quantity: rapid.IntRange(1, 9).Draw(t, "quantity")})
		if err != nil {
			return
		}
		if orphans := r.s.Orphans(r.m, c.Seats); len(orphans) > 0 {
			t.Fatalf("%+v is refused for %v", c, orphans)
		}
	})
}

func FuzzBestAvailable(f *testing.F) {
	r := open(seatmap.Club())
	f.Add(2, 1, "Front", "room", int64(0), int64(2), false, false, uint64(7), 3, []byte{0x55, 0xaa})
	f.Fuzz(func(t *testing.T, quantity, accessible int, category, section string, low, high int64, orphans, released bool, seed uint64, k int, m []byte) {
		w := seatmap.Wish{Quantity: quantity, Accessible: accessible, MinPrice: low, MaxPrice: high,
			AllowOrphans: orphans, Released: released, Seed: seed}
		if category != "" {
			w.Categories = []string{category}
		}
		if section != "" {
			w.Sections = []string{section, section}
		}
		choices, err := r.s.Alternatives(m, r.prices, w, k%10)
		var few *seatmap.TooFewError
		if err != nil && !errors.Is(err, seatmap.ErrBadWish) && !errors.As(err, &few) {
			t.Fatal(err)
		}
		for _, c := range choices {
			for _, i := range c.Seats {
				if at, ok := r.x.At(i); !ok || seatmap.Map(m).At(i) != seatmap.Available || !matches(at, r.prices, w) {
					t.Fatalf("%v for %+v", c, w)
				}
			}
			if len(c.Seats) != quantity {
				t.Fatalf("%v for %+v", c, w)
			}
		}
	})
}

func TestManySeedsHaveManyAnswersAllWithinTheBand(t *testing.T) {
	r := open(seatmap.Theatre())
	o := r.oracle(seatmap.Wish{})
	best, err := r.s.Best(r.m, r.prices, seatmap.Wish{Quantity: 3})
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]bool{}
	for seed := range uint64(500) {
		c, err := r.s.Best(r.m, r.prices, seatmap.Wish{Quantity: 3, Seed: seed + 1})
		if err != nil || !c.Together || len(c.Orphans) > 0 {
			t.Fatal(c, err)
		}
		answers[r.told(c)] = true
		if d := (o.far(c.Seats) - o.far(best.Seats)) / 3; d > r.s.Band()+0.01 {
			t.Errorf("seed %d: %s is %.1f further away than the nearest; the band is %.1f", seed+1, r.told(c), d, r.s.Band())
		}
	}
	if len(answers) < 15 {
		t.Errorf("500 seeds have %d answers", len(answers))
	}
}
