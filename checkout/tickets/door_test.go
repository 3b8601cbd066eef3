package tickets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"seatcast/checkout/tickets"
	"seatcast/internal/devstack/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

const event = "opera"

// house is an event with one paid ticket for a seat and one for the floor, tk_seat
// and tk_floor, one of whose money has not arrived, tk_early, and one taken back,
// tk_void.
type house struct {
	*tickets.Door
	t    *testing.T
	pool *pgxpool.Pool
	keys *tickets.Keys
}

func setup(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, pool: devtest.Postgres(t), keys: keysOf(t, "")}
	h.Door = tickets.NewDoor(h.pool, h.keys)
	h.exec(`INSERT INTO charts (sha, name, seats, body) VALUES (repeat('0', 64), 'Opera', 9, '')`)
	h.exec(`INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user)
		VALUES ($1, 'Tosca', 'Opera', 'Europe/Paris', now(), now(), repeat('0', 64), 'hot', 'EUR', 60000, 60000, 1200000, 1000, 10, 10)`, event)
	h.exec(`INSERT INTO seats (event_id, i, ticket_id, category) SELECT $1, i, 'A-' || i, 'Stalls' FROM generate_series(0, 8) i`, event)
	h.exec(`INSERT INTO areas (event_id, area, category, capacity) VALUES ($1, 'floor', 'Floor', 10)`, event)
	h.book("paid", "captured", `[{"i":4,"section":"Stalls","row":"A","label":"5"}]`)
	h.book("early", "capturing", `[]`)
	h.issue("tk_seat", "paid", "4", "NULL", "live")
	h.issue("tk_floor", "paid", "NULL", "'floor'", "live")
	h.issue("tk_void", "paid", "5", "NULL", "void")
	h.issue("tk_early", "early", "6", "NULL", "live")
	return h
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.pool.Exec(context.Background(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) book(token, attempt, seats string) {
	h.exec(`INSERT INTO bookings (id, event_id, user_id, state, seats, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
		VALUES ($1 || '.' || $2, $1, 'ada', 'sold', '{}', 'EUR', 0, jsonb_build_object('seats', $3::jsonb), 'h', now(), now(), now())`, event, token, seats)
	h.exec(`INSERT INTO attempts (id, booking_id, state, provider, method, request_hash, currency, amount) VALUES ('at_' || $2, $1 || '.' || $2, $3, 'p', 'm', 'h', 'EUR', 0)`,
		event, token, attempt)
}

func (h *house) issue(id, token, seat, area, state string) {
	h.exec(fmt.Sprintf(`INSERT INTO tickets (id, event_id, booking_id, user_id, i, area, price, state) VALUES ($2, $1, $1 || '.%s', 'ada', %s, %s, 100, $3)`, token, seat, area), event, id, state)
}

// scan is one of a ticket at the north gate.
func (h *house) scan(id string) tickets.Scan {
	return tickets.Scan{Payload: h.keys.Sign(id, event), Gate: "north", By: "gus"}
}

// rows counts scans of a ticket with a result.
func (h *house) rows(id string, result tickets.Result) (n int) {
	h.t.Helper()
	if err := h.pool.QueryRow(context.Background(), `SELECT count(*) FROM ticket_scans WHERE ticket_id = $1 AND result = $2`, id, result).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// refused is why a scan was.
func refused(err error) *tickets.RefusedError {
	var r *tickets.RefusedError
	if !errors.As(err, &r) {
		return &tickets.RefusedError{}
	}
	return r
}

func TestATicketAdmitsOnceAndThenTellsWhenAndWhere(t *testing.T) {
	h := setup(t)
	ticket, first, err := h.Scan(t.Context(), h.scan("tk_seat"))
	if err != nil || ticket != (tickets.Ticket{ID: "tk_seat", Event: event, Section: "Stalls", Row: "A", Label: "5"}) || first.Gate != "north" || first.By != "gus" || first.At.IsZero() {
		t.Fatalf("%+v at %+v, %v", ticket, first, err)
	}
	for range 2 {
		again := h.scan("tk_seat")
		again.Gate, again.By = "south", "eve"
		_, _, err := h.Scan(t.Context(), again)
		if r := refused(err); r.Why != tickets.Used || r.First == nil || !r.First.At.Equal(first.At) || r.First.Gate != "north" || r.First.By != "gus" || r.Ticket.Label != "5" {
			t.Errorf("again: %+v, %v", r, err)
		}
	}
	if ticket, _, err := h.Scan(t.Context(), h.scan("tk_floor")); err != nil || ticket.Area != "floor" || ticket.Section != "" {
		t.Errorf("a place on the floor: %+v, %v", ticket, err)
	}
	if admitted, used := h.rows("tk_seat", tickets.Admitted), h.rows("tk_seat", tickets.Used); admitted != 1 || used != 2 {
		t.Errorf("written down are %d admissions and %d refusals", admitted, used)
	}
}

func TestOfManyDoorsAtOnceOneAdmits(t *testing.T) {
	h := setup(t)
	for round := range 5 { // each admission undone by an operator
		var admitted, used atomic.Int32
		var doors errgroup.Group
		for range 20 {
			doors.Go(func() error {
				_, _, err := h.Scan(t.Context(), h.scan("tk_seat"))
				switch {
				case err == nil:
					admitted.Add(1)
				case refused(err).Why == tickets.Used:
					used.Add(1)
				default:
					return err
				}
				return nil
			})
		}
		if err := doors.Wait(); err != nil {
			t.Fatal(err)
		}
		if admitted.Load() != 1 || used.Load() != 19 {
			t.Fatalf("round %d: %d doors admit and %d refuse", round, admitted.Load(), used.Load())
		}
		var undone atomic.Int32
		var operators errgroup.Group
		for range 5 {
			operators.Go(func() error {
				_, _, err := h.Undo(t.Context(), "tk_seat", "ann", "the wrong door")
				if err == nil {
					undone.Add(1)
				} else if !errors.Is(err, tickets.ErrUnused) {
					return err
				}
				return nil
			})
		}
		if err := operators.Wait(); err != nil || undone.Load() != 1 {
			t.Fatalf("round %d: undone %d times, %v", round, undone.Load(), err)
		}
	}
	if admitted, undone := h.rows("tk_seat", tickets.Admitted), h.rows("tk_seat", tickets.Undone); admitted != 5 || undone != 5 {
		t.Errorf("written down are %d admissions and %d undone", admitted, undone)
	}
}

func TestATicketThatIsTakenBackAsItIsScannedAdmitsBeforeOrNever(t *testing.T) {
	h := setup(t)
	for n := range 30 {
		id := fmt.Sprintf("tk_race%d", n)
		h.issue(id, "paid", "NULL", "'floor'", "live")
		var scanned error
		var both errgroup.Group
		both.Go(func() error { _, _, scanned = h.Scan(t.Context(), h.scan(id)); return nil })
		both.Go(func() error {
			_, err := h.pool.Exec(t.Context(), `UPDATE tickets SET state = 'void' WHERE id = $1`, id)
			return err
		})
		if err := both.Wait(); err != nil {
			t.Fatal(err)
		}
		if scanned != nil && refused(scanned).Why != tickets.Void {
			t.Errorf("%s: %v", id, scanned)
		}
		if _, _, err := h.Scan(t.Context(), h.scan(id)); refused(err).Why != tickets.Void {
			t.Errorf("%s afterwards: %v", id, err)
		}
	}
}

func TestATicketWhoseMoneyGoesBackAdmitsNobodyAndSaysSo(t *testing.T) {
	h := setup(t)
	h.exec(`INSERT INTO refunds (id, event_id, booking_id, attempt_id, tickets, currency, amount, seats, reason, operator)
		SELECT 'rf_1', $1, booking_id, id, '{tk_seat}', currency, amount, 'killed', 'rain', 'ann' FROM attempts WHERE state = 'captured'`, event)
	h.exec(`UPDATE tickets SET refund_id = 'rf_1' WHERE id = 'tk_seat'`)
	if _, _, err := h.Scan(t.Context(), h.scan("tk_seat")); refused(err).Why != tickets.Refunding {
		t.Errorf("on its way back: %v", err)
	}
	h.exec(`UPDATE tickets SET state = 'void' WHERE id = 'tk_seat'`)
	if _, _, err := h.Scan(t.Context(), h.scan("tk_seat")); refused(err).Why != tickets.Refunded {
		t.Errorf("given back: %v", err)
	}
	if n, m := h.rows("tk_seat", tickets.Refunding), h.rows("tk_seat", tickets.Refunded); n != 1 || m != 1 {
		t.Errorf("written down are %d and %d", n, m)
	}
}

func TestARepeatOfAnAdmissionWhoseAnswerWasLostIsTheSame(t *testing.T) {
	h := setup(t)
	s := h.scan("tk_seat")
	s.Request = "k1"
	_, first, err := h.Scan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, again, err := h.Scan(t.Context(), s); err != nil || !again.At.Equal(first.At) || h.rows("tk_seat", tickets.Admitted) != 1 {
		t.Errorf("the repeat is of %v, not %v, %v", again.At, first.At, err)
	}
	for name, change := range map[string]func(*tickets.Scan){
		"another key": func(s *tickets.Scan) { s.Request = "k2" }, "no key": func(s *tickets.Scan) { s.Request = "" }, "another account's": func(s *tickets.Scan) { s.By = "eve" },
	} {
		other := s
		change(&other)
		if _, _, err := h.Scan(t.Context(), other); refused(err).Why != tickets.Used {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatAdmitsNobodyIsTold(t *testing.T) {
	h := setup(t)
	for id, why := range map[string]tickets.Result{"tk_void": tickets.Void, "tk_early": tickets.Pending} {
		if _, _, err := h.Scan(t.Context(), h.scan(id)); refused(err).Why != why || h.rows(id, why) != 1 {
			t.Errorf("%s: %v", id, err)
		}
	}
	elsewhere := h.scan("tk_seat")
	elsewhere.Event = "derby"
	if _, _, err := h.Scan(t.Context(), elsewhere); refused(err).Why != tickets.WrongEvent || refused(err).Ticket.Event != event {
		t.Errorf("at a door of another event: %v", err)
	}
	if _, _, err := h.Scan(t.Context(), h.scan("tk_none")); !errors.Is(err, tickets.ErrUnknown) {
		t.Errorf("signed here, and of no ticket: %v", err)
	}
	if _, _, err := h.Scan(t.Context(), tickets.Scan{Payload: h.keys.Sign("tk_seat", "derby"), By: "gus"}); !errors.Is(err, tickets.ErrUnknown) {
		t.Errorf("signed here for another event: %v", err)
	}
	if _, _, err := h.Scan(t.Context(), tickets.Scan{Payload: "tk_seat", By: "gus"}); !errors.Is(err, tickets.ErrForged) {
		t.Errorf("an id alone: %v", err)
	}
	here := h.scan("tk_seat")
	here.Event = event
	if _, _, err := h.Scan(t.Context(), here); err != nil { // none of these has used it
		t.Error(err)
	}
	if _, _, err := h.Undo(t.Context(), "tk_floor", "ann", "why not"); !errors.Is(err, tickets.ErrUnused) {
		t.Errorf("undone before it was used: %v", err)
	}
	if _, _, err := h.Undo(t.Context(), "tk_none", "ann", "why not"); !errors.Is(err, tickets.ErrUnknown) {
		t.Errorf("undone of no ticket: %v", err)
	}
}

func TestWhatWasScannedIsNeverChanged(t *testing.T) {
	h := setup(t)
	if _, _, err := h.Scan(t.Context(), h.scan("tk_seat")); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`UPDATE ticket_scans SET gate = 'south'`, `DELETE FROM ticket_scans`, `TRUNCATE ticket_scans`,
		`INSERT INTO ticket_scans (ticket_id, turn, result, account) VALUES ('tk_seat', 0, 'admitted', 'eve')`} {
		if _, err := h.pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s is carried out", sql)
		}
	}
}

func TestADoorReadsWhatATicketWasFromItsIndex(t *testing.T) {
	h := setup(t)
	h.exec(`INSERT INTO tickets (id, event_id, booking_id, user_id, area, price) SELECT 'tk_' || n, $1, $1 || '.paid', 'ada', 'floor', 1 FROM generate_series(1, 20000) n`, event)
	h.exec(`INSERT INTO ticket_scans (ticket_id, turn, result, account) SELECT 'tk_' || n, 0, result, 'gus' FROM generate_series(1, 20000) n, unnest('{admitted,used}'::text[]) result`)
	h.exec(`ANALYZE ticket_scans`)
	var plan string
	err := h.pool.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) `+newest, "tk_700").Scan(&plan)
	if err != nil || !strings.Contains(plan, "ticket_scans_once_a_turn") || strings.Contains(plan, `"Sort"`) {
		t.Errorf("the plan is %s, %v", plan, err)
	}
	if _, _, err := h.Scan(t.Context(), h.scan("tk_700")); refused(err).Why != tickets.Used {
		t.Error(err)
	}
}

// newest is what a scan asks.
const newest = `SELECT turn, result, at, gate, account, request FROM ticket_scans
	WHERE ticket_id = $1 AND result IN ('admitted', 'undone') ORDER BY turn DESC, result DESC LIMIT 1`
