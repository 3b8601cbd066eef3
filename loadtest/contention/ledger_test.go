package contention

import (
	"testing"
	"time"
)

func TestASeatSoldTwiceIsFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		grants []grant
		want   int
	}{
		{"nothing", nil, 0},
		{"one after the other", []grant{{1, 1, 0, 10, 100, 100}, {1, 2, 90, 101, 200, 200}}, 0},
		{"one takes over as the other ends", []grant{{1, 1, 0, 10, 100, 100}, {1, 2, 90, 100, 200, 200}}, 0},
		{"while another has it", []grant{{1, 1, 0, 10, 100, 100}, {1, 2, 5, 50, 150, 150}}, 1},
		{"written in any order", []grant{{1, 2, 5, 50, 150, 150}, {1, 1, 0, 10, 100, 100}}, 1},
		{"to three at once", []grant{{1, 1, 0, 10, 100, 100}, {1, 2, 0, 11, 101, 101}, {1, 3, 0, 12, 102, 102}}, 2},
		{"a long hold outlasts a short one between", []grant{{1, 1, 0, 10, 100, 100}, {1, 1, 0, 11, 20, 20}, {1, 2, 0, 50, 90, 90}}, 1},
		{"other seats", []grant{{1, 1, 0, 10, 100, 100}, {2, 2, 0, 11, 100, 100}}, 0},
		{"to herself", []grant{{1, 1, 0, 10, 100, 100}, {1, 1, 0, 50, 150, 150}}, 0},
		{"told after it was over", []grant{{1, 1, 0, 10, 100, 100}, {1, 2, 0, 90, 80, 80}}, 0},
	} {
		if got := soldTwice(c.grants); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestHoldsAreCountedBetweenTheLooksAtTheGate(t *testing.T) {
	from, to := window{100, 120}, window{200, 240}
	for _, c := range []struct {
		name      string
		sent, got int64
		n, unsure int
	}{
		{"before", 80, 99, 0, 0},
		{"under way at the first look, mostly before", 80, 105, 0, 1},
		{"under way at the first look, mostly after", 105, 130, 1, 1},
		{"between", 130, 150, 1, 0},
		{"under way at the last look, mostly before", 190, 230, 1, 1},
		{"under way at the last look, mostly after", 230, 250, 0, 1},
		{"longer than the last look", 150, 300, 0, 1},
		{"after", 241, 250, 0, 0},
	} {
		if n, unsure := granted([]grant{{sent: c.sent, got: c.got}}, from, to); n != c.n || unsure != c.unsure {
			t.Errorf("%s: %d, unsure %d; want %d, %d", c.name, n, unsure, c.n, c.unsure)
		}
	}
}

func TestARefusalOfAFreeSeatIsFound(t *testing.T) {
	const ms = int64(time.Millisecond)
	no := func(seat int32, sent, got int64) shot { return shot{seat: seat, sent: sent * ms, got: got * ms} }
	held := func(seat int32, sent, got, end int64) grant {
		return grant{seat, 1, sent * ms, got * ms, end * ms, (end + 2) * ms}
	}
	for _, c := range []struct {
		name   string
		grants []grant
		shot   shot
		want   int
	}{
		{"nobody ever had it", nil, no(1, 10, 20), 1},
		{"another seat is held", []grant{held(2, 0, 5, 100)}, no(1, 10, 20), 1},
		{"somebody has it", []grant{held(1, 0, 5, 100)}, no(1, 10, 20), 0},
		{"somebody is about to have it", []grant{held(1, 15, 50, 100)}, no(1, 10, 20), 0},
		{"somebody gets it later", []grant{held(1, 25, 50, 100)}, no(1, 10, 20), 1},
		{"it has just ended", []grant{held(1, 0, 5, 100)}, no(1, 102, 115), 0},
		{"it ended long ago", []grant{held(1, 0, 5, 100)}, no(1, 103, 115), 1},
		{"a longer hold began before a shorter", []grant{held(1, 0, 5, 100), held(1, 1, 6, 20)}, no(1, 60, 70), 0},
		{"it was no refusal", nil, shot{seat: 1, held: true}, 0},
	} {
		if got, _ := falseRefusals(c.grants, 0, []shot{c.shot}); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestTheOldestFalseRefusalIsOfTheSeatThatWasFreeLongestWhenItWasAskedFor(t *testing.T) {
	free := func(seat int32, last int64) grant { return grant{seat: seat, last: last} }
	no := func(seat int32, sent int64) shot { return shot{seat: seat, sent: sent, got: sent + 1000} }
	grants := []grant{free(1, 100), free(1, 150), free(2, 120)}
	for _, c := range []struct {
		name  string
		shots []shot
		want  time.Duration
	}{
		{"none", nil, 0},
		{"a true one has no age", []shot{no(1, 140)}, 0},
		{"since the last of its holds", []shot{no(1, 170)}, 20},
		{"not the last that was sent", []shot{no(2, 180), no(1, 190)}, 60},
		{"since all were free, of a seat nobody ever had", []shot{no(1, 170), no(3, 95)}, 45},
		{"however long the answer took", []shot{{seat: 1, sent: 151, got: 1e9}}, 1},
		{"a hold has none", []shot{{seat: 1, sent: 900, got: 950, held: true}}, 0},
	} {
		if _, got := falseRefusals(grants, 50, c.shots); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFalseRefusalsOfBothStormsAreOneFigure(t *testing.T) {
	s := &scene{strategy: Seatcast, ledger: []grant{{seat: 1, last: 100}}}
	storm := tally{shots: []shot{{seat: 1, sent: 160, got: 170}, {seat: 1, sent: 90, got: 95}, {seat: 1, held: true}}}
	fixed := tally{shots: []shot{{seat: 1, sent: 130, got: 140}}}
	var f, bare figures
	for _, t := range []tally{storm, fixed} {
		f.judge(s, t)
		bare.judge(&scene{strategy: Bare}, t)
	}
	if f.judged != 3 || f.falseRefusals != 2 || f.oldest != 60 {
		t.Errorf("%d of %d, the oldest %v", f.falseRefusals, f.judged, f.oldest)
	}
	if bare.judged != 0 || bare.falseRefusals != 0 {
		t.Errorf("bare, that knows of no holds: %d of %d", bare.falseRefusals, bare.judged)
	}
}

func TestQuantilesAreOfWhatThereIs(t *testing.T) {
	sorted := make([]int64, 100)
	for i := range sorted {
		sorted[i] = int64(i)
	}
	if a, b := quantile(sorted, 0.5), quantile(sorted, 0.99); a != 50 || b != 99 {
		t.Errorf("p50 %d, p99 %d", a, b)
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("nothing has a quantile")
	}
}
