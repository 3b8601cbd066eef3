package holds

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"seatcast/seatmap"
	"seatcast/web"
)

// What one account may have is counted in its index, by the scripts that change
// it: see account.lua. Tickets are counted again where they are sold, by the
// arbiter of checkout; the index only spares a shopper the way to it.

// orAny is a cap as a script is told it.
func orAny(most int) int64 {
	if most == 0 {
		return math.MaxInt32
	}
	return int64(most)
}

// places are all the places of areas.
func places(areas map[string]int) (n int) {
	for _, quantity := range areas {
		n += quantity
	}
	return n
}

// overCap is the error a script's word for a cap stands for.
func overCap(r reply) error {
	switch r.word {
	case "bought":
		return ErrBought
	case "many":
		return ErrMany
	case "pace":
		ms, _ := r.rest[0].(int64)
		return &PaceError{Wait: time.Duration(ms) * time.Millisecond}
	default:
		return ErrOverCap
	}
}

func tooManyHeld(sale *seatmap.Sale) error {
	return &web.Problem{Status: http.StatusTooManyRequests, Code: "too_many_held",
		Detail: fmt.Sprintf("one account holds at most %d seats at a time, the tickets it has bought among them; "+
			"give some back or pay for them", sale.Terms.SeatsPerUser)}
}

func allBought(sale *seatmap.Sale) error {
	return &web.Problem{Status: http.StatusForbidden, Code: "account_limit",
		Detail: fmt.Sprintf("one account buys at most %d tickets of this event: with those it has bought these would be more", sale.Terms.SeatsPerUser)}
}

func tooManyBookings(sale *seatmap.Sale) error {
	return &web.Problem{Status: http.StatusTooManyRequests, Code: "too_many_bookings",
		Detail: fmt.Sprintf("one account holds seats in at most %d bookings at a time; pay for one, give one back, or swap its seats", sale.Terms.HoldsPerUser)}
}

// tooManyHolds says when to come back, which is when the next hold is granted.
func tooManyHolds(sale *seatmap.Sale, e *PaceError) error {
	return &web.Problem{Status: http.StatusTooManyRequests, Code: "too_many_holds", RetryAfter: max(e.Wait, time.Second),
		Detail: fmt.Sprintf("one account holds seats %d times an hour, and then must wait before each hold; "+
			"what it holds stays held: pay for it, or swap its seats", sale.Terms.HoldsPerHour)}
}
