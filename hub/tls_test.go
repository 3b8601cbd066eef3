package hub_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seatcast/hub"
)

// What has no plain connection of its own is served by the portable engine
// beside sessions that are parked.
func TestTLSAndHTTP2AreServedThoughSessionsAreParked(t *testing.T) {
	src := &truth{n: 1}
	n := serve(t, hub.Options{Source: src})
	n.mixed = true
	server := httptest.NewUnstartedServer(n.routes())
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for _, major := range []int{1, 2} {
		client := server.Client()
		if major == 1 {
			transport := client.Transport.(*http.Transport).Clone()
			transport.ForceAttemptHTTP2, transport.TLSNextProto = false, nil
			transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
			client = &http.Client{Transport: transport}
			defer transport.CloseIdleConnections()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/live", nil)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.ProtoMajor != major {
			t.Fatalf("served over %s, want HTTP/%d", resp.Proto, major)
		}
		c := &viewer{tb: t, in: bufio.NewReader(resp.Body), pong: func(string) {}}
		c.expect("hello", "snapshot#1")
		cancel()
		_ = resp.Body.Close()
	}
	o := offer()
	o.HTTPClient = server.Client()
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(server.URL, "https", "wss", 1)+"/ws", o)
	if err != nil {
		t.Fatal(err)
	}
	s := &socket{t, conn}
	s.send(`{"sub":"seatmap/a"}`)
	s.expect("hello seatmap/a 1", "snapshot seatmap/a 1")
	if got := n.metric("hub_opens_total", "portable"); got != 3 {
		t.Errorf("%v of 3 sessions were portable", got)
	}
	_ = conn.CloseNow()
	n.forgotten()
}
