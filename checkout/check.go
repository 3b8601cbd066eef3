package checkout

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"seatcast/internal/pg"
	"seatcast/seatmap"
)

// Report is what the books say of each other: seats sold, live tickets, and
// captured or capturing money must be the same thing counted three times.
type Report struct {
	Balances []Balance `json:"events"`
	Faults   []Fault   `json:"faults"` // what contradicts what; empty when all is well
}

// Balance is one event, counted three times.
type Balance struct {
	Event   string        `json:"event"`
	Seats   int           `json:"seats"`   // sold
	Places  int           `json:"places"`  // sold in areas without seats
	Tickets int           `json:"tickets"` // live
	Money   seatmap.Money `json:"money"`   // captured or capturing, less what was given back
}

// Fault is one way in which the books contradict themselves, or something that
// ought to have been done by now and was not.
type Fault struct {
	Kind  string   `json:"kind"` // a name that stays
	Late  bool     `json:"late"` // not wrong, but not done in time
	What  string   `json:"what"`
	Why   string   `json:"why"` // it matters
	Do    string   `json:"do"`
	Count int      `json:"count"`
	Rows  []string `json:"rows"` // the first of them
}

func (f Fault) String() string {
	return fmt.Sprintf("%s (%d): %s: %q", f.Kind, f.Count, f.What, f.Rows)
}

// rowsShown is how many rows of a fault are named.
const rowsShown = 20

// checkWithin bounds each question of a check. With 60,000 seats sold all of
// them together take a second or two.
const checkWithin = 30 * time.Second

// Check reads the books of some events, or of all when none is named, at one
// moment, and changes nothing. Every question is a read of whole tables that
// waits for nobody.
func (s *Store) Check(ctx context.Context, events ...string) (r Report, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error {
		// In the rush the planner thinks of these tables as they were before it:
		// of a few rows, for which it would read all of the others one by one.
		if _, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL statement_timeout = %d; SET LOCAL enable_nestloop = off`, checkWithin.Milliseconds())); err != nil {
			return err
		}
		if r.Balances, err = balances(ctx, tx, events); err != nil {
			return err
		}
		for _, q := range questions {
			f, err := q.ask(ctx, tx, events)
			if err != nil {
				return fmt.Errorf("%s: %w", q.Kind, err)
			}
			if f.Count > 0 {
				r.Faults = append(r.Faults, f)
			}
		}
		return nil
	})
	return r, pg.Said("check the books", err)
}

func balances(ctx context.Context, tx pgx.Tx, events []string) ([]Balance, error) {
	rows, err := tx.Query(ctx, `
		WITH s AS (SELECT event_id, count(*) AS n FROM seats WHERE status = 'sold' AND `+meant+` GROUP BY event_id),
			a AS (SELECT event_id, sum(sold) AS n FROM areas WHERE `+meant+` GROUP BY event_id),
			t AS (SELECT event_id, count(*) AS n FROM tickets WHERE state = 'live' AND `+meant+` GROUP BY event_id),
			m AS (SELECT b.event_id, sum(`+moneyLeft+`) AS n FROM attempts p JOIN bookings b ON b.id = p.booking_id `+itsRefunds+`
				WHERE (`+takesMoney+` OR p.state = 'refunded' AND r.attempt_id IS NOT NULL) AND `+meant+` GROUP BY b.event_id)
		SELECT e.id, coalesce(s.n, 0), coalesce(a.n, 0), coalesce(t.n, 0), coalesce(m.n, 0)::bigint, e.currency FROM events e
		LEFT JOIN s ON s.event_id = e.id LEFT JOIN a ON a.event_id = e.id LEFT JOIN t ON t.event_id = e.id LEFT JOIN m ON m.event_id = e.id
		WHERE $1::text[] IS NULL OR e.id = ANY($1) ORDER BY e.id`, events)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Balance, err error) {
		return b, row.Scan(&b.Event, &b.Seats, &b.Places, &b.Tickets, &b.Money.Amount, &b.Money.Currency)
	})
}

// Kinds are the names of all faults there can be.
func Kinds() []string {
	all := make([]string, len(questions))
	for i, q := range questions {
		all[i] = q.Kind
	}
	return all
}

// question finds one kind of fault.
type question struct {
	Fault
	sql string // the rows that are wrong, each as text; $1: the events meant, NULL: all
}

func (q question) ask(ctx context.Context, tx pgx.Tx, events []string) (Fault, error) {
	f := q.Fault
	err := tx.QueryRow(ctx, `SELECT count(*), coalesce((array_agg(line ORDER BY line))[1:$2], '{}') FROM (`+q.sql+`) wrong (line)`,
		events, rowsShown).Scan(&f.Count, &f.Rows)
	return f, err
}

const (
	meant      = `($1::text[] IS NULL OR event_id = ANY($1))`
	takesMoney = `p.state IN ('capturing', 'captured')`
	aMinuteAgo = `now() - interval '1 minute'`

	// Some providers count a refund as given back while it is pending, others do not.
	itsRefunds = `LEFT JOIN (SELECT attempt_id, coalesce(sum(amount) FILTER (WHERE state = 'succeeded'), 0) AS given,
		coalesce(sum(amount) FILTER (WHERE state = 'pending'), 0) AS going FROM refunds GROUP BY attempt_id) r ON r.attempt_id = p.id`
	moneyLeft = `p.amount - greatest(coalesce(r.given, 0), p.refunded - coalesce(r.going, 0))`
	owed      = `t.state = 'void' AND t.refund_id IN (SELECT id FROM refunds WHERE state <> 'succeeded')`
)

// questions are all that is asked of the books. What is late is told long
// after a worker would have done it.
var questions = []question{
	{Fault{Kind: "seat_without_ticket",
		What: "a seat is sold and has no live ticket of its booking",
		Why:  "nobody can come in for it, and nobody else can buy it",
		Do:   "read the history of the seat and the attempts of its booking; give the money back at its provider if it was taken"},
		`SELECT format('%s: seat %s of booking %s', s.event_id, s.ticket_id, s.booking_id) FROM seats s
		WHERE s.status = 'sold' AND ` + meant + ` AND NOT EXISTS (SELECT FROM tickets t
			WHERE t.state = 'live' AND t.event_id = s.event_id AND t.i = s.i AND t.booking_id = s.booking_id)`},
	{Fault{Kind: "ticket_without_seat",
		What: "a ticket is live and its seat is not sold to its booking",
		Why:  "the seat may be sold to somebody else, and both will come",
		Do:   "close the seat until it is known whose it is; read its history"},
		`SELECT format('%s: ticket %s of booking %s, seat number %s', event_id, id, booking_id, i) FROM tickets t
		WHERE t.state = 'live' AND t.i IS NOT NULL AND ` + meant + ` AND NOT EXISTS (SELECT FROM seats s
			WHERE s.event_id = t.event_id AND s.i = t.i AND s.status = 'sold' AND s.booking_id = t.booking_id)`},
	{Fault{Kind: "seat_twice",
		What: "a seat has two live tickets",
		Why:  "two people will come for it; an index forbids this, so it is damaged or gone",
		Do:   "look whether the index tickets_one_a_seat is there and valid; read the history of the seat"},
		`SELECT format('%s: seat number %s, tickets %s', event_id, i, string_agg(id, ', ' ORDER BY id)) FROM tickets
		WHERE state = 'live' AND i IS NOT NULL AND ` + meant + ` GROUP BY event_id, i HAVING count(*) > 1`},
	{Fault{Kind: "area_count",
		What: "an area counts other places sold than it has live tickets",
		Why:  "it is sold beyond its capacity, or places stay empty",
		Do:   "close the event until the number is mended: areas.sold is how many live tickets there are"},
		`SELECT format('%s: area %s counts %s and has %s', a.event_id, a.area, a.sold, count(t.id)) FROM areas a
		LEFT JOIN tickets t ON t.event_id = a.event_id AND t.area = a.area AND t.state = 'live'
		WHERE ($1::text[] IS NULL OR a.event_id = ANY($1)) GROUP BY a.event_id, a.area, a.sold HAVING count(t.id) <> a.sold`},
	{Fault{Kind: "ticket_of_no_sale",
		What: "a ticket is live and its booking is not sold",
		Why:  "whoever has it comes in without having paid",
		Do:   "read the attempts of its booking; the door should refuse it meanwhile"},
		`SELECT format('%s: ticket %s of booking %s, which is %s', b.event_id, t.id, b.id, b.state) FROM tickets t JOIN bookings b ON b.id = t.booking_id
		WHERE t.state = 'live' AND b.state <> 'sold' AND ($1::text[] IS NULL OR t.event_id = ANY($1))`},
	{Fault{Kind: "sale_without_money",
		What: "a booking is sold and no attempt of it takes money",
		Why:  "its tickets are pending for ever, its seats are given away",
		Do:   "compare its attempts with the provider's payments"},
		`SELECT format('%s: booking %s', b.event_id, b.id) FROM bookings b
		WHERE b.state = 'sold' AND ` + meant + ` AND NOT EXISTS (SELECT FROM attempts p WHERE p.booking_id = b.id AND ` + takesMoney + `)`},
	{Fault{Kind: "money_without_ticket",
		What: "an attempt takes money and its booking has no live ticket",
		Why:  "somebody pays for nothing",
		Do:   "give it back at its provider"},
		`SELECT format('%s: attempt %s of booking %s is %s, %s %s', b.event_id, p.id, b.id, p.state, p.amount - p.refunded, p.currency)
		FROM attempts p JOIN bookings b ON b.id = p.booking_id
		WHERE ` + takesMoney + ` AND p.refunded < p.amount AND ` + meant + ` AND NOT EXISTS (SELECT FROM tickets t WHERE t.booking_id = b.id AND t.state = 'live')`},
	{Fault{Kind: "paid_twice",
		What: "two attempts take money for one booking",
		Why:  "somebody is charged twice; an index forbids this, so it is damaged or gone",
		Do:   "give one of them back at its provider; look whether the index attempts_one_capture is there and valid"},
		`SELECT format('%s: booking %s, attempts %s', b.event_id, b.id, string_agg(p.id, ', ' ORDER BY p.id))
		FROM attempts p JOIN bookings b ON b.id = p.booking_id
		WHERE ` + takesMoney + ` AND ` + meant + ` GROUP BY b.event_id, b.id HAVING count(*) > 1`},
	{Fault{Kind: "amount_mismatch",
		What: "the tickets of a booking that are live, or whose money is owed, cost other than what was taken for them",
		Why:  "somebody is charged too much or too little, or the provider has given money back by itself",
		Do:   "compare the attempt with the provider's payment; give the difference back, or void tickets whose money was given back"},
		`SELECT format('%s: booking %s, tickets %s, money %s', b.event_id, b.id, t.price, m.taken) FROM bookings b
		JOIN (SELECT booking_id, sum(price) AS price FROM tickets t WHERE state = 'live' OR ` + owed + ` GROUP BY booking_id) t ON t.booking_id = b.id
		JOIN (SELECT booking_id, sum(` + moneyLeft + `) AS taken FROM attempts p ` + itsRefunds + ` WHERE ` + takesMoney + ` GROUP BY booking_id) m ON m.booking_id = b.id
		WHERE t.price <> m.taken AND ` + meant},
	{Fault{Kind: "payment_open",
		What: "a booking is over and a payment of it is open that nobody is to end",
		Why:  "somebody's money is blocked for seats that are gone",
		Do:   "void it at its provider; a worker does so only with attempts that are marked"},
		`SELECT format('%s: attempt %s of booking %s, which is %s, is %s', b.event_id, p.id, b.id, b.state, p.state)
		FROM attempts p JOIN bookings b ON b.id = p.booking_id
		WHERE p.state IN ('created', 'authorized') AND NOT p.void_due AND b.state NOT IN ('held', 'paying') AND ` + meant},
	{Fault{Kind: "refund_failed",
		What: "money was taken for nothing and its provider cannot give it back",
		Why:  "somebody pays for nothing until a person does it",
		Do:   "give it back by hand, by its provider's own means or a transfer"},
		`SELECT format('%s: attempt %s of booking %s, %s %s: %s', b.event_id, p.id, b.id, p.amount - p.refunded, p.currency, p.reason)
		FROM attempts p JOIN bookings b ON b.id = p.booking_id WHERE p.state = 'refund_failed' AND ` + meant},
	{Fault{Kind: "refund_returned",
		What: "a ticket was refunded, and the bank sent its money back",
		Why:  "somebody has neither the seat nor the money",
		Do:   "refund the booking once more, or give the money back by hand"},
		`SELECT format('%s: ticket %s of booking %s, %s: %s', t.event_id, t.id, t.booking_id, t.price, f.failure)
		FROM tickets t JOIN refunds f ON f.id = t.refund_id
		WHERE t.state = 'void' AND f.state = 'failed' AND ($1::text[] IS NULL OR t.event_id = ANY($1))`},
	{Fault{Kind: "cancelled_not_refunded",
		What: "an event is cancelled, and the refund of a booking of it has failed",
		Why:  "somebody has paid for an evening that will not come, and no other refund begins by itself",
		Do:   "refund the booking once the reason is gone, or give the money back by hand"},
		`SELECT format('%s: booking %s, %s %s: %s', event_id, booking_id, amount, currency, failure) FROM refunds f
		WHERE cancels AND state = 'failed' AND ` + meant + ` AND EXISTS (SELECT FROM tickets t
			WHERE t.booking_id = f.booking_id AND t.state = 'live' AND t.refund_id IS NULL)`},
	{Fault{Kind: "booking_overdue", Late: true,
		What: "a booking is five minutes past its end and still open",
		Why:  "its payment is not decided",
		Do:   "look whether a worker runs, and whether the provider answers it"},
		`SELECT format('%s: booking %s is %s, its end was %s', event_id, id, state, deadline) FROM bookings
		WHERE state IN ('held', 'paying') AND deadline < now() - interval '5 minutes' AND ` + meant},
	{Fault{Kind: "money_late", Late: true,
		What: "money is to be taken or an authorisation given back since five minutes",
		Why:  "tickets are pending that were paid for, or somebody's money is blocked for nothing",
		Do:   "look whether a worker runs, and whether the provider answers it; its errors are in the log"},
		`SELECT format('%s: attempt %s of booking %s is %s since %s', b.event_id, p.id, b.id, p.state, p.updated_at)
		FROM attempts p JOIN bookings b ON b.id = p.booking_id
		WHERE (p.state = 'capturing' OR p.state IN ('created', 'authorized') AND p.void_due) AND p.updated_at < now() - interval '5 minutes' AND ` + meant},
	{Fault{Kind: "payment_unasked", Late: true,
		What: "a payment is open and its provider was not asked about it for five minutes",
		Why:  "what becomes of it nobody will hear",
		Do:   "look whether a worker runs"},
		`SELECT format('%s: attempt %s of booking %s is %s, asked about at %s', b.event_id, p.id, b.id, p.state, p.asked_at)
		FROM attempts p JOIN bookings b ON b.id = p.booking_id
		WHERE p.state IN ('created', 'authorized', 'capturing', 'refunding') AND p.asked_at < now() - interval '5 minutes' AND ` + meant},
	{Fault{Kind: "refund_unasked", Late: true,
		What: "a refund is under way and its provider was not asked about it for five minutes",
		Why:  "its tickets let nobody in, and its money does not arrive",
		Do:   "look whether a worker runs"},
		`SELECT format('%s: refund %s of booking %s, asked about at %s', event_id, id, booking_id, asked_at) FROM refunds
		WHERE state = 'pending' AND asked_at < now() - interval '5 minutes' AND ` + meant},
	{Fault{Kind: "job_stuck", Late: true,
		What: "a payment job was given up, fails for minutes, or is not begun",
		Why:  "the money it is about stays as it is",
		Do:   "look whether a worker runs, and at the errors of the job"},
		`SELECT format('%s: job %s, %s, %s, since %s, %s failures: %s', b.event_id, j.id, j.kind, j.state, j.created_at, j.attempt,
			coalesce(j.errors[cardinality(j.errors)] ->> 'error', 'none said'))
		FROM river_job j LEFT JOIN attempts p ON p.id = j.args ->> 'attempt' LEFT JOIN refunds f ON f.id = j.args ->> 'refund'
		JOIN bookings b ON b.id = coalesce(p.booking_id, f.booking_id, j.args ->> 'booking')
		WHERE j.queue = '` + jobQueue + `' AND ($1::text[] IS NULL OR b.event_id = ANY($1)) AND (j.state = 'discarded' OR j.state = 'retryable' AND j.attempt > 6
			OR j.state = 'available' AND j.scheduled_at < now() - interval '2 minutes'
			OR j.state = 'running' AND j.attempted_at < now() - interval '2 minutes')`},
	{Fault{Kind: "mirror_late", Late: true,
		What: "Redis was not told of a change for a minute",
		Why:  "shoppers see seats as free that are sold, or as gone that are free",
		Do:   "look whether a worker runs, and whether Redis answers it"},
		// Only a sale has its moment in a row. Whatever else is due is late when
		// nothing has happened to its event for so long.
		`WITH held AS (SELECT id AS event_id FROM events WHERE unheld_since IS NULL AND ($1::text[] IS NULL OR id = ANY($1))),
			quiet AS (SELECT event_id FROM held h WHERE
				NOT EXISTS (SELECT FROM bookings b WHERE b.event_id = h.event_id AND b.state IN ('sold', 'lost', 'refunded') AND b.updated_at > ` + aMinuteAgo + `)
				AND NOT EXISTS (SELECT FROM admin_calls c WHERE c.event_id = h.event_id AND c.at > ` + aMinuteAgo + `)
				AND NOT EXISTS (SELECT FROM event_charts v WHERE v.event_id = h.event_id AND v.at > ` + aMinuteAgo + `)
				AND NOT EXISTS (SELECT FROM channels c WHERE c.event_id = h.event_id AND c.opens_at BETWEEN ` + aMinuteAgo + ` AND now()))
		SELECT format('%s: seat %s, sold', s.event_id, s.ticket_id) FROM seats s JOIN bookings b ON b.id = s.booking_id
			WHERE s.mirror_due AND b.updated_at < ` + aMinuteAgo + ` AND s.event_id IN (SELECT event_id FROM held)
		UNION ALL SELECT format('%s: seat %s, %s', event_id, ticket_id, status) FROM seats
			WHERE mirror_due AND booking_id IS NULL AND event_id IN (SELECT event_id FROM quiet)
		UNION ALL SELECT format('%s: area %s', event_id, area) FROM areas WHERE mirror_due AND event_id IN (SELECT event_id FROM quiet)
		UNION ALL SELECT format('%s: tickets of account %s', event_id, user_id) FROM buyers
			WHERE changes <> told AND event_id IN (SELECT event_id FROM quiet)`},
}
