package waitingroom

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"seatcast/seatmap"
	"seatcast/waitingroom/draw"
)

// Seats know how many of an event are left. holds has them.
type Seats interface {
	// Left returns how many seats and places are free, and how many others are
	// held and may become free again.
	Left(ctx context.Context, event string) (free, held int64, err error)
}

// Broadcaster tells the watchers of a topic; the hub is one.
type Broadcaster interface {
	Publish(topic string, prev int64, numbers []int64, at time.Time, frame []byte) (walked <-chan struct{})
}

// Options of New. Line, Store, Keys and Seats are needed.
type Options struct {
	Line  *Line
	Store *Store
	Keys  *Keys
	Seats Seats
	Log   *slog.Logger

	Wait time.Duration // stands in for a proof of work; 0: half a minute

	Calls bool // this process calls the next numbers, as every one that lets people in does
	Tends bool // it freezes, draws and opens what is due, as workers do
}

// Rooms are all waiting rooms, as one process serves them. Its methods may be
// called concurrently. What operators say of a room counts on every node within a
// second.
type Rooms struct {
	o       Options
	warms   singleflight.Group // by event
	looks   singleflight.Group // by event
	reads   singleflight.Group // of Postgres
	serves  *rounds
	tends   *rounds
	draws   draws  // that are over
	books   *books // to be written down
	lately  lately
	node    string // by which others know what is said here
	metrics *metrics

	doubts   chan suspicion // to be looked into
	compared time.Time      // of the goroutine that guards
	whole    time.Time      // the same, one by one

	mu      sync.RWMutex
	rooms   map[string]*Room // nil: never read
	changes int              // so often something was changed here
	halls   map[string]*hall // by name
}

// New returns the rooms. It does no I/O.
func New(o Options) *Rooms {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Wait = cmp.Or(o.Wait, 30*time.Second)
	return &Rooms{o: o, serves: newRounds(), tends: newRounds(), books: newBooks(), node: rand.Text(), metrics: newMetrics(), doubts: make(chan suspicion, doubtsSize), halls: make(map[string]*hall)}
}

// How often it looks.
const (
	refreshEvery = 500 * time.Millisecond // at what Postgres says
	tickEvery    = 250 * time.Millisecond // at a room
	atOnce       = 8                      // rooms at the same time
	bookEvery    = 200 * time.Millisecond
	bookSize     = 500 // admissions written down at once
)

// Run serves the rooms until ctx ends: it calls, tells, keeps and tends. Without b
// nobody watches here.
func (r *Rooms) Run(ctx context.Context, b Broadcaster) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return r.every(ctx, refreshEvery, "rooms are not known anew", r.Refresh)
	})
	g.Go(func() error {
		defer r.serves.wait.Wait()
		return r.every(ctx, tickEvery, "not every room is served", func(ctx context.Context) error { return r.tick(ctx, b) })
	})
	if r.o.Tends {
		g.Go(func() error {
			defer r.tends.wait.Wait()
			return r.every(ctx, tickEvery, "not every room is tended", r.tend)
		})
		g.Go(func() error { return r.every(ctx, tickEvery, "not every room is guarded", r.guard) })
	}
	g.Go(func() error { return r.write(ctx) })
	g.Go(func() error { return r.doubt(ctx) })
	return g.Wait()
}

// every does something again and again, and says once that it fails.
func (r *Rooms) every(ctx context.Context, d time.Duration, failure string, do func(context.Context) error) error {
	tick := time.NewTicker(d)
	defer tick.Stop()
	failing := false
	for {
		err := do(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.o.Log.WarnContext(ctx, failure, "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Refresh reads what Postgres says of all rooms. What is changed here meanwhile is not
// in what was read, which is read again then.
func (r *Rooms) Refresh(ctx context.Context) error {
	for {
		r.mu.RLock()
		changes := r.changes
		r.mu.RUnlock()
		all, err := r.o.Store.rooms(ctx)
		if err != nil {
			return err
		}
		if r.knows(all, changes) {
			return nil
		}
	}
}

// knows takes in what Postgres says, unless something was changed since so many changes.
func (r *Rooms) knows(all []*Room, changes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes != changes {
		return false
	}
	old := r.rooms
	r.rooms = make(map[string]*Room, len(all))
	for _, one := range all {
		if old[one.Event] == nil {
			r.metrics.begin(one.Event)
		}
		r.rooms[one.Event] = newer(one, old[one.Event])
	}
	for event, one := range old {
		if r.rooms[event] == nil {
			r.forgetLocked(one)
		}
	}
	return true
}

// newer is what is known of a room: what was read meanwhile is older than what was done.
// A room that was made later is another one.
func newer(one, known *Room) *Room {
	if known != nil && known.made.Equal(one.made) && known.version > one.version {
		return known
	}
	return one
}

// forgetLocked forgets what was remembered of a room that is not there any more.
func (r *Rooms) forgetLocked(one *Room) {
	delete(r.halls, one.name())
	r.metrics.drop(one.Event)
}

// forget forgets a room.
func (r *Rooms) forget(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	one := r.rooms[event]
	if one == nil {
		return
	}
	rooms := maps.Clone(r.rooms)
	delete(rooms, event)
	r.rooms = rooms
	r.forgetLocked(one)
}

// note remembers a room that was just changed.
func (r *Rooms) note(one *Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	if r.rooms == nil {
		return
	}
	rooms := maps.Clone(r.rooms)
	if rooms[one.Event] == nil {
		r.metrics.begin(one.Event)
	}
	rooms[one.Event] = newer(one, rooms[one.Event])
	r.rooms = rooms
}

// Room returns a room as it was known within the last second. ErrNoRoom.
func (r *Rooms) Room(ctx context.Context, event string) (*Room, error) {
	r.mu.RLock()
	rooms := r.rooms
	r.mu.RUnlock()
	if rooms == nil {
		if _, err, _ := r.reads.Do("", func() (any, error) { return nil, r.Refresh(context.WithoutCancel(ctx)) }); err != nil {
			return nil, err
		}
		r.mu.RLock()
		rooms = r.rooms
		r.mu.RUnlock()
	}
	if one := rooms[event]; one != nil {
		return one, nil
	}
	return nil, ErrNoRoom
}

func (r *Rooms) all() []*Room {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.rooms))
}

// warmWithin bounds what making a room anew takes; many wait for it, so no one's
// patience does.
const warmWithin = 30 * time.Second

// poor says that Redis knows less of a room than we do.
func poor(err error) bool { return errors.Is(err, errCold) || errors.Is(err, errBehind) }

// warmly does something with a room, which is made first when it is cold, and told
// first what it is when it is behind.
func (r *Rooms) warmly(ctx context.Context, event string, do func() error) error {
	err := do()
	if !poor(err) {
		return err
	}
	made := r.warms.DoChan(event, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmWithin)
		defer cancel()
		return nil, r.mend(ctx, event)
	})
	select {
	case m := <-made:
		if m.Err != nil {
			return m.Err
		}
	case <-ctx.Done():
		return fmt.Errorf("room of %s: %w: %w", event, seatmap.ErrUnavailable, ctx.Err())
	}
	if err = do(); poor(err) {
		return fmt.Errorf("room of %s: %w: %w", event, seatmap.ErrUnavailable, err)
	}
	return err
}

// mend tells a room what it is, and makes one that is cold.
func (r *Rooms) mend(ctx context.Context, event string) error {
	one, err := r.o.Store.room(ctx, event)
	if err != nil {
		return err
	}
	if err := r.o.Line.of(one).Tell(ctx, event, one.order()); !poor(err) {
		return err
	}
	_, err = r.o.Store.locked(ctx, event, false, func(ctx context.Context) error { return r.refill(ctx, event) })
	return err
}

// refill is mend of who has the room's lock. A Redis that has lost its last second may
// have lost that the list of a draw is closed, or its ranks: they come first, so that
// nobody comes before them.
func (r *Rooms) refill(ctx context.Context, event string) error {
	if err := r.make(ctx, event); err != nil {
		return err
	}
	one, err := r.o.Store.room(ctx, event)
	if err != nil {
		return err
	}
	line := r.o.Line.of(one)
	err = line.Tell(ctx, event, one.order())
	if errors.Is(err, errBehind) {
		if err = r.relist(ctx, one); err == nil {
			err = line.Tell(ctx, event, one.order())
		}
	}
	if err != nil || one.Drawn.IsZero() {
		return err
	}
	return line.Drawn(ctx, event)
}

// relist puts back the list of a draw that is closed, or its ranks.
func (r *Rooms) relist(ctx context.Context, room *Room) error {
	l, err := r.o.Store.list(ctx, room.Event)
	if err != nil {
		return err
	}
	line := r.o.Line.of(room)
	if room.Drawn.IsZero() {
		if err := line.List(ctx, room.Event, l.tickets); err != nil {
			return err
		}
		return line.Close(ctx, room.Event)
	}
	in, err := r.o.Store.admissions(ctx, room.Event, "")
	if err != nil {
		return err
	}
	return line.Place(ctx, room.Event, l.waiting(in))
}

// make makes a room that is cold as Postgres knows it, in the stead of an earlier one
// that Redis still has.
func (r *Rooms) make(ctx context.Context, event string) error {
	one, err := r.o.Store.room(ctx, event)
	if err != nil {
		return err
	}
	line := r.o.Line.of(one)
	if _, err := line.Look(ctx, event); !errors.Is(err, errCold) {
		return err // somebody else was here
	}
	if err := line.supersede(ctx, event); err != nil {
		return err
	}
	in, err := r.o.Store.admissions(ctx, event, "")
	if err != nil {
		return err
	}
	if err := line.admitted(ctx, event, in); err != nil {
		return err
	}
	left, err := r.o.Store.gone(ctx, event)
	if err != nil {
		return err
	}
	if err := line.gone(ctx, event, left); err != nil {
		return err
	}
	if err := r.guarded(ctx, event); err != nil {
		return err
	}
	l, err := r.o.Store.list(ctx, event)
	if err != nil {
		return err
	}
	o := Opening{Order: one.order(), New: one.State == Draw || one.State == Closed}
	o.Last, o.Strays = max(one.last, int64(len(l.tickets))), len(left)-l.leavers()
	if one.Drawn.IsZero() {
		err = line.List(ctx, event, l.tickets)
	} else {
		err = line.Place(ctx, event, l.waiting(in))
	}
	if err != nil {
		return err
	}
	if o.State == Draw && !time.Now().Before(one.Closes) {
		o.State = Closed // whoever comes now is behind the list, also while it is not frozen
	}
	counting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if o.Free, _, err = r.o.Seats.Left(counting, event); err != nil {
		o.Free = 0 // it is told when it is known
	}
	return line.Make(ctx, event, o)
}

// leavers is how many of a list have left it.
func (l listed) leavers() (n int) {
	for _, left := range l.left {
		n += flag(left)
	}
	return n
}

// waiting are those of a drawn list who have not left and were not let in.
func (l listed) waiting(in []admission) (all []draw.Ranked) {
	was := make(map[draw.ID]bool, len(in))
	for _, a := range in {
		was[a.ticket] = true
	}
	for n, t := range l.tickets {
		if !l.left[n] && !was[t.ID] {
			all = append(all, draw.Ranked{Ticket: t, Rank: l.ranks[n]})
		}
	}
	return all
}
