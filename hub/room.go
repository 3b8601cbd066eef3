package hub

import "sync"

// room is the state of one topic, which all its sessions share. It knows no
// network and no clock.
type room struct {
	name  string
	shots flight

	mu      sync.RWMutex
	ring    ring
	last    int64  // number of the newest frame, or of the snapshot that reset it; 0 before the first
	epoch   uint64 // resets so far
	reset   *frame // the word that told of the last one
	notice  *frame // what was said last outside the numbers
	noticed uint64 // how often
	lasting bool   // newcomers are told too
	ended   bool   // nothing will be published any more
	members map[member]struct{}
}

// member is who a room tells that there is something new: a session, or an
// engine's group of them.
type member interface {
	// tell is called with the room's lock held and does not block. A member
	// that looks at its sessions one after the other adds itself to f, when
	// there is one, and says when it has looked at the last.
	tell(f *fanout)
}

func newRoom(name string, ringSize int) *room {
	return &room{name: name, ring: newRing(ringSize), members: make(map[member]struct{})}
}

// cursor is where one session stands in one topic. It belongs to whoever
// steps the session.
type cursor struct {
	room    *room
	session *session
	at      uint64 // offset of the next frame to look at
	n       int64  // number the watcher holds, or claims to
	epoch   uint64
	noticed uint64
	wait    *patience // while no snapshot would do
	slot    int32     // where its group has it, if it is in one
	fell    uint8     // times it fell off the ring since it last caught up
	claimed bool      // n is what the client said and this topic does not know
	owed    bool      // a snapshot, before any frame
	turn    uint64    // the fetch it waits for, when owed; see flight
	need    int64     // the number a snapshot must reach
}

// join places a cursor that holds number since, 0 for nothing; m is told of
// what comes.
func (r *room) join(c *cursor, since int64, m member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[m] = struct{}{}
	c.n, c.at, c.epoch, c.noticed = since, r.ring.head, r.epoch, r.noticed
	if r.lasting {
		c.noticed--
	}
	if since > 0 && since == r.last {
		return
	}
	if off, ok := r.ring.find(since); ok && since > 0 {
		c.at = off
		return
	}
	c.owed, c.claimed = true, since > 0
}

// leave reports whether the topic is now of no use: nobody watches it and it
// has no frames.
func (r *room) leave(m member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, m)
	return len(r.members) == 0 && r.last == 0 && r.noticed == 0
}

// publish appends a frame. A frame that does not follow the last one empties
// the ring, so that everybody who has not its prev is owed a snapshot.
func (r *room) publish(f *frame, fan *fanout) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.n <= r.last {
		return
	}
	if f.prev != r.last {
		r.ring.clear()
	}
	r.ring.push(f)
	r.last = f.n
	r.tellLocked(fan)
}

// restart forgets every number: word is told to all, and snapshot is what
// they get next.
func (r *room) restart(word, snapshot *frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring.clear()
	r.epoch++
	r.reset = word
	r.last = snapshot.n
	r.shots.put(r.epoch, snapshot)
	r.tellLocked(nil)
}

// tell says something outside the numbers, to newcomers too while lasting.
func (r *room) tell(word *frame, lasting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notice, r.lasting = word, lasting
	r.noticed++
	r.tellLocked(nil)
}

func (r *room) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.tellLocked(nil)
}

func (r *room) tellLocked(f *fanout) {
	for m := range r.members {
		m.tell(f)
	}
}

// position returns what a snapshot taken from now on must reach.
func (r *room) position() (last int64, epoch uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.last, r.epoch
}

// due says what a cursor needs next.
type due int

const (
	dueNothing  due = iota
	dueFrame        // write the frame; the cursor has moved past it
	dueSnapshot     // find a snapshot no older than the cursor
	dueEnd          // the topic has ended
)

// next moves c by one step.
func (r *room) next(c *cursor) (due, *frame) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch {
	case r.ended:
		return dueEnd, nil
	case c.epoch != r.epoch:
		c.restart(r.epoch)
		return dueFrame, r.reset
	case c.noticed != r.noticed:
		c.noticed = r.noticed
		return dueFrame, r.notice
	case c.owed:
		return dueSnapshot, nil
	}
	return r.followLocked(c)
}

func (r *room) followLocked(c *cursor) (due, *frame) {
	if c.at < r.ring.tail {
		c.owed = true
		c.fell++
		return dueSnapshot, nil
	}
	for c.at < r.ring.head {
		f := r.ring.at(c.at)
		if f.n > c.n && f.prev > c.n {
			c.owed = true
			return dueSnapshot, nil
		}
		c.at++
		if f.n > c.n {
			c.n = f.n
			return dueFrame, f
		}
	}
	c.fell = 0
	return dueNothing, nil
}

func (c *cursor) restart(epoch uint64) {
	c.epoch = epoch
	c.n, c.owed, c.claimed, c.fell, c.turn, c.wait = 0, true, false, 0, 0, nil
}

// accept takes a snapshot the cursor is owed, unless it would go back in time.
// What the ring still holds above it follows.
func (r *room) accept(c *cursor, f *frame, epoch uint64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if epoch != c.epoch || f.n < c.n {
		return false
	}
	c.n, c.owed, c.claimed = f.n, false, false
	c.at = r.ring.tail
	if off, ok := r.ring.find(f.n); ok {
		c.at = off
	}
	return true
}

// disown takes from a cursor the number its client claimed.
func (r *room) disown(c *cursor) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c.restart(r.epoch)
}

// holds is the number the watcher truly has: 0 while it is owed a snapshot it
// cannot do without.
func (c *cursor) holds() int64 {
	if c.claimed {
		return 0
	}
	return c.n
}
