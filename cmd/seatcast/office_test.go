package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/seatmap"
)

func TestTheBoxOfficeHoldsSeatsForAnAccountWhichPaysThem(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary, terms: seatmap.Terms{SeatsPerBooking: 4, SeatsPerUser: 4}})
	n := h.node()
	o, ann, bob, seats := h.office(n), h.shopper(n, "ann"), h.shopper(n, "bob"), h.seats(20)
	ask := body{"ticketIds": seats[:12], "user": "ann", "for": "7d", "reason": "the school"}
	hold := func(key string, b body) answer { return o.do("POST", "/v1/admin/events/"+h.event+"/hold", key, b) }

	held := hold("k1", ask).want(t, http.StatusCreated, "")
	if d := time.Until(held.ExpiresAt); d < 167*time.Hour || d > 168*time.Hour {
		t.Errorf("it lasts %v", d)
	}
	if again := hold("k1", ask).want(t, http.StatusCreated, ""); again.BookingID != held.BookingID {
		t.Error("the same request is another booking")
	}
	for _, other := range []body{
		{"ticketIds": seats[:11], "user": "ann", "for": "7d", "reason": "the school"},
		{"ticketIds": seats[:12], "user": "bob", "for": "7d", "reason": "the school"},
		{"ticketIds": seats[:12], "user": "ann", "for": "6d", "reason": "the school"},
	} {
		hold("k1", other).want(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
	if r := hold("", body{"ticketIds": seats[10:14], "for": "1h", "reason": "press"}).want(t, http.StatusConflict, "seats_taken"); fmt.Sprint(r.Seats) != fmt.Sprint(seats[10:12]) {
		t.Errorf("taken: %v", r.Seats)
	}
	bob.hold(h.event, "", seats[0]).want(t, http.StatusConflict, "seats_taken")
	bob.booking(held.BookingID).want(t, http.StatusForbidden, "not_your_booking")
	ann.do("PUT", "/v1/bookings/"+held.BookingID+"/seats", "", body{"ticketIds": seats[:1]}).want(t, http.StatusConflict, "payment_begun")
	seen := o.list("status=held")
	if s := seen[seats[0]]; len(seen) != 12 || s.User != "ann" || s.BookingID != held.BookingID {
		t.Errorf("%d are held: %+v", len(seen), s)
	}

	// A Redis that loses everything does not lose what lasts for days.
	if err := h.rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	bob.hold(h.event, "", seats[0]).want(t, http.StatusConflict, "seats_taken")
	if b := ann.booking(held.BookingID).want(t, http.StatusOK, ""); b.State != "held" || len(b.Seats) != 12 {
		t.Errorf("it is %s", b.raw)
	}
	h.forgotten()
	if again := hold("k1", ask).want(t, http.StatusOK, ""); again.BookingID != held.BookingID {
		t.Error("the same request is another booking")
	}
	if p := ann.pay(held.BookingID, "", goodCard).want(t, http.StatusCreated, ""); p.State != "sold" {
		t.Errorf("it is %s", p.raw)
	}
	h.balanced(t.Context())
	ann.hold(h.event, "", seats[15]).want(t, http.StatusForbidden, "account_limit")
}

func TestAnOperatorGivesBackHoldsOfAnybody(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	n := h.node()
	o, ann, seats := h.office(n), h.shopper(n, "ann"), h.seats(6)
	a := ann.hold(h.event, "", seats[0], seats[1]).want(t, http.StatusCreated, "")
	b := o.call("POST", "/hold", body{"ticketIds": seats[2:4], "for": "2h", "reason": "press"}).want(t, http.StatusCreated, "")
	o.call("POST", "/release", body{"ticketIds": seats}).want(t, http.StatusOK, "")
	if m := o.shown(); m.At(0) != seatmap.Held || m.At(2) != seatmap.Held {
		t.Error("a release that names no holds gave one back")
	}
	var came struct{ Released []string }
	r := o.call("POST", "/release", body{"ticketIds": seats[1:2], "holds": true, "bookings": []string{b.BookingID}}).want(t, http.StatusOK, "")
	if err := json.Unmarshal(r.raw, &came); err != nil {
		t.Fatal(err)
	}
	want := []string{a.BookingID, b.BookingID}
	slices.Sort(want)
	if slices.Sort(came.Released); !slices.Equal(came.Released, want) {
		t.Errorf("released %v", came.Released)
	}
	for i := range 4 {
		o.shows(i, seatmap.Available)
	}
	if s := ann.booking(a.BookingID).want(t, http.StatusOK, ""); s.State != "released" {
		t.Errorf("ann's booking is %s", s.State)
	}
	if open := h.count(t.Context(), `SELECT count(*) FROM bookings WHERE state = 'held'`); open != 0 {
		t.Errorf("%d bookings are held", open)
	}
}

func TestAllHoldsOfAnEventLastLongerAndSoDoTheirBookings(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	n := h.node()
	o, ann, bob, seats := h.office(n), h.shopper(n, "ann"), h.shopper(n, "bob"), h.seats(6)
	a := ann.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	b := bob.hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")
	bob.pay(b.BookingID, "", declinedCard).want(t, http.StatusCreated, "") // now it has a row
	a, b = ann.booking(a.BookingID), bob.booking(b.BookingID)
	extend := func(key string, b body) answer {
		return o.do("POST", "/v1/admin/events/"+h.event+"/extend-all", key, b)
	}
	extend("", body{"by": "5m"}).want(t, http.StatusBadRequest, "idempotency_key_missing")
	for k, by := range []any{"", "5", "-5m", "0s", "25h", "soon"} {
		extend(fmt.Sprint("bad", k), body{"by": by}).want(t, http.StatusBadRequest, "bad_time")
	}
	for k, want := range []string{`{"before":0,"ended":0,"extended":2}`, `{"before":2,"ended":0,"extended":0}`} {
		if r := extend("k1", body{"by": "5m"}).want(t, http.StatusOK, ""); strings.TrimSpace(string(r.raw)) != want {
			t.Errorf("call %d came to %s", k, r.raw)
		}
		h.forgotten()
	}
	extend("k1", body{"by": "6m"}).want(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	for _, one := range []struct {
		s   shopper
		was answer
	}{{ann, a}, {bob, b}} {
		now := one.s.booking(one.was.BookingID).want(t, http.StatusOK, "")
		if now.ExpiresAt.Sub(one.was.ExpiresAt) != 5*time.Minute || now.Cap.Sub(one.was.Cap) != 5*time.Minute {
			t.Errorf("from %v (cap %v) to %v (cap %v)", one.was.ExpiresAt, one.was.Cap, now.ExpiresAt, now.Cap)
		}
	}
}

func TestTheBoxOfficeRefusesWhatItCannotHold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	n := h.node()
	o, seats := h.office(n), h.seats(3)
	good := body{"ticketIds": seats, "for": "1h", "reason": "press"}
	with := func(name string, v any) body {
		b := body{}
		for k, v := range good {
			b[k] = v
		}
		b[name] = v
		return b
	}
	for _, tt := range []struct {
		body   any
		status int
		code   string
	}{
		{with("ticketIds", []string{}), 400, "empty_booking"},
		{with("ticketIds", []string{"nobody"}), 422, "unknown_seat"},
		{with("ticketIds", []string{seats[0], seats[0]}), 422, "duplicate_seat"},
		{with("ticketIds", make([]string, 1001)), 422, "too_many_seats"},
		{with("for", ""), 400, "bad_time"},
		{with("for", "30s"), 400, "bad_time"},
		{with("for", "31d"), 400, "bad_time"},
		{with("for", "721h"), 400, "bad_time"},
		{with("for", "-1h"), 400, "bad_time"},
		{with("for", "1.5d"), 400, "bad_time"},
		{with("for", 3600), 400, "bad_json"},
		{with("reason", " "), 400, "bad_request"},
		{with("reason", strings.Repeat("x", 501)), 400, "bad_request"},
		{with("user", "an\x00n"), 400, "bad_request"},
		{with("user", strings.Repeat("x", 201)), 400, "bad_request"},
		{with("price", 1), 400, "bad_json"},
	} {
		if a := o.call("POST", "/hold", tt.body); a.status != tt.status || a.Code != tt.code {
			t.Errorf("%v: %d %s, want %d %s", tt.body, a.status, a.Code, tt.status, tt.code)
		}
	}
	office{h.shopper(n, "ann"), h.event}.call("POST", "/hold", good).want(t, http.StatusForbidden, "not_operator")
	office{h.shopper(n, "ann"), h.event}.call("POST", "/extend-all", body{"by": "5m"}).want(t, http.StatusForbidden, "not_operator")
	office{o.shopper, "nothing"}.call("POST", "/hold", good).want(t, http.StatusNotFound, "unknown_event")
	if m := o.shown(); m.At(0) != seatmap.Available {
		t.Error("something is held")
	}
	o.call("POST", "/kill", body{"ticketIds": seats[:1], "reason": "a pillar"}).want(t, http.StatusOK, "")
	o.call("POST", "/hold", good).want(t, http.StatusConflict, "seats_taken")
	held := o.call("POST", "/hold", with("ticketIds", seats[1:])).want(t, http.StatusCreated, "")
	o.booking(held.BookingID).want(t, http.StatusOK, "") // the operator's own
}
