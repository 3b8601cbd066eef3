package main

import (
	"net/http"
	"testing"
	"time"

	"seatcast/catalog"
)

// Also to who asks for a seat that is taken, or under a key.
func TestAClosedEventSaysSoWhateverIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, mode := range []catalog.Mode{catalog.Hot, catalog.Ordinary} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{mode: mode})
			n := h.node()
			ann, bob, seats := h.shopper(n, "ann"), h.shopper(n, "bob"), h.seats(8)
			sold := ann.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
			ann.pay(sold.BookingID, "", goodCard).want(t, http.StatusCreated, "")
			ann.hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")
			mine := bob.hold(h.event, "mine", seats[2]).want(t, http.StatusCreated, "")
			if err := catalog.New(h.pool).SetState(t.Context(), h.event, catalog.Closed); err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, "the node knows", func() bool { return bob.hold(h.event, "", seats[7]).Code == "sale_not_open" })

			for _, key := range []string{"", "new", "newer"} {
				for _, asked := range [][]string{{seats[0]}, {seats[1]}, {seats[3]}, {seats[0], seats[3]}} {
					bob.hold(h.event, key, asked...).want(t, http.StatusForbidden, "sale_not_open")
				}
			}
			bob.hold(h.event, "mine", seats[2]).want(t, http.StatusOK, "")
			for _, asked := range [][]string{{seats[0]}, {seats[1]}, {seats[3]}, {seats[2], seats[0]}} {
				bob.do(http.MethodPut, "/v1/bookings/"+mine.BookingID+"/seats", "", map[string]any{"ticketIds": asked}).want(t, http.StatusForbidden, "sale_not_open")
				bob.hold(h.event, "mine", asked...).want(t, http.StatusForbidden, "sale_not_open")
			}
		})
	}
}
