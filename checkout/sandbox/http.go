package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/checkout"
	"seatcast/web"
)

// send delivers one webhook. Anything but a 2xx is an error.
func (s *Sandbox) send(ctx context.Context, n notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("send %s: %w", n.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send %s: %w", n.ID, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(SignatureHeader, Sign(s.secret, body, time.Now()))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("send %s: %w", n.ID, err)
	}
	if err := resp.Body.Close(); err != nil {
		return fmt.Errorf("send %s: %w", n.ID, err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("send %s: %s", n.ID, resp.Status)
	}
	return nil
}

// authenticatePath is where the owner of a payment with CardAuthenticate approves
// it, the payment's id after it. Whoever knows that id may: nobody can guess it.
const authenticatePath = "/v1/payments/sandbox/authenticate/"

// Mount adds the bank's page to the /v1 group. ?return= is where the browser is
// sent with a verdict: a path of this site.
func (s *Sandbox) Mount(g *echo.Group) {
	const route = "/payments/sandbox/authenticate/:payment"
	g.GET(route, s.getAuthenticate)
	g.POST(route, s.postAuthenticate)
}

const pageStyle = `
body { margin: 0; min-height: 100dvh; display: grid; place-content: center; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 26rem; margin: 20px; padding: 28px 32px; border: 1px solid #8886; border-radius: 14px; }
h1 { margin: 0; font-size: 1.3rem; }
form { display: flex; gap: 10px; }
p:last-child { margin-bottom: 0; }
button { flex: 1; padding: 11px 16px; font: inherit; font-weight: 600; color: inherit; background: none; border: 1px solid #8886; border-radius: 9px; cursor: pointer; }
button[value="approve"] { color: #fff; background: #2540c4; border-color: #2540c4; }
a { color: inherit; }
`

// pagePolicy lets the page load nothing but its style, and send its form to this site alone.
var pagePolicy = fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'", styleHash())

func styleHash() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return base64.StdEncoding.EncodeToString(sum[:])
}

var authenticatePage = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Your bank asks (sandbox)</title>
<style>` + pageStyle + `</style>
</head>
<body>
<main>
<h1>Your bank asks</h1>
<p>This bank is the sandbox's: no money moves.</p>
{{if .Open}}<p>Do you want to pay <strong>{{.Money}}</strong>?</p>
<form method="post">
<button name="verdict" value="approve">Approve</button>
<button name="verdict" value="decline">Decline</button>
</form>{{else}}<p>{{.Said}}</p>{{end}}
{{with .Return}}<p><a href="{{.}}">Back to the shop</a></p>{{end}}
</main>
</body>
</html>
`))

func (s *Sandbox) getAuthenticate(c echo.Context) error {
	p, err := s.authenticating(c)
	if err != nil {
		return err
	}
	said := "The payment is approved."
	switch p.State {
	case checkout.PaymentFailed:
		said = "The payment is declined."
	case checkout.PaymentVoided:
		said = "The shop does not ask for this payment any more."
	}
	h := c.Response().Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	return authenticatePage.Execute(c.Response(), map[string]any{
		"Open": p.State == checkout.PaymentProcessing, "Said": said, "Money": p.Money, "Return": back(c)})
}

func (s *Sandbox) postAuthenticate(c echo.Context) error {
	if _, err := s.authenticating(c); err != nil {
		return err
	}
	verdict := c.FormValue("verdict")
	if verdict != "approve" && verdict != "decline" {
		return web.Bad("bad_request", "verdict is approve or decline")
	}
	if err := s.books.authenticate(c.Request().Context(), c.Param("payment"), verdict == "approve"); err != nil {
		return fmt.Errorf("sandbox: authenticate: %w", err)
	}
	to := back(c)
	if to == "" {
		to = authenticatePath + c.Param("payment")
	}
	return c.Redirect(http.StatusSeeOther, to)
}

// authenticating is the payment a page is about, or a 404.
func (s *Sandbox) authenticating(c echo.Context) (checkout.Payment, error) {
	p, err := s.Get(c.Request().Context(), c.Param("payment"))
	if errors.Is(err, checkout.ErrUnknownPayment) || err == nil && p.Card != fingerprint(CardAuthenticate) {
		return p, &web.Problem{Status: http.StatusNotFound, Code: "no_payment", Detail: "no payment of this name waits for an authentication"}
	}
	return p, err
}

// back is where the browser came from: a path of this site, or empty.
func back(c echo.Context) string {
	to := c.QueryParam("return")
	if _, err := url.Parse(to); err != nil || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) {
		return ""
	}
	return to
}
