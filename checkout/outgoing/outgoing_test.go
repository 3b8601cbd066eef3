package outgoing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seatcast/checkout/outgoing"
)

// verified fails unless a message is signed with a secret.
func verified(t *testing.T, m message, secret string) {
	t.Helper()
	v, err := standardwebhooks.NewWebhook(secret)
	must(t, err)
	if err := v.Verify(m.body, m.header); err != nil {
		t.Errorf("%s: %v", m.header, err)
	}
}

func TestAMessageComesSignedAsStandardWebhooksHasIt(t *testing.T) {
	h := setup(t)
	w := h.add("")
	if !strings.HasPrefix(w.Secret, "whsec_") || !w.Enabled {
		t.Errorf("made %+v", w)
	}
	h.announce(outgoing.BookingSold, "opera")
	h.work()
	d := h.becomes(w.ID, outgoing.Delivered)
	all := h.other.came()
	if len(all) != 1 {
		t.Fatalf("%d came", len(all))
	}
	verified(t, all[0], w.Secret)
	var body struct {
		Type      string
		Timestamp time.Time
		Data      map[string]string
	}
	must(t, json.Unmarshal(all[0].body, &body))
	if body.Type != "booking.sold" || time.Since(body.Timestamp) > time.Minute || body.Data["event"] != "opera" || all[0].header.Get("Content-Type") != "application/json" {
		t.Errorf("it is %s, %+v", all[0].body, all[0].header)
	}
	if d.MessageID != all[0].id() || d.Type != outgoing.BookingSold || d.Event != "opera" || d.Body != string(all[0].body) ||
		len(d.Tries) != 1 || d.Tries[0].Status != http.StatusNoContent || d.Tries[0].Error != "" || d.NextAt != nil {
		t.Errorf("the log has %+v", d)
	}
	var again outgoing.Webhook
	h.call(http.MethodGet, "/webhooks/"+w.ID, "", http.StatusOK, &again)
	if again.Secret != "" {
		t.Error("the secret is told again")
	}
}

func TestTheSecretIsInTheDatabaseOnlyEncrypted(t *testing.T) {
	h := setup(t)
	w := h.add("")
	var sealed []byte
	must(t, h.pool.QueryRow(t.Context(), `SELECT sealed FROM webhook_secrets`).Scan(&sealed))
	if len(sealed) < 32 || bytes.Contains(sealed, []byte(w.Secret[len("whsec_"):][:8])) {
		t.Errorf("it is %q", sealed)
	}
	other, err := outgoing.New(outgoing.Options{Pool: h.pool, ServerKey: []byte("another server's key of 32 chars"), Log: slog.New(slog.DiscardHandler),
		HTTP: true, Private: true, Wait: func(time.Duration) time.Duration { return time.Hour }})
	must(t, err)
	h.hooks = other
	h.announce(outgoing.BookingSold, "opera")
	h.work()
	h.eventually(func() (string, bool) {
		d := h.deliveries(w.ID, "").Deliveries[0]
		return fmt.Sprintf("%+v", d), len(d.Tries) == 1 && strings.Contains(d.Tries[0].Error, "Rotate the secret")
	})
	if len(h.other.came()) != 0 {
		t.Error("it was sent, signed with what?")
	}
}

func TestASecretThatIsReplacedSignsForADayBesideTheNewOne(t *testing.T) {
	h := setup(t)
	h.work()
	w := h.add("")
	var rotated struct {
		outgoing.Webhook
		OldSecretUntil time.Time
	}
	h.call(http.MethodPost, "/webhooks/"+w.ID+"/rotate-secret", "", http.StatusOK, &rotated)
	if left := time.Until(rotated.OldSecretUntil); rotated.Secret == w.Secret || left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("rotated to %+v", rotated)
	}
	h.announce(outgoing.BookingSold, "opera")
	h.becomes(w.ID, outgoing.Delivered)
	verified(t, h.other.came()[0], w.Secret)
	verified(t, h.other.came()[0], rotated.Secret)
	h.exec(`UPDATE webhook_secrets SET ends_at = now() WHERE ends_at IS NOT NULL`)
	h.announce(outgoing.BookingSold, "opera")
	h.eventually(func() (string, bool) { return "it has not come", len(h.other.came()) == 2 })
	last := h.other.came()[1]
	verified(t, last, rotated.Secret)
	if signatures := strings.Fields(last.header.Get("webhook-signature")); len(signatures) != 1 {
		t.Errorf("signed by %d secrets", len(signatures))
	}
	for range 5 {
		h.call(http.MethodPost, "/webhooks/"+w.ID+"/rotate-secret", "", http.StatusOK, &rotated)
	}
	h.announce(outgoing.BookingSold, "opera")
	h.eventually(func() (string, bool) { return "it has not come", len(h.other.came()) == 3 })
	last = h.other.came()[2]
	verified(t, last, rotated.Secret)
	if signatures := strings.Fields(last.header.Get("webhook-signature")); len(signatures) != 3 {
		t.Errorf("replaced six times, signed by %d secrets", len(signatures))
	}
}

func TestAnIDThatIsNoTextIsOfNoWebhook(t *testing.T) {
	h := setup(t)
	for _, path := range []string{"", "/test", "/rotate-secret", "/deliveries"} {
		method := http.MethodPost
		if path == "" || path == "/deliveries" {
			method = http.MethodGet
		}
		for _, id := range []string{"%00", "wh_%00", "%ff"} {
			h.call(method, "/webhooks/"+id+path, "", http.StatusNotFound, nil)
		}
	}
	h.call(http.MethodDelete, "/webhooks/%00", "", http.StatusNotFound, nil)
}

func TestAFailureIsTriedAgainUnderTheSameIDUntilItIsTaken(t *testing.T) {
	h := setup(t)
	h.other.answers(func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(strings.Repeat("no\x00\xff", 1000)))
		case 2:
			http.Redirect(w, r, h.other.URL+"/elsewhere", http.StatusFound)
		case 3:
			panic(http.ErrAbortHandler)
		}
	})
	w := h.add("")
	h.announce(outgoing.BookingLost, "opera")
	h.work()
	d := h.becomes(w.ID, outgoing.Delivered)
	all := h.other.came()
	if len(all) != 4 || len(d.Tries) != 4 {
		t.Fatalf("%d came, of %+v", len(all), d.Tries)
	}
	for _, m := range all {
		if m.id() != d.MessageID || !bytes.Equal(m.body, all[0].body) {
			t.Errorf("it came as %s %s", m.id(), m.body)
		}
		verified(t, m, w.Secret)
	}
	if a := d.Tries[0]; a.Status != 500 || a.Error != "answered 500 Internal Server Error" || len(a.Answer) > 1024 || !strings.HasPrefix(a.Answer, "no\uFFFD\uFFFD") {
		t.Errorf("the first try is %+v", a)
	}
	if a := d.Tries[1]; a.Status != http.StatusFound {
		t.Errorf("the second try is %+v", a)
	}
	if a := d.Tries[2]; a.Status != 0 || a.Error == "" || strings.Contains(a.Error, h.other.URL) {
		t.Errorf("the third try is %+v", a)
	}
	if n := ask[int](h, `SELECT count(*) FROM webhooks WHERE failing_since IS NOT NULL`); n != 0 {
		t.Error("what has succeeded is failing")
	}
}

func ask[T any](h *house, sql string, args ...any) (v T) {
	h.t.Helper()
	must(h.t, h.pool.QueryRow(h.t.Context(), sql, args...).Scan(&v))
	return v
}

func TestAMessageNobodyTakesIsDeadAfterTenTriesInThreeDaysAndIsSentAgainWhenAskedFor(t *testing.T) {
	var log syncBuffer
	waits := make(chan time.Duration, 20)
	h := setup(t, func(o *outgoing.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Wait = func(d time.Duration) time.Duration { waits <- d; return time.Hour }
	})
	h.other.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= 10 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	w := h.add("")
	for range 10 {
		h.announce(outgoing.BookingSold, "opera")
	}
	h.exec(`UPDATE webhook_deliveries SET tries = id - (SELECT min(id) FROM webhook_deliveries)`) // as many have failed before
	h.work()
	d := h.becomes(w.ID, outgoing.Dead)
	var all time.Duration
	for range 10 {
		all += <-waits
	}
	if all != 75*time.Hour+35*time.Minute+5*time.Second || len(h.deliveries(w.ID, "state=pending").Deliveries) != 9 {
		t.Errorf("dead after %v", all)
	}
	h.eventually(func() (string, bool) { return log.String(), strings.Contains(log.String(), "outgoing webhook is dead") })
	h.call(http.MethodPost, fmt.Sprintf("/webhooks/deliveries/%d/redeliver", d.ID), "", http.StatusAccepted, nil)
	again := h.becomes(w.ID, outgoing.Delivered)
	if came := h.other.came(); again.ID != d.ID || len(again.Tries) != 2 || came[10].id() != d.MessageID {
		t.Errorf("sent again as %+v", again)
	}
	h.call(http.MethodPost, fmt.Sprintf("/webhooks/deliveries/%d/redeliver", d.ID), "", http.StatusAccepted, nil) // what was delivered, too
	h.eventually(func() (string, bool) { return "not sent again", len(h.other.came()) == 12 })
	h.call(http.MethodPost, "/webhooks/deliveries/99/redeliver", "", http.StatusNotFound, nil)
}

func TestOneThatIsGoneIsDisabledAndWhatItMissedIsSentWhenItIsBack(t *testing.T) {
	h := setup(t)
	h.other.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusGone)
		}
	})
	w := h.add("")
	h.work()
	h.announce(outgoing.BookingSold, "opera")
	h.eventually(func() (string, bool) {
		h.call(http.MethodGet, "/webhooks/"+w.ID, "", http.StatusOK, &w)
		return fmt.Sprintf("%+v", w), !w.Enabled
	})
	if w.DisabledWhy != "it answered 410 Gone" {
		t.Errorf("it is %+v", w)
	}
	h.announce(outgoing.BookingSold, "opera")
	p := h.deliveries(w.ID, "state=dead")
	if len(p.Deliveries) != 2 || len(p.Deliveries[0].Tries) != 0 {
		t.Fatalf("dead are %+v", p)
	}
	h.call(http.MethodPost, "/webhooks/"+w.ID+"/redeliver", `{"since":"2000-01-01T00:00:00Z"}`, http.StatusConflict, nil)
	h.call(http.MethodPost, "/webhooks/"+w.ID+"/test", "", http.StatusConflict, nil)
	h.call(http.MethodPost, fmt.Sprintf("/webhooks/deliveries/%d/redeliver", p.Deliveries[0].ID), "", http.StatusConflict, nil)

	h.call(http.MethodPatch, "/webhooks/"+w.ID, `{"enabled":true}`, http.StatusOK, nil)
	var again struct {
		Redelivered int
		More        bool
	}
	h.call(http.MethodPost, "/webhooks/"+w.ID+"/redeliver", `{"since":"2000-01-01T00:00:00Z"}`, http.StatusAccepted, &again)
	if again.Redelivered != 2 || again.More {
		t.Errorf("sent again: %+v", again)
	}
	h.eventually(func() (string, bool) {
		n := len(h.deliveries(w.ID, "state=delivered").Deliveries)
		return fmt.Sprint(n), n == 2
	})
}

func TestOneThatHasFailedForFiveDaysIsDisabled(t *testing.T) {
	var log syncBuffer
	h := setup(t, func(o *outgoing.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Wait = func(time.Duration) time.Duration { return time.Hour }
	})
	h.other.answers(func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	w := h.add("")
	h.announce(outgoing.BookingSold, "opera")
	h.work()
	h.eventually(func() (string, bool) {
		h.call(http.MethodGet, "/webhooks/"+w.ID, "", http.StatusOK, &w)
		return "it does not fail", w.FailingSince != nil
	})
	h.exec(`UPDATE webhooks SET failing_since = now() - interval '5 days'`)
	h.announce(outgoing.BookingSold, "opera")
	h.eventually(func() (string, bool) {
		h.call(http.MethodGet, "/webhooks/"+w.ID, "", http.StatusOK, &w)
		return "it is enabled", !w.Enabled
	})
	h.eventually(func() (string, bool) { return "pending", len(h.deliveries(w.ID, "state=dead").Deliveries) == 2 })
	if !strings.Contains(log.String(), "webhook is disabled") {
		t.Errorf("the log has %s", log.String())
	}
}

func TestEachIsToldOfWhatItWants(t *testing.T) {
	h := setup(t)
	h.work()
	all, sold, opera := h.add(""), h.add(`,"types":["booking.sold"]`), h.add(`,"events":["opera"],"types":null`)
	h.announce(outgoing.BookingSold, "opera")
	h.announce(outgoing.BookingLost, "circus")
	h.announce(outgoing.EventCancelled, "opera")
	for id, want := range map[string]int{all.ID: 3, sold.ID: 1, opera.ID: 2} {
		if n := len(h.deliveries(id, "").Deliveries); n != want {
			t.Errorf("%d messages, not %d", n, want)
		}
	}
	var refused struct{ Code, Detail string }
	h.call(http.MethodPatch, "/webhooks/"+sold.ID, `{"events":["circus","nope"]}`, http.StatusBadRequest, &refused)
	h.call(http.MethodPost, "/webhooks", `{"url":"https://example.com","events":["booking.sold"]}`, http.StatusBadRequest, nil)
	if refused.Code != "bad_events" || !strings.Contains(refused.Detail, `["nope"]`) || !strings.Contains(refused.Detail, "booking.refunded") {
		t.Errorf("an event that there is not: %+v", refused)
	}
	h.call(http.MethodPatch, "/webhooks/"+sold.ID, `{"types":null,"events":["circus"]}`, http.StatusOK, nil)
	h.announce(outgoing.BookingLost, "circus")
	if n := len(h.deliveries(sold.ID, "").Deliveries); n != 2 {
		t.Errorf("%d messages after it was changed", n)
	}
	h.eventually(func() (string, bool) { n := len(h.other.came()); return fmt.Sprint(n, " came"), n == 8 })
}

func TestATestIsSentToOneAndTriedOnce(t *testing.T) {
	h := setup(t)
	h.other.answers(func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	w, _ := h.add(`,"types":["booking.sold"]`), h.add("")
	h.work()
	h.call(http.MethodPost, "/webhooks/"+w.ID+"/test", "", http.StatusAccepted, nil)
	d := h.becomes(w.ID, outgoing.Dead)
	if all := h.other.came(); len(d.Tries) != 1 || len(all) != 1 || !strings.Contains(string(all[0].body), `"type":"ping"`) {
		t.Errorf("%+v, %d came", d, len(all))
	}
}

func TestAProcessThatEndsBeforeATryIsNotedSendsItAgainWithItsID(t *testing.T) {
	h := setup(t)
	came, held := make(chan struct{}), make(chan struct{})
	h.other.answers(func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			close(came)
			<-held
		}
	})
	t.Cleanup(func() { close(held) })
	w := h.add("")
	h.announce(outgoing.BookingSold, "opera")
	stop := h.work()
	<-came
	stop()
	if d := h.deliveries(w.ID, "").Deliveries[0]; d.State != outgoing.Pending || len(d.Tries) != 0 {
		t.Errorf("noted is %+v", d)
	}
	h.work()
	h.becomes(w.ID, outgoing.Delivered)
	if all := h.other.came(); len(all) != 2 || all[0].id() != all[1].id() {
		t.Errorf("%d came", len(all))
	}
}

func TestADeliveryThatHasLostItsJobGetsAnother(t *testing.T) {
	h := setup(t)
	w := h.add("")
	h.announce(outgoing.BookingSold, "opera")
	h.exec(`DELETE FROM river_job`)
	h.exec(`UPDATE webhook_deliveries SET due_at = now() - interval '3 minutes'`)
	h.announce(outgoing.BookingSold, "opera") // whose job is there
	h.exec(`UPDATE webhook_deliveries SET due_at = now() - interval '3 minutes'`)
	h.run()
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT count(*) FROM river_job`)
		return fmt.Sprint(n, " jobs"), n == 2
	})
	h.work()
	h.eventually(func() (string, bool) { return "not sent", len(h.deliveries(w.ID, "state=delivered").Deliveries) == 2 })
	if n := len(h.other.came()); n != 2 {
		t.Errorf("%d came", n)
	}
}

func TestOneThatHangsKeepsNoOtherWaiting(t *testing.T) {
	h := setup(t)
	held := make(chan struct{})
	slow := receive(t)
	slow.answers(func(int, http.ResponseWriter, *http.Request) { <-held })
	t.Cleanup(func() { close(held) })
	h.call(http.MethodPost, "/webhooks", fmt.Sprintf(`{"url":%q,"types":["booking.lost"]}`, slow.URL), http.StatusCreated, nil)
	w := h.add(`,"types":["booking.sold"]`)
	for range 40 {
		h.announce(outgoing.BookingLost, "opera")
	}
	h.announce(outgoing.BookingSold, "opera")
	h.work()
	h.becomes(w.ID, outgoing.Delivered)
	if n := len(slow.came()); n > 10 {
		t.Errorf("%d tries at once of one", n)
	}
}

func TestWhatIsOldIsForgottenUnlessItIsStillToBeSent(t *testing.T) {
	h := setup(t, func(o *outgoing.Options) { o.Keep = 10 * 24 * time.Hour })
	w := h.add("")
	for range 3 {
		h.announce(outgoing.BookingSold, "opera")
	}
	h.exec(`UPDATE webhook_messages SET at = now() - interval '11 days' WHERE id IN (SELECT id FROM webhook_messages ORDER BY id LIMIT 2)`)
	h.exec(`UPDATE webhook_deliveries SET state = 'delivered' WHERE message_id = (SELECT min(id) FROM webhook_messages)`)
	h.exec(`INSERT INTO webhook_tries (delivery_id, at, status, ms, error, answer) SELECT id, now(), 200, 1, '', '' FROM webhook_deliveries`)
	h.run()
	h.eventually(func() (string, bool) {
		n := len(h.deliveries(w.ID, "").Deliveries)
		return fmt.Sprint(n, " are kept"), n == 2
	})
	h.call(http.MethodDelete, "/webhooks/"+w.ID, "", http.StatusNoContent, nil)
	h.call(http.MethodGet, "/webhooks/"+w.ID+"/deliveries", "", http.StatusNotFound, nil)
	if n := ask[int](h, `SELECT count(*) FROM webhook_tries`); n != 0 {
		t.Errorf("%d tries are left of a webhook that is deleted", n)
	}
}

func TestAWebhookWhoseLogIsBeingDeletedKeepsNoSaleWaiting(t *testing.T) {
	h := setup(t)
	w := h.add("")
	h.announce(outgoing.BookingSold, "opera")
	noting, err := h.pool.Begin(t.Context())
	must(t, err)
	_, err = noting.Exec(t.Context(), `SELECT FROM webhook_deliveries FOR UPDATE`)
	must(t, err)
	deleted := make(chan struct{})
	go func() {
		defer close(deleted)
		h.echo.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, "/v1/admin/webhooks/"+w.ID, nil))
	}()
	h.eventually(func() (string, bool) {
		return "nobody waits", ask[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	h.exec(`SELECT FROM webhooks FOR KEY SHARE NOWAIT`) // as a sale does
	must(t, noting.Rollback(t.Context()))
	<-deleted
	if n := ask[int](h, `SELECT count(*) FROM webhooks`); n != 0 {
		t.Error("it is not deleted")
	}
}

func TestTheLogIsReadNewestFirstPageByPage(t *testing.T) {
	h := setup(t)
	w := h.add("")
	for range 5 {
		h.announce(outgoing.BookingSold, "opera")
	}
	var seen []int64
	for query := "limit=2"; ; {
		p := h.deliveries(w.ID, query)
		for _, d := range p.Deliveries {
			seen = append(seen, d.ID)
		}
		if p.Next == 0 {
			break
		}
		query = fmt.Sprintf("limit=2&state=pending&before=%d", p.Next)
	}
	if len(seen) != 5 || !slices.IsSortedFunc(seen, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("read %v", seen)
	}
	for _, bad := range []string{"limit=0", "limit=201", "state=lost", "before=x"} {
		h.call(http.MethodGet, "/webhooks/"+w.ID+"/deliveries?"+bad, "", http.StatusBadRequest, nil)
	}
}

func TestWhereMessagesMayBeSent(t *testing.T) {
	strict := setup(t, func(o *outgoing.Options) { o.HTTP, o.Private = false, false })
	lax := setup(t)
	for url, want := range map[string][2]int{ // strict, lax
		"https://example.com/seatcast?for=us": {201, 201},
		"https://93.184.216.34/":              {201, 201},
		"http://example.com/":                 {400, 201},
		"https://10.0.0.7/":                   {400, 201},
		"https://[::1]/":                      {400, 201},
		"https://[::ffff:169.254.169.254]/":   {400, 201},
		"https://100.64.1.1/":                 {400, 201},
		"https://[fec0::1]/":                  {400, 201},
		"https://[2001:0:1::1]/":              {400, 201},
		"https://ann:secret@example.com/":     {400, 400},
		"https://example.com/#here":           {400, 400},
		"ftp://example.com/":                  {400, 400},
		"https:///path":                       {400, 400},
		"example.com":                         {400, 400},
		"":                                    {400, 400},
		"https://example.com/" + strings.Repeat("x", 2048): {400, 400},
	} {
		body := fmt.Sprintf(`{"url":%q}`, url)
		strict.call(http.MethodPost, "/webhooks", body, want[0], nil)
		lax.call(http.MethodPost, "/webhooks", body, want[1], nil)
	}
	for _, body := range []string{`{}`, `{"url":"https://example.com","types":["booking.held"]}`, `{"url":"https://example.com","types":[]}`,
		`{"url":"https://example.com","events":[""]}`, `{"url":"https://example.com","events":["op\u0000era"]}`, `{"url":"https://example.com","enabled":false}`} {
		lax.call(http.MethodPost, "/webhooks", body, http.StatusBadRequest, nil)
	}
}

func TestANameThatLeadsInsideIsRefusedWhenItIsSentTo(t *testing.T) {
	h := setup(t, func(o *outgoing.Options) { o.Private = false })
	var w outgoing.Webhook
	h.call(http.MethodPost, "/webhooks", fmt.Sprintf(`{"url":%q}`, strings.Replace(h.other.URL, "127.0.0.1", "localhost", 1)), http.StatusCreated, &w)
	h.announce(outgoing.BookingSold, "opera")
	h.work()
	h.eventually(func() (string, bool) {
		d := h.deliveries(w.ID, "").Deliveries[0]
		return fmt.Sprintf("%+v", d), len(d.Tries) > 0 && strings.Contains(d.Tries[0].Error, "SEATCAST_WEBHOOKS_PRIVATE")
	})
	if len(h.other.came()) > 0 {
		t.Error("it was sent")
	}
}

func TestThereAreTwentyWebhooksAtMost(t *testing.T) {
	h := setup(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for range 25 {
		wg.Go(func() {
			w := httptest.NewRecorder()
			h.echo.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/admin/webhooks", strings.NewReader(`{"url":"https://example.com"}`)))
			mu.Lock()
			defer mu.Unlock()
			codes[w.Code]++
		})
	}
	wg.Wait()
	if codes[http.StatusCreated] != 20 || codes[http.StatusConflict] != 5 {
		t.Errorf("answered %v", codes)
	}
	var all struct{ Webhooks []outgoing.Webhook }
	h.call(http.MethodGet, "/webhooks", "", http.StatusOK, &all)
	if len(all.Webhooks) != 20 {
		t.Errorf("there are %d", len(all.Webhooks))
	}
}

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
