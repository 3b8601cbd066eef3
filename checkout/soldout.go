package checkout

import (
	"context"

	"github.com/jackc/pgx/v5"

	"seatcast/checkout/outgoing"
)

// An event is sold out when it has tickets that are good and no seat or place is
// for sale: what is killed, off sale or in a channel that is closed is not. Which
// transaction takes the last one nobody can tell while others are about to commit,
// so it is looked at afterwards, by the mirror: it follows every change, under a
// lock of the event, and what it has not followed stays due.

// soldOutNews is what other systems are told of an event that is sold out.
type soldOutNews struct {
	Event string `json:"event"`
	Seats struct {
		Sold        int `json:"sold"`
		Unavailable int `json:"unavailable"` // killed, off sale, in a channel that is closed
	} `json:"seats"`
	Places struct {
		Sold int `json:"sold"` // in areas without seats
	} `json:"places"`
}

// noteSoldOut says that an event is sold out, once until something of it is for
// sale again. The caller has the event's lock.
func (s *Store) noteSoldOut(ctx context.Context, tx pgx.Tx, event string) error {
	var now bool
	err := tx.QueryRow(ctx, `
		WITH e AS (SELECT EXISTS (SELECT FROM seats WHERE event_id = $1 AND status = 'available')
				OR EXISTS (SELECT FROM areas WHERE event_id = $1 AND free > 0) AS sells),
			again AS (DELETE FROM sold_out USING e WHERE event_id = $1 AND sells),
			out AS (INSERT INTO sold_out (event_id) SELECT $1 FROM e
				WHERE NOT sells AND NOT EXISTS (SELECT FROM sold_out WHERE event_id = $1)
					AND EXISTS (SELECT FROM tickets WHERE event_id = $1 AND state = 'live')
					AND EXISTS (SELECT FROM events WHERE id = $1 AND state <> 'cancelled') RETURNING event_id)
		SELECT EXISTS (SELECT FROM out)`, event).Scan(&now)
	if err != nil || !now {
		return err
	}
	return s.announce(ctx, tx, outgoing.EventSoldOut, event, func() (any, error) {
		n := soldOutNews{Event: event}
		err := tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE status = 'sold'), count(*) FILTER (WHERE status = 'unavailable'),
			(SELECT coalesce(sum(sold), 0) FROM areas WHERE event_id = $1) FROM seats WHERE event_id = $1`, event).
			Scan(&n.Seats.Sold, &n.Seats.Unavailable, &n.Places.Sold)
		return n, err
	})
}
