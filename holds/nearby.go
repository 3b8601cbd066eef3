package holds

import (
	"math/rand/v2"
	"sync"
	"time"

	"seatcast/seatmap"
)

// Alternatives are a courtesy of a refusal, and a refusal is what two hundred
// shoppers get for each seat: they are told to who asks for them, from memory
// only, and never for more than a twentieth of one core.

const (
	mostAlternatives = 3
	nearbyShare      = 20 // one part in so many of one core
)

// nearby keeps the finding of alternatives within its share: whoever comes
// while somebody is at it, or too soon after, is told none.
type nearby struct {
	mu   sync.Mutex
	next time.Time
}

// try runs f if that is within the share.
func (n *nearby) try(f func()) {
	if !n.mu.TryLock() {
		return
	}
	defer n.mu.Unlock()
	begun := time.Now()
	if begun.Before(n.next) {
		return
	}
	f()
	n.next = time.Now().Add(time.Since(begun) * (nearbyShare - 1))
}

// alternative is seats that can be asked for instead, as they stand.
type alternative struct {
	TicketIDs []string `json:"ticketIds"`
	Together  bool     `json:"together"`
}

// withAlternatives is the refusal of seats, with what is free near by.
func (a *API) withAlternatives(sale *seatmap.Sale, seats []int, taken *TakenError) error {
	told := seatsTaken(sale, taken)
	a.nearby.try(func() {
		m, ok := a.known(sale)
		if !ok {
			return
		}
		mark(m, taken.Seats, seatmap.Held)
		if found := near(sale, m, seats); len(found) > 0 {
			told.Extra = map[string]any{"alternatives": found}
		}
	})
	return told
}

// near finds as many seats as these, as many wheelchair spaces among them: of
// the same categories and sections, or else of the same categories.
func near(sale *seatmap.Sale, m seatmap.Map, seats []int) (found []alternative) {
	w := seatmap.Wish{Quantity: len(seats), Seed: rand.Uint64() | 1}
	for _, i := range seats {
		at, ok := sale.Index.At(i)
		if !ok {
			return nil
		}
		w.Categories, w.Sections = append(w.Categories, at.Seat.Category), append(w.Sections, at.Section.ID)
		if at.Seat.Accessible {
			w.Accessible++
		}
	}
	if found = sendable(sale, m, w); len(found) == 0 {
		w.Sections = nil
		found = sendable(sale, m, w)
	}
	return found
}

// sendable finds what fulfils a wish and can be asked for as a choice by hand,
// which is judged by the event's rule of orphans: a wish is not.
func sendable(sale *seatmap.Sale, m seatmap.Map, w seatmap.Wish) (found []alternative) {
	seating := sale.Index.Seating()
	choices, err := seating.Alternatives(m, sale.Prices, w, mostAlternatives)
	if err != nil {
		return nil
	}
	for _, c := range choices {
		if sale.Orphans == seatmap.OrphansRefuse && len(seating.Orphans(m, c.Seats)) > 0 {
			continue
		}
		found = append(found, alternative{TicketIDs: ticketIDs(sale, c.Seats), Together: c.Together})
	}
	return found
}
