package contention

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheNamesOfARowAreKept(t *testing.T) {
	text, err := json.Marshal(row(Naive, []figures{{requests: 3, held: 1, refused: 2, soldTwice: 1, cpu: 5, p50: time.Millisecond, p99: 2 * time.Millisecond}}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"strategy":"naive","requests":3,"held":1,"refused":2,"sold_twice":1,"cpu_us_per_refusal":5,"p50_ms":1,"p99_ms":2,` +
		`"redis_calls_per_refusal":0,"false_refusals":0,"bystander_p99_ms":0,"bystander_idle_p99_ms":0,` +
		`"bystander_fixed_rate_p99_ms":null,"fixed_rate_busy":null,"oldest_false_refusal_ms":0}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
}

func TestARowIsTheMedianAndTheWorstOfWhatMustNotBe(t *testing.T) {
	r := row(Seatcast, []figures{{refused: 10, cpu: 1}, {refused: 30, cpu: 3, soldTwice: 1}, {refused: 20, cpu: 2, falseRefusals: 4, oldest: time.Second}})
	if r.Refused != 20 || *r.CPUUsPerRefusal != 2 || r.SoldTwice != 1 || r.FalseRefusals != 4 || r.OldestFalseMs != 1000 {
		t.Errorf("%+v", r)
	}
}

func TestWhereNobodyIsRefusedARefusalCostsNothingThatCanBeTold(t *testing.T) {
	o := Options{Strategies: []string{Redis}, JSON: filepath.Join(t.TempDir(), "rows.json")}
	if err := o.write(results{Redis: {{requests: 3, held: 3, cpu: math.NaN()}}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.JSON)
	if err != nil || !strings.Contains(string(text), `"cpu_us_per_refusal": null`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCallsOfHoldsAndOfSilenceAreNotThoseOfRefusals(t *testing.T) {
	part := func(seconds float64, calls int64, held int) (s span) {
		s.to.at = s.from.at.Add(time.Duration(seconds * float64(time.Second)))
		s.to.calls = calls
		for range held {
			s.bystander.shots = append(s.bystander.shots, shot{held: true})
		}
		return s
	}
	// 4 calls a second in silence, 10 a hold, 30 by refusals
	silent, idle, storm := part(1, 4, 0), part(5, 20+500, 50), part(10, 40+700+30, 70)
	if got := callsOfRefusals(Seatcast, silent, idle, storm); math.Abs(got-30) > 1e-6 {
		t.Errorf("%v calls", got)
	}
	if got := callsOfRefusals(Postgres, silent, idle, storm); got != 0 {
		t.Errorf("%v calls of Redis by Postgres", got)
	}
}

func TestBarsAreHeldAgainstPairs(t *testing.T) {
	fast := figures{refused: 1000, cpu: 10, p99: time.Millisecond, beside: time.Millisecond, open: time.Millisecond}
	slow := figures{refused: 1000, cpu: 40, p99: 10 * time.Millisecond, beside: 10 * time.Millisecond, soldTwice: 2}
	got := results{Naive: {slow}, Postgres: {slow}, Redis: {slow}, Bare: {fast}, Seatcast: {fast}}
	for _, b := range barsOf(got) {
		if !b.met {
			t.Errorf("%+v", b)
		}
	}
	missed := 0
	bad := slow
	bad.judged, bad.falseRefusals, bad.oldest = 1000, 5, 2001*time.Millisecond
	bad.gate.asked, bad.open = 100, time.Minute
	got = results{Naive: {fast}, Postgres: {fast}, Redis: {fast}, Bare: {fast}, Seatcast: {bad}}
	bars := barsOf(got)
	for _, b := range bars {
		if !b.met {
			missed++
		}
	}
	if missed != len(bars) || missed != 11 {
		t.Errorf("%d of %d are missed: %+v", missed, len(bars), bars)
	}
}

func TestAShareBelowNoughtIsHiddenOnlyWhereTheLooksExplainIt(t *testing.T) {
	for _, c := range []struct {
		asked           float64
		granted, unsure int
		want            float64
	}{
		{150, 100, 0, 0.05},
		{95, 100, 5, 0},
		{94, 100, 5, -0.006},
	} {
		f := figures{refused: 1000, granted: c.granted, unsure: c.unsure, gate: gate{asked: c.asked}}
		if got := f.reached(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v", c, got)
		}
		if b := barsOfMemory([]figures{f})[0]; b.met != (c.want >= 0 && c.want < 0.05) {
			t.Errorf("%+v: %+v", c, b)
		}
	}
}
