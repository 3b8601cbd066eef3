package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
)

// Keys remembers how calls were answered, by who made them and by their
// Idempotency-Key.
type Keys interface {
	// Claim gives one of all calls with a key its turn, to be carried out and ended
	// by Keep or Drop. A key that was answered returns that answer, and no turn.
	// ErrKeyInFlight, ErrKeyReused; after any other error nothing may be carried out.
	Claim(ctx context.Context, call KeyedCall) (turn string, past *Answer, err error)
	// Keep remembers how the call of a turn was answered.
	Keep(ctx context.Context, turn string, a Answer) error
	// Drop forgets the call of a turn: the next one with its key is carried out.
	Drop(ctx context.Context, turn string) error
}

// Why a call with a key has no turn.
var (
	ErrKeyInFlight = errors.New("web: a call with this key is under way")
	ErrKeyReused   = errors.New("web: the key was for another call")
)

// KeyedCall is a call with an Idempotency-Key.
type KeyedCall struct {
	Operator string
	Key      string
	Request  []byte // a hash of method, path and body
}

// Answer is how a call was answered.
type Answer struct {
	Status int
	Code   string      // of a Problem
	Header http.Header // what the handler has set
	Body   []byte      // nil: not kept
}

const tellOnceKey = "seatcast.tellOnce"

// TellOnce has the answer to a call kept nowhere: there is a secret in it. The
// repeat of the call by its Idempotency-Key is the 409 Problem answer_not_kept, and
// is not carried out.
func TellOnce(c echo.Context) { c.Set(tellOnceKey, true) }

// replayedHeader marks an answer that is an earlier call's.
const replayedHeader = "Idempotent-Replayed"

// keyed carries a call out, or answers with past, how an earlier one with its
// Idempotency-Key was answered. A call that is carried out is remembered before
// its answer is sent. One that was answered 409, 429 or 5xx is not: such an answer
// is of the moment. Methods that change nothing have no key, whatever they send.
func keyed(c echo.Context, keys Keys, operator string, body []byte, log *slog.Logger, next echo.HandlerFunc) (past *Answer, err error) {
	r := c.Request()
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) {
		return nil, next(c)
	}
	key, err := IdempotencyKey(c)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, next(c)
	}
	turn, past, err := claim(r.Context(), keys, KeyedCall{operator, key, requestHash(r, body)})
	switch {
	case err != nil:
		return nil, unclaimed(err)
	case past != nil:
		return past, past.replay(c)
	}
	draft, answer := newDraft(c.Response()), Answer{Status: http.StatusInternalServerError} // unless it returns
	defer func() {
		ended(r.Context(), keys, turn, answer, log)
		draft.send()
	}()
	err = next(c)
	answer = draft.answer(err)
	if once, _ := c.Get(tellOnceKey).(bool); once || len(answer.Body) > BodyLimit {
		answer.Body = nil
	}
	return nil, err
}

func claim(ctx context.Context, keys Keys, call KeyedCall) (turn string, past *Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, trailWithin)
	defer cancel()
	return keys.Claim(ctx, call)
}

// unclaimed is why a call is not carried out.
func unclaimed(err error) error {
	switch {
	case errors.Is(err, ErrKeyInFlight):
		return &Problem{Status: http.StatusConflict, Code: "idempotency_in_flight",
			Detail: "a call with this Idempotency-Key is under way; send it again to have its answer", RetryAfter: 5 * time.Second}
	case errors.Is(err, ErrKeyReused):
		return &Problem{Status: http.StatusUnprocessableEntity, Code: "idempotency_key_reused",
			Detail: "this Idempotency-Key was used for another call within the last 24 hours; send a new one"}
	}
	return fmt.Errorf("%w: %w", unremembered, err)
}

var unremembered = &Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
	Detail: "the Idempotency-Key cannot be looked up, so the call was not carried out; try again", RetryAfter: time.Second}

// ended remembers an answer, or forgets a call that may be tried again. When that
// fails the answer is sent all the same: it is true.
func ended(ctx context.Context, keys Keys, turn string, a Answer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trailWithin)
	defer cancel()
	var err error
	if a.Status == http.StatusConflict || a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError {
		err = keys.Drop(ctx, turn)
	} else {
		err = keys.Keep(ctx, turn, a)
	}
	if err != nil {
		log.ErrorContext(ctx, "the answer to a call with an Idempotency-Key is not remembered: its repeat will be carried out", "status", a.Status, "err", err)
	}
}

// requestHash tells calls apart: method, path with query, and body.
func requestHash(r *http.Request, body []byte) []byte {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(r.Method), []byte(r.URL.RequestURI()), body} {
		_ = binary.Write(sum, binary.BigEndian, int64(len(part))) // a hash takes everything
		_, _ = sum.Write(part)
	}
	return sum.Sum(nil)
}

// replay answers as before. What was not kept is a Problem: the call is not
// carried out again all the same.
func (a *Answer) replay(c echo.Context) error {
	h := c.Response().Header()
	h.Set(replayedHeader, "true")
	if a.Body == nil {
		return &Problem{Status: http.StatusConflict, Code: "answer_not_kept",
			Detail: fmt.Sprintf("the call was carried out and answered %d, which was too long to keep, or is told once; read what became of it", a.Status)}
	}
	maps.Copy(h, a.Header)
	c.Response().WriteHeader(a.Status)
	_, err := c.Response().Write(a.Body)
	return err
}

// draft keeps what a handler answers until it is sent.
type draft struct {
	http.ResponseWriter // the connection's: headers are set there at once
	response            *echo.Response
	before              http.Header
	status              int // 0: nothing was answered
	body                bytes.Buffer
}

func newDraft(r *echo.Response) *draft {
	d := &draft{ResponseWriter: r.Writer, response: r, before: r.Header().Clone()}
	r.Writer = d
	return d
}

func (d *draft) WriteHeader(status int)      { d.status = status }
func (d *draft) Write(b []byte) (int, error) { return d.body.Write(b) }

// answer is what a handler that returned err has answered, or how its error will be.
func (d *draft) answer(err error) Answer {
	a := Answer{Status: d.response.Status, Header: http.Header{}, Body: d.body.Bytes()}
	header := d.Header()
	if err != nil && d.status == 0 {
		p := asProblem(err)
		a.Status, a.Code = p.Status, p.Code
		a.Body, _ = p.body(nil) // what cannot be told is logged where it is sent
		header = header.Clone()
		p.setHeader(header)
	}
	for name, values := range header {
		if !slices.Equal(values, d.before[name]) {
			a.Header[name] = values
		}
	}
	if a.Body == nil {
		a.Body = []byte{}
	}
	return a
}

// send answers, unless that is left to who handles errors.
func (d *draft) send() {
	d.response.Writer = d.ResponseWriter
	if d.status == 0 {
		return
	}
	d.ResponseWriter.WriteHeader(d.status)
	_, _ = d.ResponseWriter.Write(d.body.Bytes()) // an error: the client has gone, nobody to tell
}
