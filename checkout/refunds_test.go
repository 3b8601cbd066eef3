package checkout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// office is an answer to an operator.
type office struct {
	Status int    `json:"-"`
	Code   string `json:"code"`
	checkout.RefundReport
}

func (h *house) refund(booking string, body map[string]any) (o office) {
	h.t.Helper()
	b, err := json.Marshal(body)
	must(h.t, err)
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+"/admin/bookings/"+booking+"/refund", bytes.NewReader(b))
	must(h.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	must(h.t, json.NewDecoder(resp.Body).Decode(&o))
	must(h.t, resp.Body.Close())
	o.Status = resp.StatusCode
	return o
}

// back is what an operator asks for, of some tickets or of all.
func back(seats string, tickets ...string) map[string]any {
	body := map[string]any{"seats": seats, "reason": "rain"}
	if len(tickets) > 0 {
		body["tickets"] = tickets
	}
	return body
}

// refundBecomes waits until a refund stands so.
func (h *house) refundBecomes(id string, state checkout.RefundState) {
	h.t.Helper()
	h.eventually(func() (string, bool) {
		got := ask[checkout.RefundState](h, `SELECT state FROM refunds WHERE id = $1`, id)
		return fmt.Sprintf("refund is %s, not %s", got, state), got == state
	})
}

// sells a booking of seats and places of the floor, and returns its tickets,
// those of seats first.
func (h *house) sells(user, card string, seats []int, floor int) (id string, tickets []checkout.Ticket) {
	h.t.Helper()
	id = h.hold(user, seats, floor)
	if r := h.pay(id, user, card); r.State != "sold" {
		h.t.Fatalf("%+v", r)
	}
	h.attemptBecomes(id, "captured")
	return id, h.get(id, user).Tickets
}

func (h *house) office(booking string) checkout.OfficeAnswer {
	h.t.Helper()
	return read[checkout.OfficeAnswer](h, "/admin/bookings/"+booking, "")
}

func ticketStatuses(tickets []checkout.Ticket) (all []string) {
	for _, t := range tickets {
		all = append(all, t.Status)
	}
	return all
}

func TestTicketsRefundedOneByOneGiveBackExactlyTheCharge(t *testing.T) {
	h := setup(t, dear)
	h.listen("booking.refunded")
	h.run(h.desk.Run)
	id, tickets := h.sells("ada", sandbox.CardApprove, []int{1, 2, 3}, 2)
	total := h.sound().Money.Amount
	var (
		given   int64
		refunds []string
	)
	for k, one := range tickets {
		r := h.refund(id, back(checkout.SeatsOnSale, one.ID))
		if r.Status != http.StatusAccepted || r.State != checkout.RefundPending || r.Money.Amount != one.AllIn || r.By != "boss" {
			t.Fatalf("%+v", r)
		}
		h.refundBecomes(r.ID, checkout.RefundSucceeded)
		given += one.AllIn
		refunds = append(refunds, r.ID)
		a := h.office(id)
		want := "sold"
		if k == len(tickets)-1 {
			want = "refunded"
		}
		if string(a.State) != want || a.Refunded == nil || a.Refunded.Amount != given || a.Tickets[k].Status != "refunded" {
			t.Errorf("after %d tickets: %s, %v, %v", k+1, a.State, a.Refunded, ticketStatuses(a.Tickets))
		}
		h.sound()
	}
	if got := h.sound(); got.Money.Amount != 0 || got.Tickets != 0 || got.Places != 0 || given != total {
		t.Errorf("of %d were given back %d: %+v", total, given, got)
	}
	h.attemptBecomes(id, "refunded")
	h.statuses(map[int]string{1: "available", 2: "available", 3: "available"})
	h.told()
	if h.holds.shows(1) || h.holds.leftIn("floor") != 10 {
		t.Errorf("the gate: seat sold %v, %d places left", h.holds.shows(1), h.holds.leftIn("floor"))
	}
	all := h.announced()
	if len(all) != len(tickets) || all[len(all)-1].Data.State != "refunded" || all[0].Data.Tickets[0].Status != "refunded" {
		t.Fatalf("told are %+v", all)
	}
	given = 0
	for k, one := range tickets {
		given += one.AllIn
		var this struct {
			ID      string
			Tickets []string
			Money   seatmap.Money
		}
		d := all[k].Data
		must(t, json.Unmarshal(d.Refund, &this))
		if this.ID != refunds[k] || !slices.Equal(this.Tickets, []string{one.ID}) || this.Money.Amount != one.AllIn || d.Refunded.Amount != given {
			t.Errorf("refund %d is told as %+v, of %+v in all", k, this, d.Refunded)
		}
	}
	if r := h.refund(id, back(checkout.SeatsOnSale)); r.Status != http.StatusConflict || r.Code != "already_refunded" {
		t.Errorf("once more: %+v", r)
	}
}

func TestARefundSaysWhichTicketsHaveLetSomebodyIn(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, tickets := h.sells("ada", sandbox.CardApprove, []int{1, 2, 3}, 0)
	scan := func(n, turn int, result string) {
		h.exec(`INSERT INTO ticket_scans (ticket_id, turn, result, account) VALUES ($1, $2, $3, 'door')`, tickets[n].ID, turn, result)
	}
	scan(0, 0, "admitted")
	scan(1, 0, "admitted")
	scan(1, 0, "undone")
	scan(2, 0, "pending")
	if r := h.refund(id, back(checkout.SeatsOnSale)); r.Status != http.StatusAccepted || !slices.Equal(r.Admitted, []string{tickets[0].ID}) {
		t.Errorf("%+v of %v", r, tickets)
	}
}

func TestARefundOfAllKillsTheSeatsWhenItSaysSo(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, _ := h.sells("ada", sandbox.CardApprove, []int{1, 2}, 1)
	r := h.refund(id, back(checkout.SeatsKilled))
	if len(r.Tickets) != 3 || r.Money != (seatmap.Money{Amount: 2500, Currency: "EUR"}) {
		t.Fatalf("%+v", r)
	}
	h.becomes(id, "refunded")
	if at := h.office(id).Refunds[0].At; !at.Equal(r.At) {
		t.Errorf("it was begun at %v, and the answer said %v", at, r.At)
	}
	h.statuses(map[int]string{1: "unavailable", 2: "unavailable"})
	if why := ask[string](h, `SELECT killed || ' ' || killed_by FROM seats WHERE i = 1`); why != "rain boss" {
		t.Errorf("killed for %q", why)
	}
	h.told()
	if !h.holds.isClosed(1) {
		t.Error("the gate does not have it closed")
	}
	h.sound()
}

func TestASeatOffSaleStaysSoWhenItsTicketIsRefunded(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, _ := h.sells("ada", sandbox.CardApprove, []int{1}, 0)
	_, err := h.desk.Close(t.Context(), event, checkout.Close{Seats: []int{1}})
	must(t, err)
	h.refund(id, back(checkout.SeatsOnSale))
	h.becomes(id, "refunded")
	h.statuses(map[int]string{1: "unavailable"})
	h.sound()
}

func TestWhatWasRefundedCountsForNoLimit(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE events SET seats_per_user = 2, seats_per_card = 2`)
	h.run(h.desk.Run)
	id, tickets := h.sells("ada", sandbox.CardApprove, []int{1, 2}, 0)
	if r := h.pay(h.hold("ada", []int{3}, 0), "ada", sandbox.CardApprove); r.Code != "seats_lost" {
		t.Fatalf("over the limit: %+v", r)
	}
	r := h.refund(id, back(checkout.SeatsOnSale, tickets[0].ID))
	h.refundBecomes(r.ID, checkout.RefundSucceeded)
	if r := h.pay(h.hold("ada", []int{3}, 0), "ada", sandbox.CardApprove); r.State != "sold" {
		t.Errorf("after the refund: %+v", r)
	}
	h.quietens()
	h.sound()
}

// Nobody is let in and nobody else buys while money is on its way back.
func TestTheSeatComesBackOnlyOnceTheMoneyHas(t *testing.T) {
	h := setup(t, asking(20*time.Millisecond), func(_ *house, _ *checkout.Options, s *sandbox.Options) { s.Refund = time.Hour }, stamped)
	h.run(h.desk.Run, h.sandbox.Run)
	id, tickets := h.sells("ada", sandbox.CardRefundSlow, []int{1, 2}, 0)
	r := h.refund(id, back(checkout.SeatsOnSale, tickets[0].ID))
	h.eventually(func() (string, bool) {
		return "the provider was not asked", ask[string](h, `SELECT provider_ref FROM refunds`) != ""
	})
	a := h.get(id, "ada")
	if a.Tickets[0].Status != "refunding" || a.Tickets[0].QR != "" || a.Tickets[1].Status != "valid" {
		t.Errorf("meanwhile %+v", a.Tickets)
	}
	if r := h.pay(h.hold("bob", []int{1}, 0), "bob", sandbox.CardApprove); r.Code != "seats_lost" {
		t.Errorf("meanwhile somebody else: %+v", r)
	}
	if r := h.refund(id, back(checkout.SeatsOnSale, tickets[0].ID)); r.Code != "refund_in_progress" {
		t.Errorf("meanwhile another refund: %+v", r)
	}
	h.quietens()
	h.sound()
	h.exec(`UPDATE sandbox_refunds SET settle_at = now()`)
	h.refundBecomes(r.ID, checkout.RefundSucceeded)
	h.statuses(map[int]string{1: "available", 2: "sold"})
	h.sound()
}

func TestAWebhookAboutARefundIsHeardWithoutAsking(t *testing.T) {
	h := setup(t) // asks after an hour
	h.run(h.desk.Run, h.sandbox.Run)
	id, _ := h.sells("ada", sandbox.CardRefundSlow, []int{1}, 0)
	h.refund(id, back(checkout.SeatsOnSale))
	h.eventually(func() (string, bool) {
		return "the provider was not asked", ask[string](h, `SELECT provider_ref FROM refunds`) != "" &&
			ask[int](h, `SELECT count(*) FROM river_job WHERE kind = 'give_back' AND state <> 'completed'`) == 0
	})
	h.exec(`UPDATE sandbox_refunds SET settle_at = now()`)
	h.becomes(id, "refunded")
	h.sound()
}

func TestWhoseRefundFailsMayEnterAndAnotherMayBegin(t *testing.T) {
	h := setup(t, asking(20*time.Millisecond), func(_ *house, _ *checkout.Options, s *sandbox.Options) { s.Refund = time.Millisecond })
	h.run(h.desk.Run, h.sandbox.Run)
	for card, why := range map[string]string{sandbox.CardRefundFails: "refund_declined", sandbox.CardRefundReturned: "account_closed"} {
		seat := len(card+why) - 27 // 4 and 3
		id, _ := h.sells("ada", card, []int{seat}, 0)
		r := h.refund(id, back(checkout.SeatsOnSale))
		h.refundBecomes(r.ID, checkout.RefundFailed)
		a := h.office(id)
		if a.State != "sold" || a.Tickets[0].Status != "valid" || a.Refunds[0].Failure != why || a.Refunded != nil {
			t.Errorf("%+v", a)
		}
		h.statuses(map[int]string{seat: "sold"})
		h.sound()
		h.exec(`UPDATE sandbox_payments SET card = $1`, sandbox.CardApprove) // the bank has thought better of it
		if r = h.refund(id, back(checkout.SeatsOnSale)); r.Status != http.StatusAccepted {
			t.Fatalf("another: %+v", r)
		}
		h.becomes(id, "refunded")
		h.sound()
	}
}

// A bank may send money back weeks later: by then the seat may be somebody
// else's, and what is owed is said until it is paid.
func TestMoneyThatComesBackIsOwedAndTheSeatStaysWhoseItIs(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, _ := h.sells("ada", sandbox.CardApprove, []int{1}, 0)
	first := h.refund(id, back(checkout.SeatsOnSale))
	h.becomes(id, "refunded")
	h.sells("bob", sandbox.CardApprove, []int{1}, 0)
	h.exec(`UPDATE sandbox_refunds SET state = 'failed', reason = 'account_closed'`)
	h.hears(ask[string](h, `UPDATE sandbox_payments SET refunded = 0 WHERE refunded > 0 RETURNING id`), "back")
	h.refundBecomes(first.ID, checkout.RefundFailed)
	a := h.office(id)
	if a.State != "refunded" || a.Tickets[0].Status != "refund_failed" || a.Refunds[0].Failure != "account_closed" || a.Refunded != nil {
		t.Errorf("%+v", a)
	}
	report, err := h.store.Check(t.Context(), event)
	must(t, err)
	if b := report.Balances[0]; len(report.Faults) != 1 || report.Faults[0].Kind != "refund_returned" || b.Money.Amount != 2000 || b.Tickets != 1 {
		t.Errorf("books: %+v", report)
	}
	second := h.refund(id, back(checkout.SeatsOnSale))
	if second.Status != http.StatusAccepted || second.Money.Amount != 1000 {
		t.Fatalf("another: %+v", second)
	}
	h.refundBecomes(second.ID, checkout.RefundSucceeded)
	h.statuses(map[int]string{1: "sold"})
	if got := h.sound(); got.Money.Amount != 1000 {
		t.Errorf("books: %+v", got)
	}
}

func TestARefundWhoseJobIsLostOrOfAWorkerThatDiedIsBroughtOn(t *testing.T) {
	for name, lose := range map[string]string{
		"lost":   `DELETE FROM river_job WHERE kind = 'give_back'`,
		"killed": `UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{dead}' WHERE kind = 'give_back'`,
	} {
		t.Run(name, func(t *testing.T) {
			h := setup(t, asking(20*time.Millisecond))
			stop := h.run(h.desk.Run)
			id, _ := h.sells("ada", sandbox.CardApprove, []int{1}, 0)
			stop()
			h.refund(id, back(checkout.SeatsOnSale))
			h.exec(lose)
			h.run(h.desk.Run)
			h.becomes(id, "refunded")
			h.sound()
		})
	}
}

// The provider has given the money back and nobody here has heard: asked again
// under the same key it gives nothing twice.
func TestARefundWhoseAnswerIsLostIsGivenOnce(t *testing.T) {
	var p provider
	var asked atomic.Int32
	p.refund = func(ctx context.Context, r checkout.Refund) (checkout.RefundAnswer, error) {
		a, err := p.Provider.Refund(ctx, r)
		if asked.Add(1) < 3 {
			return checkout.RefundAnswer{}, errors.Join(err, errors.New("connection lost"))
		}
		return a, err
	}
	h := setup(t, wrapped(&p), asking(20*time.Millisecond))
	h.run(h.desk.Run)
	id, tickets := h.sells("ada", sandbox.CardApprove, []int{1, 2}, 0)
	r := h.refund(id, back(checkout.SeatsOnSale, tickets[0].ID))
	h.refundBecomes(r.ID, checkout.RefundSucceeded)
	if got := h.sound(); got.Money.Amount != 1000 {
		t.Errorf("books: %+v", got)
	}
}

func TestOfManyRefundsOfOneTicketOneIsBegun(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, tickets := h.sells("ada", sandbox.CardApprove, []int{1, 2}, 0)
	var begun atomic.Int32
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			_, err := h.desk.Refund(t.Context(), checkout.RefundRequest{Booking: id, Tickets: []string{tickets[0].ID}, Seats: checkout.SeatsOnSale, Reason: "rain", By: "boss"})
			switch {
			case err == nil:
				begun.Add(1)
			case !errors.Is(err, checkout.ErrRefunding) && !errors.Is(err, checkout.ErrRefunded):
				return err
			}
			return nil
		})
	}
	must(t, g.Wait())
	if n := begun.Load(); n != 1 {
		t.Errorf("%d refunds were begun", n)
	}
	h.eventually(func() (string, bool) {
		return "pending", ask[int](h, `SELECT count(*) FROM refunds WHERE state = 'pending'`) == 0
	})
	if got := h.sound(); got.Money.Amount != 1000 {
		t.Errorf("books: %+v", got)
	}
}

func TestWhatCannotBeRefundedIsRefusedByItsName(t *testing.T) {
	h := setup(t)
	for _, unknown := range []string{event + ".nobodys", "nonsense"} {
		if r := h.refund(unknown, back(checkout.SeatsOnSale)); r.Status != http.StatusNotFound || r.Code != "unknown_booking" {
			t.Errorf("of %s: %+v", unknown, r)
		}
	}
	id := h.hold("ada", []int{1}, 0)
	if r := h.refund(id, back(checkout.SeatsOnSale)); r.Status != http.StatusConflict || r.Code != "booking_not_sold" {
		t.Errorf("of a basket: %+v", r)
	}
	h.pay(id, "ada", sandbox.CardApprove)
	if r := h.refund(id, back(checkout.SeatsOnSale)); r.Status != http.StatusConflict || r.Code != "capture_pending" {
		t.Errorf("before the money is there: %+v", r)
	}
	if tickets := h.office(id).Tickets; tickets[0].Status != "pending" {
		t.Errorf("%+v", tickets)
	}
	declined := h.hold("bob", []int{2}, 0)
	h.pay(declined, "bob", sandbox.CardDecline)
	if r := h.refund(declined, back(checkout.SeatsOnSale)); r.Code != "booking_not_sold" {
		t.Errorf("of one that is not sold: %+v", r)
	}
	h.run(h.desk.Run)
	h.attemptBecomes(id, "captured")
	for code, body := range map[string]map[string]any{
		"unknown_tickets": back(checkout.SeatsOnSale, "tk_other"),
		"bad_request":     back("gone"),
	} {
		if r := h.refund(id, body); r.Code != code {
			t.Errorf("%s: %+v", code, r)
		}
	}
	if r := h.refund(id, map[string]any{"seats": "killed"}); r.Code != "bad_request" {
		t.Errorf("without a reason: %+v", r)
	}
	if n := ask[int](h, `SELECT count(*) FROM refunds`); n != 0 {
		t.Errorf("%d refunds", n)
	}
	h.exec(`UPDATE attempts SET dispute = 'needs_response'`)
	if r := h.refund(id, back(checkout.SeatsOnSale)); r.Status != http.StatusAccepted || r.Dispute != "needs_response" {
		t.Errorf("under a dispute: %+v", r)
	}
	h.becomes(id, "refunded")
	h.sound()
}

func TestMoneyGivenBackWithoutUsVoidsTheTicketsOnceItIsAll(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, _ := h.sells("ada", sandbox.CardApprove, []int{1, 2}, 1)
	payment := ask[string](h, `UPDATE sandbox_payments SET refunded = 400 RETURNING id`)
	h.hears(payment, "some")
	if a := h.office(id); a.State != "sold" || a.Attempts[0].Refunded != 400 || !slices.Equal(ticketStatuses(a.Tickets), []string{"valid", "valid", "valid"}) {
		t.Errorf("after some: %+v", a)
	}
	h.exec(`UPDATE sandbox_payments SET refunded = amount`)
	h.hears(payment, "all")
	a := h.office(id)
	if a.State != "refunded" || a.Attempts[0].State != "refunded" || !slices.Equal(ticketStatuses(a.Tickets), []string{"refunded", "refunded", "refunded"}) ||
		len(a.Refunds) != 1 || !a.Refunds[0].Outside {
		t.Errorf("after all: %+v", a)
	}
	h.statuses(map[int]string{1: "unavailable", 2: "unavailable"})
	if why := ask[string](h, `SELECT killed FROM seats WHERE i = 1`); why != checkout.ReasonOutside {
		t.Errorf("killed for %q", why)
	}
	h.hears(payment, "again")
	if got := h.sound(); got.Money.Amount != 0 {
		t.Errorf("books: %+v", got)
	}
}

// Ours is under way when somebody gives everything back at the provider: it
// refuses ours, and whoever has their money does not keep the ticket.
func TestARefundThatSomebodyOvertakesAtTheProviderEndsInOneRefund(t *testing.T) {
	h := setup(t)
	stop := h.run(h.desk.Run)
	id, tickets := h.sells("ada", sandbox.CardApprove, []int{1, 2}, 0)
	stop()
	h.refund(id, back(checkout.SeatsOnSale, tickets[0].ID))
	h.hears(ask[string](h, `UPDATE sandbox_payments SET refunded = amount RETURNING id`), "all")
	h.run(h.desk.Run)
	h.becomes(id, "refunded")
	if got := h.sound(); got.Money.Amount != 0 {
		t.Errorf("books: %+v", got)
	}
	if a := h.office(id); !slices.Equal(ticketStatuses(a.Tickets), []string{"refunded", "refunded"}) || a.Refunded.Amount != 2000 {
		t.Errorf("%+v", a)
	}
}

// What a provider said of a payment before a refund of it failed may be heard after
// that. When it says so still, a while later, it is true.
func TestOldNewsOfARefundThatFailedVoidsNoTicket(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run)
	id, _ := h.sells("ada", sandbox.CardRefundFails, []int{1}, 0)
	h.refundBecomes(h.refund(id, back(checkout.SeatsOnSale)).ID, checkout.RefundFailed)
	h.hears(ask[string](h, `UPDATE sandbox_payments SET refunded = amount RETURNING id`), "old")
	if a := h.office(id); a.State != "sold" || a.Tickets[0].Status != "valid" {
		t.Errorf("at once: %+v", a)
	}
	h.exec(`UPDATE refunds SET updated_at = now() - interval '1 hour'`)
	h.exec(`UPDATE river_job SET scheduled_at = now() WHERE state = 'scheduled'`)
	h.becomes(id, "refunded")
	h.sound()
}

func TestRefundsAreCountedByStateAndTheOldestPendingHasAnAge(t *testing.T) {
	h := setup(t)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(h.desk)
	shows := func(lines ...string) {
		t.Helper()
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
		for _, line := range lines {
			if text := answer.Body.String(); !strings.Contains(text, line) {
				t.Errorf("no %s in\n%s", line, text)
			}
		}
	}
	stop := h.run(h.desk.Run)
	id, _ := h.sells("ada", sandbox.CardApprove, []int{1}, 0)
	shows(`checkout_refunds{state="pending"} 0`, "checkout_refund_oldest_pending_seconds 0\n")
	stop()
	h.refund(id, back(checkout.SeatsOnSale))
	h.exec(`UPDATE refunds SET created_at = now() - interval '90 seconds'`)
	shows(`checkout_refunds{state="pending"} 1`, "checkout_refund_oldest_pending_seconds 90.")
	h.run(h.desk.Run)
	h.becomes(id, "refunded")
	shows(`checkout_refunds{state="succeeded"} 1`, `checkout_refunds{state="failed"} 0`, "checkout_refund_oldest_pending_seconds 0\n")
}
