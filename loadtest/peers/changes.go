package peers

import (
	"encoding/json"
	"fmt"
	"time"

	"seatcast/loadtest/reader"
	"seatcast/seatmap"
)

// Changes is what is published: change 0 holds a block of seats, change 1 gives
// it back, change 2 holds the next block, and so on around the house. So seats
// never run out and every change is of the same size.
type Changes struct {
	blocks [][]int
	seats  *seatmap.Chart
}

// NewChanges returns changes of so many seats each of a chart.
func NewChanges(chart *seatmap.Chart, size int) (Changes, error) {
	c := Changes{seats: chart}
	var block []int
	chart.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) {
		if s.Accessible || s.Companion {
			return // not for everybody to hold
		}
		if block = append(block, s.I); len(block) == size {
			c.blocks, block = append(c.blocks, block), nil
		}
	})
	if len(c.blocks) == 0 {
		return c, fmt.Errorf("the house has no %d seats", size)
	}
	return c, nil
}

// At is what change i does.
func (c Changes) At(i int) (seats []int, released bool) {
	return c.blocks[i/2%len(c.blocks)], i%2 == 1
}

// Plan is when so many changes from first on are due, and how a reader knows
// them; the first warm of them are not measured.
func (c Changes) Plan(s Server, first, count, warm int, start time.Time, rate float64) reader.Plan {
	var p reader.Plan
	for i := range count {
		seats, released := c.At(first + i)
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		p.Changes = append(p.Changes, reader.Change{N: s.N(first + i), Seat: seats[0], Released: released, Due: due.UnixNano(), Warm: i < warm})
	}
	return p
}

// firstNumber has as many digits as numbers of the house.
const firstNumber = 1_700_000_000_000_001

// Delta is change i as a frame of the house tells it.
func (c Changes) Delta(i int) []byte {
	seats, released := c.At(i)
	d := seatmap.Delta{N: firstNumber + int64(i), Prev: firstNumber + int64(i) - 1, At: firstNumber / 1000,
		Reserved: []int{}, Released: []int{}, Booked: []int{}, Closed: []int{}, Areas: map[string]int{}}
	if released {
		d.Released = seats
	} else {
		d.Reserved = seats
	}
	b, _ := json.Marshal(d) // numbers always marshal
	return b
}

// numbered is the N of servers that are sent Deltas.
type numbered struct{}

func (numbered) N(i int) int64 { return firstNumber + int64(i) }

// tickets are the ids of seats at the API.
func (c Changes) tickets() map[int]string {
	ids := make(map[int]string, c.seats.Seats)
	c.seats.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { ids[s.I] = s.TicketID })
	return ids
}
