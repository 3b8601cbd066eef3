package waitingroom_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
