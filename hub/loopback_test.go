package hub_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"seatcast/hub"
)

func asClose(err error, ce *websocket.CloseError) bool { return errors.As(err, ce) }

// sseClient reads a stream over a real connection.
type sseClient struct {
	tb    testing.TB
	lines *bufio.Scanner
}

func connect(tb testing.TB, url string) *sseClient {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	tb.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/live", nil)
	if err != nil {
		tb.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = resp.Body.Close() })
	c := &sseClient{tb: tb, lines: bufio.NewScanner(resp.Body)}
	c.lines.Buffer(nil, 1<<20)
	return c
}

// next is the next event, ok while the stream lasts.
func (c *sseClient) next() (event, bool) {
	var block []string
	for c.lines.Scan() {
		if c.lines.Text() != "" {
			block = append(block, c.lines.Text())
			continue
		}
		if events := parse(strings.Join(block, "\n") + "\n\n"); len(events) == 1 {
			return events[0], true
		}
		block = nil
	}
	return event{}, false
}

func (c *sseClient) expect(want ...string) {
	c.tb.Helper()
	for _, want := range want {
		if e, ok := c.next(); !ok || e.String() != want {
			c.tb.Fatalf("got %v (stream goes on: %v), want %s", e, ok, want)
		}
	}
}

func TestStreamOverARealConnection(t *testing.T) {
	src := &truth{n: 3}
	n := serve(t, hub.Options{Source: src, Beat: 300 * time.Millisecond})
	h, url := n.Hub, n.url
	c := connect(t, url)
	c.expect("hello#0", "snapshot#3")
	src.step(h, 2)
	c.expect("delta#5", "beat#5")
	done := make(chan error, 1)
	go func() { done <- h.Drain(context.Background(), 0) }()
	for {
		if _, ok := c.next(); !ok {
			break
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A client that opens a stream and never reads, over real sockets whose
// buffers have filled.
func TestDeadReaderOverARealConnectionDelaysNobody(t *testing.T) {
	for _, transport := range []string{"sse", "ws"} {
		t.Run(transport, func(t *testing.T) {
			src := &truth{n: 1}
			reg := prometheus.NewRegistry()
			n := serve(t, hub.Options{Source: src, WriteTimeout: 1500 * time.Millisecond, Registerer: reg})
			h, url := n.Hub, n.url
			openDead(t, transport, url)
			well := connect(t, url)
			well.expect("hello#0", "snapshot#1")
			big := strings.Repeat("x", 256<<10)
			worst := time.Duration(0)
			deadline := time.Now().Add(20 * time.Second)
			for slowCloses(t, reg, transport) == 0 {
				if time.Now().After(deadline) {
					t.Fatal("the dead reader was never closed")
				}
				start := time.Now()
				n := src.next()
				h.Publish(topic, n-1, []int64{n}, time.Now(), fmt.Appendf(nil, `{"n":%d,"prev":%d,"x":"%s"}`, n, n-1, big))
				well.expect(fmt.Sprintf("delta#%d", n))
				worst = max(worst, time.Since(start))
			}
			if worst > time.Second { // had anyone waited for the write, it would be its whole deadline
				t.Errorf("a well reader waited %v for a dead one", worst)
			}
		})
	}
}

func openDead(t *testing.T, transport, url string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	head := "GET /live HTTP/1.1\r\nHost: x\r\n\r\n"
	if transport == "ws" {
		head = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " + hub.Subprotocol + "\r\n\r\n"
	}
	if _, err := conn.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	if transport == "ws" {
		sub := []byte(`{"sub":"` + topic + `"}`)
		frame := append([]byte{0x81, 0x80 | byte(len(sub)), 0, 0, 0, 0}, sub...) // masked with zeroes
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
}

func slowCloses(t *testing.T, reg *prometheus.Registry, transport string) int {
	t.Helper()
	n, err := testutil.GatherAndCount(reg, "hub_closes_total")
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		return 0
	}
	want := fmt.Sprintf("# HELP hub_closes_total Sessions ended, by why.\n# TYPE hub_closes_total counter\n"+
		"hub_closes_total{code=\"slow\",transport=%q} 1\n", transport)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "hub_closes_total"); err != nil {
		t.Fatal(err)
	}
	return n
}
