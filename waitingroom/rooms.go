package waitingroom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
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

	Calls bool // this process calls the next numbers, as every one that lets people in does
	Tends bool // it freezes, draws and opens what is due, as workers do
}

// Rooms are all waiting rooms, as one process serves them. Its methods may be
// called concurrently. What operators say of a room counts on every node within a
// second.
type Rooms struct {
	o     Options
	warms singleflight.Group // by event
	reads singleflight.Group // of Postgres
	draws draws              // that are over
	books chan admission     // to be written down

	mu    sync.RWMutex
	rooms map[string]*Room // nil: never read
	halls map[string]*hall
}

// booksSize is how many admissions wait to be written down: those of a minute at
// the highest rate anybody has named.
const booksSize = 100_000

// New returns the rooms. It does no I/O.
func New(o Options) *Rooms {
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Rooms{o: o, books: make(chan admission, booksSize), halls: make(map[string]*hall)}
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
		return r.every(ctx, tickEvery, "not every room is served", func(ctx context.Context) error { return r.tick(ctx, b) })
	})
	if r.o.Tends {
		g.Go(func() error { return r.every(ctx, tickEvery, "not every room is tended", r.tend) })
	}
	g.Go(func() error { return r.write(ctx) })
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

// Refresh reads what Postgres says of all rooms.
func (r *Rooms) Refresh(ctx context.Context) error {
	all, err := r.o.Store.rooms(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.rooms
	r.rooms = make(map[string]*Room, len(all))
	for _, one := range all {
		if known := old[one.Event]; known != nil && known.version > one.version {
			one = known // what was read meanwhile is older than what was done
		}
		r.rooms[one.Event] = one
	}
	return nil
}

// note remembers a room that was just changed.
func (r *Rooms) note(one *Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rooms == nil {
		return
	}
	rooms := maps.Clone(r.rooms)
	rooms[one.Event] = one
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

// warmly does something with a room, which is made first when it is cold.
func (r *Rooms) warmly(ctx context.Context, event string, do func() error) error {
	err := do()
	if !errors.Is(err, errCold) {
		return err
	}
	made := r.warms.DoChan(event, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmWithin)
		defer cancel()
		_, err := r.o.Store.locked(ctx, event, false, func(ctx context.Context) error { return r.make(ctx, event) })
		return nil, err
	})
	select {
	case m := <-made:
		if m.Err != nil {
			return m.Err
		}
	case <-ctx.Done():
		return fmt.Errorf("room of %s: %w: %w", event, seatmap.ErrUnavailable, ctx.Err())
	}
	if err = do(); errors.Is(err, errCold) {
		return fmt.Errorf("room of %s: %w: %w", event, seatmap.ErrUnavailable, err)
	}
	return err
}

// make makes a room that is cold as Postgres knows it.
func (r *Rooms) make(ctx context.Context, event string) error {
	if _, err := r.o.Line.Look(ctx, event); !errors.Is(err, errCold) {
		return err // somebody else was here
	}
	one, err := r.o.Store.room(ctx, event)
	if err != nil {
		return err
	}
	in, err := r.o.Store.admissions(ctx, event, "")
	if err != nil {
		return err
	}
	if err := r.o.Line.admitted(ctx, event, in); err != nil {
		return err
	}
	l, err := r.o.Store.list(ctx, event)
	if err != nil {
		return err
	}
	o := Opening{Order: one.order(), Last: max(one.last, int64(len(l.tickets))), New: one.State == Draw || one.State == Closed}
	if one.Drawn.IsZero() {
		err = r.o.Line.List(ctx, event, l.tickets)
	} else {
		err = r.o.Line.Place(ctx, event, l.waiting(in))
	}
	if err != nil {
		return err
	}
	if o.State == Draw && !time.Now().Before(one.Closes) {
		o.State = Closed // whoever comes now is behind the list, also while it is not frozen
	}
	if o.Free, _, err = r.o.Seats.Left(ctx, event); err != nil {
		o.Free = 0 // it is told when it is known
	}
	return r.o.Line.Make(ctx, event, o)
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

// Held is what somebody has in a room.
type Held struct {
	Room   *Room
	Ticket draw.Ticket
	Place  string // signed
	Joined
}

// known is what a signed place says, if it is this ticket's in this room; of any
// other nothing counts.
func (r *Rooms) known(event string, id draw.ID, token string) (Place, bool) {
	if token == "" {
		return Place{}, false
	}
	p, err := r.o.Keys.OpenPlace(token)
	if err != nil || p.Event != event || p.Ticket.ID != id {
		return Place{}, false
	}
	return p, true
}

// Join gives an account a place, or says which one it has. nonce is for the list
// of a draw, and may be nil; token a place it was given before, or empty. ErrNoRoom,
// ErrNotYet, ErrClosing and ErrOver.
func (r *Rooms) Join(ctx context.Context, event, user string, nonce *draw.ID, token string) (*Held, error) {
	room, err := r.Room(ctx, event)
	switch now := time.Now(); {
	case err != nil:
		return nil, err
	case now.Before(room.Joins):
		return nil, ErrNotYet
	case room.State == Draw && !now.Before(room.Closes):
		return nil, ErrClosing
	}
	h := &Held{Room: room, Ticket: r.o.Keys.TicketOf(event, user)}
	if nonce != nil {
		h.Ticket.Nonce = *nonce
	}
	place, mine := r.known(event, h.Ticket.ID, token)
	if mine {
		h.Ticket.Nonce = place.Ticket.Nonce
	}
	join := func(number int64) error {
		return r.warmly(ctx, event, func() (err error) {
			h.Joined, err = r.o.Line.Join(ctx, event, h.Ticket, number)
			return err
		})
	}
	if err := join(place.Number); err != nil {
		return nil, err
	}
	if h.New && mine && place.Number == 0 && !room.Drawn.IsZero() { // drawn, and Redis has lost it
		rank, err := r.o.Store.rank(ctx, event, h.Ticket.ID)
		if err == nil && rank > 0 {
			err = join(rank)
		}
		if err != nil {
			return nil, err
		}
	}
	return h, r.sign(h)
}

// sign gives a place into its holder's keeping.
func (r *Rooms) sign(h *Held) (err error) {
	if h.Drawn {
		if err := h.Ticket.Nonce.UnmarshalText([]byte(h.Nonce)); err != nil {
			return err
		}
	}
	if h.Number == 0 && !h.Drawn {
		return nil
	}
	p := Place{Event: h.Room.Event, Ticket: h.Ticket, Number: h.Number, Issued: time.Now()}
	if h.Room.HasDraw() {
		p.Announcement = h.Room.announced.Digest()
	}
	h.Place, err = r.o.Keys.SignPlace(p)
	return err
}

// Find says what an account has, and changes nothing. ErrNoRoom and ErrNoPlace.
func (r *Rooms) Find(ctx context.Context, event, user string) (*Held, error) {
	room, err := r.Room(ctx, event)
	if err != nil {
		return nil, err
	}
	h := &Held{Room: room, Ticket: r.o.Keys.TicketOf(event, user)}
	err = r.warmly(ctx, event, func() (err error) {
		h.Joined, err = r.o.Line.Find(ctx, event, h.Ticket.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, r.sign(h)
}

// Claim lets an account in if it is its turn, with a pass then. ErrNoRoom, ErrOver
// and ErrNoPlace.
func (r *Rooms) Claim(ctx context.Context, event, user, token string) (t Turn, pass string, err error) {
	if _, err := r.Room(ctx, event); err != nil {
		return t, "", err
	}
	id := r.o.Keys.TicketOf(event, user).ID
	place, _ := r.known(event, id, token)
	err = r.warmly(ctx, event, func() (err error) {
		t, err = r.o.Line.Claim(ctx, event, id, place.Number)
		return err
	})
	if err != nil || t.Inside.IsZero() {
		return t, "", err
	}
	p := Pass{ID: passID(id, t.Inside), Event: event, User: user, Ticket: id, Until: t.Inside}
	if t.New {
		r.booked(ctx, admission{event: event, jti: p.ID, user: user, ticket: id, until: t.Inside})
	}
	pass, err = r.o.Keys.SignPass(p)
	return t, pass, err
}

// passID names the pass of one time inside, so that whoever ends that time knows
// which pass is over.
func passID(id draw.ID, until time.Time) string {
	return id.String() + "-" + strconv.FormatInt(until.UnixMilli(), 10)
}

// parsePassID is the way back.
func parsePassID(jti string) (id draw.ID, until time.Time, err error) {
	at := strings.LastIndexByte(jti, '-') // base64url has it too
	if at < 0 {
		return id, until, errors.New("not the jti of a pass")
	}
	ms, err := strconv.ParseInt(jti[at+1:], 10, 64)
	if err != nil {
		return id, until, errors.New("not the jti of a pass")
	}
	return id, time.UnixMilli(ms).UTC(), id.UnmarshalText([]byte(jti[:at]))
}

// Admit judges the pass with which an account would book. Of an event without a
// waiting room nothing is asked: the pass is nil. ErrNoPass, ErrForged and
// ErrExpired. Whether it was revoked is for who books to find out.
func (r *Rooms) Admit(ctx context.Context, event, user, token string) (*seatmap.Pass, error) {
	if _, err := r.Room(ctx, event); errors.Is(err, ErrNoRoom) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, ErrNoPass
	}
	p, err := r.o.Keys.OpenPass(token, event, user, time.Now())
	if err != nil {
		return nil, err
	}
	id, until, err := parsePassID(p.ID)
	if err != nil || id != p.Ticket {
		return nil, ErrForged
	}
	return &seatmap.Pass{ID: p.ID, Inside: id.String(), Until: until}, nil
}

// Leave ends the place of an account, or its time inside.
func (r *Rooms) Leave(ctx context.Context, event, user string) error {
	room, err := r.Room(ctx, event)
	if err != nil {
		return err
	}
	id := r.o.Keys.TicketOf(event, user).ID
	if err := r.end(ctx, event, user, id, "left", r.o.Line.Leave); err != nil {
		return err
	}
	if room.Frozen.IsZero() {
		return nil
	}
	return r.o.Store.left(ctx, event, id)
}

// Bought ends the time inside of an account that has bought: its slot is free at
// once. Of an event without a waiting room, or an account that is not inside,
// nothing is to be done.
func (r *Rooms) Bought(ctx context.Context, event, user string) error {
	if _, err := r.Room(ctx, event); errors.Is(err, ErrNoRoom) {
		return nil
	} else if err != nil {
		return err
	}
	return r.end(ctx, event, user, r.o.Keys.TicketOf(event, user).ID, "bought", r.o.Line.Finish)
}

func (r *Rooms) end(ctx context.Context, event, user string, id draw.ID, became string, how func(context.Context, string, draw.ID) (time.Time, error)) error {
	var until time.Time
	err := r.warmly(ctx, event, func() (err error) {
		until, err = how(ctx, event, id)
		return err
	})
	if err == nil && !until.IsZero() {
		r.booked(ctx, admission{event: event, jti: passID(id, until), user: user, ticket: id, until: until, ended: time.Now(), became: became})
	}
	return err
}

// RevokeUser ends what an account has in a room: its place, its time inside, and
// every pass of it.
func (r *Rooms) RevokeUser(ctx context.Context, event, user string) error {
	in, err := r.o.Store.admissions(ctx, event, user)
	if err != nil {
		return err
	}
	for _, a := range in {
		if err := r.o.Line.Revoke(ctx, event, a.jti, a.until); err != nil {
			return err
		}
		r.booked(ctx, a.revoked())
	}
	return r.end(ctx, event, user, r.o.Keys.TicketOf(event, user).ID, "revoked", r.o.Line.Leave)
}

// RevokePass ends one pass and the time inside it is for.
func (r *Rooms) RevokePass(ctx context.Context, event, jti string) error {
	id, until, err := parsePassID(jti)
	if err != nil {
		return ErrForged
	}
	if err := r.o.Line.Revoke(ctx, event, jti, until); err != nil {
		return err
	}
	return r.end(ctx, event, "", id, "revoked", func(ctx context.Context, event string, id draw.ID) (time.Time, error) {
		now, err := r.o.Line.Find(ctx, event, id)
		if errors.Is(err, ErrNoPlace) || err == nil && !now.Until.Equal(until) {
			return time.Time{}, nil // that time is over, and another is not meant
		}
		if err != nil {
			return time.Time{}, err
		}
		return r.o.Line.Finish(ctx, event, id)
	})
}

func (a admission) revoked() admission {
	a.ended, a.became = time.Now(), "revoked"
	return a
}

// booked has an admission written down, soon. Nobody waits for it: while Postgres
// is away people are let in all the same.
func (r *Rooms) booked(ctx context.Context, a admission) {
	select {
	case r.books <- a:
	default:
		r.o.Log.WarnContext(ctx, "an admission is not written down: too many wait to be", "event", a.event, "pass", a.jti)
	}
}

// write writes admissions down until ctx ends, and then what is left.
func (r *Rooms) write(ctx context.Context) error {
	var batch []admission
	tick := time.NewTicker(bookEvery)
	defer tick.Stop()
	for {
		select {
		case a := <-r.books:
			if batch = append(batch, a); len(batch) < bookSize {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
			for len(r.books) > 0 {
				batch = append(batch, <-r.books)
			}
			if err := r.flush(context.WithoutCancel(ctx), batch); err != nil {
				r.o.Log.ErrorContext(ctx, "admissions not written down", "how many", len(batch), "err", err)
			}
			return nil
		}
		err := r.flush(ctx, batch)
		if err != nil && !errors.Is(err, seatmap.ErrUnavailable) {
			r.o.Log.ErrorContext(ctx, "admissions not written down", "how many", len(batch), "err", err)
		}
		if !errors.Is(err, seatmap.ErrUnavailable) {
			batch = batch[:0]
		}
	}
}

func (r *Rooms) flush(ctx context.Context, batch []admission) error {
	for part := range slices.Chunk(batch, bookSize) {
		if err := r.o.Store.book(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
