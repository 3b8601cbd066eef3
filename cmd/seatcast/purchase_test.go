package main

import (
	"fmt"
	"time"
)

// purchase is one booking as the model knows it.
type purchase struct {
	user, key, id string
	seats         []int // ascending
	places        int   // in the pit
	money         int64

	state string    // held, released, sold or lost; a held one may have lapsed
	until time.Time // when a held one lapses, grace included
	limit time.Time // what it is never extended beyond
	over  bool      // it was seen to have lapsed

	// loose: it was paid for and declined, and in between a worker may have
	// found it being paid and extended it for longer than its owner was told.
	loose bool

	paid         bool // money was asked for, so it has a row
	payKey, card string
	attempt      string
}

func (o *purchase) String() string {
	return fmt.Sprintf("%s of %s, seats %v and %d places, %s until %s (over: %v, paid: %v)",
		o.id, o.user, o.seats, o.places, o.state, o.until.Format("05.000"), o.over, o.paid)
}

// truth is yes, no, or not to be known: when exactly a store looked at its
// clock cannot be seen from outside.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// slack is how far the clock of a store may seem to be from ours.
const slack = 10 * time.Millisecond

// span is a call: the store looked at some time in it.
type span struct{ from, to time.Time }

// live says whether the purchase was held when a store looked.
func (o *purchase) live(when span) truth {
	switch {
	case o == nil || o.state != "held" || o.over:
		return no
	case when.to.Before(o.until.Add(-slack)):
		return yes
	case !when.from.After(o.until.Add(slack)), o.loose && !when.from.After(o.limit.Add(slack)):
		return maybe
	}
	return no
}

// can says whether the purchase can end then, its owner not having extended it.
func (o *purchase) can(end time.Time) bool {
	return end.Equal(o.until) || o.loose && end.After(o.until) && !end.After(o.limit)
}

// extended is between which moments the purchase's end is after a store has
// extended it by so long.
func (o *purchase) extended(by time.Duration, when span) (least, most time.Time) {
	end := func(at time.Time) time.Time {
		at = at.Add(by)
		if at.Before(o.until) {
			at = o.until
		}
		if at.After(o.limit) {
			at = o.limit
		}
		return at
	}
	return end(when.from.Add(-slack)), end(when.to.Add(slack))
}

func (o *purchase) size() int { return len(o.seats) + o.places }

// books are all bookings there were, and who has what.
type books struct {
	has     map[int]*purchase // who took a seat last
	all     []*purchase
	pit     int            // places left
	tickets map[string]int // by account
}

// taken sorts seats by whether somebody has them.
func (b *books) taken(seats []int, when span) (surely, perhaps map[int]bool) {
	surely, perhaps = map[int]bool{}, map[int]bool{}
	for _, i := range seats {
		o := b.has[i]
		switch live := o.live(when); {
		case live == yes, o != nil && o.state == "sold":
			surely[i] = true
		case live == maybe:
			perhaps[i] = true
		}
	}
	return surely, perhaps
}

// holding counts the seats an account holds: surely, and at most.
func (b *books) holding(user string, when span) (least, most int) {
	for i, o := range b.has {
		if o.user != user {
			continue
		}
		surely, perhaps := b.taken([]int{i}, when)
		if o.state != "sold" {
			least, most = least+len(surely), most+len(surely)+len(perhaps)
		}
	}
	return least, most
}

func (b *books) take(o *purchase) {
	for _, i := range o.seats {
		if before := b.has[i]; before != nil {
			before.over = true // it had lapsed, or its seat could not have been taken
		}
		b.has[i] = o
	}
	b.all = append(b.all, o)
}

func (b *books) sell(o *purchase) {
	o.state = "sold"
	b.pit -= o.places
	b.tickets[o.user] += o.size()
}

// recent is one of the latest bookings, the newest for 0; nil before the first.
func (b *books) recent(back int) *purchase {
	const alive = 16 // more than lapse at the same time
	if len(b.all) == 0 {
		return nil
	}
	return b.all[len(b.all)-1-back%min(len(b.all), alive)]
}
