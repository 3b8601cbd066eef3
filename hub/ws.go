package hub

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
)

// Subprotocol is what a WebSocket client must offer.
const Subprotocol = "seatcast.v1"

// Allow judges whether a socket may watch a topic. An empty code means yes;
// otherwise code and detail are told to the client in an error object.
type Allow = func(ctx context.Context, topic string) (code, detail string)

const (
	readLimit   = 4096        // bytes of one client message
	maxBad      = 10          // messages that make no sense, before the socket is closed
	maxUnheard  = 2           // pings without an answer, before the socket is closed
	closeLinger = time.Second // for the client's half of the close handshake
)

// ServeWS upgrades the request and serves any number of topics over one
// socket until either side ends it. Whatever is wrong with the request is
// answered here.
func (h *Hub) ServeWS(w http.ResponseWriter, r *http.Request, allow Allow) {
	wire := &wire{timeout: h.opts.WriteTimeout, written: h.metrics.bytes.WithLabelValues("ws")}
	out := &wsSink{wire: wire}
	s := newSession(h, "ws", out)
	s.many = true
	if !h.open(s) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "this server is leaving; come back", http.StatusServiceUnavailable)
		return
	}
	conn, err := websocket.Accept(hijacker{w, wire}, r, h.acceptOptions(out))
	if err != nil {
		h.close(s, CloseGone)
		return
	}
	conn.SetReadLimit(readLimit)
	if conn.Subprotocol() != Subprotocol {
		s.stop(CloseProtocol)
	}
	h.close(s, s.converse(context.WithoutCancel(r.Context()), conn, out, allow))
}

// converse reads in the calling goroutine and writes in one of its own, which
// has ended when converse returns.
func (s *session) converse(ctx context.Context, conn *websocket.Conn, out *wsSink, allow Allow) Code {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var why Code
	var linger *time.Timer
	done := make(chan struct{})
	go func() {
		defer close(done)
		why = s.run(ctx)
		out.bye(why)
		linger = time.AfterFunc(closeLinger, cancel)
	}()
	s.listen(ctx, conn, out, allow)
	s.stop(CloseGone)
	_ = conn.CloseNow() // a write under way ends with it
	<-done
	linger.Stop()
	return why
}

func (h *Hub) acceptOptions(out *wsSink) *websocket.AcceptOptions {
	return &websocket.AcceptOptions{
		Subprotocols:       []string{Subprotocol},
		OriginPatterns:     h.opts.Origins,
		InsecureSkipVerify: slices.Contains(h.opts.Origins, "*"),
		OnPongReceived:     func(context.Context, []byte) { out.unheard.Store(0) },
	}
}

// listen reads the client's messages until the connection ends.
func (s *session) listen(ctx context.Context, conn *websocket.Conn, out *wsSink, allow Allow) {
	l := listener{session: s, allow: allow}
	for {
		kind, b, err := conn.Read(ctx)
		if err != nil {
			return
		}
		out.unheard.Store(0)
		l.hear(ctx, kind == websocket.MessageText, b)
	}
}

// listener is what the reading side of a socket remembers.
type listener struct {
	session *session
	allow   Allow
	bad     int
}

// message is what a client may say.
type message struct {
	Sub   string `json:"sub"`
	Unsub string `json:"unsub"`
	Since int64  `json:"since"`
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
	l.subscribe(ctx, m.Sub, sane(m.Since))
}

func (l *listener) subscribe(ctx context.Context, topic string, since int64) {
	h := l.session.hub
	if code, detail := l.allow(ctx, topic); code != "" {
		l.complain(topic, code, detail)
		return
	}
	hello, err := h.opts.Source.Hello(ctx, topic)
	if err != nil {
		h.opts.Log.WarnContext(ctx, "hello failed", "topic", topic, "err", err)
		l.complain(topic, "unavailable", "the topic cannot be opened now; ask again in a second")
		return
	}
	l.session.put(ask{topic: topic, sub: true, since: since, data: hello})
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

// wsSink writes whole frames beside the ones the websocket library writes
// itself (pongs, and the answer to a close).
type wsSink struct {
	wire    *wire
	unheard atomic.Int32 // pings since the client was last heard
}

func (o *wsSink) greet(topic string, id int64, hello []byte) error {
	return o.say(topic, eventHello, id, hello)
}

func (o *wsSink) send(f *frame) error { return o.write(f.ws) }

func (o *wsSink) say(topic, event string, _ int64, data []byte) error {
	return o.write(wsText(spliced(topic, event, data)))
}

func (o *wsSink) ping() error {
	if o.unheard.Add(1) > maxUnheard {
		return CloseUnresponsive
	}
	return o.write(wsFrame(wsOpPing, nil))
}

func (o *wsSink) write(b []byte) error {
	_, err := o.wire.Write(b)
	return err
}

// flush has nothing to do: every write is a whole frame on its way.
func (o *wsSink) flush() error { return nil }

func (o *wsSink) bye(why Code) {
	if why != CloseGone {
		_ = o.write(wsClose(why)) // a client that cannot be told finds out by itself
	}
}

// wire is the connection under a socket. The library and the session both
// write to it, each a whole frame at a time.
type wire struct {
	net.Conn
	timeout time.Duration
	written prometheus.Counter

	mu     sync.Mutex
	broken bool // a write failed, perhaps half-way: another would only wait as long
}

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return 0, net.ErrClosed
	}
	if err := w.Conn.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	n, err := w.Conn.Write(b)
	w.written.Add(float64(n))
	w.broken = err != nil
	return n, err
}

// sendBuffer bounds what the kernel holds for a client that does not read, and
// so how long it looks alive.
const sendBuffer = 32 << 10

// hijacker hands the websocket library our wire instead of the connection.
type hijacker struct {
	http.ResponseWriter
	wire *wire
}

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // a wish: the kernel decides
	}
	h.wire.Conn = conn
	// Above 128 bytes a control frame is one write, so it cannot be split by
	// one of ours.
	return h.wire, bufio.NewReadWriter(rw.Reader, bufio.NewWriterSize(h.wire, 256)), nil
}
