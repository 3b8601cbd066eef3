package waitingroom_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"seatcast/waitingroom"
	"seatcast/web"
)

func TestWhatAnEarlierRoomOfTheEventHasSignedIsOfNoUse(t *testing.T) {
	b := newBox(t)
	b.put(plan(60_000, 100, 10))
	was := b.joins("ann", "").Place
	stop := b.run(b.rooms)
	pass := b.enters("ann", was)
	stop()
	_, err := b.pool.Exec(t.Context(), `DELETE FROM rooms`)
	b.must(err)
	b.must(b.rdb.FlushAll(t.Context()).Err())
	b.put(plan(0, 1, 10))
	b.joins("bob", "")
	if a := b.joins("ann", was); a.Number != 2 {
		t.Errorf("with a place of the room before, ann has %d", a.Number)
	}
	if _, err := waitingroom.NewPasses(b.rooms).Admit(t.Context(), b.event, "ann", pass); err == nil || err.(*web.Problem).Code != "pass_invalid" {
		t.Errorf("with a pass of the room before: %v", err)
	}

	for n, c := range []struct {
		issued time.Time
		number int64
	}{{time.Now().Add(-time.Hour), 3}, {time.Now().Add(time.Minute), 900}} { // by a release that named no room
		user := fmt.Sprint("old-", n)
		place, err := b.keys.SignPlace(waitingroom.Place{Event: b.event, Ticket: b.keys.TicketOf(b.event, user), Number: 900, Issued: c.issued})
		b.must(err)
		if a := b.joins(user, place); a.Number != c.number {
			t.Errorf("with a place that names no room, issued %v, %s has %d, not %d", c.issued, user, a.Number, c.number)
		}
	}
}

func TestTheFrameSaysWhichRoomOfTheEventItIsAsItsPlacesDo(t *testing.T) {
	b := newBox(t)
	room := func() (place, frame int64) {
		var token, told struct{ Room int64 }
		parts := strings.Split(b.joins("ann", "").Place, ".")
		claims, err := base64.RawURLEncoding.DecodeString(parts[1])
		b.must(err)
		b.must(json.Unmarshal(claims, &token))
		b.must(json.Unmarshal([]byte(b.send("GET", "", b.queue(""), "").Body), &told))
		return token.Room, told.Room
	}
	b.put(plan(0, 1, 10))
	place, was := room()
	if place != was || was == 0 {
		t.Errorf("the place is of %d, the frame of %d", place, was)
	}
	b.admin("POST", "/over", "").wants(t, "it ends", 200, "")
	b.admin("DELETE", "", "").wants(t, "it is over", 204, "")
	b.put(plan(0, 1, 10))
	if place, is := room(); place != is || is == was {
		t.Errorf("after %d the place is of %d, the frame of %d", was, place, is)
	}
}

func TestWhoMeansAnEarlierRoomIsNotInTheNext(t *testing.T) {
	b := newBox(t)
	meant := func() string {
		var frame struct{ Room int64 }
		b.must(json.Unmarshal([]byte(b.send("GET", "", b.queue(""), "").Body), &frame))
		return fmt.Sprintf(`{"room":%d}`, frame.Room)
	}
	b.put(plan(0, 1, 10))
	was := meant()
	b.send("POST", "ann", b.queue(""), was).wants(t, "she means it", 201, "")
	b.admin("POST", "/over", "").wants(t, "it ends", 200, "")
	b.admin("DELETE", "", "").wants(t, "it is over", 204, "")
	b.put(plan(0, 1, 10))
	b.send("POST", "ann", b.queue(""), was).wants(t, "she means the one before", 409, "other_room")
	b.send("GET", "ann", b.queue("/me"), "").wants(t, "she has nothing", 404, "no_place")
	b.send("POST", "ann", b.queue(""), meant()).wants(t, "she means this one", 201, "")
}

func TestWhatWasProvedToAnEarlierRoomOfTheEventIsOfNoUse(t *testing.T) {
	b := newBox(t)
	p := plan(0, 1, 10)
	p.Terms.Proof = 1000
	b.put(p)
	hers := b.challenge("ann")
	proof := payload(hers, solve(t, hers))
	waited, err := b.keys.SignWait(b.room(), b.keys.TicketOf(b.event, "bob").ID, 0, time.Now())
	b.must(err)
	_, err = b.pool.Exec(t.Context(), `DELETE FROM rooms`)
	b.must(err)
	b.put(p)
	b.brings("ann", "altcha", proof).wants(t, "work that was done for the room before", 403, "bad_proof")
	b.brings("bob", "waited", waited).wants(t, "a wait for the room before", 403, "bad_proof")
}
