// Package front is a small HTTP server that lets a shopper hold one seat, the
// way everybody describes it first. It is a process of its own, measured beside
// a real seatcast: same call, same body, same answers with the same headers,
// same authentication (a bearer token, an HS256 JWT, verified once and
// remembered by its hash). What differs is who is asked for the seat:
//
//   - naive: Postgres is asked whether the seat is free, and then told that it
//     is held. Between the two somebody else does the same.
//   - postgres: one UPDATE with the condition in it, or a transaction around it.
//   - redis: SET NX PX.
//   - bare: nobody. Seats that are wanted are always taken, others never: what
//     HTTP, JSON and the token cost by themselves.
//
// It has no gate, no log, no numbers, no map: less than seatcast does.
package front
