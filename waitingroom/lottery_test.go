package waitingroom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/waitingroom"
	"seatcast/waitingroom/draw"
)

// lottery is a plan of a draw that nobody else has a part in, and that opens later.
func lottery(closes time.Duration) waitingroom.Plan {
	p := plan(60_000, 1000, 1000)
	p.Closes = time.Now().Add(closes)
	p.Opens = p.Closes.Add(time.Hour)
	return p
}

// isDrawn waits for the draw and returns what is published of it.
func (b *box) isDrawn() (d struct{ List, Key string }) {
	b.Helper()
	b.until("it is drawn", func(f frame) bool { return f.Draw != nil && f.Draw.State == "drawn" })
	b.must(json.Unmarshal([]byte(b.send("GET", "", b.queue("/draw"), "").Body), &d))
	return d
}

func TestADrawIsAnnouncedBeforeAnybodyCanJoin(t *testing.T) {
	b := newBox(t)
	room := func(joins time.Duration, closes string) string {
		return fmt.Sprintf(`{"rate":1,"cap":100,"sessionSeconds":300,"joinsAt":%q,"closesAt":%s,"opensAt":"2099-01-01T00:00:00Z"}`,
			time.Now().Add(joins).UTC().Format(time.RFC3339), closes)
	}
	for _, closes := range []string{`"2098-01-01T00:00:00Z"`, fmt.Sprintf("%q", time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))} {
		if a := b.admin("PUT", "", room(-time.Hour, closes)); a.Status != 422 || a.Code != "bad_room" {
			t.Errorf("people join already, and the list closes at %s: %d %s", closes, a.Status, a.Body)
		}
	}
	if a := b.admin("PUT", "", room(-time.Hour, "null")); a.Status != 200 {
		t.Errorf("without a draw: %d %s", a.Status, a.Body)
	}
}

func TestWhoLeavesADrawStaysOnItsListAndMayComeBack(t *testing.T) {
	b := newBox(t)
	b.put(lottery(4 * time.Second))
	receipt := map[string]answer{}
	for _, user := range []string{"stays", "leaves", "comes back"} {
		receipt[user] = b.joins(user, "")
	}
	for _, user := range []string{"leaves", "comes back"} {
		b.ends(user, "left")
		if a := b.send("GET", user, b.queue("/me"), ""); a.Status != 404 || a.Code != "no_place" {
			t.Errorf("who has left has %d %s", a.Status, a.Body)
		}
	}
	if a := b.joins("comes back", ""); a.Status != 201 || !a.Draw || a.Nonce != receipt["comes back"].Nonce {
		t.Errorf("who comes back: %d %s", a.Status, a.Body)
	}
	b.run(b.rooms)
	if f := b.until("it is open", func(f frame) bool { return f.Draw != nil }); f.Waiting != 2 {
		t.Errorf("%d take part", f.Waiting)
	}
	_, list, ranks, err := draw.Read(strings.NewReader(b.send("GET", "", b.isDrawn().List, "").Body))
	b.must(err)
	for user, a := range receipt {
		var id draw.ID
		b.must(id.UnmarshalText([]byte(a.Ticket)))
		_, at, ok := list.Find(id)
		if !ok {
			t.Fatalf("who %s is not on the list", user)
		}
		for _, lost := range []string{"", ", and Redis has lost everything"} {
			if lost != "" {
				b.must(b.rdb.FlushAll(t.Context()).Err())
			}
			is := b.joins(user, a.Place).Number
			if left := user == "leaves"; !left && is != int64(ranks[at]) || left && is <= 3 {
				t.Errorf("who %s%s has place %d, and rank %d", user, lost, is, ranks[at])
			}
		}
	}
}

func TestALatePlaceIsNoReceipt(t *testing.T) {
	b := newBox(t)
	b.put(lottery(2 * time.Second))
	b.joins("early", "")
	b.run(b.rooms)
	b.isDrawn()
	token, claims := claimsOf(t, b.joins("late", "").Place)
	if token.Header["typ"] != "seatcast-place+jwt" || claims["announcement"] != nil {
		t.Errorf("the late one has %v of %v", claims, token.Header)
	}
	if token, claims = claimsOf(t, b.joins("early", "").Place); token.Header["typ"] != "seatcast-place+jwt" || claims["announcement"] != nil {
		t.Errorf("after the draw the early one has %v of %v", claims, token.Header)
	}
}

func TestAReceiptIsOfATypeOfItsOwn(t *testing.T) {
	b := newBox(t)
	b.put(lottery(time.Minute))
	place := b.joins("early", "").Place
	token, claims := claimsOf(t, place)
	if token.Header["typ"] != "seatcast-receipt+jwt" || claims["announcement"] == nil {
		t.Errorf("the receipt is %v of %v", claims, token.Header)
	}
	if _, err := b.keys.OpenPlace(place); err != nil {
		t.Errorf("it is no place: %v", err)
	}
}

func TestTheListOfADrawIsDroppedOnceItIsDrawnAndNoKeyStaysForEver(t *testing.T) {
	b := newBox(t)
	b.put(lottery(2 * time.Second))
	receipt := b.joins("ann", "")
	b.joins("bob", "")
	stop := b.run(b.rooms)
	b.isDrawn()
	eventually(t, "the list is dropped", func() bool { return b.rdb.Exists(t.Context(), "pre:{"+b.event+"}", "new:{"+b.event+"}").Val() == 0 })
	if a := b.admin("POST", "/open", ""); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	b.until("it is open", func(f frame) bool { return f.State == waitingroom.Open })
	b.enters("ann", receipt.Place)
	b.ends("ann", "left")
	if a := b.send("GET", "ann", b.queue("/me"), ""); a.Status != 404 {
		t.Errorf("who was inside has %d %s", a.Status, a.Body)
	}
	stop()
	b.run(b.node()) // which tends it for the first time
	eventually(t, "every key ends", func() bool {
		for _, key := range b.rdb.Keys(t.Context(), "*{"+b.event+"}*").Val() {
			if b.rdb.TTL(t.Context(), key).Val() < 0 { // it stays
				return false
			}
		}
		return b.rdb.TTL(t.Context(), "room:{"+b.event+"}").Val() > 24*time.Hour
	})
}

func TestWhoAsksForADrawThatCannotBeReadIsToldSoInTheirTimeNotInTurn(t *testing.T) {
	b := newBox(t)
	b.put(lottery(2 * time.Second))
	b.joins("ann", "")
	stop := b.run(b.rooms)
	b.until("it is drawn", func(f frame) bool { return f.Draw != nil && f.Draw.State == "drawn" })
	stop()
	tx, err := b.pool.Begin(t.Context())
	b.must(err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE room_tickets`)
	b.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all sync.WaitGroup
	codes := make([]int, 20)
	for n := range codes {
		all.Go(func() {
			r, w := httptest.NewRequestWithContext(ctx, "GET", b.queue("/draw/shards/0"), nil), httptest.NewRecorder()
			b.handler.ServeHTTP(w, r)
			codes[n] = w.Code
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("they wait for each other")
	}
	b.must(tx.Rollback(t.Context()))
	<-done
	for _, code := range codes {
		if code != 503 {
			t.Errorf("told %d", code)
		}
	}
	if a := b.send("GET", "", b.queue("/draw/shards/0"), ""); a.Status != 200 {
		t.Errorf("afterwards %d %s", a.Status, a.Body)
	}
}

func TestWhatIsDrawnIsForEverOnlyWithTheKeyOfTheDraw(t *testing.T) {
	b := newBox(t)
	b.put(lottery(2 * time.Second))
	if a := b.send("GET", "", b.queue("/draw/shards/0"), ""); a.Status != 404 || a.Code != "not_drawn" || a.Header.Get("Retry-After") == "" {
		t.Errorf("before the draw: %d %s", a.Status, a.Body)
	}
	b.joins("ann", "")
	b.run(b.rooms)
	d := b.isDrawn()
	if d.List != b.queue("/draw/list?key="+d.Key) {
		t.Errorf("the list is at %s", d.List)
	}
	for _, what := range []string{"/draw/list", "/draw/shards/0"} {
		keyed, plain := b.send("GET", "", b.queue(what+"?key="+d.Key), ""), b.send("GET", "", b.queue(what), "")
		if keyed.Body != plain.Body || keyed.Status != 200 || plain.Status != 200 {
			t.Errorf("%s: %d %s, and with the key %d %s", what, plain.Status, plain.Body, keyed.Status, keyed.Body)
		}
		if !strings.Contains(keyed.Header.Get("Cache-Control"), "immutable") || plain.Header.Get("Cache-Control") != "public, max-age=60" {
			t.Errorf("%s may be kept %q, and with the key %q", what, plain.Header.Get("Cache-Control"), keyed.Header.Get("Cache-Control"))
		}
		if a := b.send("GET", "", b.queue(what+"?key="+strings.Repeat("0", 64)), ""); a.Status != 404 || a.Code != "unknown_draw" || strings.Contains(a.Header.Get("Cache-Control"), "public") {
			t.Errorf("%s of another draw: %d %s", what, a.Status, a.Body)
		}
	}
}

func TestSeatsAreCountedBeforeTheOpening(t *testing.T) {
	b := newBox(t)
	b.free.Store(0)
	p := plan(60, 1, 10)
	p.Opens = time.Now().Add(time.Hour)
	b.put(p)
	b.free.Store(77)
	b.run(b.rooms)
	b.until("there are seats", func(f frame) bool { return f.State == waitingroom.Closed && f.SeatsLeft == 77 })

	none := newBox(t)
	none.free.Store(0)
	none.put(p)
	none.run(none.rooms)
	none.until("there is none yet, which is not the end", func(f frame) bool { return f.State == waitingroom.Closed })
	if state := none.send("GET", "", none.queue(""), "").State; state != "closed" {
		t.Errorf("before the opening the room is %s", state)
	}
}

func TestWhoIsInsideStaysSoWhenNobodyIsLetInAnyMore(t *testing.T) {
	b := newBox(t)
	b.put(plan(60_000, 100, 10))
	place := b.joins("ann", "").Place
	b.run(b.rooms)
	b.enters("ann", place)
	if a := b.admin("POST", "/over", ""); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	b.until("it is over", func(f frame) bool { return f.State == waitingroom.Over })
	if a := b.send("POST", "ann", b.queue(""), ""); a.Status != 200 || !strings.Contains(a.Body, "insideUntil") {
		t.Errorf("who is inside: %d %s", a.Status, a.Body)
	}
	if a := b.send("POST", "bob", b.queue(""), ""); a.Status != 410 {
		t.Errorf("who is not: %d %s", a.Status, a.Body)
	}
}
