package holds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/holds"
	"seatcast/seatmap"
	"seatcast/web"
)

// shop is the calls of one event over HTTP, on a real Redis.
type shop struct {
	*house
	sale    *seatmap.Sale
	api     *holds.API
	handler http.Handler
}

func newShop(tb testing.TB, store func(*house) *holds.Store) *shop {
	h := setup(tb, 40)
	chart := &seatmap.Chart{Seats: 40, Categories: []seatmap.Category{{Name: "gold"}, {Name: "tin"}}, Areas: []seatmap.Area{{ID: "pit", Name: "Pit", Category: "tin", Capacity: 10}}}
	row := seatmap.Row{Label: "A"}
	for i := range 40 {
		row.Seats = append(row.Seats, seatmap.Seat{TicketID: fmt.Sprint("n-a-", i), I: i, Label: fmt.Sprint(i), Category: "gold"})
	}
	chart.Sections = []seatmap.Section{{ID: "n", Name: "North", Rows: []seatmap.Row{row}}}
	s := &shop{house: h, sale: &seatmap.Sale{Event: h.event, Chart: chart, Index: chart.Index(), Open: true, Currency: "EUR",
		Prices: map[string]int64{"gold": 9000, "tin": 2500}, Terms: terms}}
	h.rdb.HSet(tb.Context(), seatmap.AreasKey(h.event), "pit", 10)

	e := web.New(web.Options{Log: quiet})
	v1 := e.Group("/v1", func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if user := c.Request().Header.Get("X-User"); user != "" {
				return web.As(user)(next)(c)
			}
			return next(c)
		}
	})
	s.api = holds.NewAPI(store(h), s, []byte("a key of this server"))
	s.api.Mount(v1)
	s.handler = e
	return s
}

func onStore(h *house) *holds.Store { return h.store }

func (s *shop) Sale(_ context.Context, event string) (*seatmap.Sale, error) {
	if event != s.event {
		return nil, seatmap.ErrNoEvent
	}
	return s.sale, nil
}

func (s *shop) Hot(context.Context) ([]string, error) { return []string{s.event}, nil }

// answered is an answer, with the fields the tests look at.
type answered struct {
	Status  int
	Header  http.Header
	Body    string
	Code    string
	Seats   []json.RawMessage
	Booking seatmap.Booking
}

// post sends a body as user, nobody when empty, with an Idempotency-Key.
func (s *shop) post(user, path, key, body string) answered {
	s.Helper()
	return s.send(http.MethodPost, user, path, key, body)
}

func (s *shop) send(method, user, path, key, body string) answered {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-User", user)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	a := answered{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
	if a.Status < 300 {
		s.must(json.Unmarshal(w.Body.Bytes(), &a.Booking))
		return a
	}
	var p struct {
		Code  string
		Seats []json.RawMessage
	}
	s.must(json.Unmarshal(w.Body.Bytes(), &p))
	a.Code, a.Seats = p.Code, p.Seats
	return a
}

func (s *shop) take(user, key, body string) answered {
	return s.post(user, "/v1/bookings/"+s.event, key, body)
}

func TestABookingIsMadeOnceAndAnsweredAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	body := `{"ticketIds":["n-a-7","n-a-3"],"areas":[{"area":"pit","quantity":2}]}`
	first := s.take("ann", "k1", body)
	b := first.Booking
	if first.Status != http.StatusCreated || b.State != "held" || len(b.Seats) != 2 || b.Seats[0].TicketID != "n-a-3" ||
		b.Seats[0].Section != "North" || b.Total != (seatmap.Money{Amount: 2*9000 + 2*2500, Currency: "EUR"}) {
		t.Fatalf("%d %s", first.Status, first.Body)
	}
	if event, token, ok := seatmap.ParseBookingID(b.BookingID); !ok || event != s.event || s.holder(7) != token || len(token) != 32 {
		t.Errorf("booking is %s, seat 7 is held by %q", b.BookingID, s.holder(7))
	}
	shown := s.rdb.PExpireTime(t.Context(), seatmap.HoldKey(s.event, 7)).Val().Milliseconds() - terms.Grace.Milliseconds()
	if b.ExpiresAt.UnixMilli() != shown || b.Cap.Sub(*b.ExpiresAt) != terms.Cap-terms.Hold {
		t.Errorf("shown until %v, cap %v", b.ExpiresAt, b.Cap)
	}
	if !strings.Contains(first.Body, `"expiresAt":"`+b.ExpiresAt.UTC().Format(time.RFC3339Nano)+`"`) {
		t.Errorf("times are not UTC: %s", first.Body)
	}
	s.unchanged("the same again, in another order", func() {
		s.sale.Prices["gold"] = 1 // a price of a later hour changes no quote
		again := s.take("ann", "k1", `{"areas":[{"area":"pit","quantity":2}],"ticketIds":["n-a-3","n-a-7"]}`)
		if again.Status != http.StatusOK || again.Body != first.Body {
			t.Errorf("%d\n%s\nfirst\n%s", again.Status, again.Body, first.Body)
		}
	})
	if other := s.take("bob", "k1", `{"ticketIds":["n-a-8"]}`); other.Status != http.StatusCreated {
		t.Errorf("another account's same key: %d %s", other.Status, other.Body)
	}
	if without := s.take("cid", "", `{"ticketIds":["n-a-9"]}`); without.Status != http.StatusCreated {
		t.Errorf("no key: %d %s", without.Status, without.Body)
	}
	s.sound()
}

func TestARefusedBookingSaysWhyAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	s.take("ann", "k1", `{"ticketIds":["n-a-1","n-a-2"]}`)
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf(`"%d"`, i)) // short names, to stay under the limit of a body
	}
	const full = `{"ticketIds":["n-a-10","n-a-11","n-a-12","n-a-13","n-a-14","n-a-15","n-a-16"]}`
	for _, c := range []struct {
		name, user, path, key, body string
		status                      int
		code, seats                 string
	}{
		{"no token", "", s.event, "", `{"ticketIds":["n-a-5"]}`, 401, "token_missing", ""},
		{"no such event", "ann", "elsewhere", "", `{"ticketIds":["n-a-5"]}`, 404, "unknown_event", ""},
		{"no JSON", "ann", s.event, "", `{"ticketIds":`, 400, "bad_json", ""},
		{"no body", "ann", s.event, "", ``, 400, "bad_json", ""},
		{"unknown field", "ann", s.event, "", `{"ticketIds":["n-a-5"],"user":"bob"}`, 400, "bad_json", ""},
		{"wrong type", "ann", s.event, "", `{"ticketIds":[5]}`, 400, "bad_json", ""},
		{"something behind", "ann", s.event, "", `{"ticketIds":["n-a-5"]} {}`, 400, "bad_json", ""},
		{"nothing asked for", "ann", s.event, "", `{}`, 400, "empty_booking", ""},
		{"empty list", "ann", s.event, "", `{"ticketIds":[]}`, 400, "empty_booking", ""},
		{"unknown seat", "ann", s.event, "", `{"ticketIds":["n-a-5","n-a-40"]}`, 422, "unknown_seat", `"n-a-40"`},
		{"seat of another event", "ann", s.event, "", `{"ticketIds":["south-b-5"]}`, 422, "unknown_seat", `"south-b-5"`},
		{"seat twice", "ann", s.event, "", `{"ticketIds":["n-a-5","n-a-5"]}`, 422, "duplicate_seat", `"n-a-5"`},
		{"thousands of seats", "ann", s.event, "", `{"ticketIds":[` + strings.Join(many[:6000], ",") + `]}`, 422, "too_many_seats", ""},
		{"body over the limit", "ann", s.event, "", `{"ticketIds":[` + strings.Join(many, ",") + `]}`, 413, "body_too_large", ""},
		{"seats and places over the limit", "ann", s.event, "", `{"ticketIds":["n-a-5"],"areas":[{"area":"pit","quantity":8}]}`, 422, "too_many_seats", ""},
		{"unknown area", "ann", s.event, "", `{"areas":[{"area":"moat","quantity":1}]}`, 422, "unknown_area", ""},
		{"no places", "ann", s.event, "", `{"areas":[{"area":"pit","quantity":0}]}`, 400, "bad_request", ""},
		{"negative places", "ann", s.event, "", `{"areas":[{"area":"pit","quantity":-1}]}`, 400, "bad_request", ""},
		{"area twice", "ann", s.event, "", `{"areas":[{"area":"pit","quantity":1},{"area":"pit","quantity":1}]}`, 400, "bad_request", ""},
		{"more places than there are", "ann", s.event, "", `{"areas":[{"area":"pit","quantity":9000000000000000000}]}`, 409, "area_full", ""},
		{"best available, and seats", "ann", s.event, "", `{"bestAvailable":{"quantity":2},"ticketIds":["n-a-5"]}`, 422, "seats_and_best_available", ""},
		{"the best of nothing", "ann", s.event, "", `{"bestAvailable":{}}`, 422, "bad_wish", ""},
		{"the best of nowhere", "ann", s.event, "", `{"bestAvailable":{"quantity":2,"sections":["moat"]}}`, 422, "bad_wish", ""},
		{"more of the best than one may have", "ann", s.event, "", `{"bestAvailable":{"quantity":9}}`, 422, "too_many_seats", ""},
		{"the best, too cheap", "ann", s.event, "", `{"bestAvailable":{"quantity":2,"maxPrice":8999}}`, 422, "bad_wish", ""},
		{"wheelchair spaces there are none of", "ann", s.event, "", `{"bestAvailable":{"quantity":2,"accessible":1}}`, 422, "bad_wish", ""},
		{"the best, over the cap", "ann", s.event, "", `{"bestAvailable":{"quantity":8}}`, 429, "too_many_held", ""},
		{"the best under the key of another request", "ann", s.event, "k1", `{"bestAvailable":{"quantity":2}}`, 422, "idempotency_key_reused", ""},
		{"seats taken", "bob", s.event, "", `{"ticketIds":["n-a-1","n-a-3","n-a-2"]}`, 409, "seats_taken", `"n-a-1" "n-a-2"`},
		{"over the cap", "ann", s.event, "", full, 429, "too_many_held", ""},
		{"key of another request", "ann", s.event, "k1", `{"ticketIds":["n-a-5"]}`, 422, "idempotency_key_reused", ""},
		{"key too long", "ann", s.event, strings.Repeat("k", 256), `{"ticketIds":["n-a-5"]}`, 400, "bad_request", ""},
	} {
		s.unchanged(c.name, func() {
			a := s.post(c.user, "/v1/bookings/"+c.path, c.key, c.body)
			seats := make([]string, len(a.Seats))
			for k, seat := range a.Seats {
				seats[k] = string(seat)
			}
			if a.Status != c.status || a.Code != c.code || strings.Join(seats, " ") != c.seats {
				t.Errorf("%s: %d %s", c.name, a.Status, a.Body)
			}
		})
	}
	s.unchanged("a closed sale", func() {
		s.sale.Open = false
		if a := s.take("ann", "", `{"ticketIds":["n-a-5"]}`); a.Status != 403 || a.Code != "sale_not_open" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
}

func TestARepeatIsAnsweredThoughTheSaleHasClosed(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	first := s.take("ann", "once", `{"ticketIds":["n-a-5"]}`)
	s.sale.Open = false
	if a := s.take("ann", "once", `{"ticketIds":["n-a-5"]}`); first.Status != 201 || a.Status != 200 || a.Booking.BookingID != first.Booking.BookingID {
		t.Errorf("%d %s, then %d %s", first.Status, first.Body, a.Status, a.Body)
	}
	if a := s.take("ann", "another", `{"ticketIds":["n-a-5"]}`); a.Status != 403 || a.Code != "sale_not_open" {
		t.Errorf("another request: %d %s", a.Status, a.Body)
	}
}

func TestExtendOverHTTP(t *testing.T) {
	t.Parallel()
	s := newShop(t, onStore)
	id := s.take("ann", "k1", `{"ticketIds":["n-a-1","n-a-2"]}`).Booking.BookingID
	path := "/v1/bookings/" + id + "/extend"
	if a := s.post("ann", path, "", ""); a.Status != http.StatusOK || a.Booking.ExpiresAt == nil || a.Booking.Cap == nil {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	over := s.take("cid", "k1", `{"ticketIds":["n-a-9"]}`).Booking.BookingID
	_, token, _ := seatmap.ParseBookingID(over)
	s.must(s.store.Release(t.Context(), s.event, token, "cid"))
	for _, c := range []struct {
		user, path string
		status     int
		code       string
	}{
		{"", path, 401, "token_missing"},
		{"bob", path, 403, "not_your_booking"},
		{"ann", "/v1/bookings/" + s.event + ".guessed/extend", 404, "unknown_booking"},
		{"ann", "/v1/bookings/elsewhere.guessed/extend", 404, "unknown_booking"},
		{"ann", "/v1/bookings/" + s.event + "/extend", 404, "unknown_booking"},
		{"cid", "/v1/bookings/" + over + "/extend", 409, "hold_expired"},
	} {
		s.unchanged(c.path, func() {
			if a := s.post(c.user, c.path, "", ""); a.Status != c.status || a.Code != c.code {
				t.Errorf("%s by %q: %d %s", c.path, c.user, a.Status, a.Body)
			}
		})
	}
	s.must(s.store.Spend(t.Context(), s.event, seatmap.Marks{Seats: []int{2}}))
	if a := s.post("ann", path, "", ""); a.Status != 409 || a.Code != "seats_lost" || string(a.Seats[0]) != `"n-a-2"` {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

func TestARedisThatIsGoneIsSaidSo(t *testing.T) {
	t.Parallel()
	gone := private(t, 4).rdb
	s := newShop(t, func(h *house) *holds.Store { return holds.New(gone, judge(h.ask), voice(h.hear), quiet) })
	s.must(gone.Close())
	for _, path := range []string{s.event, s.event + ".guessed/extend"} {
		a := s.post("ann", "/v1/bookings/"+path, "", `{"ticketIds":["n-a-1"]}`)
		if a.Status != http.StatusServiceUnavailable || a.Code != "store_unavailable" || a.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}
