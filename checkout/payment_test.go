package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

func TestDeclineKeepsTheHoldAndAllowsAnotherAttempt(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	r := h.pay(id, "ada", sandbox.CardDecline)
	if r.Status != http.StatusCreated || r.State != "held" || r.Attempt.State != "failed" || r.Attempt.Reason != "card_declined" {
		t.Fatalf("declined: %+v", r)
	}
	if h.holds.gaveBack(id) {
		t.Error("the hold was given back")
	}
	if r := h.get(id, "ada"); r.State != "held" {
		t.Errorf("after the decline the booking is %s", r.State)
	}
	if r := h.pay(id, "ada", sandbox.CardApprove); r.State != "sold" {
		t.Errorf("another card: %+v", r)
	}
}

func TestRepeatedPaymentAnswersTheSameAttempt(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	post := func(card string) reply {
		return h.call(http.MethodPost, "/bookings/"+id+"/payment", "ada", map[string]string{"paymentMethod": card}, "Idempotency-Key", "k1")
	}
	first, again := post(sandbox.CardApprove), post(sandbox.CardApprove)
	if first.Status != http.StatusCreated || again.Status != http.StatusOK || first.Attempt.ID != again.Attempt.ID {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if other := post(sandbox.CardSlow); other.Status != http.StatusUnprocessableEntity || other.Code != "idempotency_key_reused" {
		t.Errorf("another card under the same key: %+v", other)
	}
	if n := ask[int](h, `SELECT count(*) FROM sandbox_payments`); n != 1 {
		t.Errorf("%d payments", n)
	}
}

func TestOnlyItsOwnerSeesPaysConfirmsOrCancelsABooking(t *testing.T) {
	h := setup(t)
	basket, row := h.hold("ada", []int{1}, 0), h.hold("ada", []int{2}, 0)
	h.pay(row, "ada", sandbox.CardDecline)
	for _, id := range []string{basket, row} {
		for _, r := range []reply{
			h.get(id, "eve"),
			h.pay(id, "eve", sandbox.CardApprove),
			h.call(http.MethodPut, "/bookings/"+id+"/confirm", "eve", nil),
			h.call(http.MethodDelete, "/bookings/"+id, "eve", nil),
		} {
			if r.Status != http.StatusForbidden || r.Code != "not_your_booking" {
				t.Errorf("a stranger is told %+v", r)
			}
		}
	}
	if r := h.get(basket, ""); r.Code != "token_missing" {
		t.Errorf("nobody is told %+v", r)
	}
	if got := h.get(row, "ada"); got.State != "held" {
		t.Errorf("the stranger changed it to %s", got.State)
	}
}

func TestUnknownBookingsAndBadPaymentsAreNamed(t *testing.T) {
	h := setup(t)
	nobodys := seatmap.BookingID(event, strings.Repeat("x", 32))
	for _, id := range []string{"nonsense", nobodys, "ballet." + strings.Repeat("x", 32)} {
		if r := h.get(id, "ada"); r.Status != http.StatusNotFound || r.Code != "unknown_booking" {
			t.Errorf("get %s: %+v", id, r)
		}
		if r := h.pay(id, "ada", sandbox.CardApprove); r.Code != "unknown_booking" {
			t.Errorf("pay %s: %+v", id, r)
		}
	}
	id := h.hold("ada", []int{1}, 0)
	if r := h.pay(id, "ada", ""); r.Code != "bad_request" {
		t.Errorf("no card: %+v", r)
	}
	if r := h.pay(id, "ada", "1234"); r.Attempt.Reason != "unknown_card" {
		t.Errorf("no such card: %+v", r)
	}
}

func TestPaymentRefusesToStartWithoutPostgresAndTheHoldStays(t *testing.T) {
	h := setup(t, func(h *house, o *checkout.Options, _ *sandbox.Options) {
		dead, err := pgxpool.New(h.t.Context(), "postgres:///x?host="+h.t.TempDir())
		must(h.t, err)
		h.t.Cleanup(dead.Close)
		o.Store, err = checkout.NewStore(dead)
		must(h.t, err)
	})
	id := h.hold("ada", []int{1}, 0)
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Status != http.StatusServiceUnavailable || r.Code != "store_unavailable" {
		t.Errorf("without Postgres: %+v", r)
	}
	if h.holds.extended != 0 || h.holds.gaveBack(id) {
		t.Error("the hold was touched")
	}
}

func TestCancelGivesTheSeatsBack(t *testing.T) {
	h := setup(t)
	basket, declined, paying, sold := h.hold("ada", []int{1}, 0), h.hold("ada", []int{2}, 0), h.hold("ada", []int{3}, 0), h.hold("ada", []int{4}, 0)
	h.pay(declined, "ada", sandbox.CardDecline)
	h.pay(paying, "ada", sandbox.CardLate)
	h.pay(sold, "ada", sandbox.CardApprove)
	for _, id := range []string{basket, declined, paying, paying} { // twice: gone already is a success
		if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusNoContent {
			t.Errorf("cancel: %+v", r)
		}
		if !h.holds.gaveBack(id) {
			t.Error("the hold was kept")
		}
	}
	if got := h.ledger(); got["voided"] != 1 {
		t.Errorf("the payment under way was not stopped: %v", got)
	}
	if r := h.call(http.MethodDelete, "/bookings/"+sold, "ada", nil); r.Status != http.StatusConflict || r.Code != "booking_final" {
		t.Errorf("cancel of a sold booking: %+v", r)
	}
	if r := h.pay(sold, "ada", sandbox.CardApprove); r.Code != "booking_final" || !strings.Contains(r.Detail, "this booking is sold") {
		t.Errorf("payment of a sold booking: %+v", r)
	}
	if r := h.pay(paying, "ada", sandbox.CardApprove); r.Code != "hold_expired" || !strings.Contains(r.Detail, "nothing is charged") {
		t.Errorf("payment of a released booking: %+v", r)
	}
}

// provider is the sandbox with some of its answers replaced.
type provider struct {
	checkout.Provider
	create func(context.Context, checkout.Charge) (checkout.Payment, error)
	get    func(context.Context, string) (checkout.Payment, error)
	void   func(context.Context, string) (checkout.Payment, error)
	refund func(context.Context, checkout.Refund) (checkout.RefundAnswer, error)
}

func (p *provider) Refund(ctx context.Context, r checkout.Refund) (checkout.RefundAnswer, error) {
	if p.refund != nil {
		return p.refund(ctx, r)
	}
	return p.Provider.Refund(ctx, r)
}

func (p *provider) Get(ctx context.Context, id string) (checkout.Payment, error) {
	if p.get != nil {
		return p.get(ctx, id)
	}
	return p.Provider.Get(ctx, id)
}

func (p *provider) Create(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
	if p.create != nil {
		return p.create(ctx, c)
	}
	return p.Provider.Create(ctx, c)
}

func (p *provider) Void(ctx context.Context, id string) (checkout.Payment, error) {
	if p.void != nil {
		return p.void(ctx, id)
	}
	return p.Provider.Void(ctx, id)
}

func wrapped(p *provider) setting {
	return func(h *house, o *checkout.Options, s *sandbox.Options) {
		p.Provider = sandbox.New(*s)
		o.Providers = []checkout.Provider{p}
	}
}

func TestCancelWhileTheProviderIsAwaySaysSoAndIsFinishedLater(t *testing.T) {
	var p provider
	h := setup(t, wrapped(&p))
	p.void = func(context.Context, string) (checkout.Payment, error) {
		return checkout.Payment{}, errors.New("no route")
	}
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusConflict || r.Code != "payment_in_progress" {
		t.Fatalf("cancel: %+v", r)
	}
	if h.holds.gaveBack(id) {
		t.Error("seats were given back while the outcome is unknown")
	}
	p.void = nil
	h.run(h.desk.Run)
	h.becomes(id, "held")
	if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusNoContent {
		t.Errorf("cancel again: %+v", r)
	}
}

func TestAVerdictThatComesWhileCancellingSellsNothing(t *testing.T) {
	var p provider
	h := setup(t, wrapped(&p))
	p.void = func(ctx context.Context, id string) (checkout.Payment, error) {
		h.exec(`UPDATE sandbox_payments SET state = 'authorized' WHERE id = $1`, id)
		if status := h.notify(fmt.Sprintf(`{"id":"evt_1","type":"payment.authorized","payment":%q}`, id)); status != http.StatusNoContent {
			t.Errorf("webhook answered %d", status)
		}
		return p.Provider.Void(ctx, id)
	}
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusNoContent {
		t.Errorf("cancel: %+v", r)
	}
	if got := h.sound(); got.Tickets != 0 {
		t.Errorf("books: %+v", got)
	}
	if got := h.ledger(); got["voided"] != 1 {
		t.Errorf("money: %v", got)
	}
}

func TestAnAnswerThatWasLostIsAskedForAgainAndChargedOnce(t *testing.T) {
	var p provider
	h := setup(t, wrapped(&p))
	p.create = func(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
		if _, err := p.Provider.Create(ctx, c); err != nil {
			return checkout.Payment{}, err
		}
		return checkout.Payment{}, errors.New("connection reset")
	}
	id := h.hold("ada", []int{1}, 0)
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Status != http.StatusCreated || r.State != "paying" {
		t.Fatalf("payment: %+v", r)
	}
	p.create = nil
	if r := h.call(http.MethodPut, "/bookings/"+id+"/confirm", "ada", nil); r.Status != http.StatusOK || r.State != "sold" {
		t.Errorf("confirm: %+v", r)
	}
	if n := ask[int](h, `SELECT count(*) FROM sandbox_payments`); n != 1 {
		t.Errorf("%d payments", n)
	}
}

func TestOpenAttemptsOfABookingAreBounded(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	for range 5 {
		h.pay(id, "ada", sandbox.CardLate)
	}
	if r := h.pay(id, "ada", sandbox.CardLate); r.Code != "payment_in_progress" {
		t.Errorf("the sixth: %+v", r)
	}
}

func TestAQuoteThatDoesNotAddUpIsNotCharged(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	_, token, _ := seatmap.ParseBookingID(id)
	b, err := h.holds.Basket(t.Context(), event, token)
	must(t, err)
	b.Quote = []byte(strings.Replace(string(b.Quote), `"amount":1000`, `"amount":10`, 1))
	h.holds.put(b)
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Status != http.StatusInternalServerError {
		t.Errorf("payment: %+v", r)
	}
	if n := ask[int](h, `SELECT count(*) FROM sandbox_payments`); n != 0 {
		t.Errorf("%d payments", n)
	}
}

func TestExpiredHoldCannotBePaid(t *testing.T) {
	h := setup(t)
	id := h.holdUntil("ada", []int{1}, 0, -time.Second, time.Minute)
	if r := h.pay(id, "ada", sandbox.CardApprove); r.Status != http.StatusConflict || r.Code != "hold_expired" {
		t.Errorf("payment: %+v", r)
	}
}
