package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seatcast/hub"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// documentedNginx is an nginx as docs/operating.md has it, in front of two
// nodes.
func documentedNginx(t testing.TB, nodes ...*node) *node {
	t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, snippet, _ := strings.Cut(string(page), "\n```nginx\n")
	snippet, _, _ = strings.Cut(snippet, "\n```\n")
	return &node{url: devtest.Nginx(t, func(listen string) string {
		there := map[string]string{"listen 80;": "listen " + listen + ";", "/var/log/nginx/seatcast.log": os.DevNull}
		for i, n := range nodes {
			there[fmt.Sprintf("10.0.0.%d:8080", 5+i)] = strings.TrimPrefix(n.url, "http://")
		}
		for documented, here := range there {
			if !strings.Contains(snippet, documented) {
				t.Fatalf("%s is not in the documented configuration:\n%s", documented, snippet)
			}
			snippet = strings.ReplaceAll(snippet, documented, here)
		}
		return snippet
	}).URL()}
}

// bareNginx knows nothing of us: it speaks HTTP/1.0 to a node and buffers.
func bareNginx(t testing.TB, n *node) *node {
	t.Helper()
	return &node{url: devtest.Nginx(t, func(listen string) string {
		return "server { listen " + listen + "; location / { proxy_pass " + n.url + "; } }"
	}).URL()}
}

// atOnce reads a delta that is due now. What a proxy keeps back comes when its
// buffer is full, or never.
func atOnce(t testing.TB, fs *frames, have int64) frame {
	t.Helper()
	begun := time.Now()
	f := fs.next()
	if f.Type != "delta" || f.Prev > have || devtest.Late(begun, 3*time.Second) {
		t.Fatalf("a watcher at %d got %v after %v", have, f, time.Since(begun))
	}
	return f
}

// watches reads through a proxy in front of nodes what a stream begins with, a frame, and
// after a cut the one it missed.
func watches(t testing.TB, h *house, at *node, nodes []*node, buyer shopper, open func(testing.TB, *node, string, int64) *frames, seats []string) {
	t.Helper()
	var direct []*watcher // whoever comes to a node that is a tick behind is shown the map anew: these say that none is
	for _, n := range nodes {
		w := watch(t, h.event, n.url)
		eventually(t, streamPatience, "the first map", func() bool { return w.number() > 0 })
		direct = append(direct, w)
	}
	fs := open(t, at, h.event, 0)
	if f := fs.next(); f.Type != "hello" {
		t.Fatalf("began with %v", f)
	}
	have := fs.next()
	buyer.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	have = atOnce(t, fs, have.N)
	buyer.hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")
	missed := atOnce(t, fs, have.N)

	for _, w := range direct {
		eventually(t, converge, "every node has told it", func() bool { return w.number() >= missed.N })
	}

	again := open(t, at, h.event, have.N)
	if f := again.next(); f.Type != "hello" {
		t.Fatalf("resumed with %v", f)
	}
	if f := atOnce(t, again, have.N); f.N != missed.N {
		t.Errorf("resumed from %d with %v, want what was missed, up to %d", have.N, f, missed.N)
	}
}

func TestAnNginxAsDocumentedNeitherBuffersNorBreaks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	nodes := []*node{h.node(), h.node()}
	front := documentedNginx(t, nodes...)
	buyer := h.shopper(front, "ann") // bookings go through it too
	seats := h.seats(4)
	watches(t, h, front, nodes, buyer, ways["SSE"], seats[:2])
	watches(t, h, front, nodes, buyer, ways["WebSocket"], seats[2:])
	for _, transport := range []string{"sse", "ws"} {
		parked, all := 0.0, 0.0
		for _, n := range nodes {
			parked += n.metric(t, "hub_sessions", `transport="`+transport+`"`, `engine="parked"`)
			all += n.metric(t, "hub_sessions", `transport="`+transport+`"`)
		}
		if parked != all || all < 2 {
			t.Errorf("%v of %v %s sessions are parked", parked, all, transport)
		}
	}
	for _, inside := range []string{"/metrics", "/readyz", "/healthz"} {
		h.shopper(front, "ann").do(http.MethodGet, inside, "", nil).want(t, http.StatusNotFound, "")
	}
}

// By its Date a page says as of when a map is that a cache has kept.
func TestAnNginxAsDocumentedPassesOnWhenAnAnswerIsFrom(t *testing.T) {
	then := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", then) }))
	t.Cleanup(s.Close)
	res, err := http.Get(documentedNginx(t, &node{url: s.URL}, &node{url: s.URL}).url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if got := res.Header.Values("Date"); len(got) != 1 || got[0] != then {
		t.Errorf("an answer of %s is from %q", then, got)
	}
}

// A page's own origin is the Host that nginx was asked for, port and all.
func TestThroughNginxAPageOpensASocketOfItsOwnOriginAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	front := documentedNginx(t, n, n)
	for origin, welcome := range map[string]bool{front.url: true, "http://shop.example": false} {
		ctx, cancel := context.WithTimeout(t.Context(), streamPatience)
		defer cancel()
		conn, res, err := websocket.Dial(ctx, front.url+"/v1/ws",
			&websocket.DialOptions{Subprotocols: []string{hub.Subprotocol}, HTTPHeader: http.Header{"Origin": {origin}}})
		if welcome != (err == nil) || !welcome && res.StatusCode != http.StatusForbidden {
			t.Errorf("a page of %s: %v", origin, err)
		}
		if err == nil {
			_ = conn.CloseNow()
		}
	}
}

func TestAnNginxThatKnowsNothingOfUsPassesFramesOnAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	front := bareNginx(t, n)
	watches(t, h, front, []*node{n}, h.shopper(front, "ann"), ways["SSE"], h.seats(2))
	if parked, all := n.metric(t, "hub_sessions", `engine="parked"`), n.metric(t, "hub_sessions"); parked != all || all < 1 {
		t.Errorf("%v of %v sessions are parked", parked, all)
	}
}

func TestADrainBehindNginxLosesNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	leaving, staying := h.node("SEATCAST_DRAIN=3s"), h.node()
	front := documentedNginx(t, leaving, staying)
	var all []*watcher
	for range 10 {
		all = append(all, watch(t, h.event, front.url), watchSocket(t, h.event, front.url))
	}
	for _, w := range all {
		eventually(t, 10*time.Second, "the first map", func() bool { return w.number() > 0 })
	}
	if n := leaving.metric(t, "hub_sessions"); n < 5 {
		t.Fatalf("nginx gave %v of 20 sessions to one of two nodes", n)
	}
	gone := make(chan struct{})
	go func() { defer close(gone); leaving.stop(t, 20*time.Second) }()
	buyer := h.shopper(staying, "ann")
	for _, seat := range h.seats(8) {
		buyer.hold(h.event, "", seat).want(t, http.StatusCreated, "")
	}
	<-gone
	anew := 0 // the map, to whom had a change already that the other node was yet to hear of
	for _, w := range all {
		w.sees(10*time.Second, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
		anew += w.shown() - 1
	}
	if anew > len(all)/4 {
		t.Errorf("%d watchers were shown the map anew: they did not resume", anew)
	}
}

// Whom nginx tells of is who is counted, not nginx.
func TestSessionsAreCountedByTheAddressAProxyTells(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node("SEATCAST_HUB_PER_ADDRESS=1")
	front := documentedNginx(t, n, n)
	come := func(from string) int {
		ctx, cancel := context.WithTimeout(context.Background(), streamPatience)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.url+"/v1/events/"+h.event+"/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", from) // as another proxy of ours, before nginx, would have
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res.StatusCode
	}
	for _, c := range []struct {
		from   string
		status int
	}{{"203.0.113.7", 200}, {"203.0.113.7", 429}, {"203.0.113.8", 200}, {"198.51.100.1, 203.0.113.8", 429}} {
		if got := come(c.from); got != c.status {
			t.Errorf("from %s: %d, want %d", c.from, got, c.status)
		}
	}
}
