package waitingroom_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/waitingroom"
	"seatcast/waitingroom/draw"
)

func TestAListIsFrozenDrawnAndOpenedInOneRoundAndEverybodyIsToldInTheNext(t *testing.T) {
	b := newBox(t)
	b.put(lottery(time.Hour))
	b.joins("ann", "")
	ctx := t.Context()
	b.must(b.rooms.Tick(ctx, b))
	b.closes(0)
	b.must(b.rooms.Refresh(ctx))
	b.must(b.rooms.Tend(ctx))
	b.must(b.rooms.Tick(ctx, b))
	b.mu.Lock()
	last := b.frames[len(b.frames)-1]
	b.mu.Unlock()
	if last.State != waitingroom.Open || last.Draw.State != "drawn" {
		t.Errorf("the list was to close, and the sale to begin; told is %+v, %+v", last, last.Draw)
	}
}

func TestWhoIsOnAListThatIsFrozenAndNotDrawnIsCountedAmongThoseWhoWait(t *testing.T) {
	b := newBox(t)
	theirs, _ := b.drawing()
	b.ends("ann", "left")
	b.joins("dan", "")
	b.closes(time.Hour)
	ctx := t.Context()
	b.must(b.rooms.Refresh(ctx))
	b.must(b.rooms.Tend(ctx))
	waits := func(when string, want int64) {
		t.Helper()
		b.must(b.rooms.Tick(ctx, b))
		b.shows(fmt.Sprintf("%s %d wait", when, want), func(f frame) bool { return f.Draw.State == "frozen" && f.Waiting == want })
	}
	waits("of a list of four who are three,", 3)
	b.joins("late", "")
	b.joins("later", "")
	waits("with two behind it", 5)
	b.ends("late", "left")
	b.ends("bob", "left")
	waits("without one of each", 3)
	b.must(b.rdb.FlushAll(ctx).Err())
	waits("once Redis has lost everything, whoever is not on the list among it,", 2)
	b.isTold(theirs)
	b.must(b.rooms.Tend(ctx))
	b.must(b.rooms.Tick(ctx, b))
	b.shows("once it is drawn 2 wait", func(f frame) bool { return f.Draw.State == "drawn" && f.Waiting == 2 })
}

// shows waits until a frame is so, of which one is kept for a second.
func (b *box) shows(what string, is func(frame) bool) {
	b.Helper()
	eventually(b, what, func() bool {
		_, f := b.frame(b.rooms)
		return is(f)
	})
}

func TestNobodyIsCountedTwiceWhileRanksAreGiven(t *testing.T) {
	o := selling(60, 1, 1)
	o.State = waitingroom.Draw
	h := newHall(t, o)
	for n := range 5 {
		h.join(n)
	}
	h.must(h.line.Close(t.Context(), h.event))
	h.join(7)
	var ranked []draw.Ranked
	for n := range 5 {
		h.must(h.rdb.ZAdd(t.Context(), "q:{"+h.event+"}", redis.Z{Score: float64(n + 1), Member: fan(n).ID.String()}).Err())
		if f := h.look(); f.Waiting != 6 {
			t.Errorf("with %d of five ranks %d wait, want 6", n+1, f.Waiting)
		}
		ranked = append(ranked, draw.Ranked{Ticket: fan(n), Rank: n + 1})
	}
	h.must(h.line.Place(t.Context(), h.event, ranked))
	if f := h.look(); f.Waiting != 6 {
		t.Errorf("with all ranks %d wait, want 6", f.Waiting)
	}
}

func TestADrawThatNobodyJoinedSaysSoInNumbers(t *testing.T) {
	b := newBox(t)
	b.put(lottery(time.Hour))
	told := func() (d map[string]any) {
		b.must(json.Unmarshal([]byte(b.send("GET", "", b.queue("/draw"), "").Body), &d))
		return d
	}
	if d := told(); d["tickets"] != nil {
		t.Errorf("before the freeze it says %v tickets", d["tickets"])
	}
	b.closes(time.Hour)
	b.must(b.rooms.Refresh(t.Context()))
	b.must(b.rooms.Tend(t.Context()))
	if d := told(); d["state"] != "drawn" || d["tickets"] != 0.0 || d["shards"] != 1.0 {
		t.Errorf("it says %v", d)
	}
}
