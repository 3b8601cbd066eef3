package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// lot is where sessions are parked: the engine for plain TCP and HTTP/1.1 on
// Linux. It has as many shards as Go has processors, and each session belongs
// to one of them. A parked stream costs a cursor and a file descriptor; a
// parked socket also the goroutine that reads it.
type lot struct {
	hub     *Hub
	shards  []*shard
	turn    atomic.Uint32
	ctx     context.Context // ends with the lot
	readers crew
}

var errLotClosed = errors.New("hub: no session is parked any more")

// park runs the lot until ctx ends, then cuts off who is left.
func (h *Hub) park(ctx context.Context) error {
	l := &lot{hub: h, ctx: ctx}
	defer l.readers.Wait()
	g, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		sh, err := newShard(l)
		if err != nil {
			h.opts.Log.Warn("sessions are not parked", "err", err)
			break
		}
		l.shards = append(l.shards, sh)
		g.Go(func() error { return sh.run(ctx) })
		g.Go(sh.listen)
	}
	if len(l.shards) > 0 {
		h.parking.Store(l)
	}
	<-ctx.Done()
	h.parking.Store(nil)
	return g.Wait()
}

// pick spreads sessions evenly.
func (l *lot) pick() *shard { return l.shards[int(l.turn.Add(1)%uint32(len(l.shards)))] }

// stream parks an SSE session: its descriptor leaves Go's poller and is the
// lot's alone. head is what the client is answered first. On an error the
// session is not parked, and the connection is closed.
func (l *lot) stream(s *session, conn net.Conn, head []byte) error {
	defer func() { _ = conn.Close() }() // what is parked is a duplicate
	fd, err := detach(conn)
	if err != nil {
		_, _ = conn.Write(append(head, sseRetry(errFull.retry())...)) // the client may have left
		return fmt.Errorf("park a stream: %w", err)
	}
	p := &stream{head: head, now: s.hub.now, traffic: s.kind.traffic}
	p.berth = berth{shard: l.pick(), session: s, fd: fd, index: unparked, conn: p}
	s.out = p
	if !p.shard.rouse(&p.berth) {
		_ = syscall.Close(fd)
		return errLotClosed
	}
	return nil
}

// sink returns that of a socket, whose writes never wait, and takes the
// connection once there is one. early is what was read of it already.
func (l *lot) sink(t *traffic) (out *wsSink, take func(conn net.Conn, early []byte) error) {
	both := &struct { // side by side in memory
		sink wsSink
		wire quietWire
	}{}
	both.wire = quietWire{fd: -1, broken: net.ErrClosed, traffic: t, now: l.hub.now}
	both.sink = wsSink{wire: &both.wire, hub: l.hub, traffic: t}
	return &both.sink, both.wire.take
}

// socket parks a WebSocket session: a shard writes it, and a goroutine that
// does nothing else reads it.
func (l *lot) socket(s *session, from *listener) {
	p := &socket{from: from}
	p.berth = berth{shard: l.pick(), session: s, fd: -1, index: unparked, conn: p}
	if !p.shard.rouse(&p.berth) {
		_ = from.conn.CloseNow()
		l.hub.close(s, CloseGone)
		return
	}
	l.readers.Go(func() {
		from.listen(context.Background()) // ends when the connection is closed
		s.stop(CloseGone)
		_ = from.conn.CloseNow()
	})
}
