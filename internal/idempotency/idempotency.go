// Package idempotency remembers for a day how calls of operators were answered,
// by the operator and the Idempotency-Key, so that one that is sent twice is
// carried out once.
//
//	(none) ──Claim──▶ in flight ──Keep──▶ answered ── 24 h ──▶ (none)
//	  ▲                   │ │ ▲
//	  └───────Drop────────┘ └─┘ the lease has run out: Claim by the same call
//
// A key is a row, and each arrow one statement: of many calls with a key, at
// however many nodes, one is in flight at a time.
//
// A process that dies in flight is told by a lease in the row, which the living
// renew together, in one statement every few seconds (Run). An advisory lock of a
// session would need no clock, but a connection for as long as the call lasts
// while the call itself needs others of the same pool: as many calls as the pool has
// connections would wait for each other. It would also be lost with a connection
// whose call goes on, and outlive by hours a machine that lost its power.
//
// A repeat that comes once the lease has run out is carried out. The dead call may
// have had its effect, all of it or some. So each call of operators is one that may
// be made twice: it says how something is to be and finds it so, or has a row or
// a hold of its own under the same key and finds that; or it makes something that
// is listed and can be deleted, and is then there twice. A process that was cut off
// from Postgres and lives may still be at it: the two are then at it together, as
// two operators may be, and what the first would have kept is refused.
//
// What is kept is the answer as it was sent. The request is kept as a hash. An
// answer that is longer than web.BodyLimit, or has a secret in it (web.TellOnce), is
// not kept: its repeat is refused, and not carried out.
//
// The clock is Postgres's. It does not know what a call means.
package idempotency

import "time"

const (
	kept    = 24 * time.Hour
	perTidy = 10 * time.Minute // between two looks for what is older
)

// lease is how long a call is in flight after its process was last heard of,
// unless Options say otherwise. It is renewed three times as often.
const lease = 15 * time.Second
