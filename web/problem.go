package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// Problem is an error as the API tells it: RFC 9457 application/problem+json.
// Code is stable and part of the API; Detail says what to do about it. A
// handler returns one as its error; any other error becomes a 500 that tells
// nothing and is logged. An error that wraps a Problem and what caused it
// answers with the one and logs both, when the status is 500 or above.
type Problem struct {
	Status     int
	Code       string // stable, snake_case
	Detail     string
	RetryAfter time.Duration  // sent as Retry-After when above zero
	Extra      map[string]any // further members, such as the seats that are gone
	Common     bool           // one of thousands a second in a rush: counted, and logged at debug only
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// MarshalJSON writes type, title, status, code and detail and then the extra
// members beside them. It is by hand: in a rush nearly every answer is one.
func (p *Problem) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 256), `{"type":"about:blank","title":`...)
	b = appendText(b, http.StatusText(p.Status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.Status), 10)
	b = append(b, `,"code":`...)
	b = appendText(b, p.Code)
	b = append(b, `,"detail":`...)
	b = appendText(b, p.Detail)
	names := make([]string, 0, 4) // more than nearly every problem has
	for name := range p.Extra {
		if !slices.Contains(members, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b = append(appendText(append(b, ','), name), ':')
		var err error
		if b, err = appendValue(b, p.Extra[name]); err != nil {
			return nil, fmt.Errorf("member %s of a problem: %w", name, err)
		}
	}
	return append(b, '}'), nil
}

// appendValue appends v as JSON.
func appendValue(b []byte, v any) ([]byte, error) {
	texts, ok := v.([]string)
	if !ok || len(texts) == 0 {
		value, err := json.Marshal(v)
		return append(b, value...), err
	}
	for i, text := range texts {
		b = append(b, "[,"[min(i, 1)])
		b = appendText(b, text)
	}
	return append(b, ']'), nil
}

// members every problem has.
var members = []string{"type", "title", "status", "code", "detail"}

// appendText appends s as a JSON string.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// Bad is a 400 with a code and what to do about it.
func Bad(code, detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: code, Detail: detail}
}

// ErrorHandler renders every error a handler returns.
func ErrorHandler(log *slog.Logger) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if c.Response().Committed {
			return
		}
		p, ctx := asProblem(err), c.Request().Context()
		clientLeft := ctx.Err() != nil && errors.Is(err, context.Canceled)
		if p.Status >= 500 && !clientLeft {
			log.ErrorContext(ctx, "request failed",
				"id", c.Response().Header().Get(echo.HeaderXRequestID), "method", c.Request().Method, "path", c.Path(),
				"status", p.Status, "code", p.Code, "err", err)
		}
		p.setHeader(c.Response().Header())
		body, err := p.body()
		if err != nil {
			log.ErrorContext(ctx, "problem not told", "code", p.Code, "err", err)
		}
		c.Response().WriteHeader(p.Status)
		if c.Request().Method != http.MethodHead {
			_, _ = c.Response().Write(body) // an error: the client has gone, nobody to tell
		}
	}
}

func (p *Problem) setHeader(h http.Header) {
	h.Set(echo.HeaderContentType, "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.RetryAfter+time.Second-1)/time.Second)))
	}
}

func (p *Problem) body() ([]byte, error) {
	body, err := p.MarshalJSON()
	return append(body, '\n'), err
}

// Status is what an error that a handler returns is answered with.
func Status(err error) int { return asProblem(err).Status }

func asProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if h, ok := errors.AsType[*echo.HTTPError](err); ok {
		return fromEcho(h)
	}
	return &Problem{Status: http.StatusInternalServerError, Code: "internal",
		Detail: "something failed on our side; nothing you sent was wrong. Try again."}
}

// fromEcho names the errors echo itself makes: no route, wrong method, body
// over the limit.
func fromEcho(h *echo.HTTPError) *Problem {
	p := &Problem{Status: h.Code, Code: "http_" + strconv.Itoa(h.Code), Detail: http.StatusText(h.Code)}
	switch h.Code {
	case http.StatusNotFound:
		p.Code, p.Detail = "not_found", "there is nothing at this path"
	case http.StatusMethodNotAllowed:
		p.Code, p.Detail = "method_not_allowed", "this path does not take this method"
	case http.StatusRequestEntityTooLarge:
		p.Code, p.Detail = "body_too_large", "the request body is over the limit"
	}
	return p
}
