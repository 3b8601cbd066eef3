package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// another attempt of the booking.
const another = `INSERT INTO attempts (id, booking_id, provider, method, request_hash, currency, amount, reason, state)
	SELECT 'at_2', id, 'sandbox', '', '', 'EUR', 7, 'account_closed', `

// wrongs are contradictions by hand, by the kind that names them. The booking
// is sold, with seats 1 and 2 and a place.
var wrongs = map[string]struct {
	sql  string
	row  string   // what its row says
	also []string // kinds that name the same contradiction
}{
	"seat_without_ticket": {sql: `UPDATE tickets SET state = 'void' WHERE i = 2`, row: "seat A-2", also: []string{"amount_mismatch"}},
	"ticket_without_seat": {sql: `UPDATE seats SET status = 'available', booking_id = NULL WHERE i = 1`, row: "seat number 1"},
	"seat_twice": {sql: `DROP INDEX tickets_one_a_seat;
		INSERT INTO tickets (id, event_id, booking_id, user_id, i, price) SELECT 'tk_2', event_id, booking_id, user_id, i, 0 FROM tickets WHERE i = 1`,
		row: "seat number 1, tickets "},
	"area_count":         {sql: `UPDATE areas SET sold = 4`, row: "floor counts 4 and has 1"},
	"ticket_of_no_sale":  {sql: `UPDATE bookings SET state = 'refunded'; UPDATE tickets SET state = 'void' WHERE i IS NULL; UPDATE areas SET sold = 0; UPDATE tickets SET state = 'void' WHERE i = 2; UPDATE seats SET status = 'available', booking_id = NULL WHERE i = 2; UPDATE attempts SET refunded = 1500`, row: "which is refunded"},
	"sale_without_money": {sql: `UPDATE attempts SET state = 'voided'`, row: event + "."},
	"money_without_ticket": {sql: `UPDATE tickets SET state = 'void'; UPDATE areas SET sold = 0; UPDATE seats SET status = 'available', booking_id = NULL`,
		row: "is captured, 2500 EUR"},
	"paid_twice":      {sql: `DROP INDEX attempts_one_capture; ` + another + `'capturing' FROM bookings`, row: "attempts at_2, ", also: []string{"amount_mismatch"}},
	"amount_mismatch": {sql: `UPDATE attempts SET refunded = 100`, row: "tickets 2500, money 2400"},
	"payment_open":    {sql: another + `'authorized' FROM bookings`, row: "is authorized"},
	"refund_failed":   {sql: another + `'refund_failed' FROM bookings`, row: "7 EUR: account_closed"},
	"refund_returned": {sql: `INSERT INTO refunds (id, event_id, booking_id, attempt_id, state, tickets, currency, amount, seats, reason, operator, failure)
			SELECT 'rf_1', 'opera', booking_id, id, 'failed', '{tk}', 'EUR', 1000, 'on_sale', 'rain', 'ann', 'account_closed' FROM attempts;
		UPDATE tickets SET state = 'void', refund_id = 'rf_1' WHERE i = 2; UPDATE seats SET status = 'available', booking_id = NULL WHERE i = 2`, row: "1000: account_closed"},
	"cancelled_not_refunded": {sql: `INSERT INTO refunds (id, event_id, booking_id, attempt_id, state, tickets, currency, amount, seats, reason, operator, failure, cancels)
			SELECT 'rf_1', 'opera', booking_id, id, 'failed', '{tk}', 'EUR', 2500, 'killed', 'rain', 'ann', 'account_closed', true FROM attempts`, row: "2500 EUR: account_closed"},
	"refund_unasked": {sql: `INSERT INTO refunds (id, event_id, booking_id, attempt_id, tickets, currency, amount, seats, reason, operator, asked_at)
			SELECT 'rf_1', 'opera', booking_id, id, '{tk}', 'EUR', 0, 'on_sale', 'rain', 'ann', now() - interval '6 minutes' FROM attempts`, row: "refund rf_1 of booking"},
	"booking_overdue": {sql: `INSERT INTO bookings (id, event_id, user_id, state, seats, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
		VALUES ('opera.late', 'opera', 'bob', 'held', '{9}', 'EUR', 1000, '{}', '', now(), now() - interval '6 minutes', now())`, row: "opera.late is held"},
	"money_late": {sql: `UPDATE attempts SET state = 'capturing', updated_at = now() - interval '6 minutes'`, row: "is capturing since"},
	"payment_unasked": {sql: `UPDATE bookings SET state = 'paying'; UPDATE seats SET status = 'available', booking_id = NULL; UPDATE areas SET sold = 0;
		DELETE FROM tickets; UPDATE attempts SET state = 'created', asked_at = now() - interval '6 minutes'`, row: "is created"},
	"job_stuck": {sql: `UPDATE river_job SET state = 'retryable', attempt = 7, finalized_at = NULL, errors = ARRAY['{"error":"no money today"}'::jsonb]
		WHERE kind = 'capture'`, row: "7 failures: no money today"},
	"mirror_late": {sql: `UPDATE seats SET mirror_due = true WHERE i = 1; UPDATE bookings SET updated_at = now() - interval '2 minutes'`, row: "seat A-1, sold"},
}

func TestEveryContradictionIsFoundAndNamed(t *testing.T) {
	for _, kind := range checkout.Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			wrong, ok := wrongs[kind]
			if !ok {
				t.Fatal("nothing shows that it is found")
			}
			h := setup(t)
			id := h.hold("ada", []int{1, 2}, 1)
			h.pay(id, "ada", sandbox.CardApprove)
			stop := h.run(h.desk.Run)
			h.attemptBecomes(id, "captured")
			stop()
			h.sound()
			for _, sql := range strings.Split(wrong.sql, ";") {
				h.exec(sql)
			}
			r, err := h.store.Check(t.Context())
			must(t, err)
			var found []string
			for _, f := range r.Faults {
				found = append(found, f.Kind)
				if f.Kind == kind && (f.Count != 1 || len(f.Rows) != 1 || !strings.HasPrefix(f.Rows[0], event+": ") || !strings.Contains(f.Rows[0], wrong.row)) {
					t.Errorf("it should say %q: %v", wrong.row, f)
				}
				if f.What == "" || f.Why == "" || f.Do == "" {
					t.Errorf("it should say what, why and what to do: %+v", f)
				}
			}
			slices.Sort(found)
			if want := slices.Sorted(slices.Values(append(wrong.also, kind))); !slices.Equal(found, want) {
				t.Errorf("found %q, want %q", found, want)
			}
			if other, err := h.store.Check(t.Context(), "another"); err != nil || len(other.Faults) > 0 {
				t.Errorf("another event has it: %v, %v", other, err)
			}
		})
	}
}

func TestMirrorsOfClosedSeatsAreLateOnceNothingHappens(t *testing.T) {
	h := setup(t)
	h.exec(`UPDATE seats SET mirror_due = true, status = 'unavailable', killed = 'a pillar', killed_by = 'ann' WHERE i = 1`)
	faults := func() int {
		t.Helper()
		r, err := h.store.Check(t.Context(), event)
		must(t, err)
		return len(r.Faults)
	}
	if n := faults(); n != 1 {
		t.Errorf("%d faults of a seat nobody was told of", n)
	}
	h.exec(`INSERT INTO admin_calls (request_id, operator, address, method, path, event_id, body, body_bytes) VALUES ('', 'ann', '', '', '', $1, '', 0)`, event)
	if n := faults(); n != 0 {
		t.Errorf("%d faults of a seat that was closed just now", n)
	}
}

func TestManyRowsAreCountedAndSomeNamed(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{1}, 0), "ada", sandbox.CardApprove)
	h.exec(`UPDATE seats SET status = 'sold', booking_id = (SELECT id FROM bookings)`)
	r, err := h.store.Check(t.Context(), event)
	must(t, err)
	if len(r.Faults) != 1 || r.Faults[0].Count != 39 || len(r.Faults[0].Rows) != 20 {
		t.Errorf("%v", r.Faults)
	}
}

func TestABusyHouseHasNoContradictionAtAnyMoment(t *testing.T) {
	h := setup(t, asking(20*time.Millisecond), func(_ *house, _ *checkout.Options, s *sandbox.Options) {
		s.Late, s.Authenticate, s.Lapse, s.Down = 300*time.Millisecond, 300*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	})
	h.run(h.desk.Run, h.sandbox.Run)
	over, checked := make(chan struct{}), make(chan error)
	go func() {
		for n := 1; ; n++ {
			r, err := h.store.Check(t.Context(), event)
			if err == nil && len(r.Faults) > 0 {
				err = fmt.Errorf("check %d: %v", n, r.Faults)
			}
			select {
			case <-over:
				checked <- err
				return
			default:
			}
			if err != nil {
				checked <- err
				return
			}
		}
	}()
	var failed error
	for i := range 36 {
		card := sandbox.Cards[i%len(sandbox.Cards)].Number
		user := fmt.Sprint("user", i)
		id := h.hold(user, []int{i % 25, i%25 + 1}, i%2) // others want the same seats
		failed = errors.Join(failed, h.try(http.MethodPost, "/bookings/"+id+"/payment", user, map[string]string{"paymentMethod": card}, new(reply)))
	}
	if failed == nil {
		h.quietens()
	}
	close(over)
	must(t, errors.Join(failed, <-checked))
	h.sound()
}

func TestWhatAnInspectionFindsIsAMetric(t *testing.T) {
	h := setup(t, auditing(50*time.Millisecond))
	h.pay(h.hold("ada", []int{1}, 0), "ada", sandbox.CardApprove)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(h.desk)
	metrics := func() string {
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
		return answer.Body.String()
	}
	if text := metrics(); !strings.Contains(text, "checkout_invariant_checked_timestamp_seconds 0\n") {
		t.Errorf("before anybody looked:\n%s", text)
	}
	h.exec(`UPDATE tickets SET state = 'void'`)
	h.run(h.desk.Run)
	counts := func(n string) {
		t.Helper()
		h.eventually(func() (string, bool) {
			text := metrics()
			return text, strings.Contains(text, `checkout_invariant_violations{kind="seat_without_ticket"} `+n+"\n")
		})
	}
	counts("1")
	h.exec(`UPDATE tickets SET state = 'live'`)
	counts("0")
}

func TestWhatRedisShowsIsComparedAndNothingIsChanged(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{1, 2}, 3), "ada", sandbox.CardApprove)
	compare := func(redis checkout.Shower) []string {
		t.Helper()
		differ, err := h.store.Compare(t.Context(), event, redis)
		must(t, err)
		return differ
	}
	if got := compare(h.holds); len(got) > 0 {
		t.Errorf("all is told, and %q differ", got)
	}
	h.holds.forget(1, 10) // sold, and shown as free
	h.holds.forget(7, 10) // free, and shown as sold
	for range 2 {
		if got := compare(h.holds); !slices.Equal(got, []string{"seat A-1, which is sold", "seat A-7, which is available", "area floor, which has 7 left"}) {
			t.Errorf("%q", got)
		}
	}
	if got := compare(noMap{}); len(got) > 0 {
		t.Errorf("without a map %q differ", got)
	}
	h.exec(`UPDATE seats SET mirror_due = true WHERE i IN (1, 7)`) // Redis has not been told
	h.exec(`UPDATE areas SET mirror_due = true`)
	if got := compare(h.holds); len(got) > 0 {
		t.Errorf("it is due, and %q differ", got)
	}
}

// noMap is a Redis that knows nothing.
type noMap struct{}

func (noMap) Shown(context.Context, string) (seatmap.Map, map[string]int, error) {
	return nil, nil, nil
}
