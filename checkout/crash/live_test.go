package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
)

// doomedEnv makes this test binary a process that runs a desk and kills itself.
const doomedEnv = "SEATCAST_TEST_DOOMED"

// behaviour is what a shopper does with which cards, and what may come of it.
type behaviour struct {
	cards []string
	loses bool // somebody else has one of the seats by then
	then  func(ctx context.Context, s *site, p plan) error

	short      bool // the hold ends before there is a verdict
	repeats    bool // who has no answer asks again
	unattended bool // nobody asks for the verdict but the reconciler
	ends       []checkout.BookingState
}

var (
	sold = []checkout.BookingState{checkout.BookingSold}
	lost = []checkout.BookingState{checkout.BookingLost}
	held = []checkout.BookingState{checkout.BookingHeld}
)

var behaviours = map[string]behaviour{
	"approved":               {cards: []string{sandbox.CardApprove}, ends: sold},
	"declined":               {cards: []string{sandbox.CardDecline}, ends: held},
	"slow":                   {cards: []string{sandbox.CardSlow}, ends: sold},
	"authenticated":          {cards: []string{sandbox.CardAuthenticate}, then: verdict("approve"), ends: append(held, sold...)},
	"not authenticated":      {cards: []string{sandbox.CardAuthenticate}, then: verdict("decline"), ends: held},
	"told twice":             {cards: []string{sandbox.CardDuplicate}, ends: sold},
	"told early":             {cards: []string{sandbox.CardEarly}, ends: sold},
	"told in reverse":        {cards: []string{sandbox.CardReversed}, ends: sold},
	"never told":             {cards: []string{sandbox.CardLost}, then: confirm, ends: sold},
	"down":                   {cards: []string{sandbox.CardDown}, ends: sold},
	"refused":                {cards: []string{sandbox.CardRefused}, ends: lost},
	"lapsed":                 {cards: []string{sandbox.CardLapse}, ends: lost},
	"captured at third try":  {cards: []string{sandbox.CardFlaky}, ends: sold},
	"two cards":              {cards: []string{sandbox.CardSlow, sandbox.CardApprove}, ends: sold},
	"a second try":           {cards: []string{sandbox.CardDecline, sandbox.CardApprove}, ends: append(held, sold...)},
	"given back":             {cards: []string{sandbox.CardLate}, then: cancel, repeats: true, ends: []checkout.BookingState{checkout.BookingReleased}},
	"approved, seats gone":   {cards: []string{sandbox.CardApprove}, loses: true, ends: lost},
	"slow, seats gone":       {cards: []string{sandbox.CardSlow}, loses: true, ends: lost},
	"twice, seats gone":      {cards: []string{sandbox.CardDuplicate}, loses: true, ends: lost},
	"early, seats gone":      {cards: []string{sandbox.CardEarly}, loses: true, ends: lost},
	"reversed, seats gone":   {cards: []string{sandbox.CardReversed}, loses: true, ends: lost},
	"never told, seats gone": {cards: []string{sandbox.CardLost}, loses: true, then: confirm, ends: lost},
	"down, seats gone":       {cards: []string{sandbox.CardDown}, loses: true, ends: lost},
	"lapsed, seats gone":     {cards: []string{sandbox.CardLapse}, loses: true, ends: lost},
	"two cards, seats gone":  {cards: []string{sandbox.CardSlow, sandbox.CardApprove}, loses: true, ends: lost},
	"late":                   {cards: []string{sandbox.CardLate}, short: true, ends: []checkout.BookingState{checkout.BookingExpired}},
	"nobody asks":            {cards: []string{sandbox.CardLost}, unattended: true, ends: sold},
}

// verdict is a shopper at the bank's page.
func verdict(of string) func(context.Context, *site, plan) error {
	return func(ctx context.Context, s *site, p plan) error {
		var payment string
		if err := s.pool.QueryRow(ctx, `SELECT id FROM sandbox_payments p WHERE idempotency_key IN (SELECT id FROM attempts WHERE booking_id = $1)`,
			p.Booking).Scan(&payment); err != nil {
			return err
		}
		to := s.sandboxURL + "/v1/payments/sandbox/authenticate/" + payment
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(url.Values{"verdict": {of}}.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
}

// confirm is a shopper who asks once there is a verdict.
func confirm(ctx context.Context, s *site, p plan) error {
	for decided := false; !decided; time.Sleep(5 * time.Millisecond) {
		if err := s.pool.QueryRow(ctx, `SELECT coalesce(bool_and(decide_at <= now()), false) FROM sandbox_payments
			WHERE idempotency_key IN (SELECT id FROM attempts WHERE booking_id = $1)`, p.Booking).Scan(&decided); err != nil {
			return err
		}
	}
	_, err := s.desk.Confirm(ctx, p.Booking, shopper)
	return err
}

func cancel(ctx context.Context, s *site, p plan) error {
	return s.desk.Cancel(ctx, p.Booking, shopper)
}

// act is a shopper from the first payment on. What is answered does not matter:
// the books are looked at.
func (s *site) act(ctx context.Context, p plan) error {
	b := behaviours[p.Behaviour]
	for _, card := range b.cards {
		_, _ = s.desk.Pay(ctx, checkout.PayRequest{Booking: p.Booking, User: shopper, Method: card})
	}
	if b.then == nil {
		return nil
	}
	err := b.then(ctx, s, p)
	if err != nil && b.loses {
		return nil // as it ought to be
	}
	return err
}

// busy returns the events of which something is still to come: a verdict, money,
// a webhook, a job; and, where told is, what Redis has not been told.
func (s *site) busy(ctx context.Context, events []string, told bool) ([]string, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT event_id FROM bookings b WHERE event_id = ANY($1) AND (
			state = 'paying' OR state = 'held' AND deadline <= now()
			OR EXISTS (SELECT FROM attempts a WHERE booking_id = b.id AND (
				state IN ('created', 'authorized', 'capturing', 'refunding') OR void_due
				OR id IN (SELECT idempotency_key FROM sandbox_payments WHERE id IN (SELECT payment_id FROM sandbox_webhooks WHERE sent_at IS NULL))
				OR id IN (SELECT args->>'attempt' FROM river_job WHERE finalized_at IS NULL)))
			OR $2 AND (mirror_due OR event_id IN (SELECT event_id FROM seats WHERE mirror_due)
				OR event_id IN (SELECT event_id FROM areas WHERE mirror_due)))`, events, told)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// fate is what a doomed process tells of a sale before it dies.
type fate struct {
	Steps   []string
	Stopped bool   // at its point
	Said    string // what went wrong; "": nothing
}

// live runs the sales of a stage until each is over or at its point, tells how
// far each got, and kills this process.
func live(in io.Reader, out io.Writer) error {
	var st stage
	if err := json.NewDecoder(in).Decode(&st); err != nil {
		return err
	}
	g := newGate()
	o := checkout.Options{AskAfter: time.Hour, ExtendAhead: time.Millisecond, Every: time.Hour, AuditEvery: time.Hour}
	if !st.Attended {
		o.AskAfter, o.Every = 50*time.Millisecond, 10*time.Millisecond
	}
	s, err := st.open(g, o)
	if err != nil {
		return err
	}
	ln, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	ctx := context.Background()
	s.sandboxURL = "http://" + st.Address
	go func() { _ = (&http.Server{Handler: s.echo, ReadHeaderTimeout: time.Minute}).Serve(ln) }()
	watched := make([]*sale, len(st.Sales))
	for k, p := range st.Sales {
		watched[k] = g.watch(p.Event, p.Booking, p.Point)
	}
	go func() { _ = s.desk.Run(ctx) }()

	var (
		fates  = make([]fate, len(st.Sales))
		all    sync.WaitGroup
		waiter = waiter{site: s}
	)
	go waiter.run(ctx)
	for k, p := range st.Sales {
		all.Go(func() {
			over := make(chan error, 1)
			go func() {
				if err := s.act(ctx, p); err != nil {
					over <- err
					return
				}
				waiter.wait(p.Event)
				over <- nil
			}()
			var said error
			select {
			case <-watched[k].frozen:
			case said = <-over:
			case <-time.After(patience):
				var all strings.Builder
				_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
				said = fmt.Errorf("it takes longer than %s: %s\n%s", patience, s.story(ctx, p), &all)
			}
			steps, stopped := g.told(watched[k])
			fates[k] = fate{Steps: steps, Stopped: stopped}
			if said != nil {
				fates[k].Said = said.Error()
			}
		})
	}
	all.Wait()
	if err := json.NewEncoder(out).Encode(fates); err != nil {
		return err
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// patience is how long a sale may take, on a machine that does much else.
const patience = 2 * time.Minute

// waiter asks for all who wait until nothing is to come of a sale.
type waiter struct {
	site *site

	mu   sync.Mutex
	over map[string]chan struct{}
}

func (w *waiter) wait(event string) {
	done := make(chan struct{})
	w.mu.Lock()
	if w.over == nil {
		w.over = map[string]chan struct{}{}
	}
	w.over[event] = done
	w.mu.Unlock()
	<-done
}

func (w *waiter) run(ctx context.Context) {
	for ; ; time.Sleep(20 * time.Millisecond) {
		w.mu.Lock()
		events := slices.Collect(maps.Keys(w.over))
		w.mu.Unlock()
		busy, err := w.site.busy(ctx, events, false)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		w.mu.Lock()
		for _, event := range events {
			if !slices.Contains(busy, event) {
				close(w.over[event])
				delete(w.over, event)
			}
		}
		w.mu.Unlock()
	}
}
