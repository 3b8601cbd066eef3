package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatcast/internal/browsertest"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/waitingroom"
)

// waiting is a house whose event people wait for.
type waiting struct {
	*house
	operator shopper
}

// waits makes a waiting room that is open, and returns once every node knows it.
func (h *house) waits(terms map[string]any, nodes ...*node) waiting {
	h.t.Helper()
	w := waiting{h, h.operator(nodes[0], "olga")}
	room := map[string]any{"rate": 60_000, "burst": 100, "cap": 100, "sessionSeconds": 300,
		"joinsAt": time.Now().Add(-time.Hour), "opensAt": time.Now().Add(-time.Minute)}
	for name, value := range terms {
		room[name] = value
	}
	w.admin(http.MethodPut, "", room).want(h.t, http.StatusOK, "")
	for _, n := range nodes {
		eventually(h.t, 10*time.Second, "the room is open on every node", func() bool {
			a := shopper{h.t, n.url, ""}.do(http.MethodGet, "/v1/queue/"+h.event, "", nil)
			return a.status == http.StatusOK && a.State == string(waitingroom.Open)
		})
	}
	return w
}

func (w waiting) admin(method, rest string, body any) answer {
	w.t.Helper()
	return w.operator.do(method, "/v1/admin/rooms/"+w.event+rest, "", body)
}

// enters joins and waits for a pass.
func (w waiting) enters(s shopper) string {
	w.t.Helper()
	joined := s.do(http.MethodPost, "/v1/queue/"+w.event, "", nil)
	if joined.status != http.StatusCreated && joined.status != http.StatusOK {
		w.t.Fatalf("joins: %d %s", joined.status, joined.raw)
	}
	var got struct{ Pass string }
	eventually(w.t, 10*time.Second, "somebody is let in", func() bool {
		a := s.do(http.MethodPost, "/v1/queue/"+w.event+"/pass", "", nil)
		return a.status == http.StatusOK && json.Unmarshal(a.raw, &got) == nil
	})
	return got.Pass
}

// showing sends a request with a pass.
func (s shopper) showing(pass, method, path string, body any) answer {
	s.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, bytes.NewReader(raw))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if pass != "" {
		req.Header.Set("Seatcast-Pass", pass)
	}
	return send(req)
}

func (w waiting) takes(s shopper, pass string, seats ...string) answer {
	return s.showing(pass, http.MethodPost, "/v1/bookings/"+w.event, map[string]any{"ticketIds": seats})
}

func TestNobodyBooksBeforeTheirTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	one, two := h.node(), h.node()
	seats := h.seats(6)
	w := h.waits(nil, one, two)
	ann, bob := h.shopper(one, "ann"), h.shopper(two, "bob")
	pass := w.enters(ann)
	keys, err := waitingroom.ParseKeys("", testServerKey)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(event string, until time.Time) string {
		id := keys.TicketOf(event, "ann").ID
		token, err := keys.SignPass(waitingroom.Pass{ID: fmt.Sprintf("%v-%d", id, until.UnixMilli()), Event: event, User: "ann", Ticket: id, Until: until})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	parts := strings.Split(pass, ".")
	for what, c := range map[string]struct {
		who        shopper
		pass, code string
	}{
		"none":              {ann, "", "pass_required"},
		"another account's": {bob, pass, "pass_invalid"},
		"another event's":   {ann, signed("elsewhere", time.Now().Add(time.Minute)), "pass_invalid"},
		"an expired one":    {ann, signed(h.event, time.Now().Add(-time.Second)), "pass_expired"},
		"a forged alg":      {ann, "eyJhbGciOiJub25lIiwidHlwIjoic2VhdGNhc3QtcGFzcytqd3QifQ." + parts[1] + ".", "pass_invalid"},
		"no signature":      {ann, parts[0] + "." + parts[1] + ".", "pass_invalid"},
	} {
		if a := w.takes(c.who, c.pass, seats[0]); a.status != http.StatusForbidden || a.Code != c.code {
			t.Errorf("with %s: %d %s", what, a.status, a.raw)
		}
	}
	held := w.takes(ann, pass, seats[0]).want(t, http.StatusCreated, "")
	swap := func(pass string) answer {
		return ann.showing(pass, http.MethodPut, "/v1/bookings/"+held.BookingID+"/seats", map[string]any{"ticketIds": seats[1:2]})
	}
	swap("").want(t, http.StatusForbidden, "pass_required")
	swap(pass).want(t, http.StatusOK, "")

	lost := signed(h.event, time.Now().Add(time.Minute)) // Redis knows nobody of it
	if err := h.rdb.ZRem(t.Context(), seatmap.InsideKey(h.event), keys.TicketOf(h.event, "ann").ID.String()).Err(); err != nil {
		t.Fatal(err)
	}
	w.takes(ann, lost, seats[2]).want(t, http.StatusCreated, "")
	if n := h.rdb.ZCard(t.Context(), seatmap.InsideKey(h.event)).Val(); n != 1 {
		t.Errorf("who shows a good pass that Redis has lost is not inside: %d are", n)
	}

	hers := w.enters(bob)
	w.admin(http.MethodPost, "/revoke", map[string]string{"user": "bob"}).want(t, http.StatusNoContent, "")
	w.takes(bob, hers, seats[3]).want(t, http.StatusForbidden, "pass_revoked")
}

func TestWhoHasBoughtMakesRoomForTheNext(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	w := h.waits(map[string]any{"cap": 1}, n)
	ann, bob := h.shopper(n, "ann"), h.shopper(n, "bob")
	pass := w.enters(ann)
	bob.do(http.MethodPost, "/v1/queue/"+h.event, "", nil).want(t, http.StatusCreated, "")
	bob.do(http.MethodPost, "/v1/queue/"+h.event+"/pass", "", nil).want(t, http.StatusAccepted, "")
	booking := w.takes(ann, pass, h.seats(1)...).want(t, http.StatusCreated, "").BookingID
	ann.pay(booking, "", goodCard).want(t, http.StatusCreated, "")
	ann.ends(booking).wantSold(t, 1)
	w.enters(bob)
	w.takes(ann, pass, h.seats(2)[1]).want(t, http.StatusForbidden, "pass_revoked")
}

// duo is a house of two seats.
func duo() *seatmap.Chart {
	seat := func(i int) seatmap.Seat {
		return seatmap.Seat{TicketID: fmt.Sprint("s-", i), I: i, Label: fmt.Sprint(i), Category: "all"}
	}
	return &seatmap.Chart{Name: "Pair", Width: 10, Height: 10, Seats: 2, Categories: []seatmap.Category{{Name: "all"}},
		Sections: []seatmap.Section{{ID: "s", Name: "S", Rows: []seatmap.Row{{Label: "A", Seats: []seatmap.Seat{seat(0), seat(1)}}}}}}
}

// lines are how a line can be watched.
func (h *house) lines(n *node) map[string]*frames {
	res, err := http.Get(n.url + "/v1/queue/" + h.event + "/live")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() })
	in := bufio.NewScanner(res.Body)
	socket := dial(h.t, n.url)
	socket.say(fmt.Sprintf(`{"sub":%q}`, waitingroom.Topic(h.event)))
	return map[string]*frames{"SSE": {t: h.t, read: func() (frame, error) { return readSSE(in) }}, "WebSocket": socket}
}

func TestALineIsWatchedAndToldWithinTwoSecondsThatAllIsSold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{chart: duo()})
	n := h.node()
	w := h.waits(map[string]any{"rate": 6000}, n)
	ann := h.shopper(n, "ann")
	pass := w.enters(ann)
	streams := h.lines(n)
	for way, s := range streams {
		if f := s.next(); f.Type != "hello" {
			t.Errorf("%s begins with %v", way, f)
		}
		if f := s.next(); f.Type != "snapshot" || !strings.Contains(string(f.raw), `"state":"open"`) {
			t.Errorf("%s goes on with %v", way, f)
		}
	}
	booking := w.takes(ann, pass, h.seats(2)...).want(t, http.StatusCreated, "").BookingID
	ann.pay(booking, "", goodCard).want(t, http.StatusCreated, "")
	ann.ends(booking).wantSold(t, 2)
	sold := time.Now()
	for way, s := range streams {
		for {
			f := s.next()
			if f.Type != "delta" || f.Prev != 0 {
				t.Fatalf("%s: %v", way, f)
			}
			if strings.Contains(string(f.raw), `"state":"over"`) {
				break
			}
		}
	}
	if took := time.Since(sold); took > 2*time.Second && devtest.Late(sold, 2*time.Second) {
		t.Errorf("told after %v", took)
	}
	h.shopper(n, "bob").do(http.MethodPost, "/v1/queue/"+h.event, "", nil).want(t, http.StatusGone, "queue_over")
}

func TestAShopperComesFromTheLineToASeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	h.waits(map[string]any{"proof": 5000}, n)
	p := browsertest.Open(t, n.url+"/queue/"+h.event)
	p.Until("it can be joined", `!document.getElementById('join').hidden`)
	browsertest.Eval[int](p, `document.getElementById('join').click(); return 0;`)
	p.Until("it is the turn", `document.title.startsWith('It is your turn') && !document.getElementById('enter').hidden`)
	status := browsertest.Eval[string](p, browsertest.Modules+fmt.Sprintf(`
		const { Api } = await use('api.js');
		const { Clock } = await use('clock.js');
		const { Session } = await use('session.js');
		const api = new Api(new Clock(), new Session(), await use('line.js'));
		return (await api.call('POST', '/v1/bookings/%s', { body: { ticketIds: ['%s'] } })).state;`, h.event, h.seats(1)[0]))
	if status != "held" {
		t.Errorf("the booking is %s", status)
	}
	if console := p.Console(); console != "" {
		t.Errorf("console: %s", console)
	}
}

func TestANodeThatDiesChangesNoPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	one, two := h.node(), h.node()
	h.waits(map[string]any{"rate": 600, "burst": 1}, one, two)
	type joined struct {
		Place  string
		Number int64
	}
	places := map[string]joined{}
	join := func(n *node, user, place string) (j joined) {
		a := h.shopper(n, user).do(http.MethodPost, "/v1/queue/"+h.event, "", map[string]string{"place": place})
		if a.status >= 300 || json.Unmarshal(a.raw, &j) != nil {
			t.Fatalf("%s joins: %d %s", user, a.status, a.raw)
		}
		return j
	}
	for k := range 40 {
		user := fmt.Sprint("fan-", k)
		places[user] = join([]*node{one, two}[k%2], user, "")
	}
	serving := func() (f struct{ Serving int64 }) {
		a := shopper{t, two.url, ""}.do(http.MethodGet, "/v1/queue/"+h.event, "", nil)
		if err := json.Unmarshal(a.raw, &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	before := serving().Serving
	one.kill()
	for user, was := range places {
		if is := join(two, user, was.Place); is.Number != was.Number {
			t.Errorf("%s had place %d and has %d", user, was.Number, is.Number)
		}
	}
	eventually(t, 10*time.Second, "the other node calls", func() bool { return serving().Serving >= 40 })
	if now := serving().Serving; now < before {
		t.Errorf("serving fell from %d to %d", before, now)
	}
}
