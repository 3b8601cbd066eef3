package waitingroom

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"seatcast/internal/devstack/devtest"
	"seatcast/waitingroom/draw"
)

// till is a simulated sale: people are let in at a pace, pay a while later, and the
// checkout serves so many a second and no more.
type till struct {
	rate     float64               // people a second, as it is set
	capacity func(now int) float64 // payments a second
	delay    [2]int                // seconds from the door to the payment
	limits   Slow

	s       steering
	due     map[int]float64 // payments, by the second they begin in
	backlog float64
	window  []figures // of the last seconds
	factors []float64
	p99     []float64 // seconds
}

func (m *till) run(seconds int) *till {
	rng := rand.New(rand.NewPCG(1, 2))
	m.s, m.due = steering{factor: 1}, map[int]float64{}
	for t := range seconds {
		for after := m.delay[0]; after <= m.delay[1]; after++ {
			m.due[t+after] += m.rate * m.s.factor / float64(m.delay[1]-m.delay[0]+1)
		}
		most, come := m.capacity(t), m.due[t]
		mean := 0.2/(1-min(0.98, come/most)) + m.backlog/most // of a queue
		served := min(most, m.backlog+come)
		m.backlog = max(0, m.backlog+come-most)
		var f figures
		for range int(served + rng.Float64()) {
			f.count(time.Duration(rng.ExpFloat64()*mean*float64(time.Second)), m.limits.Checkout)
		}
		m.window = append(m.window, f)
		m.window = m.window[max(0, len(m.window)-remembered):]
		var all figures
		for _, one := range m.window {
			all = all.and(one)
		}
		m.s = m.s.steer(time.Unix(1e9+int64(t), 0), sale{Checkout: all}, m.limits)
		m.factors, m.p99 = append(m.factors, m.s.factor), append(m.p99, mean*math.Log(100))
	}
	return m
}

func always(most float64) func(int) float64 { return func(int) float64 { return most } }

func TestThePaceComesToWhatTheCheckoutBearsAndStaysThere(t *testing.T) {
	const rate, settled = 60.0, 1200
	for _, c := range []struct {
		bears       float64 // of the rate
		delay       [2]int
		least, most float64 // of what it bears
	}{
		{0.3, [2]int{1, 3}, 0.5, 0.9},
		{0.6, [2]int{1, 3}, 0.6, 0.9},
		{0.3, [2]int{5, 30}, 0.5, 0.9},
		{0.6, [2]int{5, 30}, 0.6, 0.9},
		{0.9, [2]int{5, 30}, 0.6, 0.9},
		{0.6, [2]int{20, 100}, 0.45, 0.9},
		{0.9, [2]int{20, 100}, 0.45, 0.9},
		{2, [2]int{20, 100}, 0.5, 0.5},
	} {
		t.Run(fmt.Sprint(c.bears, c.delay), func(t *testing.T) {
			m := (&till{rate: rate, capacity: always(c.bears * rate), delay: c.delay, limits: usualSlow}).run(3600)
			factors, slow, sum := m.factors[settled:], 0, 0.0
			for n, f := range factors {
				sum += f
				if m.p99[settled+n] > usualSlow.Checkout.Seconds() {
					slow++
				}
			}
			least, most := slices.Min(factors)/c.bears, slices.Max(factors)/c.bears
			mean := sum / float64(len(factors)) / c.bears
			t.Logf("of what it bears %.2f to %.2f, %.2f on average; too slow %d of %d seconds", least, most, mean, slow, len(factors))
			if least < c.least || most > c.most || mean < 0.65 && c.bears < 1 || slow > len(factors)/50 {
				t.Errorf("it does not settle")
			}
		})
	}
}

func TestThePaceRecoversOnceTheCheckoutDoes(t *testing.T) {
	m := (&till{rate: 60, delay: [2]int{20, 100}, limits: usualSlow, capacity: func(now int) float64 {
		if now >= 300 && now < 600 {
			return 10
		}
		return 120
	}}).run(2400)
	if low := slices.Min(m.factors[300:]); low > 0.5 || low < lowest {
		t.Errorf("it falls to %.2f", low)
	}
	at := slices.Index(m.factors[600:], 1)
	if at < 0 || at > 1200 {
		t.Errorf("it is at the full rate %d s after", at)
	}
	if slices.Min(m.factors[600+at:]) < 1 {
		t.Error("it falls again")
	}
}

func TestWhatWasSlowOnceMovesThePaceOnce(t *testing.T) {
	m := (&till{rate: 60, delay: [2]int{1, 3}, limits: usualSlow, capacity: func(now int) float64 {
		if now == 100 {
			return 12
		}
		return 240
	}}).run(200)
	if low := slices.Min(m.factors); low != lower {
		t.Errorf("it falls to %v", low)
	}
}

func TestThePaceIsSteeredByTheWorstStep(t *testing.T) {
	const calls = 200
	fine := figures{Calls: calls}
	slow := func(n int) figures { return figures{Calls: calls, Over: n, Half: n} }
	near := figures{Calls: calls, Half: 10}
	failing := func(n int) figures { return figures{Calls: calls, Failed: n} }
	for what, c := range map[string]struct {
		did    sale
		limits Slow
		why    string
		near   bool
	}{
		"nothing is asked":                   {sale{}, usualSlow, "", false},
		"all is well":                        {sale{fine, fine}, usualSlow, "", false},
		"two calls are slow of a few":        {sale{figures{Calls: 4, Over: 2, Half: 2}, fine}, usualSlow, "", false},
		"three are of a few":                 {sale{figures{Calls: 4, Over: 3, Half: 3}, fine}, usualSlow, byHolds, true},
		"one of a hundred is":                {sale{slow(2), fine}, usualSlow, "", false},
		"holds are slow":                     {sale{slow(10), fine}, usualSlow, byHolds, true},
		"the checkout is slow":               {sale{fine, slow(10)}, usualSlow, byCheckout, true},
		"both are, and the checkout more":    {sale{slow(10), slow(20)}, usualSlow, byCheckout, true},
		"both are, and holds more":           {sale{slow(20), slow(10)}, usualSlow, byHolds, true},
		"one is near its limit":              {sale{fine, near}, usualSlow, "", true},
		"five of a hundred fail":             {sale{fine, failing(20)}, usualSlow, byFailures, true},
		"three do":                           {sale{fine, failing(12)}, usualSlow, "", true},
		"one does":                           {sale{fine, failing(4)}, usualSlow, "", false},
		"a step is slow that has no limit":   {sale{slow(50), fine}, Slow{Checkout: time.Second}, "", false},
		"calls fail, which nobody minds":     {sale{fine, failing(200)}, Slow{Checkout: time.Second}, "", false},
		"it is slow, and still more fails":   {sale{fine, figures{Calls: calls, Over: 10, Half: 10, Failed: 100}}, usualSlow, byFailures, true},
		"it fails, and still more are slow":  {sale{fine, figures{Calls: calls, Over: 100, Half: 100, Failed: 20}}, usualSlow, byCheckout, true},
		"two nodes do, each a little of it":  {sale{slow(2), fine}.and(sale{slow(3), fine}), usualSlow, byHolds, true},
		"two nodes do, one of which is well": {sale{slow(2), fine}.and(sale{figures{Calls: 500}, fine}), usualSlow, "", false},
	} {
		if why, near := c.limits.judge(c.did); why != c.why || near != c.near {
			t.Errorf("%s: %q, near %v", what, why, near)
		}
	}
}

func TestThePaceMovesAsFarAndAsOftenAsItMay(t *testing.T) {
	slow, near := sale{Checkout: figures{Calls: 9, Over: 9, Half: 9}}, sale{Checkout: figures{Calls: 9, Half: 9}}
	now := time.Unix(1e9, 0)
	s := steering{factor: 1}
	after := func(d time.Duration, did sale) steering {
		now = now.Add(d)
		s = s.steer(now, did, usualSlow)
		return s
	}
	if after(0, slow); s.factor != 0.7 || s.why != byCheckout {
		t.Errorf("slow: %+v", s)
	}
	if after(cutEvery-time.Second, slow); s.factor != 0.7 {
		t.Errorf("slow a little later: %+v", s)
	}
	if after(time.Second, slow); math.Abs(s.factor-0.49) > 1e-9 || s.bad != 1 {
		t.Errorf("slow for long: %+v", s)
	}
	was := s.factor
	if after(time.Hour, near); s.factor != was {
		t.Errorf("between the limits it moves: %+v", s)
	}
	after(time.Second, sale{})
	if after(calmFor-time.Second, sale{}); s.factor != was {
		t.Errorf("it rises too soon: %+v", s)
	}
	if after(time.Second, sale{}); s.factor != was+raise || s.why != byCheckout {
		t.Errorf("it does not rise: %+v", s)
	}
	for range 1000 {
		after(cutEvery, slow)
	}
	if s.factor != lowest {
		t.Errorf("slow for ever: %+v", s)
	}
	if behind := s.steer(time.Unix(1e8, 0), slow, usualSlow); behind.cut != time.Unix(1e8, 0) {
		t.Errorf("by a clock that is behind: %+v", behind)
	}
	for range 1000 {
		after(feelEvery, sale{})
	}
	if s.factor != 1 || s.why != "" {
		t.Errorf("well again: %+v", s)
	}
	s = steering{factor: 0.3, why: byHolds}
	if s = s.steer(now, slow, Slow{}); s.factor != 1 || s.why != "" {
		t.Errorf("without limits: %+v", s)
	}
}

func TestNeverMoreAreLetInThanTheRateHoweverThePaceIsSteered(t *testing.T) {
	const rate, burst, fans = 3000, 9, 400 // fifty a second
	ctx, event, line := t.Context(), devtest.Event(t), NewLine(devtest.Redis(t))
	err := line.Make(ctx, event, Opening{Free: 1000, New: true, Order: Order{State: Open, Terms: Terms{Rate: rate, Burst: burst, Cap: fans, Session: time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	tickets := make([]draw.Ticket, fans)
	for n := range tickets {
		tickets[n].ID = draw.ID{0: byte(n >> 8), 1: byte(n)}
		if _, err := line.Join(ctx, event, tickets[n], Known{}); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var in []time.Time // by the clock of Redis
	steered := 0
	for n, begun := 0, time.Now(); (len(in) < 60 || steered < 20) && time.Since(begun) < time.Minute; n++ {
		if n%10 == 0 {
			if _, err := line.Call(ctx, event); err != nil {
				t.Fatal(err)
			}
			p, err := line.say(ctx, event, "a node", sale{})
			if err != nil {
				t.Fatal(err)
			}
			mine, err := line.steer(ctx, event, p, steering{factor: lowest + (1-lowest)*rng.Float64(), bad: 1})
			if err != nil || !mine {
				t.Fatalf("steered: %v, %v", mine, err)
			}
			if mine, err := line.steer(ctx, event, p, steering{factor: 1}); mine || err != nil {
				t.Fatalf("steered twice by what was read once: %v, %v", mine, err)
			}
			steered++
		}
		turn, err := line.Claim(ctx, event, tickets[len(in)].ID, Known{})
		if err != nil {
			t.Fatal(err)
		}
		if turn.New {
			in = append(in, turn.Inside.Add(-time.Minute))
		}
	}
	for from := range in {
		for to := from; to < len(in); to++ {
			took := in[to].Sub(in[from]) + time.Millisecond
			if n := to - from + 1; float64(n) > rate*took.Minutes()+burst {
				t.Fatalf("%d were let in within %v", n, took)
			}
		}
	}
	if len(in) < 60 || steered < 20 {
		t.Errorf("only %d were let in, and it was steered %d times", len(in), steered)
	}
}

func TestWhatIsMeasuredIsWhatHappenedWithinSeconds(t *testing.T) {
	var m meter
	now := time.Unix(1e9, 0)
	call := func(took time.Duration, o Outcome) {
		m.end(m.begin(now.Add(-took)), o, time.Second, now)
	}
	for n := range 200 {
		call(time.Duration(n)*time.Millisecond, Answered)
	}
	call(700*time.Millisecond, Answered)
	call(2*time.Second, Failed)
	call(9*time.Second, Refused)
	is := m.figures(time.Second, now)
	if is.P99 < 198 || is.P99 > 240 {
		t.Errorf("of 202 calls 99 of a hundred took up to %d ms", is.P99)
	}
	if is.P99 = 0; is != (figures{Calls: 202, Over: 1, Half: 2, Failed: 1}) {
		t.Errorf("%+v", is)
	}
	hangs := m.begin(now)
	now = now.Add(remembered * time.Second)
	if is := m.figures(time.Second, now); is.Calls != 1 || is.Over != 1 || is.P99 < 4000 || is.P99 > 4800 {
		t.Errorf("of one that hangs: %+v", is)
	}
	m.end(hangs, Refused, time.Second, now)
	if is := m.figures(time.Second, now); is != (figures{}) {
		t.Errorf("seconds later: %+v", is)
	}
	if m.end(m.begin(now), Answered, 0, now.Add(time.Hour)); m.figures(0, now.Add(time.Hour)).Over != 0 {
		t.Error("what has no limit is over it")
	}
}
