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
// webhook is disabled, or was when the message was written.
//
// The clock is Postgres's. outgoing does not know what a booking is.
package outgoing

import "time"

// Type says what a message tells of.
type Type string

// Types of messages.
const (
	BookingSold     Type = "booking.sold"
	BookingRefunded Type = "booking.refunded"
	BookingLost     Type = "booking.lost"
	EventSoldOut    Type = "event.sold_out"
	EventCancelled  Type = "event.cancelled"
)

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
