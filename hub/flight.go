package hub

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errStale says that the source's newest snapshot is older than what the topic
// has already announced.
var errStale = errors.New("hub: snapshot older than the topic")

// flight keeps a topic's newest snapshot and fetches a newer one when somebody
// needs it, one at a time: a thousand that return at once share what was got
// for one of them. Nobody waits in it: who is owed a snapshot is roused.
type flight struct {
	mu      sync.Mutex
	epoch   uint64
	have    *frame
	begun   uint64 // fetches so far
	busy    bool   // the last of them is under way
	err     error  // of the last that ended
	waiting map[*session]struct{}
}

// put remembers a snapshot, unless a newer one is known.
func (fl *flight) put(epoch uint64, f *frame) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.putLocked(epoch, f)
}

func (fl *flight) putLocked(epoch uint64, f *frame) {
	if epoch > fl.epoch || (epoch == fl.epoch && (fl.have == nil || f.n > fl.have.n)) {
		fl.epoch, fl.have = epoch, f
	}
}

// ask returns a snapshot of this epoch numbered atLeast or above; or nothing
// when s will be roused, and start when the caller must have one fetched; or
// why the fetch that was to bring it did not. turn is the asker's memory of
// which fetch that is: one that was under way when it first asked may have
// begun too early, the one after it has not.
func (fl *flight) ask(epoch uint64, atLeast int64, turn *uint64, s *session) (f *frame, start bool, err error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if fl.have != nil && fl.epoch == epoch && fl.have.n >= atLeast {
		*turn = 0
		return fl.have, false, nil
	}
	if *turn != 0 && fl.endedLocked() >= *turn {
		*turn = 0
		if fl.err != nil {
			return nil, false, fl.err
		}
		return nil, false, errStale
	}
	if *turn == 0 {
		*turn = fl.begun + 1
	}
	if start = !fl.busy; start {
		fl.begun++
		fl.busy = true
	}
	if fl.waiting == nil {
		fl.waiting = make(map[*session]struct{})
	}
	fl.waiting[s] = struct{}{}
	return nil, start, nil
}

func (fl *flight) endedLocked() uint64 {
	if fl.busy {
		return fl.begun - 1
	}
	return fl.begun
}

// land ends a fetch and rouses who waited for it.
func (fl *flight) land(epoch uint64, f *frame, err error) {
	fl.mu.Lock()
	fl.busy, fl.err = false, err
	if err == nil {
		fl.putLocked(epoch, f)
	}
	waiting := fl.waiting
	fl.waiting = nil
	fl.mu.Unlock()
	for s := range waiting {
		s.driver.rouse(s)
	}
}

// shot gets the snapshot a cursor is owed. Neither a frame nor an error means
// that the session is roused when there may be one, or asks again when due.
func (s *session) shot(c *cursor) (*frame, error) {
	if c.fell > 1 {
		return nil, CloseSlow
	}
	now := s.hub.now()
	if c.wait != nil && now < c.wait.until {
		return nil, nil
	}
	f, epoch, err := s.hub.snapshot(c, s)
	if f == nil && err == nil {
		return nil, nil
	}
	if err == nil && c.room.accept(c, f, epoch) {
		c.wait = nil
		s.hub.metrics.sent(c)
		return f, nil
	}
	s.hub.metrics.snapshots.WithLabelValues("asked_again").Inc()
	if c.wait == nil {
		c.wait = &patience{since: now}
	}
	if now-c.wait.since < s.hub.opts.Patience {
		c.wait.lengthen(now)
		return nil, nil
	}
	if err == nil && c.claimed {
		// Nobody here ever reaches the number this client brought: it is of
		// a history that was lost. Said aloud, it may start over.
		c.room.disown(c)
		s.hub.metrics.resets.WithLabelValues(oneSession).Inc()
		s.driver.rouse(s)
		return nil, s.out.say(c.room.name, eventReset, 0, numberData(f.n))
	}
	return nil, CloseNoSnapshot
}

// fetchTimeout bounds one question to the source.
const fetchTimeout = 2 * time.Second

// snapshot returns a snapshot for c no older than its topic was when it asked
// first, and the epoch it is of; or nothing when s will be roused; or why there is none.
func (h *Hub) snapshot(c *cursor, s *session) (*frame, uint64, error) {
	r := c.room
	last, epoch := r.position()
	if c.turn == 0 && (c.wait == nil || c.need < c.n) {
		c.need = last // while it is fetched the topic goes on, and the ring has that
	}
	f, start, err := r.shots.ask(epoch, c.need, &c.turn, s)
	if start {
		h.fetches.Go(func() { h.fetch(r) })
	}
	return f, epoch, err
}

func (h *Hub) fetch(r *room) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	_, epoch := r.position()
	n, data, err := h.opts.Source.Snapshot(ctx, r.name)
	if err != nil {
		r.shots.land(epoch, nil, err)
		return
	}
	r.shots.land(epoch, newFrame(r.name, eventSnapshot, n, data), nil)
}

// patience spaces out the questions of a cursor that is owed a snapshot. Times
// are those of the hub's clock.
type patience struct{ since, until, pause time.Duration }

// lengthen waits before the next question: 20 ms, then twice as long each
// time, to 320 ms.
func (p *patience) lengthen(now time.Duration) {
	p.pause = min(max(2*p.pause, 20*time.Millisecond), 320*time.Millisecond)
	p.until = now + p.pause
}
