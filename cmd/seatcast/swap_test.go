package main

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// One tab pays at one node while another swaps the seats at the other node,
// again and again until it is refused. Whichever comes first, what is charged and
// sold is what the basket was when the payment was asked for, which is what the
// last swap that was granted has made it.
func TestASwapThatRacesWithAPaymentIsNeverChargedForOtherSeats(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	seats := h.seats(h.chart.Seats)
	const rounds = 24
	prices := map[string]int64{} // of a seat, as house.create sets them
	for _, s := range h.chart.Sections {
		for _, r := range s.Rows {
			for _, seat := range r.Seats {
				for k, c := range h.chart.Categories {
					if c.Name == seat.Category {
						prices[seat.TicketID] = int64(1000 * (k + 1))
					}
				}
			}
		}
	}
	outcomes := map[string]int{}
	for round := range rounds {
		user := fmt.Sprint("ann ", round)
		payer, swapper := h.shopper(nodes[0], user), h.shopper(nodes[1], user)
		mine := []string{seats[round]}
		b := payer.hold(h.event, "", mine...).want(t, http.StatusCreated, "").BookingID
		ahead := round % 4 // so many swaps before the payment is sent
		var paid answer
		var all sync.WaitGroup
		begin := make(chan struct{})
		all.Go(func() {
			<-begin
			paid = payer.pay(b, "first", goodCard)
		})
		all.Go(func() {
			for k := 0; ; k++ {
				if k == ahead {
					close(begin)
				}
				to := []string{seats[rounds+2*round+k%2]} // of another category, mostly
				a := swapper.swap(b, to...)
				if a.status != http.StatusOK {
					if a.status != http.StatusConflict || !slices.Contains([]string{"payment_in_progress", "payment_begun", "booking_final"}, a.Code) {
						t.Errorf("round %d: a swap is answered %d %s", round, a.status, a.raw)
					}
					if k < ahead {
						close(begin)
					}
					return
				}
				mine = to
			}
		})
		all.Wait()
		outcomes[fmt.Sprint(paid.status, " ", paid.Code)]++
		if paid.Code == "booking_changed" {
			paid = payer.pay(b, "second", goodCard)
		}
		paid.want(t, http.StatusCreated, "")
		payer.ends(b).wantSold(t, 1)
		a := payer.booking(b)
		if fmt.Sprint(a.ids()) != fmt.Sprint(mine) || a.Total.Amount != prices[mine[0]] {
			t.Errorf("round %d: holds %v for %d, sold %s", round, mine, prices[mine[0]], a.raw)
		}
		if n := h.count(t.Context(), `SELECT count(*) FROM seats WHERE booking_id = $1 AND ticket_id = $2`, b, mine[0]); n != 1 {
			t.Errorf("round %d: %v is not sold to it", round, mine)
		}
		h.moneyEnds(b, "captured 1")
	}
	t.Log(outcomes)
	if n := h.count(t.Context(), `SELECT count(*) FROM seats WHERE status = 'sold'`); n != rounds {
		t.Errorf("%d seats are sold in %d rounds", n, rounds)
	}
	h.balanced(t.Context())
}
