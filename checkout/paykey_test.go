package checkout_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"seatcast/checkout/sandbox"
)

// All of them find no attempt when they look first, and one makes it.
func TestPaymentsWithOneKeyAtOnceMakeOneAttempt(t *testing.T) {
	for _, holds := range []bool{true, false} {
		t.Run(fmt.Sprintf("Holds=%v", holds), func(t *testing.T) {
			h := setup(t)
			id := ""
			if holds {
				id = h.hold("ada", []int{1}, 0)
			} else {
				h.goWithout()
				id = idOf(h.book("ada", 1))
			}
			post := func(card, key string) (r reply) {
				err := h.try(http.MethodPost, "/bookings/"+id+"/payment", "ada", map[string]string{"paymentMethod": card}, &r, "Idempotency-Key", key)
				if err != nil {
					t.Error(err)
				}
				return r
			}
			came := make([]reply, 8)
			var all sync.WaitGroup
			for n := range came {
				all.Go(func() { came[n] = post(sandbox.CardApprove, "once") })
			}
			all.Wait()
			made := 0
			for _, r := range came {
				if r.Attempt.ID == "" || r.Attempt.ID != came[0].Attempt.ID {
					t.Errorf("one is told %+v", r)
				}
				switch r.Status {
				case http.StatusCreated:
					made++
				case http.StatusOK:
				default:
					t.Errorf("one is answered %d %s", r.Status, r.Code)
				}
			}
			if made != 1 {
				t.Errorf("%d made it", made)
			}
			if n := ask[int](h, `SELECT count(*) FROM attempts`); n != 1 {
				t.Errorf("%d attempts", n)
			}
			if r := post(sandbox.CardSlow, "once"); r.Status != http.StatusUnprocessableEntity || r.Code != "idempotency_key_reused" {
				t.Errorf("another card with the key: %+v", r)
			}
			if r := post(sandbox.CardApprove, "once"); r.Status != http.StatusOK || r.State != "sold" {
				t.Errorf("a repeat is told how it stands now: %+v", r)
			}
			if n := ask[int](h, `SELECT count(*) FROM sandbox_payments`); n != 1 {
				t.Errorf("%d payments", n)
			}
		})
	}
}
