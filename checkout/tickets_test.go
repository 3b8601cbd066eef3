package checkout_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// read decodes what a GET answers.
func read[T any](h *house, path, user string) (v T) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, nil)
	must(h.t, err)
	req.Header.Set("X-User", user)
	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	defer func() { must(h.t, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		h.t.Fatalf("GET %s: %s", path, resp.Status)
	}
	must(h.t, json.NewDecoder(resp.Body).Decode(&v))
	return v
}

// stamp signs without a key.
type stamp struct{}

func (stamp) Sign(ticket, event string) string { return event + "/" + ticket }

func stamped(_ *house, o *checkout.Options, _ *sandbox.Options) { o.Signer = stamp{} }

// dear is a house with every kind of fee, none of which divides evenly.
func dear(h *house, _ *checkout.Options, _ *sandbox.Options) {
	h.sale.Fees = []seatmap.Fee{{Name: "Service", Per: seatmap.PerCent, Amount: 333}, {Name: "Facility", Per: seatmap.PerTicket, Amount: 7}, {Name: "Order", Per: seatmap.PerOrder, Amount: 100}}
}

func TestTicketsCostTogetherWhatIsChargedInEveryCurrency(t *testing.T) {
	for _, currency := range []string{"EUR", "JPY", "KWD"} {
		t.Run(currency, func(t *testing.T) {
			h := setup(t, dear)
			h.sale.Currency = currency
			h.run(h.desk.Run)
			id := h.hold("ada", []int{1, 2, 3}, 3)
			if r := h.pay(id, "ada", "4242424242424242"); r.State != "sold" {
				t.Fatalf("%+v", r)
			}
			h.quietens()
			a := read[checkout.Answer](h, "/bookings/"+id, "ada")
			// 3.33 % of 1000 is 33.3 and of 500 16.65; of 100 the shares are 22.2 and 11.1.
			if a.Total != (seatmap.Money{Amount: 3*(1000+33+7) + 3*(500+17+7) + 100, Currency: currency}) {
				t.Errorf("it costs %v", a.Total)
			}
			var tickets, fees int64
			for _, ticket := range a.Tickets {
				tickets += ticket.AllIn
				fees += ticket.AllIn - ticket.Price
				if ticket.Label != "" && ticket.Price != 1000 || ticket.Area != "" && ticket.Price != 500 {
					t.Errorf("without fees %+v", ticket)
				}
			}
			for _, fee := range a.Fees {
				fees -= fee.Amount
			}
			if len(a.Tickets) != 6 || tickets != a.Total.Amount || fees != 0 {
				t.Errorf("%d tickets cost %d of %d, and the fees are %d off", len(a.Tickets), tickets, a.Total.Amount, fees)
			}
			if r := h.sound(); r.Money.Amount != a.Total.Amount {
				t.Errorf("%d was taken", r.Money.Amount)
			}
			if charged := ask[string](h, `SELECT amount || ' ' || currency FROM sandbox_payments`); charged != "4792 "+currency {
				t.Errorf("the provider was asked for %s", charged)
			}
		})
	}
}

func TestAQuoteWhoseFeesDoNotAddUpIsRefused(t *testing.T) {
	h := setup(t, dear)
	for name, change := range map[string]func(q *seatmap.Quote){
		"a fee less":     func(q *seatmap.Quote) { q.Fees = q.Fees[1:] },
		"a line cheaper": func(q *seatmap.Quote) { q.Seats[0].AllIn-- },
		"one for another": func(q *seatmap.Quote) {
			q.Seats[0].AllIn--
			q.Total.Amount--
		},
	} {
		id := h.hold("ada", []int{1, 2}, 1)
		_, token, _ := seatmap.ParseBookingID(id)
		b, err := h.holds.Basket(t.Context(), event, token)
		must(t, err)
		q, err := seatmap.ParseQuote(b.Quote)
		must(t, err)
		change(&q)
		b.Quote, err = json.Marshal(q)
		must(t, err)
		h.holds.put(b)
		if r := h.pay(id, "ada", "4242424242424242"); r.Status != http.StatusInternalServerError {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if n := len(h.ledger()); n != 0 {
		t.Errorf("a provider was asked for %d payments", n)
	}
}

func TestOnlyAPaidTicketHasSomethingForADoorToRead(t *testing.T) {
	h := setup(t, stamped)
	good, refused := h.hold("ada", []int{1}, 1), h.hold("eve", []int{2}, 0)
	h.pay(good, "ada", "4242424242424242")
	h.pay(refused, "eve", "4000000000000119")
	for id, user := range map[string]string{good: "ada", refused: "eve"} { // no worker has captured anything yet
		for _, ticket := range read[checkout.Answer](h, "/bookings/"+id, user).Tickets {
			if ticket.Status != "pending" || ticket.QR != "" {
				t.Errorf("before the money %+v", ticket)
			}
		}
	}
	h.run(h.desk.Run)
	h.quietens()
	paid := read[checkout.Answer](h, "/bookings/"+good, "ada").Tickets
	for _, ticket := range paid {
		if ticket.Status != "valid" || ticket.QR != event+"/"+ticket.ID {
			t.Errorf("paid for %+v", ticket)
		}
	}
	void := read[checkout.Answer](h, "/bookings/"+refused, "eve").Tickets
	if len(paid) != 2 || len(void) != 1 || void[0].Status != "void" || void[0].QR != "" {
		t.Errorf("paid %+v, and void %+v", paid, void)
	}
}
