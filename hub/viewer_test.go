package hub_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seatcast/hub"
)

// viewer is a client of either transport that speaks the protocol by hand, so
// that it can read as slowly and behave as badly as it likes.
type viewer struct {
	tb    testing.TB
	conn  *net.TCPConn
	ws    bool
	in    *bufio.Reader
	retry string            // the last hint when to come back
	pings int               // heard and answered
	pong  func(body string) // what is done with a pong
}

// view says how a viewer comes.
type view struct {
	transport string
	topic     string // or the default
	since     int64
	window    int    // receive buffer, or the system's
	early     string // what follows the request in its packet, or the wish to subscribe
	mute      bool   // do not subscribe
}

func (n *node) view(v view) *viewer {
	n.tb.Helper()
	if v.topic == "" {
		v.topic = topic
	}
	c := &viewer{tb: n.tb, ws: v.transport == "ws", pong: func(string) {}}
	d := net.Dialer{Timeout: 5 * time.Second, Control: func(_, _ string, raw syscall.RawConn) error {
		if v.window == 0 {
			return nil
		}
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, v.window)
		})
	}}
	conn, err := d.DialContext(n.tb.Context(), "tcp", strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		n.tb.Fatal(err)
	}
	n.tb.Cleanup(func() { _ = conn.Close() })
	c.conn, _ = conn.(*net.TCPConn)
	c.in = bufio.NewReaderSize(conn, 512)
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Minute)) // for all a test asks of it
	c.ask(v)
	return c
}

// ask sends the request, and what comes with it, in one write.
func (c *viewer) ask(v view) {
	c.tb.Helper()
	head := "GET /live?topic=" + v.topic + " HTTP/1.1\r\nHost: hub\r\nAccept: text/event-stream\r\n"
	if v.since > 0 {
		head += "Last-Event-ID: " + strconv.FormatInt(v.since, 10) + "\r\n"
	}
	early := v.early
	if c.ws {
		head = "GET /ws HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " + hub.Subprotocol + "\r\n"
		if early == "" && !v.mute {
			early = masked(0x81, fmt.Sprintf(`{"sub":%q,"since":%d}`, v.topic, v.since))
		}
	}
	c.write(head + "\r\n" + early)
}

// answered reads the head of the response.
func (c *viewer) answered() {
	c.tb.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.tb.Fatal(err)
	}
	if want := map[bool]int{true: 101, false: 200}[c.ws]; resp.StatusCode != want {
		c.tb.Fatalf("answered %s", resp.Status)
	}
	if !c.ws {
		c.in = bufio.NewReader(resp.Body)
	}
}

func (n *node) viewed(v view) *viewer {
	n.tb.Helper()
	c := n.view(v)
	c.answered()
	return c
}

func (c *viewer) write(s string) {
	c.tb.Helper()
	if _, err := io.WriteString(c.conn, s); err != nil {
		c.tb.Fatal(err)
	}
}

// say sends a text message.
func (c *viewer) say(text string) { c.tb.Helper(); c.write(masked(0x81, text)) }

// masked frames what a client sends, masked with zeroes.
func masked(op byte, body string) string {
	b := []byte{op}
	if len(body) < 126 {
		b = append(b, 0x80|byte(len(body)))
	} else {
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(len(body)))
	}
	return string(append(b, 0, 0, 0, 0)) + body
}

// closed is how a socket was told to end.
type closed struct {
	code   hub.Code
	reason string
}

func (e closed) Error() string { return fmt.Sprintf("closed %d %s", e.code, e.reason) }

// next is the next event, or how the session ended: closed when a socket was
// told, io.EOF when the stream is over between two events.
func (c *viewer) next() (event, error) {
	if c.ws {
		return c.nextMessage()
	}
	e := event{ID: -1}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			if e.Event != "" || line != "" {
				err = io.ErrUnexpectedEOF
			}
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			e.Event = value
		case "id":
			e.ID, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			e.Data = value
		case "retry":
			c.retry = value
		case "":
			if e.Event != "" {
				return e, nil
			}
		}
	}
}

func (c *viewer) nextMessage() (event, error) {
	for {
		op, body, err := c.frame()
		if err != nil {
			return event{}, err
		}
		switch op {
		case 0x81:
			var m struct{ Type string }
			if err := json.Unmarshal(body, &m); err != nil {
				return event{}, fmt.Errorf("%w: %.80q", err, body)
			}
			e := event{Event: m.Type, Data: string(body)}
			e.ID = e.number("n")
			return e, nil
		case 0x89:
			c.pings++
			c.write(masked(0x8a, string(body)))
		case 0x8a:
			c.pong(string(body))
		case 0x88:
			end := closed{code: hub.Code(binary.BigEndian.Uint16(body)), reason: string(body[2:])}
			_, c.retry, _ = strings.Cut(end.reason, "retry_ms=")
			return event{}, end
		default:
			return event{}, fmt.Errorf("a frame of kind %x: the stream is broken", op)
		}
	}
}

// frame reads one WebSocket frame.
func (c *viewer) frame() (op byte, body []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	size := uint64(head[1])
	var long [8]byte
	switch size {
	case 126:
		_, err = io.ReadFull(c.in, long[6:])
		size = binary.BigEndian.Uint64(long[:])
	case 127:
		_, err = io.ReadFull(c.in, long[:])
		size = binary.BigEndian.Uint64(long[:])
	}
	if err != nil || size > 16<<20 {
		return 0, nil, fmt.Errorf("a frame of %d bytes: %w", size, err)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(c.in, body)
	return head[0], body, err
}

// name is an event as both transports tell it: a socket's hello carries the
// topic's number, a stream's the number the client holds.
func (e event) name() string {
	switch e.Event {
	case "hello", "degraded", "reset":
		return e.Event
	}
	return fmt.Sprintf("%s#%d", e.Event, e.number("n"))
}

// expect reads the events named, passing over beats.
func (c *viewer) expect(want ...string) {
	c.tb.Helper()
	for _, want := range want {
		e, err := c.past("beat")
		if err != nil || e.name() != want {
			c.tb.Fatalf("got %s (%v), want %s", e.name(), err, want)
		}
	}
}

// past is the next event that is not of this kind.
func (c *viewer) past(kind string) (event, error) {
	for {
		if e, err := c.next(); err != nil || e.Event != kind {
			return e, err
		}
	}
}

// rest reads to the end of the session.
func (c *viewer) rest() (events []event, end error) {
	for {
		e, err := c.next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// ended reads to the end and fails when the client was not told why or when to
// come back.
func (c *viewer) ended(why hub.Code) []event {
	c.tb.Helper()
	events, err := c.rest()
	if told, is := err.(closed); c.ws && (!is || told.code != why) {
		c.tb.Fatalf("ended with %v, want code %d", err, why)
	}
	if !c.ws && err != io.EOF {
		c.tb.Fatalf("ended with %v, want a whole stream", err)
	}
	if ms, err := strconv.Atoi(c.retry); why.Again() && (err != nil || ms < 0) {
		c.tb.Fatalf("ended with %q for a hint when to come back", c.retry)
	}
	return events
}
