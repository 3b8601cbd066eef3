package live

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"seatcast/seatmap"
)

// projection is what one node knows of one event, and what it has not told yet.
// It reads no clock and does no I/O.
type projection struct {
	State
	heard   hearsay               // of who holds its seats
	early   map[int64]heardChange // changes that came before their time, by the number they follow
	pending merge                 // applied, not yet published
	recent  []seatmap.Change      // applied last, each following the one before; ends at N
	check   *State                // a snapshot to be compared with when its number is reached
	drifted bool                  // a comparison failed; the projection has been mended since
}

// heardChange is a change and when this node heard of it.
type heardChange struct {
	seatmap.Change
	at time.Time
}

// verdict is what became of a change.
type verdict int

const (
	applied verdict = iota // with any early ones that follow it
	known                  // not above what we have
	early                  // what lies between has not come; it waits
	forked                 // it follows a number below ours: ours is of a history that was lost
	resets                 // it says itself that numbers have forked
)

// maxEarly bounds the changes that wait for one that was lost.
const maxEarly = 1024

// maxRecent bounds the changes kept for those who ask what they missed: half a
// minute of a very hot sale.
const maxRecent = 1024

// take applies a change if it is next. followed counts the early ones whose
// time has come with it.
func (p *projection) take(c heardChange) (v verdict, followed int) {
	switch {
	case c.N <= p.N:
		return known, 0
	case c.Reset:
		return resets, 0
	case c.Prev < p.N:
		return forked, 0
	case c.Prev > p.N:
		if len(p.early) < maxEarly {
			p.early[c.Prev] = c
		}
		return early, 0
	}
	p.apply(&c)
	for {
		next, ok := p.early[p.N]
		if !ok {
			break
		}
		delete(p.early, p.N)
		p.apply(&next)
		followed++
	}
	p.forget()
	return applied, followed
}

func (p *projection) apply(c *heardChange) {
	c.Apply(p.Map)
	p.heard.hear(c)
	maps.Copy(p.Areas, c.Areas)
	p.N = c.N
	p.pending.add(&c.Change)
	p.remember(&c.Change)
	p.compare()
}

// remember never writes over what since has returned.
func (p *projection) remember(c *seatmap.Change) {
	if len(p.recent) == 2*maxRecent {
		p.recent = append(make([]seatmap.Change, 0, 2*maxRecent), p.recent[maxRecent:]...)
	}
	p.recent = append(p.recent, *c)
}

// since returns the changes after number n, if they are still known.
func (p *projection) since(n int64) (changes []seatmap.Change, ok bool) {
	if n == p.N {
		return nil, true
	}
	i, ok := slices.BinarySearchFunc(p.recent, n, func(c seatmap.Change, n int64) int { return cmp.Compare(c.Prev, n) })
	return p.recent[i:], ok
}

// forget drops early changes whose time is over.
func (p *projection) forget() {
	maps.DeleteFunc(p.early, func(_ int64, c heardChange) bool { return c.N <= p.N })
}

// expect has the projection compared with s when it is at the same number.
func (p *projection) expect(s *State) {
	p.check = s
	p.compare()
}

func (p *projection) compare() {
	if p.check == nil || p.check.N > p.N {
		return
	}
	if p.check.N == p.N && !p.check.same(&p.State) {
		p.drifted = true
		p.State, p.recent = p.check.clone(), nil
		p.heard.forget(p.Map)
	}
	p.check = nil
}

// jump moves the projection to a newer state whose changes are not known, only
// that none happened before oldest.
func (p *projection) jump(to State, at, oldest int64) {
	p.pending.jump(&p.State, &to, at, oldest)
	p.State = to
	p.heard.forget(to.Map)
	p.check, p.recent = nil, nil
	p.forget()
}

// restart forgets everything for s, but who has ever asked.
func (p *projection) restart(s State) {
	*p = projection{State: s, early: p.early, heard: hearsay{tags: p.heard.tags}}
	p.heard.forget(s.Map)
	if p.early == nil {
		p.early = make(map[int64]heardChange)
	}
	p.forget()
}
