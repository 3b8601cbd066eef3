package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// tells prints a line every other second.
func (r *rehearsal) tells(ctx context.Context) error {
	say(r.s.out, "%8s  %-7s %8s %8s %10s %8s %8s\n", "time", "state", "waiting", "inside", "rate/min", "let in", "errors")
	for pause(ctx, 2*time.Second) {
		r.mu.Lock()
		wrong := 0
		for _, n := range r.errors {
			wrong += n
		}
		lately := 0
		for i := len(r.in) - 1; i >= 0 && time.Since(r.in[i]) < rateOver; i-- {
			lately++
		}
		since := min(rateOver, max(time.Second, time.Since(r.opens)))
		say(r.s.out, "%8s  %-7s %8d %8d %10.0f %8d %8d\n", time.Since(r.opens).Round(time.Second), r.frame.State, r.frame.Waiting, r.frame.Inside,
			float64(lately)/since.Minutes(), len(r.in), wrong)
		r.mu.Unlock()
	}
	return nil
}

// rateOver is the time over which the rate is shown.
const rateOver = 10 * time.Second

// What is allowed beside what is promised.
const (
	rateSlack = 0.1              // of a rate
	askAnew   = 12 * time.Second // a called one is told by a frame, asks again after three seconds at most, and may have to do so twice
)

// judged is one line of a verdict.
type judged struct {
	what, is, want string
	kept           bool
}

// judge compares what the fans lived through with what the room promises.
func (r *rehearsal) judge() (all []judged) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.in, time.Time.Compare)
	if len(r.in) == 0 {
		return []judged{{"let in", "nobody", "somebody", false}}
	}
	took := r.in[len(r.in)-1].Sub(r.in[0])
	most := float64(r.terms.Rate)*took.Minutes() + float64(r.terms.Burst)
	all = append(all, judged{"let in in all", fmt.Sprintf("%d in %v", len(r.in), took.Round(time.Second)), fmt.Sprintf("at most %.0f", most+1), float64(len(r.in)) <= most+1})
	if rate, ok := r.rate(); ok {
		all = append(all, judged{"rate while people waited", fmt.Sprintf("%.0f a minute", rate), fmt.Sprintf("%d", r.terms.Rate), rate >= (1-rateSlack)*float64(r.terms.Rate)})
	}
	all = append(all, judged{"inside at most", fmt.Sprint(r.most), fmt.Sprintf("%d", r.terms.Cap), r.most <= int64(r.terms.Cap)})
	var longest time.Duration
	for _, w := range r.waits {
		if !w.slept {
			longest = max(longest, w.long)
		}
	}
	promised := time.Duration(float64(r.drains)*(1+rateSlack)) + askAnew
	all = append(all, judged{"longest wait since the opening", longest.Round(time.Second).String(),
		fmt.Sprintf("%v by the plan, %v with the time to ask", r.drains.Round(time.Second), promised.Round(time.Second)), longest <= promised})
	wrong := 0
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(r.errors)) {
		wrong += r.errors[code]
		codes = append(codes, fmt.Sprintf("%s %d", code, r.errors[code]))
	}
	is := "none"
	if wrong > 0 {
		is = strings.Join(codes, ", ")
	}
	return append(all, judged{"errors", is, "none", wrong == 0}, judged{"waited in vain", fmt.Sprint(r.inVain), "nobody", r.inVain == 0})
}

// rate is how many were let in a minute from the tenth to the ninetieth in a
// hundred: in between somebody is always waiting. The cap may hold it up: then it
// is what leaves.
func (r *rehearsal) rate() (perMinute float64, ok bool) {
	from, to := len(r.in)/10, len(r.in)*9/10
	took := r.in[to].Sub(r.in[from])
	if to-from < 10 || took < 2*time.Second || r.most >= int64(r.terms.Cap) {
		return 0, false
	}
	return float64(to-from) / took.Minutes(), true
}

// verdict prints what is kept and what is not.
func (r *rehearsal) verdict() error {
	all := r.judge()
	say(r.s.out, "\n%d fans: %d let in, %d left the line\n\n", r.cmd.Fans, len(r.in), r.left)
	w := tabwriter.NewWriter(r.s.out, 0, 0, 2, ' ', 0)
	kept := true
	for _, j := range all {
		verdict := "kept"
		if !j.kept {
			verdict, kept = "NOT KEPT", false
		}
		say(w, "%s\t%s\t%s\t%s\n", j.what, j.is, j.want, verdict)
	}
	if r.most >= int64(r.terms.Cap) {
		say(w, "the cap was reached\tand the rate cannot be judged\t\t\n")
	}
	if err := w.Flush(); err != nil || !kept {
		return errKept
	}
	return nil
}
