package waitingroom

import (
	"context"
	"errors"
	"time"

	"seatcast/waitingroom/draw"
)

// Held is what somebody has in a room.
type Held struct {
	Room   *Room
	Ticket draw.Ticket
	Place  string // signed
	Joined
}

// known is what a signed place says, if it is this ticket's in this room; of any
// other nothing counts.
func (r *Rooms) known(room *Room, id draw.ID, token string) (Place, bool) {
	if token == "" {
		return Place{}, false
	}
	p, err := r.o.Keys.OpenPlace(token)
	if err != nil || p.Event != room.Event || p.Ticket.ID != id || !room.issued(p.Room, p.Issued) {
		return Place{}, false
	}
	return p, true
}

// Brought is what an account brings when it joins. The zero value is nothing.
type Brought struct {
	Nonce *draw.ID // for the list of a draw
	Place string   // it was given before
	Room  int64    // the one it means, as the frame names it; 0: whichever there is
	Code  string

	Altcha string // a proof of work
	Waited string // what stands in for one
}

// entry judges what an account brings to a room, which may ask for something: a code
// is one of what it may ask for. Of who has a place nothing is needed, so that what is
// good but its time is looked at then.
func (r *Rooms) entry(room *Room, id draw.ID, b Brought) (e Entry, err error) {
	var until time.Time
	now := time.Now()
	switch t := room.Terms; {
	case !t.Codes && t.Proof == 0:
	case b.Code != "":
		e.Without = ErrCodeRequired
		e.Code, err = r.o.Keys.OpenCode(room.Event, b.Code)
	case t.Codes:
		e.Without = ErrCodeRequired
	case b.Altcha != "":
		e.Without = ErrProofRequired
		e.Proof, until, err = r.o.Keys.OpenProof(b.Altcha, room, id, now)
	case b.Waited != "":
		e.Without = ErrProofRequired
		e.Proof, until, err = r.o.Keys.OpenWait(b.Waited, room, id, r.o.Wait, now)
	default:
		e.Without = ErrProofRequired
	}
	if errors.Is(err, ErrProofExpired) || errors.Is(err, ErrProofEarly) {
		return Entry{Without: err}, nil
	}
	if e.Proof != "" {
		e.Life = until.Sub(now)
	}
	return e, err
}

// Join gives an account a place, or says which one it has. ErrNoRoom, ErrOtherRoom,
// ErrNotYet, ErrClosing and ErrOver; of an account that has no place and does not bring what the
// room asks for, the errors of codes and proofs.
func (r *Rooms) Join(ctx context.Context, event, user string, b Brought) (*Held, error) {
	room, err := r.Room(ctx, event)
	switch now := time.Now(); {
	case err != nil:
		return nil, err
	case b.Room != 0 && b.Room != room.id():
		return nil, ErrOtherRoom
	case now.Before(room.Joins):
		return nil, ErrNotYet
	case room.State == Draw && !now.Before(room.Closes):
		return nil, ErrClosing
	}
	h := &Held{Room: room, Ticket: r.o.Keys.TicketOf(event, user)}
	if b.Nonce != nil {
		h.Ticket.Nonce = *b.Nonce
	}
	place, mine := r.known(room, h.Ticket.ID, b.Place)
	var entry Entry
	if mine {
		h.Ticket.Nonce = place.Ticket.Nonce
	} else if entry, err = r.entry(room, h.Ticket.ID, b); err != nil {
		return nil, err
	}
	join := func(e Entry) error {
		return r.warmly(ctx, event, func() (err error) {
			h.Joined, err = r.o.Line.of(room).Join(ctx, event, h.Ticket, Known{place.Number, room.version, e})
			return err
		})
	}
	hall := r.hall(room)
	given := hall.given.Load()
	if err = join(entry); err != nil {
		return nil, err
	}
	if h.New && h.Number > 0 && h.Number <= given { // Redis has lost that it is somebody's
		if err = r.renumber(ctx, room, given, h.Ticket.ID); err == nil {
			err = join(Entry{}) // what was asked for has been brought
		}
		if err != nil {
			return nil, err
		}
	}
	hall.gave(h.Number)
	if h.New {
		r.metrics.joins.WithLabelValues(event).Inc()
	}
	return h, r.sign(h)
}

// renumber takes a number back that is somebody else's, and tells Redis how far
// numbers are given: to the highest given here, and to what was kept for a Redis that
// loses some.
func (r *Rooms) renumber(ctx context.Context, room *Room, given int64, id draw.ID) error {
	if err := r.o.Line.drop(ctx, room.Event, id); err != nil {
		return err
	}
	o := room.order()
	o.Last = max(o.Last, given, room.last)
	return r.o.Line.of(room).Tell(ctx, room.Event, o)
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
	p := Place{Event: h.Room.Event, Room: h.Room.id(), Ticket: h.Ticket, Number: h.Number, Issued: time.Now()}
	if h.Drawn {
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
		h.Joined, err = r.o.Line.of(room).Find(ctx, event, h.Ticket.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, r.sign(h)
}

// Leave ends the place of an account, or its time inside, and its passes. ErrNoRoom.
func (r *Rooms) Leave(ctx context.Context, event, user string) error {
	return r.leave(ctx, event, user, "left")
}

// RevokeUser is Leave of an account that is made to.
func (r *Rooms) RevokeUser(ctx context.Context, event, user string) error {
	return r.leave(ctx, event, user, "revoked")
}

// leave ends what an account has in a room for good: in Postgres too, so that no place
// it was given before counts.
func (r *Rooms) leave(ctx context.Context, event, user, became string) error {
	room, err := r.Room(ctx, event)
	if err != nil {
		return err
	}
	id := r.o.Keys.TicketOf(event, user).ID
	if err := r.end(ctx, event, user, id, became, r.o.Line.of(room).Leave); err != nil {
		return err
	}
	if err := r.o.Store.left(ctx, event, id); err != nil {
		return err
	}
	return r.endPasses(ctx, event, user, became)
}

// Claim lets an account in if it is its turn, with a pass then. ErrNoRoom, ErrOver
// and ErrNoPlace.
func (r *Rooms) Claim(ctx context.Context, event, user, token string) (t Turn, pass string, err error) {
	room, err := r.Room(ctx, event)
	if err != nil {
		return t, "", err
	}
	id := r.o.Keys.TicketOf(event, user).ID
	place, _ := r.known(room, id, token)
	err = r.warmly(ctx, event, func() (err error) {
		t, err = r.o.Line.of(room).Claim(ctx, event, id, Known{Number: place.Number, Version: room.version})
		return err
	})
	r.metrics.claim(event, t, err)
	if err != nil || t.Inside.IsZero() {
		return t, "", err
	}
	p := Pass{ID: passID(id, t.Inside), Event: event, Room: room.id(), User: user, Ticket: id, Until: t.Inside}
	// Also of who is inside already: the answer that let them in may have been lost.
	if r.lately.first(p.ID) {
		r.booked(ctx, admission{event: event, jti: p.ID, user: user, ticket: id, until: t.Inside})
	}
	pass, err = r.o.Keys.SignPass(p)
	return t, pass, err
}

// Challenge returns work for an account that would join. ErrNoRoom, ErrNotYet, and
// ErrNoProof of a room that asks for none.
func (r *Rooms) Challenge(ctx context.Context, event, user string) (Challenge, error) {
	room, err := r.proving(ctx, event)
	if err != nil {
		return Challenge{}, err
	}
	return r.o.Keys.Challenge(room, r.o.Keys.TicketOf(event, user).ID, time.Now())
}

// Wait returns what stands in for a proof of work once it is good, and how long that
// takes. Its errors are those of Challenge.
func (r *Rooms) Wait(ctx context.Context, event, user string) (token string, wait time.Duration, err error) {
	room, err := r.proving(ctx, event)
	if err != nil {
		return "", 0, err
	}
	token, err = r.o.Keys.SignWait(room, r.o.Keys.TicketOf(event, user).ID, r.o.Wait, time.Now())
	return token, r.o.Wait, err
}

func (r *Rooms) proving(ctx context.Context, event string) (*Room, error) {
	room, err := r.Room(ctx, event)
	switch {
	case err != nil:
		return nil, err
	case room.Terms.Proof == 0 || room.Terms.Codes:
		return nil, ErrNoProof
	case time.Now().Before(room.Joins):
		return nil, ErrNotYet
	}
	return room, nil
}
