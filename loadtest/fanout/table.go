package fanout

import (
	"fmt"
	"slices"
	"text/tabwriter"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/report"
)

// print shows the medians of every server, the ratios, and what should be known
// of them.
func (b *bench) print(servers []string, rate float64, got results) {
	report.Say(b.o.Out, "%d %s sessions of one event, %.3g frames/s of %d seats, %d frames, %d pairs; server on core %d, reader on core %d\n\n",
		b.o.Conns, b.o.transport(), rate, b.o.size(), b.o.frames(), b.o.Pairs, b.server[0], b.reader[0])
	w := tabwriter.NewWriter(b.o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	report.Say(w, "server\tCPU µs/delivery\tdeliveries/s\tp50 ms\tp99 ms\tmax ms\tRSS KB/session\tbytes/delivery\tdelivered\treader busy\t\n")
	for _, name := range servers {
		rounds := got[name]
		if len(rounds) == 0 {
			report.Say(w, "%s\tmissing\t\t\t\t\t\t\t\t\t\n", name)
			continue
		}
		mid := func(of func(figures) float64) float64 { return report.MedianOf(rounds, of) }
		report.Say(w, "%s\t%.2f\t%.0f\t%.1f\t%.1f\t%.1f\t%.2f\t%.0f\t%.2f%%\t%.0f%%\t\n", name, mid(cpu),
			mid(func(f figures) float64 { return f.rate }), mid(func(f figures) float64 { return f.P50 }), mid(p99),
			mid(func(f figures) float64 { return f.Max }), mid(rss)/1024, mid(func(f figures) float64 { return f.bytes }),
			100*mid(delivered), 100*mid(func(f figures) float64 { return f.busy }))
	}
	_ = w.Flush() // a terminal that has gone
	b.printRatios(servers, got)
	b.printNotes(servers, got)
}

func delivered(f figures) float64 {
	if f.Expected == 0 {
		return 1
	}
	return float64(f.Deliveries) / float64(f.Expected)
}

// printRatios compares seatcast with each other server, pair by pair.
func (b *bench) printRatios(servers []string, got results) {
	w := tabwriter.NewWriter(b.o.Out, 0, 0, 2, ' ', 0)
	report.Say(w, "\n")
	for _, name := range servers[1:] {
		c, ok := report.Ratios(report.Each(got[peers.Seatcast], cpu), report.Each(got[name], cpu))
		if !ok {
			continue
		}
		p, _ := report.Ratios(report.Each(got[peers.Seatcast], p99), report.Each(got[name], p99))
		m, ok := report.Ratios(report.Each(got[peers.Seatcast], rss), report.Each(got[name], rss))
		memory := "-"
		if ok && report.MedianOf(got[name], rss) > hardlyAny {
			memory = m.String()
		}
		report.Say(w, "seatcast / %s\tCPU %s\tp99 %s\tRSS %s\n", name, c, p, memory)
	}
	_ = w.Flush() // a terminal that has gone
}

// hardlyAny is the memory of a session, in bytes, that nothing is compared
// with: raw keeps a number a session, in memory it has from the start.
const hardlyAny = 256

// printNotes says what is missing, what went wrong, and what makes figures
// worth less.
func (b *bench) printNotes(servers []string, got results) {
	notes := slices.Clone(b.notes)
	for _, name := range servers {
		if why := b.missing[name]; why != "" {
			notes = append(notes, "missing: "+why)
		}
		for pair, f := range got[name] {
			if f.wrong != nil {
				notes = append(notes, fmt.Sprintf("%s, pair %d: %v", name, pair+1, f.wrong))
			}
			if f.others > 0.1 && b.server[0] != b.reader[0] {
				notes = append(notes, fmt.Sprintf("%s, pair %d: others used %.0f%% of the server's core meanwhile: its figures are worth less", name, pair+1, 100*f.others))
			}
			if f.busy > 0.9 {
				notes = append(notes, fmt.Sprintf("%s, pair %d: the reader was busy %.0f%% of the time: latencies are its own too", name, pair+1, 100*f.busy))
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
