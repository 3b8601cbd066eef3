package waitingroom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"seatcast/seatmap"
	"seatcast/waitingroom/draw"
)

// tend does what the rooms' times ask for, in each by itself: a draw of one keeps no
// other closed.
func (r *Rooms) tend(ctx context.Context) error {
	for _, room := range r.all() {
		r.tends.start(room.name(), func() error {
			err := r.tendRoom(ctx, room)
			if err == nil || errors.Is(err, ErrState) { // another did it
				return nil
			}
			return fmt.Errorf("%s: %w", room.Event, err)
		})
	}
	return r.tends.failed()
}

// tendRoom does what a room's times ask for, and what they ask for then: a list that is
// frozen is drawn at once where nothing else is waited for.
func (r *Rooms) tendRoom(ctx context.Context, room *Room) error {
	if h, now := r.hall(room), time.Now(); now.Sub(h.lingerAt) > lingerEvery {
		h.lingerAt = now
		if err := r.o.Line.Linger(ctx, room.Event); err != nil {
			return err
		}
	}
	for {
		if err := r.does(ctx, room); err != nil {
			return err
		}
		is, err := r.Room(ctx, room.Event)
		if errors.Is(err, ErrNoRoom) || err == nil && (is.id() != room.id() || is.version == room.version) {
			return nil
		}
		if err != nil {
			return err
		}
		room = is
	}
}

// does does the next thing that a room's times ask for: whoever comes first, under its
// lock.
func (r *Rooms) does(ctx context.Context, room *Room) (err error) {
	switch now := time.Now(); {
	case room.State == Draw && now.Before(room.Closes):
		return r.drainDue(ctx, room)
	case room.State == Draw:
		return r.locked(ctx, room, func(ctx context.Context) error { return r.freeze(ctx, room.Event) })
	case room.State == Closed && room.HasDraw() && room.Drawn.IsZero():
		return r.drawDue(ctx, room)
	case room.State == Closed && !now.Before(room.Opens):
		_, err = r.open(ctx, room.Event, true)
	}
	return err
}

// lingerEvery is how often the keys of a room are given time.
const lingerEvery = time.Hour

// lockedFor bounds what is done under a room's lock: the draw of a million tickets
// takes seconds.
const lockedFor = 2 * time.Minute

// locked does something to a room unless another process does, and reads it anew. ErrState
// when the event has another room by now.
func (r *Rooms) locked(ctx context.Context, room *Room, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, lockedFor)
	defer cancel()
	done, err := r.o.Store.locked(ctx, room.Event, true, func(ctx context.Context) error {
		is, err := r.o.Store.room(ctx, room.Event)
		if err != nil {
			return err
		}
		if is.id() != room.id() {
			return ErrState
		}
		return do(ctx)
	})
	if err != nil || !done || room.State == Draw && time.Now().Before(room.Closes) {
		return err
	}
	return r.reread(ctx, room.Event)
}

func (r *Rooms) reread(ctx context.Context, event string) error {
	one, err := r.o.Store.room(ctx, event)
	if err == nil {
		r.note(one)
	}
	return err
}

// drainDue drains when there is something to write down.
func (r *Rooms) drainDue(ctx context.Context, room *Room) error {
	entries, err := r.o.Line.entered(ctx, room.Event)
	if err != nil || len(entries) == 0 {
		return err
	}
	return r.locked(ctx, room, func(ctx context.Context) error { return r.drain(ctx, room.Event) })
}

// drain writes down who has joined the draw, and who has left it again, since the
// last time. What is written twice is as if it were written once. What an earlier room of
// the event has left behind is none of it.
func (r *Rooms) drain(ctx context.Context, event string) error {
	if err := r.make(ctx, event); err != nil {
		return err
	}
	for {
		entries, err := r.o.Line.entered(ctx, event)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := r.o.Store.enter(ctx, event, entries); err != nil {
			return err
		}
		if err := r.o.Line.written(ctx, event, len(entries)); err != nil {
			return err
		}
	}
}

// freeze closes the list: nobody is added in Redis any more, then what is in Redis
// and in Postgres becomes the list for good. What Redis had lost is put back first,
// so that whoever comes now is behind all of it.
func (r *Rooms) freeze(ctx context.Context, event string) error {
	room, err := r.o.Store.room(ctx, event)
	switch {
	case err != nil:
		return err
	case room.State != Draw:
		return nil // another did it
	}
	if err := r.drain(ctx, event); err != nil {
		return err
	}
	l, err := r.o.Store.list(ctx, event)
	if err != nil {
		return err
	}
	if err := r.o.Line.List(ctx, event, l.tickets); err != nil {
		return err
	}
	if err := r.o.Line.of(room).Close(ctx, event); err != nil {
		return err
	}
	if err := r.drain(ctx, event); err != nil {
		return err
	}
	found, err := r.o.Line.Listed(ctx, event)
	if err != nil {
		return err
	}
	if err := r.o.Store.freeze(ctx, event, found); err != nil {
		return err
	}
	return r.refill(ctx, event)
}

// drawDue draws once the external value is told; when there is none, at once.
func (r *Rooms) drawDue(ctx context.Context, room *Room) error {
	if room.Told == nil && room.announced.External.Kind != draw.None {
		return nil
	}
	return r.locked(ctx, room, func(ctx context.Context) error { return r.draw(ctx, room.Event) })
}

// draw gives everybody on the list their rank: in Redis first, so that the draw is
// over only when everybody has a place.
func (r *Rooms) draw(ctx context.Context, event string) error {
	room, err := r.o.Store.room(ctx, event)
	if err != nil || !room.Drawn.IsZero() {
		return err
	}
	if room.Told == nil {
		if room, err = r.o.Store.tell(ctx, event, []byte{}); err != nil {
			return err
		}
	}
	l, err := r.o.Store.list(ctx, event)
	if err != nil {
		return err
	}
	list, err := draw.Freeze(l.tickets)
	if err != nil {
		return err
	}
	seed, err := r.o.Store.seed(ctx, event)
	if err != nil {
		return err
	}
	record, err := draw.New(room.announced, list, seed, room.Told)
	if err != nil {
		return err
	}
	if record.Root != room.Root {
		return fmt.Errorf("%w: the list is not the one that was frozen", draw.ErrRoot)
	}
	l.ranks = list.Ranks(record.Key)
	if err := r.make(ctx, event); err != nil {
		return err
	}
	if err := r.o.Line.Place(ctx, event, l.waiting(nil)); err != nil {
		return err
	}
	if err := r.o.Store.drawn(ctx, event, record.Key, list, l.ranks); err != nil {
		return err
	}
	return r.refill(ctx, event)
}

// told is a room that an operator, or its time, has changed: Redis is told at once,
// and by the next tick if it does not answer.
func (r *Rooms) told(ctx context.Context, room *Room, err error) (*Room, error) {
	if err != nil {
		return nil, err
	}
	r.note(room)
	err = r.warmly(ctx, room.Event, func() error { return r.o.Line.of(room).Tell(ctx, room.Event, room.order()) })
	if err != nil {
		r.o.Log.WarnContext(ctx, "a room is told later what it is", "event", room.Event, "err", err)
	}
	return room, nil
}

// Put makes a room, or changes what an operator says of one. ErrAnnounced, ErrPast and
// seatmap.ErrNoEvent.
func (r *Rooms) Put(ctx context.Context, event string, p Plan) (*Room, error) {
	room, err := r.o.Store.put(ctx, event, p)
	return r.told(ctx, room, err)
}

// Drop removes a room that nobody could join yet, or that is over, with all that is
// known of it. It returns once nodes that reach Postgres do not know it any more. While
// Redis is away the room stays. Where Redis has what a room has left behind that Postgres
// does not know, that is removed. ErrNoRoom and ErrState.
func (r *Rooms) Drop(ctx context.Context, event string) error {
	removed := false
	_, err := r.o.Store.locked(ctx, event, false, func(ctx context.Context) error {
		err := r.o.Store.drop(ctx, event, func() error {
			removed = true
			_, err := r.o.Line.clear(ctx, event)
			return err
		})
		if !errors.Is(err, ErrNoRoom) {
			return err
		}
		if some, uncleared := r.o.Line.clear(ctx, event); some || uncleared != nil {
			return uncleared
		}
		return err
	})
	if err != nil {
		return err
	}
	r.forget(event)
	if !removed {
		return nil
	}
	known := time.NewTimer(2 * refreshEvery)
	defer known.Stop()
	select {
	case <-known.C:
	case <-ctx.Done(): // the room is gone, and only what was written since stays
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := r.sweep(ctx, event); err != nil {
		r.o.Log.WarnContext(ctx, "what was written of a room as it was removed stays in Redis, where it counts for nothing", "event", event, "err", err)
	}
	return nil
}

// sweep removes what was written of a room as it was removed. What is there once the event
// has another room may be that one's, which removes what it finds as it is made.
func (r *Rooms) sweep(ctx context.Context, event string) error {
	_, err := r.o.Store.locked(ctx, event, false, func(ctx context.Context) error {
		_, err := r.o.Store.room(ctx, event)
		if errors.Is(err, ErrNoRoom) {
			_, err = r.o.Line.clear(ctx, event)
		}
		return err
	})
	return err
}

// Turn changes what a room does: an open one is Paused, a paused one Open, and any
// that is open, paused or not open yet Over. ErrNoRoom and ErrState.
func (r *Rooms) Turn(ctx context.Context, event string, to State) (*Room, error) {
	from := map[State][]State{Paused: {Open}, Open: {Paused}, Over: {Open, Paused, Closed}}
	room, err := r.o.Store.turn(ctx, event, to, from[to]...)
	return r.told(ctx, room, err)
}

// Open opens a room before its time, or again one that is over. ErrNoRoom, and
// ErrState when it is open, paused, or to be drawn.
func (r *Rooms) Open(ctx context.Context, event string) (*Room, error) {
	return r.open(ctx, event, false)
}

func (r *Rooms) open(ctx context.Context, event string, atItsTime bool) (*Room, error) {
	room, err := r.o.Store.open(ctx, event, atItsTime)
	return r.told(ctx, room, err)
}

// Rate changes how many are let in a minute; a burst of 0 stays what it is.
// ErrNoRoom.
func (r *Rooms) Rate(ctx context.Context, event string, rate, burst int) (*Room, error) {
	room, err := r.o.Store.rate(ctx, event, rate, burst)
	return r.told(ctx, room, err)
}

// Told takes in what the external source of a draw has told. It is checked, and the
// draw follows. ErrNoRoom, draw.ErrExternal, and ErrState before the list is frozen
// and when something else was told.
func (r *Rooms) Told(ctx context.Context, event string, told []byte) (*Room, error) {
	room, err := r.o.Store.room(ctx, event)
	if err != nil {
		return nil, err
	}
	if !room.HasDraw() || room.Frozen.IsZero() {
		return nil, ErrState
	}
	if _, err := room.announced.External.Value(told); err != nil {
		return nil, err
	}
	if told == nil {
		told = []byte{}
	}
	if room, err = r.o.Store.tell(ctx, event, told); err != nil {
		return nil, err
	}
	r.note(room)
	return room, nil
}

// drawnList is a draw as it is published: it never changes.
type drawnList struct {
	record draw.Record
	shards []draw.Shard
	file   func() ([]byte, error) // all of it, as draw.Write writes it: once it is asked for
}

// draws are the lists of draws that are over, which this process was asked for.
type draws struct {
	reads singleflight.Group // by key

	mu  sync.Mutex
	all map[draw.Digest]*drawnList // by key, which names seed, value and list
}

// drawsKept is how many: one of a million tickets is 200 MB.
const drawsKept = 4

// published returns all there is of a draw. ErrNoRoom, and ErrState before the draw
// is over. When a draw is over everybody asks at once: it is read once, and when that
// fails, or takes longer than whoever asks may wait, they ask again.
func (r *Rooms) published(ctx context.Context, event string) (*drawnList, error) {
	room, err := r.Room(ctx, event)
	if err != nil {
		return nil, err
	}
	if room.Drawn.IsZero() {
		return nil, ErrState
	}
	if d := r.draws.kept(room.Key); d != nil {
		return d, nil
	}
	read := r.draws.reads.DoChan(room.Key.String(), func() (any, error) {
		d, err := r.readDraw(ctx, room)
		if err == nil {
			r.draws.keep(d)
		}
		return d, err
	})
	select {
	case d := <-read:
		if d.Err != nil {
			return nil, d.Err
		}
		return d.Val.(*drawnList), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("draw of %s: %w: %w", event, seatmap.ErrUnavailable, ctx.Err())
	}
}

func (d *draws) kept(key draw.Digest) *drawnList {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[key]
}

func (d *draws) keep(one *drawnList) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil || len(d.all) >= drawsKept {
		d.all = make(map[draw.Digest]*drawnList)
	}
	d.all[one.record.Key] = one
}

func (r *Rooms) readDraw(ctx context.Context, room *Room) (*drawnList, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmWithin)
	defer cancel()
	l, err := r.o.Store.list(ctx, room.Event)
	if err != nil {
		return nil, err
	}
	list, err := draw.Freeze(l.tickets)
	if err != nil {
		return nil, err
	}
	seed, err := r.o.Store.seed(ctx, room.Event)
	if err != nil {
		return nil, err
	}
	d := &drawnList{shards: list.Shards(l.ranks), record: draw.Record{Announcement: room.announced, Tickets: room.Tickets, Root: room.Root,
		Seed: seed, Told: room.Told, Key: room.Key}}
	d.file = sync.OnceValues(func() ([]byte, error) {
		var text bytes.Buffer
		err := draw.Write(&text, d.record, list, l.ranks)
		return text.Bytes(), err
	})
	return d, nil
}
