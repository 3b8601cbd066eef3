package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seatcast/hub"
	"seatcast/internal/browsertest"
	"seatcast/seatmap"
)

// guards makes the waiting room of an event that shows its map to who is inside,
// and returns once the node knows.
func (h *house) guards(terms map[string]any, n *node) waiting {
	h.t.Helper()
	terms["guardsMap"] = true
	w := h.waits(terms, n)
	eventually(h.t, 10*time.Second, "the map is guarded", func() bool {
		var e struct{ Guarded bool }
		a := shopper{h.t, n.url, ""}.do(http.MethodGet, "/v1/events/"+h.event, "", nil)
		return json.Unmarshal(a.raw, &e) == nil && e.Guarded
	})
	return w
}

func TestAMapThatARoomGuardsIsShownToWhoIsInside(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	w := h.guards(map[string]any{}, n)
	ann, bob := h.shopper(n, "ann"), h.shopper(n, "bob")
	pass := w.enters(ann)
	for _, call := range []struct {
		method, path string
		granted      int
	}{
		{http.MethodGet, "/seatmap", http.StatusOK},
		{http.MethodGet, "/seatmap?since=5", http.StatusOK},
		{http.MethodPost, "/live-ticket", http.StatusCreated},
	} {
		path := "/v1/events/" + h.event + call.path
		ann.showing("", call.method, path, nil).want(t, http.StatusForbidden, "pass_required")
		ann.showing("let me in", call.method, path, nil).want(t, http.StatusForbidden, "pass_invalid")
		bob.showing(pass, call.method, path, nil).want(t, http.StatusForbidden, "pass_invalid")
		ann.showing(pass, call.method, path, nil).want(t, call.granted, "")
	}
	shopper{t, n.url, ""}.do(http.MethodGet, "/v1/events/"+h.event+"/seatmap", "", nil).want(t, http.StatusUnauthorized, "ticket_missing")
	shopper{t, n.url, ""}.do(http.MethodGet, "/v1/events/"+h.event+"/live", "", nil).want(t, http.StatusUnauthorized, "ticket_missing")
	socket := dial(t, n.url)
	socket.say(fmt.Sprintf(`{"sub":%q}`, seatmap.Topic(h.event)))
	if f := socket.next(); f.Code != "ticket_missing" {
		t.Errorf("a socket without a ticket is told %v", f)
	}
}

func TestWhatAPassHasOpenedEndsWithIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	w := h.guards(map[string]any{"sessionSeconds": 10}, n)
	ann := h.shopper(n, "ann")
	pass := w.enters(ann)
	var ends time.Time
	ticket := func() (ticket string) {
		a := ann.showing(pass, http.MethodPost, "/v1/events/"+h.event+"/live-ticket", nil)
		a.want(t, http.StatusCreated, "")
		var issued struct{ Ticket string }
		if err := json.Unmarshal(a.raw, &issued); err != nil {
			t.Fatal(err)
		}
		return issued.Ticket
	}
	var me struct{ InsideUntil time.Time }
	if err := json.Unmarshal(ann.do(http.MethodGet, "/v1/queue/"+h.event+"/me", "", nil).raw, &me); err != nil {
		t.Fatal(err)
	}
	ends = me.InsideUntil
	res, err := http.Get(n.url + "/v1/events/" + h.event + "/live?ticket=" + ticket())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewScanner(res.Body)
	socket := dial(t, n.url)
	socket.say(fmt.Sprintf(`{"sub":%q,"ticket":%q}`, seatmap.Topic(h.event), ticket()))
	for way, read := range map[string]func() (frame, error){"SSE": func() (frame, error) { return readSSE(in) }, "WebSocket": socket.read} {
		var err error
		for seen := 0; err == nil; seen++ {
			var f frame
			if f, err = read(); err == nil && seen == 0 && f.Type != "hello" {
				t.Fatalf("%s begins with %v", way, f)
			}
		}
		if early := time.Until(ends); early > time.Second {
			t.Errorf("%s ended %v before the pass: %v", way, early, err)
		}
		var closed websocket.CloseError
		if way == "WebSocket" && (!errors.As(err, &closed) || closed.Code != websocket.StatusCode(hub.CloseAge)) {
			t.Errorf("the socket ended with %v", err)
		}
	}
	if late := time.Since(ends); late > 10*time.Second {
		t.Errorf("they ended %v after the pass", late)
	}
	ann.showing(pass, http.MethodPost, "/v1/events/"+h.event+"/live-ticket", nil).want(t, http.StatusForbidden, "pass_expired")
}

func TestWhoIsNotInsideIsLedFromTheMapToTheLineAndBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	h.guards(map[string]any{}, n)
	p := browsertest.Open(t, n.url+"/events/"+h.event)
	p.Until("the line is there", `location.pathname === '/queue/`+h.event+`' && document.getElementById('join') && !document.getElementById('join').hidden`)
	browsertest.Eval[int](p, `document.getElementById('join').click(); return 0;`)
	p.Until("it is the turn", `!document.getElementById('enter').hidden`)
	browsertest.Eval[int](p, `document.getElementById('enter').click(); return 0;`)
	p.Until("the map is live", `location.pathname.startsWith('/events/') && document.getElementById('live')?.dataset.mode === 'live'`)
}

func TestAShopperIsLedToARoomThatHasComeMeanwhileIsToldWhyAndComesBackToTheirSeats(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	p := browsertest.Open(t, n.url+"/events/"+h.event)
	p.Until("the map is live", `document.getElementById('live').dataset.mode === 'live'`)
	browsertest.Eval[int](p, `document.getElementById('show-list').click(); return 0;`)
	const free = `[...document.querySelectorAll('#list .seats button')].find((b) => !b.disabled)`
	p.Until("a seat can be chosen", `[...document.querySelectorAll('#list details')].forEach((d) => { d.open = true; }), `+free)
	browsertest.Eval[int](p, free+`.click(); return 0;`)
	p.Until("it is chosen", `document.querySelector('#panel .lines .place') && document.querySelector('[data-key=hold]')`)
	chosen := browsertest.Eval[string](p, `return document.querySelector('#panel .lines .place').innerText`)
	h.waits(map[string]any{}, n)
	browsertest.Eval[int](p, `document.querySelector('[data-key=hold]').click(); return 0;`)
	p.Until("she is told why she is in a line", `location.pathname === '/queue/`+h.event+`' && document.getElementById('why')?.innerText.includes('The seats you chose stay chosen.') && !document.getElementById('join').hidden`)
	browsertest.Eval[int](p, `document.getElementById('join').click(); return 0;`)
	p.Until("it is the turn", `!document.getElementById('enter').hidden`)
	browsertest.Eval[int](p, `document.getElementById('enter').click(); return 0;`)
	p.Until("her seat is chosen, and her time is counted down", fmt.Sprintf(`location.pathname.startsWith('/events/') && document.querySelector('#panel .lines .place')?.innerText === %q
		&& !document.getElementById('inside').hidden && document.getElementById('line').hidden`, chosen))
	browsertest.Eval[int](p, `document.querySelector('[data-key=hold]').click(); return 0;`)
	p.Until("it is hers", `document.getElementById('panel').dataset.stage === 'held'`)
}
