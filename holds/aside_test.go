package holds_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"seatcast/holds"
	"seatcast/seatmap"
)

func upTo(n int) []int {
	seats := make([]int, n)
	for i := range seats {
		seats[i] = i
	}
	return seats
}

func TestSeatsAreSetAsideAllOrNoneHoweverMany(t *testing.T) {
	h := setup(t, 2*holds.MaxSeats+500)
	all := upTo(2*holds.MaxSeats + 500)
	h.takes("ann", 7)
	h.takes("bob", holds.MaxSeats, 2*holds.MaxSeats+1)

	baskets, gone, err := h.store.SetAside(t.Context(), h.event, all, time.Minute)
	h.must(err)
	if want := []int{7, holds.MaxSeats, 2*holds.MaxSeats + 1}; len(baskets) > 0 || !slices.Equal(gone, want) {
		t.Errorf("%d baskets and %v gone; want none, and %v", len(baskets), gone, want)
	}
	m, _, err := h.store.Shown(t.Context(), h.event)
	h.must(err)
	for _, i := range all {
		if held := i == 7 || i == holds.MaxSeats || i == 2*holds.MaxSeats+1; (m.At(i) == seatmap.Held) != held {
			t.Fatalf("seat %d is shown %v", i, m.At(i))
		}
	}

	free := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return slices.Contains(gone, i) })
	baskets, gone, err = h.store.SetAside(t.Context(), h.event, free, time.Minute)
	h.must(err)
	if len(baskets) != 3 || len(gone) > 0 {
		t.Fatalf("%d baskets, %v gone", len(baskets), gone)
	}
	var taken *holds.TakenError
	if _, err := h.store.Take(t.Context(), h.asks("eve", 0, 2499)); !errors.As(err, &taken) {
		t.Errorf("seats set aside are given: %v", err)
	}
	h.must(h.store.GiveBack(t.Context(), h.event, baskets))
	h.takes("eve", 0, 2499)
	h.must(h.store.GiveBack(t.Context(), h.event, baskets)) // again: nothing of it is eve's
	h.must(h.store.GiveBack(t.Context(), h.event, []string{"never-was"}))
	if _, err := h.store.Take(t.Context(), h.asks("bob2", 0)); !errors.As(err, &taken) {
		t.Errorf("what was given back twice took another's seat along: %v", err)
	}
	h.sound()
}

func TestSeatsSetAsideComeBackByThemselves(t *testing.T) {
	h := setup(t, 10)
	_, gone, err := h.store.SetAside(t.Context(), h.event, upTo(10), 50*time.Millisecond)
	h.must(err)
	if len(gone) > 0 {
		t.Fatal(gone)
	}
	h.eventually("they can be held", func() bool {
		_, err := h.store.Take(t.Context(), h.asks("ann", 3))
		return err == nil
	})
}

func TestWhatIsSetAsideIsNobodysAndLastsNoLongerWithAllHolds(t *testing.T) {
	h := setup(t, 10)
	h.takes("ann", 1)
	_, _, err := h.store.SetAside(t.Context(), h.event, []int{3, 4}, time.Minute)
	h.must(err)
	ends := h.ends(3)
	holding, err := h.store.Holding(t.Context(), h.event, []int{1, 3, 4})
	h.must(err)
	if len(holding) != 1 || holding[1].Token != "token-ann" {
		t.Errorf("seats are held by %+v", holding)
	}
	done, err := h.store.ShiftAll(t.Context(), h.event, "op", time.Hour, &books{})
	h.must(err)
	if done != (holds.Shift{Moved: 1}) || !h.ends(3).Equal(ends) {
		t.Errorf("extended are %+v; what was set aside ends %v, and then %v", done, ends, h.ends(3))
	}
}

// Whoever set them aside may have the seats locked elsewhere all the while.
func TestGivingBackDoesNotAskASilentRedisForEveryBasket(t *testing.T) {
	h := private(t, 10)
	baskets := make([]string, 20)
	for n := range baskets {
		baskets[n] = fmt.Sprintf("aside-%d", n)
	}
	const silent = 8 * time.Second
	h.must(h.rdb.Do(t.Context(), "CLIENT", "PAUSE", silent.Milliseconds(), "ALL").Err())
	began := time.Now()
	if err := h.store.GiveBack(t.Context(), h.event, baskets); !errors.Is(err, seatmap.ErrUnavailable) || time.Since(began) > silent-time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestOfManyWhoSetSeatsAsideAndShoppersOneHasEachSeat(t *testing.T) {
	h := setup(t, 100)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for n := range 6 {
		wg.Go(func() {
			baskets, gone, err := h.store.SetAside(t.Context(), h.event, upTo(100), time.Minute)
			if err != nil {
				t.Error(err)
			}
			if len(baskets) > 0 && len(gone) == 0 {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
		wg.Go(func() {
			var taken *holds.TakenError
			_, err := h.store.Take(t.Context(), h.asks(fmt.Sprint("s", n), n))
			if err != nil && !errors.As(err, &taken) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	m, _, err := h.store.Shown(t.Context(), h.event)
	h.must(err)
	held := 0
	for i := range 100 {
		if m.At(i) == seatmap.Held {
			held++
		}
	}
	if won > 1 || (won == 1) != (held == 100) {
		t.Errorf("%d have all seats; %d seats are held", won, held)
	}
}

func TestAResetOfAnEventIsNumberedAboveAllAndKeepsHolds(t *testing.T) {
	h := setup(t, 8)
	h.takes("ann", 1)
	h.mu.Lock()
	h.truth.Seats, h.truth.Closed = 12, []int{3} // another chart: longer, and without a seat
	h.mu.Unlock()
	before := h.last()
	h.must(h.store.Reset(t.Context(), h.event))
	m, _, err := h.store.Shown(t.Context(), h.event)
	h.must(err)
	if len(m) != 3 || m.At(1) != seatmap.Held || m.At(3) != seatmap.Unavailable || m.At(11) != seatmap.Available {
		t.Errorf("the map is %v", m)
	}
	first := h.last()
	if first.N <= before.N || !first.Reset {
		t.Errorf("%+v follows %+v", first, before)
	}
	h.must(h.store.Reset(t.Context(), h.event))
	if second := h.last(); second.N <= first.N || !second.Reset {
		t.Errorf("%+v follows %+v", second, first)
	}
	h.sound()
}

func (h *house) last() seatmap.Change {
	h.Helper()
	log := h.log()
	if len(log) == 0 {
		h.Fatal("nothing is logged")
	}
	return log[len(log)-1]
}
