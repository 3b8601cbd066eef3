package waitingroom_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"seatcast/seatmap"
	"seatcast/waitingroom"
	"seatcast/waitingroom/draw"
)

// remembers returns what makes Redis what it is now: a replica that has heard nothing
// since, and is made primary.
func (b *box) remembers() (failover func()) {
	b.Helper()
	was := map[string]string{}
	keys, err := b.rdb.Keys(b.Context(), "*").Result()
	b.must(err)
	for _, key := range keys {
		was[key] = b.rdb.Dump(b.Context(), key).Val()
	}
	return func() {
		b.Helper()
		b.must(b.rdb.FlushAll(b.Context()).Err())
		for key, value := range was {
			b.must(b.rdb.Restore(b.Context(), key, 0, value).Err())
		}
	}
}

// drawing makes a room with a draw that somebody else decides, which three have joined.
func (b *box) drawing() (theirs draw.Digest, receipts map[string]answer) {
	b.Helper()
	theirs = draw.Digest{7}
	commitment := draw.Digest(sha256.Sum256(theirs[:]))
	p := plan(60_000, 100, 100)
	p.Closes = time.Now().Add(time.Hour)
	p.Opens = p.Closes
	p.External = draw.External{Kind: draw.Committer, Name: "the newspaper", Commitment: &commitment}
	b.put(p)
	receipts = map[string]answer{}
	for _, user := range []string{"ann", "bob", "cat"} {
		receipts[user] = b.joins(user, "")
	}
	return theirs, receipts
}

func (b *box) isTold(theirs draw.Digest) {
	b.Helper()
	if a := b.admin("POST", "/draw", fmt.Sprintf(`{"told":"%v"}`, theirs)); a.Status != 200 {
		b.Fatalf("the value is told: %d %s", a.Status, a.Body)
	}
}

func TestAFailoverThatLosesTheEndOfADrawPutsNobodyBeforeItAndGivesNoReceipts(t *testing.T) {
	b := newBox(t)
	theirs, receipts := b.drawing()
	failover := b.remembers()
	b.closes(time.Second)
	stop := b.run(b.rooms)
	b.until("the list is frozen", func(f frame) bool { return f.Draw.State == "frozen" })
	stop()
	failover()
	if late := b.joins("late", ""); late.Draw || late.Number <= 3 {
		t.Errorf("behind a list of three a late one has %s", late.Body)
	}
	if a := b.joins("ann", receipts["ann"].Place); !a.Draw {
		t.Errorf("who is on the list has %s", a.Body)
	}
	b.run(b.rooms)
	b.isTold(theirs)
	b.until("it is open", func(f frame) bool { return f.State == waitingroom.Open })
	for user, receipt := range receipts {
		if a := b.joins(user, receipt.Place); a.Number < 1 || a.Number > 3 {
			t.Errorf("%s, one of three, has %s", user, a.Body)
		}
	}
}

func TestAFailoverThatLosesTheRanksOfADrawTakesNoPlace(t *testing.T) {
	b := newBox(t)
	theirs, receipts := b.drawing()
	b.closes(time.Second)
	b.run(b.rooms)
	b.until("the list is frozen", func(f frame) bool { return f.Draw.State == "frozen" })
	again := b.joins("ann", receipts["ann"].Place)
	if again.Status != 200 || !again.Draw || again.Nonce != receipts["ann"].Nonce {
		t.Errorf("between the end of the list and the draw, who is on it has %d %s", again.Status, again.Body)
	}
	late := b.joins("late", "")
	failover := b.remembers()
	b.isTold(theirs)
	b.until("it is open", func(f frame) bool { return f.State == waitingroom.Open })
	failover()
	if a := b.send("POST", "bob", b.queue("/pass"), fmt.Sprintf(`{"place":%q}`, receipts["bob"].Place)); a.Status == 404 {
		t.Errorf("who was drawn and claims is told %s", a.Body)
	}
	for _, user := range []string{"ann", "cat"} {
		if a := b.joins(user, receipts[user].Place); a.Number < 1 || a.Number > 3 {
			t.Errorf("%s, one of three, has %s", user, a.Body)
		}
	}
	if a := b.joins("late", late.Place); a.Number != late.Number || a.Number <= 3 {
		t.Errorf("a late one had %d and has %d", late.Number, a.Number)
	}
}

func TestAFailoverGivesNoNumberTwice(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.joins("fan-0", "")
	failover := b.remembers()
	b.run(b.rooms)
	for n := 1; n < 5; n++ {
		b.joins(fmt.Sprint("fan-", n), "")
	}
	b.until("five wait", func(f frame) bool { return f.Waiting == 5 })
	failover()
	eventually(t, "Redis knows which numbers are given", func() bool {
		last, err := b.rdb.HGet(t.Context(), "room:{"+b.event+"}", "last").Int()
		return err == nil && last >= 5
	})
	if a := b.joins("late", ""); a.Number <= 5 {
		t.Errorf("of five numbers %d is given again", a.Number)
	}
}

func TestWhoHasBoughtHasNoPassAnyMoreThoughAFailoverLetThemInTwice(t *testing.T) {
	b := newBox(t)
	b.put(plan(60_000, 100, 10))
	place := b.joins("ann", "").Place
	failover := b.remembers()
	b.run(b.rooms)
	b.enters("ann", place)
	eventually(t, "she is written down", func() bool { return b.count(`SELECT count(*) FROM room_admissions`) == 1 })
	failover()
	b.enters("ann", place)
	eventually(t, "she is written down again", func() bool { return b.count(`SELECT count(*) FROM room_admissions`) == 2 })
	b.must(b.rooms.Bought(t.Context(), b.event, "ann"))
	if over := b.rdb.ZCard(t.Context(), seatmap.RevokedKey(b.event)).Val(); over != 2 {
		t.Errorf("of two passes %d are over", over)
	}
	eventually(t, "that is written down", func() bool { return b.count(`SELECT count(*) FROM room_admissions WHERE became = 'bought'`) == 2 })
}
