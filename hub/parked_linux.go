package hub

import (
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// stream is a parked SSE session's connection, and its sink. Only its shard
// touches it.
type stream struct {
	berth
	head    []byte // of the response, until it is sent
	tail    []byte // what the connection has not taken yet; of a frame that is shared
	since   time.Duration
	now     func() time.Duration
	traffic *traffic
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
		p.tail = append(slices.Clip(p.tail), b...)
		return nil
	}
	n, err := send(p.fd, b)
	p.traffic.gave(n)
	if p.tail = b[n:]; len(p.tail) > 0 {
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
// take is kept. The websocket library writes to it beside the shard.
type quietWire struct {
	net.Conn
	raw     syscall.RawConn
	try     func(fd uintptr) bool // sends out; made once, so that a write allocates nothing
	early   []byte                // what was read before the connection was ours
	now     func() time.Duration
	traffic *traffic

	mu     sync.Mutex
	out    []byte // argument of try
	sent   int    // results of try
	err    error
	tail   []byte
	since  time.Duration
	broken error
	parted bool // forget was called: nothing is written any more
}

func newQuietWire(conn net.Conn, raw syscall.RawConn, early []byte, t *traffic, now func() time.Duration) *quietWire {
	w := &quietWire{Conn: conn, raw: raw, early: early, now: now, traffic: t}
	w.try = func(fd uintptr) bool {
		w.sent, w.err = send(int(fd), w.out)
		return true
	}
	return w
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
		w.tail = slices.Clone(w.tail) // b is the caller's
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
		w.tail = append(slices.Clip(w.tail), b...)
		return nil
	}
	n, err := w.sendLocked(b)
	if w.tail = b[n:]; len(w.tail) > 0 {
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

func (w *quietWire) sendLocked(b []byte) (int, error) {
	if w.broken != nil {
		return 0, w.broken
	}
	w.out, w.sent, w.err = b, 0, nil
	if err := w.raw.Write(w.try); err != nil {
		w.err = err
	}
	w.out = nil
	w.broken = w.err
	w.traffic.gave(w.sent)
	return w.sent, w.err
}

func (w *quietWire) stuck() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.since, len(w.tail) > 0
}

func (w *quietWire) watch(e *epoll, life int32) (fd int, err error) {
	fd = -1
	if e := w.raw.Control(func(s uintptr) { fd = int(s); err = e.add(fd, life) }); e != nil {
		return -1, e
	}
	return fd, err
}

// forget is called once: the last word of who wrote here.
func (w *quietWire) forget(e *epoll) {
	w.mu.Lock()
	if len(w.tail) > 0 {
		w.traffic.m.behind.Dec()
	}
	w.tail, w.broken, w.parted = nil, net.ErrClosed, true
	w.mu.Unlock()
	_ = w.raw.Control(func(s uintptr) { e.remove(int(s)) }) // a closed one is forgotten already
}
