package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

func (h *house) status(seat int) string {
	h.t.Helper()
	return ask[string](h, `SELECT status FROM seats WHERE event_id = $1 AND i = $2`, event, seat)
}

// statuses fails unless each seat is so.
func (h *house) statuses(want map[int]string) {
	h.t.Helper()
	for i, status := range want {
		if got := h.status(i); got != status {
			h.t.Errorf("seat %d is %s, not %s", i, got, status)
		}
	}
}

// told waits until Redis has been told everything.
func (h *house) told() {
	h.t.Helper()
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT count(*) FROM seats WHERE mirror_due`)
		return fmt.Sprintf("%d seats not told", n), n == 0
	})
}

func kill(seats ...int) checkout.Close {
	return checkout.Close{Seats: seats, Reason: "a pillar", By: "boss"}
}

func TestAKilledSeatIsClosedUntilItIsReleased(t *testing.T) {
	h := setup(t)
	a, err := h.desk.Close(t.Context(), event, kill(3, 4))
	must(t, err)
	if a.Seats != 2 || a.Changed != 2 || a.Closed != 2 {
		t.Errorf("it came to %+v", a)
	}
	h.statuses(map[int]string{2: "available", 3: "unavailable", 4: "unavailable"})
	if !h.holds.isClosed(3) || len(h.holds.asideNow()) != 0 {
		t.Errorf("the gate: closed %v, aside %v", h.holds.isClosed(3), h.holds.asideNow())
	}
	if r := h.pay(h.hold("ada", []int{3}, 0), "ada", sandbox.CardApprove); r.Code != "seats_lost" {
		t.Errorf("who pays for a killed seat is told %+v", r)
	}
	if a, err = h.desk.Close(t.Context(), event, kill(3, 4)); err != nil || a.Changed != 0 {
		t.Errorf("killed once more: %+v, %v", a, err)
	}
	a, err = h.desk.Reopen(t.Context(), event, []int{2, 3})
	must(t, err)
	if a.Opened != 1 || a.Changed != 1 {
		t.Errorf("release came to %+v", a)
	}
	h.statuses(map[int]string{2: "available", 3: "available", 4: "unavailable"})
	if h.holds.isClosed(3) {
		t.Error("the gate still has it closed")
	}
	h.sound()
}

// The reasons stand beside each other, so the order they come and go in does
// not matter: a seat is closed as long as one of them is left.
func TestASeatComesBackToWhatItsOtherReasonsSay(t *testing.T) {
	h := setup(t)
	at := time.Now().Add(time.Hour)
	_, err := h.desk.SetChannel(t.Context(), event, checkout.PutChannel{Name: "club", Timed: true, OpensAt: &at, Seats: []int{1, 2}})
	must(t, err)
	_, err = h.desk.Close(t.Context(), event, kill(1, 2))
	must(t, err)
	_, err = h.desk.Close(t.Context(), event, checkout.Close{Seats: []int{2}})
	must(t, err)
	_, err = h.desk.Reopen(t.Context(), event, []int{1})
	must(t, err)
	h.statuses(map[int]string{1: "unavailable", 2: "unavailable"}) // of a closed channel
	_, err = h.desk.OpenChannel(t.Context(), event, "club")
	must(t, err)
	h.statuses(map[int]string{1: "available", 2: "unavailable"}) // killed
	_, err = h.desk.Reopen(t.Context(), event, []int{2})
	must(t, err)
	h.statuses(map[int]string{1: "available", 2: "available"})
	_, err = h.desk.CloseChannel(t.Context(), event, "club", false)
	must(t, err)
	h.statuses(map[int]string{1: "unavailable", 2: "unavailable"})
	_, err = h.desk.DropChannel(t.Context(), event, "club")
	must(t, err)
	h.statuses(map[int]string{1: "available", 2: "available"})
}

// Whatever operators do in whatever order, the status of a seat is what its
// attributes say, and Redis is told.
func TestAnyOrderOfChangesLeavesStatusesThatFollow(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{0, 1}, 0), "ada", sandbox.CardApprove)
	h.run(h.desk.Run, h.sandbox.Run)
	h.quietens()
	for range 150 {
		seats := slices.Sorted(slices.Values(rand.Perm(8)[:1+rand.IntN(4)]))
		channel := []string{"club", "press"}[rand.IntN(2)]
		var at *time.Time
		if rand.IntN(2) == 0 {
			hence := time.Now().Add(time.Duration(rand.IntN(3)-1) * time.Hour)
			at = &hence
		}
		var err error
		switch rand.IntN(7) {
		case 0:
			_, err = h.desk.Close(t.Context(), event, kill(seats...))
		case 1:
			_, err = h.desk.Close(t.Context(), event, checkout.Close{Seats: seats})
		case 2:
			_, err = h.desk.Reopen(t.Context(), event, seats)
		case 3:
			_, err = h.desk.SetChannel(t.Context(), event, checkout.PutChannel{Name: channel, Timed: rand.IntN(2) == 0, OpensAt: at, Seats: seats})
		case 4:
			_, err = h.desk.OpenChannel(t.Context(), event, channel)
		case 5:
			_, err = h.desk.CloseChannel(t.Context(), event, channel, false)
		case 6:
			_, err = h.desk.DropChannel(t.Context(), event, channel)
		}
		var refused *checkout.SeatsError
		if err != nil && !errors.Is(err, checkout.ErrNoChannel) && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		wrong := ask[int](h, `SELECT count(*) FROM seats s LEFT JOIN channels c ON c.event_id = s.event_id AND c.name = s.channel
			WHERE s.channel <> '' AND (c.name IS NULL OR s.channel_closed = c.open)`)
		if wrong > 0 {
			t.Fatalf("%d seats do not follow their channel", wrong)
		}
	}
	h.told()
	for i := range 8 {
		if closed := h.status(i) == "unavailable"; h.holds.isClosed(i) != closed {
			t.Errorf("seat %d is %s, and the gate has it closed: %v", i, h.status(i), h.holds.isClosed(i))
		}
	}
	h.sound()
}

func TestASoldSeatIsNotKilledAndNothingElseIsEither(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{2}, 0), "ada", sandbox.CardApprove)
	_, err := h.desk.Close(t.Context(), event, kill(1, 2, 3))
	var refused *checkout.SeatsError
	if !errors.As(err, &refused) || !slices.Equal(refused.Sold, []int{2}) {
		t.Fatalf("got %v", err)
	}
	h.statuses(map[int]string{1: "available", 2: "sold", 3: "available"})
	if n := ask[int](h, `SELECT count(*) FROM seats WHERE killed IS NOT NULL`); n != 0 {
		t.Errorf("%d seats are killed", n)
	}
}

func TestAHeldSeatIsClosedOnlyWhenThatIsMeant(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{2, 5}, 0)
	var refused *checkout.SeatsError
	if _, err := h.desk.Close(t.Context(), event, kill(1, 2)); !errors.As(err, &refused) || !slices.Equal(refused.Held, []int{2}) {
		t.Fatalf("got %v", err)
	}
	h.statuses(map[int]string{1: "available", 2: "available"})
	even := kill(1, 2)
	even.EvenHeld = true
	a, err := h.desk.Close(t.Context(), event, even)
	must(t, err)
	if !slices.Equal(a.Overridden, []string{id}) {
		t.Errorf("overridden: %v", a.Overridden)
	}
	h.statuses(map[int]string{1: "unavailable", 2: "unavailable", 5: "available"})
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Code != "seats_lost" {
		t.Errorf("its holder pays and is told %+v", r)
	}
	h.sound()
}

func TestASaleThatIsTakenBackLeavesTheSeatToItsReasons(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{1, 2, 3, 4}, 0), "ada", sandbox.CardRefused)
	_, err := h.desk.Close(t.Context(), event, checkout.Close{Seats: []int{2}})
	must(t, err)
	_, err = h.desk.SetChannel(t.Context(), event, checkout.PutChannel{Name: "club", Seats: []int{3}})
	must(t, err)
	now := time.Now().Add(-time.Second)
	_, err = h.desk.SetChannel(t.Context(), event, checkout.PutChannel{Name: "open", Timed: true, OpensAt: &now, Seats: []int{4}})
	must(t, err)
	h.statuses(map[int]string{1: "sold", 2: "sold", 3: "sold", 4: "sold"})
	h.run(h.desk.Run, h.sandbox.Run)
	h.quietens()
	h.statuses(map[int]string{1: "available", 2: "unavailable", 3: "unavailable", 4: "available"})
	h.told()
	if h.holds.shows(1) || !h.holds.isClosed(2) || !h.holds.isClosed(3) || h.holds.isClosed(4) {
		t.Error("the gate has not been told")
	}
	h.sound()
}

func TestOfAKillAndASaleExactlyOneWins(t *testing.T) {
	h := setup(t)
	kills, sales := 0, 0
	for seat := range 30 {
		id := h.hold(fmt.Sprint("user", seat), []int{seat}, 0)
		var g errgroup.Group
		var killErr error
		var r reply
		g.Go(func() error {
			even := kill(seat)
			even.EvenHeld = true
			_, killErr = h.desk.Close(t.Context(), event, even)
			return nil
		})
		g.Go(func() error {
			return h.try(http.MethodPost, "/bookings/"+id+"/payment", fmt.Sprint("user", seat), map[string]string{"paymentMethod": sandbox.CardApprove}, &r)
		})
		must(t, g.Wait())
		var refused *checkout.SeatsError
		switch {
		case killErr == nil && r.Code == "seats_lost" && h.status(seat) == "unavailable":
			kills++
		case errors.As(killErr, &refused) && r.State == "sold" && h.status(seat) == "sold":
			sales++
		default:
			t.Errorf("seat %d is %s: the kill says %v, the sale %+v", seat, h.status(seat), killErr, r)
		}
	}
	t.Logf("%d kills, %d sales", kills, sales)
	h.run(h.desk.Run, h.sandbox.Run)
	h.quietens()
	h.sound()
}

func TestAChannelOpensAtItsTimeByAnyWorkerOnce(t *testing.T) {
	h := setup(t)
	at := time.Now().Add(300 * time.Millisecond)
	_, err := h.desk.SetChannel(t.Context(), event, checkout.PutChannel{Name: "club", Timed: true, OpensAt: &at, Seats: []int{1, 2, 3}})
	must(t, err)
	h.statuses(map[int]string{1: "unavailable", 2: "unavailable", 3: "unavailable"})
	h.run(h.desk.Run, h.desk.Run, h.desk.Run)
	_, err = h.desk.Close(t.Context(), event, kill(3)) // whichever comes first
	must(t, err)
	h.eventually(func() (string, bool) { return "the channel is closed", h.status(1) == "available" })
	if time.Now().Before(at) {
		t.Error("it opened before its time")
	}
	h.told()
	h.statuses(map[int]string{1: "available", 2: "available", 3: "unavailable"})
	if h.holds.isClosed(1) || !h.holds.isClosed(3) {
		t.Error("the gate has not been told")
	}
	all, err := h.store.Channels(t.Context(), event)
	must(t, err)
	if len(all) != 1 || !all[0].Open || all[0].Seats != 3 {
		t.Errorf("channels: %+v", all)
	}
}

// The worker that opens a channel dies between its commit and Redis being
// told: the next one tells.
func TestAWorkerThatDiesWhileAChannelOpensLeavesItToTheNext(t *testing.T) {
	h := setup(t)
	past := time.Now().Add(-time.Second)
	_, err := h.desk.SetChannel(t.Context(), event, checkout.PutChannel{Name: "club", Seats: []int{1, 2}})
	must(t, err)
	h.told()
	h.exec(`UPDATE channels SET opens_at = $1`, past)
	dead, kill := context.WithCancel(t.Context())
	h.holds.onRestore(func() error { kill(); return context.Canceled })
	stop := h.run(func(context.Context) error { return h.desk.Run(dead) })
	<-dead.Done()
	stop()
	h.holds.onRestore(nil)
	h.statuses(map[int]string{1: "available", 2: "available"})
	if !h.holds.isClosed(1) {
		t.Fatal("the dead one told it all the same")
	}
	h.run(h.desk.Run)
	h.told()
	if h.holds.isClosed(1) {
		t.Error("nobody told the gate")
	}
}

func TestOpeningAndKillingAtOnceLeavesTheKilledSeatClosed(t *testing.T) {
	h := setup(t)
	for seat := range 20 {
		_, err := h.desk.SetChannel(t.Context(), event, checkout.PutChannel{Name: "club", Timed: true, Seats: []int{seat}})
		must(t, err)
		var g errgroup.Group
		g.Go(func() error { _, err := h.desk.OpenChannel(t.Context(), event, "club"); return err })
		g.Go(func() error { _, err := h.desk.Close(t.Context(), event, kill(seat)); return err })
		must(t, g.Wait())
		if got := h.status(seat); got != "unavailable" {
			t.Fatalf("seat %d is %s", seat, got)
		}
		_, err = h.desk.DropChannel(t.Context(), event, "club")
		must(t, err)
	}
	h.told()
	for seat := range 20 {
		if !h.holds.isClosed(seat) {
			t.Errorf("the gate has seat %d open", seat)
		}
	}
}

func TestBookingsOfAnybodyAreGivenBackAsTheirOwnersCould(t *testing.T) {
	h := setup(t)
	held, sold := h.hold("ada", []int{1}, 0), h.hold("bob", []int{2}, 0)
	h.pay(sold, "bob", sandbox.CardApprove)
	must(t, h.desk.GiveBack(t.Context(), held))
	if !h.holds.gaveBack(held) {
		t.Error("the hold is still there")
	}
	if err := h.desk.GiveBack(t.Context(), sold); !errors.Is(err, checkout.ErrFinal) {
		t.Errorf("a sold booking: %v", err)
	}
	for _, id := range []string{event + ".nothing", "nothing"} {
		if err := h.desk.GiveBack(t.Context(), id); !errors.Is(err, checkout.ErrNoBooking) && !errors.Is(err, seatmap.ErrNoBasket) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// While Redis is away nothing is held: what open bookings name is spared, and
// the rest is closed without asking it.
func TestAnEventWithoutHoldsIsClosedByWhatItsBookingsName(t *testing.T) {
	h := setup(t)
	h.sale.NoHolds = true
	h.exec(`UPDATE events SET unheld_since = now()`)
	b, err := h.sale.Quote([]int{2}, nil)
	must(t, err)
	quote, err := json.Marshal(b)
	must(t, err)
	_, fresh, err := h.store.Book(t.Context(), h.sale, seatmap.Basket{Event: event, Token: "unheld", User: "ada", Seats: []int{2}, Quote: quote, Hash: "h"},
		time.Minute, time.Hour, func(seatmap.Facts) error { return nil })
	if err != nil || !fresh {
		t.Fatalf("booked: %v, %v", fresh, err)
	}
	h.holds.breaks(errors.New("Redis was asked"))
	var refused *checkout.SeatsError
	if _, err := h.desk.Close(t.Context(), event, kill(1, 2)); !errors.As(err, &refused) || !slices.Equal(refused.Held, []int{2}) {
		t.Errorf("a seat that a booking names: %v", err)
	}
	_, err = h.desk.Close(t.Context(), event, kill(1))
	must(t, err)
	even := kill(2)
	even.EvenHeld = true
	a, err := h.desk.Close(t.Context(), event, even)
	must(t, err)
	if !slices.Equal(a.Overridden, []string{event + ".unheld"}) {
		t.Errorf("overridden: %v", a.Overridden)
	}
	h.statuses(map[int]string{1: "unavailable", 2: "unavailable"})
	if n := ask[int](h, `SELECT count(*) FROM seats WHERE mirror_due`); n != 2 {
		t.Errorf("Redis is to be told of %d seats", n)
	}
}

// Seats are held again, and this process has not heard of it: somebody may hold
// them, which only Redis knows.
func TestAKillJudgedWithoutHoldsIsRefusedOnceSeatsAreHeld(t *testing.T) {
	h := setup(t)
	h.goWithout()
	h.exec(`UPDATE events SET unheld_since = NULL`)
	if _, err := h.desk.Close(t.Context(), event, kill(1)); !errors.Is(err, seatmap.ErrUnavailable) {
		t.Errorf("killed: %v", err)
	}
	h.statuses(map[int]string{1: "available"})
	even := kill(1)
	even.EvenHeld = true
	_, err := h.desk.Close(t.Context(), event, even)
	must(t, err)
	h.statuses(map[int]string{1: "unavailable"})
}
