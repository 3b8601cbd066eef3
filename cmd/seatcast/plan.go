package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// planCmd is Little's law for a waiting room: of those inside, each for so long,
// as many leave in a minute as must be let in.
type planCmd struct {
	Codes   int           `required:"" placeholder:"N" help:"How many people may come: codes given out, or fans who know."`
	ShowUp  float64       `required:"" placeholder:"0.4" help:"Which part of them does."`
	Inside  int           `required:"" placeholder:"N" help:"How many may shop at the same time."`
	Session time.Duration `required:"" placeholder:"5m" help:"How long one of them stays, on average."`

	Seats   int     `placeholder:"N" help:"Seats on sale: tells when they are gone."`
	Buyers  float64 `default:"0.65" help:"Which part of those let in buy."`
	Tickets float64 `default:"2.4" help:"How many tickets a buyer takes, on average."`
	Frames  float64 `default:"1" help:"How often a second those who wait are told the number."`
	Changes float64 `default:"5" help:"How many frames a second of the seat map those inside are sent."`
	Looks   float64 `default:"4" help:"How many seats a shopper asks for before one is hers."`
	Cores   int     `default:"4" help:"Cores of a node."`
}

// What was measured, on a virtual machine of two cores, and by what. They are
// upper bounds of medians: other machines differ.
const (
	sessionsANode  = 15_000 // the most that were tried
	deliveryMicros = 5.1    // CPU of a delivery over WebSocket; 4.7 over SSE
	sessionKB      = 10.7   // memory of a WebSocket session; 3.2 of an SSE session
	acceptsACore   = 1_600  // sessions that come back in a second
	refusalMicros  = 90     // CPU of a refused hold, all servers together, where a core is half busy
	busy           = 0.5    // how much of a core is planned with
	figures        = "docs/benchmarks.md (loadtest fanout, fanout --herd, contention)"
)

// Validate is called by the parser.
func (c planCmd) Validate() error {
	var all []error
	for _, f := range []struct {
		flag string
		ok   bool
		is   string
	}{
		{"codes", c.Codes > 0, "more than 0"}, {"inside", c.Inside > 0, "more than 0"}, {"session", c.Session >= time.Second, "a second or longer"},
		{"show-up", c.ShowUp > 0 && c.ShowUp <= 1, "more than 0, and at most 1"}, {"seats", c.Seats >= 0, "0 or more"},
		{"buyers", c.Buyers > 0 && c.Buyers <= 1, "more than 0, and at most 1"}, {"tickets", c.Tickets >= 1 && c.Tickets < 1000, "1 or more"},
		{"frames", c.Frames > 0 && c.Frames <= 10, "more than 0, and at most 10: a tick is 100 ms"}, {"changes", c.Changes >= 0 && c.Changes <= 10, "0 to 10: a tick is 100 ms"},
		{"looks", c.Looks >= 1 && c.Looks < 1e6, "1 or more"}, {"cores", c.Cores > 0, "more than 0"},
	} {
		if !f.ok {
			all = append(all, fmt.Errorf("--%s must be %s", f.flag, f.is))
		}
	}
	return errors.Join(all...)
}

// flow is how a queue empties.
type flow struct {
	rate    float64 // let in a minute
	drains  time.Duration
	gone    time.Duration // until the seats are; 0: they are not
	inVain  float64       // still wait then
	buyable float64       // tickets a minute
}

// flow works out what becomes of the queue when a session lasts so long.
func (c planCmd) flow(session time.Duration) flow {
	people := float64(c.Codes) * c.ShowUp
	f := flow{rate: float64(c.Inside) / session.Minutes()}
	f.drains = minutes(people / f.rate)
	f.buyable = f.rate * c.Buyers * c.Tickets
	if needed := float64(c.Seats) / (c.Buyers * c.Tickets); c.Seats > 0 && needed <= people {
		f.gone = minutes(needed/f.rate) + session
		f.inVain = max(0, people-f.rate*f.gone.Minutes())
	}
	return f
}

func minutes(m float64) time.Duration {
	const most = 1e6 // two years: nobody waits longer, and a Duration ends somewhere
	return time.Duration(min(m, most) * float64(time.Minute)).Round(time.Second)
}

// Run prints the plan.
func (c planCmd) Run(s *streams) error {
	p := message.NewPrinter(language.English)
	people, f := float64(c.Codes)*c.ShowUp, c.flow(c.Session)
	w := tabwriter.NewWriter(s.out, 0, 0, 3, ' ', 0)
	line := func(what, why string, a ...any) { _, _ = p.Fprintf(w, what+"\t"+why+"\n", a...) }

	line("admit %.0f a minute", "%d inside, %s each", f.rate, c.Inside, spelt(c.Session))
	line("drains in %.0f min (%s)", "%.0f people: %d codes, of which %.0f %% come", f.drains.Minutes(), spelt(f.drains), people, c.Codes, 100*c.ShowUp)
	switch {
	case c.Seats == 0:
	case f.gone == 0:
		line("never sold out", "%d seats, and %.0f people buy %.0f tickets", c.Seats, people, people*c.Buyers*c.Tickets)
	default:
		line("sold out after %.0f min (%s)", "%d seats, %.0f tickets a minute: %.0f %% buy, %.1f each; the last ones finish", f.gone.Minutes(), spelt(f.gone), c.Seats, f.buyable, 100*c.Buyers, c.Tickets)
		line("%.0f wait in vain", "they are told then", f.inVain)
	}
	_, _ = p.Fprintf(w, "\nIf sessions last longer and %d stay inside:\n\nsession\tadmit a minute\tdrains in\tsold out after\n", c.Inside)
	for _, times := range []float64{1, 1.5, 2, 3} {
		long := time.Duration(times * float64(c.Session))
		g := c.flow(long)
		gone := "-"
		if g.gone > 0 {
			gone = spelt(g.gone)
		}
		_, _ = p.Fprintf(w, "%s\t%.0f\t%s\t%s\n", spelt(long), g.rate, spelt(g.drains), gone)
	}
	_, _ = p.Fprintf(w, "\nIf they do and %.0f a minute are let in all the same, %.0f are inside at twice the session.\n", f.rate, 2*float64(c.Inside))
	c.machines(w, p, people, f)
	return w.Flush()
}

// machines says what must be there at ten o'clock.
func (c planCmd) machines(w *tabwriter.Writer, p *message.Printer, people float64, f flow) {
	watching := people + float64(c.Inside)
	deliveries := people*c.Frames + float64(c.Inside)*c.Changes
	cores := deliveries * deliveryMicros / 1e6 / busy
	nodes := max(math.Ceil(watching/sessionsANode), math.Ceil(cores/float64(c.Cores)))
	asks := f.rate / 60 * c.Looks
	_, _ = p.Fprintf(w, "\nMachines, from figures measured on one of two cores: %s\n\n", figures)
	for _, l := range []struct {
		what string
		n    float64
		unit string
		why  string
	}{
		{"hub nodes", nodes, "", p.Sprintf("%.0f sessions, at most %d a node; of %d cores", watching, sessionsANode, c.Cores)},
		{"cores of hubs", math.Ceil(cores), "", p.Sprintf("%.0f deliveries a second, %.1f µs each, half busy", deliveries, deliveryMicros)},
		{"memory of hubs", math.Ceil(watching * sessionKB / 1e6), " GB", p.Sprintf("%.1f KB a session", sessionKB)},
		{"all are back in", math.Ceil(watching / nodes / acceptsACore), " s", p.Sprintf("%d accepts a second on one core of each node", acceptsACore)},
		{"cores for holds", math.Ceil(asks * refusalMicros / 1e6 / busy), "", p.Sprintf("%.0f asked for a second, %.0f before one is got", asks, c.Looks)},
	} {
		_, _ = p.Fprintf(w, "%s\t%.0f%s\t%s\n", l.what, l.n, l.unit, l.why)
	}
}

// spelt is a duration without what is nought at its end.
func spelt(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, nought := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nought) {
			text = text[:len(text)-2]
		}
	}
	return text
}
