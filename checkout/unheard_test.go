package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
)

// Two cards: one sells, and of the other nobody ever says that it was
// authorised. Its shopper must not find the money held for a week.
func TestTheOtherCardIsGivenBackThoughItsWebhookIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		seat  int
		state string
	}{"Sold": {1, "sold"}, "Lost": {2, "lost"}} {
		t.Run(name, func(t *testing.T) {
			h := setup(t)
			h.exec(`UPDATE seats SET off_sale = true, status = 'unavailable' WHERE i = 2`)
			id := h.hold("ada", []int{c.seat}, 0)
			h.pay(id, "ada", sandbox.CardLost)
			h.pay(id, "ada", sandbox.CardApprove)
			h.becomes(id, c.state)
			h.run(h.desk.Run, h.sandbox.Run)
			h.quietens()
			if got := h.ledger(); got["authorized"]+got["processing"] != 0 {
				t.Errorf("money: %v", got)
			}
			h.sound()
		})
	}
}

// A provider's answers overtake each other: a decline read before the second
// word, and told after it, is of the past.
func TestAnOldDeclineTakesNoSaleBack(t *testing.T) {
	var p provider
	h := setup(t, wrapped(&p))
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardDecline)
	payment := ask[string](h, `UPDATE sandbox_payments SET state = 'authorized' RETURNING id`)
	h.word("evt_2", "authorized", payment)
	h.becomes(id, "sold")
	p.get = func(ctx context.Context, id string) (checkout.Payment, error) {
		old, err := p.Provider.Get(ctx, id)
		old.State = checkout.PaymentFailed
		return old, err
	}
	h.word("evt_1", "failed", payment)
	if r := h.get(id, "ada"); r.State != "sold" {
		t.Errorf("the booking is %s", r.State)
	}
	h.run(h.desk.Run)
	h.quietens()
	h.sound()
}

// Jobs are fast; what makes sure is that every open attempt is looked at.
func TestMoneyMovesThoughItsJobIsLost(t *testing.T) {
	h := setup(t, asking(20*time.Millisecond))
	sold, lost := h.hold("ada", []int{1}, 0), h.hold("bob", []int{1}, 0)
	h.pay(sold, "ada", sandbox.CardApprove)
	h.pay(lost, "bob", sandbox.CardApprove)
	h.exec(`DELETE FROM river_job`)
	h.run(h.desk.Run)
	h.quietens()
	if got := h.ledger(); got["captured"] != 1 || got["voided"] != 1 {
		t.Errorf("money: %v", got)
	}
	h.sound()
}

// word tells of a payment as the sandbox does, and wants it taken in.
func (h *house) word(event, state, payment string) {
	h.t.Helper()
	body := fmt.Sprintf(`{"id":%q,"type":"payment.%s","payment":%q}`, event, state, payment)
	if status := h.notify(body); status != http.StatusNoContent {
		h.t.Fatalf("webhook answered %d", status)
	}
}

// Extending a hold needs nothing of the provider: it does not wait for a job
// that does.
func TestHoldIsExtendedThoughTheReconcilerWaitsForTheProvider(t *testing.T) {
	var p provider
	h := setup(t, wrapped(&p), asking(time.Millisecond), func(_ *house, o *checkout.Options, _ *sandbox.Options) {
		o.ExtendAhead = 20 * time.Second
	})
	p.get = func(context.Context, string) (checkout.Payment, error) {
		return checkout.Payment{}, errors.New("no route")
	}
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	h.run(h.desk.Run)
	h.eventually(func() (string, bool) {
		n := ask[int](h, `WITH waits AS (UPDATE river_job SET scheduled_at = now() + interval '1 hour'
			WHERE kind = 'reconcile' AND state = 'retryable' RETURNING id) SELECT count(*) FROM waits`)
		return "no reconciler waits", n > 0
	})
	h.exec(`UPDATE bookings SET deadline = now() + interval '10 seconds'`)
	h.eventually(func() (string, bool) {
		ok := ask[bool](h, `SELECT deadline > now() + interval '20 seconds' FROM bookings`)
		return "the hold is left to end", ok
	})
}
