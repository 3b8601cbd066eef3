package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

func (f *fakeHolds) Seal(ctx context.Context, event, token string) (seatmap.Basket, error) {
	b, err := f.Basket(ctx, event, token)
	if err != nil {
		return b, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	stored := f.baskets[token]
	stored.Sealed = true
	f.baskets[token] = stored
	b.Sealed = true
	return b, nil
}

// swap gives a basket other seats, unless it is sealed.
func (h *house) swap(id string, seats ...int) bool {
	h.t.Helper()
	_, token, _ := seatmap.ParseBookingID(id)
	b, err := h.holds.Basket(h.t.Context(), event, token)
	must(h.t, err)
	if b.Sealed {
		return false
	}
	q, err := h.sale.Quote(seats, b.Areas)
	must(h.t, err)
	b.Seats = seats
	b.Quote, err = json.Marshal(q)
	must(h.t, err)
	h.holds.put(b)
	return true
}

// A basket swapped for a dearer one after its payment has read it, and before a
// provider has heard of it: nobody is charged for what was never held.
func TestABasketSwappedWhileItsPaymentBeginsIsNotChargedForItsOldSeats(t *testing.T) {
	var s slowHolds
	h := setup(t, slowly(&s))
	id := h.hold("ada", []int{1}, 0)
	s.extended = func() { h.swap(id, 2, 3) }
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Status != http.StatusConflict || r.Code != "booking_changed" {
		t.Fatalf("payment: %+v", r)
	}
	if got := h.ledger(); len(got) != 0 {
		t.Errorf("money: %v", got)
	}
	if r := h.get(id, "ada"); r.State != "held" || len(r.Seats) == 0 {
		t.Errorf("she reads %+v", r)
	}
	if h.swap(id, 5) {
		t.Error("it is swapped again, though a payment has begun")
	}
	if r := h.pay(id, "ada", sandbox.CardApprove); r.State != "sold" {
		t.Fatalf("the second payment: %+v", r)
	}
	h.run(h.desk.Run)
	h.quietens()
	if r := h.sound(); r.Money.Amount != 2000 || r.Seats != 2 {
		t.Errorf("sold %+v", r)
	}
	if !h.holds.shows(2) || !h.holds.shows(3) || h.holds.shows(1) {
		t.Error("other seats are sold than were held")
	}
}

// The same, seen by the reconciler: the node that began the payment died.
func TestAPaymentWhoseNodeDiedBeforeTheSwapWasSeenIsNotAskedFor(t *testing.T) {
	var s slowHolds
	h := setup(t, slowly(&s))
	id := h.hold("ada", []int{1}, 0)
	begun := make(chan struct{})
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	s.reading = func() { h.swap(id, 2, 3); close(begun) } // the row is there, the seal is not
	_, err := h.desk.Pay(ctx, checkout.PayRequest{Booking: id, User: "ada", Method: sandbox.CardApprove})
	<-begun
	if !errors.Is(err, checkout.ErrSwapped) {
		t.Fatalf("payment: %v", err)
	}
	if n := ask[int](h, `SELECT count(*) FROM attempts WHERE state = 'failed' AND reason = 'seats_swapped'`); n != 1 {
		t.Errorf("%d attempts failed", n)
	}
	if got := h.ledger(); len(got) != 0 {
		t.Errorf("money: %v", got)
	}
}

// Two tabs pay while a third swaps: each attempt is for what was held when it
// was asked for, or fails unasked.
func TestTwoPaymentsBegunBeforeASwapAreBothForWhatIsHeld(t *testing.T) {
	var s slowHolds
	h := setup(t, slowly(&s))
	id := h.hold("ada", []int{1}, 0)
	s.reading = func() { // the first tab has its row
		s.extended = func() { h.swap(id, 2, 3) }
		if r := h.pay(id, "ada", sandbox.CardLate); r.Code != "booking_changed" {
			t.Errorf("the second tab: %+v", r)
		}
	}
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Code != "booking_changed" {
		t.Errorf("the first tab: %+v", r)
	}
	if got := h.ledger(); len(got) != 0 {
		t.Errorf("money: %v", got)
	}
	if r := h.pay(id, "ada", sandbox.CardApprove); r.State != "sold" {
		t.Fatalf("paid anew: %+v", r)
	}
	h.run(h.desk.Run)
	h.quietens()
	if r := h.sound(); r.Money.Amount != 2000 {
		t.Errorf("sold %+v", r)
	}
}
