package seatmap

import "strconv"

// Keys of an event in Redis. holds writes them and seatmap/live reads them, so
// they are words both share. All carry the hash tag {event}: one event lives
// in one slot of a cluster.

// HoldKey is the hold itself: a string that names the holder's token and
// expires by itself, or SoldMark without expiry.
func HoldKey(event string, seat int) string { return "hold:{" + event + "}:" + strconv.Itoa(seat) }

// SoldMark and ClosedMark are the values of a hold key whose seat nobody can
// take: sold, or unavailable.
const (
	SoldMark   = "sold"
	ClosedMark = "closed"
)

// MapKey is the map as it was announced: see Map.
func MapKey(event string) string { return "map:{" + event + "}" }

// AreasKey is a hash: area → places left.
func AreasKey(event string) string { return "areas:{" + event + "}" }

// HeldKey is a sorted set: seats of a hold, with commas between → Unix
// milliseconds at which it ends.
func HeldKey(event string) string { return "held:{" + event + "}" }

// BasketKey is a string: what a booking token holds, see Basket.
func BasketKey(event, token string) string { return "basket:{" + event + "}:" + token }

// UserKey is a string: what one account has bought and holds, for its caps.
func UserKey(event, user string) string { return "user:{" + event + "}:" + user }

// ExtendedKey is a hash: by how much an operation extends all holds and when it
// began, as by and at, and token → 1 for every basket it has extended. It lasts
// for an hour after each step.
func ExtendedKey(event, operation string) string { return "extended:{" + event + "}:" + operation }

// SeqKey is the number of the last change; absent means the event is cold.
func SeqKey(event string) string { return "seq:{" + event + "}" }

// ResetKey is the number of the last reset.
func ResetKey(event string) string { return "reset:{" + event + "}" }

// LogKey is a stream of the last two minutes' changes: entry N-0, field c, the
// JSON of a Change.
func LogKey(event string) string { return "log:{" + event + "}" }

// InsideKey is a sorted set: who is or was let in by the waiting room, or has left it → Unix
// milliseconds until when. It is there only for events that have one.
func InsideKey(event string) string { return "adm:{" + event + "}" }

// RevokedKey is a sorted set: passes of the waiting room that are over before
// their time → Unix milliseconds at which that ends.
func RevokedKey(event string) string { return "rev:{" + event + "}" }

// LockName names the event's advisory lock in Postgres, as what
// hashtextextended(…, 0) is told: whoever has it keeps Redis from being told of
// the event's seats.
func LockName(event string) string { return "seatcast:" + event }
