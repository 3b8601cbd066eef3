package live

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"seatcast/seatmap"
)

func TestMergeKeepsTheLastStateOfEachSeat(t *testing.T) {
	var m merge
	for _, c := range []seatmap.Change{
		{N: 11, Prev: 10, At: 5, Reserved: []int{4, 2, 7}, Areas: map[string]int{"floor": 9}},
		{N: 12, Prev: 11, At: 6, Released: []int{2}, Booked: []int{4}},
		{N: 15, Prev: 12, At: 7, Reserved: []int{2}, Closed: []int{1}, Areas: map[string]int{"floor": 8, "bar": 3}},
	} {
		m.add(&c)
	}
	if m.oldest != 5 {
		t.Errorf("the oldest of them happened at %d, want 5", m.oldest)
	}
	want := `{"n":15,"prev":10,"at":7,"reserved":[2,7],"released":[],"booked":[4],"closed":[1],"areas":{"bar":3,"floor":8}}`
	if got := string(encode(m.delta())); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestJumpIsTheDifferenceOfTwoStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		from, to := State{N: 1, Map: seatmap.NewMap(101)}, State{N: 9, Map: seatmap.NewMap(101), Areas: map[string]int{"floor": 2}}
		for range rng.IntN(60) {
			from.Map.Set(rng.IntN(101), seatmap.Status(rng.IntN(4)))
			to.Map.Set(rng.IntN(101), seatmap.Status(rng.IntN(4)))
		}
		var m merge
		m.jump(&from, &to, 0, 0)
		d := m.delta()
		(&seatmap.Change{Reserved: d.Reserved, Released: d.Released, Booked: d.Booked, Closed: d.Closed}).Apply(from.Map)
		if string(from.Map) != string(to.Map) || d.Prev != 1 || d.N != 9 {
			t.Fatalf("delta %s does not lead there", encode(d))
		}
	}
}

func TestLogIsJudgedByItsFirstEntry(t *testing.T) {
	at := func(numbers ...int64) (c []seatmap.Change) {
		for _, n := range numbers {
			c = append(c, seatmap.Change{N: n})
		}
		return c
	}
	for name, c := range map[string]struct {
		n, last, oldest int64
		log             []seatmap.Change
		rest            int
		err             error
	}{
		"mine first":                     {5, 9, 2, at(5, 7, 9), 2, nil},
		"mine last":                      {9, 9, 2, at(9), 0, nil},
		"nothing logged since":           {9, 9, 0, nil, 0, nil},
		"log begins after mine":          {5, 9, 7, at(7, 9), 0, ErrTrimmed},
		"log reaches back, not mine":     {5, 9, 2, at(7, 9), 0, ErrFork},
		"event is below mine":            {12, 9, 2, nil, 0, ErrFork},
		"log emptied, event above":       {5, 9, 0, nil, 0, ErrTrimmed},
		"as many as are read at once":    {0, 9, 0, make([]seatmap.Change, maxRepair), 0, ErrTrimmed},
		"one less than are read at once": {0, 9, 0, make([]seatmap.Change, maxRepair-1), maxRepair - 2, nil},
	} {
		rest, err := after(c.n, c.last, c.oldest, c.log)
		if len(rest) != c.rest || !errors.Is(err, c.err) {
			t.Errorf("%s: %d changes, %v; want %d, %v", name, len(rest), err, c.rest, c.err)
		}
	}
}

func TestProjectionJudgesAChangeByTheOneBefore(t *testing.T) {
	p := projection{}
	p.restart(State{N: 10, Map: seatmap.NewMap(8), Areas: map[string]int{}})
	for _, c := range []struct {
		c        seatmap.Change
		v        verdict
		followed int
	}{
		{seatmap.Change{N: 9, Prev: 8}, known, 0},
		{seatmap.Change{N: 14, Prev: 12}, early, 0},
		{seatmap.Change{N: 12, Prev: 11}, early, 0},
		{seatmap.Change{N: 11, Prev: 10}, applied, 2},
		{seatmap.Change{N: 11, Prev: 10}, known, 0},
		{seatmap.Change{N: 15, Prev: 13}, forked, 0},
		{seatmap.Change{N: 30, Prev: 2, Reset: true}, resets, 0},
	} {
		if v, followed := p.take(heardChange{Change: c.c}); v != c.v || followed != c.followed {
			t.Errorf("%d after %d: verdict %d, %d followed; want %d, %d", c.c.N, c.c.Prev, v, followed, c.v, c.followed)
		}
	}
	if p.N != 14 {
		t.Errorf("projection at %d, want 14", p.N)
	}
}

func TestProjectionRemembersItsLastChanges(t *testing.T) {
	p := projection{}
	p.restart(State{N: 1, Map: seatmap.NewMap(8), Areas: map[string]int{}})
	var early []seatmap.Change
	for n := int64(2); n <= 5*maxRecent; n++ {
		p.take(heardChange{Change: seatmap.Change{N: n, Prev: n - 1}})
		if n == 2*maxRecent {
			early, _ = p.since(n - 10)
		}
	}
	for _, back := range []int64{0, 1, maxRecent} {
		got, ok := p.since(p.N - back)
		if !ok || int64(len(got)) != back || (back > 0 && got[0].Prev != p.N-back) {
			t.Errorf("since %d ago: %d changes, %v", back, len(got), ok)
		}
	}
	for i, c := range early {
		if want := int64(2*maxRecent - 9 + i); c.N != want {
			t.Errorf("a change given out became %d, was %d", c.N, want)
		}
	}
	for _, n := range []int64{0, 3, p.N + 1} {
		if _, ok := p.since(n); ok {
			t.Errorf("%d is known", n)
		}
	}
	p.jump(State{N: p.N + 5, Map: seatmap.NewMap(8)}, 0, 0)
	if _, ok := p.since(p.N - 5); ok {
		t.Error("changes over a gap are known")
	}
}

func TestFramesAreOneObjectOnOneLine(t *testing.T) {
	sale := &seatmap.Sale{Event: "derby", ChartSHA: "c0ffee", Hot: true}
	v := newView(State{N: 7, Map: seatmap.Map{0xE4}, Areas: map[string]int{"floor": 2}}, sale, false)
	for got, want := range map[string]string{
		string(v.Snapshot()): `{"n":7,"chart":"c0ffee","map":"5A==","areas":{"floor":2}}`,
		string(v.Body()): `{"n":7,"chart":"c0ffee","map":"5A==","areas":{"floor":2},` +
			`"mode":"hot","live":"/v1/events/derby/live","poll_after_ms":2000}`,
	} {
		if got != want || !json.Valid([]byte(got)) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
