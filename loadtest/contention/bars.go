package contention

import (
	"fmt"
	"text/tabwriter"
	"time"

	"seatcast/loadtest/report"
)

// bar is something seatcast is held to.
type bar struct {
	what, value, want string
	met               bool
}

// printBars shows those there are figures for.
func (b *bench) printBars(got results) {
	bars := barsOf(got)
	if len(bars) == 0 {
		return
	}
	w := tabwriter.NewWriter(b.o.Out, 0, 0, 2, ' ', 0)
	report.Say(w, "\n")
	for _, r := range bars {
		verdict := "met"
		if !r.met {
			verdict = "MISSED"
		}
		report.Say(w, "%s\t%s\t%s\t%s\n", r.what, r.value, r.want, verdict)
	}
	_ = w.Flush() // a terminal that has gone
}

// barsOf are the bars, with the figures of all pairs.
func barsOf(got results) (bars []bar) {
	if rounds := got[Naive]; len(rounds) > 0 {
		n := worst(rounds, func(f figures) int { return f.soldTwice })
		bars = append(bars, bar{"naive sells twice", fmt.Sprint(n), "≥ 1", n > 0})
	}
	ours := got[Seatcast]
	if len(ours) == 0 {
		return bars
	}
	n := worst(ours, func(f figures) int { return f.soldTwice })
	bars = append(bars, bar{"seatcast sells twice", fmt.Sprint(n), "never", n == 0})
	ratio := func(what, of string, most float64, value func([]figures) []float64) {
		if r, ok := report.Ratios(value(ours), value(got[of])); ok {
			bars = append(bars, bar{what + ", seatcast / " + of, r.String(), fmt.Sprintf("≤ %.2f", most), r.Mid <= most})
		}
	}
	spent := func(rounds []figures) []float64 { return report.Each(rounds, cpu) }
	in := func(of func(figures) time.Duration) func([]figures) []float64 {
		return func(rounds []figures) []float64 { return times(rounds, of) }
	}
	ratio("CPU a refusal", Postgres, 1./3, spent)
	ratio("CPU a refusal", Redis, 1./2, spent)
	ratio("CPU a refusal", Bare, 1.5, spent)
	ratio("p99", Postgres, 1./3, in(p99))
	ratio("bystander p99, closed loop", Postgres, 1./3, in(beside))
	ratio("bystander p99, fixed rate", Bare, 2, in(openP99))
	return append(bars, barsOfMemory(ours)...)
}

// mostFalse is how long a seat may be refused once it is free: nodes hear of it
// by then even when messages are lost.
const mostFalse = 2 * time.Second

func barsOfMemory(ours []figures) []bar {
	reached := report.MedianOf(ours, func(f figures) float64 { return f.reached() })
	wrong := worst(ours, func(f figures) float64 { return float64(f.falseRefusals) / float64(max(1, f.judged)) })
	oldest := worst(ours, oldest)
	blurred := report.MedianOf(ours, func(f figures) float64 { return f.blurred() })
	return []bar{
		{"refusals that reach Redis", fmt.Sprintf("%.2f%% ± %.2f", 100*reached, 100*blurred), "< 5%", reached >= 0 && reached < 0.05},
		{"false refusals, worst pair", fmt.Sprintf("%.3f%%", 100*wrong), "< 0.1%", wrong < 0.001},
		{"false refusals, oldest", fmt.Sprintf("%.3f s", oldest.Seconds()), fmt.Sprintf("≤ %.0f s", mostFalse.Seconds()), oldest <= mostFalse},
	}
}

// reached is the share of refusals that Redis was asked for: what the gate let
// through and was not held. Nothing is less than nought, but for a difference
// that unsure explains: a share below it shows that something is counted wrong.
func (f figures) reached() float64 {
	if f.refused == 0 {
		return 0
	}
	more := f.gate.asked - float64(f.granted)
	if more < 0 && -more <= float64(f.unsure) {
		more = 0
	}
	return more / float64(f.refused)
}

// blurred is how far reached may be wrong, either way.
func (f figures) blurred() float64 {
	if f.refused == 0 {
		return 0
	}
	return float64(f.unsure) / float64(f.refused)
}
