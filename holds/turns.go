package holds

import (
	"context"
	"sync"
	"time"
)

// turns has one request for a seat at a time ask Redis. When a hold ends, or a sale
// opens, everybody asks for the same seat before anybody is answered: those who wait
// for the first answer have theirs from memory then.
type turns struct {
	mu    sync.Mutex
	asked map[seatOf]chan struct{} // closed with the answer
}

// turnLasts is how long somebody waits for an answer of Redis to somebody else.
const turnLasts = 500 * time.Millisecond

// take returns what ends the turn that r's seats have from now on, or, if somebody
// has asked for one of them, what is closed when that is answered. However insists
// has a turn at once, beside others.
func (t *turns) take(r TakeRequest, insists bool) (end func(), busy <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == nil {
		t.asked = make(map[seatOf]chan struct{})
	}
	mine, answered := make([]seatOf, 0, len(r.Seats)), make(chan struct{})
	for _, i := range r.Seats {
		seat := seatOf{r.Event, i}
		others, is := t.asked[seat]
		switch {
		case !is:
			mine = append(mine, seat)
		case !insists:
			return nil, others
		}
	}
	for _, seat := range mine {
		t.asked[seat] = answered
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, seat := range mine {
			delete(t.asked, seat)
		}
		close(answered)
	}, nil
}

// await waits for somebody else's answer, but not for long.
func await(ctx context.Context, busy <-chan struct{}) {
	timer := time.NewTimer(turnLasts)
	defer timer.Stop()
	select {
	case <-busy:
	case <-timer.C:
	case <-ctx.Done():
	}
}
