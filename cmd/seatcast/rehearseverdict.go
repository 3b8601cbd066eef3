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
	rateOver  = 10 * time.Second // what the rate is shown of, and at least judged by
)

// What is allowed beside what is promised.
const (
	rateSlack = 0.1              // of a rate
	askWithin = 3 * time.Second  // a called one asks again within that
	askAnew   = 12 * time.Second // is told by a frame first, and may have to ask twice
)

// ruling is what a line of a verdict says in the end.
type ruling string

const (
	isKept  ruling = "kept"
	notKept ruling = "NOT KEPT"
)

func unjudged(format string, args ...any) ruling {
	return ruling("not judged: " + fmt.Sprintf(format, args...))
}

func ruled(kept bool) ruling {
	if kept {
		return isKept
	}
	return notKept
}

// judged is one line of a verdict.
type judged struct {
	what, is, want string
	ruling         ruling
}

// judge compares what the fans lived through with what the room promises.
func (r *rehearsal) judge() (all []judged) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.in, time.Time.Compare)
	if len(r.in) == 0 {
		all = append(all, judged{"let in", "nobody", "somebody", notKept})
	} else {
		most := beyond(r.in, r.terms.Rate)
		all = append(all, judged{"let in at once, beyond the rate", fmt.Sprintf("%.0f", most), fmt.Sprintf("at most %d", r.terms.Burst), ruled(most <= float64(r.terms.Burst))})
	}
	all = append(all, r.judgeRate())
	all = append(all, judged{"inside at most", fmt.Sprint(r.most), fmt.Sprintf("%d", r.terms.Cap), ruled(r.most <= int64(r.terms.Cap))})
	promised := time.Duration(float64(r.drains)*(1+rateSlack)) + askAnew
	wait := ruled(r.longest() <= promised)
	if r.full() {
		wait = unjudged("the cap was reached, and people were let in as others left")
	}
	all = append(all, judged{"longest wait since the opening", r.longest().Round(time.Second).String(),
		fmt.Sprintf("%v by the plan, %v with the time to ask", r.drains.Round(time.Second), promised.Round(time.Second)), wait})
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
	return append(all, judged{"errors", is, "none", ruled(wrong == 0)},
		judged{"waited in vain", fmt.Sprint(r.inVain), fmt.Sprintf("nobody within %v", r.within.Round(time.Second)), ruled(r.inVain == 0)})
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

// full says that as many may have been inside as may be: then it is those who leave for
// whom others are let in, and how late that is says nothing of the room.
func (r *rehearsal) full() bool {
	inside, most := 0, 0
	for _, s := range r.inOrder() {
		inside += s.inside
		most = max(most, inside)
	}
	return max(r.most, int64(most)) >= int64(r.terms.Cap)
}

func (r *rehearsal) inOrder() []step {
	slices.SortStableFunc(r.steps, func(a, b step) int { return a.at.Compare(b.at) })
	return r.steps
}

// longest is how long one of those who were there had to wait.
func (r *rehearsal) longest() (longest time.Duration) {
	for _, w := range r.waits {
		if !w.slept {
			longest = max(longest, w.long)
		}
	}
	return longest
}

// crowded is a time in which the room could let in as many as the rate has it.
type crowded struct {
	long time.Duration
	in   int // so many were
}

// enough is how many have to be there so that somebody asks whenever one more may come in.
func (r *rehearsal) enough() int {
	return max(3, int(math.Ceil(r.perSecond()*askWithin.Seconds())))
}

func (r *rehearsal) perSecond() float64 { return float64(r.terms.Rate) / 60 }

// longestCrowded is the longest time in which the room was open, fewer were inside than
// may be, and enough were awake and waited. It begins when the first of them is let in:
// until then they are told that they are called; or when that should have been.
func (r *rehearsal) longestCrowded() (longest crowded) {
	var (
		open, ready, inside int
		is                  bool
		since, begun        time.Time // begun: zero, not yet
		in                  int
	)
	for _, s := range r.inOrder() {
		if is && begun.IsZero() && (s.in > 0 || s.at.Sub(since) > askAnew) {
			begun = s.at
			if late := since.Add(askAnew); s.at.After(late) {
				begun = late
			}
		}
		if is && !begun.IsZero() {
			in += s.in
		}
		open, ready, inside = open+s.open, ready+s.ready, inside+s.inside
		was := is
		is = open > 0 && ready >= r.enough() && inside < r.terms.Cap
		switch {
		case is && !was:
			since, begun, in = s.at, time.Time{}, 0
		case was && !is && !begun.IsZero() && s.at.Sub(begun) > longest.long:
			longest = crowded{s.at.Sub(begun), in}
		}
	}
	return longest
}

// judgeRate judges the rate where people waited who would have come in. How many it lets
// in then the room may exceed by what it has saved up, which is the burst at most, or fall
// behind by as much, which it saves up; and who is called takes a while to ask. Whatever
// that could be is neither held against the room nor said in its favour.
func (r *rehearsal) judgeRate() judged {
	j := judged{what: "rate while people waited", want: fmt.Sprint(r.terms.Rate)}
	c := r.longestCrowded()
	if c.long < rateOver {
		j.ruling = unjudged("%d and more who were awake waited for %v at most, below the cap", r.enough(), c.long.Round(time.Second))
		return j
	}
	j.is = fmt.Sprintf("%.0f a minute for %v", float64(c.in)/c.long.Minutes(), c.long.Round(time.Second))
	least := func(d time.Duration) float64 { return (1 - rateSlack) * r.perSecond() * d.Seconds() }
	switch burst := float64(r.terms.Burst); {
	case float64(c.in) >= least(c.long)+burst:
		j.ruling = isKept
	case float64(c.in) < least(c.long-askWithin)-burst:
		j.ruling = notKept
	default:
		j.ruling = unjudged("that is too short to tell, with a burst of %d", r.terms.Burst)
	}
	return j
}

// verdict prints what is kept and what is not.
func (r *rehearsal) verdict() error {
	all := r.judge()
	say(r.s.out, "\n%d fans: %d let in, %d left the line\n\n", r.cmd.Fans, len(r.in), r.left)
	w := tabwriter.NewWriter(r.s.out, 0, 0, 2, ' ', 0)
	kept := true
	for _, j := range all {
		kept = kept && j.ruling != notKept
		say(w, "%s\t%s\t%s\t%s\n", j.what, j.is, j.want, j.ruling)
	}
	if len(r.slowed) > 0 {
		say(w, "the room slowed down\tbecause of %s\t\t\n", strings.Join(slices.Sorted(maps.Keys(r.slowed)), ", "))
	}
	if err := w.Flush(); err != nil || !kept {
		return errKept
	}
	return nil
}
