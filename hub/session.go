package hub

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"
)

// sink is how a session's bytes reach its client. Only the session's own
// goroutine uses it. Errors are Codes, or what the connection said.
type sink interface {
	greet(topic string, id int64, hello []byte) error
	send(f *frame) error
	say(topic, event string, id int64, data []byte) error
	ping() error  // asks for a sign of life, where the transport has one
	flush() error // what was sent is on its way when it returns
	bye(Code)     // tells the client, if it can still be told
}

// session is one watcher: cursors, and the loop that moves them.
type session struct {
	hub       *Hub
	transport string
	many      bool // several topics: one that ends is no reason to close
	out       sink
	wake      chan struct{} // 1: two wakes are one
	quit      chan Code     // 1: the first reason counts
	cursors   []*cursor     // of the goroutine in run, then of Hub.close

	mu    sync.Mutex
	asked []ask
}

// ask is what a socket's reader wants its writer to do.
type ask struct {
	topic string
	sub   bool
	since int64
	data  []byte // of the hello when sub, of the error when topic is not touched
}

// maxAsked bounds what a client may ask before it has read the answers.
const maxAsked = 64

func newSession(h *Hub, transport string, out sink) *session {
	return &session{hub: h, transport: transport, out: out, wake: make(chan struct{}, 1), quit: make(chan Code, 1)}
}

func (s *session) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *session) stop(why Code) {
	select {
	case s.quit <- why:
	default:
	}
}

// subscribe watches a topic, unless that were one too many.
func (s *session) subscribe(a ask) error {
	s.unwatch(a.topic)
	if len(s.cursors) >= s.hub.opts.MaxTopics {
		return s.out.say(a.topic, eventError, noID, errorData("too_many_topics", "unsubscribe from another topic first"))
	}
	s.watch(a.topic, a.since, a.data)
	return nil
}

// watch adds a topic; hello goes out before anything else of it.
func (s *session) watch(topic string, since int64, hello []byte) {
	c := s.hub.join(s, topic, since)
	c.hello = hello
	s.cursors = append(s.cursors, c)
	s.hub.metrics.joined(c)
}

func (s *session) unwatch(topic string) {
	for i, c := range s.cursors {
		if c.room.name == topic {
			s.hub.leave(s, c)
			s.cursors = append(s.cursors[:i], s.cursors[i+1:]...)
			return
		}
	}
}

// run writes what is due until the session ends, and says why it did.
func (s *session) run(ctx context.Context) Code {
	o := &s.hub.opts
	age := time.NewTimer(between(o.MaxAge*8/10, o.MaxAge))
	defer age.Stop()
	beat := time.NewTimer(between(o.Beat*3/4, o.Beat*5/4))
	defer beat.Stop()
	again := time.NewTimer(o.MaxAge)
	defer again.Stop()
	for {
		pause, err := s.pump(ctx)
		if err != nil {
			return codeOf(err)
		}
		if pause > 0 {
			again.Reset(pause)
		}
		select {
		case <-ctx.Done():
			return CloseGone
		case why := <-s.quit:
			return why
		case <-age.C:
			return CloseAge
		case <-s.wake:
		case <-again.C:
		case <-beat.C:
			if err := s.beat(); err != nil {
				return codeOf(err)
			}
			beat.Reset(between(o.Beat*3/4, o.Beat*5/4))
		}
	}
}

// codeOf says why a session whose loop ended with err is over.
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

// pump writes everything that is due and flushes it. pause, when above zero,
// is how long to wait for a snapshot that could not be had yet.
func (s *session) pump(ctx context.Context) (pause time.Duration, err error) {
	if err := s.obey(); err != nil {
		return 0, err
	}
	for i := 0; i < len(s.cursors); i++ {
		c := s.cursors[i]
		wait, err := s.advance(ctx, c)
		if errors.Is(err, CloseEnded) && s.many {
			s.unwatch(c.room.name)
			i--
			err = s.out.say(c.room.name, eventError, noID, errorData("ended", "this topic is no longer pushed; poll it"))
		}
		if err != nil {
			return 0, err
		}
		if wait > 0 && (pause == 0 || wait < pause) {
			pause = wait
		}
	}
	return pause, s.out.flush()
}

// obey does what the reader of a socket asked for.
func (s *session) obey() error {
	s.mu.Lock()
	asked := s.asked
	s.asked = nil
	s.mu.Unlock()
	for _, a := range asked {
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
	return nil
}

// put hands an ask to the writer.
func (s *session) put(a ask) {
	s.mu.Lock()
	full := len(s.asked) >= maxAsked
	if !full {
		s.asked = append(s.asked, a)
	}
	s.mu.Unlock()
	if full {
		s.stop(CloseTooMany)
	}
	s.rouse()
}

// advance writes what one cursor is due. A reader that never quite catches up
// stays in here, so the session's end is looked for between frames too.
func (s *session) advance(ctx context.Context, c *cursor) (pause time.Duration, err error) {
	if c.hello != nil {
		if err := s.out.greet(c.room.name, c.holds(), c.hello); err != nil {
			return 0, err
		}
		c.hello = nil
	}
	for {
		select {
		case why := <-s.quit:
			return 0, why
		default:
		}
		what, f := c.room.next(c)
		switch what {
		case dueNothing:
			return 0, nil
		case dueEnd:
			return 0, CloseEnded
		case dueSnapshot:
			f, pause, err = s.shot(ctx, c)
			if pause > 0 || err != nil {
				return pause, err
			}
		}
		if err := s.out.send(f); err != nil {
			return 0, err
		}
		if what == dueFrame && f.numbers != nil {
			s.hub.metrics.lag.Observe(time.Since(f.made).Seconds())
		}
	}
}

// shot gets the snapshot a cursor is owed, or says how long to wait before
// asking again.
func (s *session) shot(ctx context.Context, c *cursor) (*frame, time.Duration, error) {
	if c.fell > 1 {
		return nil, 0, CloseSlow
	}
	if wait := c.wait.left(); wait > 0 {
		return nil, wait, nil
	}
	f, epoch, err := s.hub.snapshot(ctx, c.room)
	if err == nil && c.room.accept(c, f, epoch) {
		c.wait = patience{}
		s.hub.metrics.snapshots.WithLabelValues("sent").Inc()
		return f, 0, nil
	}
	s.hub.metrics.snapshots.WithLabelValues("asked_again").Inc()
	if !c.wait.over(s.hub.opts.Patience) {
		return nil, c.wait.next(), nil
	}
	if err == nil && c.claimed {
		// Nobody here ever reaches the number this client brought: it is of
		// a history that was lost. Said aloud, it may start over.
		c.room.disown(c)
		c.wait = patience{}
		return nil, time.Nanosecond, s.out.say(c.room.name, eventReset, 0, numberData(f.n))
	}
	return nil, 0, CloseNoSnapshot
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
	if err := s.out.ping(); err != nil {
		return err
	}
	return s.out.flush()
}

// patience spaces out the questions of a cursor that is owed a snapshot.
type patience struct {
	since, until time.Time
	pause        time.Duration
}

func (p *patience) left() time.Duration { return max(0, time.Until(p.until)) }

func (p *patience) over(limit time.Duration) bool {
	return !p.since.IsZero() && time.Since(p.since) >= limit
}

// next returns how long to wait before the next question: 20 ms, then twice as
// long each time, to 320 ms.
func (p *patience) next() time.Duration {
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	p.pause = min(max(2*p.pause, 20*time.Millisecond), 320*time.Millisecond)
	p.until = now.Add(p.pause)
	return p.pause
}
