package checkout_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// slowHolds lets something happen right after a hold was extended, right
// before its basket is read or sealed, or right before it is given back.
type slowHolds struct {
	*fakeHolds
	extended, reading, releasing func()
}

func (s *slowHolds) Basket(ctx context.Context, event, token string) (seatmap.Basket, error) {
	run(&s.reading)
	return s.fakeHolds.Basket(ctx, event, token)
}

func (s *slowHolds) Seal(ctx context.Context, event, token string) (seatmap.Basket, error) {
	run(&s.reading)
	return s.fakeHolds.Seal(ctx, event, token)
}

func (s *slowHolds) Extend(ctx context.Context, event, token, user string, by, grace time.Duration) (seatmap.Basket, error) {
	b, err := s.fakeHolds.Extend(ctx, event, token, user, by, grace)
	run(&s.extended)
	return b, err
}

func (s *slowHolds) Release(ctx context.Context, event, token, user string) error {
	run(&s.releasing)
	return s.fakeHolds.Release(ctx, event, token, user)
}

// run runs what is there to run, once.
func run(f *func()) {
	if now := *f; now != nil {
		*f = nil
		now()
	}
}

func slowly(s *slowHolds) setting {
	return func(h *house, o *checkout.Options, _ *sandbox.Options) {
		s.fakeHolds = h.holds
		o.Holds = s
	}
}

// Two tabs: one pays, the other gives the seats back. Whichever comes first,
// what was given back is not charged.
func TestABookingGivenBackWhileItsPaymentBeginsIsNotCharged(t *testing.T) {
	var s slowHolds
	h := setup(t, slowly(&s))
	id := h.hold("ada", []int{1}, 0)
	s.extended = func() {
		if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusNoContent {
			t.Errorf("cancel: %+v", r)
		}
	}
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Code != "hold_expired" || !strings.Contains(r.Detail, "nothing is charged") {
		t.Errorf("payment: %+v", r)
	}
	if got := h.ledger(); got["voided"] != 1 || len(got) != 1 {
		t.Errorf("money: %v", got)
	}
	h.becomes(id, "released")
}

// A third tab confirms, and so asks the provider before the one that pays has
// seen that the seats were given back.
func TestAPaymentConfirmedWhileItIsWithdrawnEndsAtItsProvider(t *testing.T) {
	for name, card := range map[string]string{"NoVerdictYet": sandbox.CardLate, "ApprovedAtOnce": sandbox.CardApprove} {
		t.Run(name, func(t *testing.T) { confirmedWhileWithdrawn(t, card) })
	}
}

func confirmedWhileWithdrawn(t *testing.T, card string) {
	var s slowHolds
	h := setup(t, slowly(&s))
	id := h.hold("ada", []int{1}, 0)
	s.extended = func() {
		if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusNoContent {
			t.Errorf("cancel: %+v", r)
		}
		s.reading = func() { h.call(http.MethodPut, "/bookings/"+id+"/confirm", "ada", nil) }
	}
	if r := h.pay(id, "ada", card); r.Code != "hold_expired" {
		t.Errorf("payment: %+v", r)
	}
	if got := h.ledger(); got["voided"] != 1 || len(got) != 1 {
		t.Errorf("money: %v", got)
	}
	h.becomes(id, "released")
}

func TestAPaymentThatBeginsWhileItsBookingIsGivenBackIsStopped(t *testing.T) {
	var s slowHolds
	h := setup(t, slowly(&s))
	id := h.hold("ada", []int{1}, 0)
	s.releasing = func() { h.pay(id, "ada", sandbox.CardLate) }
	if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusNoContent {
		t.Errorf("cancel: %+v", r)
	}
	if got := h.ledger(); got["voided"] != 1 || len(got) != 1 {
		t.Errorf("money: %v", got)
	}
	h.becomes(id, "released")
}
