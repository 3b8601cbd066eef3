package reader

import (
	"testing"
	"time"
)

// aPlan is n changes of two seats, due a millisecond apart: seat 0 is held,
// given back, then seat 10, and so on around three blocks.
func aPlan(n, warm int, first int64) (p Plan) {
	for i := range n {
		c := Change{Seat: i / 2 % 3 * 10, Released: i%2 == 1, Due: int64(i) * int64(time.Millisecond), Warm: i < warm}
		if first > 0 {
			c.N = first + int64(i)
		}
		p.Changes = append(p.Changes, c)
	}
	return p
}

func brings(n int64, held, given []int) *message {
	m := &message{kind: delta, n: n, upTo: -1}
	m.step.Reserved, m.step.Released = held, given
	return m
}

func TestAMergedFrameBringsAllItsChanges(t *testing.T) {
	tl := newTally(aPlan(8, 1, 0), 2)
	m := brings(100, []int{10, 11}, []int{0, 1}) // changes 0 (then undone), 1 and 2
	if tl.place(m); m.upTo != 2 {
		t.Fatalf("it brings changes up to %d", m.upTo)
	}
	a, b := -1, -1
	tl.deliver(&a, m.upTo, 10*int64(time.Millisecond))
	tl.deliver(&b, m.upTo, 12*int64(time.Millisecond))
	tl.deliver(&b, m.upTo, 99*int64(time.Millisecond)) // again
	r := tl.report()
	if r.Deliveries != 4 || r.Frames != 2 || r.Expected != 14 {
		t.Errorf("%d deliveries in %d frames of %d: change 0 is not measured", r.Deliveries, r.Frames, r.Expected)
	}
	if r.Max < 10.9 || r.Max > 11.1 || r.LastP50 < 10 {
		t.Errorf("latest after %v ms, last %v", r.Max, r.LastP50)
	}
}

func TestSeatsThatComeAgainAreTakenForTheNextChange(t *testing.T) {
	tl := newTally(aPlan(20, 0, 0), 1)
	for i, c := range aPlan(20, 0, 0).Changes {
		m := brings(int64(1000+i), []int{c.Seat}, nil)
		if c.Released {
			m = brings(int64(1000+i), nil, []int{c.Seat})
		}
		if tl.place(m); m.upTo != i {
			t.Fatalf("change %d is taken for %d", i, m.upTo)
		}
	}
	again := brings(1003, nil, []int{10}) // as another node merged it
	if tl.place(again); again.upTo != 3 {
		t.Errorf("an old frame of another node is taken for change %d", again.upTo)
	}
	if upTo, ok := tl.reached(1007); !ok || upTo != 7 {
		t.Errorf("a map of 1007 holds changes up to %d, %v", upTo, ok)
	}
	if _, ok := tl.reached(5000); ok {
		t.Error("a map of a number nobody has seen is known")
	}
}

func TestNumberedChangesAreKnownByTheirNumber(t *testing.T) {
	tl := newTally(aPlan(4, 0, 500), 1)
	for n, want := range map[int64]int{499: -1, 500: 0, 503: 3, 504: -1} {
		m := brings(n, nil, nil)
		if tl.place(m); m.upTo != want {
			t.Errorf("%d brings changes up to %d, not %d", n, m.upTo, want)
		}
	}
}

func TestWhoJoinsLateIsOnlyGivenWhatComes(t *testing.T) {
	tl := newTally(aPlan(4, 0, 500), 0)
	progress := unknown
	tl.deliver(&progress, 2, 1)
	tl.deliver(&progress, 3, 1)
	if tl.count != 2 {
		t.Errorf("%d deliveries", tl.count)
	}
}
