package waitingroom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seatcast/seatmap"
	"seatcast/waitingroom"
)

func TestARoomIsRemovedThatNobodyCouldJoinOrThatIsOver(t *testing.T) {
	b := newBox(t)
	if a := b.admin("DELETE", "", ""); a.Status != 404 || a.Code != "no_queue" {
		t.Errorf("there is none: %d %s", a.Status, a.Body)
	}
	early := plan(60, 1, 10)
	early.Joins, early.Opens = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	_, err := b.rooms.Put(t.Context(), b.event, early)
	b.must(err)
	if a := b.admin("DELETE", "", ""); a.Status != 204 {
		t.Errorf("nobody could join: %d %s", a.Status, a.Body)
	}

	b.put(plan(6000, 5, 10))
	other := b.node()
	b.run(b.rooms)
	b.run(other)
	b.joins("ann", "")
	b.enters("ann", "")
	b.joins("bob", "")
	if a := b.admin("DELETE", "", ""); a.Status != 409 || a.Code != "room_state" || !strings.Contains(a.Body, "/over") {
		t.Errorf("people wait: %d %s", a.Status, a.Body)
	}
	eventually(t, "who was let in is written down", func() bool { return b.count(`SELECT count(*) FROM room_admissions`) == 1 })
	b.admin("POST", "/over", "")
	if a := b.admin("DELETE", "", ""); a.Status != 204 {
		t.Errorf("it is over: %d %s", a.Status, a.Body)
	}
	if keys := b.rdb.Keys(t.Context(), "*{"+b.event+"}*").Val(); len(keys) > 0 {
		t.Errorf("Redis still has %v", keys)
	}
	if n := b.count(`SELECT (SELECT count(*) FROM rooms) + (SELECT count(*) FROM room_admissions)`); n != 0 {
		t.Errorf("Postgres still has %d rows", n)
	}
	if p, err := b.rooms.Admit(t.Context(), b.event, "bob", ""); p != nil || err != nil {
		t.Errorf("without a room %v is asked for, %v", p, err)
	}
	b.put(plan(6000, 5, 10))
	b.joins("cid", "")
	if a := b.joins("bob", ""); a.Number != 2 {
		t.Errorf("in another room bob has place %d", a.Number)
	}
}

// cutOff is the rooms of a process that Redis does not answer.
func (b *box) cutOff() *waitingroom.Rooms {
	nowhere := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	b.Cleanup(func() { _ = nowhere.Close() })
	return waitingroom.New(waitingroom.Options{Line: waitingroom.NewLine(nowhere), Store: waitingroom.NewStore(b.pool), Keys: b.keys, Seats: b, Log: quiet})
}

// served makes a room that has let ann in, as others know it, and is over.
func (b *box) served(others ...*waitingroom.Rooms) {
	b.Helper()
	b.put(plan(6000, 5, 10))
	stop := b.run(b.rooms)
	b.enters("ann", b.joins("ann", "").Place)
	b.joins("bob", "")
	b.until("both are called", func(f frame) bool { return f.Serving == 2 })
	stop()
	for _, other := range others {
		if _, f := b.frame(other); f.State != waitingroom.Open || f.Serving != 2 {
			b.Fatalf("another node knows %+v", f)
		}
	}
	_, err := b.rooms.Turn(b.Context(), b.event, waitingroom.Over)
	b.must(err)
}

// isNew checks that nothing of an earlier room is in one that lets nobody in.
func (b *box) isNew() {
	b.Helper()
	for n, user := range []string{"bob", "ann"} {
		if a := b.joins(user, ""); a.Number != int64(n+1) {
			b.Errorf("in another room %s has %s", user, a.Body)
		}
	}
	if _, f := b.frame(b.rooms); f.Inside != 0 || f.Serving != 0 || f.Waiting != 2 {
		b.Errorf("of another room is told %+v", f)
	}
	if n := b.count(`SELECT serving FROM rooms`); n != 0 {
		b.Errorf("another room has called %d", n)
	}
}

func TestARoomStaysWhileRedisIsAway(t *testing.T) {
	b := newBox(t)
	b.served()
	if err := b.cutOff().Drop(t.Context(), b.event); !errors.Is(err, seatmap.ErrUnavailable) {
		t.Errorf("without Redis: %v", err)
	}
	if n := b.count(`SELECT count(*) FROM rooms`); n != 1 {
		t.Error("it is gone, and Redis still has it")
	}
	b.admin("DELETE", "", "").wants(t, "once Redis is back", 204, "")
	b.put(plan(0, 1, 10))
	b.isNew()
}

func TestARoomThatRedisStillHasIsNotTheNextOneOfTheEvent(t *testing.T) {
	b := newBox(t)
	b.served()
	failover := b.remembers()
	b.admin("DELETE", "", "").wants(t, "it is over", 204, "")
	failover() // to a Redis that had not heard of it
	b.put(plan(0, 1, 10))
	b.isNew()
}

func TestWhatIsLeftOfARoomIsRemovedByRemovingItAgain(t *testing.T) {
	b := newBox(t)
	b.served()
	failover := b.remembers()
	b.admin("DELETE", "", "").wants(t, "it is over", 204, "")
	failover()
	b.admin("DELETE", "", "").wants(t, "Redis still has it", 204, "")
	if keys := b.rdb.Keys(t.Context(), "*{"+b.event+"}*").Val(); len(keys) > 0 {
		t.Errorf("Redis still has %v", keys)
	}
	b.admin("DELETE", "", "").wants(t, "nobody has it", 404, "no_queue")
}

func TestARoomThatDidNotSayWhichItIsSaysItOnceItIsServed(t *testing.T) {
	b := newBox(t)
	b.served()
	b.must(b.rdb.HDel(t.Context(), "room:{"+b.event+"}", "room").Err()) // as a release made it that named none
	stop := b.run(b.rooms)
	eventually(t, "it says which room it is", func() bool { return b.rdb.HExists(t.Context(), "room:{"+b.event+"}", "room").Val() })
	stop()
	failover := b.remembers()
	b.admin("DELETE", "", "").wants(t, "it is over", 204, "")
	failover()
	b.put(plan(0, 1, 10))
	b.isNew()
}

// removes is a DELETE that has removed the room and has not answered yet, by another node.
func (b *box) removes() (answered func()) {
	b.Helper()
	other, done := b.node(), make(chan error, 1)
	go func() { done <- other.Drop(b.Context(), b.event) }() // joined by answered
	eventually(b, "the room is gone", func() bool { return b.count(`SELECT count(*) FROM rooms`) == 0 })
	return func() { b.Helper(); b.must(<-done) }
}

func TestARoomThatIsMadeWhileAnEarlierOneIsRemovedStays(t *testing.T) {
	b := newBox(t)
	b.served()
	answered := b.removes()
	b.put(plan(0, 1, 10))
	b.must(b.rdb.HDel(t.Context(), "room:{"+b.event+"}", "room").Err()) // as a release makes it that names none
	b.joins("bob", "")
	answered()
	if a := b.send("GET", "bob", b.queue("/me"), ""); a.Number != 1 {
		t.Errorf("who has joined it has %d %s", a.Status, a.Body)
	}
}

func TestARoomThatIsBeingMadeWhileAnEarlierOneIsRemovedLosesNothing(t *testing.T) {
	b := newBox(t)
	b.served()
	answered := b.removes()
	making, err := b.pool.Begin(t.Context())
	b.must(err)
	defer func() { _ = making.Rollback(t.Context()) }() // over already, unless the test has failed
	_, err = making.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('seatcast room:' || $1, 0))`, b.event)
	b.must(err)
	b.must(b.rdb.ZAdd(t.Context(), "tar:{"+b.event+"}", redis.Z{Member: "suspect"}).Err()) // what is written first, before the room itself
	answered()
	if n := b.rdb.ZCard(t.Context(), "tar:{"+b.event+"}").Val(); n != 1 {
		t.Error("who is suspected in it is not any more")
	}
	b.must(making.Rollback(t.Context()))
}

func TestANodeThatStillKnowsARoomThatIsGoneSaysNothingOfItInTheNext(t *testing.T) {
	b := newBox(t)
	other, reg := b.node(), prometheus.NewRegistry()
	reg.MustRegister(other)
	b.served(other)
	b.admin("DELETE", "", "").wants(t, "it is over", 204, "")
	b.put(plan(0, 1, 10))
	b.admin("POST", "/open", "").wants(t, "another room opens", 200, "")
	stuck, err := b.pool.Begin(t.Context()) // which rooms there are takes long to be read
	b.must(err)
	defer func() { _ = stuck.Rollback(t.Context()) }() // over already, unless the test has failed
	_, err = stuck.Exec(t.Context(), `LOCK TABLE events`)
	b.must(err)
	looks := func() float64 { return told(t, reg)["waitingroom_script_seconds look"] }
	before := looks()
	b.run(other)
	eventually(t, "it has looked at what it knows", func() bool { return looks() > before+3 })
	if _, err := other.Join(t.Context(), b.event, "eve", waitingroom.Brought{}); !errors.Is(err, seatmap.ErrUnavailable) {
		t.Errorf("who joins there is told %v", err)
	}
	b.isNew()
	b.must(stuck.Rollback(t.Context()))
	eventually(t, "it knows the room there is", func() bool {
		h, err := other.Join(t.Context(), b.event, "eve", waitingroom.Brought{})
		return err == nil && h.Number == 3
	})
}

func TestTheListOfADrawHasNobodyOfAnEarlierRoom(t *testing.T) {
	b := newBox(t)
	b.drawing()
	_, err := b.pool.Exec(t.Context(), `DELETE FROM rooms`) // and Redis still has who joined, and that nobody has written it down
	b.must(err)
	p := plan(0, 1, 10)
	p.Closes = time.Now().Add(time.Hour)
	p.Opens = p.Closes
	b.put(p)
	b.joins("dan", "")
	b.run(b.rooms)
	b.closes(time.Hour)
	if f := b.until("it is drawn", func(f frame) bool { return f.Draw != nil && f.Draw.State == "drawn" }); f.Draw.Tickets != 1 {
		t.Errorf("of one who joined %d are on the list", f.Draw.Tickets)
	}
}

func TestMetricsTellOfTheRoomsThereAre(t *testing.T) {
	b := newBox(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(b.rooms)
	b.put(plan(6000, 5, 10))
	for _, user := range []string{"ann", "bob", "bob", "cid"} {
		b.joins(user, "")
	}
	stop := b.run(b.rooms)
	b.enters("ann", "")
	b.until("one is inside", func(f frame) bool { return f.Inside == 1 })
	if a := b.send("POST", "eve", b.queue("/pass"), ""); a.Status != 404 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	stop() // what is waiting to be written down is
	is := told(t, reg)
	for name, want := range map[string]float64{
		"waitingroom_joins_total": 3, "waitingroom_rate": 6000, "waitingroom_pace": 6000, "waitingroom_inside": 1, "waitingroom_seats_left": 1000,
		"waitingroom_state open": 1, "waitingroom_state over": 0, "waitingroom_admissions_unwritten": 0,
		"waitingroom_claims_total admitted": 1, "waitingroom_claims_total no_place": 1, "waitingroom_claims_total over": 0,
	} {
		if got, there := is[name]; got != want || !there {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
	}
	if seen := time.Since(time.UnixMilli(int64(1000 * is["waitingroom_seen_timestamp_seconds"]))); seen < 0 || seen > time.Minute {
		t.Errorf("it was looked at %v ago", seen)
	}
	if is["waitingroom_script_seconds look"] == 0 || is["waitingroom_script_seconds join"] != 4 {
		t.Errorf("scripts: %v", is)
	}
	_, err := b.rooms.Turn(t.Context(), b.event, waitingroom.Over)
	b.must(err)
	b.must(b.rooms.Drop(t.Context(), b.event))
	for name := range told(t, reg) {
		if !strings.HasPrefix(name, "waitingroom_script_seconds") && name != "waitingroom_admissions_unwritten" {
			t.Errorf("of a room that was removed %s is told", name)
		}
	}
}

// told are metrics as they are, by their names and what tells them apart beside the
// event; of a histogram how much is in it.
func told(t testing.TB, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	is := map[string]float64{}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() != "event" {
					name += " " + l.GetValue()
				}
			}
			is[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return is
}
