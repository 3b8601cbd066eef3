package holds_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/seatmap"
)

func TestOfACrowdThatWantsAFreeSeatOneAsksRedis(t *testing.T) {
	t.Parallel()
	const crowd = 60
	var looked atomic.Int64
	all := make(chan struct{}) // have found it free
	var heard func() int
	g := newGated(t, hearsay(func(_ seatmap.Tag, _ []int) (seatmap.Known, bool) {
		seat := seatmap.KnownSeat{}
		if heard() > 0 {
			seat = heldHeard(time.Minute)
		}
		if looked.Add(1) == crowd {
			close(all)
		}
		<-all
		return seatmap.Known{Seats: []seatmap.KnownSeat{seat}}, true
	}), 0)
	before := len(g.heard())
	heard = func() int { return len(g.heard()) - before }
	statuses := make(chan int, crowd)
	var wg sync.WaitGroup
	for range crowd {
		wg.Go(func() { statuses <- g.take("ann", "", `{"ticketIds":["n-a-3"]}`).Status })
	}
	wg.Wait()
	close(statuses)
	got := map[int]int{}
	for status := range statuses {
		got[status]++
	}
	if got[http.StatusCreated] != 1 || got[http.StatusConflict] != crowd-1 {
		t.Errorf("answered %v", got)
	}
	if n := g.value("holds_gate_total", "passed"); n != 1 {
		t.Errorf("Redis was asked %v times for one seat by %d", n, crowd)
	}
}
