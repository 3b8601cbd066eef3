package live

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// usedKey is there once a ticket has been used, until long after it expired.
func usedKey(event, id string) string { return "ticket:{" + event + "}:" + id }

// rememberUsed is how much longer than a ticket's life it is known to have been
// used: a node whose clock is behind by less still takes it once only.
const rememberUsed = 2 * time.Minute

// TicketOptions say how tickets are made. Redis and Key are needed.
type TicketOptions struct {
	Redis redis.UniversalClient // shared by all nodes
	Key   []byte                // the same on every node
	Life  time.Duration         // from issue to expiry; 30 s
}

// Tickets lets their bearers watch guarded maps: each one event, once, soon.
// Issuing costs nothing, and only a ticket that could be good asks Redis.
type Tickets struct {
	rdb  redis.UniversalClient
	seal seal
	life time.Duration
}

// NewTickets returns the tickets of a house.
func NewTickets(o TicketOptions) *Tickets {
	return &Tickets{rdb: o.Redis, seal: newSeal(o.Key), life: cmp.Or(o.Life, 30*time.Second)}
}

// Issue makes a ticket of an event. What it opens ends at end, unless that is the
// zero time.
func (t *Tickets) Issue(event string, end time.Time) (ticket string, expires time.Time) {
	expires = time.Now().Add(t.life).Truncate(time.Millisecond)
	return t.seal.issue(event, expires, end), expires
}

// Redeem uses a ticket up and returns its end. It returns ErrNoTicket, ErrTicketForged,
// ErrTicketExpired, ErrTicketUsed, or ErrStore when whether it was used is not
// known: then it lets nobody in. What a Redis forgets within the ticket's life
// may let its bearer in again.
func (t *Tickets) Redeem(ctx context.Context, event, ticket string) (end time.Time, err error) {
	if ticket == "" {
		return end, ErrNoTicket
	}
	id, end, err := t.seal.open(event, ticket, time.Now())
	if err != nil {
		return end, err
	}
	first, err := t.rdb.SetNX(ctx, usedKey(event, id), "", t.life+rememberUsed).Result()
	if err != nil {
		return end, fmt.Errorf("redeem a ticket of %s: %w: %w", event, ErrStore, err)
	}
	if !first {
		return end, ErrTicketUsed
	}
	return end, nil
}
