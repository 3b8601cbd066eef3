package onsale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"seatcast/checkout/sandbox"
	"seatcast/loadtest/peers"
	"seatcast/seatmap"
)

// shop is what all shoppers share.
type shop struct {
	*clients
	event   string
	tickets []string // names of the seats, by index
	fail    float64
	patient time.Duration // how long a shopper waits for a verdict

	mu     sync.Mutex
	failed int            // how many cards that fail were used
	cards  map[string]int // payments by card
	story  map[string]int // what became of shoppers and bookings
	sold   time.Time      // when the last seat was, as far as a shopper was told
}

func (s *shop) tell(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story[what]++
}

// card is the one a payment is made with: a good one, or in its turn one of
// those that fail or behave in some other way.
func (s *shop) card() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	card := sandbox.CardApprove
	if rand.Float64() < s.fail {
		for card == sandbox.CardApprove {
			card = sandbox.Cards[s.failed%len(sandbox.Cards)].Number
			s.failed++
		}
	}
	s.cards[card]++
	return card
}

// shopper is one account.
type shopper struct {
	*shop
	name, token string
	keys        int
	bookings    []string // of which a payment has begun
}

func (p *shopper) key() string {
	p.keys++
	return p.name + "-" + strconv.Itoa(p.keys)
}

// booking is one as the API shows it.
type booking struct {
	BookingID string
	State     string
	Reason    string
	Total     seatmap.Money
	Seats     []struct{ TicketID string }
	Tickets   []struct {
		ID, TicketID, Status string
		AllIn                int64
	}
	Attempts []struct{ ID, State, Reason string }
}

// receipt is the answer to a payment.
type receipt struct {
	Attempt struct{ ID, State string }
	State   string
	Action  struct{ URL string }
}

// Chances of what shoppers do besides buying.
const (
	swaps   = 0.10
	extends = 0.20
	givesUp = 0.08
	retries = 0.70 // after a loss or a decline
	rounds  = 3    // of holding and paying
)

// buys is a shopper's evening.
func (p *shopper) buys(ctx context.Context) error {
	for range rounds {
		b, err := p.holds(ctx)
		if err != nil || b.BookingID == "" {
			return err
		}
		if err := p.dallies(ctx, &b); err != nil {
			return err
		}
		if rand.Float64() < givesUp {
			p.tell("gave up")
			_, err := p.call(ctx, "give back", p.token, "DELETE", "/v1/bookings/"+b.BookingID, "", nil)
			return err
		}
		p.bookings = append(p.bookings, b.BookingID)
		state, err := p.pays(ctx, b.BookingID)
		if err != nil {
			return err
		}
		p.tell("booking " + state)
		if state == "sold" || rand.Float64() > retries {
			return nil
		}
	}
	return nil
}

// looksAgain is how often a shopper looks at the map before she leaves.
const looksAgain = 8

// holds looks at the map and holds seats, or leaves without any.
func (p *shopper) holds(ctx context.Context) (b booking, err error) {
	n := 1 + rand.IntN(4)
	for range looksAgain {
		free, err := p.looks(ctx)
		if err != nil {
			return b, err
		}
		if len(free) == 0 {
			break
		}
		n = min(n, len(free))
		wish := map[string]any{"bestAvailable": map[string]int{"quantity": n}}
		if rand.IntN(2) == 0 {
			wish = map[string]any{"ticketIds": p.choice(free, n)}
		}
		a, err := p.call(ctx, "hold", p.token, "POST", "/v1/bookings/"+p.event, p.key(), wish)
		if err != nil {
			return b, err
		}
		switch {
		case a.ok():
			return b, json.Unmarshal(a.body, &b)
		case a.code == "too_few_left":
			n = 1
		case a.code != "seats_taken" && a.code != "sold_out":
			return b, fmt.Errorf("hold: %v", a)
		}
		p.tell("hold lost")
		if err := peers.Wait(ctx, 50*time.Millisecond+rand.N(100*time.Millisecond)); err != nil {
			return b, err
		}
	}
	p.tell("left without seats")
	return b, nil
}

// looks returns the seats the map shows as free.
func (p *shopper) looks(ctx context.Context) (free []int, err error) {
	a, err := p.call(ctx, "map", p.token, "GET", "/v1/events/"+p.event+"/seatmap", "", nil)
	if err != nil {
		return nil, err
	}
	var s seatmap.Snapshot
	if err := json.Unmarshal(a.body, &s); err != nil || !a.ok() {
		return nil, errors.Join(fmt.Errorf("map: %v", a), err)
	}
	for i := range p.tickets {
		if s.Map.At(i) == seatmap.Available {
			free = append(free, i)
		}
	}
	return free, nil
}

// choice names n of the free seats, beside each other as far as they go.
func (p *shopper) choice(free []int, n int) (names []string) {
	from := rand.IntN(len(free) - n + 1)
	for _, i := range free[from : from+n] {
		names = append(names, p.tickets[i])
	}
	return names
}

// dallies swaps and extends what is held, or does not.
func (p *shopper) dallies(ctx context.Context, b *booking) error {
	if rand.Float64() < extends {
		if a, err := p.call(ctx, "extend", p.token, "POST", "/v1/bookings/"+b.BookingID+"/extend", "", nil); err != nil {
			return err
		} else if !a.ok() {
			p.tell("extend " + a.code)
		}
	}
	if rand.Float64() >= swaps {
		return nil
	}
	free, err := p.looks(ctx)
	if err != nil || len(free) < len(b.Seats) {
		return err
	}
	a, err := p.call(ctx, "swap", p.token, "PUT", "/v1/bookings/"+b.BookingID+"/seats", "", map[string]any{"ticketIds": p.choice(free, len(b.Seats))})
	if err == nil && a.ok() {
		p.tell("swapped")
		return json.Unmarshal(a.body, b)
	}
	return err
}

// pays pays with one card after the other until the booking is decided.
func (p *shopper) pays(ctx context.Context, id string) (state string, err error) {
	for {
		card := p.card()
		a, err := p.call(ctx, "pay", p.token, "POST", "/v1/bookings/"+id+"/payment", p.key(), map[string]string{"paymentMethod": card})
		if err != nil {
			return "", err
		}
		var r receipt
		switch {
		case a.ok():
			if err := json.Unmarshal(a.body, &r); err != nil {
				return "", err
			}
		case a.code == "hold_expired" || a.code == "seats_lost" || a.code == "booking_final" || a.code == "unknown_booking":
			return a.code, nil
		default:
			return "", fmt.Errorf("pay: %v", a)
		}
		if r.Action.URL != "" && rand.IntN(3) > 0 { // or she closes the bank's page
			verdict := []string{"approve", "approve", "decline"}[rand.IntN(3)]
			if _, err := p.once(ctx, ask{token: p.token, method: "POST", path: r.Action.URL, body: []byte("verdict=" + verdict), form: true}); err != nil {
				p.tell("bank's page without an answer")
			}
		}
		if state, err = p.waits(ctx, id); err != nil || state != "held" {
			return state, err
		}
		p.tell("declined")
		if rand.Float64() > retries {
			return "left unpaid", nil
		}
	}
}

// waits asks until a booking is decided and its money is taken, or as long as a
// shopper waits.
func (p *shopper) waits(ctx context.Context, id string) (state string, err error) {
	for began := time.Now(); ; {
		a, err := p.call(ctx, "confirm", p.token, "PUT", "/v1/bookings/"+id+"/confirm", "", nil)
		if err != nil {
			return "", err
		}
		var b booking
		switch {
		case a.ok():
			if err := json.Unmarshal(a.body, &b); err != nil {
				return "", err
			}
		case a.code == "seats_lost" || a.code == "hold_expired":
			return a.code, nil
		case a.status >= 500:
		default:
			return "", fmt.Errorf("confirm: %v", a)
		}
		if state := b.State; a.ok() && state != "paying" && (state != "sold" || b.valid()) {
			if state == "sold" {
				p.mu.Lock()
				p.sold = time.Now()
				p.mu.Unlock()
			}
			return state, nil
		}
		if time.Since(began) > p.patient {
			return "still " + b.State, nil
		}
		if err := peers.Wait(ctx, 200*time.Millisecond+rand.N(300*time.Millisecond)); err != nil {
			return "", err
		}
	}
}

func (b booking) valid() bool {
	for _, t := range b.Tickets {
		if t.Status != "valid" {
			return false
		}
	}
	return len(b.Tickets) > 0
}

// statement is what a shopper is told of her bookings in the end.
func (p *shopper) statement(ctx context.Context) (all []booking, err error) {
	for _, id := range p.bookings {
		a, err := p.call(ctx, "statement", p.token, "GET", "/v1/bookings/"+id, "", nil)
		if err != nil {
			return nil, err
		}
		if a.code == "unknown_booking" { // no payment of it has begun after all
			continue
		}
		var b booking
		if err := json.Unmarshal(a.body, &b); err != nil || !a.ok() {
			return nil, errors.Join(fmt.Errorf("statement: %v", a), err)
		}
		all = append(all, b)
	}
	return all, nil
}
