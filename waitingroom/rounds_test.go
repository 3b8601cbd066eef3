package waitingroom_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/waitingroom"
)

// other adds an event to a box, as it is itself.
func (b *box) other(event string) {
	b.Helper()
	_, err := b.pool.Exec(b.Context(), `INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user)
		SELECT $2, name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user FROM events WHERE id = $1`, b.event, event)
	b.must(err)
}

// silent are seats of which one event's are never counted.
type silent struct {
	*box
	event string
}

func (s silent) Left(ctx context.Context, event string) (free, held int64, err error) {
	if event == s.event {
		<-ctx.Done()
		return 0, 0, ctx.Err()
	}
	return s.box.Left(ctx, event)
}

func TestARoomThatTakesLongKeepsNoOtherWaiting(t *testing.T) {
	b := newBox(t)
	slow := "slow-" + b.event
	b.other(slow)
	b.rooms = waitingroom.New(waitingroom.Options{Line: waitingroom.NewLine(b.rdb), Store: waitingroom.NewStore(b.pool), Keys: b.keys,
		Seats: silent{b, slow}, Log: quiet, Calls: true, Tends: true})
	p := plan(60_000, 100, 10)
	b.must(p.Check())
	for _, event := range []string{slow, b.event} {
		b.must(b.rooms.Refresh(t.Context()))
		_, err := b.rooms.Put(t.Context(), event, p)
		b.must(err)
	}
	b.run(b.rooms)
	b.until("it is open", func(f frame) bool { return f.State == waitingroom.Open })
	_, err := b.rooms.Join(t.Context(), b.event, "ann", waitingroom.Brought{})
	b.must(err)
	b.until("ann is called", func(f frame) bool { return f.Serving == 1 })
}

func TestAnAdmissionThatCannotBeWrittenDownKeepsNoOtherFromItAndARoomThatIsGoneIsNoError(t *testing.T) {
	b := newBox(t)
	var logged bytes.Buffer
	b.rooms = waitingroom.New(waitingroom.Options{Line: waitingroom.NewLine(b.rdb), Store: waitingroom.NewStore(b.pool), Keys: b.keys, Seats: b,
		Log: slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError}))})
	gone := "gone-" + b.event
	b.other(gone)
	p := plan(60_000, 100, 10)
	b.must(p.Check())
	for _, event := range []string{gone, b.event} {
		b.must(b.rooms.Refresh(t.Context()))
		_, err := b.rooms.Put(t.Context(), event, p)
		b.must(err)
		_, err = b.rooms.Open(t.Context(), event)
		b.must(err)
		h, err := b.rooms.Join(t.Context(), event, "ann", waitingroom.Brought{})
		b.must(err)
		_, err = waitingroom.NewLine(b.rdb).Call(t.Context(), event)
		b.must(err)
		if turn, _, err := b.rooms.Claim(t.Context(), event, "ann", h.Place); err != nil || turn.Inside.IsZero() {
			t.Fatalf("%+v, %v", turn, err)
		}
	}
	_, err := b.pool.Exec(t.Context(), `DELETE FROM rooms WHERE event_id = $1`, gone)
	b.must(err)
	stop := b.run(b.rooms)
	eventually(t, "what can be is written down", func() bool { return b.count(`SELECT count(*) FROM room_admissions`) == 1 })
	stop()
	if logged.Len() > 0 {
		t.Errorf("of who was let into a room that is gone it is logged %s", logged.String())
	}
}

func TestWhoAsksAColdProcessWhileRedisIsAwayWaitsOnceForAll(t *testing.T) {
	b := newBox(t)
	b.put(plan(60, 1, 10))
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	b.must(err)
	defer mute.Close()
	away := redis.NewClient(&redis.Options{Addr: mute.Addr().String(), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer away.Close()
	rooms := waitingroom.New(waitingroom.Options{Line: waitingroom.NewLine(away), Store: waitingroom.NewStore(b.pool), Keys: b.keys, Seats: b, Log: quiet})
	b.must(rooms.Refresh(t.Context()))
	begun := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, _, err := rooms.Frame(t.Context(), b.event); err == nil {
				t.Error("there is a frame")
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took > 15*time.Second { // half of what they take one after the other
		t.Errorf("twenty waited %v", took)
	}
}
