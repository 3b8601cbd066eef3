package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// tells prints a line every other second.
func (r *rehearsal) tells(ctx context.Context) error {
	say(r.s.out, "%8s  %-7s %8s %8s %10s %8s %8s %8s  %s\n", "time", "state", "waiting", "inside", "rate/min", "pace", "let in", "errors", "slowed")
	in := make([]int, rateOver/tellEvery) // of the last lines
	for line := 0; pause(ctx, tellEvery); line++ {
		r.mu.Lock()
		wrong := 0
		for _, n := range r.errors {
			wrong += n
		}
		lately := len(r.in) - in[line%len(in)]
		in[line%len(in)] = len(r.in)
		since := min(rateOver, max(time.Second, time.Since(r.opens)))
		say(r.s.out, "%8s  %-7s %8d %8d %10.0f %8d %8d %8d  %s\n", time.Since(r.opens).Round(time.Second), r.frame.State, r.frame.Waiting, r.frame.Inside,
			float64(lately)/since.Minutes(), r.frame.Pace, len(r.in), wrong, r.frame.Slowed)
		r.mu.Unlock()
	}
	return nil
}

const (
	tellEvery = 2 * time.Second
	rateOver  = 10 * time.Second // what the rate is shown of
)

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
		all = append(all, judged{"let in", "nobody", "somebody", false})
	} else {
		most := beyond(r.in, r.terms.Rate)
		all = append(all, judged{"let in at once, beyond the rate", fmt.Sprintf("%.0f", most), fmt.Sprintf("at most %d", r.terms.Burst), most <= float64(r.terms.Burst)})
	}
	if rate, ok := r.rate(); ok {
		all = append(all, judged{"rate while people waited", fmt.Sprintf("%.0f a minute", rate), fmt.Sprintf("%d", r.terms.Rate), rate >= (1-rateSlack)*float64(r.terms.Rate)})
	}
	all = append(all, judged{"inside at most", fmt.Sprint(r.most), fmt.Sprintf("%d", r.terms.Cap), r.most <= int64(r.terms.Cap)})
	if promised := time.Duration(float64(r.drains)*(1+rateSlack)) + askAnew; !r.full() {
		all = append(all, judged{"longest wait since the opening", r.longest().Round(time.Second).String(),
			fmt.Sprintf("%v by the plan, %v with the time to ask", r.drains.Round(time.Second), promised.Round(time.Second)), r.longest() <= promised})
	}
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
	return append(all, judged{"errors", is, "none", wrong == 0},
		judged{"waited in vain", fmt.Sprint(r.inVain), fmt.Sprintf("nobody within %v", r.within.Round(time.Second)), r.inVain == 0})
}

// beyond is how many more were let in at some time than the rate alone lets in.
func beyond(in []time.Time, perMinute int) (most float64) {
	perMs := float64(perMinute) / float64(time.Minute.Milliseconds())
	least := math.Inf(1)
	for i, at := range in { // until here, and not by the rate
		so := float64(i) - perMs*float64(at.Sub(in[0]).Milliseconds())
		least = min(least, so)
		most = max(most, so-least+1)
	}
	return most - 2*perMs // times are whole milliseconds
}

// full says that as many were inside as may be: then it is those who leave for whom
// others are let in, and how fast and how late that is says nothing of the room.
func (r *rehearsal) full() bool { return r.most >= int64(r.terms.Cap) }

// longest is how long one of those who were there had to wait.
func (r *rehearsal) longest() (longest time.Duration) {
	for _, w := range r.waits {
		if !w.slept {
			longest = max(longest, w.long)
		}
	}
	return longest
}

// rate is how many were let in a minute from the tenth to the ninetieth in a
// hundred: in between somebody is always waiting.
func (r *rehearsal) rate() (perMinute float64, ok bool) {
	from, to := len(r.in)/10, len(r.in)*9/10
	if to-from < 10 || r.full() {
		return 0, false
	}
	took := r.in[to].Sub(r.in[from])
	return float64(to-from) / took.Minutes(), took >= 2*time.Second
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
	if r.full() {
		say(w, "the cap was reached\tand neither the rate nor the longest wait, %v, can be judged\t\t\n", r.longest().Round(time.Second))
	}
	if len(r.slowed) > 0 {
		say(w, "the room slowed down\tbecause of %s\t\t\n", strings.Join(slices.Sorted(maps.Keys(r.slowed)), ", "))
	}
	if err := w.Flush(); err != nil || !kept {
		return errKept
	}
	return nil
}
