package checkout_test

import (
	"fmt"
	"net/http"
	"testing"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
)

func TestAnOperatorSeesWhatIsSoldHeldAndFreeAndWhatItCameTo(t *testing.T) {
	h := setup(t, stamped, dear)
	h.run(h.desk.Run)
	figures := func() string {
		f := read[checkout.Figures](h, "/admin/events/"+event+"/figures", "")
		return fmt.Sprintf("%+v known %v, %+v, %d tickets for %d %s", f.Seats, f.HoldsKnown, f.Areas, f.Tickets, f.Money.Amount, f.Money.Currency)
	}
	if got, want := figures(), "{Available:40 Held:0 Sold:0 Unavailable:0} known true, [{Area:floor Name:Floor Capacity:10 Sold:0}], 0 tickets for 0 EUR"; got != want {
		t.Errorf("before the sale: %s, want %s", got, want)
	}
	_, err := h.desk.Close(t.Context(), event, kill(3, 4))
	must(t, err)
	h.pay(h.hold("ada", []int{0, 1}, 2), "ada", sandbox.CardApprove)
	h.quietens()
	total := ask[int](h, `SELECT amount FROM bookings WHERE user_id = 'ada'`)
	if got, want := figures(), fmt.Sprintf("{Available:36 Held:0 Sold:2 Unavailable:2} known true, [{Area:floor Name:Floor Capacity:10 Sold:2}], 4 tickets for %d EUR", total); got != want {
		t.Errorf("after one: %s, want %s", got, want)
	}
	if r := h.call(http.MethodGet, "/admin/events/none/figures", "", nil); r.Status != http.StatusNotFound || r.Code != "unknown_event" {
		t.Errorf("of no event: %d %s", r.Status, r.Code)
	}
}
