package contention

import (
	"cmp"
	"slices"
	"time"
)

// grant is a hold as its buyer knows it. Times are nanoseconds of the wall clock,
// which servers and buyers share.
type grant struct {
	seat, buyer    int32
	sent, got, end int64 // asked for, answered, over as it was told
	last           int64 // over at the latest
}

// shot is a request that was answered.
type shot struct {
	seat           int32
	held           bool
	due, sent, got int64 // a closed loop is due when it sends
}

// soldTwice counts the grants of a seat that somebody else had at that moment:
// an earlier buyer had been told so and her hold was not over. It believes
// nothing but answers.
func soldTwice(grants []grant) (twice int) {
	all := slices.Clone(grants)
	slices.SortFunc(all, func(a, b grant) int { return cmp.Or(cmp.Compare(a.seat, b.seat), cmp.Compare(a.got, b.got)) })
	var live []grant
	for _, g := range all {
		live = slices.DeleteFunc(live, func(had grant) bool { return had.seat != g.seat || had.end <= g.got })
		if slices.ContainsFunc(live, func(had grant) bool { return had.buyer != g.buyer }) && g.end > g.got {
			twice++
		}
		live = append(live, g)
	}
	return twice
}

// granted counts the holds between two looks at the gate, and those that may be
// on the wrong side of a look: they were under way while it was taken. A hold is
// counted by the middle of its request, a look by its own.
func granted(grants []grant, from, to window) (n, unsure int) {
	for _, g := range grants {
		asked := window{g.sent, g.got}
		if at := asked.middle(); from.middle() <= at && at < to.middle() {
			n++
		}
		if asked.touches(from) || asked.touches(to) {
			unsure++
		}
	}
	return n, unsure
}

// blur is how far the end of a hold that is told lies before its real end at
// most, where one clock is asked for both.
const blur = 2 * time.Millisecond

// falseRefusals counts the refusals of a seat that nobody had while they were
// under way: no hold of it was being asked for or lasted then. All holds that
// touch the refusals must be among the grants. The oldest is the longest that
// such a seat had been free when it was asked for: since its last hold was over,
// or since opened, from when on the grants are known.
func falseRefusals(grants []grant, opened int64, shots []shot) (wrong int, oldest time.Duration) {
	bySeat := make(map[int32][]grant)
	for _, g := range grants {
		bySeat[g.seat] = append(bySeat[g.seat], g)
	}
	for _, all := range bySeat { // ascending; last becomes the latest so far
		slices.SortFunc(all, func(a, b grant) int { return cmp.Compare(a.sent, b.sent) })
		for i := 1; i < len(all); i++ {
			all[i].last = max(all[i].last, all[i-1].last)
		}
	}
	for _, s := range shots {
		if s.held {
			continue
		}
		all := bySeat[s.seat]
		n, _ := slices.BinarySearchFunc(all, s.got, func(g grant, at int64) int { return cmp.Compare(g.sent, at) })
		free := opened
		if n > 0 {
			free = all[n-1].last
		}
		if n == 0 || free < s.sent {
			wrong++
			oldest = max(oldest, time.Duration(s.sent-free))
		}
	}
	return wrong, oldest
}

// quantile is the value below which so large a part of the sorted values lies.
func quantile(sorted []int64, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return time.Duration(sorted[min(len(sorted)-1, int(part*float64(len(sorted))))])
}

// latencies are how long the shots took from when they were due, ascending.
func latencies(shots []shot) []int64 {
	all := make([]int64, len(shots))
	for i, s := range shots {
		all[i] = s.got - s.due
	}
	slices.Sort(all)
	return all
}
