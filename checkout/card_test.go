package checkout_test

import (
	"fmt"
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/checkout/stripe/stripetest"
)

func TestOneCardPaysForAsManyTicketsAsItMayWhateverTheAccount(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE events SET seats_per_card = 3`)
	if r := h.pay(h.hold("ada", []int{1}, 1), "ada", sandbox.CardApprove); r.State != "sold" {
		t.Fatalf("within the limit: %+v", r)
	}
	over := h.hold("bob", []int{2, 3}, 0)
	if r := h.pay(over, "bob", sandbox.CardApprove); r.Status != http.StatusConflict || r.Reason != checkout.ReasonCardLimit {
		t.Errorf("over it: %+v", r)
	}
	if r := h.pay(h.hold("bob", []int{2, 3}, 0), "bob", sandbox.CardDuplicate); r.State != "sold" {
		t.Errorf("with another card: %+v", r)
	}
	if r := h.pay(h.hold("eve", []int{4}, 0), "eve", sandbox.CardApprove); r.State != "sold" {
		t.Errorf("what is left of the first: %+v", r)
	}
	h.run(h.desk.Run)
	h.quietens()
	if got := h.ledger(); got["captured"] != 3 || got["voided"] != 1 {
		t.Errorf("money: %v", got)
	}
	h.sound()
}

func TestOfManyBookingsWithOneCardAtOnceAsManySellAsItMay(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE events SET seats_per_card = 3`)
	ids := make([]string, 10)
	for i := range ids {
		ids[i] = h.hold(fmt.Sprint("user", i), []int{i}, 0)
	}
	var g errgroup.Group
	for i, id := range ids {
		g.Go(func() error {
			var r reply
			return h.try(http.MethodPost, "/bookings/"+id+"/payment", fmt.Sprint("user", i), map[string]string{"paymentMethod": sandbox.CardApprove}, &r)
		})
	}
	must(t, g.Wait())
	h.run(h.desk.Run)
	h.quietens()
	if got := h.sound(); got.Tickets != 3 {
		t.Errorf("books: %+v", got)
	}
	if n := ask[int](h, `SELECT count(*) FROM bookings WHERE reason = $1`, checkout.ReasonCardLimit); n != 7 {
		t.Errorf("%d were lost for their card", n)
	}
}

func TestTheCardOfStripeIsCountedAndOneThatIsNotToldIsNot(t *testing.T) {
	b := stripeHouse(t)
	b.exec(`UPDATE events SET seats_per_card = 1`)
	sold, _ := b.begin(1, stripetest.CardVisa)
	b.becomes(sold, "sold")
	over := b.hold("bob", []int{2}, 0)
	if r := b.pay(over, "bob", stripetest.CardVisa); r.Reason != checkout.ReasonCardLimit {
		t.Errorf("over the limit: %+v", r)
	}
	for _, user := range []string{"eve", "kim"} {
		id := b.hold(user, []int{3 + len(b.api.Intents())}, 0)
		r := b.pay(id, user, stripetest.CardAsks)
		b.change(r.Attempt.ID, func(i *stripetest.Intent) { i.Status = "requires_capture" }) // and no charge tells its card
		b.hears("evt_"+user, "payment_intent.amount_capturable_updated", r.Attempt.ID)
		b.becomes(id, "sold")
	}
	b.run(b.desk.Run)
	b.quietens()
	b.balanced()
}
