package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/waitingroom"
	"seatcast/web"
)

func TestOnlyWhatFailsForAReasonOfOursIsAFailureOfTheSale(t *testing.T) {
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	var is waitingroom.Outcome
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			is = outcome(c, err)
			return err
		}
	})
	var fails error
	e.POST("/", func(c echo.Context) error {
		var body struct{ A string }
		if err := web.Bind(c, &body); err != nil {
			return err
		}
		return fails
	})
	for what, c := range map[string]struct {
		method string
		body   io.Reader
		fails  error
		want   waitingroom.Outcome
	}{
		"an answer":                               {body: strings.NewReader(`{}`), want: waitingroom.Answered},
		"what cannot be read":                     {body: strings.NewReader(`{`), want: waitingroom.Refused},
		"a stream over the limit":                 {body: io.MultiReader(strings.NewReader(`{"A":"`), strings.NewReader(strings.Repeat("a", web.BodyLimit+1))), want: waitingroom.Refused},
		"a wrong method":                          {method: http.MethodPut, want: waitingroom.Refused},
		"a refusal":                               {body: strings.NewReader(`{}`), fails: &web.Problem{Status: http.StatusConflict}, want: waitingroom.Refused},
		"a store that does not answer":            {body: strings.NewReader(`{}`), fails: fmt.Errorf("hold: %w", &web.Problem{Status: http.StatusServiceUnavailable}), want: waitingroom.Failed},
		"an error without a name":                 {body: strings.NewReader(`{}`), fails: errors.New("out of luck"), want: waitingroom.Failed},
		"an error of echo's that is a fault, too": {body: strings.NewReader(`{}`), fails: echo.ErrInternalServerError, want: waitingroom.Failed},
	} {
		if c.method == "" {
			c.method = http.MethodPost
		}
		fails = c.fails
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/", c.body)
		r.Header.Set("Content-Type", "application/json")
		e.ServeHTTP(httptest.NewRecorder(), r)
		if is != c.want {
			t.Errorf("%s: outcome %d, not %d", what, is, c.want)
		}
	}
}

// manySeats are always free.
type manySeats struct{}

func (manySeats) Left(context.Context, string) (free, held int64, err error) { return 100, 0, nil }

func TestACallWhoseHandlerPanicsHasFailedAndIsOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	quiet := slog.New(slog.DiscardHandler)
	keys, err := waitingroom.ParseKeys("", testServerKey)
	if err != nil {
		t.Fatal(err)
	}
	rooms := waitingroom.New(waitingroom.Options{Line: waitingroom.NewLine(h.rdb), Store: waitingroom.NewStore(h.pool), Keys: keys, Seats: manySeats{}, Log: quiet, Calls: true, Tends: true})
	p := waitingroom.Plan{Joins: time.Now().Add(-time.Hour), Opens: time.Now().Add(-time.Minute),
		Terms: waitingroom.Terms{Rate: 60, Cap: 10, Session: time.Minute, Slow: waitingroom.Slow{Checkout: 10 * time.Millisecond}}}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	if err := rooms.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := rooms.Put(t.Context(), h.event, p); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- rooms.Run(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	e := web.New(web.Options{Log: quiet})
	e.Use(measured(rooms))
	e.POST("/v1/bookings/:booking/payment", func(echo.Context) error { panic("the dice") })
	waitingroom.NewAPI(rooms).MountAdmin(e.Group("/v1/admin", web.AsOperator("olga")))
	send := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w
	}
	checkout := func() (did struct{ Calls, Failed int }) {
		var room struct {
			Measured struct{ Checkout *struct{ Calls, Failed int } }
		}
		room.Measured.Checkout = &did
		if w := send(http.MethodGet, "/v1/admin/rooms/"+h.event); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &room) != nil {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return did
	}
	path := "/v1/bookings/" + seatmap.BookingID(h.event, "token") + "/payment"
	eventually(t, 20*time.Second, "calls that panic have failed", func() bool {
		if w := send(http.MethodPost, path); w.Code != http.StatusInternalServerError {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return checkout().Failed > 0
	})
	eventually(t, 20*time.Second, "they are over", func() bool { return checkout().Calls == 0 })
}
