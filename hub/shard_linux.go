package hub

import (
	"container/heap"
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// shard steps its sessions in one goroutine, which never waits for any of
// them. Another one waits for the kernel and passes on what it says.
type shard struct {
	lot  *lot
	poll *epoll
	wake chan struct{} // 1: two wakes are one

	// Of the goroutine in run.
	agenda agenda
	byFD   []*berth // who has a descriptor
	groups map[*room]*group

	mu     sync.Mutex
	closed bool
	roused []*berth
	spare  []*berth // the slice roused had before
	heard  []event
	walks  []*group // with something new, in the order they are walked
}

// unparked is the index of a berth that has not been stepped yet.
const unparked = -1

// berth is a session's place in a shard, and its driver.
type berth struct {
	fd      int // of the connection, once parked
	shard   *shard
	session *session
	conn    parkable
	life    int32 // tells apart who had the descriptor one after the other
	index   int32 // in agenda, or unparked
	roused  bool  // guarded by shard.mu
	gone    bool
}

// parkable is the connection of a parked session.
type parkable interface {
	// watch has the kernel tell e about the connection, as life, and returns its
	// descriptor.
	watch(e *epoll, life int32) (fd int, err error)
	// part ends what watch began and closes the connection, at once or after
	// the client had the time to answer.
	part(e *epoll, why Code)
}

func newShard(l *lot) (*shard, error) {
	e, err := newEpoll()
	if err != nil {
		return nil, err
	}
	return &shard{lot: l, poll: e, wake: make(chan struct{}, 1), groups: make(map[*room]*group)}, nil
}

// listen passes on what the kernel says until the shard has closed its epoll.
func (sh *shard) listen() error {
	return sh.poll.wait(func(events []event) {
		sh.mu.Lock()
		sh.heard = append(sh.heard, events...)
		sh.mu.Unlock()
		sh.signal()
	})
}

// run works until ctx ends and then parts with everybody.
func (sh *shard) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if sh.work() {
			continue
		}
		if len(sh.agenda) > 0 {
			timer.Reset(sh.agenda[0].session.due - sh.lot.hub.now())
		}
		select {
		case <-ctx.Done():
		case <-sh.wake:
		case <-timer.C:
		}
	}
	return sh.shut()
}

// shut parts with who is parked and who was on the way here.
func (sh *shard) shut() error {
	sh.mu.Lock()
	sh.closed = true
	sh.mu.Unlock()
	sh.work()
	for len(sh.agenda) > 0 {
		sh.end(sh.agenda[0], CloseDrain)
	}
	for sh.work() { // nobody is told any more, but fan-outs wait for their walk
	}
	return sh.poll.close()
}

// work does what there is to do now, walking a part of one group at most, and
// reports whether there is more.
func (sh *shard) work() (more bool) {
	sh.mu.Lock()
	roused, heard := sh.roused, sh.heard
	sh.roused, sh.spare, sh.heard = sh.spare[:0], roused, nil
	for _, b := range roused {
		b.roused = false
	}
	var g *group
	if len(sh.walks) > 0 {
		g = sh.walks[0]
		g.beginLocked()
	}
	sh.mu.Unlock()

	for _, b := range roused {
		sh.step(b)
	}
	clear(roused)
	for _, e := range heard {
		sh.hear(e)
	}
	for now := sh.lot.hub.now(); len(sh.agenda) > 0 && sh.agenda[0].session.due <= now; {
		sh.step(sh.agenda[0])
	}
	if g != nil {
		g.walk()
		sh.mu.Lock()
		sh.walks = append(sh.walks[:0], sh.walks[1:]...)
		if g.restLocked() {
			sh.walks = append(sh.walks, g)
		}
		sh.mu.Unlock()
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return len(sh.roused)+len(sh.heard)+len(sh.walks) > 0
}

func (sh *shard) hear(e event) {
	if e.fd >= len(sh.byFD) || sh.byFD[e.fd] == nil || sh.byFD[e.fd].life != e.life {
		return // of one who has left
	}
	b := sh.byFD[e.fd]
	if e.gone {
		sh.end(b, CloseGone)
		return
	}
	sh.step(b)
}

// step steps a session, and parks it first when it is new.
func (sh *shard) step(b *berth) {
	if b.gone {
		return
	}
	if b.index == unparked {
		if err := sh.enter(b); err != nil {
			if !errors.Is(err, net.ErrClosed) { // a client that has left already is no trouble of ours
				sh.lot.hub.opts.Log.Warn("a connection could not be parked", "err", err)
			}
			sh.end(b, CloseGone)
			return
		}
	}
	if err := b.session.step(); err != nil {
		sh.end(b, codeOf(err))
		return
	}
	heap.Fix(&sh.agenda, int(b.index))
}

func (sh *shard) enter(b *berth) (err error) {
	b.session.drive(b)
	heap.Push(&sh.agenda, b)
	b.life = sh.poll.nextLife()
	if b.fd, err = b.conn.watch(sh.poll, b.life); err != nil {
		return err
	}
	for len(sh.byFD) <= b.fd {
		sh.byFD = append(sh.byFD, nil)
	}
	sh.byFD[b.fd] = b
	return nil
}

// end is a session's last moment.
func (sh *shard) end(b *berth, why Code) {
	b.gone = true
	if b.fd >= 0 && b.fd < len(sh.byFD) && sh.byFD[b.fd] == b {
		sh.byFD[b.fd] = nil
	}
	heap.Remove(&sh.agenda, int(b.index))
	b.session.out.bye(why)
	b.conn.part(sh.poll, why)
	sh.lot.hub.close(b.session, why)
}

// rouse has b stepped soon; false when the shard takes nobody any more.
func (sh *shard) rouse(b *berth) bool {
	sh.mu.Lock()
	ok := !sh.closed
	if ok && !b.roused {
		b.roused = true
		sh.roused = append(sh.roused, b)
	}
	sh.mu.Unlock()
	sh.signal()
	return ok
}

func (sh *shard) signal() {
	select {
	case sh.wake <- struct{}{}:
	default:
	}
}

// rouse implements driver.
func (b *berth) rouse(*session) { b.shard.rouse(b) }

// enter implements driver.
func (b *berth) enter(r *room, c *cursor) member {
	g := b.shard.groups[r]
	if g == nil {
		g = &group{shard: b.shard, room: r}
		b.shard.groups[r] = g
	}
	g.add(c)
	return g
}

// leave implements driver.
func (b *berth) leave(c *cursor) member {
	g := b.shard.groups[c.room]
	if g.remove(c); len(g.cursors) > 0 {
		return nil
	}
	delete(b.shard.groups, c.room)
	return g
}

// agenda orders a shard's sessions by when they are due.
type agenda []*berth

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].session.due < a[j].session.due }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = int32(i), int32(j)
}

// Push implements heap.Interface.
func (a *agenda) Push(x any) {
	b, _ := x.(*berth)
	b.index = int32(len(*a))
	*a = append(*a, b)
}

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	old := *a
	b := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	return b
}
