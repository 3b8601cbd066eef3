package waitingroom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seatcast/waitingroom/draw"
)

// guarded puts back what a room that is cold must know before anybody joins: which
// codes were used, and who is suspected.
func (r *Rooms) guarded(ctx context.Context, event string) error {
	used, err := r.o.Store.codes(ctx, event)
	if err != nil {
		return err
	}
	if err := r.o.Line.coded(ctx, event, used); err != nil {
		return err
	}
	suspects, err := r.o.Store.suspects(ctx, event, SuspectQuery{})
	if err != nil {
		return err
	}
	return r.o.Line.suspect(ctx, event, ids(suspects)...)
}

func ids(suspects []Suspect) []draw.ID {
	all := make([]draw.ID, len(suspects))
	for n := range suspects {
		all[n] = suspects[n].ticket
	}
	return all
}

// guard does what the gates of rooms need: it writes down which codes were used, and
// now and then looks whether Redis suspects whom Postgres does.
func (r *Rooms) guard(ctx context.Context) error {
	var all []error
	for _, room := range r.all() {
		if err := r.keepCodes(ctx, room); err != nil {
			all = append(all, fmt.Errorf("%s: %w", room.Event, err))
		}
	}
	if time.Since(r.compared) < compareEvery {
		return errors.Join(all...)
	}
	r.compared = time.Now()
	return errors.Join(append(all, r.compare(ctx))...)
}

// How often what Redis may have lost in a failover is looked for.
const (
	compareEvery = 3 * time.Second // by how many they are
	compareWhole = time.Minute     // one by one
)

// keepCodes writes down the codes that were used since the last time, also when the room
// takes none any more.
func (r *Rooms) keepCodes(ctx context.Context, room *Room) error {
	used, err := r.o.Line.used(ctx, room.Event)
	if err != nil || len(used) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lockedFor)
	defer cancel()
	_, err = r.o.Store.locked(ctx, room.Event, true, func(ctx context.Context) error {
		if err := r.make(ctx, room.Event); err != nil { // an earlier room's codes are none of it
			return err
		}
		for {
			used, err := r.o.Line.used(ctx, room.Event)
			if err != nil || len(used) == 0 {
				return err
			}
			if err := r.o.Store.useCodes(ctx, room.Event, used); err != nil {
				return err
			}
			if err := r.o.Line.usedWritten(ctx, room.Event, len(used)); err != nil {
				return err
			}
		}
	})
	return err
}

// compare has Redis suspect whom Postgres does: where they are not as many, and once in
// a while everywhere, as one that was lost and one that is too many are as many.
func (r *Rooms) compare(ctx context.Context) error {
	counts, err := r.o.Store.countSuspects(ctx)
	if err != nil {
		return err
	}
	whole := time.Since(r.whole) >= compareWhole
	var all []error
	for _, room := range r.all() {
		has, err := r.o.Line.suspects(ctx, room.Event)
		if err == nil && (whole || has != counts[room.Event]) {
			err = r.suspectAgain(ctx, room.Event)
		}
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", room.Event, err))
		}
	}
	if whole && len(all) == 0 {
		r.whole = time.Now()
	}
	return errors.Join(all...)
}

func (r *Rooms) suspectAgain(ctx context.Context, event string) error {
	there, err := r.o.Line.suspected(ctx, event)
	if err != nil {
		return err
	}
	suspects, err := r.o.Store.suspects(ctx, event, SuspectQuery{})
	if err != nil {
		return err
	}
	if err := r.o.Line.suspect(ctx, event, ids(suspects)...); err != nil {
		return err
	}
	still := map[draw.ID]bool{}
	for _, s := range suspects {
		still[s.ticket] = true
	}
	var trusted []draw.ID
	for _, id := range there {
		if !still[id] {
			trusted = append(trusted, id)
		}
	}
	return r.o.Line.trust(ctx, event, trusted...)
}

// Why an account is suspected.
const (
	byOperator = "operator"
	byLimits   = "limits"
)

// Suspect has an account wait without ever being let in, and not told so. Who is inside
// stays. ErrNoRoom.
func (r *Rooms) Suspect(ctx context.Context, event, user string) error {
	_, err := r.suspect(ctx, event, user, byOperator)
	return err
}

// suspect says whether an account is suspected since now.
func (r *Rooms) suspect(ctx context.Context, event, user, because string) (begins bool, err error) {
	if _, err := r.Room(ctx, event); err != nil {
		return false, err
	}
	id := r.o.Keys.TicketOf(event, user).ID
	is, begins, err := r.o.Store.suspect(ctx, event, user, id, because)
	if err != nil || !is {
		return false, err
	}
	return begins, r.o.Line.suspect(ctx, event, id)
}

// Trust has an account wait as all others do, with the number it has, and not be suspected
// again but by an operator. ErrNoRoom.
func (r *Rooms) Trust(ctx context.Context, event, user string) error {
	if _, err := r.Room(ctx, event); err != nil {
		return err
	}
	id := r.o.Keys.TicketOf(event, user).ID
	if err := r.o.Store.trust(ctx, event, user, id); err != nil {
		return err
	}
	return r.o.Line.trust(ctx, event, id)
}

// Suspects are the accounts that are suspected, the latest first. ErrNoRoom.
func (r *Rooms) Suspects(ctx context.Context, event string, q SuspectQuery) ([]Suspect, error) {
	if _, err := r.Room(ctx, event); err != nil {
		return nil, err
	}
	return r.o.Store.suspects(ctx, event, q)
}

// suspicion is an account that went far over the limits.
type suspicion struct{ event, user string }

// doubted has an account suspected, soon. Nobody waits for it; when too many wait to be,
// it will be over the limits again.
func (r *Rooms) doubted(event, user string) {
	select {
	case r.doubts <- suspicion{event, user}:
	default:
	}
}

// doubtsSize is how many suspicions wait to be written down.
const doubtsSize = 1000

// doubt suspects who went far over the limits, until ctx ends.
func (r *Rooms) doubt(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-r.doubts:
			begins, err := r.suspect(ctx, s.event, s.user, byLimits)
			switch {
			case err != nil:
				r.o.Log.WarnContext(ctx, "an account far over the limits is not suspected", "event", s.event, "err", err)
			case begins:
				r.o.Log.InfoContext(ctx, "an account far over the limits is suspected", "event", s.event, "user", s.user)
			}
		}
	}
}
