package hub

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Source answers what the hub cannot keep: the whole state of a topic. All
// must be safe for concurrent use; the hub asks for one snapshot of a topic at
// a time.
type Source interface {
	// Snapshot returns the state of a topic as one JSON object, and its
	// number: not below any number published for the topic before the call.
	Snapshot(ctx context.Context, topic string) (n int64, data []byte, err error)
	// Hello returns the JSON object that opens a stream.
	Hello(ctx context.Context, topic string) (data []byte, err error)
	// Poll returns where a topic can be read without a session.
	Poll(topic string) (path string)
}

// Options configure a Hub. Only Source is needed.
type Options struct {
	Source Source

	RingSize     int           // frames a topic keeps for those who resume or lag; 1200: two minutes at one each 100 ms
	WriteTimeout time.Duration // a write not taken for so long closes the session; 10 s
	Beat         time.Duration // mean time between beats, drawn between 75 and 125 %; 20 s
	MaxAge       time.Duration // longest life of a session, drawn between 80 and 100 %; 30 min
	Patience     time.Duration // how long a session owed a snapshot asks again; 2 s
	Portable     bool          // never park a session

	Limits Limits

	Origins []string // WebSocket origins beside the request's own host: host patterns, or "*" for any

	Log        *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are kept but not shown
}

func (o *Options) setDefaults() {
	setDefault(&o.RingSize, 1200)
	setDefault(&o.WriteTimeout, 10*time.Second)
	setDefault(&o.Beat, 20*time.Second)
	setDefault(&o.MaxAge, 30*time.Minute)
	setDefault(&o.Patience, 2*time.Second)
	o.Limits.setDefaults()
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

// Hub holds the sessions of one server.
type Hub struct {
	opts    Options
	metrics *metrics
	gate    *gate
	start   time.Time
	parking atomic.Pointer[lot] // while Run runs, where sessions can be parked
	fetches crew

	mu       sync.RWMutex
	rooms    map[string]*room
	sessions map[*session]struct{}
	draining bool
	empty    chan struct{} // closed when draining and the last session has left
}

// New returns a Hub with no topics and no sessions.
func New(o Options) *Hub {
	o.setDefaults()
	m := newMetrics(o.Registerer)
	m.limit.Set(o.Limits.sessions())
	return &Hub{
		opts:     o,
		metrics:  m,
		gate:     newGate(o.Limits),
		start:    time.Now(),
		rooms:    make(map[string]*room),
		sessions: make(map[*session]struct{}),
		empty:    make(chan struct{}),
	}
}

// now is the hub's clock: time since it was made.
func (h *Hub) now() time.Duration { return time.Since(h.start) }

// Run parks the sessions that can be parked, until ctx ends; then those still
// parked are cut off, so Drain comes first. Where nothing can be parked it only
// waits. Without Run every session is served by the portable engine.
func (h *Hub) Run(ctx context.Context) error {
	defer h.fetches.Wait()
	if h.opts.Portable {
		<-ctx.Done()
		return nil
	}
	return h.park(ctx)
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
// was offered to every parked session. Whoever publishes faster than that
// makes the hub write more frames of fewer changes.
func (h *Hub) Publish(topic string, prev int64, numbers []int64, at time.Time, data []byte) (walked <-chan struct{}) {
	fan := newFanout(h.metrics.fanout)
	defer fan.release()
	if len(numbers) == 0 {
		return fan.done
	}
	f := newFrame(topic, eventDelta, numbers[len(numbers)-1], data)
	f.prev, f.numbers, f.at = prev, numbers, at
	h.with(topic, func(r *room) { r.publish(f, fan) })
	return fan.done
}

// Reset tells everybody who watches topic to drop what they know and gives
// them a snapshot: numbers before n may have forked. The Source must be at n
// or above before Reset is called.
func (h *Hub) Reset(topic string, n int64, snapshot []byte) {
	word := newFrame(topic, eventReset, 0, numberData(n))
	shot := newFrame(topic, eventSnapshot, n, snapshot)
	h.with(topic, func(r *room) { r.restart(word, shot) })
	h.metrics.resets.WithLabelValues(everybody).Inc()
}

// Degrade tells everybody who watches topic, and whoever joins later, that
// frames may be late and why, and where to poll meanwhile. An empty reason
// says that it is over.
func (h *Hub) Degrade(topic, reason, poll string) {
	word := newFrame(topic, eventDegraded, noID, degradedData(reason, poll, 0))
	h.with(topic, func(r *room) { r.tell(word, reason != "") })
}

// degradedData is that of the event. A stream that ends with it also says when to come
// back, for those who cannot read retry: pages, which their EventSource does not show it.
func degradedData(reason, poll string, back time.Duration) []byte {
	data, _ := json.Marshal(struct { // strings always marshal
		Reason string `json:"reason"`
		Poll   string `json:"poll"`
		Back   int64  `json:"retry_ms,omitempty"`
	}{reason, poll, back.Milliseconds()})
	return data
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

// slice is how often a drain closes the next few sessions.
const slice = 50 * time.Millisecond

// Drain refuses new sessions and closes all there are, spread over a time, or
// one a slice when they are few, and in no particular order; each with a random
// hint when to come back.
// Until its turn comes a session is served as ever. It returns when the last
// has left, or with ctx's error.
func (h *Hub) Drain(ctx context.Context, over time.Duration) error {
	tick := time.NewTicker(slice)
	defer tick.Stop()
	left := h.leaving()
	for slices := max(1, int(over/slice)); slices > 0; slices-- {
		turn := (len(left) + slices - 1) / slices
		for _, s := range left[:turn] {
			s.stop(CloseDrain)
		}
		if left = left[turn:]; len(left) == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-h.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaving closes the door, and returns who is inside, shuffled.
func (h *Hub) leaving() []*session {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.draining {
		h.draining = true
		if len(h.sessions) == 0 {
			close(h.empty)
		}
	}
	all := make([]*session, 0, len(h.sessions))
	for s := range h.sessions {
		all = append(all, s)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
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

// open registers a session, or says why there is no room for it.
func (h *Hub) open(s *session) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := error(errLeaving)
	if !h.draining {
		err = h.gate.enter(s.address, len(h.sessions))
	}
	if err != nil {
		return err
	}
	h.sessions[s] = struct{}{}
	h.metrics.opened(s.kind)
	return nil
}

func (h *Hub) close(s *session, why Code) {
	for _, c := range s.cursors {
		h.leave(c)
	}
	s.cursors = nil
	h.metrics.closed(s.kind, why)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s)
	h.gate.leave(s.address)
	if h.draining && len(h.sessions) == 0 {
		close(h.empty)
	}
}

func (h *Hub) join(s *session, name string, since int64) *cursor {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &s.first
	if c.room != nil {
		c = new(cursor)
	}
	c.room, c.session = h.roomLocked(name), s
	c.room.join(c, since, s.driver.enter(c.room, c))
	return c
}

// leave forgets a topic that nobody watches and nothing was published for:
// otherwise names asked for would pile up.
func (h *Hub) leave(c *cursor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := c.session.driver.leave(c)
	if m != nil && c.room.leave(m) && h.rooms[c.room.name] == c.room {
		delete(h.rooms, c.room.name)
	}
}
