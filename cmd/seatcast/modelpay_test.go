package main

import (
	"net/http"

	"seatcast/seatmap"
)

func (m *model) repeat(o *purchase) {
	a, when := m.call(func() answer { return m.send(o, o.seats) })
	if m.held(a, o, http.StatusOK, when) {
		if a.BookingID != o.id {
			m.wrong(a, o, "the booking it is")
		}
		m.stays(a, o)
	}
}

// reuse sends another request under a purchase's key.
func (m *model) reuse(o *purchase) {
	other := m.window[m.what.dice%len(m.window)]
	a, when := m.call(func() answer { return m.send(o, []int{other}) })
	surely, perhaps := m.taken([]int{other}, when)
	switch {
	case a.Code == "seats_taken" && len(o.seats) == 0: // memory knows no token that holds places only
		m.wantTaken(a, o, surely, perhaps)
	case o.state == "sold", len(o.seats) == 1 && o.seats[0] == other:
		m.held(a, o, http.StatusOK, when)
	case a.Code == "idempotency_key_reused" && o.live(when) != no:
		m.want(a, o, http.StatusUnprocessableEntity, "idempotency_key_reused")
	default:
		m.want(a, o, http.StatusConflict, "hold_expired")
		if o.live(when) == yes {
			m.wrong(a, o, "not over")
		}
	}
}

func (m *model) extend(o *purchase) {
	a, when := m.call(func() answer { return m.as(o.user).extend(o.id) })
	if m.held(a, o, http.StatusOK, when) {
		m.lasts(a, o, modelTerms.Hold, when)
	}
}

func (m *model) release(o *purchase) {
	a, _ := m.call(func() answer { return m.as(o.user).giveBack(o.id) })
	if o.state == "sold" || o.state == "lost" {
		m.want(a, o, http.StatusConflict, "booking_final")
		return
	}
	m.want(a, o, http.StatusNoContent, "")
	o.state = "released"
}

// foreign tries everything with somebody else's token.
func (m *model) foreign(o *purchase) {
	s := m.as("stranger")
	calls := []func() answer{
		func() answer { return s.extend(o.id) },
		func() answer { return s.giveBack(o.id) },
		func() answer { return s.booking(o.id) },
		func() answer { return s.pay(o.id, "", goodCard) },
		func() answer { return s.confirm(o.id) },
	}
	a, _ := m.call(calls[m.what.dice%len(calls)])
	m.want(a, o, http.StatusForbidden, "not_your_booking")
}

// asks makes a payment and deals with what no card decides: it says whether the
// purchase was held.
func (m *model) asks(o *purchase, card string) (answer, span, bool) {
	key := ""
	if m.what.dice%2 == 0 && o.payKey == "" {
		key = "paid with " + card
	}
	a, when := m.call(func() answer { return m.as(o.user).pay(o.id, key, card) })
	switch {
	case o.state == "sold":
		m.want(a, o, http.StatusConflict, "booking_final")
		return a, when, false
	case o.state == "lost":
		m.want(a, o, http.StatusConflict, "seats_lost")
		return a, when, false
	case a.Code == "hold_expired":
		return a, when, m.held(a, o, http.StatusCreated, when)
	case o.live(when) == no:
		m.wrong(a, o, "hold_expired")
	}
	o.paid = true
	if key != "" {
		o.payKey, o.card, o.attempt = key, card, a.Attempt.ID
	}
	return a, when, true
}

func (m *model) approve(o *purchase, card string) {
	a, _, held := m.asks(o, card)
	switch {
	case !held:
	case m.tickets[o.user]+o.size() > modelTerms.SeatsPerUser:
		m.lost(a, o, "account_limit")
	case o.places > m.pit:
		m.lost(a, o, "area_full")
	default:
		m.want(a, o, http.StatusCreated, "")
		if a.State != "sold" || a.Total.Amount != o.money {
			m.wrong(a, o, "sold")
		}
		m.sell(o)
		m.offerFresh(o.seats)
	}
}

func (m *model) lost(a answer, o *purchase, reason string) {
	m.want(a, o, http.StatusConflict, "seats_lost")
	if a.Reason != reason {
		m.wrong(a, o, "lost for "+reason)
	}
	o.state = "lost"
}

// offerFresh puts never sold seats into the window for half of those sold: the
// rest goes on being asked for, and refused.
func (m *model) offerFresh(sold []int) {
	for k, i := range m.window {
		for _, s := range sold {
			if i == s && (m.what.dice+k)%4 > 0 && m.fresh < modelSeats {
				m.window[k] = m.fresh
				m.fresh++
			}
		}
	}
}

func (m *model) decline(o *purchase) {
	a, when, held := m.asks(o, declinedCard)
	if !held {
		return
	}
	m.want(a, o, http.StatusCreated, "")
	if a.State != "held" || a.Attempt.State != "failed" {
		m.wrong(a, o, "held still, the attempt failed")
	}
	o.loose = true
	m.lasts(a, o, modelTerms.Pay, when)
}

// stays fails when an answer tells another end than the purchase has.
func (m *model) stays(a answer, o *purchase) {
	m.house.t.Helper()
	until := a.ExpiresAt.Add(modelTerms.Grace)
	if !o.can(until) {
		m.wrong(a, o, "the end it has")
	}
	o.until = until
}

// payAgain repeats a payment under its key, or sends another under it.
func (m *model) payAgain(o *purchase) {
	if o.payKey == "" {
		m.read(o)
		return
	}
	card := o.card
	if m.what.dice%3 == 0 {
		card = lateCard
	}
	a, _ := m.call(func() answer { return m.as(o.user).pay(o.id, o.payKey, card) })
	switch {
	case card != o.card:
		m.want(a, o, http.StatusUnprocessableEntity, "idempotency_key_reused")
	case o.state == "lost":
		m.want(a, o, http.StatusConflict, "seats_lost")
	default:
		m.want(a, o, http.StatusOK, "")
		if a.Attempt.ID != o.attempt {
			m.wrong(a, o, "attempt "+o.attempt)
		}
	}
}

func (m *model) confirm(o *purchase) {
	a, when := m.call(func() answer { return m.as(o.user).confirm(o.id) })
	switch o.state {
	case "sold":
		m.want(a, o, http.StatusOK, "")
		m.wantState(a, o, "sold")
	case "lost":
		m.want(a, o, http.StatusConflict, "seats_lost")
	default:
		m.held(a, o, http.StatusOK, when)
	}
}

func (m *model) read(o *purchase) {
	a, when := m.call(func() answer { return m.as(o.user).booking(o.id) })
	m.want(a, o, http.StatusOK, "")
	switch live := o.live(when); {
	case live == maybe:
	case live == yes:
		m.wantState(a, o, "held")
		m.stays(a, o)
	case o.state == "held":
		m.wantState(a, o, "expired")
	case o.state == "released" && a.State == "expired" && o.paid: // it had ended before it was given back
	default:
		m.wantState(a, o, o.state)
	}
}

func (m *model) wantState(a answer, o *purchase, state string) {
	m.house.t.Helper()
	if a.State != state || state == "sold" && len(a.Tickets) != o.size() {
		m.wrong(a, o, state)
	}
}

// prices are what each seat costs, by index.
func (h *house) prices() []int64 {
	prices := make([]int64, h.chart.Seats)
	h.chart.Each(func(_ *seatmap.Section, _ *seatmap.Row, s *seatmap.Seat) { prices[s.I] = h.priceOf(s.Category) })
	return prices
}

// priceOf is what create has set for a category.
func (h *house) priceOf(category string) int64 {
	for i, c := range h.chart.Categories {
		if c.Name == category {
			return int64(1000 * (i + 1))
		}
	}
	return 0
}

func (m *model) pitPrice() int64 { return m.priceOf("Stalls") }
