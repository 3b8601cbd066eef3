package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"seatcast/internal/devstack/devtest"
)

// The sandbox cards tests pay with.
const (
	goodCard     = "4242424242424242"
	declinedCard = "4000000000000002"
)

// shopper is one account at one node.
type shopper struct {
	t     testing.TB
	base  string
	token string
}

func (h *house) shopper(n *node, user string) shopper { return h.with(n, user) }

// operator is an account that may use the admin API.
func (h *house) operator(n *node, user string) shopper { return h.with(n, user, "operator") }

func (h *house) with(n *node, user string, roles ...string) shopper {
	h.t.Helper()
	token, err := h.sessions.Mint(user, time.Hour, roles...)
	if err != nil {
		h.t.Fatal(err)
	}
	return shopper{h.t, n.url, token}
}

// answer is what the API said, whatever it was.
type answer struct {
	status int
	header http.Header
	raw    []byte

	BookingID string    `json:"bookingId"`
	State     string    `json:"state"`
	ExpiresAt time.Time `json:"expiresAt"`
	Cap       time.Time `json:"cap"`
	Code      string    `json:"code"`
	Seats     []any     `json:"seats"`
	Reason    string    `json:"reason"`
	Lost      []string  `json:"lost"`
	Attempt   struct {
		ID    string `json:"id"`
		State string `json:"state"`
	} `json:"attempt"`
	Tickets []struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"tickets"`
	Total struct {
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
	} `json:"total"`
}

// unlessLate is a context that ends when what was to happen within d is late.
func unlessLate(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := time.Now()
	go func() { // until cancel
		for !devtest.Late(begun, d) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(d / 20):
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// do sends one request as this account.
func (s shopper) do(method, path, key string, body any) answer {
	s.t.Helper()
	raw, isRaw := body.([]byte)
	if !isRaw && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			s.t.Fatal(err)
		}
	}
	ctx, cancel := unlessLate(20 * time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(raw))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return send(req)
}

// insists repeats a request, under its key, for as long as the node is too busy
// to answer it: as a client does that is told 503.
func insists(ask func() answer) answer {
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if a := ask(); a.status != http.StatusServiceUnavailable || devtest.Late(begun, 20*time.Second) {
			return a
		}
	}
}

// send sends a request as it is; one that got no answer has status 0.
func send(req *http.Request) answer { return sendBy(http.DefaultClient, req) }

func sendBy(c *http.Client, req *http.Request) answer {
	res, err := c.Do(req)
	if err != nil {
		return answer{raw: []byte(err.Error())}
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	if a.raw, err = io.ReadAll(res.Body); err != nil {
		return answer{raw: []byte(err.Error())}
	}
	_ = json.Unmarshal(a.raw, &a) // what is not JSON shows in raw
	return a
}

func (s shopper) hold(event, key string, seats ...string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/bookings/"+event, key, map[string]any{"ticketIds": seats})
}

// area is places asked for in an area without seats.
type area struct {
	Area     string `json:"area"`
	Quantity int    `json:"quantity"`
}

// take holds seats and asks for places.
func (s shopper) take(event, key string, seats []string, areas ...area) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/bookings/"+event, key, map[string]any{"ticketIds": seats, "areas": areas})
}

func (s shopper) extend(booking string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/bookings/"+booking+"/extend", "", nil)
}

func (s shopper) pay(booking, key, card string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/bookings/"+booking+"/payment", key, map[string]string{"paymentMethod": card})
}

func (s shopper) confirm(booking string) answer {
	s.t.Helper()
	return s.do(http.MethodPut, "/v1/bookings/"+booking+"/confirm", "", nil)
}

func (s shopper) booking(booking string) answer {
	s.t.Helper()
	return s.do(http.MethodGet, "/v1/bookings/"+booking, "", nil)
}

func (s shopper) giveBack(booking string) answer {
	s.t.Helper()
	return s.do(http.MethodDelete, "/v1/bookings/"+booking, "", nil)
}

// want fails unless the answer has that status, and that code when given.
func (a answer) want(t testing.TB, status int, code string) answer {
	t.Helper()
	if a.status != status || code != "" && a.Code != code {
		t.Fatalf("got %d %s, want %d %s: %s", a.status, a.Code, status, code, a.raw)
	}
	return a
}
