package tickets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// Mount adds the public keys to g, which is /v1. They are for everybody.
func (d *Door) Mount(g *echo.Group) { g.GET("/tickets/keys", d.getKeys) }

// jwk is a public key as RFC 8037 writes it.
type jwk struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	Use   string `json:"use"`
	ID    string `json:"kid"`
	X     string `json:"x"`
}

func (d *Door) getKeys(c echo.Context) error {
	keys := []jwk{}
	for _, k := range d.keys.Public() {
		keys = append(keys, jwk{Type: "OKP", Curve: "Ed25519", Use: "sig", ID: k.ID, X: base64.RawURLEncoding.EncodeToString(k.Key)})
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
	return c.JSON(http.StatusOK, map[string]any{"keys": keys})
}

// problem is how each outcome is told.
func problem(err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.problem()
	}
	for _, row := range problems {
		if !errors.Is(err, row.err) {
			continue
		}
		if row.problem.Status >= http.StatusInternalServerError {
			return fmt.Errorf("%w: %w", row.problem, err)
		}
		return row.problem
	}
	return err
}

func (e *RefusedError) problem() *web.Problem {
	p := &web.Problem{Status: http.StatusConflict, Code: refusals[e.Why].code, Detail: refusals[e.Why].detail,
		Extra: map[string]any{"result": e.Why, "ticket": e.Ticket}}
	if e.First != nil {
		p.Extra["first"] = Admission{e.First.At.UTC(), e.First.Gate, e.First.By}
	}
	return p
}

var refusals = map[Result]struct{ code, detail string }{
	Used:       {"ticket_used", "the ticket has let somebody in already"},
	Void:       {"ticket_void", "the ticket was taken back"},
	Refunding:  {"ticket_refunding", "the money for the ticket is being given back: it lets nobody in"},
	Refunded:   {"ticket_refunded", "the money for the ticket was given back: it lets nobody in"},
	Pending:    {"ticket_pending", "the money for the ticket has not arrived yet"},
	WrongEvent: {"wrong_event", "the ticket is for another event"},
}

var problems = []struct {
	err     error
	problem *web.Problem
}{
	{ErrForged, &web.Problem{Status: http.StatusUnprocessableEntity, Code: "ticket_forged", Detail: "this is no ticket of ours, or not as we made it"}},
	{ErrKey, &web.Problem{Status: http.StatusUnprocessableEntity, Code: "ticket_key_unknown", Detail: "the ticket names a key that is not accepted here: a forgery, or one from before a key was replaced"}},
	{ErrUnknown, &web.Problem{Status: http.StatusUnprocessableEntity, Code: "ticket_unknown", Detail: "there is no such ticket"}},
	{ErrUnused, &web.Problem{Status: http.StatusConflict, Code: "ticket_unused", Detail: "the ticket has let nobody in, or that was undone already"}},
	{seatmap.ErrUnavailable, &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable", RetryAfter: time.Second,
		Detail: "no answer: send the same request again, with the same Idempotency-Key"}},
	{context.DeadlineExceeded, &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable", RetryAfter: time.Second,
		Detail: "no answer in time: send the same request again, with the same Idempotency-Key"}},
}
