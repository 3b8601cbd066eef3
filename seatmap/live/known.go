package live

import (
	"time"

	"seatcast/seatmap"
)

// holder is what was heard of who holds a seat. A snapshot does not tell: of a
// seat it shows as held the zero value is known.
type holder struct {
	ends time.Duration // by sinceBegan
	tag  seatmap.Tag
}

// began is the zero of this process's own clock, which nobody sets: when a hold
// ends is counted from when it was heard of, however wrong the time of day.
var began = time.Now()

func sinceBegan(t time.Time) time.Duration { return t.Sub(began) }

// holders are those of every seat, by index.
type holders []holder

func newHolders(m seatmap.Map) holders { return make(holders, 4*len(m)) }

// hear notes who holds the seats of a change that was heard then. A message may
// be late, so a hold is believed to last longer than it does by that much. Who
// held a seat when it was sold is kept: it may be the buyer who asks again.
func (hs holders) hear(c *seatmap.Change, heard time.Time) {
	var of holder
	if c.Until > 0 && c.Tag != "" {
		of = holder{sinceBegan(heard) + time.Duration(c.Until-c.At)*time.Millisecond, seatmap.TagOf(c.Tag)}
	}
	hs.set(c.Reserved, of)
	hs.set(c.Released, holder{})
	hs.set(c.Closed, holder{})
}

func (hs holders) set(seats []int, of holder) {
	for _, i := range seats {
		if i >= 0 && i < len(hs) {
			hs[i] = of
		}
	}
}

// known is what the projection says of a seat now.
func (p *projection) known(i int, now time.Time) seatmap.Known {
	k := seatmap.Known{Status: p.Map.At(i)}
	if i >= 0 && i < len(p.holders) {
		k.Tag = p.holders[i].tag
		k.Left = p.holders[i].ends - sinceBegan(now)
	}
	return k
}

// Known appends to known what this node has heard of each of the seats. All of
// it is as Redis was age ago, or newer: since then a change may have been lost.
// It returns false for an event that is not followed, or not yet.
func (f *Feed) Known(event string, seats []int, known []seatmap.Known) (all []seatmap.Known, age time.Duration, ok bool) {
	one := f.follower(event)
	if one == nil {
		return known, 0, false
	}
	now := time.Now()
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.sale == nil {
		return known, 0, false
	}
	for _, i := range seats {
		known = append(known, one.p.known(i, now))
	}
	return known, one.ageLocked(), true
}

// Map returns the newest map of a hot event that this node has heard of, and its
// number. It is shared by all who ask before the next change, and must not be
// written. It returns false for an event that is not followed, and while
// nothing says that Redis still is where the map is.
func (f *Feed) Map(event string) (m seatmap.Map, n int64, ok bool) {
	one := f.follower(event)
	if one == nil {
		return nil, 0, false
	}
	if _, _, loaded := one.position(); !loaded || !one.sure() {
		return nil, 0, false
	}
	v := one.view()
	return v.state.Map, v.state.N, true
}

func (f *Feed) follower(event string) *follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.followers[event]
}
