package checkout_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

func auditing(every time.Duration) setting {
	return func(_ *house, o *checkout.Options, _ *sandbox.Options) { o.AuditEvery = every }
}

func TestWhatRedisHasForgottenItIsToldAgain(t *testing.T) {
	h := setup(t, auditing(50*time.Millisecond))
	id := h.hold("ada", []int{1, 2}, 3)
	h.pay(id, "ada", sandbox.CardApprove)
	h.becomes(id, "sold")
	h.holds.forget(1, 10) // sold, and shown as free
	h.holds.forget(7, 10) // free, and shown as sold
	h.run(h.desk.Run)
	h.eventually(func() (string, bool) {
		shown := fmt.Sprint(h.holds.shows(1), h.holds.shows(2), h.holds.shows(7), h.holds.leftIn("floor"))
		return "Redis shows " + shown, shown == "true true false 7"
	})
}

func TestAnAuditThatFindsNothingTellsNothing(t *testing.T) {
	var told atomic.Int32
	h := setup(t, auditing(50*time.Millisecond))
	id := h.hold("ada", []int{1, 2}, 3)
	h.pay(id, "ada", sandbox.CardApprove)
	h.becomes(id, "sold")
	h.holds.spend = func(context.Context, seatmap.Marks) error { told.Add(1); return nil }
	h.run(h.desk.Run)
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT count(*) FROM river_job WHERE kind = 'audit' AND state = 'completed'`)
		return fmt.Sprintf("%d audits", n), n >= 3
	})
	if n := told.Load(); n > 0 {
		t.Errorf("told %d times of what it knew", n)
	}
}
