package checkout_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"seatcast/checkout"
)

func TestAnAccountSeesItsBookingsTheNewestFirstPageByPage(t *testing.T) {
	h := setup(t, stamped, dear)
	h.run(h.desk.Run)
	var booked []string
	for n := range 5 {
		id := h.hold("ada", []int{n}, 0)
		h.pay(id, "ada", []string{"4242424242424242", "4000000000000002"}[n%2])
		booked = append(booked, id)
	}
	h.pay(h.hold("eve", []int{30}, 0), "eve", "4242424242424242")
	h.hold("ada", []int{20}, 0) // only in its basket
	h.quietens()
	h.exec(`UPDATE bookings SET created_at = date_trunc('second', created_at) WHERE user_id = 'ada'`) // some made in the same moment
	want := ask[[]string](h, `SELECT array_agg(id ORDER BY created_at DESC, id DESC) FROM bookings WHERE user_id = 'ada'`)
	if len(want) != len(booked) {
		t.Fatalf("booked %v, and there are %v", booked, want)
	}

	var seen []string
	for next, pages := "", 0; ; pages++ {
		list := read[checkout.Orders](h, "/me/bookings?limit=2&before="+next, "ada")
		for _, o := range list.Bookings {
			seen = append(seen, o.BookingID)
			sold := o.State == checkout.BookingSold
			switch {
			case o.Event.ID != event || o.Event.Name != "Tosca" || o.Event.Venue != "Opera" || o.Event.Zone != "Europe/Paris" || o.BookedAt.IsZero():
				t.Errorf("the event is %+v", o.Event)
			case len(o.Seats) != 1 || o.Total.Amount != 1000+33+7+100 || len(o.Fees) != 3:
				t.Errorf("it is of %+v for %+v", o.Seats, o.Total)
			case sold && (len(o.Tickets) != 1 || o.Tickets[0].QR == "" || o.Tickets[0].AllIn != o.Total.Amount || o.ExpiresAt != nil):
				t.Errorf("sold as %+v", o)
			case !sold && (o.State != checkout.BookingHeld || len(o.Tickets) != 0 || o.ExpiresAt == nil):
				t.Errorf("declined as %+v", o)
			}
		}
		if next = list.Next; next == "" {
			if pages != 2 {
				t.Errorf("%d pages of two are followed by none", pages)
			}
			break
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("it sees\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if list := read[checkout.Orders](h, "/me/bookings", "nobody"); list.Bookings == nil || len(list.Bookings) != 0 {
		t.Errorf("who has booked nothing sees %+v", list)
	}
}

func TestABookingInTheListEndsWhenItsHoldDoes(t *testing.T) {
	h := setup(t)
	id := h.hold("ada", []int{1}, 0)
	h.pay(id, "ada", "4000000000000002")
	h.exec(`UPDATE bookings SET deadline = now() - interval '1 second' WHERE id = $1`, id)
	if o := read[checkout.Orders](h, "/me/bookings", "ada").Bookings[0]; o.State != checkout.BookingHeld {
		t.Errorf("its owner has extended it, and it is %s", o.State)
	}
	h.late(id)
	if o := read[checkout.Orders](h, "/me/bookings", "ada").Bookings[0]; o.State != checkout.BookingExpired || o.ExpiresAt != nil {
		t.Errorf("its hold is over, and it is %s until %v", o.State, o.ExpiresAt)
	}
}

func TestAListIsAskedForInWordsOfItsOwn(t *testing.T) {
	h := setup(t)
	for _, query := range []string{"limit=0", "limit=51", "limit=x", "before=!", "before=eA", "before=MTIz", "before=LTEgb3BlcmEuYQ", "before=OTk5OTk5OTk5OTk5OTk5OTk5OSBvcGVyYS5h"} {
		if r := h.call(http.MethodGet, "/me/bookings?"+query, "ada", nil); r.Status != http.StatusBadRequest || r.Code != "bad_request" {
			t.Errorf("%s: %d %s", query, r.Status, r.Code)
		}
	}
	if r := h.call(http.MethodGet, "/me/bookings", "", nil); r.Status != http.StatusUnauthorized {
		t.Errorf("who is nobody: %d", r.Status)
	}
}

func TestTheListOfAnAccountIsReadFromItsIndex(t *testing.T) {
	h := setup(t)
	h.exec(`INSERT INTO bookings (id, event_id, user_id, state, seats, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
		SELECT $1 || '.' || n, $1, 'user-' || n % 500, 'expired', '{}', 'EUR', 0, '{}', 'h', now(), now(), now() FROM generate_series(1, 20000) n`, event)
	h.exec(`ANALYZE bookings`)
	rows, err := h.pool.Query(t.Context(), `EXPLAIN SELECT id FROM bookings WHERE user_id = 'user-7' AND (created_at, id) < (now(), $1) ORDER BY created_at DESC, id DESC LIMIT 21`, fmt.Sprint(event, ".9"))
	must(t, err)
	var plan strings.Builder
	for rows.Next() {
		var line string
		must(t, rows.Scan(&line))
		plan.WriteString(line + "\n")
	}
	must(t, rows.Err())
	if !strings.Contains(plan.String(), "bookings_newest") || strings.Contains(plan.String(), "Sort") {
		t.Errorf("the plan is\n%s", &plan)
	}
}
