package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/seatmap"
	"seatcast/seatmap/history"
)

// history asks what has happened to a seat.
func (s shopper) history(event, seat, query string) (a history.Answer) {
	s.t.Helper()
	got := s.do(http.MethodGet, "/v1/admin/events/"+event+"/seats/"+url.PathEscape(seat)+"/history?"+query, "", nil).want(s.t, http.StatusOK, "")
	if err := json.Unmarshal(got.raw, &a); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// whats is what became of a seat, oldest first.
func whats(a history.Answer) (all []history.What) {
	for _, e := range a.Entries {
		all = append([]history.What{e.What}, all...)
	}
	return all
}

// The event is ordinary and nobody watches it: its seats have a history all the
// same.
func TestASeatTellsWhoHeldItWhoLetItGoAndWhoBoughtIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary, terms: seatmap.Terms{Hold: 5 * time.Second, Pay: 5 * time.Second, Grace: 100 * time.Millisecond}})
	api := h.node("SEATCAST_ROLES=api,hub")
	h.node("SEATCAST_ROLES=worker", "SEATCAST_SANDBOX_WEBHOOK_URL="+api.url)
	support := h.operator(api, "support")
	seat, other := h.seats(2)[0], h.seats(2)[1]
	recorded := func(what string, n int) (a history.Answer) {
		t.Helper()
		eventually(t, 20*time.Second, what, func() bool {
			h.shopper(api, "looker").do(http.MethodGet, "/v1/events/"+h.event+"/seatmap", "", nil) // which announces ends
			a = support.history(h.event, seat, "")
			return len(a.Entries) == n
		})
		return a
	}

	eventually(t, 10*time.Second, "the event is recorded from before the sale", func() bool {
		h.shopper(api, "looker").do(http.MethodGet, "/v1/events/"+h.event+"/seatmap", "", nil)
		return support.history(h.event, seat, "").Through != nil
	})
	ann, bob, cyd := h.shopper(api, "ann"), h.shopper(api, "bob"), h.shopper(api, "cyd")
	anns := ann.hold(h.event, "", seat).want(t, http.StatusCreated, "")
	recorded("ann holds it", 1)                           // while she does: after that the log of changes knows six letters of her token
	ann.extend(anns.BookingID).want(t, http.StatusOK, "") // which the map does not show, nor the log
	ann.swap(anns.BookingID, other).want(t, http.StatusOK, "")
	ann.swap(anns.BookingID, seat).want(t, http.StatusOK, "")
	ann.giveBack(anns.BookingID).want(t, http.StatusNoContent, "")
	bobs := bob.hold(h.event, "", seat).want(t, http.StatusCreated, "")
	between := recorded("bob's hold has ended", 6).Entries[0].At
	cyds := cyd.hold(h.event, "", seat).want(t, http.StatusCreated, "")
	cyd.pay(cyds.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	a := recorded("cyd has bought it", 8)

	want := []history.What{history.Held, history.Swapped, history.Held, history.GivenBack, history.Held, history.Lapsed, history.Held, history.Sold}
	if got := whats(a); !slices.Equal(got, want) || a.Status != "sold" || a.TicketID != seat || a.Next != nil {
		t.Fatalf("it tells %v, %+v", got, a)
	}
	who := []string{"ann", "ann", "ann", "ann", "bob", "", "cyd", "cyd"}
	bookings := []string{anns.BookingID, anns.BookingID, anns.BookingID, anns.BookingID, bobs.BookingID, "", cyds.BookingID, cyds.BookingID}
	for k, e := range slices.Backward(a.Entries) {
		k = len(a.Entries) - 1 - k
		if e.User != who[k] || e.Booking != bookings[k] || e.Seen || (e.What == history.Held) != (e.Until != nil) {
			t.Errorf("entry %d is %+v, of %s's %s", k, e, who[k], bookings[k])
		}
	}
	if sale := a.Entries[0].Sale; sale == nil || sale.TicketState != "live" || sale.BookingState != "sold" || sale.Total != sale.Price || sale.Price.Amount == 0 || sale.Attempt == "" {
		t.Errorf("it was sold as %+v", sale)
	}
	if moment := support.history(h.event, seat, "at="+url.QueryEscape(between.Format(time.RFC3339Nano))); moment.Status != "available" ||
		len(moment.Entries) != 1 || moment.Entries[0].What != history.Lapsed || len(moment.Gaps) != 0 {
		t.Errorf("after bob and before cyd it was %+v", moment)
	}
	ann.do(http.MethodGet, "/v1/admin/events/"+h.event+"/seats/"+url.PathEscape(seat)+"/history", "", nil).want(t, http.StatusForbidden, "not_operator")
}
