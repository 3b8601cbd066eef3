package hub

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Source answers what the hub cannot keep: the whole state of a topic. Both
// must be safe for concurrent use; the hub asks for one snapshot of a topic at
// a time.
type Source interface {
	// Snapshot returns the state of a topic as one JSON object, and its
	// number: not below any number published for the topic before the call.
	Snapshot(ctx context.Context, topic string) (n int64, data []byte, err error)
	// Hello returns the JSON object that opens a stream.
	Hello(ctx context.Context, topic string) (data []byte, err error)
}

// Options configure a Hub. Only Source is needed.
type Options struct {
	Source Source

	RingSize     int           // frames a topic keeps for those who resume or lag; 1200: two minutes at one each 100 ms
	WriteTimeout time.Duration // a write not taken for so long closes the session; 10 s
	Beat         time.Duration // mean time between beats, drawn between 75 and 125 %; 20 s
	MaxAge       time.Duration // longest life of a session, drawn between 80 and 100 %; 30 min
	Patience     time.Duration // how long a session owed a snapshot asks again; 2 s

	Origins   []string // WebSocket origins beside the request's own host: host patterns, or "*" for any
	MaxTopics int      // topics one WebSocket may watch; 16

	Log        *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are kept but not shown
}

func (o *Options) setDefaults() {
	setDefault(&o.RingSize, 1200)
	setDefault(&o.WriteTimeout, 10*time.Second)
	setDefault(&o.Beat, 20*time.Second)
	setDefault(&o.MaxAge, 30*time.Minute)
	setDefault(&o.Patience, 2*time.Second)
	setDefault(&o.MaxTopics, 16)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// Hub holds the sessions of one server. It starts no goroutine of its own.
type Hub struct {
	opts    Options
	metrics *metrics

	mu       sync.RWMutex
	rooms    map[string]*room
	sessions map[*session]struct{}
	draining bool
	empty    chan struct{} // closed when draining and the last session has left
}

// New returns a Hub with no topics and no sessions.
func New(o Options) *Hub {
	o.setDefaults()
	return &Hub{
		opts:     o,
		metrics:  newMetrics(o.Registerer),
		rooms:    make(map[string]*room),
		sessions: make(map[*session]struct{}),
		empty:    make(chan struct{}),
	}
}

// Publish gives everybody who watches topic a delta: one JSON object that
// takes any watcher with a number in [prev, n) to n, where n is the last of
// numbers. numbers are all it merged, ascending, and at is when the oldest
// thing it tells happened. It is dropped when the topic is already at n; when
// prev is not the number of the last one, watchers that miss what lies between
// get a snapshot. Publish never blocks; data and numbers are the hub's from
// now on.
//
// The channel it returns is closed at the end of the fan-out: once the delta
// was offered to everybody. Whoever publishes faster than that makes the hub
// write more frames of fewer changes.
func (h *Hub) Publish(topic string, prev int64, numbers []int64, at time.Time, data []byte) (walked <-chan struct{}) {
	done := make(chan struct{})
	close(done)
	if len(numbers) == 0 {
		return done
	}
	f := newFrame(topic, eventDelta, numbers[len(numbers)-1], data)
	f.prev, f.numbers, f.at = prev, numbers, at
	h.with(topic, func(r *room) { r.publish(f) })
	return done
}

// Reset tells everybody who watches topic to drop what they know and gives
// them a snapshot: numbers before n may have forked. The Source must be at n
// or above before Reset is called.
func (h *Hub) Reset(topic string, n int64, snapshot []byte) {
	word := newFrame(topic, eventReset, 0, numberData(n))
	shot := newFrame(topic, eventSnapshot, n, snapshot)
	h.with(topic, func(r *room) { r.restart(word, shot) })
}

// Degrade tells everybody who watches topic, and whoever joins later, that
// frames may be late and why, and where to poll meanwhile. An empty reason
// says that it is over.
func (h *Hub) Degrade(topic, reason, poll string) {
	data, _ := json.Marshal(struct { // strings always marshal
		Reason string `json:"reason"`
		Poll   string `json:"poll"`
	}{reason, poll})
	word := newFrame(topic, eventDegraded, noID, data)
	h.with(topic, func(r *room) { r.tell(word, reason != "") })
}

// End says that nothing will be published for topic any more. Its SSE sessions
// are closed; WebSockets are told and keep their other topics.
func (h *Hub) End(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[topic]; r != nil {
		r.end()
		delete(h.rooms, topic)
	}
}

// Drain refuses new sessions and closes all there are, each with a random
// hint when to come back. It returns when the last has left, or with ctx's
// error.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	if !h.draining {
		h.draining = true
		if len(h.sessions) == 0 {
			close(h.empty)
		}
	}
	for s := range h.sessions {
		s.stop(CloseDrain)
	}
	h.mu.Unlock()
	select {
	case <-h.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// with calls use on a topic, which is made when there is none.
func (h *Hub) with(name string, use func(*room)) {
	h.mu.RLock()
	for h.rooms[name] == nil {
		h.mu.RUnlock()
		h.mu.Lock()
		h.roomLocked(name)
		h.mu.Unlock()
		h.mu.RLock()
	}
	defer h.mu.RUnlock()
	use(h.rooms[name])
}

func (h *Hub) roomLocked(name string) *room {
	r := h.rooms[name]
	if r == nil {
		r = newRoom(name, h.opts.RingSize)
		h.rooms[name] = r
	}
	return r
}

// open registers a session, or says no because the server is leaving.
func (h *Hub) open(s *session) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return false
	}
	h.sessions[s] = struct{}{}
	h.metrics.sessions.WithLabelValues(s.transport, engine).Inc()
	return true
}

func (h *Hub) close(s *session, why Code) {
	for _, c := range s.cursors {
		h.leave(s, c)
	}
	h.metrics.sessions.WithLabelValues(s.transport, engine).Dec()
	h.metrics.closes.WithLabelValues(s.transport, why.String()).Inc()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s)
	if h.draining && len(h.sessions) == 0 {
		close(h.empty)
	}
}

func (h *Hub) join(s *session, name string, since int64) *cursor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.roomLocked(name).join(s, since)
}

// leave forgets a topic that nobody watches and nothing was published for:
// otherwise names asked for would pile up.
func (h *Hub) leave(s *session, c *cursor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.room.leave(s) && h.rooms[c.room.name] == c.room {
		delete(h.rooms, c.room.name)
	}
}

// snapshot returns a snapshot no older than the topic is now, and the epoch it
// is of.
func (h *Hub) snapshot(ctx context.Context, r *room) (*frame, uint64, error) {
	last, epoch := r.position()
	f, err := r.shots.get(ctx, epoch, last, func(ctx context.Context) (*frame, error) {
		n, data, err := h.opts.Source.Snapshot(ctx, r.name)
		if err != nil {
			return nil, err
		}
		return newFrame(r.name, eventSnapshot, n, data), nil
	})
	return f, epoch, err
}
