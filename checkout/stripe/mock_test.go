package stripe_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"seatcast/checkout"
	"seatcast/checkout/stripe"
	"seatcast/seatmap"
)

// mock starts Stripe's own stripe-mock, which holds every call against Stripe's
// description of its API and remembers nothing.
func mock(t *testing.T) *stripe.Stripe {
	t.Helper()
	path, err := exec.LookPath("stripe-mock")
	if err != nil {
		path, err = exec.LookPath(filepath.Join(goBin(t), "stripe-mock"))
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("stripe-mock is not installed: run scripts/install test")
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-http-addr", "127.0.0.1:", "-https-addr", "127.0.0.1:") // of any port
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, addr, found := strings.Cut(lines.Text(), "Listening for HTTP at address: "); found {
			s, err := stripe.New(stripe.Options{SecretKey: "sk_test_1", WebhookSecrets: []string{secret}, API: "http://" + addr,
				Methods: []string{"card", "klarna", "sepa_debit"}, AtOnce: true, ReturnURL: "https://tickets.example/back"})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatal("stripe-mock does not listen")
	return nil
}

// goBin is where go install puts programs.
func goBin(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOBIN", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	bin, path, _ := strings.Cut(string(out), "\n")
	if bin != "" {
		return bin
	}
	return filepath.Join(strings.TrimSpace(path), "bin")
}

func TestEveryCallIsAsStripeDescribesIt(t *testing.T) {
	s := mock(t)
	for _, method := range []string{"pm_card_visa", "ctoken_1"} {
		p, err := s.Create(t.Context(), charge("at_1", method))
		if err != nil || !strings.HasPrefix(p.ID, "pi_") { // what was refused has none
			t.Errorf("create with %s: %+v, %v", method, p, err)
		}
	}
	for name, call := range map[string]func() (checkout.Payment, error){
		"get":     func() (checkout.Payment, error) { return s.Get(t.Context(), "pi_1") },
		"capture": func() (checkout.Payment, error) { return s.Capture(t.Context(), "pi_1") },
		"void":    func() (checkout.Payment, error) { return s.Void(t.Context(), "pi_1") },
	} {
		if p, err := call(); err != nil || !strings.HasPrefix(p.ID, "pi_") || p.Money.Currency != "USD" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	r := checkout.Refund{Payment: "pi_1", Key: "r", Money: seatmap.Money{Amount: 100, Currency: "USD"}}
	if a, err := s.Refund(t.Context(), r); err != nil || a.State == checkout.RefundFailed || a.ID == "" {
		t.Errorf("refund: %+v, %v", a, err)
	}
}

func TestACallThatStripeDoesNotDescribeIsNoticed(t *testing.T) {
	s := mock(t)
	c := charge("at_1", "pm_card_visa")
	c.Money.Currency = ""
	if p, err := s.Create(t.Context(), c); err != nil || p.State != checkout.PaymentFailed {
		t.Errorf("without a currency: %+v, %v", p, err)
	}
}
