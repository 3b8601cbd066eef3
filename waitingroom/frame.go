package waitingroom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seatcast/seatmap"
)

// shown is a frame as everybody is told it: whole, numbered by the clock of Redis.
type shown struct {
	N         int64      `json:"n"`
	Prev      int64      `json:"prev"` // 0: whatever somebody has, this supersedes it
	At        int64      `json:"at"`   // Unix ms
	Room      int64      `json:"room"` // which of those the event had, as a place names it
	State     State      `json:"state"`
	Serving   int64      `json:"serving"` // numbers up to it are called
	Rate      int        `json:"rate"`    // a minute, as it is set
	Pace      int        `json:"pace"`    // a minute, as it is now
	Slowed    *string    `json:"slowed"`  // why it is lower, or fewer are let in; null: it is not
	Waiting   int64      `json:"waiting"`
	Inside    int64      `json:"inside"`
	SeatsLeft int64      `json:"seatsLeft"`
	Eta       *eta       `json:"eta"` // null while nobody is called
	JoinsAt   time.Time  `json:"joinsAt"`
	ClosesAt  *time.Time `json:"closesAt"`
	OpensAt   time.Time  `json:"opensAt"`
	Draw      *drawShown `json:"draw"`           // null: there is none
	Asks      string     `json:"asks,omitempty"` // of who joins: code or proof
	Since     int64      `json:"since"`          // Unix ms; once it changes the server has to be told one's place anew
	Poll      int        `json:"poll_after_ms"`
}

// eta is how many numbers are called a minute: by the pace as it is now, and as it
// was measured over the last minute, the slower and the faster of them.
type eta struct {
	Slow int `json:"slow"`
	Fast int `json:"fast"`
}

// drawShown is how far the draw is.
type drawShown struct {
	State   string `json:"state"` // announced, frozen or drawn
	Tickets int    `json:"tickets"`
}

// drawState is how far the draw of a room is.
func (r *Room) drawState() string {
	switch {
	case !r.Drawn.IsZero():
		return "drawn"
	case !r.Frozen.IsZero():
		return "frozen"
	}
	return "announced"
}

// pollAfter is how long whoever polls waits until they do again.
const pollAfter = 5 * time.Second

func (r *Room) shown(f Frame, e *eta) shown {
	s := shown{Room: r.id(), State: f.State, Serving: f.Serving, Rate: f.Rate, Pace: f.Pace, Waiting: f.Waiting, Inside: f.Inside,
		SeatsLeft: f.Free, Since: f.Since.UnixMilli(), Eta: e, JoinsAt: r.Joins, OpensAt: r.Opens, Poll: int(pollAfter.Milliseconds())}
	switch {
	case r.Terms.Codes:
		s.Asks = "code"
	case r.Terms.Proof > 0:
		s.Asks = "proof"
	}
	if f.Slowed != "" {
		s.Slowed = &f.Slowed
	}
	if r.HasDraw() {
		s.ClosesAt, s.Draw = &r.Closes, &drawShown{r.drawState(), r.Tickets}
		if r.Frozen.IsZero() {
			s.Draw.Tickets = int(f.Waiting)
		}
	}
	return s
}

// hall is what one process remembers of a room.
type hall struct {
	due      time.Time // when it is looked at again; of the goroutine that ticks, as is the next
	looksAt  int64     // the version of the room that was looked at
	lingerAt time.Time // when its keys were last given time; of who tends it

	given atomic.Int64 // the highest number this process has given

	turn    sync.Mutex // who looks at it, or serves it
	frame   Frame
	behind  bool      // Redis must be told what it does not know
	seatsAt time.Time // when the seats were counted last
	saidAt  time.Time // when it was said last what the sale did
	keptAt  time.Time // when it was kept in Postgres last
	kept    int64     // the last number then
	unkept  error     // why it was not, the last time
	durable int64     // how far it has called, as it is in Postgres
	samples []sample  // of an open room, one a second, the oldest first

	mu        sync.Mutex
	looked    time.Time // by the clock of this process
	now       shown
	text      []byte // now, as JSON
	plain     string // the same without number and time
	told      shown  // published last
	toldPlain string
	toldAt    time.Time
	did       sale // on all nodes, as it was heard last

	meters [2]meter // of what it did here, by Step
}

// gave notes that a number is somebody's.
func (h *hall) gave(number int64) {
	for {
		was := h.given.Load()
		if number <= was || h.given.CompareAndSwap(was, number) {
			return
		}
	}
}

// sample is how far a room had called.
type sample struct {
	at      time.Time
	serving int64
}

// What is measured.
const (
	measured = time.Minute
	leastOf  = 10 * time.Second // before that nothing is known
)

// sampled adds a frame, and returns what is known of how fast it goes.
func (h *hall) sampled(f Frame) *eta {
	if f.State != Open {
		h.samples = nil
		return nil
	}
	if n := len(h.samples); n == 0 || f.At.Sub(h.samples[n-1].at) >= time.Second {
		h.samples = append(h.samples, sample{f.At, f.Serving})
	}
	for len(h.samples) > 1 && f.At.Sub(h.samples[0].at) > measured {
		h.samples = h.samples[1:]
	}
	e := &eta{f.Pace, f.Pace}
	took := f.At.Sub(h.samples[0].at)
	if took < leastOf || f.Waiting == 0 {
		return e // of a line that is short nothing is learnt
	}
	is := int(float64(f.Serving-h.samples[0].serving) / took.Minutes())
	return &eta{min(e.Slow, is), max(e.Fast, is)}
}

// hall returns what is remembered of a room.
func (r *Rooms) hall(room *Room) *hall {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.halls[room.name()]
	if h == nil {
		h = new(hall)
		r.halls[room.name()] = h
	}
	return h
}

// see takes in a look at a room; kept is how far Postgres says it has called, or 0
// when it was not asked. What was shown never goes back, whatever Redis loses and
// whichever node shows it: so it is in Postgres before it is shown, and a frame that
// would tell of less than Redis has at its time is none. Numbers that Redis has given
// and lost are among those that were kept for that. It is called by whose turn it is.
func (h *hall) see(room *Room, f Frame, kept int64) {
	furthest := max(f.Serving, h.frame.Serving, room.serving, kept)
	last := max(f.Last, h.frame.Last, int64(room.Tickets))
	if f.Last < h.frame.Last {
		last = max(last, room.last)
	}
	h.behind = f.version < room.version || f.unnamed || f.Serving < furthest || f.Last < last
	f.Serving, f.Last = furthest, last
	h.frame, h.durable = f, max(h.durable, room.serving, kept)
	s := room.shown(f, h.sampled(f))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = time.Now()
	if furthest > h.durable {
		return
	}
	h.plain = string(encode(s))
	s.N, s.At = max(f.At.UnixMilli(), h.now.N+1), f.At.UnixMilli()
	h.now, h.text = s, encode(s)
}

// encode marshals what always marshals.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("waitingroom: encode %T: %v", v, err))
	}
	return text
}

// How often watchers are told.
const (
	tellEvery  = time.Second      // what has changed
	tellAnyway = 10 * time.Second // though nothing has
)

// news returns what watchers are to be told now: a state that has changed at once,
// the rest by the tick.
func (h *hall) news() (s shown, text []byte, some bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text == nil || h.now.N == h.told.N {
		return s, nil, false
	}
	was, is, ago := h.told, h.now, time.Since(h.toldAt)
	turned := was.State != is.State || is.Draw != nil && was.Draw != nil && is.Draw.State != was.Draw.State
	if !turned && (ago < tellEvery || h.plain == h.toldPlain && ago < tellAnyway) {
		return s, nil, false
	}
	h.told, h.toldPlain, h.toldAt = h.now, h.plain, time.Now()
	return h.now, h.text, true
}

// freshFor is how old a frame may be that is answered.
const freshFor = time.Second

// Frame returns what everybody is told of a room, and its number. ErrNoRoom. While
// Redis does not answer it is what was known last.
func (r *Rooms) Frame(ctx context.Context, event string) (n int64, text []byte, err error) {
	room, err := r.Room(ctx, event)
	if err != nil {
		return 0, nil, err
	}
	h := r.hall(room)
	switch _, text, fresh := h.last(); {
	case fresh:
	case text == nil:
		err = r.firstLook(ctx, room, h)
	case h.turn.TryLock(): // otherwise somebody is looking
		err = r.look(ctx, room, h)
		h.turn.Unlock()
	}
	if n, text, _ = h.last(); text == nil {
		return 0, nil, err
	}
	return n, text, nil
}

// firstLook is a look at a room nothing is known of: one for all who ask.
func (r *Rooms) firstLook(ctx context.Context, room *Room, h *hall) error {
	looked := r.looks.DoChan(room.Event, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmWithin)
		defer cancel()
		h.turn.Lock()
		defer h.turn.Unlock()
		if _, text, _ := h.last(); text != nil {
			return nil, nil
		}
		return nil, r.look(ctx, room, h)
	})
	select {
	case l := <-looked:
		return l.Err
	case <-ctx.Done():
		return fmt.Errorf("frame of %s: %w: %w", room.Event, seatmap.ErrUnavailable, ctx.Err())
	}
}

func (h *hall) last() (n int64, text []byte, fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now.N, h.text, h.text != nil && time.Since(h.looked) < freshFor
}

// looks is how often a room is looked at until Postgres knows of no more than was
// seen: other nodes call on meanwhile. Beyond that Redis has lost how far it was.
const looks = 3

func (r *Rooms) look(ctx context.Context, room *Room, h *hall) error {
	for n := range looks {
		var f Frame
		err := r.warmly(ctx, room.Event, func() (err error) {
			f, err = r.o.Line.of(room).Look(ctx, room.Event)
			return err
		})
		if err != nil {
			return err
		}
		if kept := r.keep(ctx, room, h, f, n > 0); kept <= f.Serving || n == looks-1 {
			h.see(room, f, kept)
			return nil
		}
	}
	return nil
}

// Topic is what watchers of a room ask for.
func Topic(event string) string { return "queue/" + event }

func eventOf(topic string) (string, bool) { return strings.CutPrefix(topic, Topic("")) }

func framePath(event string) string { return "/v1/queue/" + event }

// Snapshot is the frame of a topic's room: the source of what the hub cannot keep.
func (r *Rooms) Snapshot(ctx context.Context, topic string) (n int64, data []byte, err error) {
	event, _ := eventOf(topic)
	return r.Frame(ctx, event)
}

// Hello is what opens a topic's stream: where this node is, and its clock.
func (r *Rooms) Hello(ctx context.Context, topic string) ([]byte, error) {
	n, _, err := r.Snapshot(ctx, topic)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"n":%d,"at":%d}`, n, time.Now().UnixMilli()), nil
}

// Poll is where a topic's frame is read without a stream.
func (r *Rooms) Poll(topic string) (path string) {
	event, _ := eventOf(topic)
	return framePath(event)
}

// serveWithin bounds what is done in one room at a time.
const serveWithin = 10 * time.Second

// tick serves every room that is due, each by itself.
func (r *Rooms) tick(ctx context.Context, b Broadcaster) error {
	now := time.Now()
	for _, room := range r.all() {
		h := r.hall(room)
		if now.Before(h.due) && h.looksAt == room.version {
			continue
		}
		h.due, h.looksAt = now, room.version
		if room.idle(now) {
			h.due = now.Add(tellEvery)
		}
		r.serves.start(room.name(), func() error {
			ctx, cancel := context.WithTimeout(ctx, serveWithin)
			defer cancel()
			if err := r.serve(ctx, room, h, b); err != nil {
				return fmt.Errorf("%s: %w", room.Event, err)
			}
			return nil
		})
	}
	return r.serves.failed()
}

// serve does what is due in one room.
func (r *Rooms) serve(ctx context.Context, room *Room, h *hall, b Broadcaster) error {
	h.turn.Lock()
	defer h.turn.Unlock()
	var uncalled error
	if r.o.Calls {
		uncalled = errors.Join(r.callNext(ctx, room, h), r.pace(ctx, room, h))
		var err error
		if room, err = r.Room(ctx, room.Event); err != nil {
			return err
		}
	}
	if err := r.look(ctx, room, h); err != nil {
		return err
	}
	if h.behind {
		o := room.order()
		o.Serving, o.Last = h.frame.Serving, h.frame.Last
		if err := r.warmly(ctx, room.Event, func() error { return r.o.Line.of(room).Tell(ctx, room.Event, o) }); err != nil {
			return err
		}
		if err := r.look(ctx, room, h); err != nil {
			return err
		}
	}
	if b != nil {
		if s, text, some := h.news(); some {
			b.Publish(Topic(room.Event), 0, []int64{s.N}, time.UnixMilli(s.At), bytes.Clone(text))
		}
	}
	return errors.Join(uncalled, h.unkept)
}

// keepEvery is how often what Redis may lose is kept.
const keepEvery = time.Second

// keep writes down how far a room has come, before anybody is told: the numbers
// given with those of two seconds on top, so that none is given twice. It returns
// how far the room has called as Postgres has it, of any node; 0 when it is not the
// time, which it is at once when the room does something else. While Postgres is
// away people are told all the same.
func (r *Rooms) keep(ctx context.Context, room *Room, h *hall, f Frame, anew bool) int64 {
	if time.Since(h.keptAt) < keepEvery && f.State == h.frame.State && !anew {
		return 0
	}
	last, serving := f.Last, max(f.Serving, h.frame.Serving, room.serving)
	if h.kept > 0 && !anew {
		last += 2 * max(0, f.Last-h.kept)
	}
	h.kept, h.keptAt = f.Last, time.Now()
	if f.Serving <= room.serving && last <= room.last && f.State != Open && f.State != Paused {
		return 0
	}
	kept, err := r.o.Store.keep(ctx, room, serving, last)
	if h.unkept = err; err != nil {
		return serving
	}
	return kept
}

// How often the seats are counted.
const (
	countEvery  = 500 * time.Millisecond // waiting people are told within two seconds that none is left
	countBefore = 10 * time.Second       // the opening
)

// callNext calls the next numbers and tells the room how many seats are free. Once
// none is, nor is held and may become so again, nobody is let in any more.
func (r *Rooms) callNext(ctx context.Context, room *Room, h *hall) error {
	every := countEvery
	switch room.State {
	case Over:
		return nil
	case Draw, Closed:
		every = countBefore
	}
	var uncounted error
	if time.Since(h.seatsAt) >= every {
		over, err := r.count(ctx, room, h)
		if over {
			return err
		}
		uncounted = err
	}
	if room.State != Open {
		return uncounted
	}
	err := r.warmly(ctx, room.Event, func() error {
		_, err := r.o.Line.of(room).Call(ctx, room.Event)
		return err
	})
	return errors.Join(err, uncounted)
}

// count tells a room how many seats are free, and says whether it is over.
func (r *Rooms) count(ctx context.Context, room *Room, h *hall) (over bool, err error) {
	free, held, err := r.o.Seats.Left(ctx, room.Event)
	if err != nil {
		return false, fmt.Errorf("count the seats: %w", err)
	}
	h.seatsAt = time.Now()
	if err := r.warmly(ctx, room.Event, func() error { return r.o.Line.of(room).Left(ctx, room.Event, free, held) }); err != nil {
		return false, err
	}
	if free+held > 0 || room.State == Draw || room.State == Closed {
		return false, nil
	}
	return true, r.soldOut(ctx, room)
}

// idle says that nothing happens in a room soon: it is looked at once a second.
func (r *Room) idle(now time.Time) bool {
	return r.State == Over || (r.State == Draw || r.State == Closed) && r.Opens.Sub(now) > 2*tellEvery
}

// soldOut ends a room whose seats are gone. Another node may have done it.
func (r *Rooms) soldOut(ctx context.Context, room *Room) error {
	if _, err := r.Turn(ctx, room.Event, Over); !errors.Is(err, ErrState) {
		return err
	}
	return nil
}

func (h *hall) shown() shown {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}
