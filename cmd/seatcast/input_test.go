package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/checkout/sandbox"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/web"
)

// stage is a house with something of everything, in which nothing happens by
// itself: a basket, a booking being paid, one that is sold, and events that are
// not on sale.
type stage struct {
	*house
	node                 *node
	ann, bob             shopper
	basket, paying, sold string // ann's
	over                 string // given back
	closed, early        string // events
	seats                []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{house: newHouse(t, plan{})}
	s.node = s.house.node("SEATCAST_ROLES=api,hub")
	worker := s.house.node(onlyWorker, "SEATCAST_SANDBOX_WEBHOOK_URL="+s.node.url+"/v1/payments/webhook/"+sandbox.Name)
	s.ann, s.bob = s.shopper(s.node, "ann"), s.shopper(s.node, "bob")
	s.seats = s.house.seats(s.chart.Seats)
	hold := func(from, to int) string {
		return s.ann.hold(s.event, fmt.Sprint("seats from ", from), s.seats[from:to]...).want(t, http.StatusCreated, "").BookingID
	}
	s.sold = hold(0, 2)
	s.ann.pay(s.sold, "", goodCard).want(t, http.StatusCreated, "")
	s.ann.ends(s.sold).wantSold(t, 2)
	s.basket, s.paying, s.over = hold(2, 4), hold(4, 6), hold(6, 8)
	s.ann.pay(s.paying, "paid once", lateCard).want(t, http.StatusCreated, "")
	s.ann.giveBack(s.over).want(t, http.StatusNoContent, "")
	s.closed, s.early = s.create(plan{chart: s.chart, mode: catalog.Ordinary}), s.notYetOpen()
	if err := catalog.New(s.pool).SetState(t.Context(), s.closed, catalog.Closed); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{s.closed, s.early} { // what is asked about for the first time is loaded into Redis
		s.ann.do(http.MethodGet, "/v1/events/"+event+"/seatmap", "", nil).want(t, http.StatusOK, "")
	}
	s.quiet()
	worker.stop(t, 20*time.Second) // which asks after who is paying when that takes long
	return s
}

// notYetOpen is an event whose sale opens tomorrow.
func (h *house) notYetOpen() string {
	h.t.Helper()
	ctx := h.t.Context()
	id := devtest.Event(h.t)
	_, err := h.pool.Exec(ctx, `INSERT INTO events SELECT (jsonb_populate_record(e, jsonb_build_object('id', $2::text, 'opens_at', now() + interval '1 day'))).*
		FROM events e WHERE id = $1`, h.event, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// sent is a request as a hostile client makes it.
type sent struct {
	why    string
	method string // POST when empty
	path   string
	body   string
	stream bool              // its length is not told beforehand
	header map[string]string // beside Content-Type and ann's Authorization; an empty value takes one away

	status int
	code   string
	says   string // somewhere in the answer
}

func TestBadInputIsNamedAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before := s.world()
	for _, c := range append(s.badBodies(), append(s.badTokens(t), s.badPaths()...)...) {
		t.Run(c.why, func(t *testing.T) {
			a := send(s.request(t, c))
			a.want(t, c.status, c.code)
			if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
				t.Errorf("answered as %s", kind)
			}
			if !strings.Contains(string(a.raw), c.says) {
				t.Errorf("the answer does not say %s: %s", c.says, a.raw)
			}
			before = s.unchanged(t, before)
		})
	}
}

// Headers over the limit never reach a handler: Go's own server answers.
func TestHugeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before := s.world()
	a := send(s.request(t, sent{path: "/v1/bookings/" + s.event, body: `{"ticketIds":["` + s.seats[20] + `"]}`,
		header: map[string]string{"Idempotency-Key": strings.Repeat("k", 64<<10)}}))
	a.want(t, http.StatusRequestHeaderFieldsTooLarge, "")
	s.unchanged(t, before)
}

func (s *stage) request(t *testing.T, c sent) *http.Request {
	t.Helper()
	if c.method == "" {
		c.method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), c.method, s.node.url+c.path, bytes.NewReader([]byte(c.body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.ann.token)
	if c.stream {
		req.ContentLength = -1
	}
	for name, value := range c.header {
		if value == "" {
			req.Header.Del(name)
		} else {
			req.Header[name] = strings.Split(value, "\n")
		}
	}
	return req
}

func (s *stage) badBodies() []sent {
	book, pay, swap := "/v1/bookings/"+s.event, "/v1/bookings/"+s.basket+"/payment", "/v1/bookings/"+s.basket+"/seats"
	free := s.seats[20]
	list := func(n int, name func(i int) string) string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = name(i)
		}
		return `{"ticketIds":["` + strings.Join(ids, `","`) + `"]}`
	}
	seat := func(i int) string { return s.seats[20+i] }
	standing := func(quantity string) string { return `{"areas":[{"area":"standing","quantity":` + quantity + `}]}` }
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	return []sent{
		{why: "no JSON", path: book, body: `ticketIds=A1`, status: 400, code: "bad_json"},
		{why: "cut off", path: book, body: `{"ticketIds":["` + free, status: 400, code: "bad_json"},
		{why: "no body", path: book, body: ``, status: 400, code: "bad_json"},
		{why: "something behind the body", path: book, body: list(1, seat) + `{}`, status: 400, code: "bad_json"},
		{why: "unknown field", path: book, body: `{"ticketIds":["` + free + `"],"price":1}`, status: 400, code: "bad_json", says: "price"},
		{why: "a list instead of an object", path: book, body: `["` + free + `"]`, status: 400, code: "bad_json"},
		{why: "a string instead of a list", path: book, body: `{"ticketIds":"` + free + `"}`, status: 400, code: "bad_json", says: "ticketIds"},
		{why: "numbers instead of names", path: book, body: `{"ticketIds":[20,21]}`, status: 400, code: "bad_json"},
		{why: "a form", path: book, body: list(1, seat), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, status: 400, code: "bad_json"},
		{why: "null", path: book, body: `null`, status: 400, code: "empty_booking"},
		{why: "nothing asked for", path: book, body: `{}`, status: 400, code: "empty_booking"},
		{why: "an empty list", path: book, body: `{"ticketIds":[],"areas":[]}`, status: 400, code: "empty_booking"},
		{why: "unknown seat", path: book, body: `{"ticketIds":["` + free + `","nowhere-1"]}`, status: 422, code: "unknown_seat", says: "nowhere-1"},
		{why: "seat of another event", path: book, body: list(1, func(int) string { return "stalls-A-1" }), status: 422, code: "unknown_seat", says: "stalls-A-1"},
		{why: "not UTF-8", path: book, body: "{\"ticketIds\":[\"\xff\xfe\"]}", status: 422, code: "unknown_seat"},
		{why: "a seat twice", path: book, body: list(2, func(int) string { return free }), status: 422, code: "duplicate_seat", says: free},
		{why: "a seat too many", path: book, body: list(11, seat), status: 422, code: "too_many_seats"},
		{why: "10,000 seats", path: book, body: list(10_000, func(int) string { return "A" }), status: 422, code: "too_many_seats"},
		{why: "10,000 seats by their long names", path: book, body: list(10_000, func(i int) string { return seat(i % 40) }), status: 413, code: "body_too_large"},
		{why: "a body over the limit", path: book, body: `{"ticketIds":["` + strings.Repeat("A", web.BodyLimit) + `"]}`, status: 413, code: "body_too_large"},
		{why: "spaces over the limit", path: book, body: list(1, seat) + strings.Repeat(" ", web.BodyLimit), status: 413, code: "body_too_large"},
		{why: "a stream of a body over the limit", path: book, body: `{"ticketIds":["` + strings.Repeat("A", web.BodyLimit) + `"]}`, stream: true, status: 413, code: "body_too_large"},
		{why: "a stream of spaces over the limit", path: book, body: list(1, seat) + strings.Repeat(" ", web.BodyLimit), stream: true, status: 413, code: "body_too_large"},
		{why: "more than the account may hold", path: book, body: list(7, seat), status: 429, code: "too_many_held"},
		{why: "a seat that is held", path: book, body: `{"ticketIds":["` + free + `","` + s.seats[2] + `"]}`, status: 409, code: "seats_taken", says: s.seats[2]},
		{why: "a seat that is sold", path: book, body: `{"ticketIds":["` + free + `","` + s.seats[0] + `"]}`, status: 409, code: "seats_taken", says: s.seats[0]},
		{why: "unknown area", path: book, body: `{"areas":[{"area":"roof","quantity":1}]}`, status: 422, code: "unknown_area", says: "roof"},
		{why: "an area twice", path: book, body: `{"areas":[{"area":"standing","quantity":1},{"area":"standing","quantity":1}]}`, status: 400, code: "bad_request"},
		{why: "no places", path: book, body: standing("0"), status: 400, code: "bad_request"},
		{why: "fewer than no places", path: book, body: standing("-5"), status: 400, code: "bad_request"},
		{why: "half a place", path: book, body: standing("1.5"), status: 400, code: "bad_json"},
		{why: "more places than there are", path: book, body: standing("41"), status: 409, code: "area_full"},
		{why: "all the places of the world", path: book, body: standing("9223372036854775807"), status: 409, code: "area_full"},
		{why: "a number no machine has", path: book, body: standing("1e400"), status: 400, code: "bad_json"},
		{why: "the best, and seats", path: book, body: `{"bestAvailable":{"quantity":2},"ticketIds":["` + free + `"]}`, status: 422, code: "seats_and_best_available"},
		{why: "the best, and none", path: book, body: `{"bestAvailable":{}}`, status: 422, code: "bad_wish", says: "quantity"},
		{why: "the best of fewer than none", path: book, body: `{"bestAvailable":{"quantity":-2}}`, status: 422, code: "bad_wish"},
		{why: "the best of all the world", path: book, body: `{"bestAvailable":{"quantity":9223372036854775807}}`, status: 422, code: "bad_wish"},
		{why: "the best, and half", path: book, body: `{"bestAvailable":{"quantity":1.5}}`, status: 400, code: "bad_json"},
		{why: "the best by its number", path: book, body: `{"bestAvailable":2}`, status: 400, code: "bad_json", says: "bestAvailable"},
		{why: "a list of the best", path: book, body: `{"bestAvailable":[{"quantity":2}]}`, status: 400, code: "bad_json"},
		{why: "the best, and an unknown wish", path: book, body: `{"bestAvailable":{"quantity":2,"seed":7}}`, status: 400, code: "bad_json", says: "seed"},
		{why: "the best, released by the shopper", path: book, body: `{"bestAvailable":{"quantity":2,"Released":true}}`, status: 400, code: "bad_json"},
		{why: "a seat too many of the best", path: book, body: `{"bestAvailable":{"quantity":11}}`, status: 422, code: "too_many_seats"},
		{why: "the best and places, too many", path: book, body: `{"bestAvailable":{"quantity":8},"areas":[{"area":"standing","quantity":3}]}`, status: 422, code: "too_many_seats"},
		{why: "the best of a section that is not there", path: book, body: `{"bestAvailable":{"quantity":2,"sections":["roof"]}}`, status: 422, code: "bad_wish", says: "roof"},
		{why: "the best of a category that is not there", path: book, body: `{"bestAvailable":{"quantity":2,"categories":["Gold\u0000"]}}`, status: 422, code: "bad_wish"},
		{why: "the best for less than nothing", path: book, body: `{"bestAvailable":{"quantity":2,"minPrice":-1}}`, status: 422, code: "bad_wish"},
		{why: "the best, from more to less", path: book, body: `{"bestAvailable":{"quantity":2,"minPrice":2,"maxPrice":1}}`, status: 422, code: "bad_wish"},
		{why: "more wheelchairs than people", path: book, body: `{"bestAvailable":{"quantity":2,"accessible":3}}`, status: 422, code: "bad_wish"},
		{why: "the best for a cent", path: book, body: `{"bestAvailable":{"quantity":2,"maxPrice":1}}`, status: 422, code: "bad_wish", says: "prices"},
		{why: "the best, more than the account may hold", path: book, body: `{"bestAvailable":{"quantity":7}}`, status: 429, code: "too_many_held"},
		{why: "the best under the key of a booking that is over", path: book, body: `{"bestAvailable":{"quantity":2}}`, header: key("seats from 6"), status: 409, code: "hold_expired"},
		{why: "the best under the key of another request", path: book, body: `{"bestAvailable":{"quantity":2}}`, header: key("seats from 2"), status: 422, code: "idempotency_key_reused"},
		{why: "alternatives by name", path: book, body: `{"ticketIds":["` + free + `"],"alternatives":"yes"}`, status: 400, code: "bad_json"},

		{why: "an empty key", path: book, body: list(1, seat), header: key(" "), status: 400, code: "bad_request"},
		{why: "two keys", path: book, body: list(1, seat), header: key("one\ntwo"), status: 400, code: "bad_request"},
		{why: "a long key", path: book, body: list(1, seat), header: key(strings.Repeat("k", 256)), status: 400, code: "bad_request"},
		{why: "a huge key", path: book, body: list(1, seat), header: key(strings.Repeat("k", 20_000)), status: 400, code: "bad_request"},
		{why: "a key that is not text", path: book, body: list(1, seat), header: key("\xff\xfe"), status: 400, code: "bad_request"},
		{why: "the key of another request", path: book, body: list(1, seat), header: key("seats from 2"), status: 422, code: "idempotency_key_reused"},
		{why: "the key of a booking that is over", path: book, body: list(1, seat), header: key("seats from 6"), status: 409, code: "hold_expired"},

		{why: "pay with nothing", path: pay, body: `{}`, status: 400, code: "bad_request", says: "paymentMethod"},
		{why: "pay with null", path: pay, body: `{"paymentMethod":null}`, status: 400, code: "bad_request"},
		{why: "pay with a number", path: pay, body: `{"paymentMethod":4242}`, status: 400, code: "bad_json", says: "paymentMethod"},
		{why: "pay with a book", path: pay, body: `{"paymentMethod":"` + strings.Repeat("4", 256) + `"}`, status: 400, code: "bad_request"},
		{why: "pay with a zero byte", path: pay, body: `{"paymentMethod":"42\u0000"}`, status: 400, code: "bad_request"},
		{why: "pay without a body", path: pay, body: ``, status: 400, code: "bad_json"},
		{why: "pay a price of one's own", path: pay, body: `{"paymentMethod":"` + goodCard + `","amount":1}`, status: 400, code: "bad_json", says: "amount"},
		{why: "pay under a long key", path: pay, body: `{"paymentMethod":"` + goodCard + `"}`, header: key(strings.Repeat("k", 256)), status: 400, code: "bad_request"},
		{why: "pay under an empty key", path: pay, body: `{"paymentMethod":"` + goodCard + `"}`, header: key(" "), status: 400, code: "bad_request"},
		{why: "pay under two keys", path: pay, body: `{"paymentMethod":"` + goodCard + `"}`, header: key("one\ntwo"), status: 400, code: "bad_request"},
		{why: "pay under a key that is not text", path: pay, body: `{"paymentMethod":"` + goodCard + `"}`, header: key("\xff\xfe"), status: 400, code: "bad_request"},
		{why: "pay under the key of another card", path: "/v1/bookings/" + s.paying + "/payment", body: `{"paymentMethod":"` + goodCard + `"}`, header: key("paid once"), status: 422, code: "idempotency_key_reused"},
		{why: "pay what is sold", path: "/v1/bookings/" + s.sold + "/payment", body: `{"paymentMethod":"` + goodCard + `"}`, status: 409, code: "booking_final"},
		{why: "pay what was given back", path: "/v1/bookings/" + s.over + "/payment", body: `{"paymentMethod":"` + goodCard + `"}`, status: 409, code: "hold_expired"},
		{why: "extend what was given back", path: "/v1/bookings/" + s.over + "/extend", status: 409, code: "hold_expired"},
		{why: "give back what is sold", method: http.MethodDelete, path: "/v1/bookings/" + s.sold, status: 409, code: "booking_final"},
		{why: "swap with nothing", method: http.MethodPut, path: swap, body: `{}`, status: 400, code: "empty_booking"},
		{why: "swap with null", method: http.MethodPut, path: swap, body: `null`, status: 400, code: "empty_booking"},
		{why: "swap without a body", method: http.MethodPut, path: swap, body: ``, status: 400, code: "bad_json"},
		{why: "swap with an unknown field", method: http.MethodPut, path: swap, body: `{"ticketIds":["` + free + `"],"total":1}`, status: 400, code: "bad_json", says: "total"},
		{why: "swap by numbers", method: http.MethodPut, path: swap, body: `{"ticketIds":[20]}`, status: 400, code: "bad_json"},
		{why: "swap for an unknown seat", method: http.MethodPut, path: swap, body: `{"ticketIds":["` + free + `","nowhere-1"]}`, status: 422, code: "unknown_seat", says: "nowhere-1"},
		{why: "swap for a seat twice", method: http.MethodPut, path: swap, body: list(2, func(int) string { return free }), status: 422, code: "duplicate_seat"},
		{why: "swap for a seat too many", method: http.MethodPut, path: swap, body: list(11, seat), status: 422, code: "too_many_seats"},
		{why: "swap for 10,000 seats", method: http.MethodPut, path: swap, body: list(10_000, func(int) string { return "A" }), status: 422, code: "too_many_seats"},
		{why: "swap for more than the account may have with what it bought", method: http.MethodPut, path: swap, body: list(9, seat), status: 403, code: "account_limit"},
		{why: "swap for a seat that is held", method: http.MethodPut, path: swap, body: `{"ticketIds":["` + free + `","` + s.seats[4] + `"]}`, status: 409, code: "seats_taken", says: s.seats[4]},
		{why: "swap for a seat that is sold", method: http.MethodPut, path: swap, body: `{"ticketIds":["` + s.seats[2] + `","` + s.seats[0] + `"]}`, status: 409, code: "seats_taken", says: s.seats[0]},
		{why: "swap what is being paid", method: http.MethodPut, path: "/v1/bookings/" + s.paying + "/seats", body: list(1, seat), status: 409, code: "payment_in_progress"},
		{why: "swap what is sold", method: http.MethodPut, path: "/v1/bookings/" + s.sold + "/seats", body: list(1, seat), status: 409, code: "booking_final"},
		{why: "swap what was given back", method: http.MethodPut, path: "/v1/bookings/" + s.over + "/seats", body: list(1, seat), status: 409, code: "hold_expired"},
		{why: "confirm what was given back", method: http.MethodPut, path: "/v1/bookings/" + s.over + "/confirm", status: 409, code: "hold_expired"},
	}
}

func (s *stage) badTokens(t *testing.T) []sent {
	t.Helper()
	late, err := s.sessions.Mint("ann", -time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	key, err := web.ParseKey(web.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	others, err := web.OpenSessions(t.Context(), web.SessionOptions{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	forged, err := others.Mint("ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	unspeakable, err := s.sessions.Mint("an\x00n", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	_, rest, _ := strings.Cut(s.ann.token, ".")
	claims, _, _ := strings.Cut(rest, ".")
	unsigned := b64([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + claims + "."
	promoted := b64([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + b64([]byte(`{"sub":"bob","exp":4102444800}`)) + s.ann.token[strings.LastIndex(s.ann.token, "."):]
	var all []sent
	for why, c := range map[string]struct{ authorization, code string }{
		"no token":                          {"", "token_missing"},
		"a token that is over":              {"Bearer " + late, "token_expired"},
		"a token of another house":          {"Bearer " + forged, "token_invalid"},
		"a token without signature":         {"Bearer " + unsigned, "token_invalid"},
		"a signature of other claims":       {"Bearer " + promoted, "token_invalid"},
		"no token at all behind the scheme": {"Bearer x", "token_invalid"},
		"a token that is far too long":      {"Bearer " + strings.Repeat("x", 20_000), "token_invalid"},
		"an account no store can write":     {"Bearer " + unspeakable, "token_invalid"},
		"another scheme":                    {"Basic YW5uOmFubg==", "token_invalid"},
	} {
		for _, call := range []sent{
			{why: "take", path: "/v1/bookings/" + s.event, body: `{"ticketIds":["` + s.seats[20] + `"]}`},
			{why: "extend", path: "/v1/bookings/" + s.basket + "/extend"},
			{why: "read", method: http.MethodGet, path: "/v1/bookings/" + s.basket},
			{why: "give back", method: http.MethodDelete, path: "/v1/bookings/" + s.basket},
			{why: "pay", path: "/v1/bookings/" + s.basket + "/payment", body: `{"paymentMethod":"` + goodCard + `"}`},
			{why: "confirm", method: http.MethodPut, path: "/v1/bookings/" + s.paying + "/confirm"},
			{why: "swap", method: http.MethodPut, path: "/v1/bookings/" + s.basket + "/seats", body: `{"ticketIds":["` + s.seats[20] + `"]}`},
		} {
			call.why += " with " + why
			call.header = map[string]string{"Authorization": c.authorization}
			call.status, call.code = http.StatusUnauthorized, c.code
			all = append(all, call)
		}
	}
	return all
}

func (s *stage) badPaths() []sent {
	one := `{"ticketIds":["` + s.seats[20] + `"]}`
	all := []sent{
		{why: "an event that is closed", path: "/v1/bookings/" + s.closed, body: one, status: 403, code: "sale_not_open", says: "the operator has closed the sale"},
		{why: "an event that is not yet open", path: "/v1/bookings/" + s.early, body: one, status: 403, code: "sale_not_open", says: "opens"},
		{why: "no such path", path: "/v1/bookings/" + s.event + "/steal", status: 404, code: "not_found"},
		{why: "no such method", method: http.MethodPatch, path: "/v1/bookings/" + s.basket, status: 405, code: "method_not_allowed"},
		{why: "webhook of a stranger", path: "/v1/payments/webhook/sandbox", body: `{"id":"evt_1","type":"payment.authorized","payment":"pay_1"}`, status: 400, code: "bad_signature"},
		{why: "webhook of no provider", path: "/v1/payments/webhook/piggybank", body: `{}`, status: 404, code: "not_found"},
		{why: "a chart with a zero byte", method: http.MethodGet, path: "/v1/charts/%00.json", status: 404, code: "unknown_chart"},
		{why: "a search for a zero byte", method: http.MethodGet, path: "/v1/events/search?q=%00", status: 400, code: "bad_request"},
		{why: "a map since yesterday", method: http.MethodGet, path: "/v1/events/" + s.event + "/seatmap?since=yesterday", status: 400, code: "bad_request"},
	}
	_, token, _ := seatmap.ParseBookingID(s.basket)
	for why, event := range map[string]string{
		"unknown event": "derby", "an event of letters no event has": "DERBY", "an event with a zero byte": "der%00by",
		"an event that is not UTF-8": "%ff%fe", "an event with a brace": "a%7Db", "a very long event": strings.Repeat("e", 5000),
	} {
		all = append(all,
			sent{why: "take: " + why, path: "/v1/bookings/" + event, body: one, status: 404, code: "unknown_event"},
			sent{why: "map: " + why, method: http.MethodGet, path: "/v1/events/" + event + "/seatmap", status: 404, code: "unknown_event"},
			sent{why: "stream: " + why, method: http.MethodGet, path: "/v1/events/" + event + "/live", status: 404, code: "unknown_event"},
			sent{why: "event: " + why, method: http.MethodGet, path: "/v1/events/" + event, status: 404, code: "unknown_event"})
		all = append(all, s.unknownBooking(why, event+"."+token)...)
	}
	for why, id := range map[string]string{
		"a token nobody has":          s.event + "." + strings.Repeat("A", 32),
		"a token cut short":           s.basket[:len(s.basket)-1],
		"a token of wrong letters":    s.event + ".%21%22%24",
		"a token with a zero byte":    s.event + ".AAAA%00",
		"a token that is not UTF-8":   s.event + ".%ff",
		"a very long token":           s.event + "." + strings.Repeat("A", 5000),
		"no token":                    s.event + ".",
		"two dots":                    s.basket + ".x",
		"the basket of another event": s.closed + "." + token,
	} {
		all = append(all, s.unknownBooking(why, id)...)
	}
	return append(all, s.unknownBooking("no dot", s.event)[:5]...) // a POST there is a booking of the event
}

// unknownBooking is every call there is on a booking that is not there.
func (s *stage) unknownBooking(why, id string) []sent {
	calls := []sent{
		{why: "read", method: http.MethodGet, path: "/v1/bookings/" + id},
		{why: "give back", method: http.MethodDelete, path: "/v1/bookings/" + id},
		{why: "extend", path: "/v1/bookings/" + id + "/extend"},
		{why: "confirm", method: http.MethodPut, path: "/v1/bookings/" + id + "/confirm"},
		{why: "swap", method: http.MethodPut, path: "/v1/bookings/" + id + "/seats", body: `{"ticketIds":["` + s.seats[20] + `"]}`},
		{why: "pay", path: "/v1/bookings/" + id + "/payment", body: `{"paymentMethod":"` + goodCard + `"}`},
	}
	for i := range calls {
		calls[i].why += ": " + why
		calls[i].status, calls[i].code = http.StatusNotFound, "unknown_booking"
	}
	return calls
}
