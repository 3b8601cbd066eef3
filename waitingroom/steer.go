package waitingroom

import "time"

// Why fewer are let in than the rate has it.
const (
	bySeats     = "seats"    // more are inside than will find a seat
	byHolds     = "holds"    // to hold seats takes long
	byCheckout  = "checkout" // to pay takes long
	byFailures  = "failures" // what is asked of either fails
	byBeginning = "restart"  // Redis had lost the room: it begins carefully
)

// figures are what one step of a sale did within the last seconds. Those of several
// nodes add up; of P99 the highest is kept.
type figures struct {
	Calls  int   `json:"calls"`  // that were answered, or take longer than the limit already
	Over   int   `json:"over"`   // took longer than the limit
	Half   int   `json:"half"`   // took longer than half of it
	Failed int   `json:"failed"` // for a reason of ours
	P99    int64 `json:"p99Ms"`  // of a hundred 99 took no longer
}

// sale is what its steps did.
type sale struct {
	Holds    figures `json:"holds"`
	Checkout figures `json:"checkout"`
}

func (f figures) and(g figures) figures {
	return figures{f.Calls + g.Calls, f.Over + g.Over, f.Half + g.Half, f.Failed + g.Failed, max(f.P99, g.P99)}
}

func (s sale) and(t sale) sale { return sale{s.Holds.and(t.Holds), s.Checkout.and(t.Checkout)} }

// steering is how a room's pace stands. What the loop remembers is all here, and
// here is in Redis: any node takes the next step.
type steering struct {
	factor float64   // of the rate
	why    string    // the factor is below 1
	bad    float64   // the factor at which the sale became slow last
	cut    time.Time // when it was lowered last
	rose   time.Time // when it was raised last
	calm   time.Time // since when nothing is near its limit; zero: something is
}

// How the pace is steered. Whoever is let in pays a minute or so later, so that
// what is done shows late: it waits between two cuts, rises at once only where it
// was well before, and from there slowly.
const (
	lower      = 0.7  // what is left of the pace when a step is slow
	lowest     = 0.05 // of the rate
	raise      = 0.01 // of the rate, at a time
	well       = 0.7  // of the factor at which it became slow
	beginAgain = 0.5  // the factor of a room that Redis had lost

	cutEvery  = 20 * time.Second // much longer than figures are remembered: what was slow once counts once
	riseEvery = 2 * time.Second
	feelEvery = 10 * time.Second // above what went well
	calmFor   = 15 * time.Second

	fewest = 3    // calls that are slow, or fail: one or two say nothing
	tail   = 0.01 // of calls may be slow
)

// steer returns how the pace stands after a sale did so much. Above a limit it
// falls; well below all of them, for a while, it rises; between the two it stays.
// Where next to nothing is asked nothing is slow: however low the pace is, it
// finds its way up again.
func (s steering) steer(now time.Time, did sale, limits Slow) steering {
	if limits == (Slow{}) {
		return steering{factor: 1}
	}
	why, near := limits.judge(did)
	switch {
	case why != "":
		s.calm = time.Time{}
		if since(s.cut, now) < cutEvery {
			break
		}
		if !s.cut.After(s.rose) { // one cut after another is the same trouble
			s.bad = s.factor
		}
		s.factor, s.why, s.cut = max(lowest, s.factor*lower), why, now
	case near:
		s.calm = time.Time{}
	case s.calm.IsZero() || now.Before(s.calm):
		s.calm = now
	case s.factor < 1 && now.Sub(s.calm) >= calmFor && since(s.rose, now) >= s.pause():
		s.factor, s.rose = min(1, s.factor+raise), now
		if s.factor == 1 {
			s.why = ""
		}
	}
	return s
}

// pause is how long it stays at a pace before it rises.
func (s steering) pause() time.Duration {
	if s.factor < well*s.bad {
		return riseEvery
	}
	return feelEvery
}

// since is how long ago something was. The clock of a new primary may be behind:
// what lies ahead is long ago.
func since(then, now time.Time) time.Duration {
	if then.After(now) {
		return longest
	}
	return now.Sub(then)
}

// judge says which limit is exceeded, the one that is most if several are, and
// whether any is near.
func (l Slow) judge(did sale) (why string, near bool) {
	worst := 0.0
	step := func(name string, limit time.Duration, f figures) {
		if limit == 0 {
			return
		}
		if much := part(f.Over, f.Calls); f.Over >= fewest && much > tail && much > worst {
			why, worst = name, much
		}
		near = near || f.Half >= fewest && part(f.Half, f.Calls) > tail
	}
	step(byHolds, l.Hold, did.Holds)
	step(byCheckout, l.Checkout, did.Checkout)
	if all := did.Holds.and(did.Checkout); l.Failures > 0 && all.Failed >= fewest {
		most := float64(l.Failures) / 100
		if much := part(all.Failed, all.Calls); much >= most && much > worst {
			why = byFailures
		}
		near = near || part(all.Failed, all.Calls) >= most/2
	}
	return why, near
}

func part(n, of int) float64 { return float64(n) / float64(max(1, of)) }
