package checkout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

func (h *house) cancellation(method string, body map[string]any) (status int, code string, r checkout.CancelReport) {
	h.t.Helper()
	b, err := json.Marshal(body)
	must(h.t, err)
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+"/admin/events/"+event+"/cancel", bytes.NewReader(b))
	must(h.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	var answer struct {
		Code string
		checkout.CancelReport
	}
	raw := new(bytes.Buffer)
	_, err = raw.ReadFrom(resp.Body)
	must(h.t, err)
	must(h.t, resp.Body.Close())
	if resp.StatusCode == http.StatusOK {
		must(h.t, json.Unmarshal(raw.Bytes(), &answer.CancelReport))
	} else {
		must(h.t, json.Unmarshal(raw.Bytes(), &struct{ Code *string }{&answer.Code}))
	}
	return resp.StatusCode, answer.Code, answer.CancelReport
}

func (h *house) progress() checkout.CancelReport {
	h.t.Helper()
	status, _, r := h.cancellation(http.MethodGet, nil)
	if status != http.StatusOK || r.Bookings != r.Refunded+r.Pending+r.Failed+r.Left {
		h.t.Fatalf("%d %+v", status, r)
	}
	return r
}

// ends waits until a cancellation is done.
func (h *house) ends() (r checkout.CancelReport) {
	h.t.Helper()
	h.eventually(func() (string, bool) {
		r = h.progress()
		return fmt.Sprintf("%+v", r), r.State == "done"
	})
	return r
}

func TestACancelledEventSellsNothingAndRefundsEverything(t *testing.T) {
	h := setup(t)
	h.listen("event.cancelled", "booking.refunded")
	h.run(h.desk.Run, h.sandbox.Run)
	whole, _ := h.sells("ada", sandbox.CardApprove, []int{1, 2}, 1)
	part, tickets := h.sells("bob", sandbox.CardApprove, []int{3, 4}, 0)
	h.refundBecomes(h.refund(part, back(checkout.SeatsOnSale, tickets[0].ID)).ID, checkout.RefundSucceeded)
	floor, _ := h.sells("eve", sandbox.CardApprove, nil, 3)
	failing, _ := h.sells("dan", sandbox.CardRefundFails, []int{7}, 0)
	held := h.hold("fay", []int{5}, 0)
	if r := h.pay(held, "fay", sandbox.CardDecline); r.State != "held" {
		t.Fatalf("%+v", r)
	}
	slow := h.hold("gus", []int{6}, 2)
	h.pay(slow, "gus", sandbox.CardLate)

	status, _, r := h.cancellation(http.MethodPost, map[string]any{"reason": "the tenor is ill", "refund": true, "perMinute": 60000})
	if status != http.StatusOK || r.Bookings != 4 || r.By != "boss" || r.Reason != "the tenor is ill" {
		t.Fatalf("%d %+v", status, r)
	}
	r = h.ends()
	if r.Refunded != 3 || r.Failed != 1 || r.Left != 0 || r.Money != (checkout.CancelMoney{Currency: "EUR", Refunded: 6000, Failed: 1000}) {
		t.Errorf("%+v", r)
	}
	for _, id := range []string{whole, part, floor} {
		h.becomes(id, "refunded")
	}
	h.becomes(held, "expired")
	h.becomes(slow, "expired")
	h.quietens()
	h.becomes(failing, "sold")
	if n := ask[int](h, `SELECT count(*) FROM seats WHERE status = 'available'`); n != 0 {
		t.Errorf("%d seats are free", n)
	}
	h.told()
	if !h.holds.isClosed(20) || !h.holds.gaveBack(held) || h.holds.leftIn("floor") != 0 {
		t.Errorf("the gate: closed %v, given back %v, %d places", h.holds.isClosed(20), h.holds.gaveBack(held), h.holds.leftIn("floor"))
	}
	if _, err := h.desk.Reopen(t.Context(), event, []int{20}); err == nil {
		t.Error("a seat was put on sale")
	}
	if r := h.pay(h.hold("hal", []int{20}, 0), "hal", sandbox.CardApprove); r.Code != "seats_lost" {
		t.Errorf("who pays is told %+v", r)
	}
	if r := h.pay(h.hold("hal", nil, 1), "hal", sandbox.CardApprove); r.Code != "seats_lost" {
		t.Errorf("who pays for a place is told %+v", r)
	}
	h.quietens()
	books, err := h.store.Check(t.Context(), event)
	must(t, err)
	if len(books.Faults) != 1 || books.Faults[0].Kind != "cancelled_not_refunded" || !strings.Contains(books.Faults[0].Rows[0], failing) {
		t.Errorf("who has neither the evening nor the money is named by %v", books.Faults)
	}
	told := map[string]int{}
	for _, n := range h.announced() {
		told[n.Type]++
	}
	if told["event.cancelled"] != 1 || told["booking.refunded"] != 4 {
		t.Errorf("told are %v", told)
	}
	if status, code, _ := h.cancellation(http.MethodPost, map[string]any{"reason": "again", "refund": true}); status != http.StatusConflict || code != "event_cancelled" {
		t.Errorf("once more: %d %s", status, code)
	}
	h.exec(`UPDATE sandbox_payments SET card = $1`, sandbox.CardApprove)
	if r := h.refund(failing, back(checkout.SeatsKilled)); r.Status != http.StatusAccepted {
		t.Errorf("%+v", r)
	}
	h.becomes(failing, "refunded")
	h.statuses(map[int]string{7: "unavailable"})
	h.sound()
}

// A bank may send the money of a refund back before the event is cancelled: the
// ticket is void by then, and what is owed is for a person.
func TestMoneyThatCameBackKeepsNoCancellationFromItsEnd(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, _ := h.sells("ada", sandbox.CardApprove, []int{1}, 0)
	first := h.refund(id, back(checkout.SeatsOnSale))
	h.becomes(id, "refunded")
	h.exec(`UPDATE sandbox_refunds SET state = 'failed', reason = 'account_closed'`)
	h.hears(ask[string](h, `UPDATE sandbox_payments SET refunded = 0 RETURNING id`), "back")
	h.refundBecomes(first.ID, checkout.RefundFailed)
	h.cancellation(http.MethodPost, map[string]any{"reason": "the tenor is ill", "refund": true})
	if r := h.ends(); r.Failed != 1 || r.Left != 0 || r.Money != (checkout.CancelMoney{Currency: "EUR", Failed: 1000}) {
		t.Errorf("%+v", r)
	}
}

// A verdict that comes as the event is cancelled sells before it, and is
// refunded, or loses.
func TestPaymentsUnderWayAsAnEventIsCancelledLoseOrAreRefunded(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run, h.sandbox.Run)
	var ids []string
	for n := range 20 {
		ids = append(ids, h.hold(fmt.Sprint("u", n), []int{n}, 0))
	}
	cards := []string{sandbox.CardApprove, sandbox.CardSlow, sandbox.CardEarly, sandbox.CardLost, sandbox.CardDuplicate}
	paid := make(chan struct{})
	go func() {
		defer close(paid)
		for n, id := range ids {
			var r reply
			if err := h.try(http.MethodPost, "/bookings/"+id+"/payment", fmt.Sprint("u", n), map[string]string{"paymentMethod": cards[n%len(cards)]}, &r); err != nil {
				t.Error(err)
			}
		}
	}()
	h.eventually(func() (string, bool) {
		return "nothing is sold", ask[int](h, `SELECT count(*) FROM bookings WHERE state = 'sold'`) > 0
	})
	if status, code, _ := h.cancellation(http.MethodPost, map[string]any{"reason": "fire", "refund": true, "perMinute": 60000}); status != http.StatusOK {
		t.Fatalf("%d %s", status, code)
	}
	<-paid
	h.eventually(func() (string, bool) {
		open := ask[int](h, `SELECT count(*) FROM bookings WHERE state IN ('held', 'paying', 'sold')`)
		return fmt.Sprintf("%d bookings open or sold", open), open == 0
	})
	h.quietens()
	if got := h.sound(); got.Money.Amount != 0 || got.Tickets != 0 {
		t.Errorf("books: %+v", got)
	}
	if n := ask[int](h, `SELECT count(*) FROM sandbox_payments WHERE state IN ('processing', 'authorized')`); n != 0 {
		t.Errorf("%d payments are open at the provider", n)
	}
	if n := ask[int](h, `SELECT count(*) FROM seats WHERE status <> 'unavailable'`); n != 0 {
		t.Errorf("%d seats are not closed", n)
	}
}

// Several workers are no faster together than one, one that stops loses nothing,
// and a pause is one.
func TestManyBookingsAreRefundedAtTheirPaceByManyWorkers(t *testing.T) {
	const bookings, perMinute = 200, 3000
	h := setup(t)
	h.exec(`UPDATE areas SET capacity = $1`, bookings)
	h.exec(`INSERT INTO bookings (id, event_id, user_id, state, seats, areas, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
		SELECT $1 || '.' || lpad(n::text, 32, '0'), $1, 'u' || n, 'sold', '{}', '{"floor":1}', 'EUR', 500,
			'{"seats":[],"areas":[{"area":"floor","name":"Floor","category":"Floor","quantity":1,"price":500,"allIn":500}],"total":{"amount":500,"currency":"EUR"}}', 'h', now(), now(), now()
		FROM generate_series(1, $2::int) n`, event, bookings)
	h.exec(`INSERT INTO attempts (id, booking_id, state, provider, provider_ref, method, request_hash, currency, amount)
		SELECT 'at_' || id, id, 'captured', 'sandbox', 'pay_' || id, $1, 'h', 'EUR', 500 FROM bookings`, sandbox.CardApprove)
	h.exec(`INSERT INTO sandbox_payments (id, idempotency_key, currency, amount, card, state)
		SELECT 'pay_' || booking_id, id, 'EUR', 500, method, 'captured' FROM attempts`)
	h.exec(`INSERT INTO tickets (id, event_id, booking_id, user_id, area, price) SELECT 'tk_' || id, event_id, id, user_id, 'floor', 500 FROM bookings`)
	h.exec(`UPDATE areas SET sold = $1`, bookings)
	h.sound()
	stop := h.run(h.desk.Run)
	h.run(h.desk.Run)
	h.run(h.desk.Run)
	if status, code, _ := h.cancellation(http.MethodPost, map[string]any{"reason": "rain", "refund": true, "perMinute": perMinute}); status != http.StatusOK {
		t.Fatalf("%d %s", status, code)
	}
	h.eventually(func() (string, bool) { r := h.progress(); return fmt.Sprintf("%+v", r), r.Refunded > 20 })
	stop()
	if _, _, r := h.cancellation(http.MethodPatch, map[string]any{"perMinute": 0}); r.State != "paused" || r.Left == 0 {
		t.Fatalf("paused: %+v", r)
	}
	begun := ask[int](h, `SELECT count(*) FROM refunds`)
	h.eventually(func() (string, bool) { r := h.progress(); return fmt.Sprintf("%+v", r), r.Pending == 0 })
	if n := ask[int](h, `SELECT count(*) FROM refunds`); n != begun {
		t.Errorf("%d refunds were begun in a pause", n-begun)
	}
	h.cancellation(http.MethodPatch, map[string]any{"perMinute": perMinute})
	if r := h.ends(); r.Refunded != bookings || r.Money.Refunded != 500*bookings {
		t.Errorf("%+v", r)
	}
	// In any second what a second may have, what it may catch up with, and one.
	most := ask[int](h, `SELECT max(n) FROM (SELECT count(*) OVER (ORDER BY created_at RANGE BETWEEN interval '1 second' PRECEDING AND CURRENT ROW) AS n FROM refunds) w`)
	if limit := 2*perMinute/60 + 2; most > limit {
		t.Errorf("%d refunds were begun within a second, of %d", most, limit)
	}
	if got := h.sound(); got.Money.Amount != 0 || got.Places != 0 {
		t.Errorf("books: %+v", got)
	}
}

func TestACancellationThatRefundsNothingMayBeginTo(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, _ := h.sells("ada", sandbox.CardApprove, []int{1}, 0)
	if status, code, _ := h.cancellation(http.MethodGet, nil); status != http.StatusNotFound || code != "not_cancelled" {
		t.Errorf("before: %d %s", status, code)
	}
	for _, body := range []map[string]any{{"refund": true}, {"reason": "r"}, {"reason": "r", "refund": true, "perMinute": -1}} {
		if status, _, _ := h.cancellation(http.MethodPost, body); status != http.StatusBadRequest {
			t.Errorf("%v: %d", body, status)
		}
	}
	h.cancellation(http.MethodPost, map[string]any{"reason": "moved", "refund": false})
	if r := h.progress(); r.State != "kept" || r.Left != 1 {
		t.Errorf("%+v", r)
	}
	for _, body := range []map[string]any{{}, {"refund": false}, {"refund": true, "perMinute": -1}} {
		if status, code, _ := h.cancellation(http.MethodPatch, body); status != http.StatusBadRequest || code != "bad_request" {
			t.Errorf("%v: %d %s", body, status, code)
		}
	}
	h.cancellation(http.MethodPatch, map[string]any{"perMinute": 1200})
	if status, _, r := h.cancellation(http.MethodPatch, map[string]any{"refund": true}); status != http.StatusOK || !r.Refund || r.PerMinute != 1200 {
		t.Errorf("%d %+v", status, r)
	}
	h.becomes(id, "refunded")
	h.ends()
	h.sound()
}

func TestWhatIsHeldOfACancelledEventReadsAsOver(t *testing.T) {
	h := setup(t)
	basket, row := h.hold("ada", []int{1}, 0), h.hold("bob", []int{2}, 0)
	if r := h.pay(row, "bob", sandbox.CardDecline); r.State != "held" {
		t.Fatalf("%+v", r)
	}
	h.cancellation(http.MethodPost, map[string]any{"reason": "rain", "refund": true})
	h.sale.Cancelled = true
	for id, user := range map[string]string{basket: "ada", row: "bob"} {
		if a := read[checkout.Answer](h, "/bookings/"+id, user); a.State != "expired" || a.Reason != checkout.ReasonCancelled || a.ExpiresAt != nil || a.Cap != nil {
			t.Errorf("%s has %+v", user, a)
		}
		if r := h.call(http.MethodPut, "/bookings/"+id+"/confirm", user, nil); r.Code != "hold_expired" || !strings.Contains(r.Detail, "nothing is charged") {
			t.Errorf("%s is told %+v", user, r)
		}
	}
}

// The mirror has read how many places are left, and the event is cancelled before
// it notes that it has told them.
func TestAnAreaThatClosesWhileItsPlacesAreToldIsToldAgain(t *testing.T) {
	h := setup(t)
	cancelled := make(chan error, 1)
	var once sync.Once
	h.holds.spend = func(ctx context.Context, _ seatmap.Marks) (err error) {
		once.Do(func() {
			go func() {
				_, err := h.desk.CancelEvent(t.Context(), event, checkout.Cancellation{Reason: "fire", By: "boss"})
				cancelled <- err
			}()
			for closed := false; !closed && err == nil; {
				err = h.pool.QueryRow(ctx, `SELECT closed FROM areas`).Scan(&closed)
			}
		})
		return err
	}
	h.exec(`UPDATE areas SET mirror_due = true`)
	must(t, h.desk.Mirror(t.Context(), event))
	must(t, <-cancelled)
	must(t, h.desk.Mirror(t.Context(), event))
	if left := h.holds.leftIn("floor"); left != 0 {
		t.Errorf("the gate has %d places of an event that is cancelled", left)
	}
}
