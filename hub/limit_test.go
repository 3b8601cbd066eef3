package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"seatcast/hub"
)

// A way is how a client comes.
type way struct {
	name   string
	path   string
	header http.Header
}

var (
	browser  = way{"EventSource", "/live", http.Header{"Accept": {"text/event-stream"}}}
	program  = way{"a program's stream", "/live", nil}
	socketed = way{"WebSocket", "/ws", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-WebSocket-Version": {"13"},
		"Sec-WebSocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-WebSocket-Protocol": {hub.Subprotocol}}}
	allWays = []way{browser, program, socketed}
)

// come asks for a session. It is served when the answer goes on.
func (w way) come(t testing.TB, url string, header ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+w.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range w.header {
		r.Header[name] = values
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: w.path == "/live"}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = peeked{bufio.NewReader(resp.Body), resp.Body}
	}
	return resp
}

// served reports whether a session was opened, and reads none of it.
func served(resp *http.Response) bool {
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode == http.StatusSwitchingProtocols
	}
	body, _ := resp.Body.(peeked)
	start, err := body.Peek(3)
	return err == nil && string(start) == ":  " // the padding
}

// peeked is a body that can be looked at.
type peeked struct {
	*bufio.Reader
	io.Closer
}

// wantRefused fails unless the answer says why, and when to come back, as this
// kind of client can hear it, and ends the connection. It returns the wait.
func (w way) wantRefused(t testing.TB, resp *http.Response, reason string, status int) time.Duration {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", w.name, err)
	}
	if !resp.Close {
		t.Errorf("%s: a refused client keeps its connection", w.name)
	}
	if w.name == browser.name {
		words := parse(string(body))
		ms, rest, ok := strings.Cut(strings.TrimPrefix(string(body), "retry: "), "\n")
		wait, err := strconv.Atoi(ms)
		if resp.StatusCode != http.StatusOK || !ok || err != nil || len(words) != 1 || words[0].Event != "degraded" || words[0].ID != -1 ||
			words[0].Data != fmt.Sprintf(`{"reason":%q,"poll":"/poll","retry_ms":%d}`, reason, wait) {
			t.Errorf("%s: %d %s%s", w.name, resp.StatusCode, body, rest)
		}
		return time.Duration(wait) * time.Millisecond
	}
	var p struct {
		Code, Title, Detail string
		Status              int
	}
	wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if jsonErr := json.Unmarshal(body, &p); jsonErr != nil || err != nil || resp.StatusCode != status || p.Status != status ||
		p.Code != "hub_"+reason || p.Title == "" || p.Detail == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: %d %v %s", w.name, resp.StatusCode, resp.Header, body)
	}
	return time.Duration(wait) * time.Second
}

// limited runs a claim on a hub with limits, on both engines.
func limited(t *testing.T, l hub.Limits, claim func(t *testing.T, n *node)) {
	engines(t, func(t *testing.T, o hub.Options) {
		o.Source, o.Limits = &truth{n: 1}, l
		claim(t, serve(t, o))
	})
}

func TestAtTheCapTheNextIsRefusedAndServedOnceOneLeaves(t *testing.T) {
	limited(t, hub.Limits{Sessions: 2}, func(t *testing.T, n *node) {
		for _, w := range allWays {
			inside := []*http.Response{browser.come(t, n.url), socketed.come(t, n.url)}
			for _, resp := range inside {
				if !served(resp) {
					t.Fatalf("below the cap: %v", resp)
				}
			}
			for range 20 {
				if wait := w.wantRefused(t, w.come(t, n.url), "full", http.StatusServiceUnavailable); wait < 5*time.Second || wait > 30*time.Second {
					t.Errorf("%s is to come back in %v", w.name, wait)
				}
			}
			_ = inside[0].Body.Close()
			eventually(t, w.name+" is served in the place of who left", func() bool {
				resp := w.come(t, n.url)
				defer resp.Body.Close()
				return served(resp)
			})
			_ = inside[1].Body.Close()
			n.forgotten()
		}
		if sse, ws := n.metric("hub_refused_total", "full", "sse"), n.metric("hub_refused_total", "full", "ws"); sse < 40 || ws < 20 {
			t.Errorf("refused %v streams and %v sockets, as counted", sse, ws)
		}
	})
}

func TestSessionsAreOpenedNoFasterThanTheRate(t *testing.T) {
	limited(t, hub.Limits{Rate: 5}, func(t *testing.T, n *node) {
		begun, in := time.Now(), 0
		var waits []time.Duration
		for i := range 60 {
			w := allWays[i%len(allWays)]
			resp := w.come(t, n.url)
			if served(resp) {
				in++
			} else {
				waits = append(waits, w.wantRefused(t, resp, "busy", http.StatusServiceUnavailable))
			}
			_ = resp.Body.Close()
		}
		if most := 5 + int(5*time.Since(begun).Seconds()) + 1; in < 5 || in > most {
			t.Errorf("%d of 60 were let in within %v, want 5 to %d", in, time.Since(begun), most)
		}
		if told := int(n.metric("hub_refused_total", "busy")); told != len(waits) {
			t.Errorf("%d were refused and %d counted", len(waits), told)
		}
		if last := waits[len(waits)-1]; last < 5*time.Second || last > 30*time.Second {
			t.Errorf("the last of %d refused is to come back in %v: they come no faster than they are let in", len(waits), last)
		}
		eventually(t, "a moment later there is room", func() bool {
			resp := program.come(t, n.url)
			defer resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	})
}

func TestOneAddressHoldsNoMoreSessionsThanItMay(t *testing.T) {
	of := func(r *http.Request) string { return r.Header.Get("From") }
	limited(t, hub.Limits{PerAddress: 2, Address: of}, func(t *testing.T, n *node) {
		for round := range 3 {
			var open []*http.Response
			for _, from := range []string{"203.0.113.7", "::ffff:203.0.113.7", "2001:db8:0:1::1", "2001:db8:0:1:2::1"} { // two networks
				resp := allWays[round].come(t, n.url, "From", from)
				if !served(resp) {
					t.Fatalf("%s, round %d: %v", from, round, resp)
				}
				open = append(open, resp)
			}
			for _, w := range allWays {
				for _, from := range []string{"203.0.113.7", "2001:db8:0:1::3"} {
					if wait := w.wantRefused(t, w.come(t, n.url, "From", from), "address", http.StatusTooManyRequests); wait < 10*time.Second || wait > 30*time.Second {
						t.Errorf("%s is to come back in %v", w.name, wait)
					}
				}
			}
			if other := program.come(t, n.url, "From", fmt.Sprint("198.51.100.", round)); !served(other) {
				t.Errorf("another address, round %d: %v", round, other)
			} else {
				open = append(open, other)
			}
			for _, resp := range open {
				_ = resp.Body.Close()
			}
			n.forgotten()
		}
	})
}

// Whatever goes wrong between the door and the first frame, nobody is counted
// who is not there: at a cap of one the next is served.
func TestAHandshakeThatFailsHoldsNoPlace(t *testing.T) {
	limited(t, hub.Limits{Sessions: 1, PerAddress: 1}, func(t *testing.T, n *node) {
		for name, c := range brokenHandshakes() {
			for range 3 {
				if resp := c.come(t, n.url); resp.StatusCode != c.status {
					t.Errorf("%s: %d", name, resp.StatusCode)
				}
			}
		}
		if got := n.metric("hub_opens_total"); got != 0 {
			t.Errorf("%v sessions were opened, want none", got)
		}
		for range 50 { // gone before they are answered
			ctx, cancel := context.WithCancel(context.Background())
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/live", nil)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(100*time.Microsecond, cancel)
			if resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r); err == nil {
				_ = resp.Body.Close()
			}
			cancel()
		}
		eventually(t, "the only one there is is served", func() bool { // some who have gone may not have come yet
			resp := program.come(t, n.url)
			defer resp.Body.Close()
			return served(resp)
		})
		n.forgotten()
	})
}

func TestASocketThatSaysTooMuchIsToldAndCounted(t *testing.T) {
	limited(t, hub.Limits{Topics: 2, Messages: 5, MessageSize: 100}, func(t *testing.T, n *node) {
		s := dial(t, n.url, offer())
		for _, name := range []string{"a", "b"} {
			s.send(`{"sub":"seatmap/` + name + `"}`)
			s.expect("hello seatmap/"+name+" 1", "snapshot seatmap/"+name+" 1")
		}
		s.send(`{"sub":"seatmap/c"}`)
		s.expect("error seatmap/c too_many_topics")
		s.send(`{"unsub":"seatmap/a"}`)
		s.send(`{"sub":"seatmap/c"}`)
		s.expect("hello seatmap/c 1", "snapshot seatmap/c 1")

		s.send(strings.Repeat(" ", 101))
		if ce := s.closed(); ce.Code != websocket.StatusMessageTooBig {
			t.Errorf("a message over the limit: %v", ce)
		}
		s = dial(t, n.url, offer())
		for range 16 { // three seconds' worth, and one
			if s.conn.Write(t.Context(), websocket.MessageText, []byte(`{"unsub":"seatmap/a"}`)) != nil {
				break
			}
		}
		if ce := s.closed(); int(ce.Code) != int(hub.CloseTooMany) || ce.Reason != "too_many_asks" {
			t.Errorf("messages over the rate: %v", ce)
		}
		for _, reason := range []string{"topics", "message_size", "messages"} {
			eventually(t, reason+" is counted", func() bool { return n.metric("hub_refused_total", reason, "ws") > 0 })
		}
	})
}

// The socket is open and its client reads: what it asks for is answered in
// order, and whoever asks without reading is closed before it costs memory.
func TestASocketThatAsksWithoutReadingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{tb: t, reg: prometheus.NewRegistry()}
		s := dialPipe(t, hub.New(hub.Options{Source: &truth{n: 1}, Registerer: n.reg, Limits: hub.Limits{Messages: -1}}))
		for range 200 {
			if s.conn.Write(t.Context(), websocket.MessageText, []byte(`{"sub":"seatmap/a"}`)) != nil {
				break
			}
		}
		synctest.Wait()
		if got := n.metric("hub_refused_total", "asks"); got != 1 {
			t.Errorf("200 questions were asked, and %v times it was one too many: want once", got)
		}
	})
}

// A drain that begins while sessions are being opened finds every one of them,
// in whatever state.
func TestADrainDuringAHerdEndsEverybody(t *testing.T) {
	for _, engine := range []string{"parked", "portable"} {
		t.Run(engine, func(t *testing.T) {
			for range 10 {
				n := serve(t, hub.Options{Source: &truth{n: 1}, Portable: engine == "portable"})
				var herd sync.WaitGroup
				for i := range 60 {
					herd.Go(func() {
						resp := allWays[i%len(allWays)].come(t, n.url)
						if resp.StatusCode == http.StatusSwitchingProtocols {
							_, _ = resp.Body.Read(make([]byte, 1)) // a socket that asks for nothing is told nothing but its end
						} else {
							_, _ = io.Copy(io.Discard, resp.Body)
						}
						_ = resp.Body.Close()
					})
				}
				time.Sleep(rand.N(20 * time.Millisecond)) // some are in, some are at the door
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				if err := n.Drain(ctx, 10*time.Millisecond); err != nil {
					t.Error(err)
				}
				cancel()
				herd.Wait()
			}
		})
	}
}

// In every twentieth of a second as many are sent away as in any other.
func TestADrainSpreadsItsSessionsEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(hub.Options{Source: &truth{n: 1}})
		const sessions, over = 300, 8 * time.Second
		var ws []*watcher
		for range sessions {
			ws = append(ws, watch(t, h, 0, nil))
		}
		synctest.Wait()
		begun := time.Now()
		drained := make(chan error, 1)
		go func() { drained <- h.Drain(t.Context(), over) }()
		slots := make(chan int, sessions)
		for _, w := range ws {
			go func() {
				<-w.done
				slots <- int(time.Since(begun) / (50 * time.Millisecond))
			}()
		}
		ended := map[int]int{}
		for range ws {
			ended[<-slots]++
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		fair := sessions / int(over/(50*time.Millisecond))
		for slot, n := range ended {
			if n > 3*max(1, fair) {
				t.Errorf("%d of %d ended in slot %d, a fair share is %d", n, sessions, slot, fair)
			}
		}
		if took := time.Since(begun); took < over/2 || took > over {
			t.Errorf("the last of %d left after %v of %v", sessions, took, over)
		}
	})
}

// brokenHandshake is a request for a socket that cannot be granted, and how it
// is answered.
type brokenHandshake struct {
	way
	status int
	code   string
}

func brokenHandshakes() map[string]brokenHandshake {
	broken := map[string]brokenHandshake{
		"no upgrade":     {way{"", "/ws", nil}, http.StatusUpgradeRequired, "upgrade_required"},
		"no key":         {way{}, http.StatusBadRequest, "bad_handshake"},
		"another age":    {way{}, http.StatusBadRequest, "bad_handshake"},
		"another origin": {way{}, http.StatusForbidden, "origin_not_allowed"},
	}
	for name, c := range broken {
		if name == "no upgrade" {
			continue
		}
		c.path, c.header = socketed.path, socketed.header.Clone()
		switch name {
		case "no key":
			delete(c.header, "Sec-WebSocket-Key")
		case "another age":
			c.header["Sec-WebSocket-Version"] = []string{"8"}
		case "another origin":
			c.header.Set("Origin", "https://elsewhere.example")
		}
		broken[name] = c
	}
	return broken
}

func TestAHandshakeThatFailsIsToldAsAProblem(t *testing.T) {
	limited(t, hub.Limits{}, func(t *testing.T, n *node) {
		for name, c := range brokenHandshakes() {
			resp := c.come(t, n.url)
			var p struct {
				Status       int
				Code, Detail string
			}
			err := json.NewDecoder(resp.Body).Decode(&p)
			if kind := resp.Header.Get("Content-Type"); err != nil || kind != "application/problem+json" ||
				resp.StatusCode != c.status || p.Status != c.status || p.Code != c.code || p.Detail == "" {
				t.Errorf("%s: %s as %s: %+v (%v), want %d %s", name, resp.Status, kind, p, err, c.status, c.code)
			}
		}
	})
}
