package holds

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// lately remembers which seats this process has seen taken in the last two
// seconds. Where two hundred want one seat nearly every take is refused, and a
// plain read refuses at a fraction of what the script costs Redis; lately tells
// when to try the read first. It may forget: it decides nothing.
//
// A Gate refuses most of a hot event without any read. This is for the rest:
// events whose map nobody follows, a map that nothing confirms, and holds whose
// end was not heard.
type lately struct {
	seed  maphash.Seed
	start time.Time
	slots [1 << 16]atomic.Uint64 // high half: of the seat's hash; low half: until, ms since start
}

const latelyLasts = 2 * time.Second

func newLately() *lately { return &lately{seed: maphash.MakeSeed(), start: time.Now()} }

type seatOf struct {
	event string
	seat  int
}

func (l *lately) slot(event string, seat int) (slot *atomic.Uint64, tag uint64) {
	h := maphash.Comparable(l.seed, seatOf{event, seat})
	return &l.slots[h%uint64(len(l.slots))], h &^ (1<<32 - 1)
}

// ms is when it is, and wraps after seven weeks: a seat is then remembered or
// forgotten wrongly, once.
func (l *lately) ms(d time.Duration) uint64 {
	return uint64((time.Since(l.start) + d).Milliseconds()) & (1<<32 - 1)
}

// taken notes seats that somebody has now.
func (l *lately) taken(event string, seats []int) {
	until := l.ms(latelyLasts)
	for _, i := range seats {
		slot, tag := l.slot(event, i)
		slot.Store(tag | until)
	}
}

// any says whether one of the seats was taken a moment ago.
func (l *lately) any(event string, seats []int) bool {
	now := l.ms(0)
	for _, i := range seats {
		slot, tag := l.slot(event, i)
		if v := slot.Load(); v&^(1<<32-1) == tag && v&(1<<32-1) > now {
			return true
		}
	}
	return false
}
