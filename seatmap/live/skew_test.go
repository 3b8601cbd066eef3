package live

import (
	"testing"
	"time"

	"seatcast/seatmap"
)

// A busy node hears late, by more and by less; the clock of Redis is elsewhere.
func TestAHoldHeardOfLateIsNotBelievedToLastLonger(t *testing.T) {
	const redis = int64(1_796_000_000_000) // ms, when began was
	h := hearsay{ends: make([]time.Duration, 8)}
	for i, late := range []time.Duration{40, 2, 300, 0, 900} {
		at := int64(i) * 1000
		h.hear(&heardChange{
			Change: seatmap.Change{N: int64(i + 1), At: redis + at, Until: redis + at + 500, Reserved: []int{i}, Tag: "ann-to"},
			at:     began.Add(time.Duration(at)*time.Millisecond + late*time.Millisecond),
		})
		truth := time.Duration(at+500) * time.Millisecond
		if over := h.ends[i] - truth; i > 0 && (over < 0 || over > 3*time.Millisecond) {
			t.Errorf("heard %v ms late: its end is believed to be %v after its end", int64(late), over)
		}
	}
	h.forget(make(seatmap.Map, 2))
	h.hear(&heardChange{Change: seatmap.Change{N: 9, At: redis - 60_000, Until: redis - 59_000, Reserved: []int{0}, Tag: "ann-to"}, at: began.Add(10 * time.Second)})
	if h.ends[0] != 11*time.Second {
		t.Errorf("after a failover to a clock that is behind: %v, want 11s", h.ends[0])
	}
}
