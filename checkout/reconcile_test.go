package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

func asking(after time.Duration) setting {
	return func(_ *house, o *checkout.Options, _ *sandbox.Options) { o.AskAfter = after }
}

func TestLostWebhookIsReconciled(t *testing.T) {
	h := setup(t, asking(20*time.Millisecond))
	h.run(h.desk.Run, h.sandbox.Run)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLost)
	h.becomes(id, "sold")
	h.quietens()
	h.sound()
}

func TestConfirmFindsWhatTheLostWebhookWouldHaveSaid(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLost)
	h.eventually(func() (string, bool) {
		r := h.call(http.MethodPut, "/bookings/"+id+"/confirm", "ada", nil)
		return fmt.Sprintf("%+v", r), r.Status == http.StatusOK && r.State == "sold" && len(r.Tickets) == 1
	})
}

// Killed between commit and mirror: the handler commits and never comes to the
// gate. Another worker does.
func TestRunnerFinishesTheMirrorOfAKilledHandler(t *testing.T) {
	var dead atomic.Bool
	h := setup(t)
	h.holds.spend = func(context.Context, seatmap.Marks) error {
		if dead.Load() {
			return errors.New("killed")
		}
		return nil
	}
	dead.Store(true)
	id := h.hold("ada", []int{1}, 3)
	if r := h.pay(id, "ada", sandbox.CardApprove); r.State != "sold" {
		t.Fatalf("payment: %+v", r)
	}
	if h.holds.shows(1) {
		t.Fatal("the mirror ran")
	}
	dead.Store(false)
	from := time.Now()
	h.run(h.desk.Run)
	h.eventually(func() (string, bool) {
		return "the gate does not know", h.holds.shows(1) && h.holds.leftIn("floor") == 7
	})
	if took := time.Since(from); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT (SELECT count(*) FROM seats WHERE mirror_due) + (SELECT count(*) FROM areas WHERE mirror_due) + (SELECT count(*) FROM bookings WHERE mirror_due)`)
		return fmt.Sprintf("%d rows still due", n), n == 0
	})
}

func TestSaleThatCommitsWhileTheMirrorRunsIsNotForgotten(t *testing.T) {
	h := setup(t)
	var once atomic.Bool
	h.holds.spend = func(ctx context.Context, m seatmap.Marks) error {
		if once.CompareAndSwap(false, true) {
			h.exec(`UPDATE seats SET status = 'available', booking_id = NULL, mirror_due = true WHERE i = 1`) // unsold meanwhile
			h.exec(`UPDATE areas SET sold = 5, mirror_due = true`)
		}
		return nil
	}
	h.pay(h.hold("ada", []int{1}, 1), "ada", sandbox.CardApprove)
	if due := ask[bool](h, `SELECT mirror_due FROM seats WHERE i = 1`); !due {
		t.Error("the seat that moved on is taken for told")
	}
	must(t, h.desk.Mirror(t.Context(), event))
	if h.holds.shows(1) || h.holds.leftIn("floor") != 5 {
		t.Error("the gate was told an old truth")
	}
}

func TestJobOfAKilledWorkerIsRescued(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardApprove)
	h.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '20 seconds', attempted_by = '{dead}' WHERE kind = 'capture'`)
	h.run(h.desk.Run)
	h.eventually(func() (string, bool) {
		r := h.get(id, "ada")
		return fmt.Sprintf("%+v", r.Tickets), r.Tickets[0].Status == "valid"
	})
	h.sound()
}

func TestHoldIsExtendedWhileTheOutcomeIsUnknownUpToItsCap(t *testing.T) {
	h := setup(t, func(h *house, o *checkout.Options, _ *sandbox.Options) {
		h.sale.Terms.Pay, h.sale.Terms.Grace = 2*time.Second, time.Millisecond
		o.ExtendAhead, o.ExtendBy = 1500*time.Millisecond, 2*time.Second
	})
	id := h.holdUntil("ada", []int{1}, 0, 2*time.Second, 4*time.Second)
	h.pay(id, "ada", sandbox.CardLate)
	h.run(h.desk.Run)
	h.eventually(func() (string, bool) {
		at := ask[bool](h, `SELECT deadline = cap_at AND state = 'paying' FROM bookings WHERE id = $1`, id)
		return "the deadline never reached the cap while paying", at
	})
	h.becomes(id, "expired")
	if late := ask[bool](h, `SELECT updated_at >= cap_at FROM bookings WHERE id = $1`, id); !late {
		t.Error("it expired before its cap")
	}
	if got := h.ledger(); got["voided"] != 1 {
		t.Errorf("the payment was not cancelled first: %v", got)
	}
	h.eventually(func() (string, bool) { return "the hold is given back", h.holds.gaveBack(id) })
	if r := h.call(http.MethodPut, "/bookings/"+id+"/confirm", "ada", nil); r.Code != "hold_expired" || !strings.Contains(r.Detail, "nothing is charged") {
		t.Errorf("confirm: %+v", r)
	}
	h.sound()
}

func TestProviderAwayAtTheCapReleasesNothingOfOursAndTheArbiterDecidesLater(t *testing.T) {
	var p provider
	h := setup(t, wrapped(&p))
	var away atomic.Bool
	away.Store(true)
	p.get = func(ctx context.Context, id string) (checkout.Payment, error) {
		if away.Load() {
			return checkout.Payment{}, errors.New("no route")
		}
		return p.Provider.Get(ctx, id)
	}
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	h.late(id)
	h.run(h.desk.Run)
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT count(*) FROM river_job WHERE kind = 'reconcile' AND errors IS NOT NULL`)
		return "the reconciler never met the provider", n > 0
	})
	if state := ask[string](h, `SELECT state FROM bookings`); state != "paying" || h.holds.gaveBack(id) {
		t.Errorf("booking is %s", state)
	}
	h.exec(`UPDATE sandbox_payments SET state = 'authorized'`)
	away.Store(false)
	h.becomes(id, "sold")
	h.quietens()
	h.sound()
}

// The hold has ended, the verdict comes: the arbiter decides by the seats, not
// by the clock.
func TestLateAuthorisationGoesToTheArbiter(t *testing.T) {
	h := setup(t)
	free, taken := h.hold("ada", []int{1}, 0), h.hold("bob", []int{2}, 0)
	h.pay(free, "ada", sandbox.CardLate)
	h.pay(taken, "bob", sandbox.CardLate)
	h.pay(h.hold("eve", []int{2}, 0), "eve", sandbox.CardApprove)
	h.late(free)
	h.late(taken)
	h.exec(`UPDATE sandbox_payments SET decide_at = now() WHERE state = 'processing'`)
	h.run(h.sandbox.Run)
	h.becomes(free, "sold")
	h.becomes(taken, "lost")
	h.run(h.desk.Run)
	h.quietens()
	if got := h.ledger(); got["captured"] != 2 || got["voided"] != 1 {
		t.Errorf("money: %v", got)
	}
	h.sound()
}

func TestAuthorisedAtTheCapIsJudgedNotExpired(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLost)
	h.exec(`UPDATE sandbox_payments SET state = 'authorized'`) // and nobody says so
	h.late(id)
	h.run(h.desk.Run)
	h.becomes(id, "sold")
	h.quietens()
	h.sound()
}

func TestExpiredBookingGivesALateAuthorisationBack(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardDecline)
	h.exec(`UPDATE bookings SET state = 'expired'`)
	payment := ask[string](h, `UPDATE sandbox_payments SET state = 'authorized' RETURNING id`) // its second word
	if status := h.notify(fmt.Sprintf(`{"id":"evt_1","type":"payment.authorized","payment":%q}`, payment)); status != http.StatusNoContent {
		t.Fatalf("webhook answered %d", status)
	}
	h.run(h.desk.Run)
	h.quietens()
	if got := h.ledger(); got["voided"] != 1 {
		t.Errorf("money: %v", got)
	}
	if r := h.get(id, "ada"); r.State != "expired" {
		t.Errorf("the booking is %s", r.State)
	}
}

func TestHeldBookingExpiresWhenItsHoldHas(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardDecline)
	h.late(id)
	if r := h.get(id, "ada"); r.State != "expired" { // judged when read
		t.Errorf("it is %s", r.State)
	}
	h.run(h.desk.Run)
	h.becomes(id, "expired")
}

func TestRunStopsEverythingItStarted(t *testing.T) {
	h := setup(t)
	http.DefaultClient.CloseIdleConnections()
	before := goleak.IgnoreCurrent()
	stop := h.run(h.desk.Run, h.sandbox.Run)
	h.pay(h.hold("ada", []int{1}, 0), "ada", sandbox.CardApprove)
	h.quietens()
	stop()
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}
