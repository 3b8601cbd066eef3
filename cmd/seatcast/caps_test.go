package main

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"seatcast/seatmap"
)

// What one account may have, told by two nodes as the API tells it.
func TestAnAccountIsToldWhyItMayNotHoldMore(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{terms: seatmap.Terms{SeatsPerUser: 4, SeatsPerBooking: 4, HoldsPerUser: 2, HoldsPerHour: 4, CoolDown: time.Minute}})
	nodes := []*node{h.node(), h.node()}
	ann := []shopper{h.shopper(nodes[0], "ann"), h.shopper(nodes[1], "ann")}
	seats := h.seats(12)
	one := ann[0].hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	two := ann[1].hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")
	ann[0].hold(h.event, "", seats[2:5]...).want(t, http.StatusTooManyRequests, "too_many_held")
	ann[1].hold(h.event, "", seats[2]).want(t, http.StatusTooManyRequests, "too_many_bookings")

	ann[0].pay(one.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	ann[1].pay(two.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	ann[0].hold(h.event, "", seats[2:5]...).want(t, http.StatusForbidden, "account_limit")
	for k := range 4 { // what was paid for does not count
		b := ann[k%2].hold(h.event, "", seats[3+k]).want(t, http.StatusCreated, "")
		ann[k%2].giveBack(b.BookingID).want(t, http.StatusNoContent, "")
	}
	a := ann[1].hold(h.event, "", seats[7]).want(t, http.StatusTooManyRequests, "too_many_holds")
	if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 30 || after > 60 {
		t.Errorf("come back after %q s, want a minute", a.header.Get("Retry-After"))
	}
	h.shopper(nodes[0], "bob").hold(h.event, "", seats[7]).want(t, http.StatusCreated, "")
	h.balanced(t.Context())
}
