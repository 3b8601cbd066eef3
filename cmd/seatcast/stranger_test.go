package main

import (
	"bytes"
	"net/http"
	"testing"
)

// Knowing the name of a booking is not owning it: whatever it is, basket,
// being paid, sold or over, a stranger reads nothing of it and changes nothing.
func TestAStrangerCanNeitherReadNorChangeABooking(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before := s.world()
	for state, id := range map[string]string{"basket": s.basket, "paying": s.paying, "sold": s.sold, "over": s.over} {
		for what, a := range map[string]answer{
			"read":                      s.bob.booking(id),
			"extend":                    s.bob.extend(id),
			"give back":                 s.bob.giveBack(id),
			"pay":                       s.bob.pay(id, "", goodCard),
			"confirm":                   s.bob.confirm(id),
			"pay under the owner's key": s.bob.pay(id, "paid once", lateCard),
		} {
			if a.status != http.StatusForbidden || a.Code != "not_your_booking" {
				t.Errorf("%s of a stranger's %s: %d %s", what, state, a.status, a.raw)
			}
			if bytes.Contains(a.raw, []byte("ann")) || bytes.Contains(a.raw, []byte(s.seats[0])) {
				t.Errorf("%s of a stranger's %s tells something of it: %s", what, state, a.raw)
			}
		}
		if t.Failed() {
			break
		}
	}
	s.unchanged(t, before)

	// The same key of another account names another booking.
	mine := s.bob.hold(s.event, "seats from 2", s.seats[30]).want(t, http.StatusCreated, "")
	if mine.BookingID == s.basket {
		t.Error("two accounts with one Idempotency-Key share a booking")
	}
	// The owner still can do everything.
	s.ann.extend(s.basket).want(t, http.StatusOK, "")
	s.ann.giveBack(s.basket).want(t, http.StatusNoContent, "")
	s.ann.giveBack(s.paying).want(t, http.StatusNoContent, "")
}
