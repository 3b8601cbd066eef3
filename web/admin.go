package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// ScanPath is the one call below /v1/admin that is a scanner's too.
const ScanPath = "/v1/admin/scan"

// Trail is the record of what operators do. Nothing in it is ever changed.
type Trail interface {
	// Begin writes down a call that is about to be carried out and returns its
	// number. After an error the call is not carried out.
	Begin(ctx context.Context, call Call) (int64, error)
	// End writes down how a call was answered.
	End(ctx context.Context, call int64, o Outcome) error
}

// Outcome is how a call was answered.
type Outcome struct {
	Status   int
	Code     string // of a Problem
	Replayed bool   // as an earlier one with its Idempotency-Key: nothing was carried out
}

// Call is one request of an operator.
type Call struct {
	ID       string // the request's, as in the log
	Operator string // the account
	From     string // the address
	Method   string
	Path     string // and query
	Event    string // of the route; empty when it has none
	Body     []byte
}

// trailWithin bounds what writing down a call may take.
const trailWithin = 3 * time.Second

// Groups are API and, for operators only, /v1/admin below it. An operator is
// whose token has the role operator in the claim of the claim map; anybody else
// is answered 403 not_operator, and 401 without a token. Whose token has the role
// scanner is let through to ScanPath alone.
//
// Each call of an operator is written down in trail before it is carried out,
// and how it was answered afterwards. A call that cannot be written down is the
// 503 Problem store_unavailable and is not carried out. One that changes something
// may have an Idempotency-Key: its repeat within 24 hours is answered from keys.
func (s *Sessions) Groups(e *echo.Echo, trail Trail, keys Keys) (v1, admin *echo.Group) {
	s.guard(e, func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			user, err := s.operator(c)
			if err != nil {
				return err
			}
			return recorded(c, trail, keys, user, s.o.Log, next)
		}
	})
	v1 = e.Group("/v1")
	return v1, v1.Group("/admin")
}

// Operator returns the account of the operator who asks: a 401 Problem when
// the request carries no session token, and a 403 when it is no operator's.
func Operator(c echo.Context) (string, error) {
	user, err := User(c)
	if err != nil {
		return "", err
	}
	if !asks(c).operator {
		return "", notOperator("the session token does not name the role " + roleOperator)
	}
	return user, nil
}

// Scanner returns the account of who lets people in: that of a scanner or of an
// operator. Its errors are those of Operator.
func Scanner(c echo.Context) (string, error) {
	if asks(c).scanner {
		return User(c)
	}
	return Operator(c)
}

// operator is Operator, or Scanner where that is enough, with what an
// installation without roles has to do.
func (s *Sessions) operator(c echo.Context) (string, error) {
	who := Operator
	if c.Request().URL.Path == ScanPath {
		who = Scanner
	}
	user, err := who(c)
	if err == nil || s.claims.Roles != "" {
		return user, err
	}
	if _, nobody := User(c); nobody != nil {
		return "", nobody
	}
	return "", notOperator("nobody is an operator here: say with SEATCAST_SESSION_CLAIMS which claim of a token lists roles, such as user=" +
		s.claims.User + ",roles=<name of the claim>; the role is " + roleOperator)
}

func notOperator(detail string) *Problem {
	return &Problem{Status: http.StatusForbidden, Code: "not_operator", Detail: detail}
}

// AsOperator is middleware that gives every request the same account, an
// operator's.
func AsOperator(user string) echo.MiddlewareFunc { return as(bearer{user: user, operator: true}) }

// recorded carries out a call between the two entries of the trail.
func recorded(c echo.Context, trail Trail, keys Keys, operator string, log *slog.Logger, next echo.HandlerFunc) error {
	r := c.Request()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err // over the body limit, or cut short
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	number, err := begin(r.Context(), trail, Call{
		ID: c.Response().Header().Get(echo.HeaderXRequestID), Operator: operator, From: c.RealIP(),
		Method: r.Method, Path: r.URL.RequestURI(), Event: c.Param("event"), Body: body,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", unrecorded, err)
	}
	o := Outcome{Status: http.StatusInternalServerError, Code: "internal"} // unless it returns
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), trailWithin)
		defer cancel()
		if err := trail.End(ctx, number, o); err != nil {
			log.ErrorContext(ctx, "outcome of an operator's call not written down", "call", number, "status", o.Status, "err", err)
		}
	}()
	past, err := keyed(c, keys, operator, body, log, next)
	o = outcome(c, past, err)
	return err
}

func begin(ctx context.Context, trail Trail, call Call) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, trailWithin)
	defer cancel()
	return trail.Begin(ctx, call)
}

var unrecorded = &Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
	Detail: "the call cannot be written down, so it was not carried out; try again", RetryAfter: time.Second}

// outcome is how a handler has answered, or an earlier call, or how its error
// will be.
func outcome(c echo.Context, past *Answer, err error) Outcome {
	switch {
	case err != nil && !c.Response().Committed:
		p := asProblem(err)
		return Outcome{p.Status, p.Code, past != nil}
	case past != nil:
		return Outcome{past.Status, past.Code, true}
	}
	return Outcome{Status: c.Response().Status}
}
