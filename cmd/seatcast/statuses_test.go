package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/seatmap"
)

// office is an operator at the calls of one event.
type office struct {
	shopper
	event string
}

func (h *house) office(n *node) office { return office{h.operator(n, "boss"), h.event} }

func (o office) call(method, path string, body any) answer {
	o.t.Helper()
	return o.do(method, "/v1/admin/events/"+o.event+path, "", body)
}

type body map[string]any

// seatSeen is a seat as the office lists it.
type seatSeen struct {
	TicketID, Status, BookingID, User string
	Killed                            *struct{ Reason, By string }
	OffSale                           bool
	Channel                           *struct {
		Name string
		Open bool
	}
}

// list is what an operator sees of seats, by ticket id.
func (o office) list(query string) map[string]seatSeen {
	o.t.Helper()
	var l struct {
		Seats      []seatSeen
		HoldsKnown bool
	}
	a := o.call(http.MethodGet, "/seats?"+query, nil).want(o.t, http.StatusOK, "")
	if err := json.Unmarshal(a.raw, &l); err != nil || !l.HoldsKnown {
		o.t.Fatalf("list: %v in %s", err, a.raw)
	}
	seen := map[string]seatSeen{}
	for _, s := range l.Seats {
		seen[s.TicketID] = s
	}
	return seen
}

// shown is the public map of an event.
func (o office) shown() seatmap.Map {
	o.t.Helper()
	var s seatmap.Snapshot
	a := shopper{o.t, o.base, ""}.do(http.MethodGet, "/v1/events/"+o.event+"/seatmap", "", nil).want(o.t, http.StatusOK, "")
	if err := json.Unmarshal(a.raw, &s); err != nil {
		o.t.Fatal(err)
	}
	return s.Map
}

// shows waits until the public map shows a seat so.
func (o office) shows(seat int, as seatmap.Status) {
	o.t.Helper()
	eventually(o.t, 10*time.Second, fmt.Sprintf("seat %d is shown as %v", seat, as), func() bool { return o.shown().At(seat) == as })
}

func TestOperatorsCloseSeatsAndShoppersSeeIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	n := h.node()
	o, ann, seats := h.office(n), h.shopper(n, "ann"), h.seats(12)
	o.shows(0, seatmap.Available)

	a := o.call(http.MethodPost, "/kill", body{"ticketIds": seats[:2], "reason": "a pillar"}).want(t, http.StatusOK, "")
	if want := `{"seats":2,"changed":2,"closed":2,"opened":0}`; strings.TrimSpace(string(a.raw)) != want {
		t.Errorf("the kill came to %s", a.raw)
	}
	o.shows(0, seatmap.Unavailable)
	ann.hold(h.event, "", seats[0]).want(t, http.StatusConflict, "seats_taken")

	held := ann.hold(h.event, "", seats[2], seats[3]).want(t, http.StatusCreated, "")
	refused := o.call(http.MethodPost, "/kill", body{"ticketIds": seats[1:4], "reason": "a pillar"}).want(t, http.StatusConflict, "seats_held")
	if fmt.Sprint(refused.Seats) != fmt.Sprint(seats[2:4]) {
		t.Errorf("held: %v", refused.Seats)
	}
	if m := o.shown(); m.At(1) != seatmap.Unavailable || m.At(2) != seatmap.Held || m.At(3) != seatmap.Held {
		t.Error("the refused kill changed something")
	}
	o.call(http.MethodPost, "/kill", body{"ticketIds": seats[2:3], "reason": "a pillar", "evenHeld": true}).want(t, http.StatusOK, "")
	if b := ann.booking(held.BookingID).want(t, http.StatusOK, ""); !slices.Equal(b.Lost, seats[2:3]) {
		t.Errorf("its holder is told that %v is lost: %s", b.Lost, b.raw)
	}

	sold := ann.hold(h.event, "", seats[4]).want(t, http.StatusCreated, "")
	ann.pay(sold.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	o.shows(4, seatmap.Sold)
	if r := o.call(http.MethodPost, "/kill", body{"ticketIds": seats[4:6], "reason": "a pillar"}).want(t, http.StatusConflict, "seats_sold"); fmt.Sprint(r.Seats) != fmt.Sprint(seats[4:5]) {
		t.Errorf("sold: %v", r.Seats)
	}
	o.call(http.MethodPost, "/off-sale", body{"ticketIds": seats[4:6]}).want(t, http.StatusOK, "")

	seen := o.list("limit=12")
	for id, want := range map[string]string{seats[0]: "unavailable", seats[2]: "unavailable", seats[3]: "held", seats[4]: "sold", seats[5]: "unavailable", seats[6]: "available"} {
		if seen[id].Status != want {
			t.Errorf("%s is listed as %+v", id, seen[id])
		}
	}
	if s := seen[seats[0]]; s.Killed == nil || s.Killed.Reason != "a pillar" || s.Killed.By != "boss" {
		t.Errorf("killed: %+v", s)
	}
	if s := seen[seats[3]]; s.BookingID != held.BookingID || s.User != "ann" {
		t.Errorf("held: %+v", s)
	}
	if s := seen[seats[4]]; s.BookingID != sold.BookingID || s.User != "ann" || !s.OffSale {
		t.Errorf("sold: %+v", s)
	}
	if seen := o.list("status=held"); len(seen) != 1 {
		t.Errorf("%d seats are held", len(seen))
	}
	o.call(http.MethodPost, "/release", body{"ticketIds": seats}).want(t, http.StatusOK, "")
	o.shows(0, seatmap.Available)
	if m := o.shown(); m.At(3) != seatmap.Held || m.At(4) != seatmap.Sold {
		t.Error("the release of closed seats took a hold or a sale away")
	}
	o.call(http.MethodPost, "/release", body{"bookings": []string{held.BookingID}}).want(t, http.StatusOK, "")
	o.shows(3, seatmap.Available)
	o.call(http.MethodPost, "/release", body{"bookings": []string{sold.BookingID}}).want(t, http.StatusConflict, "booking_final")
	h.balanced(t.Context())
}

func TestAChannelIsBoughtFromOnceItOpens(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	dying := h.fated("die before restore", "SEATCAST_ROLES=worker", "SEATCAST_SANDBOX_WEBHOOK_URL=http://127.0.0.1:1")
	n := h.node("SEATCAST_ROLES=api,hub")
	o, ann, seats := h.office(n), h.shopper(n, "ann"), h.seats(4)
	at := time.Now().Add(4 * time.Second)
	o.call(http.MethodPut, "/channels/members", body{"ticketIds": seats[:3], "opensAt": at}).want(t, http.StatusOK, "")
	o.shows(0, seatmap.Unavailable)
	o.call(http.MethodPost, "/kill", body{"ticketIds": seats[1:2], "reason": "a pillar"}).want(t, http.StatusOK, "")
	ann.hold(h.event, "", seats[0]).want(t, http.StatusConflict, "seats_taken")
	if seen := o.list("channel=members"); len(seen) != 3 || seen[seats[0]].Channel.Open {
		t.Errorf("the channel: %+v", seen)
	}
	dying.diedBySignal(t) // it has opened the channel, and told nobody
	if time.Now().Before(at) {
		t.Error("it opened before its time")
	}
	h.node("SEATCAST_ROLES=worker", "SEATCAST_SANDBOX_WEBHOOK_URL="+n.url)
	o.shows(0, seatmap.Available)
	ann.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	ann.hold(h.event, "", seats[1]).want(t, http.StatusConflict, "seats_taken")
	var l struct {
		Channels []struct {
			Name  string
			Open  bool
			Seats int
		}
	}
	if err := json.Unmarshal(o.call(http.MethodGet, "/channels", nil).raw, &l); err != nil || len(l.Channels) != 1 || !l.Channels[0].Open || l.Channels[0].Seats != 3 {
		t.Errorf("channels: %+v, %v", l, err)
	}
	o.call(http.MethodPost, "/channels/members/close", nil).want(t, http.StatusConflict, "seats_held")
	o.call(http.MethodPost, "/channels/members/close", body{"evenHeld": true}).want(t, http.StatusOK, "")
	o.shows(0, seatmap.Unavailable)
	o.call(http.MethodPost, "/channels/members/open", nil).want(t, http.StatusOK, "")
	o.shows(0, seatmap.Available)
	o.call(http.MethodDelete, "/channels/members", nil).want(t, http.StatusOK, "")
	o.call(http.MethodDelete, "/channels/members", nil).want(t, http.StatusNotFound, "unknown_channel")
	if seen := o.list("channel=general"); len(seen) != 80 {
		t.Errorf("%d seats are general", len(seen))
	}
}

func TestTheOfficeRefusesWhatItCannotMean(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	n := h.node()
	o, seats := h.office(n), h.seats(3)
	many := make([]string, 5001)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
	}
	section := h.chart.Sections[0]
	for _, tt := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{"POST", "/kill", body{"ticketIds": seats}, 400, "bad_request"},
		{"POST", "/kill", body{"ticketIds": seats, "reason": strings.Repeat("x", 501)}, 400, "bad_request"},
		{"POST", "/kill", body{"ticketIds": seats, "reason": "a\nb"}, 400, "bad_request"},
		{"POST", "/kill", body{"reason": "x"}, 400, "empty_selection"},
		{"POST", "/kill", body{"ticketIds": []string{"nobody", seats[0]}, "reason": "x"}, 422, "unknown_seat"},
		{"POST", "/kill", body{"ticketIds": []string{seats[0], seats[0]}, "reason": "x"}, 422, "duplicate_seat"},
		{"POST", "/kill", body{"ticketIds": many, "reason": "x"}, 422, "too_many_seats"},
		{"POST", "/kill", body{"ticketIds": seats, "section": section.ID, "reason": "x"}, 400, "bad_request"},
		{"POST", "/kill", body{"row": "A", "reason": "x"}, 400, "bad_request"},
		{"POST", "/kill", body{"section": "nowhere", "reason": "x"}, 422, "no_such_seats"},
		{"POST", "/kill", body{"ticketIds": seats, "reason": "x", "evenSold": true}, 400, "bad_json"},
		{"POST", "/kill", []byte(`{`), 400, "bad_json"},
		{"POST", "/release", body{}, 400, "empty_selection"},
		{"POST", "/release", body{"bookings": []string{"other.token"}}, 422, "unknown_booking"},
		{"POST", "/release", body{"bookings": []string{h.event + ".token"}}, 404, "unknown_booking"},
		{"PUT", "/channels/VIP", body{}, 400, "bad_channel"},
		{"PUT", "/channels/general", body{}, 400, "bad_channel"},
		{"PUT", "/channels/vip", body{"opensAt": "tomorrow"}, 400, "bad_time"},
		{"PUT", "/channels/vip", body{"opensAt": "2027-03-01T10:00"}, 400, "bad_time"},
		{"PUT", "/channels/vip", body{"opensAt": 5}, 400, "bad_time"},
		{"POST", "/channels/vip/open", nil, 404, "unknown_channel"},
		{"GET", "/seats?status=free", nil, 400, "bad_request"},
		{"GET", "/seats?after=99999999999", nil, 400, "bad_request"},
		{"GET", "/seats?limit=0", nil, 400, "bad_request"},
	} {
		if a := o.call(tt.method, tt.path, tt.body); a.status != tt.status || a.Code != tt.code {
			t.Errorf("%s %s %v: %d %s, want %d %s: %s", tt.method, tt.path, tt.body, a.status, a.Code, tt.status, tt.code, a.raw)
		}
	}
	elsewhere := office{o.shopper, "nothing"}
	elsewhere.call("POST", "/kill", body{"ticketIds": seats, "reason": "x"}).want(t, http.StatusNotFound, "unknown_event")
	nobody := office{h.shopper(n, "ann"), h.event}
	nobody.call("POST", "/kill", body{"ticketIds": seats, "reason": "x"}).want(t, http.StatusForbidden, "not_operator")
	if closed := h.count(t.Context(), `SELECT count(*) FROM seats WHERE status <> 'available'`); closed != 0 {
		t.Errorf("%d seats are closed", closed)
	}
	o.call("POST", "/kill", body{"section": section.ID, "row": section.Rows[0].Label, "reason": "x"}).want(t, http.StatusOK, "")
	if closed := h.count(t.Context(), `SELECT count(*) FROM seats WHERE status = 'unavailable'`); closed != len(section.Rows[0].Seats) {
		t.Errorf("%d seats are closed, of a row of %d", closed, len(section.Rows[0].Seats))
	}
	var record struct {
		Calls []struct {
			Operator, Path string
			Outcome        struct {
				Status int
				Code   string
			}
		}
	}
	a := o.do(http.MethodGet, "/v1/admin/audit?limit=1&event="+h.event, "", nil).want(t, http.StatusOK, "")
	if err := json.Unmarshal(a.raw, &record); err != nil || len(record.Calls) != 1 || record.Calls[0].Operator != "boss" || record.Calls[0].Outcome.Status != 200 {
		t.Errorf("the record: %s, %v", a.raw, err)
	}
}

// A kill that does not override asks Redis whether a seat is held in the step
// that keeps everybody else from holding it: nobody is given a seat that is gone
// a moment later.
func TestOfAKillAndAHoldExactlyOneWins(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Hot})
	n := h.node()
	o, seats := h.office(n), h.seats(40)
	kills, holds := 0, 0
	for i, seat := range seats {
		ann := h.shopper(n, fmt.Sprint("shopper", i))
		var killed, held answer
		var both sync.WaitGroup
		both.Go(func() { killed = o.call("POST", "/kill", body{"ticketIds": []string{seat}, "reason": "a pillar"}) })
		both.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond / 2) // a kill is written down first: so that either may be first
			held = ann.hold(h.event, "", seat)
		})
		both.Wait()
		switch {
		case killed.status == http.StatusOK && held.Code == "seats_taken":
			kills++
		case killed.Code == "seats_held" && held.status == http.StatusCreated:
			holds++
		default:
			t.Errorf("%s: the kill is answered %d %s, the hold %d %s", seat, killed.status, killed.Code, held.status, held.Code)
		}
	}
	t.Logf("%d kills, %d holds", kills, holds)
	if aside := h.count(t.Context(), `SELECT count(*) FROM seats WHERE status = 'unavailable'`); aside != kills {
		t.Errorf("%d seats are closed", aside)
	}
	o.call("POST", "/release", body{"ticketIds": seats}).want(t, http.StatusOK, "")
	for i, seat := range seats { // nothing is left aside
		if o.shown().At(i) == seatmap.Available {
			h.shopper(n, fmt.Sprint("other", i)).hold(h.event, "", seat).want(t, http.StatusCreated, "")
		}
	}
}
