package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// maxBad is how many messages may make no sense before the socket is closed.
const maxBad = 10

// listener is the reading side of a socket.
type listener struct {
	session *session
	conn    *websocket.Conn
	raw     net.Conn // below conn
	out     *wsSink
	allow   Allow
	limit   *rate.Limiter // nil: none
	bytes   *rate.Limiter // nil: none
	bad     int
	unread  int // answers to pings since the client does not read
}

// messageLimit allows a burst of three seconds, as when a page that watches
// several topics comes back.
func messageLimit(perSecond int) *rate.Limiter {
	if perSecond < 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), 3*perSecond)
}

// byteLimit allows the bytes of so many messages of the longest kind, and what
// one read may bring. It is for what the library reads alone: pongs, and
// fragments with nothing in them, cost as much and are no messages. Where
// messages may be of any length it has nothing to go by.
func byteLimit(l *Limits) *rate.Limiter {
	if l.Messages < 0 || l.MessageSize < 0 {
		return nil
	}
	most := l.Messages * (l.MessageSize + maxFrameHead)
	return rate.NewLimiter(rate.Limit(most), 3*most+maxRead)
}

const (
	maxFrameHead = 14      // bytes before the payload of a frame
	maxRead      = 4 << 10 // of net/http's buffer, which the portable engine reads with
)

// metered is the connection of a socket as it is read.
type metered struct {
	net.Conn
	from *listener
}

// Read implements net.Conn.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if l := m.from.bytes; l != nil && !l.AllowN(time.Now(), n) {
		m.from.session.tooMany("messages")
	}
	return n, err
}

// listen reads the client's messages until the connection ends, with ctx at
// the latest. Those of a session that is to end are not looked at.
func (l *listener) listen(ctx context.Context) {
	for {
		kind, b, err := l.read(ctx)
		if err != nil {
			l.lost(ctx, err)
			return
		}
		l.out.unheard.Store(0)
		if _, ends := l.session.stopped(); !ends && l.within() {
			aside(func() { l.hear(ctx, kind == websocket.MessageText, b) })
		}
	}
}

// aside runs f on a stack of its own. What a message needs of one, to be read
// and to be judged, is several times what waiting for it needs, and a goroutine
// that waits keeps most of what it once had: 4 KB a session.
func aside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// read returns the next message. One over the limit ends the session, by a
// limit of ours: the library's ends the connection with words of its own. The
// rest of it is read past, so that the client's answer to the close is found.
func (l *listener) read(ctx context.Context) (websocket.MessageType, []byte, error) {
	kind, r, err := l.conn.Reader(ctx)
	if err != nil {
		return kind, nil, err
	}
	most := l.session.hub.opts.Limits.MessageSize
	if most < 0 {
		b, err := io.ReadAll(r)
		return kind, b, err
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil || len(b) <= most {
		return kind, b, err
	}
	l.tooBig()
	_, err = io.Copy(io.Discard, r)
	return kind, nil, err
}

func (l *listener) tooBig() {
	if _, ends := l.session.stopped(); !ends {
		l.session.hub.metrics.refused(l.session.kind, "message_size")
	}
	l.session.stop(CloseTooBig)
}

// lost is told why no message can be read any more. A client that broke the
// rules is told so, and what it still sends until its connection is closed is
// not looked at.
func (l *listener) lost(ctx context.Context, err error) {
	if !broken(err) {
		return
	}
	l.session.stop(CloseBroken)
	defer context.AfterFunc(ctx, func() { _ = l.raw.Close() })()
	_, _ = io.Copy(io.Discard, l.raw) // until it is closed
}

// broken says that a read failed for what the client sent: neither its leaving
// nor its connection explains it. The library has no error for that.
func broken(err error) bool {
	var left websocket.CloseError
	var network net.Error
	if errors.As(err, &left) || errors.As(err, &network) {
		return false
	}
	if strings.Contains(err.Error(), "not read to completion") { // all are: it was cut short by the end of its connection
		return false
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return false
		}
	}
	return true
}

// within reports whether the client keeps to its rate, and stops it otherwise.
func (l *listener) within() bool {
	if l.limit == nil || l.limit.Allow() {
		return true
	}
	l.session.tooMany("messages")
	return false
}

// pinged reports whether a ping is answered. It counts as a message, and from a
// client that does not read as a question: the answer is kept for it.
func (l *listener) pinged() bool {
	l.out.unheard.Store(0)
	return l.within() && l.keeps()
}

// keeps reports whether one more answer is kept, and stops who reads too few.
func (l *listener) keeps() bool {
	if _, yes := l.out.stuck(); !yes {
		l.unread = 0
		return true
	}
	if l.unread++; l.unread <= maxAsked {
		return true
	}
	l.session.tooMany("asks")
	return false
}

// message is what a client may say.
type message struct {
	Sub    string `json:"sub"`
	Unsub  string `json:"unsub"`
	Since  int64  `json:"since"`
	Ticket string `json:"ticket"`
}

// parse reads a message. What we would not heed is not taken for one: a client
// that misspells since would else be sent whole maps and never know why.
func (m *message) parse(b []byte) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if d.Decode(m) != nil || len(bytes.TrimSpace(b[d.InputOffset():])) > 0 || sane(m.Since) != m.Since {
		return false
	}
	if m.Unsub != "" {
		return *m == message{Unsub: m.Unsub}
	}
	return m.Sub != ""
}

func (l *listener) hear(ctx context.Context, text bool, b []byte) {
	var m message
	if !text || !m.parse(b) {
		l.complain("", "bad_message", `send {"sub":"<topic>","since":<number>,"ticket":"<ticket>"} (the last two if you have them) or {"unsub":"<topic>"}, and nothing else, as text`)
		if l.bad++; l.bad >= maxBad {
			l.session.stop(CloseBadMessage)
		}
		return
	}
	if m.Unsub != "" {
		l.session.put(ask{topic: m.Unsub})
		return
	}
	l.subscribe(ctx, &m)
}

func (l *listener) subscribe(ctx context.Context, m *message) {
	h := l.session.hub
	end, code, detail := l.allow(ctx, m.Sub, m.Ticket)
	if code != "" {
		l.complain(m.Sub, code, detail)
		return
	}
	hello, err := h.opts.Source.Hello(ctx, m.Sub)
	if err != nil {
		h.opts.Log.WarnContext(ctx, "hello failed", "topic", m.Sub, "err", err)
		l.complain(m.Sub, "unavailable", "the topic cannot be opened now; ask again in a second")
		return
	}
	l.session.put(ask{topic: m.Sub, sub: true, since: m.Since, data: hello, end: end})
}

func (l *listener) complain(topic, code, detail string) {
	l.session.put(ask{topic: topic, data: errorData(code, detail)})
}

func errorData(code, detail string) []byte {
	b, _ := json.Marshal(struct { // strings always marshal
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}{code, detail})
	return b
}
