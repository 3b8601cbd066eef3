package waitingroom

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"seatcast/seatmap"
	"seatcast/waitingroom/draw"
)

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
	room, err := r.Room(ctx, event)
	if errors.Is(err, ErrNoRoom) {
		return nil, nil
	}
	if err != nil {
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
	if err != nil || id != p.Ticket || p.Room != room.id() && p.Room != 0 {
		return nil, ErrForged
	}
	return &seatmap.Pass{ID: p.ID, Inside: id.String(), Until: until}, nil
}

// Bought ends the time inside of an account that has bought: its slot is free at
// once. Of an event without a waiting room, or an account that is not inside,
// nothing is to be done.
func (r *Rooms) Bought(ctx context.Context, event, user string) error {
	room, err := r.Room(ctx, event)
	if errors.Is(err, ErrNoRoom) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.end(ctx, event, user, r.o.Keys.TicketOf(event, user).ID, "bought", r.o.Line.of(room).Finish); err != nil {
		return err
	}
	return r.endPasses(ctx, event, user, "bought")
}

// endPasses ends every pass an account may still have: a Redis that has lost its last
// second may have let it in twice.
func (r *Rooms) endPasses(ctx context.Context, event, user, became string) error {
	in, err := r.o.Store.admissions(ctx, event, user)
	if err != nil {
		return err
	}
	for _, a := range in {
		if err := r.o.Line.Revoke(ctx, event, a.jti, a.until); err != nil {
			return err
		}
		a.ended, a.became = time.Now(), became
		r.booked(ctx, a)
	}
	return nil
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

// RevokePass ends one pass and the time inside it is for. ErrNoRoom and ErrForged.
func (r *Rooms) RevokePass(ctx context.Context, event, jti string) error {
	room, err := r.Room(ctx, event)
	if err != nil {
		return err
	}
	id, until, err := parsePassID(jti)
	if err != nil {
		return ErrForged
	}
	line := r.o.Line.of(room)
	if err := line.Revoke(ctx, event, jti, until); err != nil {
		return err
	}
	return r.end(ctx, event, "", id, "revoked", func(ctx context.Context, event string, id draw.ID) (time.Time, error) {
		now, err := line.Find(ctx, event, id)
		if errors.Is(err, ErrNoPlace) || err == nil && !now.Until.Equal(until) {
			return time.Time{}, nil // that time is over, and another is not meant
		}
		if err != nil {
			return time.Time{}, err
		}
		return line.Finish(ctx, event, id)
	})
}
