package sandbox_test

import (
	"errors"
	"strings"
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
		fast := sandbox.New(sandbox.Options{Books: books, Refund: time.Nanosecond})
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
