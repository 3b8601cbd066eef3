package waitingroom_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seatcast/waitingroom"
)

// ends gives up the place of an account, or has an operator revoke it.
func (b *box) ends(user, how string) {
	b.Helper()
	var a answer
	if how == "revoked" {
		a = b.admin("POST", "/revoke", fmt.Sprintf(`{"user":%q}`, user))
	} else {
		a = b.send("DELETE", user, b.queue("/me"), "")
	}
	if a.Status != 204 {
		b.Fatalf("the place of %s is not %s: %d %s", user, how, a.Status, a.Body)
	}
}

func TestAPlaceThatWasGivenUpOrRevokedCountsForNothingAnyMore(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	place := map[string]string{}
	for _, user := range []string{"left", "revoked", "left and gone", "revoked and gone"} {
		place[user] = b.joins(user, "").Place
		how, _, _ := strings.Cut(user, " ")
		b.ends(user, how)
	}
	b.run(b.rooms)
	b.until("it is open", func(f frame) bool { return f.State == waitingroom.Open })
	for n, user := range []string{"left", "revoked"} {
		if a := b.send("POST", user, b.queue("/pass"), fmt.Sprintf(`{"place":%q}`, place[user])); a.Status != 404 || a.Code != "no_place" {
			t.Errorf("the place is %s, and she asks for a pass: %d %s", user, a.Status, a.Body)
		}
		if a := b.joins(user, place[user]); a.Number != int64(5+n) {
			t.Errorf("the place is %s, and she has %d", user, a.Number)
		}
	}
	eventually(t, "which numbers are given is kept", func() bool { return b.count(`SELECT last FROM rooms`) >= 6 })
	b.must(b.rdb.FlushAll(t.Context()).Err())
	for _, user := range []string{"left and gone", "revoked and gone"} {
		if a := b.joins(user, place[user]); a.Number <= 4 {
			t.Errorf("Redis has lost everything, the place is %s, and she has %d", user, a.Number)
		}
	}
}

func TestADrawnPlaceThatWasGivenUpOrRevokedIsNotDrawnAgain(t *testing.T) {
	b := newBox(t)
	p := plan(0, 1, 10)
	p.Closes = time.Now().Add(time.Hour)
	p.Opens = p.Closes
	b.put(p)
	receipt := map[string]string{}
	for _, user := range []string{"left", "revoked", "stays"} {
		receipt[user] = b.joins(user, "").Place
	}
	b.closes(time.Hour)
	b.run(b.rooms)
	b.until("it is drawn", func(f frame) bool { return f.Draw.State == "drawn" })
	for _, how := range []string{"left", "revoked"} {
		b.ends(how, how)
		if a := b.joins(how, receipt[how]); a.Number <= 3 {
			t.Errorf("the place of 3 is %s, and she has %d", how, a.Number)
		}
	}
	b.must(b.rdb.FlushAll(t.Context()).Err())
	for _, how := range []string{"left", "revoked"} {
		if a := b.joins(how, receipt[how]); a.Number <= 3 {
			t.Errorf("Redis has lost everything, the place of 3 is %s, and she has %d", how, a.Number)
		}
	}
	if a := b.joins("stays", receipt["stays"]); a.Number > 3 {
		t.Errorf("who stays has %d", a.Number)
	}
}
