package waitingroom

import (
	"context"
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
// other nothing counts. One that does not name its room was signed by a release that
// named none, and is of this one when it is no older.
func (r *Rooms) known(room *Room, id draw.ID, token string) (Place, bool) {
	if token == "" {
		return Place{}, false
	}
	p, err := r.o.Keys.OpenPlace(token)
	if err != nil || p.Event != room.Event || p.Ticket.ID != id {
		return Place{}, false
	}
	if p.Room != room.id() && (p.Room != 0 || p.Issued.Before(room.made)) {
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
	place, mine := r.known(room, h.Ticket.ID, token)
	if mine {
		h.Ticket.Nonce = place.Ticket.Nonce
	}
	err = r.warmly(ctx, event, func() (err error) {
		h.Joined, err = r.o.Line.Join(ctx, event, h.Ticket, Known{place.Number, room.version})
		return err
	})
	if err != nil {
		return nil, err
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
		h.Joined, err = r.o.Line.Find(ctx, event, h.Ticket.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, r.sign(h)
}

// Leave ends the place of an account, or its time inside, and its passes.
func (r *Rooms) Leave(ctx context.Context, event, user string) error {
	if _, err := r.Room(ctx, event); err != nil {
		return err
	}
	return r.leave(ctx, event, user, "left")
}

// RevokeUser is Leave of an account that is made to.
func (r *Rooms) RevokeUser(ctx context.Context, event, user string) error {
	return r.leave(ctx, event, user, "revoked")
}

// leave ends what an account has in a room for good: in Postgres too, so that no place
// it was given before counts.
func (r *Rooms) leave(ctx context.Context, event, user, became string) error {
	id := r.o.Keys.TicketOf(event, user).ID
	if err := r.end(ctx, event, user, id, became, r.o.Line.Leave); err != nil {
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
		t, err = r.o.Line.Claim(ctx, event, id, Known{place.Number, room.version})
		return err
	})
	if err != nil || t.Inside.IsZero() {
		return t, "", err
	}
	p := Pass{ID: passID(id, t.Inside), Event: event, Room: room.id(), User: user, Ticket: id, Until: t.Inside}
	if t.New {
		r.booked(ctx, admission{event: event, jti: p.ID, user: user, ticket: id, until: t.Inside})
	}
	pass, err = r.o.Keys.SignPass(p)
	return t, pass, err
}
