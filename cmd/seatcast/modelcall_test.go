package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// op is an operation as rapid draws it: what to do, and numbers that stand for
// accounts, bookings and seats, whatever these are when its turn comes.
type op struct {
	kind   string
	user   int
	back   int   // which of the latest orders
	picks  []int // of the window of seats
	places int
	dice   int
}

const (
	modelUsers  = 5
	modelWindow = 60
)

func drawOp() *rapid.Generator[op] {
	var kinds []string
	for kind, weight := range map[string]int{"take": 36, "repeat": 6, "reuse": 4, "extend": 11, "release": 8, "foreign": 8,
		"approve": 8, "decline": 5, "pay again": 4, "confirm": 4, "read": 6} {
		kinds = append(kinds, slices.Repeat([]string{kind}, weight)...)
	}
	slices.Sort(kinds) // the order of a map is no seed's
	return rapid.Custom(func(t *rapid.T) op {
		o := op{kind: kinds[fair(t, len(kinds))], user: fair(t, modelUsers), back: fair(t, 16), places: max(0, fair(t, 12)-9), dice: fair(t, 1<<12)}
		for range fair(t, 7) {
			if pick := fair(t, modelWindow); !slices.Contains(o.picks, pick) {
				o.picks = append(o.picks, pick)
			}
		}
		return o
	})
}

// fair draws a number below n. rapid's own draws favour small ones, for finding
// small counterexamples: here one kind of operation would be half of all.
func fair(t *rapid.T, n int) (drawn int) {
	for range 12 {
		drawn <<= 1
		if rapid.Bool().Draw(t, "bit") {
			drawn++
		}
	}
	return drawn % n
}

// model drives one operation after the other and knows what must be answered.
type model struct {
	*house
	books
	tally
	api    *node
	seed   int
	ids    []string // of seats, by index
	prices []int64
	window []int // seats on offer, some of them sold
	fresh  int   // the next seat that never was
	serial int

	now  int // the operation under way
	what op
}

func newModel(h *house, api *node, seed int) *model {
	m := &model{house: h, api: api, seed: seed, ids: h.seats(h.chart.Seats), prices: h.prices(), fresh: modelWindow,
		books: books{has: map[int]*purchase{}, pit: modelPit, tickets: map[string]int{}}}
	for i := range modelWindow {
		m.window = append(m.window, i)
	}
	return m
}

// user is an account of the model; one with many tickets makes way for a new one.
func (m *model) user(k int) string {
	for round := 0; ; round++ {
		user := fmt.Sprintf("model-%d-%d", k, round)
		if m.tickets[user] < modelTerms.SeatsPerUser-2 {
			return user
		}
	}
}

func (m *model) as(user string) shopper { return m.shopper(m.api, user) }

func (m *model) step(i int, o op) {
	m.now, m.what = i, o
	purchase := m.recent(o.back)
	if purchase == nil || o.kind == "take" {
		m.takeNew()
		return
	}
	switch o.kind {
	case "repeat":
		m.repeat(purchase)
	case "reuse":
		m.reuse(purchase)
	case "extend":
		m.extend(purchase)
	case "release":
		m.release(purchase)
	case "foreign":
		m.foreign(purchase)
	case "approve":
		m.approve(purchase, []string{goodCard, twiceCard, earlyCard}[o.dice%3])
	case "decline":
		m.decline(purchase)
	case "pay again":
		m.payAgain(purchase)
	case "confirm":
		m.confirm(purchase)
	default:
		m.read(purchase)
	}
}

// call makes a request and notes between which moments it was answered.
func (m *model) call(f func() answer) (answer, span) {
	from := time.Now()
	a := f()
	m.note(m.what.kind, a)
	return a, span{from, time.Now()}
}

// wrong ends the test: the answer is not the model's.
func (m *model) wrong(a answer, o *purchase, want string) {
	m.house.t.Helper()
	m.house.t.Fatalf("operation %d of seed %d, %+v: want %s, got %d %s\npurchase: %v\nnow: %s",
		m.now, m.seed, m.what, want, a.status, a.raw, o, time.Now().Format("05.000"))
}

func (m *model) want(a answer, o *purchase, status int, code string) {
	m.house.t.Helper()
	if a.status != status || a.Code != code {
		m.wrong(a, o, fmt.Sprint(status, " ", code))
	}
}

// held says whether a purchase was found held: answered with status, or with
// hold_expired, or that it is sold. Where the model knows, it must be so.
func (m *model) held(a answer, o *purchase, status int, when span) bool {
	m.house.t.Helper()
	live := o.live(when)
	switch {
	case o.state == "sold":
		m.want(a, o, http.StatusConflict, "booking_final")
		return false
	case a.status == status && a.Code == "" && live != no:
		return true
	case a.status == http.StatusConflict && a.Code == "hold_expired" && live != yes:
		o.over = true
		return false
	}
	m.wrong(a, o, fmt.Sprintf("%d if it is held: %v", status, live))
	return false
}

// lasts takes in a new end, which must be what comes of extending by so long.
func (m *model) lasts(a answer, o *purchase, by time.Duration, when span) {
	m.house.t.Helper()
	least, most := o.extended(by+modelTerms.Grace, when)
	until := a.ExpiresAt.Add(modelTerms.Grace)
	if until.Before(least) || until.Before(o.until) || until.After(most) && !o.can(until) {
		m.wrong(a, o, fmt.Sprintf("an end between %s and %s", least.Format("05.000"), most.Format("05.000")))
	}
	o.until = until
}

func (m *model) takeNew() {
	m.serial++
	o := &purchase{user: m.user(m.what.user), key: fmt.Sprint("purchase ", m.serial), places: m.what.places, state: "held"}
	for _, pick := range m.what.picks {
		o.seats = append(o.seats, m.window[pick])
		o.money += m.prices[m.window[pick]]
	}
	slices.Sort(o.seats)
	o.money += int64(o.places) * m.pitPrice()
	if o.size() == 0 {
		o.places, o.money = 1, m.pitPrice()
	}
	a, when := m.call(func() answer { return m.send(o, o.seats) })
	surely, perhaps := m.taken(o.seats, when)
	least, most := m.holding(o.user, when)
	bought := m.tickets[o.user]
	switch a.Code {
	case "too_many_seats":
		if o.size() <= modelTerms.SeatsPerBooking || a.status != http.StatusUnprocessableEntity {
			m.wrong(a, o, "not too many seats")
		}
		return
	case "seats_taken":
		m.wantTaken(a, o, surely, perhaps)
		return
	}
	switch {
	case o.size() > modelTerms.SeatsPerBooking:
		m.wrong(a, o, "too many seats")
	case len(surely) > 0:
		m.wrong(a, o, fmt.Sprint("taken: ", surely))
	case o.places > m.pit:
		m.want(a, o, http.StatusConflict, "area_full")
	case bought > 0 && bought+o.size() > modelTerms.SeatsPerUser:
		m.want(a, o, http.StatusForbidden, "account_limit")
	case a.Code == "too_many_held" && len(o.seats) > 0 && bought+most+o.size() > modelTerms.SeatsPerUser:
	case bought+least+o.size() > modelTerms.SeatsPerUser && len(o.seats) > 0:
		m.want(a, o, http.StatusTooManyRequests, "too_many_held")
	default:
		m.want(a, o, http.StatusCreated, "")
		m.begin(a, o, when)
	}
}

func (m *model) wantTaken(a answer, o *purchase, surely, perhaps map[int]bool) {
	m.house.t.Helper()
	told := map[int]bool{}
	for _, id := range a.Seats {
		i := slices.Index(m.ids, fmt.Sprint(id))
		if told[i] = true; !surely[i] && !perhaps[i] {
			m.wrong(a, o, fmt.Sprintf("seat %d not to be taken", i))
		}
	}
	for i := range surely {
		if !told[i] {
			m.wrong(a, o, fmt.Sprintf("told that seat %d is taken", i))
		}
	}
	if len(told) == 0 || a.status != http.StatusConflict {
		m.wrong(a, o, "the seats that are taken")
	}
}

// begin takes a new purchase in.
func (m *model) begin(a answer, o *purchase, when span) {
	m.house.t.Helper()
	o.id, o.limit = a.BookingID, a.Cap.Add(modelTerms.Grace)
	o.until = when.from
	m.lasts(a, o, modelTerms.Hold, when)
	if a.State != "held" || a.Total.Amount != o.money || len(a.Seats) != len(o.seats) ||
		a.Cap.Before(when.from.Add(modelTerms.Cap-slack)) || a.Cap.After(when.to.Add(modelTerms.Cap+slack)) {
		m.wrong(a, o, fmt.Sprintf("held, for %d, at most until %v from now", o.money, modelTerms.Cap))
	}
	m.take(o)
}

// send asks for a purchase's places and for seats, under its key.
func (m *model) send(o *purchase, seats []int) answer {
	ids := make([]string, len(seats))
	for k, i := range seats {
		ids[k] = m.ids[i]
	}
	var areas []area
	if o.places > 0 {
		areas = []area{{"pit", o.places}}
	}
	return m.as(o.user).take(m.event, o.key, ids, areas...)
}
