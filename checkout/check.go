package checkout

import (
	"context"

	"seatcast/internal/pg"
)

// Report is what the books of an event say of each other: seats sold, live
// tickets, and captured or capturing money must be the same thing counted
// three times.
type Report struct {
	Seats   int      // sold
	Places  int      // sold in areas without seats
	Tickets int      // live
	Money   int64    // captured or capturing, minor units
	Faults  []string // what contradicts what; empty when all is well
}

// Check reads the books of an event at one moment.
func (s *Store) Check(ctx context.Context, event string) (Report, error) {
	var r Report
	err := s.pool.QueryRow(ctx, `
		WITH paid AS (
			SELECT a.id, a.booking_id, a.amount, a.state FROM attempts a JOIN bookings b ON b.id = a.booking_id
			WHERE b.event_id = $1 AND a.state IN ('capturing', 'captured')
		), live AS (
			SELECT * FROM tickets WHERE event_id = $1 AND state = 'live'
		), faults AS (
			SELECT format('seat %s is sold and has no live ticket of its booking', s.i) AS fault FROM seats s
			WHERE event_id = $1 AND status = 'sold' AND NOT EXISTS (SELECT FROM live WHERE i = s.i AND booking_id = s.booking_id)
			UNION ALL
			SELECT format('ticket %s is live and seat %s is not its booking''s', l.id, l.i) FROM live l
			WHERE i IS NOT NULL AND NOT EXISTS (
				SELECT FROM seats WHERE event_id = $1 AND i = l.i AND status = 'sold' AND booking_id = l.booking_id)
			UNION ALL
			SELECT format('ticket %s is live and has no money', l.id) FROM live l
			WHERE NOT EXISTS (SELECT FROM paid WHERE booking_id = l.booking_id)
			UNION ALL
			SELECT format('area %s counts %s sold and has %s live tickets', a.area, a.sold, count(l.id)) FROM areas a
			LEFT JOIN live l ON l.area = a.area WHERE a.event_id = $1 GROUP BY a.area, a.sold HAVING count(l.id) <> a.sold
			UNION ALL
			SELECT format('attempt %s is %s and its booking has no live ticket', p.id, p.state) FROM paid p
			WHERE NOT EXISTS (SELECT FROM live WHERE booking_id = p.booking_id)
			UNION ALL
			SELECT format('attempt %s is for %s and its tickets cost %s', p.id, p.amount, sum(l.price)) FROM paid p
			JOIN live l ON l.booking_id = p.booking_id GROUP BY p.id, p.amount HAVING sum(l.price) <> p.amount
			UNION ALL
			SELECT format('attempt %s was taken for nothing and its provider cannot give it back', a.id) FROM attempts a
			JOIN bookings b ON b.id = a.booking_id WHERE b.event_id = $1 AND a.state = 'refund_failed'
			UNION ALL
			SELECT format('booking %s is %s and has live tickets', b.id, b.state) FROM bookings b
			WHERE event_id = $1 AND state <> 'sold' AND EXISTS (SELECT FROM live WHERE booking_id = b.id)
		)
		SELECT (SELECT count(*) FROM seats WHERE event_id = $1 AND status = 'sold'),
			(SELECT coalesce(sum(sold), 0) FROM areas WHERE event_id = $1),
			(SELECT count(*) FROM live), (SELECT coalesce(sum(amount), 0)::bigint FROM paid),
			ARRAY(SELECT fault FROM faults ORDER BY fault)`, event).
		Scan(&r.Seats, &r.Places, &r.Tickets, &r.Money, &r.Faults)
	return r, pg.Said("check "+event, err)
}
