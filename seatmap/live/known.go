package live

import (
	"encoding/json"
	"maps"
	"time"

	"seatcast/seatmap"
)

// began is the zero of this process's own clock, which nobody sets: when a hold
// ends is counted from when it was heard of, however wrong the time of day.
var began = time.Now()

func sinceBegan(t time.Time) time.Duration { return t.Sub(began) }

// hearsay is what the map does not show of those who hold its seats. A snapshot
// does not tell it: of the seats held then nothing is known.
type hearsay struct {
	ends  []time.Duration // by seat: when its hold is over, by sinceBegan; 0: not known
	ahead ahead
	tags  tags
	skew  time.Duration // of the clock of Redis: what to add for sinceBegan
	aimed time.Duration // when skew was last looked at; 0: never
}

// forget is for a map whose changes were not heard.
func (h *hearsay) forget(m seatmap.Map) {
	h.ends, h.ahead, h.aimed = make([]time.Duration, 4*len(m)), ahead{}, 0
}

// hear notes a change that has been applied.
func (h *hearsay) hear(c *heardChange) {
	ends := h.holds(c)
	for _, i := range c.Reserved {
		if i >= 0 && i < len(h.ends) {
			h.ends[i] = ends
		}
	}
	if c.N >= h.ahead.last {
		h.ahead = ahead{}
	}
}

// holds notes who holds the seats of a change, and returns until when; 0 when it
// does not say.
func (h *hearsay) holds(c *heardChange) time.Duration {
	if c.Until == 0 || c.Tag == "" {
		return 0
	}
	h.tags.add(seatmap.TagOf(c.Tag), c.at, c.at.Add(time.Duration(c.Until-c.At)*time.Millisecond))
	h.aim(sinceBegan(c.at), time.Duration(c.At)*time.Millisecond)
	return time.Duration(c.Until)*time.Millisecond + h.skew
}

// drift is how far the clocks may part from each other in a second.
const drift = 100 * time.Microsecond

// aim learns the clock of Redis from a change of its time at that was heard now.
// Messages are late, never early, so the earliest of late tells it best.
func (h *hearsay) aim(now, at time.Duration) {
	h.skew += time.Duration((now - h.aimed).Seconds() * float64(drift))
	if h.aimed == 0 || now-at < h.skew {
		h.skew = now - at
	}
	h.aimed = now
}

// ahead is what this very process has changed before the projection has come to
// it: who is told that he holds a seat, or that it is free, and asks again finds
// it so.
type ahead struct {
	last  int64 // the highest number of them
	seats map[int]aheadSeat
}

type aheadSeat struct {
	n      int64
	status seatmap.Status
	ends   time.Duration
}

// tell notes a change of this process, before it is heard.
func (p *projection) tell(c *heardChange) {
	if c.N <= p.N || c.Reset {
		return
	}
	ends := p.heard.holds(c)
	a := &p.heard.ahead
	if a.seats == nil {
		a.seats = make(map[int]aheadSeat)
	}
	a.last = max(a.last, c.N)
	c.Each(func(i int, to seatmap.Status) {
		if a.seats[i].n < c.N {
			a.seats[i] = aheadSeat{c.N, to, ends}
		}
	})
}

// seat is what is known of one now.
func (p *projection) seat(i int, now time.Time) seatmap.KnownSeat {
	if i < 0 || i >= len(p.heard.ends) {
		return seatmap.KnownSeat{Status: seatmap.Available} // of a chart not read yet
	}
	status, ends := p.Map.At(i), p.heard.ends[i]
	if own := p.heard.ahead.seats[i]; own.n > p.N {
		status, ends = own.status, own.ends
	}
	return seatmap.KnownSeat{Status: status, Left: ends - sinceBegan(now)}
}

// tags are those of the tokens that have held anything for the last span of
// time, and for at most two: as many as Redis keeps baskets, or twice that. One
// whose hold ends so late that its basket outlives the span is kept as long as that.
type tags struct {
	span       time.Duration
	turned     time.Time
	young, old map[seatmap.Tag]struct{}
	long       map[seatmap.Tag]time.Time // until when its basket is kept
}

// remembered is how long a basket outlives its hold, and a little more.
const remembered = 11 * time.Minute

// last sets the span by how long a token of the sale is of interest.
func (t *tags) last(sale *seatmap.Sale) { t.span = sale.Terms.Cap + sale.Terms.Grace + remembered }

// add notes one whose hold ends then.
func (t *tags) add(tag seatmap.Tag, now, ends time.Time) {
	if t.young == nil || now.Sub(t.turned) > t.span {
		t.old, t.young, t.turned = t.young, make(map[seatmap.Tag]struct{}), now
		maps.DeleteFunc(t.long, func(_ seatmap.Tag, until time.Time) bool { return now.After(until) })
	}
	t.young[tag] = struct{}{}
	if until := ends.Add(remembered); until.Sub(now) > t.span {
		if t.long == nil {
			t.long = make(map[seatmap.Tag]time.Time)
		}
		t.long[tag] = until
	}
}

func (t *tags) has(tag seatmap.Tag) bool {
	_, young := t.young[tag]
	_, old := t.old[tag]
	_, long := t.long[tag]
	return young || old || long
}

// Known returns what this node has heard of seats, in the moment it is asked,
// and of the token with this tag. It returns false for an event that is not
// followed, or not yet.
func (f *Feed) Known(event string, tag seatmap.Tag, seats []int) (k seatmap.Known, ok bool) {
	one := f.follower(event)
	if one == nil {
		return k, false
	}
	now := time.Now()
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.sale == nil {
		return k, false
	}
	k = seatmap.Known{Seats: make([]seatmap.KnownSeat, len(seats)), Holder: one.p.heard.tags.has(tag), Age: one.ageLocked()}
	for at, i := range seats {
		k.Seats[at] = one.p.seat(i, now)
	}
	return k, true
}

// Map returns the newest map of an event that this node has heard of. It is
// shared by all who ask before the next change, and must not be written. It
// returns false for an event that is not followed, and while nothing says that
// Redis still is where the map is.
func (f *Feed) Map(sale *seatmap.Sale) (seatmap.Map, bool) {
	one, sure := f.projected(sale)
	if !sure {
		return nil, false
	}
	return one.view().state.Map, true
}

// tell is for a change that this process has made.
func (f *Feed) tell(event string, change []byte) {
	one := f.follower(event)
	if one == nil {
		return
	}
	var c seatmap.Change
	if json.Unmarshal(change, &c) != nil {
		return // who hears it counts it
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.p.tell(&heardChange{c, time.Now()})
}

func (f *Feed) follower(event string) *follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.followers[event]
}
