package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seatcast/hub"
)

// socket is a client over a real connection.
type socket struct {
	tb   testing.TB
	conn *websocket.Conn
}

func dial(tb testing.TB, url string, o *websocket.DialOptions) *socket {
	tb.Helper()
	conn, resp, err := websocket.Dial(tb.Context(), url+"/ws", o)
	if err != nil {
		tb.Fatal(err)
	}
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	conn.SetReadLimit(1 << 20)
	tb.Cleanup(func() { _ = conn.CloseNow() })
	return &socket{tb, conn}
}

func offer() *websocket.DialOptions {
	return &websocket.DialOptions{Subprotocols: []string{hub.Subprotocol}}
}

func (s *socket) send(text string) {
	s.tb.Helper()
	if err := s.conn.Write(s.tb.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.tb.Fatal(err)
	}
}

// next is the next message, or the error that ended the socket.
func (s *socket) next() (map[string]any, error) {
	ctx, cancel := context.WithTimeout(s.tb.Context(), 5*time.Second)
	defer cancel()
	_, b, err := s.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%w: %s", err, b)
	}
	return m, nil
}

// expect reads messages and compares them as "type topic n-or-code".
func (s *socket) expect(want ...string) {
	s.tb.Helper()
	for _, want := range want {
		m, err := s.next()
		if err != nil {
			s.tb.Fatalf("%v, want %s", err, want)
		}
		last := m["n"]
		if m["type"] == "error" {
			last = m["code"]
		}
		if got := fmt.Sprint(m["type"], " ", m["topic"], " ", last); got != want {
			s.tb.Fatalf("got %s (%v), want %s", got, m, want)
		}
	}
}

// closed reads until the socket ends and returns its close code.
func (s *socket) closed() websocket.CloseError {
	s.tb.Helper()
	for {
		if _, err := s.next(); err != nil {
			var ce websocket.CloseError
			if code := websocket.CloseStatus(err); code < 0 {
				s.tb.Fatalf("ended with %v, want a close code", err)
			} else if !errors.As(err, &ce) {
				s.tb.Fatal(err)
			}
			return ce
		}
	}
}

func TestOneSocketCarriesManyTopics(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		src := &truth{n: 3}
		n := serve(t, hub.Options{Source: src, Portable: o.Portable})
		h, url := n.Hub, n.url
		s := dial(t, url, offer())
		s.send(`{"sub":"seatmap/derby"}`)
		s.expect("hello seatmap/derby 3", "snapshot seatmap/derby 3")
		s.send(`{"sub":"seatmap/other"}`)
		s.expect("hello seatmap/other 3", "snapshot seatmap/other 3")
		src.step(h, 2)
		s.expect("delta seatmap/derby 5")
		h.Publish("seatmap/other", 3, []int64{9}, time.Now(), delta(3, 9))
		s.expect("delta seatmap/other 9")
		s.send(`{"unsub":"seatmap/derby"}`)
		s.send(`{"sub":"queue/derby"}`) // its answer says that the unsub before it was heard
		s.expect("error queue/derby unknown_topic")
		src.step(h, 1)
		h.Publish("seatmap/other", 9, []int64{10}, time.Now(), delta(9, 10))
		s.expect("delta seatmap/other 10")
		h.End("seatmap/other")
		s.expect("error seatmap/other ended")
		s.send(`{"sub":"seatmap/derby","since":4}`)
		s.expect("hello seatmap/derby 6", "delta seatmap/derby 5", "delta seatmap/derby 6")
	})
}

func TestNonsenseIsToldAndInTheEndClosed(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		url := serve(t, hub.Options{Source: &truth{n: 1}, Limits: hub.Limits{Topics: 1}, Portable: o.Portable}).url
		s := dial(t, url, offer())
		s.send(`{"sub":"seatmap/a"}`)
		s.expect("hello seatmap/a 1", "snapshot seatmap/a 1")
		s.send(`{"sub":"seatmap/b"}`)
		s.expect("error seatmap/b too_many_topics")
		for _, bad := range []string{`{`, `{}`, `[]`, `{"sub":7}`, `{"sub":"a","unsub":"b"}`} {
			s.send(bad)
			s.expect("error <nil> bad_message")
		}
		for range 5 {
			s.send("nonsense")
		}
		if ce := s.closed(); int(ce.Code) != int(hub.CloseBadMessage) || ce.Reason != "bad_message" {
			t.Errorf("closed with %v", ce)
		}
	})
}

func TestAnEndedTopicMakesRoomForAnother(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		n := serve(t, hub.Options{Source: &truth{n: 1}, Limits: hub.Limits{Topics: 1}, Portable: o.Portable})
		h, url := n.Hub, n.url
		s := dial(t, url, offer())
		s.send(`{"sub":"seatmap/a"}`)
		s.expect("hello seatmap/a 1", "snapshot seatmap/a 1")
		h.End("seatmap/a")
		s.expect("error seatmap/a ended")
		s.send(`{"sub":"seatmap/b"}`)
		s.expect("hello seatmap/b 1")
	})
}

func TestMessageOverTheLimitCloses(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		url := serve(t, hub.Options{Source: &truth{n: 1}, Portable: o.Portable}).url
		s := dial(t, url, offer())
		s.send(`{"sub":"` + strings.Repeat("x", 8000) + `"}`)
		if ce := s.closed(); ce.Code != websocket.StatusMessageTooBig || ce.Reason != "message_too_big" {
			t.Errorf("closed with %v", ce)
		}
	})
}

func TestAMessageWeWouldNotHeedIsTold(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		s := dial(t, serve(t, hub.Options{Source: &truth{n: 1}, Portable: o.Portable}).url, offer())
		for _, bad := range []string{`{"sub":"seatmap/a","sinse":1}`, `{"sub":"seatmap/a","since":-1}`, `{"sub":"seatmap/a","since":9007199254740992}`,
			`{"sub":"seatmap/a","since":1.5}`, `{"unsub":"seatmap/a","since":1}`, `{"sub":"seatmap/a"} {"sub":"seatmap/b"}`} {
			s.send(bad)
			s.expect("error <nil> bad_message")
		}
		s.send(` {"sub":"seatmap/a","since":0,"ticket":""} `)
		s.expect("hello seatmap/a 1", "snapshot seatmap/a 1")
	})
}

// Whoever breaks the rules is told under one name, is not counted among those
// who left, and gets one close frame.
func TestWhoBreaksTheRulesOfFramesIsToldAndCounted(t *testing.T) {
	t.Parallel()
	broken := []string{
		masked(0xc1, "reserved bit"), "\x81\x05hello", masked(0x83, "unknown kind"), masked(0x80, "nothing to go on with"),
		masked(0x01, "a") + masked(0x01, "b"), masked(0x09, "half a ping"), masked(0x89, strings.Repeat("p", 126)),
		masked(0x88, "\x03"), masked(0x88, "\x03\xed"+strings.Repeat("r", 120)),
	}
	engines(t, func(t *testing.T, o hub.Options) {
		n := serve(t, hub.Options{Source: &truth{n: 1}, Portable: o.Portable})
		var told []*viewer
		for _, bytes := range broken {
			c := n.viewed(view{transport: "ws", mute: true})
			c.write(bytes)
			if _, err := c.next(); err != (closed{hub.CloseBroken, "protocol_error"}) {
				t.Errorf("%.20q is answered %v", bytes, err)
			}
			told = append(told, c)
		}
		n.forgotten() // by themselves: who leaves first may be counted as one who left
		for k, c := range told {
			if op, body, err := c.frame(); err == nil {
				t.Errorf("after %.20q and the close a frame of kind %x came: %q", broken[k], op, body)
			}
		}
		if named, all := n.metric("hub_closes_total", "protocol_error", "ws"), n.metric("hub_closes_total"); int(named) != len(broken) || named != all {
			t.Errorf("of %d, %v of %v are counted by their name", len(broken), named, all)
		}
	})
}

func TestWhoLeavesIsCountedAsGone(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, o hub.Options) {
		n := serve(t, hub.Options{Source: &truth{n: 1}, Portable: o.Portable})
		for name, leave := range map[string]func(c *viewer){
			"with a close":       func(c *viewer) { c.write(masked(0x88, "\x03\xe8ok")) },
			"with a complaint":   func(c *viewer) { c.write(masked(0x88, "\x03\xeayou broke the rules")) },
			"without a word":     func(c *viewer) { _ = c.conn.Close() },
			"half-way":           func(c *viewer) { c.write(masked(0x81, "hello")[:7]); _ = c.conn.Close() },
			"by a reset":         func(c *viewer) { _ = c.conn.SetLinger(0); _ = c.conn.Close() },
			"between two pieces": func(c *viewer) { c.write(masked(0x01, "hel")); _ = c.conn.Close() },
		} {
			before := n.metric("hub_closes_total", "gone")
			c := n.viewed(view{transport: "ws"})
			c.expect("hello", "snapshot#1")
			leave(c)
			n.forgotten()
			if got := n.metric("hub_closes_total", "gone"); got != before+1 {
				t.Errorf("who leaves %s is not counted as gone: %v", name, n.ended())
			}
		}
	})
}

func TestAMessageThatNeverEndsIsClosedAtTheLimit(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, o hub.Options) {
		n := serve(t, hub.Options{Source: &truth{n: 1}, Portable: o.Portable})
		for _, head := range []string{"\x81\xff\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00", "\x01\xfe\x13\x88\x00\x00\x00\x00"} {
			c := n.viewed(view{transport: "ws", mute: true})
			c.write(head + strings.Repeat("x", 5000))
			if _, err := c.next(); err != (closed{hub.CloseTooBig, "message_too_big"}) {
				t.Errorf("answered %v", err)
			}
		}
		n.forgotten()
		if told := n.metric("hub_closes_total", "message_too_big", "ws"); told != 2 {
			t.Errorf("%v are counted by their name, want 2", told)
		}
	})
}

func TestSubprotocolMustBeOffered(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		url := serve(t, hub.Options{Source: &truth{n: 1}, Portable: o.Portable}).url
		s := dial(t, url, nil)
		if ce := s.closed(); int(ce.Code) != int(hub.CloseProtocol) {
			t.Errorf("closed with %v", ce)
		}
	})
}

func TestForeignOriginIsRefusedUnlessAllowed(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		foreign := func() *websocket.DialOptions {
			o := offer()
			o.HTTPHeader = http.Header{"Origin": {"https://shop.example"}}
			return o
		}
		url := serve(t, hub.Options{Source: &truth{n: 1}, Portable: o.Portable}).url
		conn, resp, err := websocket.Dial(t.Context(), url+"/ws", foreign())
		if err == nil {
			_ = conn.CloseNow()
			t.Fatal("a foreign origin was let in")
		}
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("status %d, want 403", resp.StatusCode)
		}
		url = serve(t, hub.Options{Source: &truth{n: 1}, Origins: []string{"*.example"}, Portable: o.Portable}).url
		s := dial(t, url, foreign())
		s.send(`{"sub":"seatmap/a"}`)
		s.expect("hello seatmap/a 1")
	})
}

func TestClientThatAnswersNoPingIsClosed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, o hub.Options) {
		url := serve(t, hub.Options{Source: &truth{n: 1}, Beat: 20 * time.Millisecond, Portable: o.Portable}).url
		well := dial(t, url, offer())
		well.send(`{"sub":"seatmap/a"}`)
		well.expect("hello seatmap/a 1", "snapshot seatmap/a 1")
		for range 6 {
			well.expect("beat seatmap/a 1")
		}
		mute := offer()
		mute.OnPingReceived = func(context.Context, []byte) bool { return false }
		s := dial(t, url, mute)
		s.send(`{"sub":"seatmap/a"}`)
		s.expect("hello seatmap/a 1", "snapshot seatmap/a 1", "beat seatmap/a 1", "beat seatmap/a 1")
		if ce := s.closed(); int(ce.Code) != int(hub.CloseUnresponsive) || !strings.HasPrefix(ce.Reason, "unresponsive retry_ms=") {
			t.Errorf("closed with %v", ce)
		}
	})
}

func TestDrainTellsSocketsWhenToComeBack(t *testing.T) {
	engines(t, func(t *testing.T, o hub.Options) {
		n := serve(t, hub.Options{Source: &truth{n: 1}, Portable: o.Portable})
		h, url := n.Hub, n.url
		s := dial(t, url, offer())
		s.send(`{"sub":"seatmap/a"}`)
		s.expect("hello seatmap/a 1", "snapshot seatmap/a 1")
		drained := make(chan error, 1)
		go func() { drained <- h.Drain(context.Background(), 0) }()
		if ce := s.closed(); int(ce.Code) != int(hub.CloseDrain) || !strings.HasPrefix(ce.Reason, "drain retry_ms=") {
			t.Errorf("closed with %v", ce)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		resp := socketed.come(t, url)
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("after drain: %d, want 503 with Retry-After", resp.StatusCode)
		}
	})
}

// ended is how many sessions ended, by why.
func (n *node) ended() map[string]float64 {
	n.tb.Helper()
	by := map[string]float64{}
	for _, code := range []string{"gone", "protocol_error", "slow", "bad_message", "too_many_messages", "message_too_big"} {
		by[code] = n.metric("hub_closes_total", code)
	}
	return by
}
