package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
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
	Seats      []string       // the member seats, of a refusal that names some; nil: it has none
	Extra      map[string]any // further members
	Common     bool           // one of thousands a second in a rush: counted, and logged at debug only
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// MarshalJSON writes type, title, status, code and detail, seats when there are some,
// and then the extra members by name. It is by hand: in a rush nearly every answer is
// one.
func (p *Problem) MarshalJSON() ([]byte, error) { return p.append(make([]byte, 0, problemSize)) }

func (p *Problem) append(b []byte) ([]byte, error) {
	b = append(b, `{"type":"about:blank","title":`...)
	b = appendText(b, http.StatusText(p.Status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.Status), 10)
	b = append(b, `,"code":`...)
	b = appendText(b, p.Code)
	b = append(b, `,"detail":`...)
	b = appendText(b, p.Detail)
	if p.Seats != nil {
		b = appendTexts(append(b, `,"seats":`...), p.Seats)
	}
	if len(p.Extra) > 0 {
		var err error
		if b, err = p.appendExtra(b); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func (p *Problem) appendExtra(b []byte) ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		if slices.Contains(members, name) {
			continue
		}
		value, err := json.Marshal(p.Extra[name])
		if err != nil {
			return nil, fmt.Errorf("member %s of a problem: %w", name, err)
		}
		b = append(append(appendText(append(b, ','), name), ':'), value...)
	}
	return b, nil
}

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, text)
	}
	return append(b, ']')
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
		memory := bodies.Get().(*[problemSize]byte)
		defer bodies.Put(memory)
		body, err := p.body(memory[:0])
		if err != nil {
			log.ErrorContext(ctx, "problem not told", "code", p.Code, "err", err)
		}
		c.Response().WriteHeader(p.Status)
		if c.Request().Method != http.MethodHead {
			_, _ = c.Response().Write(body) // an error: the client has gone, nobody to tell
		}
	}
}

// body is what is sent of p, in memory when it fits.
func (p *Problem) body(memory []byte) ([]byte, error) {
	body, err := p.append(memory)
	return append(body, '\n'), err
}

// problemSize is how long nearly every problem is at most, in bytes.
const problemSize = 512

// bodies are memory for a problem each, which nobody keeps once it is written.
var bodies = sync.Pool{New: func() any { return new([problemSize]byte) }}

// Values of headers that all problems share: see header.
var problemType, notStored = []string{"application/problem+json"}, []string{"no-store"}

func (p *Problem) setHeader(h http.Header) {
	h["Content-Type"], h["Cache-Control"] = problemType, notStored
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.RetryAfter+time.Second-1)/time.Second)))
	}
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
