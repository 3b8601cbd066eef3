package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func charge(key, card string) checkout.Charge {
	return checkout.Charge{Key: key, Method: card, Money: seatmap.Money{Amount: 100, Currency: "EUR"}}
}

func TestTheSameKeyIsTheSamePaymentAndNoOther(t *testing.T) {
	s := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(devtest.Postgres(t)), Secret: "s"})
	first, err := s.Create(t.Context(), charge("k", sandbox.CardApprove))
	if err != nil || first.State != checkout.PaymentAuthorized || first.Key != "k" {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := s.Create(t.Context(), charge("k", sandbox.CardApprove))
	if err != nil || again != first {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := s.Create(t.Context(), charge("k", sandbox.CardSlow)); err == nil {
		t.Error("another charge under the same key was accepted")
	}
}

func TestNoStepLeavesAFinalState(t *testing.T) {
	s := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(devtest.Postgres(t)), Secret: "s"})
	for card, want := range map[string]checkout.PaymentState{
		sandbox.CardApprove: checkout.PaymentCaptured,
		sandbox.CardRefused: checkout.PaymentRefused,
		sandbox.CardDecline: checkout.PaymentFailed,
	} {
		p, err := s.Create(t.Context(), charge(card, card))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := s.Capture(t.Context(), p.ID); err != nil || got.State != want {
				t.Errorf("capture with %s: %+v, %v", card, got, err)
			}
			if got, err := s.Void(t.Context(), p.ID); err != nil || got.State != want {
				t.Errorf("void with %s: %+v, %v", card, got, err)
			}
		}
	}
}

func TestTheSameKeyIsTheSameRefundAndNoMoreComesBackThanWasTaken(t *testing.T) {
	s := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(devtest.Postgres(t)), Secret: "s"})
	p, err := s.Create(t.Context(), charge("k", sandbox.CardApprove))
	if err != nil {
		t.Fatal(err)
	}
	r := checkout.Refund{Payment: p.ID, Key: "r", Money: seatmap.Money{Amount: 60, Currency: "EUR"}}
	if got, err := s.Refund(t.Context(), r); err != nil || got.State != checkout.RefundFailed {
		t.Errorf("before it was captured: %+v, %v", got, err)
	}
	if _, err := s.Capture(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	first, err := s.Refund(t.Context(), r)
	if err != nil || first.State != checkout.RefundSucceeded {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := s.Refund(t.Context(), r); err != nil || again != first {
		t.Errorf("again: %+v, %v", again, err)
	}
	other := r
	other.Money.Amount = 40
	if _, err := s.Refund(t.Context(), other); err == nil {
		t.Error("another refund under the same key was accepted")
	}
	r.Key = "r2"
	if got, err := s.Refund(t.Context(), r); err != nil || got.State != checkout.RefundFailed {
		t.Errorf("more than is left: %+v, %v", got, err)
	}
	if p, err = s.Get(t.Context(), p.ID); err != nil || p.Refunded != 60 || p.State != checkout.PaymentCaptured {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestACaptureThatIsAnErrorTwiceWorksThen(t *testing.T) {
	s := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(devtest.Postgres(t)), Secret: "s"})
	p, err := s.Create(t.Context(), charge("k", sandbox.CardFlaky))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := s.Capture(t.Context(), p.ID); !errors.Is(err, checkout.ErrProvider) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got, err := s.Capture(t.Context(), p.ID); err != nil || got.State != checkout.PaymentCaptured {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnAuthorisationLapsesBeforeItsCaptureAndByItself(t *testing.T) {
	books := sandbox.NewBooks(devtest.Postgres(t))
	for key, lapse := range map[string]time.Duration{"asked": time.Hour, "forgotten": time.Microsecond} {
		s := sandbox.New(sandbox.Options{Books: books, Lapse: lapse})
		p, err := s.Create(t.Context(), charge(key, sandbox.CardLapse))
		if err != nil || p.State != checkout.PaymentAuthorized || p.CaptureBefore.IsZero() {
			t.Fatalf("%+v, %v", p, err)
		}
		if key == "asked" {
			p, err = s.Capture(t.Context(), p.ID)
		} else {
			p, err = s.Get(t.Context(), p.ID)
		}
		if err != nil || p.State != checkout.PaymentExpired {
			t.Errorf("%s: %+v, %v", key, p, err)
		}
	}
}

func TestAProviderThatIsDownHasMadeThePaymentItDoesNotTellOf(t *testing.T) {
	books := sandbox.NewBooks(devtest.Postgres(t))
	down := sandbox.New(sandbox.Options{Books: books, Down: time.Hour})
	if p, err := down.Create(t.Context(), charge("k", sandbox.CardDown)); !errors.Is(err, checkout.ErrProvider) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := down.Create(t.Context(), charge("k", sandbox.CardDown)); !errors.Is(err, checkout.ErrProvider) {
		t.Errorf("again: %+v, %v", p, err)
	}
	ledger, err := books.Ledger(t.Context())
	if err != nil || len(ledger) != 1 || ledger[0] != (sandbox.Account{Key: "k", Card: sandbox.CardDown, Amount: 100, Currency: "EUR", State: checkout.PaymentAuthorized}) {
		t.Errorf("%+v, %v", ledger, err)
	}
	up := sandbox.New(sandbox.Options{Books: books, Down: time.Microsecond})
	if _, err := up.Create(t.Context(), charge("soon", sandbox.CardDown)); err != nil && !errors.Is(err, checkout.ErrProvider) {
		t.Error(err)
	}
	p, err := up.Create(t.Context(), charge("soon", sandbox.CardDown))
	if err != nil || p.State != checkout.PaymentAuthorized {
		t.Errorf("when it is back: %+v, %v", p, err)
	}
	if p, err = up.Capture(t.Context(), p.ID); err != nil || p.State != checkout.PaymentCaptured {
		t.Errorf("when it is back: %+v, %v", p, err)
	}
}

func TestNewsInReverseComesLastFirst(t *testing.T) {
	var (
		mu    sync.Mutex
		heard []string
		both  = make(chan struct{})
	)
	shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n struct{ Type string }
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if heard = append(heard, n.Type); len(heard) == 2 {
			close(both)
		}
	}))
	defer shop.Close()
	s := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(devtest.Postgres(t)), URL: shop.URL, Secret: "s", Every: 5 * time.Millisecond})
	p, err := s.Create(t.Context(), charge("k", sandbox.CardReversed))
	if err != nil || p.State != checkout.PaymentAuthorized {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := s.Capture(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	<-both
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if want := []string{"payment.captured", "payment.authorized"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q", heard)
	}
}

func TestWhoAsksWhileAPaymentIsDecidedIsToldWhatIsDecided(t *testing.T) {
	db := devtest.Postgres(t)
	s := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(db), Delay: time.Microsecond})
	p, err := s.Create(t.Context(), charge("k", sandbox.CardLost))
	if err != nil || p.State != checkout.PaymentProcessing {
		t.Fatalf("%+v, %v", p, err)
	}
	round, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = round.Rollback(t.Context()) }() // over already, mostly
	if _, err := round.Exec(t.Context(), `UPDATE sandbox_payments SET state = 'authorized' WHERE id = $1`, p.ID); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		payment checkout.Payment
		err     error
	}
	asked := make(chan answer, 1)
	go func() { // joined by what it sends
		p, err := s.Get(t.Context(), p.ID)
		asked <- answer{p, err}
	}()
	for waits := false; !waits; {
		select {
		case early := <-asked:
			t.Fatalf("told before it was decided: %+v", early)
		case <-time.After(time.Millisecond):
		}
		if err := db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := round.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got.err != nil || got.payment.State != checkout.PaymentAuthorized {
		t.Errorf("%+v", got)
	}
}

func TestARefundStaysPendingAWhileAndThenSucceedsOrFails(t *testing.T) {
	for card, want := range map[string]checkout.RefundState{
		sandbox.CardRefundSlow:     checkout.RefundSucceeded,
		sandbox.CardRefundReturned: checkout.RefundFailed,
		sandbox.CardRefundFails:    checkout.RefundFailed,
	} {
		books := sandbox.NewBooks(devtest.Postgres(t))
		slow := sandbox.New(sandbox.Options{Books: books, Refund: time.Hour})
		p, err := slow.Create(t.Context(), charge("k", card))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := slow.Capture(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		first := checkout.Refund{Payment: p.ID, Key: "1", Money: seatmap.Money{Amount: 60, Currency: "EUR"}}
		second := checkout.Refund{Payment: p.ID, Key: "2", Money: first.Money}
		got, err := slow.Refund(t.Context(), first)
		if card == sandbox.CardRefundFails {
			if err != nil || got.State != want {
				t.Errorf("%+v, %v", got, err)
			}
			continue
		}
		if err != nil || got.State != checkout.RefundPending {
			t.Errorf("%s: %+v, %v", card, got, err)
		}
		if p, err = slow.Get(t.Context(), p.ID); err != nil || p.Refunded != 0 {
			t.Errorf("%s: while it is pending %+v, %v", card, p, err)
		}
		if over, err := slow.Refund(t.Context(), second); err != nil || over.State != checkout.RefundFailed {
			t.Errorf("%s: more than is left when it succeeds: %+v, %v", card, over, err)
		}
		fast := sandbox.New(sandbox.Options{Books: books, Refund: time.Microsecond})
		first.Key, first.Money.Amount = "3", 40
		if got, err = fast.Refund(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		again, err := fast.Refund(t.Context(), first)
		if err != nil || again.ID != got.ID || again.State != want {
			t.Errorf("%s: %+v, then %+v, %v", card, got, again, err)
		}
		back := map[checkout.RefundState]int64{checkout.RefundSucceeded: 40}[want]
		if p, err = fast.Get(t.Context(), p.ID); err != nil || p.Refunded != back {
			t.Errorf("%s: %+v, %v", card, p, err)
		}
	}
}

func TestEveryCardPassesALuhnCheck(t *testing.T) {
	for _, card := range sandbox.Cards {
		sum := 0
		for i := range card.Number {
			d := int(card.Number[len(card.Number)-1-i] - '0')
			if i%2 == 1 {
				if d *= 2; d > 9 {
					d -= 9
				}
			}
			sum += d
		}
		if len(card.Number) != 16 || sum%10 != 0 {
			t.Errorf("%s: sum %d", card.Number, sum)
		}
	}
}

func TestNoticeAcceptsEitherSecretWhileOneIsReplaced(t *testing.T) {
	s := sandbox.New(sandbox.Options{Secret: "new"})
	body := []byte(`{"id":"evt_1","type":"payment.authorized","payment":"pay_1"}`)
	with := func(signature string) func(string) string { return func(string) string { return signature } }
	old, young := sandbox.Sign([]byte("old"), body, time.Now()), sandbox.Sign([]byte("new"), body, time.Now())
	_, v1, _ := strings.Cut(young, ",")
	n, err := s.Notice(with(old+","+v1), body)
	if err != nil || n != (checkout.Notice{Event: "evt_1", Type: "payment.authorized", Payment: "pay_1"}) {
		t.Errorf("%+v, %v", n, err)
	}
	for _, signature := range []string{old, "", "t=now,v1=00", "v1=" + strings.Repeat("0", 64)} {
		if _, err := s.Notice(with(signature), body); !errors.Is(err, checkout.ErrBadSignature) {
			t.Errorf("%q: %v", signature, err)
		}
	}
}
