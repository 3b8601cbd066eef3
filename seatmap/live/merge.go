package live

import (
	"maps"
	"slices"

	"seatcast/seatmap"
)

// merge gathers changes into one delta: the last state of each seat wins.
type merge struct {
	prev    int64
	at      int64 // when the last change happened
	oldest  int64 // when the first did
	numbers []int64
	seats   map[int]seatmap.Status
	areas   map[string]int
}

func (m *merge) empty() bool { return len(m.numbers) == 0 }

func (m *merge) begin(prev, oldest int64) {
	if m.empty() {
		*m = merge{prev: prev, oldest: oldest, seats: make(map[int]seatmap.Status), areas: make(map[string]int)}
	}
}

func (m *merge) add(c *seatmap.Change) {
	m.begin(c.Prev, c.At)
	m.numbers = append(m.numbers, c.N)
	m.at, m.oldest = max(m.at, c.At), min(m.oldest, c.At)
	for _, i := range c.Reserved {
		m.seats[i] = seatmap.Held
	}
	for _, i := range c.Released {
		m.seats[i] = seatmap.Available
	}
	for _, i := range c.Booked {
		m.seats[i] = seatmap.Sold
	}
	for _, i := range c.Closed {
		m.seats[i] = seatmap.Unavailable
	}
	maps.Copy(m.areas, c.Areas)
}

// jump adds the difference between two states whose changes between are not
// known.
func (m *merge) jump(from, to *State, at, oldest int64) {
	m.begin(from.N, oldest)
	m.numbers = append(m.numbers, to.N)
	m.at, m.oldest = max(m.at, at), min(m.oldest, oldest)
	for i := range 4 * max(len(from.Map), len(to.Map)) {
		if s := to.Map.At(i); s != from.Map.At(i) {
			m.seats[i] = s
		}
	}
	maps.Copy(m.areas, to.Areas)
}

// delta is what was gathered, lists in ascending order.
func (m *merge) delta() seatmap.Delta {
	d := seatmap.Delta{N: m.numbers[len(m.numbers)-1], Prev: m.prev, At: m.at, Areas: m.areas,
		Reserved: []int{}, Released: []int{}, Booked: []int{}, Closed: []int{}}
	lists := [4]*[]int{seatmap.Held: &d.Reserved, seatmap.Available: &d.Released, seatmap.Sold: &d.Booked, seatmap.Unavailable: &d.Closed}
	for _, i := range slices.Sorted(maps.Keys(m.seats)) {
		list := lists[m.seats[i]]
		*list = append(*list, i)
	}
	return d
}
