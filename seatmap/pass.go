package seatmap

import "time"

// Pass is what lets an account into the sale of an event that has a waiting room,
// once it was found to be signed, the account's own and in its time.
type Pass struct {
	ID     string    // as RevokedKey names it
	Inside string    // as InsideKey names who has it
	Until  time.Time // when it ends
}
