package contention

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"seatcast/loadtest/report"
)

// print shows the rows, where latencies lie, the bars, and what should be known
// of the figures.
func (b *bench) print(rate float64, got results) {
	o := b.o
	report.Say(o.Out, "%d buyers want %d of %d seats, holds of %v, a storm of %v, %d pairs; all servers on core %d, buyers on %v\n",
		o.Buyers, o.Hot, o.Seats, o.Hold, o.storm(), o.Pairs, b.server[0], []int(b.client))
	if o.Rate > 0 {
		report.Say(o.Out, "the storm is %.0f requests/s, at fixed moments\n", o.Rate)
	}
	if o.has(Naive) || o.has(Postgres) {
		report.Say(o.Out, "Postgres: %d connections, transaction %s, %d further round trips\n", o.Pool, o.Transaction, o.RoundTrips)
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	report.Say(w, "\nstrategy\trequests\theld\trefused\tsold twice\tCPU µs/refusal\tp50 ms\tp99 ms\tRedis calls/refusal\tfalse refusals\toldest ms\tbystander p99 ms\talone\tat a fixed rate\t\n")
	for _, name := range o.measured() {
		r := row(name, got[name])
		report.Say(w, "%s\t%d\t%d\t%d\t%d\t%s\t%.1f\t%.1f\t%s\t%d\t%.0f\t%.1f\t%.1f\t%s\t\n", name, r.Requests, r.Held, r.Refused, r.SoldTwice,
			shown("%.1f", r.CPUUsPerRefusal), r.P50Ms, r.P99Ms, shown("%.3f", r.RedisCallsPerRefusal), r.FalseRefusals, r.OldestFalseMs,
			r.BystanderP99Ms, r.BystanderIdleP99Ms, fixed(r))
	}
	_ = w.Flush() // a terminal that has gone
	b.printParts(got)
	b.printGate(rate, got[Seatcast])
	b.plot(got)
	b.printBars(got)
	b.printNotes(got)
}

func shown(format string, of *float64) string {
	if of == nil {
		return "-"
	}
	return fmt.Sprintf(format, *of)
}

// fixed is the bystander's p99 in the storm at a fixed rate, where there was one,
// and how busy the servers were in it.
func fixed(r Row) string {
	if r.FixedRateP99Ms == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f (%.0f%% busy)", *r.FixedRateP99Ms, 100**r.FixedRateBusy)
}

// printParts tells which process has the CPU.
func (b *bench) printParts(got results) {
	report.Say(b.o.Out, "\nCPU by process, µs a refusal\n")
	for _, name := range b.o.measured() {
		var parts []string
		for i, p := range got[name][0].parts {
			mid := report.MedianOf(got[name], func(f figures) float64 {
				if i < len(f.parts) {
					return f.parts[i].cpu
				}
				return 0
			})
			parts = append(parts, fmt.Sprintf("%s %.1f", p.name, mid))
		}
		report.Say(b.o.Out, "%9s  %s\n", name, strings.Join(parts, ", "))
	}
}

// printGate tells what seatcast says of its memory, and of the fixed rate.
func (b *bench) printGate(rate float64, rounds []figures) {
	if len(rounds) == 0 {
		return
	}
	var g gate
	for _, f := range rounds {
		g = gate{g.refused + f.gate.refused, g.asked + f.gate.asked, g.sampled + f.gate.sampled, g.wrong + f.gate.wrong}
	}
	report.Say(b.o.Out, "\nseatcast says: %.0f refused from memory, %.0f asked of Redis, holds included; of %.0f refusals compared with Redis %.0f were false\n",
		g.refused, g.asked, g.sampled, g.wrong)
	report.Say(b.o.Out, "at a fixed rate: %.0f requests/s, half of the %.0f that bare could do\n", rate/2, rate)
}

// plot draws where latencies lie: a column is twice as long a time as the one
// before it, its height is how many requests took so long.
func (b *bench) plot(got results) {
	const first, columns = 250 * time.Microsecond, 16
	marks := []rune(" ▁▂▃▄▅▆▇█")
	report.Say(b.o.Out, "\nlatency, each column twice the one before: under 0.25 ms to over %.0f s\n", (first << (columns - 2)).Seconds())
	for _, name := range b.o.measured() {
		var count [columns]int
		most := 1
		for _, f := range got[name] {
			for _, l := range f.latency {
				k := max(0, min(columns-1, int(math.Ceil(math.Log2(float64(l)/float64(first))))))
				count[k]++
				most = max(most, count[k])
			}
		}
		var line strings.Builder
		for _, n := range count {
			line.WriteRune(marks[(n*(len(marks)-1)+most-1)/most])
		}
		report.Say(b.o.Out, "%9s |%s|\n", name, &line)
	}
}

// printNotes says what makes figures worth less.
func (b *bench) printNotes(got results) {
	notes := slices.Clone(b.notes)
	for _, name := range b.o.measured() {
		for pair, f := range got[name] {
			for _, n := range f.notes {
				notes = append(notes, fmt.Sprintf("%s, pair %d: %s", name, pair+1, n))
			}
		}
	}
	if len(notes) > 0 {
		report.Say(b.o.Out, "\n")
	}
	for _, n := range notes {
		report.Say(b.o.Out, "! %s\n", n)
	}
}
