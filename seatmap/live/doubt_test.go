package live

import (
	"log/slog"
	"testing"
	"time"

	"seatcast/seatmap"
)

// The history that was lost goes on being heard for a moment: its last words
// were on their way.
func TestALateWordOfALostHistoryEndsNoDoubt(t *testing.T) {
	o := FeedOptions{Metrics: NewMetrics(nil), Log: slog.New(slog.DiscardHandler), Silent: time.Minute}
	f := newFollower(&o, "e", nobody{})
	f.p.restart(State{N: 5, Map: seatmap.NewMap(8)})
	f.confirm(time.Now())
	hear := func(n int64) {
		f.follow(t.Context(), heardChange{seatmap.Change{N: n, Prev: n - 1, Reserved: []int{int(n)}}, time.Now()})
	}
	if hear(6); !f.sure() {
		t.Fatal("in doubt without a reason")
	}
	f.doubt()
	f.known, f.knownAt = 6, time.Now()
	hear(7)
	f.repair(t.Context())
	if n, _, _ := f.position(); n != 7 || f.sure() {
		t.Errorf("at %d, sure: %v", n, f.sure())
	}
	if f.confirm(time.Now()); !f.sure() {
		t.Error("in doubt though Redis has been asked")
	}
}
