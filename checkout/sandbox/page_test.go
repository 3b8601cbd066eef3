package sandbox_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/internal/devstack/devtest"
	"seatcast/web"
)

func TestTheOwnerApprovesOrDeclinesOnAPageOfTheBanks(t *testing.T) {
	s, site := bank(t, sandbox.Options{})
	for verdict, want := range map[string]checkout.PaymentState{"approve": checkout.PaymentAuthorized, "decline": checkout.PaymentFailed} {
		p, err := s.Create(t.Context(), charge(verdict, sandbox.CardAuthenticate))
		if err != nil || p.State != checkout.PaymentProcessing || p.Action.URL == "" {
			t.Fatalf("%+v, %v", p, err)
		}
		page := site + p.Action.URL + "?return=" + url.QueryEscape("/e/opera?paid=1")
		if status, body, _ := visit(t, http.MethodGet, page, ""); status != http.StatusOK || !strings.Contains(body, "EUR") ||
			!strings.Contains(body, `href="/e/opera?paid=1"`) {
			t.Errorf("the page: %d %s", status, body)
		}
		if status, _, to := visit(t, http.MethodPost, page, "maybe"); status != http.StatusBadRequest {
			t.Errorf("neither: %d to %q", status, to)
		}
		if status, _, to := visit(t, http.MethodPost, page, verdict); status != http.StatusSeeOther || to != "/e/opera?paid=1" {
			t.Errorf("%s: %d to %q", verdict, status, to)
		}
		visit(t, http.MethodPost, page, map[string]string{"approve": "decline", "decline": "approve"}[verdict]) // too late
		if p, err = s.Get(t.Context(), p.ID); err != nil || p.State != want || p.Action != (checkout.Action{}) {
			t.Errorf("%s: %+v, %v", verdict, p, err)
		}
		if _, body, _ := visit(t, http.MethodGet, page, ""); strings.Contains(body, "<form") {
			t.Errorf("the page asks again: %s", body)
		}
	}
}

func TestTheBanksPageSendsNobodyToAnotherSite(t *testing.T) {
	s, site := bank(t, sandbox.Options{})
	p, err := s.Create(t.Context(), charge("k", sandbox.CardAuthenticate))
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"https://example.com", "//example.com", `/\example.com`, "/\t/example.com", "javascript:alert(1)"} {
		_, body, _ := visit(t, http.MethodGet, site+p.Action.URL+"?return="+url.QueryEscape(to), "")
		if strings.Contains(body, "href=") {
			t.Errorf("%q: %s", to, body)
		}
		_, _, got := visit(t, http.MethodPost, site+p.Action.URL+"?return="+url.QueryEscape(to), "approve")
		if got != p.Action.URL {
			t.Errorf("%q: sent to %q", to, got)
		}
	}
}

func TestThePageOfAnotherPaymentIsNotFound(t *testing.T) {
	s, site := bank(t, sandbox.Options{})
	p, err := s.Create(t.Context(), charge("k", sandbox.CardSlow))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{p.ID, "pay_none"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if status, _, _ := visit(t, method, site+"/v1/payments/sandbox/authenticate/"+id, "approve"); status != http.StatusNotFound {
				t.Errorf("%s %s: %d", method, id, status)
			}
		}
	}
}

func TestAnAuthenticationNobodyAnswersFails(t *testing.T) {
	s, _ := bank(t, sandbox.Options{Authenticate: time.Microsecond})
	p, err := s.Create(t.Context(), charge("k", sandbox.CardAuthenticate))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = s.Get(t.Context(), p.ID); err != nil || p.State != checkout.PaymentFailed || p.Reason != "authentication_abandoned" {
		t.Errorf("%+v, %v", p, err)
	}
}

// bank is a sandbox whose page is at a site.
func bank(t *testing.T, o sandbox.Options) (s *sandbox.Sandbox, site string) {
	o.Books, o.Secret = sandbox.NewBooks(devtest.Postgres(t)), "s"
	s = sandbox.New(o)
	e := echo.New()
	e.HTTPErrorHandler = web.ErrorHandler(slog.New(slog.DiscardHandler))
	s.Mount(e.Group("/v1"))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return s, server.URL
}

// visit asks for a page, or presses a button of it, and follows no redirect.
func visit(t *testing.T, method, page, verdict string) (status int, body, to string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, page, strings.NewReader(url.Values{"verdict": {verdict}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header.Get("Location")
}
