package seatmap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Sale is an event as the parts that sell it see it: which chart, which
// prices, on what terms. It is read-only and shared between goroutines.
type Sale struct {
	Event     string // id: lower-case letters, digits and dashes, no dot
	Chart     *Chart
	Index     *Index // of Chart
	ChartSHA  string
	Hot       bool             // its map is pushed; otherwise it is polled
	Guarded   bool             // its map is shown only to who has a session or a ticket
	Orphans   OrphanRule       // empty allows them
	Open      bool             // bookings are taken now
	Closed    bool             // the operator has closed it, or has not opened it
	Cancelled bool             // the event will not take place
	NoHolds   bool             // Redis answers nobody: bookings are taken without holds, and race at the arbiter
	Opens     time.Time        // when it opens, or opened
	Currency  string           // ISO 4217
	Prices    map[string]int64 // category → minor units
	Fees      []Fee            // beside the prices
	Terms     Terms
}

// OrphanRule is what an event says of a choice by hand that leaves an orphan,
// as Seating.Orphans judges it.
type OrphanRule string

// The rules there are.
const (
	OrphansAllow  OrphanRule = "allow"
	OrphansWarn   OrphanRule = "warn"   // the seats are held, and the answer says so
	OrphansRefuse OrphanRule = "refuse" // nothing is held
)

// Terms are what an event grants its shoppers. Every duration is above zero.
type Terms struct {
	Hold  time.Duration // how long a hold lasts
	Pay   time.Duration // how long a payment may take from its start
	Cap   time.Duration // how long after its first second a hold ends whatever is extended
	Grace time.Duration // how much longer than the shopper is shown each of these really lasts

	SeatsPerBooking int // most seats and places in one booking
	SeatsPerUser    int // most seats one account may hold at a time, the tickets it has bought among them

	SeatsPerCard int // most tickets one card pays for, whoever's the account is; 0: any number

	HoldsPerUser int           // most bookings in which one account may hold seats at a time; 0: any number
	HoldsPerHour int           // how many holds one account may have in an hour before each must wait; 0: any number
	CoolDown     time.Duration // the first of those waits; each is twice the one before, up to twenty times the first
}

// ErrNoEvent is the answer of Sales to an id it does not know.
var ErrNoEvent = errors.New("seatmap: no such event")

// Sales finds events. A cached answer is at most a second old. A store that
// does not answer, and has no older answer, is ErrUnavailable.
type Sales interface {
	// Sale returns the event, or ErrNoEvent.
	Sale(ctx context.Context, event string) (*Sale, error)
	// Hot returns the ids of the events whose map is pushed.
	Hot(ctx context.Context) ([]string, error)
}

// Basket is what one booking token has taken. It lives in Redis, outlives its
// hold by ten minutes, and belongs to one account.
type Basket struct {
	Event string
	Token string
	User  string
	Seats []int          // ascending
	Areas map[string]int // general-admission places asked for, by area
	Quote json.RawMessage
	Hash  string // of the request that made it: a repeat must be the same

	// Sealed says that a payment of it has begun: its seats and its price are
	// fixed.
	Sealed bool

	// Operator is who held it for its account at the box office, and Note what
	// for; both are empty when the account did itself.
	Operator, Note string

	First time.Time // when it was first held
	Until time.Time // when it ends, grace included
	Cap   time.Time // when it ends whatever is extended, grace included

	State BasketState
	Lost  []int // seats of a held basket that somebody else's sale has overridden

	// Unheld says that it was taken while the event was without holds: its seats
	// are its own only once they are sold.
	Unheld bool
}

// BasketState is where a basket stands.
type BasketState string

// States of a basket. Expired is never stored: it is held with Until behind.
const (
	BasketHeld     BasketState = "held"
	BasketReleased BasketState = "released"
	BasketSold     BasketState = "sold"
	BasketExpired  BasketState = "expired"
)

// Outcomes of touching a basket that several parts act on.
var (
	ErrNoBasket    = errors.New("seatmap: no such basket")                     // never was, or gone for longer than ten minutes
	ErrNotYours    = errors.New("seatmap: basket of another account")          // nothing changed
	ErrHoldExpired = errors.New("seatmap: hold expired or given back")         // nothing changed
	ErrSold        = fmt.Errorf("seatmap: basket is sold: %w", ErrHoldExpired) // nothing changed; its hold is over too
)

// ErrUnavailable is the answer of a store that does not answer: what was asked
// for may or may not have happened, so ask again with the same token.
var ErrUnavailable = errors.New("seatmap: store does not answer")

// ErrHeld is the answer to a booking without a hold, of an event whose seats are
// held. Nothing changed.
var ErrHeld = errors.New("seatmap: the seats of this event are held")

// Facts are what Postgres says of what a booking without a hold asks for, and of
// its account.
type Facts struct {
	Gone     []int  // of its seats: sold or unavailable; ascending
	Full     string // an area with fewer places left than it asks for
	Tickets  int    // that the account has
	Seats    int    // in the other open bookings of the account
	Bookings int    // of the account that are open and have seats
}

// LostError names the seats of a basket that somebody else has: sold past it,
// or taken after its hold was lost. Nothing changed.
type LostError struct {
	Seats []int // ascending
}

func (e *LostError) Error() string { return "seatmap: seats lost to somebody else" }

// Marks are seats, areas and baskets as the arbiter has just decided them.
type Marks struct {
	Seats   []int          // sold, or no longer
	Closed  []int          // unavailable, or no longer
	Areas   map[string]int // places left now
	Baskets []string       // tokens of the baskets that became sold
	Bought  map[string]int // how many tickets an account has now
}

// BookingID is the name a basket has at the API.
func BookingID(event, token string) string { return event + "." + token }

// ParseBookingID returns what BookingID was made of; ok is false for what
// cannot be one. The event and the basket may still be unknown.
func ParseBookingID(id string) (event, token string, ok bool) {
	event, token, ok = strings.Cut(id, ".")
	if !ok || !spelled(event, eventLetters) || !spelled(token, tokenLetters) {
		return "", "", false
	}
	return event, token, true
}

// Letters of an event's id, and those of base64url.
const (
	eventLetters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	tokenLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)

// spelled reports whether s is a name of at most 64 of these letters.
func spelled(s, letters string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, letters) == ""
}

// Truth is what Postgres says of an event, from which its keys in Redis can be
// made anew.
type Truth struct {
	Seats   int            // size of the index space
	Sold    []int          // seats sold
	Closed  []int          // seats unavailable
	Left    map[string]int // places left, by area
	Baskets []Basket       // of bookings held or paying whose deadline is ahead
	Bought  map[string]int // tickets of every account that ever had one
}
