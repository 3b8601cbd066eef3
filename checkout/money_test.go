package checkout_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
)

// taken has the provider take the money of an open payment unasked, and say so.
func (h *house) taken(booking string) (payment string) {
	h.t.Helper()
	payment = ask[string](h, `UPDATE sandbox_payments SET state = 'captured' WHERE idempotency_key IN
		(SELECT id FROM attempts WHERE booking_id = $1) RETURNING id`, booking)
	h.hears(payment, "captured")
	return payment
}

// hears posts the webhook about a step of a payment.
func (h *house) hears(payment, step string) {
	h.t.Helper()
	body := fmt.Sprintf(`{"id":"evt_%s_%s","type":"payment.%s","payment":%q}`, payment, step, step, payment)
	if status := h.notify(body); status != http.StatusNoContent {
		h.t.Fatalf("webhook about %s answered %d", step, status)
	}
}

func (h *house) attemptBecomes(booking, state string) {
	h.t.Helper()
	h.eventually(func() (string, bool) {
		got := ask[string](h, `SELECT state FROM attempts WHERE booking_id = $1`, booking)
		return "attempt is " + got + ", not " + state, got == state
	})
}

func TestMoneyTakenAtOnceBuysTheSeats(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 2)
	h.pay(id, "ada", sandbox.CardLate)
	h.taken(id)
	r := h.get(id, "ada")
	if r.State != "sold" || len(r.Tickets) != 3 || r.Tickets[0].Status != "valid" {
		t.Errorf("booking: %+v", r)
	}
	if n := ask[int](h, `SELECT count(*) FROM river_job WHERE kind IN ('capture', 'void', 'refund')`); n != 0 {
		t.Errorf("%d jobs for money that is where it belongs", n)
	}
	h.sound()
}

func TestMoneyTakenAtOnceForSeatsThatAreGoneIsRefunded(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	h.pay(h.hold("bob", []int{1}, 0), "bob", sandbox.CardApprove)
	h.taken(id)
	if state := ask[string](h, `SELECT state FROM attempts WHERE booking_id = $1`, id); state != "refunding" {
		t.Errorf("attempt is %s", state)
	}
	h.run(h.desk.Run)
	h.attemptBecomes(id, "refunded")
	h.becomes(id, "lost")
	h.quietens()
	if r := h.get(id, "ada"); r.Reason != checkout.ReasonSeatsGone {
		t.Errorf("booking: %+v", r)
	}
	h.sound()
}

// Whatever had become of the attempt, money that is taken for it afterwards is
// known, and not kept.
func TestMoneyTakenForWhatIsOverIsRefundedWhateverTheStateWas(t *testing.T) {
	for _, over := range []struct{ booking, attempt string }{
		{"expired", "voided"}, {"released", "auth_expired"}, {"lost", "capture_refused"}, {"expired", "failed"}, {"held", "voided"}, {"lost", "authorized"},
	} {
		t.Run(over.booking+", "+over.attempt, func(t *testing.T) {
			h := setup(t)
			id := h.hold("ada", []int{1}, 0)
			h.pay(id, "ada", sandbox.CardLate)
			h.exec(`UPDATE bookings SET state = $1`, over.booking)
			h.exec(`UPDATE attempts SET state = $1`, over.attempt)
			h.taken(id)
			h.run(h.desk.Run)
			h.attemptBecomes(id, "refunded")
			if got := h.sound(); got.Tickets != 0 {
				t.Errorf("books: %+v", got)
			}
			if state := ask[string](h, `SELECT state FROM bookings`); state != over.booking {
				t.Errorf("the booking became %s", state)
			}
		})
	}
}

func TestMoneyTakenWhileCancellingIsRefundedAndTheBookingReleased(t *testing.T) {
	var p provider
	h := setup(t, wrapped(&p))
	p.void = func(ctx context.Context, id string) (checkout.Payment, error) {
		h.exec(`UPDATE sandbox_payments SET state = 'captured' WHERE id = $1`, id)
		return p.Provider.Void(ctx, id)
	}
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	if r := h.call(http.MethodDelete, "/bookings/"+id, "ada", nil); r.Status != http.StatusNoContent {
		t.Fatalf("cancel: %+v", r)
	}
	h.run(h.desk.Run)
	h.attemptBecomes(id, "refunded")
	h.becomes(id, "released")
	h.sound()
}

func TestAnotherAmountOrCurrencyIsNeverSettled(t *testing.T) {
	for name, change := range map[string]string{"amount": `amount = 999`, "currency": `currency = 'JPY'`} {
		for state, becomes := range map[string]string{"authorized": "voided", "captured": "refunded"} {
			t.Run(name+", "+state, func(t *testing.T) {
				h := setup(t)
				id := h.hold("ada", []int{1}, 0)
				h.pay(id, "ada", sandbox.CardLate)
				h.hears(ask[string](h, `UPDATE sandbox_payments SET state = $1, `+change+` RETURNING id`, state), state)
				h.run(h.desk.Run)
				h.attemptBecomes(id, becomes)
				h.becomes(id, "held")
				if r := h.get(id, "ada"); len(r.Tickets) != 0 {
					t.Errorf("booking: %+v", r)
				}
				if why := ask[string](h, `SELECT reason FROM attempts`); why != checkout.ReasonWrongAmount {
					t.Errorf("the attempt says %q", why)
				}
				if r := h.pay(id, "ada", sandbox.CardApprove); r.State != "sold" {
					t.Errorf("another try: %+v", r)
				}
				h.quietens()
				h.sound()
			})
		}
	}
}

func TestASaleOfWhichOtherMoneyWasTakenIsTakenBack(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardApprove)
	h.exec(`UPDATE sandbox_payments SET amount = 999`)
	h.run(h.desk.Run)
	h.attemptBecomes(id, "refunded")
	r := h.get(id, "ada")
	if r.State != "lost" || r.Reason != checkout.ReasonWrongAmount || r.Tickets[0].Status != "void" {
		t.Errorf("booking: %+v", r)
	}
	h.sound()
}

func TestMoneyThatCannotBeGivenBackIsListed(t *testing.T) {
	p := provider{refund: func(context.Context, checkout.Refund) (checkout.RefundAnswer, error) {
		return checkout.RefundAnswer{State: checkout.RefundFailed, Reason: "account_closed"}, nil
	}}
	h := setup(t, wrapped(&p), asking(20*time.Millisecond))
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	h.exec(`UPDATE bookings SET state = 'expired'`)
	payment := h.taken(id)
	h.run(h.desk.Run)
	h.attemptBecomes(id, "refund_failed")
	report, err := h.store.Check(t.Context(), event)
	must(t, err)
	if len(report.Faults) != 1 {
		t.Errorf("faults: %q", report.Faults)
	}
	h.exec(`UPDATE sandbox_payments SET refunded = amount`) // by hand
	h.hears(payment, "refunded")
	h.attemptBecomes(id, "refunded")
	h.sound()
}

func TestARefundUnderWayIsAskedAboutUntilItIsThrough(t *testing.T) {
	var asked atomic.Int32
	var p provider
	p.refund = func(ctx context.Context, r checkout.Refund) (checkout.RefundAnswer, error) {
		if asked.Add(1) < 3 {
			return checkout.RefundAnswer{ID: "re_1", State: checkout.RefundPending}, nil
		}
		return p.Provider.Refund(ctx, r)
	}
	h := setup(t, wrapped(&p), asking(20*time.Millisecond))
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	h.exec(`UPDATE bookings SET state = 'expired'`)
	h.taken(id)
	h.run(h.desk.Run)
	h.attemptBecomes(id, "refunded")
	h.sound()
}

func TestWhatTheProviderSaysOfAPaymentIsKeptAndItsSecretIsNot(t *testing.T) {
	before := time.Now().Add(time.Hour).Truncate(time.Second)
	secret := checkout.Action{Secret: "pi_1_secret_2"}
	var p provider
	with := func(got checkout.Payment, err error) (checkout.Payment, error) {
		got.Card, got.CaptureBefore, got.Dispute, got.Action = "fp_1", before, "needs_response", secret
		return got, err
	}
	h := setup(t, wrapped(&p))
	p.create = func(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
		return with(p.Provider.Create(ctx, c))
	}
	p.get = func(ctx context.Context, id string) (checkout.Payment, error) { return with(p.Provider.Get(ctx, id)) }
	id := h.hold("ada", []int{1}, 0)
	for range 2 { // the second is a page that has forgotten
		r := h.call(http.MethodPost, "/bookings/"+id+"/payment", "ada", map[string]string{"paymentMethod": sandbox.CardLate}, "Idempotency-Key", "k")
		if r.Action != secret {
			t.Errorf("receipt: %+v", r)
		}
	}
	if kept := ask[bool](h, `SELECT card = 'fp_1' AND capture_before = $1 AND dispute = 'needs_response' FROM attempts`, before); !kept {
		t.Error("the row does not have it")
	}
	if n := ask[int](h, `SELECT count(*) FROM attempts a WHERE to_jsonb(a)::text LIKE '%secret%'`); n != 0 {
		t.Error("the secret is in the row")
	}
}
