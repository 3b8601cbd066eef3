package history_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seatcast/seatmap"
	"seatcast/seatmap/history"
)

func TestAQuestionThatCannotBeAnsweredIsAProblemWithItsCode(t *testing.T) {
	h := setup(t)
	h.record()
	base := "/v1/admin/events/" + h.event + "/seats/A1/history"
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/v1/admin/events/nowhere/seats/A1/history":                                {http.StatusNotFound, "unknown_event"},
		"/v1/admin/events/" + h.event + "/seats/Z9/history":                        {http.StatusNotFound, "unknown_seat"},
		"/v1/admin/events/" + h.event + "/seats/a%2Fb/history":                     {http.StatusNotFound, "unknown_seat"},
		"/v1/admin/events/" + h.event + "/seats/a%00b/history":                     {http.StatusNotFound, "unknown_seat"},
		"/v1/admin/events/" + h.event + "/seats/%FF/history":                       {http.StatusNotFound, "unknown_seat"},
		"/v1/admin/events/" + h.event + "/seats/%20/history":                       {http.StatusNotFound, "unknown_seat"},
		base + "?at=yesterday":                                                     {http.StatusBadRequest, "bad_time"},
		base + "?at=2026-02-30T10:00:00Z":                                          {http.StatusBadRequest, "bad_time"},
		base + "?at=2026-01-30T10:00:00+01:00":                                     {http.StatusBadRequest, "bad_time"}, // + is a space
		base + "?at=0001-01-01T00:00:00Z":                                          {http.StatusBadRequest, "bad_time"},
		base + "?at=" + time.Now().AddDate(1, 0, 0).Format("2006-01-02T15:04:05Z"): {http.StatusBadRequest, "bad_time"},
		base + "?at=2026-01-30T10:00:00Z&limit=5":                                  {http.StatusBadRequest, "bad_request"},
		base + "?before=0":                                                         {http.StatusBadRequest, "bad_request"},
		base + "?before=x":                                                         {http.StatusBadRequest, "bad_request"},
		base + "?before=99999999999999999999":                                      {http.StatusBadRequest, "bad_request"},
		base + "?limit=0":                                                          {http.StatusBadRequest, "bad_request"},
		base + "?limit=201":                                                        {http.StatusBadRequest, "bad_request"},
	} {
		_, body := h.call(path, want.status)
		var p struct{ Code string }
		if err := json.Unmarshal(body, &p); err != nil || p.Code != want.code {
			t.Errorf("%s: %s", path, body)
		}
	}
}

func TestNothingIsSaidOfASeatBeforeAnythingWasRecorded(t *testing.T) {
	h := setup(t)
	if a := h.ask("A1", "", http.StatusOK); a.Status != "unknown" || a.Through != nil || len(a.Entries)+len(a.Gaps) > 0 {
		t.Errorf("nothing is recorded, and it says %+v", a)
	}
	h.record()
	if a := h.ask("A1", "", http.StatusOK); a.Status != "available" || a.Through == nil || len(a.Gaps) != 1 || a.Gaps[0].From != nil {
		t.Errorf("it was free from the first look on, and it says %+v", a)
	}
	if a := h.ask("B 1/2", "", http.StatusOK); a.TicketID != "B 1/2" || a.Section != "Stalls" || a.Row != "A" || a.Label != "39" {
		t.Errorf("a seat with another spelling is %+v", a)
	}
	if a := h.ask("A1", "at="+url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)), http.StatusOK); a.Status != "unknown" || len(a.Gaps) != 1 {
		t.Errorf("an hour before the first look it says %+v", a)
	}
}

func TestASeatThatIsNotInTheChartAnyMoreKeepsItsHistory(t *testing.T) {
	h := setup(t)
	h.record()
	h.exec(`INSERT INTO seats (event_id, i, ticket_id, category) VALUES ($1, 40, 'gone', 'one')`, h.event)
	h.m = append(h.m, 0)
	h.change(seatmap.Change{Closed: []int{40}})
	h.record()
	if a := h.ask("gone", "", http.StatusOK); a.TicketID != "gone" || a.Label != "" || a.Status != "unavailable" || len(a.Entries) != 1 {
		t.Errorf("its history is %+v", a)
	}
}

func TestAHistoryIsReadNewestFirstPageByPage(t *testing.T) {
	h := setup(t)
	h.record()
	var said []int64
	for k := range 25 {
		c := seatmap.Change{Reserved: []int{3}, Until: time.Now().Add(time.Minute).UnixMilli(), Tag: "abcdef"}
		if k%2 == 1 {
			c = seatmap.Change{Released: []int{3}, Why: seatmap.Lapsed}
		}
		said = append(said, h.change(c).N)
		h.change(seatmap.Change{Booked: []int{4}})
	}
	h.record()
	var got []int64
	query, pages := "limit=10", 0
	for {
		a := h.ask("A3", query, http.StatusOK)
		pages++
		for _, e := range a.Entries {
			got = append(got, e.N)
			if (e.What == history.Held) != (e.Status == "held" && e.Until != nil && e.Tag == "abcdef") || e.Booking != "" {
				t.Errorf("an entry is %+v", e)
			}
		}
		if gaps := len(a.Gaps); (a.Next == nil) != (gaps == 1) { // the only one is before the first entry
			t.Errorf("page %d has %d gaps", pages, gaps)
		}
		if a.Next == nil {
			break
		}
		query = "limit=10&before=" + strconv.FormatInt(*a.Next, 10)
	}
	slices.Reverse(got)
	if pages != 3 || !slices.Equal(got, said) {
		t.Errorf("%d pages tell %v, said was %v", pages, got, said)
	}
}

func TestAMomentIsToldByTheEntryThatMadeItSo(t *testing.T) {
	h := setup(t)
	h.record()
	moment := func() string { return "at=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano)) }
	later := func() {
		now := time.Now().UnixMilli()
		h.eventually("the next millisecond", func() bool { return time.Now().UnixMilli() > now+1 })
	}
	later()
	free := moment()
	later()
	held := h.hold("ann-the-first", 3)
	later()
	taken := moment()
	later()
	h.change(seatmap.Change{Released: []int{3}, Why: seatmap.Lapsed})
	h.record()
	h.rdb.XTrimMaxLen(t.Context(), seatmap.LogKey(h.event), 0)
	h.m.Set(3, seatmap.Sold)
	later()
	lost := moment()
	later()
	h.change(seatmap.Change{Reset: true})
	h.record()
	later()
	for query, want := range map[string]struct {
		status string
		n      int64
		gap    bool
	}{
		free: {"available", 0, false}, taken: {"held", held.N, false}, lost: {"available", -1, true}, moment(): {"sold", -1, false},
	} {
		a := h.ask("A3", query, http.StatusOK)
		var n int64
		if len(a.Entries) == 1 {
			n = a.Entries[0].N
		}
		if a.Status != want.status || want.n >= 0 && n != want.n || (len(a.Gaps) == 1) != want.gap {
			t.Errorf("%s: %+v, not %+v", query, a, want)
		}
	}
	if a := h.ask("A3", taken, http.StatusOK); a.Entries[0].Booking != h.event+".ann-the-first" || a.Entries[0].Tag != "ann-th" {
		t.Errorf("ann's entry is %+v", a.Entries[0])
	}
}

// A seat that is sold twice, the first time for money that then was not given.
func TestEachSaleIsToldWithTheBookingThatMadeIt(t *testing.T) {
	h := setup(t)
	h.record()
	sold := func(booking, state, ticket, ticketState, reason string) {
		h.exec(`INSERT INTO bookings (id, event_id, user_id, state, seats, currency, amount, quote, request_hash, first_held_at, deadline, cap_at, reason)
			VALUES ($1 || '.' || $2, $1, 'user of ' || $2, $3, '{3}', 'EUR', 4200, '{}', '', now(), now(), now(), $4)`, h.event, booking, state, reason)
		h.exec(`INSERT INTO tickets (id, event_id, booking_id, user_id, i, price, state) VALUES ($2, $1, $1 || '.' || $3, 'u', 3, 4000, $4)`, h.event, ticket, booking, ticketState)
	}
	issued := func(ticket string, c seatmap.Change) { // as if long before the next
		h.exec(`UPDATE tickets SET created_at = $2 WHERE id = $1`, ticket, time.UnixMilli(c.At).Add(-time.Second))
	}
	sold("first-token", "lost", "t1", "void", "capture_refused")
	sold("second-token", "sold", "t2", "live", "")
	h.change(seatmap.Change{Reserved: []int{3}, Tag: "second", Until: 1}) // gone before it was recorded
	first := h.change(seatmap.Change{Booked: []int{3}})
	h.change(seatmap.Change{Released: []int{3}, Why: seatmap.Restored})
	second := h.change(seatmap.Change{Booked: []int{3}})
	h.record()
	// The clock of Redis runs a minute between the two.
	h.exec(`ALTER TABLE seat_log DISABLE TRIGGER stays`)
	h.exec(`UPDATE seat_log SET at = at + interval '1 minute' WHERE n >= $1`, second.N)
	issued("t1", first)
	second.At += 60_000
	issued("t2", second)

	a := h.ask("A3", "", http.StatusOK)
	var got []string
	for _, e := range a.Entries {
		text := string(e.What) + " " + e.User
		if e.Sale != nil {
			text += " " + e.Sale.Ticket + " " + e.Sale.TicketState + " " + e.Sale.BookingState + " " + e.Sale.Reason
		}
		got = append(got, text)
	}
	want(t, "entries", got, "sold user of second-token t2 live sold ", "restored user of first-token t1 void lost capture_refused",
		"sold user of first-token t1 void lost capture_refused", "held user of second-token")
}

func TestAnEntryTellsWhichCallsOfOperatorsWereUnderWay(t *testing.T) {
	h := setup(t)
	h.record()
	call := func(operator, method, event, began, ended string, status int) {
		h.exec(`WITH c AS (INSERT INTO admin_calls (at, request_id, operator, address, method, path, event_id, body, body_bytes)
				VALUES (now() + $1::interval, '', $2, '', $3, '/kill', $4, '', 0) RETURNING id)
			INSERT INTO admin_outcomes (call_id, at, status, code) SELECT id, now() + $5::interval, $6, '' FROM c WHERE $6 > 0`,
			began, operator, method, event, ended, status)
	}
	call("long before", "POST", h.event, "-2 minutes", "-1 minute", 200)
	call("looks", "GET", h.event, "-1 second", "1 second", 200)
	call("refused", "POST", h.event, "-1 second", "1 second", 409)
	call("elsewhere", "POST", "other", "-1 second", "1 second", 200)
	call("ann", "POST", h.event, "-1 minute", "1 second", 200)
	call("cut short", "PUT", h.event, "-1 second", "0 seconds", 0)
	call("afterwards", "POST", h.event, "1 minute", "1 minute", 200)
	h.change(seatmap.Change{Closed: []int{3}})
	h.change(seatmap.Change{Booked: []int{3}})
	h.record()
	a := h.ask("A3", "", http.StatusOK)
	var who []string
	for _, c := range a.Entries[1].Calls {
		who = append(who, c.Operator+" "+c.Method+" "+c.Path)
	}
	want(t, "calls", who, "ann POST /kill", "cut short PUT /kill")
	if len(a.Entries[0].Calls) > 0 {
		t.Errorf("no operator sells: %+v", a.Entries[0].Calls)
	}
}

func TestTheHistoryOfASeatIsReadFromItsIndexAlone(t *testing.T) {
	h := setup(t)
	h.exec(`INSERT INTO seat_log (event_id, i, n, at, seen, what) SELECT 'e' || k % 20, k % 1000, k, now(), false, 'held' FROM generate_series(1, 200000) k`)
	h.exec(`ANALYZE seat_log`)
	for _, sql := range []string{
		`SELECT * FROM seat_log WHERE event_id = 'e7' AND i = 7 AND n < 9999999999 ORDER BY n DESC LIMIT 51`,
		`SELECT * FROM seat_log WHERE event_id = 'e7' AND i = 7 AND at <= now() ORDER BY n DESC LIMIT 1`,
	} {
		var plan string
		if err := h.pool.QueryRow(context.Background(), `EXPLAIN (FORMAT JSON) `+sql).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, "seat_log_pkey") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: %s", sql, plan)
		}
	}
}
