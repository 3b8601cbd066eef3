package checkout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

func TestDuplicateWebhookHasOneEffect(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	payment := ask[string](h, `UPDATE sandbox_payments SET state = 'authorized' RETURNING id`)
	one := fmt.Sprintf(`{"id":"evt_1","type":"payment.authorized","payment":%q}`, payment)
	twin := fmt.Sprintf(`{"id":"evt_2","type":"payment.authorized","payment":%q}`, payment)
	for _, body := range []string{one, one, twin} {
		if status := h.notify(body); status != http.StatusNoContent {
			t.Errorf("webhook answered %d", status)
		}
	}
	if n := ask[int](h, `SELECT count(*) FROM webhook_inbox`); n != 1 {
		t.Errorf("%d notices taken in", n)
	}
	if n := ask[int](h, `SELECT count(*) FROM river_job WHERE kind = 'capture'`); n != 1 {
		t.Errorf("%d captures queued", n)
	}
	h.run(h.desk.Run)
	h.quietens()
	h.sound()
}

func TestWebhooksSentTwiceCaptureOnce(t *testing.T) {
	h := setup(t)
	h.run(h.desk.Run, h.sandbox.Run)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardDuplicate)
	h.quietens()
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT count(*) FROM sandbox_webhooks WHERE sent_at IS NOT NULL`)
		return fmt.Sprintf("%d webhooks answered", n), n == 4 // authorized and captured, each twice
	})
	if n := ask[int](h, `SELECT count(*) FROM webhook_inbox`); n != 2 {
		t.Errorf("%d notices taken in", n)
	}
	h.sound()
}

func TestWebhookBeforeTheAnswerSells(t *testing.T) {
	var p provider
	h := setup(t, wrapped(&p))
	id := h.hold("ada", []int{1}, 0)
	p.create = func(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
		got, err := p.Provider.Create(ctx, c)
		if state := ask[string](h, `SELECT state FROM bookings WHERE id = $1`, id); state != "sold" {
			t.Errorf("before the answer the booking is %s", state)
		}
		return got, err
	}
	if r := h.pay(id, "ada", sandbox.CardEarly); r.State != "sold" || r.Attempt.State != "capturing" {
		t.Errorf("payment: %+v", r)
	}
	if n := ask[int](h, `SELECT count(*) FROM river_job WHERE kind = 'capture'`); n != 1 {
		t.Errorf("%d captures queued", n)
	}
}

func TestSlowVerdictArrivesByWebhook(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	if r := h.pay(id, "ada", sandbox.CardSlow); r.State != "paying" || r.Attempt.State != "created" {
		t.Fatalf("payment: %+v", r)
	}
	h.run(h.sandbox.Run)
	h.becomes(id, "sold")
}

func TestForgedWebhooksChangeNothing(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	payment := ask[string](h, `UPDATE sandbox_payments SET state = 'authorized' RETURNING id`)
	body := []byte(fmt.Sprintf(`{"id":"evt_1","type":"payment.authorized","payment":%q}`, payment))
	for name, signature := range map[string]string{
		"none":         "",
		"other secret": sandbox.Sign([]byte("guessed"), body, time.Now()),
		"too old":      sandbox.Sign([]byte(secret), body, time.Now().Add(-6*time.Minute)),
		"other body":   sandbox.Sign([]byte(secret), append([]byte(" "), body...), time.Now()),
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/payments/webhook/sandbox", bytes.NewReader(body))
		must(t, err)
		req.Header.Set(sandbox.SignatureHeader, signature)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		must(t, resp.Body.Close())
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	if r := h.get(id, "ada"); r.State != "paying" {
		t.Errorf("the booking is %s", r.State)
	}
	if r := h.call(http.MethodPost, "/payments/webhook/nobody", "", nil); r.Status != http.StatusNotFound {
		t.Errorf("unknown provider: %+v", r)
	}
}

func TestWebhookOfAPaymentThatIsNotOursIsAnsweredAndForgotten(t *testing.T) {
	h := setup(t)
	p, err := h.sandbox.Create(t.Context(), checkout.Charge{Key: "elsewhere", Method: sandbox.CardApprove, Money: seatmap.Money{Amount: 1, Currency: "EUR"}})
	must(t, err)
	if status := h.notify(fmt.Sprintf(`{"id":"evt_1","type":"payment.authorized","payment":%q}`, p.ID)); status != http.StatusNoContent {
		t.Errorf("webhook answered %d", status)
	}
	if n := ask[int](h, `SELECT count(*) FROM webhook_inbox`); n != 0 {
		t.Errorf("%d notices taken in", n)
	}
}

func TestWebhookOfAPaymentItsProviderDoesNotKnowIsAnsweredAndForgotten(t *testing.T) {
	h := setup(t)
	if status := h.notify(`{"id":"evt_1","type":"payment.authorized","payment":"pay_of_another_day"}`); status != http.StatusNoContent {
		t.Errorf("webhook answered %d", status)
	}
	if n := ask[int](h, `SELECT count(*) FROM webhook_inbox`); n != 0 {
		t.Errorf("%d notices taken in", n)
	}
}

func TestWebhookWhoseEffectFailsIsNotRemembered(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardLate)
	payment := ask[string](h, `UPDATE sandbox_payments SET state = 'authorized' RETURNING id`)
	body := fmt.Sprintf(`{"id":"evt_1","type":"payment.authorized","payment":%q}`, payment)
	h.exec(`ALTER TABLE tickets ADD CONSTRAINT broken CHECK (false)`)
	if status := h.notify(body); status/100 == 2 {
		t.Errorf("webhook answered %d although nothing came of it", status)
	}
	h.exec(`ALTER TABLE tickets DROP CONSTRAINT broken`)
	if status := h.notify(body); status != http.StatusNoContent {
		t.Errorf("webhook sent again answered %d", status)
	}
	h.becomes(id, "sold")
}

func TestWebhooksAreSentUntilSomebodyAnswers(t *testing.T) {
	h := setup(t, func(h *house, o *checkout.Options, s *sandbox.Options) { s.URL += "-moved" })
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", sandbox.CardSlow)
	stop := h.run(h.sandbox.Run)
	h.eventually(func() (string, bool) {
		return "no webhook tried", ask[int](h, `SELECT coalesce(max(tries), 0) FROM sandbox_webhooks`) > 0
	})
	stop()
	if n := ask[int](h, `SELECT count(*) FROM sandbox_webhooks WHERE sent_at IS NOT NULL`); n != 0 {
		t.Error("a 404 counts as delivered")
	}
	again := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(h.pool), URL: h.url + "/payments/webhook/sandbox", Secret: secret, Every: 10 * time.Millisecond})
	h.run(again.Run)
	h.becomes(id, "sold")
}

func TestMirrorOfAColdGateMayAskForTheTruth(t *testing.T) {
	h := setup(t)
	var truth seatmap.Truth
	h.holds.spend = func(ctx context.Context, _ seatmap.Marks) error {
		return h.store.Truth(ctx, event, func(_ context.Context, got seatmap.Truth) error {
			truth = got
			return nil
		})
	}
	h.pay(h.hold("bob", []int{8}, 0), "bob", sandbox.CardDecline)
	h.pay(h.hold("ada", []int{1}, 2), "ada", sandbox.CardApprove)
	if len(truth.Sold) != 1 || truth.Sold[0] != 1 || truth.Left["floor"] != 8 || truth.Seats != 40 {
		t.Errorf("truth: %+v", truth)
	}
	if len(truth.Baskets) != 1 || truth.Baskets[0].User != "bob" || truth.Baskets[0].Seats[0] != 8 || truth.Baskets[0].State != seatmap.BasketHeld {
		t.Errorf("baskets: %+v", truth.Baskets)
	}
	if err := h.store.Truth(t.Context(), "ballet", nil); !errors.Is(err, seatmap.ErrNoEvent) {
		t.Errorf("truth of no event: %v", err)
	}
}
