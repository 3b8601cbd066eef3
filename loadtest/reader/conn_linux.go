package reader

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// phase is how far a connection is.
type phase uint8

const (
	closed phase = iota
	connecting
	asking // the head of the answer is not complete
	streaming
)

// conn is one session, over all the connections it has.
type conn struct {
	session
	i     int32 // in loop.conns
	fd    int32
	gen   int32 // grows with every connection closed
	phase phase
	dead  bool // never reads once it is on
	away  bool // at the next server
	body  chunks
	rest  []byte // of a head or a message that is not complete
}

// forget makes a session new: without its number unless it keeps that.
func (c *conn) forget(keep bool) {
	s := session{progress: unknown}
	if keep {
		s.have, s.at, s.progress = c.have, c.at, c.progress
	}
	c.session = s
}

func (l *loop) targetOf(c *conn) *Target {
	if c.away {
		return &l.next
	}
	return &l.target
}

// smallBuffer is the receive buffer of a reader that never reads: what the
// server has written must not hide in it.
const smallBuffer = 4096

// connect begins a connection.
func (l *loop) connect(i int32) {
	c := &l.conns[i]
	l.pending++
	c.phase, c.body, c.rest = connecting, chunks{}, nil
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		c.fd = -1
		l.refused(c, err.Error())
		return
	}
	c.fd = int32(fd)
	if c.dead {
		_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, smallBuffer) // a larger one only takes longer to fill
	}
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	to, err := address(l.targetOf(c).Addr)
	if err == nil {
		err = syscall.Connect(fd, to)
	}
	if err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		l.refused(c, err.Error())
		return
	}
	e := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLOUT, Fd: i, Pad: c.gen}
	if err := syscall.EpollCtl(l.ep, syscall.EPOLL_CTL_ADD, fd, &e); err != nil {
		l.refused(c, err.Error())
	}
}

func address(addr string) (*syscall.SockaddrInet4, error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return nil, err
	}
	return &syscall.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}, nil
}

// ready is called with what epoll says of a connection.
func (l *loop) ready(c *conn, events uint32) {
	if c.phase == connecting && !l.connected(c) {
		return
	}
	if events&(syscall.EPOLLIN|syscall.EPOLLERR|syscall.EPOLLHUP) != 0 {
		l.read(c)
	}
}

// connected sends the request of a connection that is made now; false says that
// it was refused.
func (l *loop) connected(c *conn) bool {
	if code, err := syscall.GetsockoptInt(int(c.fd), syscall.SOL_SOCKET, syscall.SO_ERROR); err != nil || code != 0 {
		l.refused(c, syscall.Errno(code).Error())
		return false
	}
	c.phase = asking
	e := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: c.i, Pad: c.gen}
	if err := syscall.EpollCtl(l.ep, syscall.EPOLL_CTL_MOD, int(c.fd), &e); err != nil {
		l.refused(c, err.Error())
		return false
	}
	l.write(c, l.targetOf(c).request(c.have))
	return true
}

// write sends a few bytes: they always fit into the buffer of a socket that was
// written little before. What the server has closed is seen by reading.
func (l *loop) write(c *conn, b []byte) {
	_, _ = syscall.Write(int(c.fd), b)
}

// request is the HTTP request of a session that holds the number have.
func (t *Target) request(have int64) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\n", t.Path, t.Addr)
	if t.WS {
		b.WriteString("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + Key + "\r\n")
		if t.Subprotocol != "" {
			fmt.Fprintf(&b, "Sec-WebSocket-Protocol: %s\r\n", t.Subprotocol)
		}
	} else {
		b.WriteString("Accept: text/event-stream\r\n")
		if have > 0 && t.Numbered {
			fmt.Fprintf(&b, "Last-Event-ID: %d\r\n", have)
		}
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// read reads once: what is left is told again.
func (l *loop) read(c *conn) {
	n, errno := rawRead(c.fd, l.buf)
	switch {
	case errno == syscall.EAGAIN || errno == syscall.EINTR:
		return
	case errno != 0:
		l.ended(c, errno.Error())
		return
	case n == 0:
		l.ended(c, "end of stream")
		return
	}
	now := time.Now().UnixNano()
	b := l.buf[:n]
	defer func() {
		if l.tally.begun {
			l.tally.bytes += int64(n)
		}
	}()
	between := c.phase == streaming && len(c.rest) == 0 && c.body.between()
	if between {
		for i := range l.reads {
			if s := &l.reads[i]; len(s.bytes) == n && bytes.Equal(s.bytes, b) {
				for _, m := range s.msgs {
					l.apply(c, m, now)
				}
				return
			}
		}
	}
	l.msgs, l.plain = l.msgs[:0], true
	gen := c.gen
	l.consume(c, b, now)
	if between && c.gen == gen && l.plain && len(c.rest) == 0 && c.body.between() && hasDelta(l.msgs) {
		l.reads[l.readsAt] = sameRead{bytes.Clone(b), append([]*message(nil), l.msgs...)}
		l.readsAt = (l.readsAt + 1) % len(l.reads)
	}
}

func hasDelta(msgs []*message) bool {
	for _, m := range msgs {
		if m.kind == delta {
			return true
		}
	}
	return false
}

// consume takes what was read through head, chunks and messages.
func (l *loop) consume(c *conn, b []byte, now int64) {
	if c.phase == asking {
		c.rest = append(c.rest, b...)
		end := bytes.Index(c.rest, []byte("\r\n\r\n"))
		if end < 0 {
			return
		}
		text := c.rest[:end]
		b, c.rest = c.rest[end+4:], nil
		if !l.answered(c, text) || len(b) == 0 {
			return
		}
	}
	var err error
	l.scratch, err = c.body.take(append(l.scratch[:0], c.rest...), b)
	c.rest = nil
	gen := c.gen
	if err == nil || errors.Is(err, errEnd) {
		rest, fault := l.messages(c, l.scratch, now)
		if c.gen != gen {
			return
		}
		if fault != nil {
			err = fault
		} else if len(rest) > 0 {
			c.rest = bytes.Clone(rest)
		}
	}
	switch {
	case errors.Is(err, errEnd):
		l.ended(c, "end of stream")
	case err != nil:
		l.fault("unreadable: %v", err)
		l.ended(c, "unreadable")
	}
}

// answered reads the head of an answer; false says that the connection is over.
func (l *loop) answered(c *conn, text []byte) bool {
	t := l.targetOf(c)
	h, err := parseHead(text)
	want := 200
	if t.WS {
		want = 101
	}
	if err != nil || h.status != want {
		l.refused(c, fmt.Sprintf("HTTP status %d", h.status))
		return false
	}
	c.phase, c.body.on = streaming, h.chunked
	if t.WS && t.Say != "" {
		text := t.Say
		if c.have > 0 && t.SaySince != "" {
			text = fmt.Sprintf(t.SaySince, c.have)
		}
		l.write(c, clientFrame(opText, []byte(text)))
	}
	l.became(c, Head)
	return true
}

// messages takes every complete message off data, and returns what is left.
func (l *loop) messages(c *conn, data []byte, now int64) (rest []byte, err error) {
	ws, strict, gen := l.targetOf(c).WS, l.targetOf(c).Numbered, c.gen
	for c.gen == gen {
		var text []byte
		if ws {
			var op byte
			if op, text, data, err = nextFrame(data); err != nil || op == 0 {
				return data, err
			}
			if op != opText {
				l.control(c, op, text)
				continue
			}
		} else if text, data = nextEvent(data); text == nil {
			return data, nil
		}
		m, err := l.parse(text, ws, strict)
		if err != nil {
			return nil, err
		}
		l.msgs = append(l.msgs, m)
		l.apply(c, m, now)
	}
	return nil, nil
}

// control handles what is not a message.
func (l *loop) control(c *conn, op byte, payload []byte) {
	l.plain = false
	switch op {
	case opPing:
		l.write(c, clientFrame(opPong, payload))
	case opClose:
		why, ms := closeReason(payload)
		c.bye, c.retry = ms > 0, ms
		l.ended(c, why)
	}
}

// parse parses a message once, however many sessions it is sent to.
func (l *loop) parse(text []byte, ws, strict bool) (*message, error) {
	for i := range l.recent {
		if r := &l.recent[i]; r.m != nil && bytes.Equal(r.bytes, text) {
			return r.m, nil
		}
	}
	var m *message
	var err error
	if ws {
		m, err = parseText(text)
	} else {
		m, err = parseSSE(text, strict)
	}
	if err != nil {
		return nil, err
	}
	l.tally.place(m)
	l.recent[l.recentAt] = recent{bytes.Clone(text), m}
	l.recentAt = (l.recentAt + 1) % len(l.recent)
	return m, nil
}
