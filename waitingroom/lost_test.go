package waitingroom_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seatcast/waitingroom"
)

// loses makes a Redis what one is that took over and lacks the last second: so many
// numbers are given, so far it has called, and nobody beyond waits.
func (b *box) loses(last, serving int) {
	b.Helper()
	b.must(b.rdb.HSet(b.Context(), "room:{"+b.event+"}", "last", last, "serving", serving, "was", 0, "later", 0).Err())
	b.must(b.rdb.ZRemRangeByScore(b.Context(), "q:{"+b.event+"}", fmt.Sprintf("(%d", last), "+inf").Err())
}

func TestNoPlaceIsGivenTwiceByARedisThatLostItsLastSecond(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	for n := 1; n <= 5; n++ {
		b.joins(fmt.Sprint("fan-", n), "")
	}
	place := b.joins("fan-5", "").Place
	b.loses(3, 0)
	if a := b.joins("late", ""); a.Number <= 5 {
		t.Errorf("who comes after it has place %d of somebody else", a.Number)
	}
	if a := b.joins("fan-5", place); a.Number != 5 {
		t.Errorf("who was the fifth is number %d", a.Number)
	}

	other := b.node() // has given no number, and looks
	b.must(other.Refresh(t.Context()))
	stop := b.run(other)
	b.until("it has looked", func(f frame) bool { return f.Waiting == 5 })
	last := b.joins("later", "").Number
	b.until("it has looked again", func(f frame) bool { return f.Waiting == 6 })
	b.loses(3, 0)
	eventually(t, "Redis is told how far numbers are given", func() bool {
		n, err := b.rdb.HGet(t.Context(), "room:{"+b.event+"}", "last").Int64()
		b.must(err)
		return n >= last
	})
	stop()
}

func TestTheNumberOfASuspectIsNobodyElsesAfterARedisLostItsLastSecond(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	for n := 1; n <= 5; n++ {
		b.joins(fmt.Sprint("fan-", n), "")
	}
	b.must(b.rooms.Suspect(t.Context(), b.event, "bot"))
	b.loses(3, 0)
	if a := b.joins("bot", ""); a.Status != 201 || a.Number <= 5 {
		t.Errorf("a suspect who comes after it has %d %s", a.Status, a.Body)
	}
	if n := b.rdb.ZCard(t.Context(), "tar:{"+b.event+"}").Val(); n != 1 {
		t.Errorf("%d are suspected", n)
	}
}

// booksFirst is told frames, and looks whether Postgres knows of them.
type booksFirst struct {
	*box
	told atomic.Int64
}

func (b *booksFirst) Publish(topic string, _ int64, _ []int64, _ time.Time, text []byte) <-chan struct{} {
	var f frame
	if err := parse(text, &f); err != nil {
		b.Errorf("told %s: %v", text, err)
	}
	var kept int64
	if err := b.pool.QueryRow(context.WithoutCancel(b.Context()), `SELECT serving FROM rooms`).Scan(&kept); err != nil || kept < f.Serving {
		b.Errorf("people are told that %d are called, and Postgres knows of %d (%v)", f.Serving, kept, err)
	}
	b.told.Store(max(b.told.Load(), f.Serving))
	return nil
}

// A node that is killed takes with it what it alone knew: so nobody may have been
// told of it.
func TestHowFarTheLineIsCalledIsWrittenDownBeforeItIsTold(t *testing.T) {
	b := newBox(t)
	b.put(plan(600, 100, 1000))
	const fans = 200
	for n := range fans {
		b.joins(fmt.Sprint("fan-", n), "")
	}
	books := &booksFirst{box: b}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // one error
	go func() { ended <- b.rooms.Run(ctx, books) }()
	eventually(t, "all are called", func() bool { return books.told.Load() >= fans })
	cancel()
	b.must(<-ended)
	b.loses(fans, 3)
	other := b.node()
	if _, f := b.frame(other); f.Serving < books.told.Load() {
		t.Errorf("another node tells of %d, and %d were told", f.Serving, books.told.Load())
	}
}

func TestWhoWasLetInByAnAnswerThatWasLostIsWrittenDownWhenTheyAskAgain(t *testing.T) {
	b := newBox(t)
	b.put(plan(6000, 5, 10))
	b.joins("ann", "")
	b.run(b.rooms)
	b.until("ann is called", func(f frame) bool { return f.Serving == 1 })
	line, id := waitingroom.NewLine(b.rdb), b.keys.TicketOf(b.event, "ann").ID
	eventually(t, "Redis lets her in, and nobody hears of it", func() bool {
		turn, err := line.Claim(t.Context(), b.event, id, waitingroom.Known{})
		b.must(err)
		return turn.New
	})
	b.enters("ann", "")
	eventually(t, "she is written down", func() bool {
		return b.count(`SELECT count(*) FROM room_admissions WHERE user_id = 'ann' AND ended_at IS NULL`) == 1
	})
	b.enters("ann", "")
	b.must(b.rooms.Bought(t.Context(), b.event, "ann"))
	eventually(t, "that she has bought is, too", func() bool { return b.count(`SELECT count(*) FROM room_admissions WHERE became = 'bought'`) == 1 })
}

func TestWhoAsksAgainAndAgainIsWrittenDownOnce(t *testing.T) {
	b := newBox(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(b.rooms)
	b.put(plan(6000, 5, 10))
	b.joins("ann", "")
	stop := b.run(b.rooms)
	b.enters("ann", "")
	stop() // from now on nothing is written down
	for range 5 {
		b.enters("ann", "")
	}
	if n := told(t, reg)["waitingroom_admissions_unwritten"]; n != 0 {
		t.Errorf("%v admissions of one who is inside are to be written down again", n)
	}
}

func TestAnAdmissionThatPostgresDidNotTakeIsWrittenDownWhenTheyAskAgain(t *testing.T) {
	b := newBox(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(b.rooms)
	b.put(plan(6000, 5, 10))
	b.joins("ann", "")
	b.run(b.rooms)
	alter := func(how string) {
		_, err := b.pool.Exec(t.Context(), `ALTER TABLE room_admissions `+how)
		b.must(err)
	}
	alter(`ADD CONSTRAINT nobody CHECK (false)`)
	b.enters("ann", "")
	eventually(t, "it is not taken", func() bool { return told(t, reg)["waitingroom_admissions_unwritten"] == 0 })
	alter(`DROP CONSTRAINT nobody`)
	b.enters("ann", "")
	eventually(t, "it is written down", func() bool { return b.count(`SELECT count(*) FROM room_admissions WHERE user_id = 'ann'`) == 1 })
}

func TestAnAdmissionThatIsBeingWrittenAsTheNodeEndsIsWritten(t *testing.T) {
	b := newBox(t)
	b.put(plan(6000, 5, 10))
	b.joins("ann", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1) // one error
	go func() { ended <- b.rooms.Run(ctx, nil) }()
	kept, err := b.pool.Begin(t.Context())
	b.must(err)
	_, err = kept.Exec(t.Context(), `LOCK TABLE room_admissions IN SHARE MODE`)
	b.must(err)
	b.enters("ann", "")
	eventually(t, "it is being written", func() bool {
		return b.count(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'room_admissions'::regclass`) == 1
	})
	cancel()
	b.must(kept.Commit(t.Context()))
	b.must(<-ended)
	if n := b.count(`SELECT count(*) FROM room_admissions WHERE user_id = 'ann'`); n != 1 {
		t.Errorf("%d admissions are written down, want 1", n)
	}
}
