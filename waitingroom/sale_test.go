package waitingroom_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"seatcast/waitingroom"
)

// fans are the kinds of people who wait, and what one of them does between two
// looks.
var fans = map[string]func(p *person){
	"patient":   func(*person) {},
	"refresher": func(p *person) { p.join(p.place) },
	"roamer":    func(p *person) { p.rooms = p.others[time.Now().Nanosecond()/1000%len(p.others)] },
	"sleeper": func(p *person) {
		if p.shown == 0 && !p.slept {
			p.slept = true
			time.Sleep(3 * time.Second) // through the turn
		}
	},
	"leaver": func(p *person) {
		if p.shown < 40 {
			p.gone = true
			p.must(p.rooms.Leave(p.Context(), p.event, p.user))
		}
	},
}

// person is one who waits.
type person struct {
	*box
	user   string
	rooms  *waitingroom.Rooms
	others []*waitingroom.Rooms
	place  string
	number int64
	have   int64 // number of the frame it has
	shown  int64 // how many are before it
	slept  bool
	gone   bool
}

func (p *person) join(place string) {
	h, err := p.rooms.Join(p.Context(), p.event, p.user, waitingroom.Brought{Place: place})
	switch {
	case err != nil:
		p.Errorf("%s: %v", p.user, err)
	case h.Number > 0:
		p.place, p.number = h.Place, h.Number
	}
}

// look works the place out from the frame, as a page does: one that is older than
// what it has, of another node, says nothing.
func (p *person) look(first bool) {
	n, f := p.frame(p.rooms)
	if n <= p.have {
		return
	}
	p.have = n
	shown := max(0, p.number-f.Serving)
	if !first && shown > p.shown {
		p.Errorf("the place of %s rose from %d to %d", p.user, p.shown, shown)
	}
	p.shown = shown
}

func (b *box) frame(rooms *waitingroom.Rooms) (n int64, f frame) {
	n, text, err := rooms.Frame(b.Context(), b.event)
	if err == nil {
		err = parse(text, &f)
	}
	if err != nil {
		b.Error(err)
	}
	return n, f
}

// A sale in small: two nodes, one of which ends, and a Redis that loses everything
// in the middle of it.
func TestNobodysPlaceRisesThroughAWholeSale(t *testing.T) {
	b := newBox(t)
	b.put(plan(3000, 5, 30))
	other := b.node()
	nodes := []*waitingroom.Rooms{b.rooms, other}
	var all []*person
	for kind := range fans {
		for n := range 24 {
			p := &person{box: b, user: fmt.Sprint(kind, "-", n), rooms: nodes[n%2], others: nodes}
			p.join("")
			p.look(true)
			all = append(all, p)
		}
	}
	b.run(b.rooms)
	stop := b.run(other)
	var wg sync.WaitGroup
	var in, out sync.Map
	for n, p := range all {
		kind := fans[p.user[:len(p.user)-len(fmt.Sprint("-", n%24))]]
		wg.Go(func() {
			for begun := time.Now(); !p.gone && time.Since(begun) < 45*time.Second; time.Sleep(50 * time.Millisecond) {
				p.look(false)
				kind(p)
				if p.gone {
					out.Store(p.user, true)
					return
				}
				turn, _, err := p.rooms.Claim(t.Context(), p.event, p.user, p.place)
				if err != nil {
					t.Errorf("%s: %v", p.user, err)
				}
				if !turn.Inside.IsZero() {
					in.Store(p.user, true)
					time.Sleep(100 * time.Millisecond) // shops
					b.must(p.rooms.Bought(t.Context(), p.event, p.user))
					return
				}
			}
			t.Errorf("%s, who has place %d, is not let in", p.user, p.number)
		})
	}
	b.until("some are called", func(f frame) bool { return f.Serving >= 30 })
	stop() // its rooms answer all the same, as a node does that drains
	eventually(t, "how far it has called is kept", func() bool { return b.count(`SELECT serving FROM rooms`) >= 30 })
	b.must(b.rdb.FlushAll(t.Context()).Err())
	wg.Wait()
	count := func(m *sync.Map) (n int) {
		m.Range(func(any, any) bool { n++; return true })
		return n
	}
	if in, out := count(&in), count(&out); in+out != len(all) || out == 0 {
		t.Errorf("of %d, %d were let in and %d left", len(all), in, out)
	}
}
