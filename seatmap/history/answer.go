package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seatcast/seatmap"
)

// Baskets reads what booking tokens hold; holds has it.
type Baskets interface {
	// Basket returns a basket, or seatmap.ErrNoBasket once it is forgotten, ten
	// minutes after its hold.
	Basket(ctx context.Context, event, token string) (seatmap.Basket, error)
}

// Answer is the history of a seat as the API shows it.
type Answer struct {
	TicketID string `json:"ticketId"`
	Section  string `json:"section"`
	Row      string `json:"row"`
	Label    string `json:"label"`

	At     *time.Time `json:"at,omitempty"` // the moment asked about
	Status string     `json:"status"`       // as the newest entry says, or at that moment; unknown before anything was recorded

	Entries []Told     `json:"entries"` // newest first
	Gaps    []ToldGap  `json:"gaps"`    // in which something may have happened that is no entry; newest first
	Through *ToldPoint `json:"through"` // the last change of the event that is recorded; null: none is
	Next    *int64     `json:"next"`    // what to send as before for the page that follows, or null
}

// Told is an entry as the API shows it.
type Told struct {
	At      time.Time  `json:"at"` // Redis clock
	N       int64      `json:"n"`
	What    What       `json:"what"`
	Status  string     `json:"status"`            // what the map showed from then on
	Seen    bool       `json:"seen,omitempty"`    // found so then; when it became so is not known
	Until   *time.Time `json:"until,omitempty"`   // when the hold was to end by itself
	Tag     string     `json:"tag,omitempty"`     // of who held it or gave it back
	Booking string     `json:"booking,omitempty"` // whose token that was, or which was sold or put back on sale
	User    string     `json:"user,omitempty"`    // the booking's account, while anything knows it
	Sale    *ToldSale  `json:"sale,omitempty"`    // of an entry sold, or restored
	Calls   []ToldCall `json:"calls,omitempty"`   // of operators on the event that were under way then; their bodies are in the audit
}

// ToldCall is an operator's call.
type ToldCall struct {
	ID       int64     `json:"id"`
	At       time.Time `json:"at"` // Postgres clock
	Operator string    `json:"operator"`
	Method   string    `json:"method"`
	Path     string    `json:"path"`
}

// ToldSale is what Postgres knows now of how a seat was sold.
type ToldSale struct {
	Ticket       string        `json:"ticket"`
	TicketState  string        `json:"ticketState"` // live or void
	Price        seatmap.Money `json:"price"`       // of the seat
	BookingState string        `json:"bookingState"`
	Total        seatmap.Money `json:"total"`             // of the booking
	Reason       string        `json:"reason,omitempty"`  // why the booking was lost
	Attempt      string        `json:"attempt,omitempty"` // the last try at paying
	Payment      string        `json:"payment,omitempty"` // where it stands
	Provider     string        `json:"provider,omitempty"`
}

// ToldGap is a gap as the API shows it.
type ToldGap struct {
	From   *ToldPoint `json:"from"` // the last change before it; null: nothing was recorded before
	To     ToldPoint  `json:"to"`
	Reason Reason     `json:"reason"`
}

// ToldPoint is a number and when that was, by the clock of Redis.
type ToldPoint struct {
	N  int64     `json:"n"`
	At time.Time `json:"at"`
}

// pageOf is the newest entries of a seat below number n.
func (a *API) pageOf(ctx context.Context, event string, seat int, n int64, limit int) (*Answer, error) {
	through, err := a.book.position(ctx, event) // first: entries may be newer, never missing
	if err != nil {
		return nil, err
	}
	all, err := a.book.before(ctx, event, seat, n, limit+1)
	if err != nil {
		return nil, err
	}
	out := &Answer{Through: point(through)}
	oldest := int64(0)
	if len(all) > limit {
		all = all[:limit]
		oldest = all[limit-1].N
		out.Next = &oldest
	}
	gaps, err := a.book.gapsBetween(ctx, event, oldest, n)
	if err != nil {
		return nil, err
	}
	out.Gaps = toldGaps(gaps)
	out.Status = statusOf(all, through)
	out.Entries, err = a.tell(ctx, event, seat, all)
	return out, err
}

// momentOf is what a seat was at a moment, and the entry that made it so.
func (a *API) momentOf(ctx context.Context, event string, seat int, moment time.Time) (*Answer, error) {
	through, err := a.book.position(ctx, event)
	if err != nil {
		return nil, err
	}
	all, err := a.book.at(ctx, event, seat, moment)
	if err != nil {
		return nil, err
	}
	gaps, err := a.book.gapsAt(ctx, event, moment)
	if err != nil {
		return nil, err
	}
	out := &Answer{At: &moment, Through: point(through), Gaps: toldGaps(gaps), Status: statusOf(all, through)}
	if len(all) == 0 && slices.ContainsFunc(gaps, func(g Gap) bool { return g.Reason == Began }) {
		out.Status = unknown
	}
	out.Entries, err = a.tell(ctx, event, seat, all)
	return out, err
}

const unknown = "unknown"

// statusOf is what the newest of some entries says. A seat without any was for
// sale when the event began to be recorded, and nothing has become of it.
func statusOf(all []Entry, through Position) string {
	switch {
	case len(all) > 0:
		return all[0].What.Status().String()
	case through.N == 0:
		return unknown
	default:
		return seatmap.Available.String()
	}
}

func point(p Position) *ToldPoint {
	if p.N == 0 {
		return nil
	}
	return &ToldPoint{p.N, p.At.UTC()}
}

func toldGaps(gaps []Gap) []ToldGap {
	out := make([]ToldGap, 0, len(gaps))
	for _, g := range gaps {
		out = append(out, ToldGap{point(g.From), *point(g.To), g.Reason})
	}
	return out
}

// tell shows entries, with what is known of the bookings they are of.
func (a *API) tell(ctx context.Context, event string, seat int, all []Entry) ([]Told, error) {
	out := make([]Told, 0, len(all))
	if len(all) == 0 {
		return out, nil
	}
	sales, err := a.book.sales(ctx, event, seat)
	if err != nil {
		return nil, err
	}
	tokens := tokensOf(event, all, sales)
	for _, e := range all {
		t := Told{At: e.At.UTC(), N: e.N, What: e.What, Status: e.What.Status().String(), Seen: e.Seen}
		if !e.Until.IsZero() {
			until := e.Until.UTC()
			t.Until = &until
		}
		if e.Holder != "" {
			tag := seatmap.TagOf(e.Holder)
			t.Tag = string(tag[:])
			if token := tokens[tag]; token != "" {
				t.Booking = seatmap.BookingID(event, token)
			}
		}
		if s := soldBy(e, sales); s != nil {
			t.Booking, t.User, t.Sale = s.Booking, s.User, s.told()
		}
		out = append(out, t)
	}
	if err := a.addCalls(ctx, event, out); err != nil {
		return nil, err
	}
	return out, a.name(ctx, event, out)
}

// addCalls adds what operators did to the event at the time of each entry that an
// operator can have made.
func (a *API) addCalls(ctx context.Context, event string, all []Told) error {
	var moments []time.Time
	var of []*Told
	for k := range all {
		if t := &all[k]; t.What != Lapsed && t.What != Swapped && t.What != Sold {
			moments, of = append(moments, t.At), append(of, t)
		}
	}
	if len(moments) == 0 {
		return nil
	}
	calls, err := a.book.calls(ctx, event, moments)
	if err != nil {
		return err
	}
	for _, c := range calls {
		t := of[c.Moment-1]
		t.Calls = append(t.Calls, ToldCall{ID: c.ID, At: c.At.UTC(), Operator: c.Operator, Method: c.Method, Path: c.Path})
	}
	return nil
}

// tokensOf are the tokens known of a seat, by tag: of who held it, and of who bought it.
func tokensOf(event string, all []Entry, sales []sale) map[seatmap.Tag]string {
	tokens := make(map[seatmap.Tag]string)
	add := func(token string) {
		if tag := seatmap.TagOf(token); len(token) > len(tag) {
			tokens[tag] = token
		}
	}
	for _, s := range sales {
		if of, token, ok := seatmap.ParseBookingID(s.Booking); ok && of == event {
			add(token)
		}
	}
	for _, e := range all {
		add(e.Holder)
	}
	return tokens
}

// skew is how far the clocks of Postgres, by which tickets are issued, and of
// Redis, by which seats are marked sold, may be from each other.
const skew = 5 * time.Second

// soldBy is the ticket that an entry tells the sale of, or the end of: a seat is
// marked after its ticket was issued, so the newest one that there was.
func soldBy(e Entry, sales []sale) *sale {
	if e.What != Sold && e.What != Restored {
		return nil
	}
	for k := range sales {
		if s := &sales[k]; !s.Issued.After(e.At.Add(skew)) {
			return s
		}
	}
	return nil
}

func (s *sale) told() *ToldSale {
	return &ToldSale{Ticket: s.Ticket, TicketState: s.TicketState, Price: seatmap.Money{Amount: s.Price, Currency: s.Currency},
		BookingState: s.BookingState, Total: seatmap.Money{Amount: s.Amount, Currency: s.Currency}, Reason: s.Reason,
		Attempt: s.Attempt, Payment: s.Payment, Provider: s.Provider}
}

// maxBaskets bounds what one answer asks Redis for: the newest bookings first.
const maxBaskets = 20

// name adds the accounts of bookings: from their rows, and while there is none
// from their baskets. The log itself keeps no account.
func (a *API) name(ctx context.Context, event string, all []Told) error {
	var ids []string
	for _, t := range all {
		if t.Booking != "" && t.User == "" && !slices.Contains(ids, t.Booking) {
			ids = append(ids, t.Booking)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	users, err := a.book.accounts(ctx, ids)
	if err != nil {
		return err
	}
	asked := 0
	for _, id := range ids {
		if users[id] == "" && asked < maxBaskets {
			asked++
			if users[id], err = a.ofBasket(ctx, event, id); err != nil {
				return err
			}
		}
	}
	for k := range all {
		if t := &all[k]; t.User == "" {
			t.User = users[t.Booking]
		}
	}
	return nil
}

// ofBasket is the account of a basket; empty when it is forgotten, or Redis does
// not answer: what is recorded is told all the same.
func (a *API) ofBasket(ctx context.Context, event, booking string) (string, error) {
	_, token, _ := seatmap.ParseBookingID(booking)
	b, err := a.baskets.Basket(ctx, event, token)
	if errors.Is(err, seatmap.ErrNoBasket) || errors.Is(err, seatmap.ErrUnavailable) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("account of %s: %w", booking, err)
	}
	return b.User, nil
}
