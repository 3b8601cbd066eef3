package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// throng are shoppers beside the model, on seats of their own for which they
// contend. What they are answered depends on each other, so it is only held
// against what may be answered at all.
type throng struct {
	*house
	tally
	api *node

	gate sync.RWMutex // held by who acts; locked, nobody does
	all  sync.WaitGroup
	home atomic.Bool // the test is over: they go home
}

const throngPeople = 3

// start has them do crowdOps operations, or fewer when the test ends before.
func (c *throng) start(seed int) {
	c.t.Cleanup(func() {
		c.home.Store(true)
		c.wait()
	})
	for k := range throngPeople {
		p := &one{throng: c, rng: rand.New(rand.NewPCG(uint64(seed), uint64(k))), ids: c.seats(c.chart.Seats)[modelSeats:], me: k}
		c.all.Go(func() {
			for i := 0; i < crowdOps/throngPeople && !c.home.Load(); i++ {
				c.gate.RLock()
				p.act(i)
				c.gate.RUnlock()
			}
		})
	}
}

// pause runs f while nobody of them does anything.
func (c *throng) pause(f func()) {
	c.gate.Lock()
	defer c.gate.Unlock()
	f()
}

func (c *throng) wait() { c.all.Wait() }

// one is one of them.
type one struct {
	*throng
	rng   *rand.Rand
	ids   []string
	me    int
	taken []string // bookings, the latest last
	by    []string // whose
}

// may says what an operation may be answered.
var may = map[string][]string{
	"take":    {"201 ", "409 seats_taken", "409 area_full", "429 too_many_held", "403 account_limit"},
	"extend":  {"200 ", "409 hold_expired", "409 booking_final"},
	"release": {"204 ", "409 booking_final"},
	"pay":     {"201 ", "409 hold_expired", "409 booking_final", "409 seats_lost"},
	"confirm": {"200 ", "409 hold_expired", "409 seats_lost"},
	"read":    {"200 "},
	"foreign": {"403 not_your_booking"},
}

func (p *one) act(i int) {
	kind, a := "take", answer{}
	if k := len(p.taken) - 1 - p.rng.IntN(4); k < 0 || p.rng.IntN(3) == 0 {
		a = p.take(i)
	} else {
		kind, a = p.goOn(p.shopper(p.api, p.by[k]), p.taken[k])
	}
	p.note(kind, a)
	if got := fmt.Sprint(a.status, " ", a.Code); !slices.Contains(may[kind], got) {
		p.t.Errorf("somebody's %s was answered %d %s", kind, a.status, a.raw)
	}
}

// take asks for some seats of a part of the house that moves on, or for the lawn.
func (p *one) take(i int) answer {
	user := fmt.Sprint("throng ", p.me, " ", i/60)
	var areas []area
	if p.rng.IntN(6) == 0 {
		areas = []area{{"lawn", 1 + p.rng.IntN(2)}}
	}
	from := i * (len(p.ids) - 30) / (crowdOps / throngPeople)
	seats := make([]string, 1+p.rng.IntN(3))
	for k, pick := range p.rng.Perm(30)[:len(seats)] {
		seats[k] = p.ids[from+pick]
	}
	a := p.shopper(p.api, user).take(p.event, "", seats, areas...)
	if a.status == http.StatusCreated {
		p.taken, p.by = append(p.taken, a.BookingID), append(p.by, user)
	}
	return a
}

func (p *one) goOn(s shopper, booking string) (kind string, a answer) {
	cards := []string{goodCard, twiceCard, earlyCard, refusedCard, declinedCard}
	switch p.rng.IntN(8) {
	case 0, 1:
		return "extend", s.extend(booking)
	case 2:
		return "release", s.giveBack(booking)
	case 3, 4:
		return "pay", s.pay(booking, "", cards[p.rng.IntN(len(cards))])
	case 5:
		return "confirm", s.confirm(booking)
	case 6:
		return "foreign", p.shopper(p.api, "stranger").giveBack(booking)
	default:
		return "read", s.booking(booking)
	}
}
