// Package outgoing tells other systems of the operator what happened to
// bookings and events: webhooks that leave this house, signed as Standard
// Webhooks has it.
//
// A message is written by the transaction of what it tells of (Announce), so
// neither is there without the other, and it is sent by a job of a queue of its
// own: whoever does not answer keeps no payment waiting. Each message goes to
// each webhook that wants it at least once, under one id in every try, in no
// promised order.
//
//	            ┌──── tried again ───┐
//	            ▼                    │
//	announced ──▶ pending ─── any ───┘
//	               │  │ ▲
//	   answered 2xx│  │ │ asked for again
//	               ▼  │ └───────────────────────┐
//	         delivered└──▶ dead ────────────────┘
//
// A delivery is dead when ten tries have failed in about three days, when its
// webhook is disabled, or was when the message was written. A test is tried once.
//
// A webhook that fails keeps no other waiting either: of the jobs that wait those
// of the others are taken first, and a process sends at most half of what it sends
// at a time to one. One that has failed for five days, or says that it is gone, is
// disabled.
//
// Its secrets are kept encrypted, by a key that is derived from the server key and
// not in the database.
//
// The clock is Postgres's, but for the moment of a try, which its signature names.
// outgoing does not know what a booking is.
package outgoing

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Type says what a message tells of.
type Type string

// Types of messages.
const (
	BookingSold     Type = "booking.sold"
	BookingRefunded Type = "booking.refunded"
	BookingLost     Type = "booking.lost"
	EventSoldOut    Type = "event.sold_out"
	EventCancelled  Type = "event.cancelled"

	ping Type = "ping" // what a test sends
)

// Types are those a webhook may want.
var Types = []Type{BookingSold, BookingRefunded, BookingLost, EventSoldOut, EventCancelled}

// typeNames are Types as a sentence lists them.
func typeNames() string {
	names := make([]string, len(Types))
	for k, t := range Types {
		names[k] = string(t)
	}
	return strings.Join(names, ", ")
}

// Outcomes a caller can act on.
var (
	ErrNoWebhook  = errors.New("outgoing: no such webhook")
	ErrNoDelivery = errors.New("outgoing: no such delivery")
	ErrDisabled   = errors.New("outgoing: webhook is disabled") // nothing is sent
	ErrTooMany    = errors.New("outgoing: too many webhooks")
)

// waits are what is waited after each try that failed, give or take a fifth. After
// the last of them and one more try a message is dead: three days and some hours.
var waits = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

const (
	disableAfter = 5 * 24 * time.Hour // of nothing but failures
	oldSecret    = 24 * time.Hour     // one that was replaced signs for so long
	mostWebhooks = 20                 // each is a row more of every sale
)

// State is where a delivery stands.
type State string

// States of a delivery.
const (
	Pending   State = "pending"
	Delivered State = "delivered"
	Dead      State = "dead"
)

var states = []State{Pending, Delivered, Dead}

// Webhook is one as an operator sees it.
type Webhook struct {
	ID           string     `json:"id"`
	URL          string     `json:"url"`
	Types        []Type     `json:"types,omitempty"`  // absent: all
	Events       []string   `json:"events,omitempty"` // absent: all
	Enabled      bool       `json:"enabled"`
	DisabledWhy  string     `json:"disabledWhy,omitempty"`  // absent: an operator did it
	FailingSince *time.Time `json:"failingSince,omitempty"` // the first failure after the last success
	CreatedAt    time.Time  `json:"createdAt"`
	Secret       string     `json:"secret,omitempty"` // told once, to who made it
}

// Delivery is one message to one webhook.
type Delivery struct {
	ID        int64      `json:"id"`
	MessageID string     `json:"messageId"`
	Type      Type       `json:"type"`
	Event     string     `json:"event,omitempty"`
	State     State      `json:"state"`
	At        time.Time  `json:"at"`               // when it was written
	NextAt    *time.Time `json:"nextAt,omitempty"` // of a pending one
	Body      string     `json:"body"`
	Tries     []Try      `json:"tries"` // the oldest first
}

// Try is one try of a delivery.
type Try struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"` // absent: there was no answer
	Ms     int       `json:"ms"`
	Error  string    `json:"error,omitempty"`  // why it failed
	Answer string    `json:"answer,omitempty"` // the first KB of it
}

// outcome is what a try leads to.
type outcome struct {
	State    State
	Wait     time.Duration // of a pending one, before jitter
	Disabled string        // why its webhook is disabled now
}

// judge says what a try leads to that is the nth since its delivery was asked for,
// of a webhook that has failed for so long.
func judge(t Try, of Type, nth int, failing time.Duration) outcome {
	switch {
	case t.Status/100 == 2:
		return outcome{State: Delivered}
	case t.Status == 410:
		return outcome{State: Dead, Disabled: "it answered 410 Gone"}
	case failing >= disableAfter:
		return outcome{State: Dead, Disabled: "nothing but failures for five days"}
	case nth > len(waits) || of == ping:
		return outcome{State: Dead}
	}
	return outcome{State: Pending, Wait: waits[nth-1]}
}

func known(t Type) bool { return slices.Contains(Types, t) }

// Announcement is something that happened.
type Announcement struct {
	Type  Type
	Event string              // it is of this event
	Data  func() (any, error) // more about it, as JSON; asked when somebody is to be told
}

// envelope is the body of a message.
type envelope struct {
	Type      Type      `json:"type"`
	Timestamp time.Time `json:"timestamp"` // when it happened
	Data      any       `json:"data"`
}
