package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// Every behaviour of the sandbox is sold through once, which tells its steps; then
// once more for each side of each step, in a process that is killed there. Another
// desk then makes of it what it can, and it must be what it would have been, or as
// if the payment had never begun: nobody is charged without seats, no seat is sold
// without money, no authorisation is left open, and the buyer is told what is so.
func TestNoCrashChargesWithoutSeatsOrSellsWithoutMoney(t *testing.T) {
	t.Parallel()
	var attended, alone []plan
	for _, name := range slices.Sorted(maps.Keys(behaviours)) {
		if b := behaviours[name]; b.short || b.unattended {
			alone = append(alone, plan{Behaviour: name})
		} else {
			attended = append(attended, plan{Behaviour: name})
		}
	}
	var lots []stage
	for _, rehearsal := range []stage{{Sales: attended, Attended: true}, {Sales: alone}} {
		fates := rehearsal.run(t)
		var all []plan
		for k, f := range fates {
			for _, point := range f.Steps {
				// How often a round comes by is chance, and whether who mirrors shares another's.
				if strings.HasSuffix(point, " #1") || rehearsal.Attended && !strings.Contains(point, "underLock") {
					all = append(all, plan{Behaviour: rehearsal.Sales[k].Behaviour, Point: point})
				}
			}
		}
		// Each that stops in a job keeps one of the queue's 20 workers for ever, and one
		// more is the reconciler's. They are shuffled so that lots take as long.
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		size := 18
		if !rehearsal.Attended {
			size = 8
		}
		for some := range slices.Chunk(all, size) {
			lots = append(lots, stage{Sales: some, Attended: rehearsal.Attended})
		}
	}
	var g errgroup.Group
	g.SetLimit(2)
	var sales, missed atomic.Int64
	for _, lot := range lots {
		g.Go(func() error {
			fates := lot.run(t)
			for k, f := range fates {
				sales.Add(1)
				if !f.Stopped {
					missed.Add(1)
					t.Logf("%s: never came there", lot.Sales[k])
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d behaviours, %d crashes, %d of which found no such point", len(behaviours), sales.Load(), missed.Load())
	if missed.Load() > sales.Load()/20 {
		t.Errorf("%d of %d sales never came to the point where they were to be killed", missed.Load(), sales.Load())
	}
}

// A worker that is killed in the middle of a capture or a void leaves a job that
// is running for ever, and is leader of the queue. Others lead and rescue in time,
// though no reconciler asks.
func TestTheCaptureOrVoidOfAKilledWorkerIsDoneWithinAMinute(t *testing.T) {
	t.Parallel()
	st := stage{Attended: true}
	for _, point := range []string{"before Capture #1", "after Capture #1"} {
		st.Sales = append(st.Sales, plan{Behaviour: "approved", Point: point})
	}
	for _, point := range []string{"before Void #1", "after Void #1"} {
		st.Sales = append(st.Sales, plan{Behaviour: "approved, seats gone", Point: point})
	}
	var killed time.Time
	fates := st.runThen(t, checkout.Options{AskAfter: time.Hour, Every: 50 * time.Millisecond}, func(*site) { killed = time.Now() })
	took := time.Since(killed)
	t.Logf("all is done %s after the kill", took.Round(time.Second))
	if took > time.Minute {
		t.Errorf("it took %s", took)
	}
	for k, f := range fates {
		if !f.Stopped {
			t.Errorf("%s: never came there", st.Sales[k])
		}
	}
}

var serial atomic.Int64

// run has the sales of a stage done by a process that dies, lets another desk
// finish them a minute later, and checks each.
func (st stage) run(t *testing.T) []fate {
	return st.runThen(t, checkout.Options{AskAfter: 300 * time.Millisecond, Every: 50 * time.Millisecond}, func(s *site) { must(t, s.minuteLater(t.Context())) })
}

// runThen has the desk that finishes them be another, and something happen
// before it begins.
func (st stage) runThen(t *testing.T, o checkout.Options, then func(*site)) []fate {
	ctx := t.Context()
	st.Postgres = devtest.PostgresURL(t)
	rdb := devtest.Redis(t).Options()
	st.Redis = rdb.Network + ":" + rdb.Addr
	for k := range st.Sales {
		p := &st.Sales[k]
		p.Event = fmt.Sprintf("crash-%d", serial.Add(1))
		if behaviours[p.Behaviour].short {
			p.Event = short + p.Event
		}
		p.Booking = seatmap.BookingID(p.Event, strings.Repeat("t", 32))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	st.Address = ln.Addr().String()
	o.ExtendAhead = time.Millisecond
	s, err := st.open(nil, o)
	must(t, err)
	defer s.close()
	must(t, st.seed(ctx, s.pool))
	for _, p := range st.Sales {
		must(t, s.hold(ctx, p))
	}

	running, stop := context.WithCancel(ctx)
	g, running := errgroup.WithContext(running)
	defer func() {
		stop()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}()
	g.Go(func() error { return s.sandbox.Run(running) }) // the provider does not die with us
	fates := st.doom(t, ln)

	then(s)
	server := &http.Server{Handler: s.echo, ReadHeaderTimeout: time.Minute}
	g.Go(func() error {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	defer server.Close()
	g.Go(func() error { return s.desk.Run(running) })
	for k, p := range st.Sales {
		if fates[k].Said != "" {
			t.Errorf("%s: %s, after %q", p, fates[k].Said, fates[k].Steps)
		}
		if behaviours[p.Behaviour].repeats { // the shopper has no answer
			must(t, s.act(ctx, p))
		}
	}
	s.wait(t, st)
	s.check(t, st)
	return fates
}

// doom runs the sales in a process of its own and sees it killed.
func (st stage) doom(t *testing.T, ln net.Listener) (fates []fate) {
	file, err := ln.(*net.TCPListener).File()
	must(t, err)
	defer file.Close()
	input, err := json.Marshal(st)
	must(t, err)
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), doomedEnv+"=1")
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("a doomed process ended with %v: %s", err, &said)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("a doomed process ended with %v: %s", err, &said)
	}
	must(t, json.Unmarshal(out, &fates))
	return fates
}

// minuteLater makes it a minute after the crash for those who wait so long: who
// rescues jobs of the dead, who leads, who sends a webhook again.
func (s *site) minuteLater(ctx context.Context) error {
	for _, sql := range []string{
		`UPDATE river_job SET attempted_at = attempted_at - interval '1 minute' WHERE state = 'running'`,
		`UPDATE river_job SET scheduled_at = scheduled_at - interval '1 minute' WHERE state IN ('retryable', 'scheduled')`,
		`DELETE FROM river_leader`,
		`UPDATE sandbox_webhooks SET due_at = now() WHERE sent_at IS NULL AND due_at < 'infinity'`,
	} {
		if _, err := s.pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when nothing of any sale is still to come.
func (s *site) wait(t *testing.T, st stage) {
	var events []string
	for _, p := range st.Sales {
		events = append(events, p.Event)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		busy, err := s.busy(t.Context(), events, true)
		must(t, err)
		if len(busy) == 0 {
			return
		}
		if time.Now().Before(deadline) {
			continue
		}
		for _, p := range st.Sales {
			if slices.Contains(busy, p.Event) {
				t.Errorf("%s: it is never over: %s", p, s.story(t.Context(), p))
			}
		}
		return
	}
}

// check re-derives the invariants of all sales.
func (s *site) check(t *testing.T, st stage) {
	store, err := checkout.NewStore(s.pool)
	must(t, err)
	books, err := store.Check(t.Context())
	must(t, err)
	for _, fault := range books.Faults {
		t.Errorf("%s", fault)
		for _, p := range st.Sales {
			if strings.Contains(strings.Join(fault.Rows, " "), p.Event+".") {
				t.Errorf("that is %s: %s", p, s.story(t.Context(), p))
			}
		}
	}
	ledger, err := sandbox.NewBooks(s.pool).Ledger(t.Context())
	must(t, err)
	accounts := map[string]sandbox.Account{}
	for _, a := range ledger {
		accounts[a.Key] = a
	}
	for _, p := range st.Sales {
		k := slices.IndexFunc(books.Balances, func(b checkout.Balance) bool { return b.Event == p.Event })
		for _, fault := range s.faults(t.Context(), p, books.Balances[k], accounts) {
			t.Errorf("%s: %s: %s", p, fault, s.story(t.Context(), p))
		}
	}
}

// faults is what is wrong with a sale that is over.
func (s *site) faults(ctx context.Context, p plan, books checkout.Balance, ledger map[string]sandbox.Account) (all []string) {
	got, err := s.desk.Booking(ctx, p.Booking, shopper)
	if err != nil {
		return []string{"the buyer is told " + err.Error()}
	}
	state := checkout.BookingState(got.State)
	ends := behaviours[p.Behaviour].ends
	if len(got.Attempts) == 0 { // no payment began
		ends = append(slices.Clone(ends), checkout.BookingHeld, checkout.BookingExpired)
	}
	if !slices.Contains(ends, state) {
		all = append(all, fmt.Sprintf("it is %s, not %v", state, ends))
	}
	all = append(all, money(got, books, ledger)...)
	if behaviours[p.Behaviour].short && len(got.Attempts) == 0 {
		return all // its hold may end while we look
	}
	return append(all, s.shown(ctx, p, got)...)
}

// final are the states of attempts, by those of their payments, once all is over.
var final = map[checkout.PaymentState][]checkout.AttemptState{
	checkout.PaymentCaptured: {checkout.AttemptCaptured},
	checkout.PaymentFailed:   {checkout.AttemptFailed},
	checkout.PaymentVoided:   {checkout.AttemptVoided},
	checkout.PaymentExpired:  {checkout.AttemptAuthExpired, checkout.AttemptCaptureRefused},
	checkout.PaymentRefused:  {checkout.AttemptCaptureRefused},
}

// money compares what the provider took with what the buyer is told.
func money(got *checkout.Answer, books checkout.Balance, ledger map[string]sandbox.Account) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	var taken int64
	for _, a := range got.Attempts {
		account, known := ledger[a.ID]
		taken += account.Taken()
		if !known && a.State != checkout.AttemptFailed && a.State != checkout.AttemptVoided {
			say("its attempt is %s and its provider knows of none", a.State)
		}
		if known && !slices.Contains(final[account.State], a.State) {
			say("its attempt is %s and the payment is %s", a.State, account.State)
		}
	}
	want := int64(0)
	if checkout.BookingState(got.State) == checkout.BookingSold {
		want = got.Quote.Total.Amount
	}
	if taken != want || books.Money.Amount != want {
		say("it is %s, for which the provider took %d, the books have %d, and the price is %d", got.State, taken, books.Money.Amount, want)
	}
	valid := 0
	for _, ticket := range got.Tickets {
		if ticket.Status == "valid" {
			valid++
		}
	}
	if tickets := len(wanted) + 1; valid != 0 && want == 0 || want != 0 && valid != tickets {
		say("it is %s with %d valid tickets", got.State, valid)
	}
	return all
}

// shown compares what everybody sees with the books.
func (s *site) shown(ctx context.Context, p plan, got *checkout.Answer) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	var seats []string
	var left int
	err := s.pool.QueryRow(ctx, `SELECT ARRAY(SELECT status FROM seats WHERE event_id = $1 ORDER BY i),
		(SELECT capacity - sold FROM areas WHERE event_id = $1)`, p.Event).Scan(&seats, &left)
	if err != nil {
		say("%v", err)
		return all
	}
	m, areas, err := s.holds.Shown(ctx, p.Event)
	if err != nil {
		say("%v", err)
	}
	for i, status := range seats {
		want := map[string]seatmap.Status{"available": seatmap.Available, "sold": seatmap.Sold, "unavailable": seatmap.Unavailable}[status]
		if want == seatmap.Available && slices.Contains(wanted, i) && checkout.BookingState(got.State) == checkout.BookingHeld {
			want = seatmap.Held
		}
		if !slices.Contains(wanted, i) && m == nil {
			continue
		}
		if m.At(i) != want {
			say("it is %s, and seat %d is %s and shown as %v", got.State, i, status, m.At(i))
		}
	}
	if areas["floor"] != left {
		say("%d places are left and %d shown", left, areas["floor"])
	}
	return all
}

// story is what is left of a sale, to be read by a person.
func (s *site) story(ctx context.Context, p plan) (text string) {
	err := s.pool.QueryRow(ctx, `SELECT concat_ws(' | ', (SELECT jsonb_build_object('state', state, 'deadline', deadline, 'now', now(), 'mirror', mirror_due) FROM bookings WHERE event_id = $1),
		(SELECT jsonb_agg(jsonb_build_object('id', a.id, 'state', a.state, 'reason', a.reason, 'void', void_due, 'asked', asked_at,
			'at provider', (SELECT p.state FROM sandbox_payments p WHERE p.idempotency_key = a.id))) FROM attempts a JOIN bookings b ON b.id = booking_id WHERE b.event_id = $1),
		(SELECT jsonb_agg(jsonb_build_object('type', w.type, 'tries', tries, 'due', due_at)) FROM sandbox_webhooks w JOIN sandbox_payments p ON p.id = payment_id
			JOIN attempts a ON a.id = p.idempotency_key JOIN bookings b ON b.id = booking_id WHERE b.event_id = $1 AND sent_at IS NULL),
		(SELECT jsonb_agg(jsonb_build_object('kind', kind, 'state', j.state, 'attempt', j.attempt, 'errors', errors[cardinality(errors)]->>'error', 'at', scheduled_at)) FROM river_job j
			JOIN attempts a ON a.id = args->>'attempt' JOIN bookings b ON b.id = booking_id WHERE b.event_id = $1 AND finalized_at IS NULL))`, p.Event).Scan(&text)
	if err != nil {
		return err.Error()
	}
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
