package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"seatcast/hub"
	"seatcast/seatmap"
)

// ticket asks for one of an event, and for where it is good.
func (s shopper) ticket(event string) (ticket, live string) {
	s.t.Helper()
	a := s.do(http.MethodPost, "/v1/events/"+event+"/live-ticket", "", nil)
	a.want(s.t, http.StatusCreated, "")
	var issued struct{ Ticket, Live string }
	if err := json.Unmarshal(a.raw, &issued); err != nil {
		s.t.Fatal(err)
	}
	return issued.Ticket, issued.Live
}

func TestAGuardedMapIsWatchedWithATicketOfAnyNode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{guard: true})
	one, two := h.node(), h.node()
	ann, stranger := h.shopper(one, "ann"), shopper{t, two.url, ""}
	map_ := "/v1/events/" + h.event + "/seatmap"
	stranger.do(http.MethodGet, map_, "", nil).want(t, http.StatusUnauthorized, "ticket_missing")
	ann.do(http.MethodGet, map_, "", nil).want(t, http.StatusOK, "")

	_, live := ann.ticket(h.event)
	res, err := http.Get(two.url + live)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	stream := &frames{t: t, read: func() (frame, error) { return readSSE(bufio.NewScanner(res.Body)) }}
	if f := stream.next(); res.StatusCode != http.StatusOK || f.Type != "hello" {
		t.Fatalf("with a ticket: %s, %v", res.Status, f)
	}
	shopper{t, one.url, ""}.do(http.MethodGet, live, "", nil).want(t, http.StatusForbidden, "ticket_used")

	ticket, _ := ann.ticket(h.event)
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(two.url, "http")+"/v1/ws?ticket="+ticket,
		&websocket.DialOptions{Subprotocols: []string{hub.Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	for _, want := range []string{"hello", "snapshot", "ticket_used"} {
		if want != "snapshot" {
			if err := conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"sub":%q}`, seatmap.Topic(h.event))); err != nil {
				t.Fatal(err)
			}
		}
		_, raw, err := conn.Read(t.Context())
		var f frame
		if err == nil {
			err = json.Unmarshal(raw, &f)
		}
		if err != nil || f.Type != want && f.Code != want {
			t.Fatalf("the socket says %v, %v; want %s", f, err, want)
		}
	}
}

func TestThePageOfAGuardedMapIsLive(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{guard: true})
	n := h.fated("demo")
	p := h.visit(t, n, "live")
	h.shopper(n, "ann").hold(h.event, "", h.seats(1)...).want(t, http.StatusCreated, "")
	p.list()
	p.lists(1, "on hold")
	p.clean()
}
