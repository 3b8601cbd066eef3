package hub

import (
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// kept is what a connection has not taken yet. At first it is the rest of a
// frame that is shared, so it is copied before anything is added.
type kept struct {
	tail  []byte
	owned bool
}

func (k *kept) keep(rest []byte) { k.tail, k.owned = rest, false }

func (k *kept) own() {
	if !k.owned {
		k.tail, k.owned = slices.Clone(k.tail), true
	}
}

func (k *kept) append(b []byte) {
	k.own()
	k.tail = append(k.tail, b...)
}

// stream is a parked SSE session's connection, and its sink. Only its shard
// touches it.
type stream struct {
	kept
	since   time.Duration
	traffic *traffic
	berth
	now  func() time.Duration
	head []byte // of the response, until it is sent
}

func (p *stream) greet(_ string, id int64, hello []byte) error {
	b := append(p.head, greeting(id, hello)...)
	p.head = nil
	return p.give(b)
}

func (p *stream) send(f *frame) error { return p.give(f.sse) }

func (p *stream) say(_, event string, id int64, data []byte) error {
	return p.give(sseFrame(event, id, data))
}

// ping is not needed: the kernel tells when the client has gone.
func (p *stream) ping() error { return nil }

func (p *stream) bye(why Code) {
	if why != CloseGone {
		_ = p.give(sseRetry(why.retry())) // what does not go out now does not go out
	}
}

// give sends b, which never changes, behind what is kept already.
func (p *stream) give(b []byte) error {
	if len(p.tail) > 0 {
		p.append(b)
		return nil
	}
	n, err := send(p.fd, b)
	p.traffic.gave(n)
	if p.keep(b[n:]); len(p.tail) > 0 {
		p.since = p.now()
		p.traffic.m.behind.Inc()
	}
	return err
}

func (p *stream) flush() error {
	if len(p.tail) == 0 {
		return nil
	}
	n, err := send(p.fd, p.tail)
	p.traffic.gave(n)
	if n > 0 {
		p.since = p.now()
	}
	if p.tail = p.tail[n:]; len(p.tail) == 0 {
		p.tail = nil
		p.traffic.m.behind.Dec()
	}
	return err
}

func (p *stream) stuck() (time.Duration, bool) { return p.since, len(p.tail) > 0 }

// watch implements parkable.
func (p *stream) watch(e *epoll, life int32) (int, error) { return p.fd, e.add(p.fd, life) }

// part implements parkable. The kernel forgets a descriptor that is closed.
func (p *stream) part(*epoll, Code) {
	if len(p.tail) > 0 {
		p.traffic.m.behind.Dec()
	}
	_ = syscall.Close(p.fd)
}

// socket is a parked WebSocket session's connection.
type socket struct {
	berth
	from *listener
}

// watch implements parkable.
func (p *socket) watch(e *epoll, life int32) (int, error) {
	w, _ := p.from.out.wire.(*quietWire)
	return w.watch(e, life)
}

// part implements parkable. A client that was told has a second to answer, and
// its reader ends with the connection.
func (p *socket) part(e *epoll, why Code) {
	w, _ := p.from.out.wire.(*quietWire)
	w.forget(e)
	if why == CloseGone || p.shard.lot.ctx.Err() != nil {
		_ = w.Close() // not the library's, which waits for its reader
		return
	}
	time.AfterFunc(closeLinger, func() { _ = w.Close() })
}

// quietWire is a wire whose writes never wait: what the connection does not
// take is kept. The websocket library writes to it beside the shard. Go's
// poller only reads the descriptor, which is ours to write until Close.
type quietWire struct {
	mu     sync.Mutex
	fd     int32
	parted bool // forget was called: nothing is written any more
	broken error
	kept
	since   time.Duration
	traffic *traffic
	now     func() time.Duration

	net.Conn
	early []byte // what was read before the connection was ours
}

// take makes the wire that of conn, whose first bytes may have been read.
func (w *quietWire) take(conn net.Conn, early []byte) error {
	raw, err := rawOf(conn)
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // a wish: the kernel decides
	}
	w.Conn, w.early, w.broken = conn, slices.Clone(early), nil
	return raw.Control(func(fd uintptr) { w.fd = int32(fd) })
}

// Read implements net.Conn.
func (w *quietWire) Read(b []byte) (int, error) {
	if len(w.early) > 0 {
		n := copy(b, w.early)
		w.early = w.early[n:]
		return n, nil
	}
	return w.Conn.Read(b)
}

// Write implements net.Conn. It takes everything.
func (w *quietWire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.parted {
		return len(b), nil // an error would end the connection before the client has answered
	}
	whole := len(w.tail) == 0
	if err := w.giveLocked(b); err != nil {
		return 0, err
	}
	if whole && len(w.tail) > 0 {
		w.own() // b is the caller's
	}
	return len(b), nil
}

func (w *quietWire) give(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.giveLocked(b)
}

func (w *quietWire) giveLocked(b []byte) error {
	if len(w.tail) > 0 {
		w.append(b)
		return nil
	}
	n, err := w.sendLocked(b)
	if w.keep(b[n:]); len(w.tail) > 0 {
		w.since = w.now()
		w.traffic.m.behind.Inc()
	}
	return err
}

func (w *quietWire) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tail) == 0 {
		return nil
	}
	n, err := w.sendLocked(w.tail)
	if n > 0 {
		w.since = w.now()
	}
	if w.tail = w.tail[n:]; len(w.tail) == 0 {
		w.tail = nil
		w.traffic.m.behind.Dec()
	}
	return err
}

func (w *quietWire) sendLocked(b []byte) (n int, err error) {
	if w.broken != nil {
		return 0, w.broken
	}
	n, w.broken = send(int(w.fd), b)
	w.traffic.gave(n)
	return n, w.broken
}

func (w *quietWire) stuck() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.since, len(w.tail) > 0
}

func (w *quietWire) watch(e *epoll, life int32) (fd int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return -1, net.ErrClosed
	}
	return int(w.fd), e.add(int(w.fd), life)
}

// forget is called once: the last word of who wrote here.
func (w *quietWire) forget(e *epoll) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tail) > 0 {
		w.traffic.m.behind.Dec()
	}
	w.tail, w.broken, w.parted = nil, net.ErrClosed, true
	if w.fd >= 0 {
		e.remove(int(w.fd))
	}
}

// Close implements net.Conn. The descriptor may be somebody else's as soon as
// it is closed, so it is forgotten first.
func (w *quietWire) Close() error {
	w.mu.Lock()
	w.fd = -1
	if w.broken == nil {
		w.broken = net.ErrClosed
	}
	w.mu.Unlock()
	return w.Conn.Close()
}
