// Package audit is the record of what operators did: who asked for what, when,
// and how it was answered.
//
// It promises that nothing is carried out which is not written down: a call has
// a row before it begins, and a row of its outcome after it has ended. Neither
// is ever changed; the database refuses it. A call without an outcome was cut
// short, by a crash or a lost connection, and may have had its effect or not.
//
// The clock is Postgres's. It does not know what a call means.
package audit

import "time"

// keptBody is how much of a body is kept.
const keptBody = 16 << 10

// Entry is a call as the API shows it.
type Entry struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	RequestID string    `json:"requestId"`
	Operator  string    `json:"operator"`
	Address   string    `json:"address"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Event     string    `json:"event,omitempty"`
	Body      string    `json:"body,omitempty"` // the first 16 KB of it
	BodyBytes int       `json:"bodyBytes"`
	Outcome   *Outcome  `json:"outcome"` // null: under way, or cut short
}

// Outcome is how a call was answered.
type Outcome struct {
	At       time.Time `json:"at"`
	Status   int       `json:"status"`
	Code     string    `json:"code,omitempty"`     // of a problem
	Replayed bool      `json:"replayed,omitempty"` // as an earlier call with its Idempotency-Key: nothing was carried out
}

// Query says which calls are meant, the newest first.
type Query struct {
	Event  string // of this event; empty: of any and of none
	Before int64  // older than this number; 0: from the newest on
	Reads  bool   // also those that change nothing
	Limit  int
}

// Page is an answer to Query.
type Page struct {
	Calls []Entry `json:"calls"`
	Next  int64   `json:"next,omitempty"` // ask for what is before it; absent: that was all
}
