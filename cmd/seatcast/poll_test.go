package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/seatmap"
)

// An event of the ordinary kind is not pushed: 204 tells EventSource to stop,
// a socket is told where to poll, and the map is polled with what HTTP has for it.
func TestAnOrdinaryEventIsPolled(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary, terms: seatmap.Terms{Hold: 4 * time.Second, Grace: 200 * time.Millisecond}})
	n := h.node()
	ann, anybody := h.shopper(n, "ann"), shopper{t: t, base: n.url}
	path := "/v1/events/" + h.event

	if a := anybody.do(http.MethodGet, path+"/live", "", nil).want(t, http.StatusNoContent, ""); len(a.raw) > 0 {
		t.Errorf("204 with a body: %s", a.raw)
	}
	fs := dial(t, n.url)
	fs.say(fmt.Sprintf(`{"sub":%q}`, seatmap.Topic(h.event)))
	if f := fs.next(); f.Type != "error" || f.Code != "not_pushed" || !strings.Contains(string(f.raw), path+"/seatmap") {
		t.Errorf("a socket is told %s", f.raw)
	}

	first := h.poll(n, "", "")
	if first.N == 0 || first.Mode != "ordinary" || first.Live != nil || first.PollAfterMs < 1000 || first.cache != "public, max-age=30" {
		t.Errorf("the map to poll: %+v", first)
	}
	if again := h.poll(n, "", first.tag); again.status != http.StatusNotModified || again.tag != first.tag {
		t.Errorf("nothing changed and the answer is %d, tag %s after %s", again.status, again.tag, first.tag)
	}
	if d := h.since(n, first.N); d.N != first.N || d.Prev != first.N || d.cache != "no-store" {
		t.Errorf("nothing changed since %d: %+v", first.N, d)
	}

	ann.hold(h.event, "", h.seats(3)...).want(t, http.StatusCreated, "")
	second := h.poll(n, "", first.tag)
	want := stateOf(h.chart.Seats, seatmap.Held, 0, 1, 2)
	if second.status != http.StatusOK || second.tag == first.tag || !bytes.Equal(second.Map, want) {
		t.Errorf("after a hold: %d, %s", second.status, differ(want, second.Map))
	}
	if d := h.since(n, first.N); d.Prev != first.N || d.N != second.N || fmt.Sprint(d.Reserved) != "[0 1 2]" {
		t.Errorf("since %d: %+v", first.N, d)
	}
	if a := anybody.do(http.MethodGet, path+"/seatmap?since=12345", "", nil); a.status != http.StatusOK || !bytes.Contains(a.raw, []byte(`"map"`)) {
		t.Errorf("a number nobody knows leads to %d %s", a.status, a.raw)
	}
	anybody.do(http.MethodGet, path+"/seatmap?since=soon", "", nil).want(t, http.StatusBadRequest, "bad_request")

	// Nobody announces the ends of an ordinary event's holds by the clock: the look does.
	eventually(t, 15*time.Second, "the hold has ended for who polls", func() bool {
		return bytes.Equal(h.poll(n, "", "").Map, seatmap.NewMap(h.chart.Seats))
	})
	if d := h.since(n, second.N); fmt.Sprint(d.Released) != "[0 1 2]" {
		t.Errorf("since %d: %+v", second.N, d)
	}
}

// A hot event can be polled too, by who is told to: the same objects, sooner.
func TestAHotEventCanBePolledToo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	w := watch(t, h.event, n.url)
	eventually(t, 5*time.Second, "the node follows the event", func() bool { return w.number() > 0 })
	first := h.poll(n, "", "")
	if first.Mode != "hot" || first.Live == nil || *first.Live != "/v1/events/"+h.event+"/live" || first.cache != "public, max-age=1" {
		t.Errorf("the map to poll: %+v", first)
	}
	h.shopper(n, "ann").hold(h.event, "", h.seats(2)...).want(t, http.StatusCreated, "")
	var second polled
	eventually(t, 2*time.Second, "who polls sees the hold", func() bool {
		second = h.poll(n, "", first.tag)
		return second.status == http.StatusOK
	})
	if d := h.since(n, first.N); d.Prev != first.N || d.N != second.N || fmt.Sprint(d.Reserved) != "[0 1]" {
		t.Errorf("since %d: %+v", first.N, d)
	}
	if gone := h.poll(n, "?since=12345", ""); gone.status != http.StatusTemporaryRedirect || gone.location != "/v1/events/"+h.event+"/seatmap" {
		t.Errorf("a number nobody knows: %d to %q", gone.status, gone.location)
	}
}

// polled is an answer to a poll of the map, or of what changed.
type polled struct {
	N           int64       `json:"n"`
	Map         seatmap.Map `json:"map"`
	Chart       string      `json:"chart"`
	Mode        string      `json:"mode"`
	Live        *string     `json:"live"`
	PollAfterMs int         `json:"poll_after_ms"`

	Prev     int64 `json:"prev"`
	Reserved []int `json:"reserved"`
	Released []int `json:"released"`

	status               int
	tag, cache, location string
}

func (h *house) since(n *node, number int64) polled {
	h.t.Helper()
	return h.poll(n, fmt.Sprint("?since=", number), "")
}

// poll asks for the map once, and follows nothing.
func (h *house) poll(n *node, query, tag string) (p polled) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, n.url+"/v1/events/"+h.event+"/seatmap"+query, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusOK {
		if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
			h.t.Fatal(err)
		}
	}
	p.status, p.tag, p.cache, p.location = res.StatusCode, res.Header.Get("ETag"), res.Header.Get("Cache-Control"), res.Header.Get("Location")
	return p
}
