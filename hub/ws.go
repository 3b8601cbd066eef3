package hub

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Subprotocol is what a WebSocket client must offer.
const Subprotocol = "seatcast.v1"

// Allow judges whether a socket may watch a topic; ticket is what the client
// brought with its wish, if it did. An empty code means yes, and the session then
// ends at end at the latest, unless that is the zero time; otherwise code and
// detail are told to the client in an error object.
type Allow = func(ctx context.Context, topic, ticket string) (end time.Time, code, detail string)

const (
	maxUnheard  = 2           // pings without an answer, before the socket is closed
	closeLinger = time.Second // for the client's half of the close handshake
)

// ServeWS upgrades the request and serves any number of topics over one
// socket until either side ends it; where the session is parked it returns at
// once. Whatever is wrong with the request is answered here.
func (h *Hub) ServeWS(w http.ResponseWriter, r *http.Request, allow Allow) {
	k, lot := h.engineOf(ws, w, r)
	s := h.newSession(k, h.opts.Limits.Address(r))
	l := &listener{session: s, allow: allow, limit: messageLimit(h.opts.Limits.Messages), bytes: byteLimit(&h.opts.Limits)}
	u := &upgrade{ResponseWriter: w, from: l}
	out := &wsSink{hub: h, traffic: k.traffic}
	if lot != nil {
		out, u.park = lot.sink(k.traffic)
	}
	s.out, l.out = out, out
	conn, err := websocket.Accept(u, r, h.acceptOptions(l))
	if err != nil {
		u.failed()
		return
	}
	conn.SetReadLimit(-1) // ours is
	if conn.Subprotocol() != Subprotocol {
		s.quit.Store(int32(CloseProtocol) + 1)
	}
	l.conn = conn
	if lot != nil {
		lot.socket(s, l)
		return
	}
	h.close(s, l.converse(context.WithoutCancel(r.Context())))
}

func (h *Hub) acceptOptions(l *listener) *websocket.AcceptOptions {
	return &websocket.AcceptOptions{
		Subprotocols:       []string{Subprotocol},
		OriginPatterns:     h.opts.Origins,
		InsecureSkipVerify: slices.Contains(h.opts.Origins, "*"),
		OnPingReceived:     func(context.Context, []byte) bool { return l.pinged() },
		OnPongReceived:     func(context.Context, []byte) { l.out.ponged() },
	}
}

// converse reads in the calling goroutine and steps the session in one of its
// own, which has ended when converse returns.
func (l *listener) converse(ctx context.Context) Code {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var why Code
	var linger *time.Timer
	p := newSolo(l.session)
	done := make(chan struct{})
	go func() {
		defer close(done)
		why = p.run(ctx)
		l.out.bye(why)
		linger = time.AfterFunc(closeLinger, cancel)
	}()
	l.listen(ctx)
	l.session.stop(CloseGone)
	_ = l.conn.CloseNow() // a write under way ends with it
	<-done
	linger.Stop()
	return why
}

// wire is the connection under a socket. The library and the session both
// write to it, each a whole frame at a time.
type wire interface {
	net.Conn
	// give writes bytes that never change and may be kept.
	give(b []byte) error
	flush() error
	stuck() (since time.Duration, yes bool)
}

// wsSink writes whole frames beside the ones the websocket library writes
// itself (pongs, and the answer to a close).
type wsSink struct {
	wire
	hub     *Hub
	traffic *traffic
	closed  atomic.Bool  // a close frame was sent, by us or by the library
	unheard atomic.Int32 // pings since the client was last heard
	pinged  atomic.Int64 // by the hub's clock, when the last was sent; 0 once it is answered
}

func (o *wsSink) greet(topic string, id int64, hello []byte) error {
	return o.say(topic, eventHello, id, hello)
}

func (o *wsSink) send(f *frame) error { return o.give(f.ws) }

func (o *wsSink) say(topic, event string, _ int64, data []byte) error {
	return o.give(wsText(spliced(topic, event, data)))
}

func (o *wsSink) ping() error {
	if o.unheard.Add(1) > maxUnheard {
		return CloseUnresponsive
	}
	o.pinged.Store(int64(o.hub.now()))
	return o.give(wsFrame(wsOpPing, nil))
}

func (o *wsSink) ponged() {
	o.unheard.Store(0)
	if at := o.pinged.Swap(0); at != 0 {
		o.hub.metrics.pong.Observe((o.hub.now() - time.Duration(at)).Seconds())
	}
}

func (o *wsSink) bye(why Code) {
	if why != CloseGone && !o.closed.Swap(true) {
		_ = o.give(wsClose(why)) // a client that cannot be told finds out by itself
	}
}

// waitingWire is a wire whose writes block, with a deadline.
type waitingWire struct {
	net.Conn
	timeout time.Duration
	traffic *traffic

	mu     sync.Mutex
	broken bool // a write failed, perhaps half-way: another would only wait as long
}

func (w *waitingWire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return 0, net.ErrClosed
	}
	if err := w.Conn.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	n, err := w.Conn.Write(b)
	w.traffic.gave(n)
	w.broken = err != nil
	return n, err
}

func (w *waitingWire) give(b []byte) error {
	_, err := w.Write(b)
	return err
}

func (w *waitingWire) flush() error { return nil }

func (w *waitingWire) stuck() (time.Duration, bool) { return 0, false }
