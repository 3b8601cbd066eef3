package waitingroom_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/waitingroom"
)

// arrival is a join: when it was sent, when it was answered, and the place.
type arrival struct {
	sent, answered time.Time
	number         int64
}

// Of two who do not come at the same moment the first is before the second,
// whichever nodes they come to.
func TestAfterTheOpeningPlacesAreInTheOrderOfArrival(t *testing.T) {
	h := newHall(t, selling(0, 1, 10))
	const nodes, each = 8, 250
	var (
		all   [nodes][each]arrival
		crowd sync.WaitGroup
	)
	for node := range nodes {
		crowd.Go(func() {
			rdb := redis.NewClient(h.rdb.Options())
			defer rdb.Close()
			line := waitingroom.NewLine(rdb)
			for k := range each {
				sent := time.Now()
				j, err := line.Join(t.Context(), h.event, fan(node*each+k), waitingroom.Known{})
				if err != nil {
					t.Error(err)
				}
				all[node][k] = arrival{sent, time.Now(), j.Number}
			}
		})
	}
	crowd.Wait()
	var came []arrival
	for node := range nodes {
		came = append(came, all[node][:]...)
	}
	if number, second := overtaken(came); second != 0 {
		t.Errorf("place %d was given, and %d to somebody who came after that", number, second)
	}
	numbers := make([]int64, 0, len(came))
	for _, a := range came {
		numbers = append(numbers, a.number)
	}
	slices.Sort(numbers)
	for n, number := range numbers {
		if number != int64(n+1) {
			t.Fatalf("of %d places number %d is %d", len(numbers), n+1, number)
		}
	}
	slices.Reverse(numbers)
	for n := range came {
		came[n].number = numbers[n]
	}
	if _, second := overtaken(came); second == 0 {
		t.Error("places in the reverse order pass")
	}
}

// overtaken finds somebody who came after another had been answered, and has a
// place before theirs.
func overtaken(came []arrival) (number, second int64) {
	bySent := slices.SortedFunc(slices.Values(came), func(a, b arrival) int { return a.sent.Compare(b.sent) })
	byAnswer := slices.SortedFunc(slices.Values(came), func(a, b arrival) int { return a.answered.Compare(b.answered) })
	var highest int64
	for _, late := range bySent {
		for len(byAnswer) > 0 && byAnswer[0].answered.Before(late.sent) {
			highest = max(highest, byAnswer[0].number)
			byAnswer = byAnswer[1:]
		}
		if late.number < highest {
			return highest, late.number
		}
	}
	return 0, 0
}
