package waitingroom

import (
	"math"
	"sync"
	"time"
)

// Step is a part of a sale that is measured.
type Step int

// Steps of a sale.
const (
	Holding Step = iota // seats: take, swap, extend
	Paying              // to begin a payment, and to confirm
)

// Outcome is how a call ended, as far as it says how the sale goes.
type Outcome int

// Outcomes of a call.
const (
	Answered Outcome = iota
	Failed           // for a reason of ours
	Refused          // with good reason: it says nothing
)

// Has says whether an event has a waiting room, as far as is known here.
func (r *Rooms) Has(event string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.rooms[event] != nil
}

// Began notes that a call of a sale is being answered, and done how it ended. Of an
// event without a waiting room nothing is noted.
func (r *Rooms) Began(event string, step Step) (done func(Outcome)) {
	r.mu.RLock()
	room := r.rooms[event]
	r.mu.RUnlock()
	if room == nil {
		return func(Outcome) {}
	}
	m, limit := &r.hall(room).meters[step], room.Terms.Slow.of(step)
	id := m.begin(time.Now())
	return func(o Outcome) { m.end(id, o, limit, time.Now()) }
}

func (s Slow) of(step Step) time.Duration {
	if step == Paying {
		return s.Checkout
	}
	return s.Hold
}

// remembered is for how many seconds a call is.
const remembered = 4

// meter measures one step. The zero value works.
type meter struct {
	mu      sync.Mutex
	last    int64 // who began last
	running map[int64]time.Time
	seconds [remembered]second // by their number, of which the last digits say where
}

// second is what ended within one.
type second struct {
	number int64
	figures
	took took
}

// took counts calls by how long they took.
type took [64]int

// add counts a call at a place that rises with the fourth root of two: the last is
// for those of a minute and more.
func (t *took) add(d time.Duration) {
	at := int(4 * math.Log2(1+float64(max(0, d))/float64(time.Millisecond)))
	t[min(at, len(t)-1)]++
}

// p99 is what 99 of a hundred took at most, in ms; at most a fifth too much.
func (t *took) p99() int64 {
	all := 0
	for _, n := range t {
		all += n
	}
	for at, slower := len(t)-1, 0; at >= 0; at-- {
		if slower += t[at]; 100*slower > all {
			return int64(math.Ceil(math.Exp2(float64(at+1)/4) - 1))
		}
	}
	return 0
}

// count adds a call that took so long.
func (f *figures) count(d, limit time.Duration) {
	f.Calls++
	if limit == 0 {
		return
	}
	if d > limit {
		f.Over++
	}
	if d > limit/2 {
		f.Half++
	}
}

func (m *meter) begin(now time.Time) (id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == nil {
		m.running = make(map[int64]time.Time)
	}
	m.last++
	m.running[m.last] = now
	return m.last
}

func (m *meter) end(id int64, o Outcome, limit time.Duration, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := now.Sub(m.running[id])
	delete(m.running, id)
	if o == Refused {
		return
	}
	s := &m.seconds[now.Unix()%remembered]
	if s.number != now.Unix() {
		*s = second{number: now.Unix()}
	}
	s.count(d, limit)
	s.took.add(d)
	if o == Failed {
		s.Failed++
	}
}

// figures are those of the last seconds. A call that has not ended counts once it
// takes longer than half the limit: of what hangs one hears at once.
func (m *meter) figures(limit time.Duration, now time.Time) (f figures) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var t took
	for n := range m.seconds {
		s := &m.seconds[n]
		if s.number <= now.Unix()-remembered {
			continue
		}
		f = f.and(s.figures)
		for at, n := range s.took {
			t[at] += n
		}
	}
	for _, begun := range m.running {
		if d := now.Sub(begun); limit > 0 && d > limit/2 {
			f.count(d, limit)
			t.add(d)
		}
	}
	f.P99 = t.p99()
	return f
}
