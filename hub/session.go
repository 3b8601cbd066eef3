package hub

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// sink is how a session's bytes reach its client. Only whoever steps the
// session uses it. Errors are Codes, or what the connection said.
type sink interface {
	greet(topic string, id int64, hello []byte) error
	send(f *frame) error
	say(topic, event string, id int64, data []byte) error
	ping() error // asks for a sign of life, where the transport has one
	bye(Code)    // tells the client, if it can still be told

	// flush brings what was sent on its way. A sink that never blocks may keep
	// some of it: stuck says since when the connection has taken nothing of
	// what is kept. A stuck sink is sent no frames.
	flush() error
	stuck() (since time.Duration, yes bool)
}

// driver is the engine that steps a session: at its due time, and when roused.
type driver interface {
	// rouse has s stepped soon. It does not block.
	rouse(s *session)
	// enter returns who a room tells that there is something new for c.
	enter(r *room, c *cursor) member
	// leave undoes enter. It returns the member if nobody stands behind it now.
	leave(c *cursor) member
}

// session is one watcher: cursors, and the step that moves them. It never
// waits: not for its client when the sink does not, nor for a snapshot.
//
// What every frame needs comes first: where thousands are written one after
// the other, their memory is the next cost after the system call.
type session struct {
	hub     *Hub
	kind    *kind
	driver  driver // set by its engine, before the first step
	out     sink
	quit    atomic.Int32 // a Code and one, once the session is to end: the first reason counts
	first   cursor       // of the first topic, for many the only one
	mu      sync.Mutex
	asked   []ask     // guarded by mu
	cursors []*cursor // of whoever steps the session
	due     time.Duration
	beatAt  time.Duration
	ageAt   time.Duration
	address string
}

// kind is what sessions of one transport and engine have in common.
type kind struct {
	transport, engine string
	many              bool // several topics: one that ends is no reason to close
	traffic           *traffic
}

// ask is what a client wants of the session.
type ask struct {
	topic string
	sub   bool
	since int64
	data  []byte    // of the hello when sub, of the error when topic is not touched
	end   time.Time // of the session at the latest, when sub; zero: it has none
}

// maxAsked bounds what a client may ask before it has read the answers.
const maxAsked = 64

// newSession returns a session that asks for topics first of all.
func (h *Hub) newSession(k *kind, address string, first ...ask) *session {
	now, o := h.now(), &h.opts
	return &session{hub: h, kind: k, address: address, asked: first, due: now,
		beatAt: now + between(o.Beat*3/4, o.Beat*5/4), ageAt: now + between(o.MaxAge*8/10, o.MaxAge)}
}

// drive gives the session to its engine.
func (s *session) drive(d driver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.driver = d
}

// rouse has the session stepped soon. One that no engine has yet may be stopped
// already; its first step is still to come.
func (s *session) rouse() {
	s.mu.Lock()
	d := s.driver
	s.mu.Unlock()
	if d != nil {
		d.rouse(s)
	}
}

// stop ends the session at its next step.
func (s *session) stop(why Code) {
	if s.quit.CompareAndSwap(0, int32(why)+1) {
		s.rouse()
	}
}

func (s *session) stopped() (why Code, yes bool) {
	q := s.quit.Load()
	return Code(q - 1), q != 0
}

// put hands an ask to whoever steps the session.
func (s *session) put(a ask) {
	s.mu.Lock()
	full := len(s.asked) >= maxAsked
	if !full {
		s.asked = append(s.asked, a)
	}
	s.mu.Unlock()
	if full {
		s.tooMany("asks")
	}
	s.rouse()
}

// tooMany ends a session whose client wants too much. What it still wants until
// its connection is closed is not counted again.
func (s *session) tooMany(reason string) {
	if _, yes := s.stopped(); !yes {
		s.hub.metrics.refused(s.kind, reason)
	}
	s.stop(CloseTooMany)
}

// step writes everything that is due and can be written now. Afterwards due
// says when to call it again at the latest. An error is the session's end.
func (s *session) step() error {
	if _, yes := s.out.stuck(); yes {
		if err := s.out.flush(); err != nil {
			return err
		}
	}
	if err := s.obey(); err != nil {
		return err
	}
	for i := 0; i < len(s.cursors); {
		c := s.cursors[i]
		if err := s.advance(c); err != nil {
			return err
		}
		if i < len(s.cursors) && s.cursors[i] == c {
			i++ // otherwise its topic ended, and the next has its place
		}
	}
	if err := s.keepTime(); err != nil {
		return err
	}
	if _, yes := s.out.stuck(); yes {
		return nil
	}
	return s.out.flush()
}

// keepTime does what the clock says, and sets due.
func (s *session) keepTime() error {
	if why, yes := s.stopped(); yes {
		return why
	}
	now, o := s.hub.now(), &s.hub.opts
	if now >= s.ageAt {
		return CloseAge
	}
	s.due = s.ageAt
	if since, yes := s.out.stuck(); yes {
		if now-since >= o.WriteTimeout {
			return CloseSlow
		}
		s.due = min(s.due, since+o.WriteTimeout)
		return nil
	}
	if now >= s.beatAt {
		if err := s.beat(); err != nil {
			return err
		}
		s.beatAt = now + between(o.Beat*3/4, o.Beat*5/4)
	}
	s.due = min(s.due, s.beatAt)
	for _, c := range s.cursors {
		if c.wait != nil && c.turn == 0 {
			s.due = min(s.due, c.wait.until)
		}
	}
	return nil
}

// obey does what the client asked for, while it reads the answers: what it asks
// meanwhile waits its turn, and put bounds that.
func (s *session) obey() error {
	for {
		if _, yes := s.out.stuck(); yes {
			return nil
		}
		a, some := s.nextAsk()
		if !some {
			return nil
		}
		var err error
		switch {
		case a.sub:
			err = s.subscribe(a)
		case a.data != nil:
			err = s.out.say(a.topic, eventError, noID, a.data)
		default:
			s.unwatch(a.topic)
		}
		if err != nil {
			return err
		}
	}
}

// nextAsk takes the oldest ask. One who asks nothing any more keeps nothing.
func (s *session) nextAsk() (a ask, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		return a, false
	}
	a, s.asked = s.asked[0], s.asked[1:]
	if len(s.asked) == 0 {
		s.asked = nil
	}
	return a, true
}

// subscribe watches a topic, unless that were one too many. Its hello goes out
// before anything else of it.
func (s *session) subscribe(a ask) error {
	s.unwatch(a.topic)
	if most := s.hub.opts.Limits.Topics; most >= 0 && len(s.cursors) >= most {
		s.hub.metrics.refused(s.kind, "topics")
		return s.out.say(a.topic, eventError, noID, errorData("too_many_topics", "unsubscribe from another topic first"))
	}
	if !a.end.IsZero() {
		s.ageAt = min(s.ageAt, s.hub.now()+time.Until(a.end))
	}
	c := s.hub.join(s, a.topic, a.since)
	s.cursors = append(s.cursors, c)
	s.hub.metrics.joined(c)
	return s.out.greet(a.topic, c.holds(), a.data)
}

func (s *session) unwatch(topic string) {
	for i, c := range s.cursors {
		if c.room.name == topic {
			s.hub.leave(c)
			s.cursors = append(s.cursors[:i], s.cursors[i+1:]...)
			return
		}
	}
}

// advance writes what one cursor is due, as far as the connection takes it. A
// reader that never quite catches up stays in here when the sink blocks, so
// the session's end is looked for between frames too.
func (s *session) advance(c *cursor) error {
	for {
		if why, yes := s.stopped(); yes {
			return why
		}
		if _, yes := s.out.stuck(); yes {
			return nil
		}
		what, f := c.room.next(c)
		switch what {
		case dueNothing:
			return nil
		case dueEnd:
			return s.ended(c)
		case dueSnapshot:
			var err error
			if f, err = s.shot(c); f == nil {
				return err
			}
		}
		if err := s.out.send(f); err != nil {
			return err
		}
		s.kind.traffic.wrote(f)
	}
}

// ended tells a socket that one of its topics is over. A stream is over with
// its only one.
func (s *session) ended(c *cursor) error {
	if !s.kind.many {
		return CloseEnded
	}
	s.unwatch(c.room.name)
	return s.out.say(c.room.name, eventError, noID, errorData("ended", "this topic is no longer pushed; poll it"))
}

// beat tells the client that the stream lives and which number it holds.
func (s *session) beat() error {
	now := time.Now().UnixMilli()
	for _, c := range s.cursors {
		data := append(strconv.AppendInt([]byte(`{"n":`), c.holds(), 10), `,"at":`...)
		data = append(strconv.AppendInt(data, now, 10), '}')
		if err := s.out.say(c.room.name, eventBeat, c.holds(), data); err != nil {
			return err
		}
	}
	return s.out.ping()
}

// codeOf says why a session whose step returned err is over.
func codeOf(err error) Code {
	var c Code
	switch {
	case errors.As(err, &c):
		return c
	case errors.Is(err, os.ErrDeadlineExceeded):
		return CloseSlow
	default:
		return CloseGone
	}
}
