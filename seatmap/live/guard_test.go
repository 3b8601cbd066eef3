package live_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/seatmap/live"
	"seatcast/web"
)

// house is a node as browsers see it: with sessions and an access log.
type house struct {
	http.Handler
	tb    testing.TB
	event string
	ann   string // the session of somebody
	log   *bytes.Buffer
}

func newHouse(tb testing.TB, b *bundle, o live.TicketOptions) *house {
	tb.Helper()
	h := &house{tb: tb, event: b.event, log: new(bytes.Buffer)}
	if o.Key == nil {
		o.Key = []byte("a key that all nodes share")
	}
	key, err := web.ParseKey(web.GenerateKey())
	if err != nil {
		tb.Fatal(err)
	}
	sessions, err := web.OpenSessions(tb.Context(), web.SessionOptions{Key: key})
	if err != nil {
		tb.Fatal(err)
	}
	if h.ann, err = sessions.Mint("ann", time.Hour); err != nil {
		tb.Fatal(err)
	}
	e := web.New(web.Options{Log: slog.New(slog.NewTextHandler(h.log, nil))})
	live.NewAPI(b.feed, streams{}, live.NewTickets(o)).Mount(sessions.API(e))
	h.Handler = e
	return h
}

// guard has the node's event ask for tickets.
func (b *bundle) guard() *bundle {
	b.sales.mu.Lock()
	defer b.sales.mu.Unlock()
	sale := *b.sales.all[b.event]
	sale.Guarded = true
	b.sales.all[b.event] = &sale
	return b
}

// path is of the event, a ticket in its query.
func (h *house) path(what, ticket string) string {
	return "/v1/events/" + h.event + "/" + what + "?ticket=" + ticket
}

// socket is the path of a WebSocket that asks for the event's map.
func (h *house) socket(ticket string) string {
	return "/v1/ws?topic=" + seatmap.Topic(h.event) + "&ticket=" + ticket
}

// issue asks for a ticket, as whoever the session is of.
func (h *house) issue(event, session string) *httptest.ResponseRecorder {
	h.tb.Helper()
	r := httptest.NewRequestWithContext(h.tb.Context(), http.MethodPost, "/v1/events/"+event+"/live-ticket", nil)
	if session != "" {
		r.Header.Set("Authorization", "Bearer "+session)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

type ticketJSON struct {
	Ticket    string    `json:"ticket"`
	ExpiresAt time.Time `json:"expiresAt"`
	Live      string    `json:"live"`
}

func (h *house) ticket() string {
	h.tb.Helper()
	w := h.issue(h.event, h.ann)
	if w.Code != http.StatusCreated {
		h.tb.Fatalf("no ticket: %d %s", w.Code, w.Body)
	}
	return decode[ticketJSON](h.tb, w.Body).Ticket
}

// says is the status and the code of a problem, and of a socket its code.
func (h *house) says(path string, headers ...string) string {
	h.tb.Helper()
	w := get(h.tb, h, path, headers...)
	var p struct{ Code string }
	if strings.HasPrefix(path, "/v1/ws") {
		return strings.Trim(w.Body.String(), `"`)
	}
	if json.Unmarshal(w.Body.Bytes(), &p) != nil {
		return fmt.Sprint(w.Code)
	}
	return strings.TrimSpace(fmt.Sprint(w.Code, " ", p.Code))
}

func TestATicketIsGivenToWhoHasASession(t *testing.T) {
	b := setup(t).guard()
	h := newHouse(t, b, live.TicketOptions{Redis: b.rdb})
	w := h.issue(h.event, h.ann)
	got := decode[ticketJSON](t, w.Body)
	if w.Code != http.StatusCreated || w.Header().Get("Cache-Control") != "no-store" || got.Live != h.path("live", got.Ticket) {
		t.Errorf("%d, Cache-Control %q, %+v", w.Code, w.Header().Get("Cache-Control"), got)
	}
	if left := time.Until(got.ExpiresAt); left < 25*time.Second || left > 30*time.Second {
		t.Errorf("it is good for %v, want 30 s", left)
	}
	if says := h.says(got.Live); says != "200" {
		t.Errorf("the address that came with it answers %s", says)
	}
	for session, want := range map[string]string{"": "401 token_missing", "forged": "401 token_invalid"} {
		w := h.issue(h.event, session)
		if got := fmt.Sprint(w.Code, " ", decode[map[string]any](t, w.Body)["code"]); got != want {
			t.Errorf("session %q: %s, want %s", session, got, want)
		}
	}
	if w := h.issue("nowhere", h.ann); w.Code != http.StatusNotFound {
		t.Errorf("a ticket of no event: %d", w.Code)
	}
}

func TestATicketOpensOneStreamOnWhicheverNode(t *testing.T) {
	w := newWriter(t, devtest.Redis(t), devtest.NATS(t))
	var nodes []*house
	for range 2 {
		b := node(t, w, devtest.NATS(t), live.FeedOptions{}).guard()
		nodes = append(nodes, newHouse(t, b, live.TicketOptions{Redis: devtest.Redis(t)}))
	}
	for range 20 {
		ticket := nodes[0].ticket()
		said := make([]string, 12)
		var all sync.WaitGroup
		for i := range said {
			h := nodes[i%2]
			path := []string{h.path("live", ticket), h.path("seatmap", ticket), h.socket(ticket)}[i/2%3]
			all.Go(func() { said[i] = h.says(path) })
		}
		all.Wait()
		opened := 0
		for _, s := range said {
			switch {
			case s == "200" || s == "":
				opened++
			case !strings.HasSuffix(s, "ticket_used"):
				t.Errorf("a second use says %q", s)
			}
		}
		if opened != 1 {
			t.Fatalf("one ticket let %d in: %q", opened, said)
		}
	}
}

func TestATicketThatIsNoneIsRefusedByItsCode(t *testing.T) {
	b := setup(t).guard()
	h := newHouse(t, b, live.TicketOptions{Redis: b.rdb})
	b.sales.put("other", true)
	others := decode[ticketJSON](t, h.issue("other", h.ann).Body).Ticket
	stranger := newHouse(t, b, live.TicketOptions{Redis: b.rdb, Key: []byte("a key of somebody else")}).ticket()
	hasty := newHouse(t, b, live.TicketOptions{Redis: b.rdb, Life: time.Millisecond})
	late := hasty.ticket()
	b.until(time.Second, "an expired ticket", func() bool { return hasty.says(hasty.path("live", late)) == "403 ticket_expired" })

	good := h.ticket()
	for _, c := range []struct{ what, ticket, status, code string }{
		{"none", "", "401", "ticket_missing"},
		{"no ticket at all", "let-me-in", "403", "ticket_invalid"},
		{"a short one", good[:20], "403", "ticket_invalid"},
		{"one with another expiry", "B" + good[1:], "403", "ticket_invalid"},
		{"one of another house", stranger, "403", "ticket_invalid"},
		{"one of another event", others, "403", "ticket_invalid"},
		{"a late one", late, "403", "ticket_expired"},
	} {
		for _, path := range []string{h.path("live", c.ticket), h.path("seatmap", c.ticket)} {
			if got := h.says(path); got != c.status+" "+c.code {
				t.Errorf("%s at %s: %s, want %s %s", c.what, path, got, c.status, c.code)
			}
		}
		if got := h.says(h.socket(c.ticket)); got != c.code {
			t.Errorf("%s at a socket: %s, want %s", c.what, got, c.code)
		}
	}
	if got := h.says(h.path("live", good)); got != "200" {
		t.Errorf("what was made of a good ticket has used it up: %s", got)
	}
}

func TestAnEventWithoutAGuardAsksForNoTicketAndNotRedis(t *testing.T) {
	server := devtest.RedisServer(t, devstack.RedisOptions{})
	dead := server.Client()
	defer func() { _ = dead.Close() }()
	server.Kill()
	b := setup(t)
	h := newHouse(t, b, live.TicketOptions{Redis: dead})
	for _, ticket := range []string{"", "whatever", h.ticket()} {
		for path, want := range map[string]string{h.path("live", ticket): "200", h.path("seatmap", ticket): "200", h.socket(ticket): ""} {
			if got := h.says(path); got != want {
				t.Errorf("%s: %s, want %q", path, got, want)
			}
		}
	}
	b.guard()
	for path, want := range map[string]string{h.path("live", h.ticket()): "503 store_unavailable", h.socket(h.ticket()): "unavailable"} {
		if got := h.says(path); got != want {
			t.Errorf("a guard that cannot ask: %s, want %s", got, want)
		}
	}
}

func TestAGuardedMapIsReadWithASessionOrATicketAndKeptByNobody(t *testing.T) {
	b := setup(t)
	first := b.change(reserve(1))
	second := b.change(reserve(2))
	b.say(first, second)
	b.reaches(second.N, time.Second)
	h := newHouse(t, b.guard(), live.TicketOptions{Redis: b.rdb})
	plain := "/v1/events/" + h.event + "/seatmap"
	if got := h.says(plain); got != "401 ticket_missing" {
		t.Errorf("a stranger is told %s", got)
	}
	if got := h.says(plain, "Authorization", "Bearer forged"); got != "401 token_invalid" {
		t.Errorf("a forged session is told %s", got)
	}
	for what, path := range map[string]string{"the map": plain, "a number of long ago": plain + "?since=5", "a delta": plain + "?since=" + fmt.Sprint(first.N)} {
		w := get(t, h, path, "Authorization", "Bearer "+h.ann)
		d := decode[struct {
			N, Prev int64
			Map     []byte
		}](t, w.Body)
		if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "private, no-store" || d.N != second.N {
			t.Errorf("%s: %d, Cache-Control %q, %+v", what, w.Code, w.Header().Get("Cache-Control"), d)
		}
		if isDelta := what == "a delta"; isDelta != (d.Prev == first.N) || isDelta == (len(d.Map) > 0) {
			t.Errorf("%s: got %+v", what, d)
		}
	}
}

func TestTicketsStayOutOfTheLog(t *testing.T) {
	server := devtest.RedisServer(t, devstack.RedisOptions{})
	rdb := server.Client()
	defer func() { _ = rdb.Close() }()
	b := setup(t).guard()
	h := newHouse(t, b, live.TicketOptions{Redis: rdb})
	paths := func(ticket string) []string {
		return []string{h.path("live", ticket), h.path("seatmap", ticket), h.socket(ticket)}
	}
	tickets := []string{h.ticket(), "forged-ticket"}
	for _, ticket := range tickets {
		for _, path := range paths(ticket) {
			h.says(path)
		}
	}
	server.Kill()
	tickets = append(tickets, h.ticket())
	for _, path := range paths(tickets[2]) {
		h.says(path)
	}
	for _, ticket := range tickets {
		if strings.Contains(h.log.String(), ticket) {
			t.Errorf("a ticket was logged:\n%s", h.log)
		}
	}
	if n := strings.Count(h.log.String(), "ticket=***"); n != 9 || !strings.Contains(h.log.String(), "redeem a ticket") {
		t.Errorf("%d of 9 requests were logged, or not what failed:\n%s", n, h.log)
	}
}
