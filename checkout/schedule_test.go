package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

const schedules = 1000

// firstSeed is the seed of the first schedule, and onlySeed names one to be run
// alone, which then tells its story.
const (
	firstSeed = 1
	onlySeed  = "SEATCAST_TEST_SCHEDULE"
)

// Buyers with several tabs and cards race for the same seats, change their minds
// and ask again; webhooks come twice, in any order, late or never; jobs run when
// they like, and any of it in the middle of a call to the provider. Whatever the
// order: seats sold, live tickets and money are the same thing, and the buyer is
// told what is so. Each schedule is its seed's, and an event's of its own.
func TestNoScheduleOfWebhooksAndBuyersChargesWithoutSeats(t *testing.T) {
	t.Parallel()
	seeds := make([]uint64, schedules)
	for k := range seeds {
		seeds[k] = firstSeed + uint64(k)
	}
	if one, err := strconv.ParseUint(os.Getenv(onlySeed), 10, 64); err == nil {
		seeds = []uint64{one}
	}
	h := setup(t)
	ids := make([]string, len(seeds))
	for k, seed := range seeds {
		ids[k] = eventOf(seed)
	}
	for _, sql := range []string{
		`INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user)
			SELECT id, name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user
			FROM (SELECT unnest($1::text[]) AS id) n, (SELECT name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user FROM events) e`,
		`INSERT INTO seats (event_id, i, ticket_id, category) SELECT id, i, 'A-' || i, 'Stalls' FROM unnest($1::text[]) id, generate_series(0, 4) i`,
		`INSERT INTO areas (event_id, area, category, capacity) SELECT id, 'floor', 'Floor', 2 FROM unnest($1::text[]) id`,
	} {
		h.exec(sql, ids)
	}
	all := make([]*schedule, len(seeds))
	var g errgroup.Group
	g.SetLimit(4)
	for k, seed := range seeds {
		g.Go(func() error {
			s, err := h.schedule(seed)
			if err == nil {
				err = s.run()
			}
			if err != nil {
				return fmt.Errorf("schedule %d: %w, after\n%s", seed, err, strings.Join(s.story, "\n"))
			}
			all[k] = s
			return nil
		})
	}
	must(t, g.Wait())
	h.judge(all)
}

func eventOf(seed uint64) string { return "schedule-" + strconv.FormatUint(seed, 10) }

// schedule is a house of 5 seats and 2 places, and what happens in it by chance.
type schedule struct {
	*house
	ctx      context.Context
	rand     *rand.Rand
	event    string
	holds    *fakeHolds
	desk     *checkout.Desk
	bookings []string // of ada, bea and cyd, in turn
	depth    int      // of things that happen while a provider is asked
	broke    error
	story    []string
}

var buyers = []string{"ada", "bea", "cyd"}

func (h *house) schedule(seed uint64) (*schedule, error) {
	s := &schedule{house: h, ctx: h.t.Context(), rand: rand.New(rand.NewPCG(seed, 0)), event: eventOf(seed), holds: newFakeHolds()}
	sale := *h.sale
	sale.Event = s.event
	bank := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(h.pool), Secret: secret, URL: "http://127.0.0.1:1",
		Delay: time.Hour, Late: time.Hour, Authenticate: time.Hour, Lapse: time.Hour, Down: time.Hour, Every: time.Hour})
	var err error
	s.desk, err = checkout.New(checkout.Options{Store: h.store, Holds: s.holds, Sales: sales{&sale}, Log: slog.New(slog.DiscardHandler),
		Providers: []checkout.Provider{meanwhile{bank, s}}, AskAfter: time.Nanosecond})
	if err != nil {
		return nil, err
	}
	for n := range 4 {
		first := s.rand.IntN(3)
		if err := s.take(&sale, n, []int{first, first + 1 + s.rand.IntN(2)}, s.rand.IntN(2)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *schedule) run() error {
	for range 12 {
		if err := errors.Join(s.something(), s.broke); err != nil {
			return err
		}
	}
	return s.settle()
}

// meanwhile is a provider in the middle of whose calls other things happen.
type meanwhile struct {
	*sandbox.Sandbox
	s *schedule
}

func (m meanwhile) Create(ctx context.Context, c checkout.Charge) (checkout.Payment, error) {
	return during(m.s, func() (checkout.Payment, error) { return m.Sandbox.Create(ctx, c) })
}

func (m meanwhile) Get(ctx context.Context, id string) (checkout.Payment, error) {
	return during(m.s, func() (checkout.Payment, error) { return m.Sandbox.Get(ctx, id) })
}

func (m meanwhile) Capture(ctx context.Context, id string) (checkout.Payment, error) {
	return during(m.s, func() (checkout.Payment, error) { return m.Sandbox.Capture(ctx, id) })
}

func (m meanwhile) Void(ctx context.Context, id string) (checkout.Payment, error) {
	return during(m.s, func() (checkout.Payment, error) { return m.Sandbox.Void(ctx, id) })
}

func during[T any](s *schedule, do func() (T, error)) (v T, err error) {
	before, after := s.rand.IntN(6) == 0, s.rand.IntN(4) == 0
	if before {
		s.within()
	}
	if v, err = do(); after {
		s.within()
	}
	return v, err
}

// within has something happen, to a certain depth.
func (s *schedule) within() {
	if s.depth == 2 {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	s.broke = errors.Join(s.broke, s.something())
}

func (s *schedule) say(format string, args ...any) {
	s.story = append(s.story, strings.Repeat("\t", s.depth)+fmt.Sprintf(format, args...))
}

var scheduleCards = []string{sandbox.CardApprove, sandbox.CardApprove, sandbox.CardDecline, sandbox.CardSlow, sandbox.CardSlow, sandbox.CardAuthenticate,
	sandbox.CardDuplicate, sandbox.CardReversed, sandbox.CardLost, sandbox.CardLate, sandbox.CardDown, sandbox.CardRefused, sandbox.CardLapse, sandbox.CardFlaky}

// something is one thing that happens. What a desk answers to it is its own
// affair; only a database that fails is an error here.
func (s *schedule) something() error {
	booking := s.rand.IntN(len(s.bookings))
	id, user := s.bookings[booking], buyers[booking%len(buyers)]
	switch s.rand.IntN(12) {
	case 0, 1, 2, 3:
		r := checkout.PayRequest{Booking: id, User: user, Method: scheduleCards[s.rand.IntN(len(scheduleCards))]}
		if s.rand.IntN(3) == 0 {
			r.Key = "tab" + strconv.Itoa(s.rand.IntN(2))
		}
		s.say("%s pays %d with %s %s", user, booking, r.Method, r.Key)
		got, err := s.desk.Pay(s.ctx, r)
		s.say("paid: %+v, %v", got, err)
	case 4:
		s.say("%s confirms %d", user, booking)
		_, err := s.desk.Confirm(s.ctx, id, user)
		s.say("confirmed: %v", err)
	case 5:
		s.say("%s gives %d back: %v", user, booking, s.desk.Cancel(s.ctx, id, user))
	case 6:
		if s.rand.IntN(3) == 0 {
			s.say("the hold of %d ends", booking)
			return s.ends(id)
		}
		s.say("the reconciler looks at %d: %v", booking, s.desk.Work(s.ctx, "reconcile", id))
	case 7:
		return s.bank()
	case 8, 9:
		return s.webhook()
	case 10, 11:
		return s.job()
	}
	return nil
}

// bank decides about any payment: those who think have thought, the down are back.
func (s *schedule) bank() error {
	ids, err := s.list(`SELECT p.id FROM sandbox_payments p JOIN attempts a ON a.id = p.idempotency_key JOIN bookings b ON b.id = booking_id
		WHERE event_id = $1 ORDER BY p.created_at, p.id`)
	if err != nil || len(ids) == 0 {
		return err
	}
	n := s.rand.IntN(len(ids))
	s.say("the bank decides about payment %d", n)
	_, err = s.pool.Exec(s.ctx, `UPDATE sandbox_payments SET decide_at = decide_at - interval '1 day', back_at = back_at - interval '1 day',
		capture_before = capture_before - interval '1 day' WHERE id = $1`, ids[n])
	if err == nil {
		_, err = sandbox.New(sandbox.Options{Books: sandbox.NewBooks(s.pool)}).Get(s.ctx, ids[n])
	}
	return err
}

// webhook brings any that waits, or loses it; one may come again later.
func (s *schedule) webhook() error {
	rows, err := s.list(`SELECT w.id FROM sandbox_webhooks w JOIN sandbox_payments p ON p.id = payment_id JOIN attempts a ON a.id = p.idempotency_key
		JOIN bookings b ON b.id = booking_id WHERE b.event_id = $1 ORDER BY w.id`)
	if err != nil || len(rows) == 0 {
		return err
	}
	n := s.rand.IntN(len(rows))
	again, lost := s.rand.IntN(4) == 0, s.rand.IntN(6) == 0
	var body string
	err = s.pool.QueryRow(s.ctx, `SELECT jsonb_build_object('id', event_id, 'type', type, 'payment', payment_id) FROM sandbox_webhooks WHERE id = $1`, rows[n]).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if !lost {
		s.say("webhook %s", body)
		signature := sandbox.Sign([]byte(secret), []byte(body), time.Now())
		err := s.desk.Webhook(s.ctx, sandbox.Name, func(string) string { return signature }, []byte(body))
		s.say("taken in: %v", err)
		again = again || err != nil
	}
	if again {
		return nil
	}
	_, err = s.pool.Exec(s.ctx, `DELETE FROM sandbox_webhooks WHERE id = $1`, rows[n])
	return err
}

// job is a worker who takes any.
func (s *schedule) job() error {
	rows, err := s.jobs()
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.work(rows[s.rand.IntN(len(rows))])
}

func (s *schedule) jobs() ([]string, error) {
	return s.list(`SELECT j.id || ' ' || kind || ' ' || (args->>'attempt') FROM river_job j JOIN attempts a ON a.id = args->>'attempt'
		JOIN bookings b ON b.id = booking_id WHERE event_id = $1 ORDER BY j.id`)
}

func (s *schedule) work(row string) error {
	var id int64
	var kind, attempt string
	if _, err := fmt.Sscan(row, &id, &kind, &attempt); err != nil {
		return err
	}
	s.say("job %s of %s", kind, attempt)
	err := s.desk.Work(s.ctx, kind, attempt)
	s.say("job done: %v", err)
	if err == nil {
		_, err = s.pool.Exec(s.ctx, `DELETE FROM river_job WHERE id = $1`, id)
		return err
	}
	return nil
}

func (s *schedule) list(sql string) ([]string, error) {
	rows, err := s.pool.Query(s.ctx, strings.Replace(sql, "SELECT w.id ", "SELECT w.id::text ", 1), s.event)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (s *schedule) take(sale *seatmap.Sale, n int, seats []int, floor int) error {
	b, err := basketOf(sale, fmt.Sprintf("%032d", n), buyers[n%len(buyers)], seats, floor)
	if err != nil {
		return err
	}
	s.holds.put(b)
	s.bookings = append(s.bookings, seatmap.BookingID(s.event, b.Token))
	return nil
}

// ends moves the end of a hold into the past, and that of its booking.
func (s *schedule) ends(id string) error {
	_, token, _ := seatmap.ParseBookingID(id)
	if b, err := s.holds.Basket(s.ctx, s.event, token); err == nil && b.State == seatmap.BasketHeld {
		b.Until, b.Cap = time.Now().Add(-time.Second), time.Now().Add(-time.Second)
		s.holds.put(b)
	}
	_, err := s.pool.Exec(s.ctx, `UPDATE bookings SET deadline = now() - interval '1 second', cap_at = now() - interval '1 second' WHERE id = $1`, id)
	return err
}

// settle lets the time pass until nothing is to come.
func (s *schedule) settle() error {
	s.depth = 2 // what is to happen has happened
	s.say("time passes")
	for range 20 {
		_, err := s.pool.Exec(s.ctx, `UPDATE sandbox_payments SET decide_at = decide_at - interval '1 day', back_at = back_at - interval '1 day'
			WHERE idempotency_key IN (SELECT a.id FROM attempts a JOIN bookings b ON b.id = booking_id WHERE event_id = $1)`, s.event)
		if err != nil {
			return err
		}
		for range 2 {
			if err := s.webhook(); err != nil {
				return err
			}
		}
		for _, id := range s.bookings {
			if err := s.desk.Work(s.ctx, "reconcile", id); err != nil && !errors.Is(err, checkout.ErrNoBooking) {
				s.say("the reconciler: %v", err)
			}
		}
		jobs, err := s.jobs()
		if err != nil {
			return err
		}
		for _, row := range jobs {
			if err := s.work(row); err != nil {
				return err
			}
		}
		if err := s.desk.Mirror(s.ctx, s.event); err != nil {
			return err
		}
		var open bool
		err = s.pool.QueryRow(s.ctx, `SELECT EXISTS (SELECT FROM bookings b WHERE event_id = $1 AND (state = 'paying' OR mirror_due OR EXISTS (
			SELECT FROM attempts WHERE booking_id = b.id AND (void_due OR state IN ('created', 'authorized', 'capturing', 'refunding')))))`, s.event).Scan(&open)
		if err != nil || !open {
			return err
		}
	}
	return errors.New("it is never over")
}

// judge checks what has become of every schedule.
func (h *house) judge(all []*schedule) {
	t := h.t
	report, err := h.store.Check(t.Context())
	must(t, err)
	ledger, err := sandbox.NewBooks(h.pool).Ledger(t.Context())
	must(t, err)
	accounts := map[string]sandbox.Account{}
	for _, a := range ledger {
		accounts[a.Key] = a
	}
	ends := map[string]int{}
	for _, s := range all {
		var faults []string
		for _, f := range report.Faults {
			if slices.ContainsFunc(f.Rows, func(row string) bool {
				return strings.HasPrefix(row, s.event+":") || strings.HasPrefix(row, s.event+".")
			}) {
				faults = append(faults, f.String())
			}
		}
		k := slices.IndexFunc(report.Balances, func(b checkout.Balance) bool { return b.Event == s.event })
		faults = append(faults, s.faults(report.Balances[k], accounts, ends)...)
		if len(faults) > 0 {
			t.Errorf("%s=%s: %s, after\n%s", onlySeed, strings.TrimPrefix(s.event, "schedule-"), strings.Join(faults, "; "), strings.Join(s.story, "\n"))
		}
	}
	if len(report.Faults) > 0 {
		t.Errorf("the books: %v", report.Faults)
	}
	t.Logf("%d schedules from seed %d: bookings %v, %d payments", len(all), firstSeed, ends, len(ledger))
}

func (s *schedule) faults(books checkout.Balance, accounts map[string]sandbox.Account, ends map[string]int) (faults []string) {
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var taken int64
	sold := map[int]bool{}
	for n, id := range s.bookings {
		got, err := s.desk.Booking(s.ctx, id, buyers[n%len(buyers)])
		if err != nil {
			say("booking %d: %v", n, err)
			continue
		}
		ends[got.State]++
		var paid int64
		for _, a := range got.Attempts {
			account, known := accounts[a.ID]
			paid += account.Taken()
			if known && !slices.Contains(endsAs[account.State], a.State) {
				say("an attempt is %s and its payment %s", a.State, account.State)
			}
		}
		taken += paid
		want := int64(0)
		if got.State == string(checkout.BookingSold) {
			want = got.Quote.Total.Amount
			for _, seat := range got.Quote.Seats {
				if sold[seat.I] {
					say("seat %d is sold twice", seat.I)
				}
				sold[seat.I] = true
			}
		}
		if paid != want {
			say("booking %d is %s and %d was taken for it, not %d", n, got.State, paid, want)
		}
		for _, ticket := range got.Tickets {
			if (ticket.Status == "valid") != (got.State == string(checkout.BookingSold)) {
				say("booking %d is %s with a ticket that is %s", n, got.State, ticket.Status)
			}
		}
	}
	if taken != books.Money.Amount || len(sold) != books.Seats || books.Tickets != books.Seats+books.Places {
		say("%d was taken for %d seats, the books say %+v", taken, len(sold), books)
	}
	m, left, err := s.holds.Shown(s.ctx, s.event)
	if err != nil {
		say("%v", err)
	}
	for i := range 5 {
		if (m.At(i) == seatmap.Sold) != sold[i] {
			say("seat %d is shown as %v", i, m.At(i))
		}
	}
	if books.Places > 0 && left["floor"] != 2-books.Places {
		say("%d places are shown as left", left["floor"])
	}
	return faults
}

// endsAs are the states of attempts by those of their payments, once all is over.
var endsAs = map[checkout.PaymentState][]checkout.AttemptState{
	checkout.PaymentCaptured: {checkout.AttemptCaptured},
	checkout.PaymentFailed:   {checkout.AttemptFailed},
	checkout.PaymentVoided:   {checkout.AttemptVoided},
	checkout.PaymentExpired:  {checkout.AttemptAuthExpired, checkout.AttemptCaptureRefused},
	checkout.PaymentRefused:  {checkout.AttemptCaptureRefused},
}
