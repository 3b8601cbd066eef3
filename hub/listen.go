package hub

import (
	"context"
	"encoding/json"
	"errors"
	"net"
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
// the latest.
func (l *listener) listen(ctx context.Context) {
	for {
		kind, b, err := l.conn.Read(ctx)
		if errors.Is(err, websocket.ErrMessageTooBig) {
			l.session.hub.metrics.refused(l.session.kind, "message_size")
		}
		if err != nil {
			return
		}
		l.out.unheard.Store(0)
		if l.within() {
			l.hear(ctx, kind == websocket.MessageText, b)
		}
	}
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

func (l *listener) hear(ctx context.Context, text bool, b []byte) {
	var m message
	if !text || json.Unmarshal(b, &m) != nil || (m.Sub == "") == (m.Unsub == "") {
		l.complain("", "bad_message", `send {"sub":"<topic>","since":<number>} or {"unsub":"<topic>"} as text`)
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
	if code, detail := l.allow(ctx, m.Sub, m.Ticket); code != "" {
		l.complain(m.Sub, code, detail)
		return
	}
	hello, err := h.opts.Source.Hello(ctx, m.Sub)
	if err != nil {
		h.opts.Log.WarnContext(ctx, "hello failed", "topic", m.Sub, "err", err)
		l.complain(m.Sub, "unavailable", "the topic cannot be opened now; ask again in a second")
		return
	}
	l.session.put(ask{topic: m.Sub, sub: true, since: sane(m.Since), data: hello})
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
