package waitingroom_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/waitingroom"
)

// brings sends a join with a member in its body.
func (b *box) brings(user, member, value string) answer {
	b.Helper()
	body, err := json.Marshal(map[string]string{member: value})
	b.must(err)
	return b.send("POST", user, b.queue(""), string(body))
}

// wants reports an answer that is another.
func (a answer) wants(t testing.TB, what string, status int, code string) {
	t.Helper()
	if a.Status != status || a.Code != code {
		t.Errorf("%s: %d %s", what, a.Status, a.Body)
	}
}

func TestWhoJoinsNeedsACodeOfTheEventThatNobodyElseHasUsed(t *testing.T) {
	b := newBox(t)
	p := plan(0, 1, 10)
	p.Terms.Codes = true
	b.put(p)
	first, second := b.keys.Code(b.event, 1), b.keys.Code(b.event, 2)
	b.send("POST", "ann", b.queue(""), "").wants(t, "none", 403, "code_required")
	b.brings("ann", "code", "12345").wants(t, "a wrong one", 403, "bad_code")
	b.brings("ann", "code", first[:7]+second[7:]).wants(t, "a forged one", 403, "bad_code")
	b.brings("ann", "code", b.keys.Code("elsewhere", 1)).wants(t, "another event's", 403, "bad_code")
	b.brings("ann", "altcha", "eyJ9").wants(t, "a proof in its stead", 403, "code_required")
	b.send("GET", "ann", b.queue("/challenge"), "").wants(t, "a challenge", 404, "no_proof")
	if n := b.rdb.Exists(t.Context(), "code:{"+b.event+"}").Val(); n != 0 {
		t.Error("a code that was refused is known to Redis")
	}

	hers := b.brings("ann", "code", strings.ToLower(first))
	hers.wants(t, "her own", 201, "")
	b.brings("bob", "code", first).wants(t, "a used one", 409, "code_used")
	b.brings("bob", "place", hers.Place).wants(t, "another's place", 403, "code_required")
	b.brings("ann", "code", first).wants(t, "her own, from another device", 200, "")
	b.send("POST", "ann", b.queue(""), "").wants(t, "none, as she has a place", 200, "")
	his := b.brings("bob", "code", second)
	his.wants(t, "another", 201, "")

	b.send("DELETE", "ann", b.queue("/me"), "").wants(t, "ann leaves", 204, "")
	b.brings("eve", "code", first).wants(t, "that of who has left", 409, "code_used")
	if back := b.brings("ann", "code", first); back.Status != 201 || back.Number != 3 {
		t.Errorf("ann is back: %d %s", back.Status, back.Body)
	}

	b.run(b.rooms)
	eventually(t, "the codes are written down", func() bool { return b.count(`SELECT count(*) FROM room_codes`) == 2 })
	if n := b.rdb.Exists(t.Context(), "used:{"+b.event+"}").Val(); n != 0 {
		t.Error("codes that are written down are kept to be")
	}
	b.must(b.rdb.FlushAll(t.Context()).Err())
	b.brings("eve", "code", first).wants(t, "a used one, after Redis lost everything", 409, "code_used")
	b.brings("eve", "code", second).wants(t, "a used one, after Redis lost everything", 409, "code_used")
	if back := b.brings("bob", "place", his.Place); back.Status != 200 || back.Number != his.Number {
		t.Errorf("with his place bob is back: %d %s", back.Status, back.Body)
	}
	b.brings("ann", "code", first).wants(t, "with her code ann is back", 201, "")
}

func TestACodeThatWasUsedIsWrittenDownThoughTheRoomTakesNoneAnyMore(t *testing.T) {
	b := newBox(t)
	p := plan(0, 1, 10)
	p.Terms.Codes = true
	b.put(p)
	code := b.keys.Code(b.event, 1)
	b.brings("ann", "code", code).wants(t, "her code", 201, "")
	p.Terms.Codes = false
	b.put(p)
	b.run(b.rooms)
	eventually(t, "it is written down", func() bool { return b.count(`SELECT count(*) FROM room_codes`) == 1 })
	b.must(b.rdb.FlushAll(t.Context()).Err())
	p.Terms.Codes = true
	b.put(p)
	b.brings("bob", "code", code).wants(t, "once codes are asked for again, hers", 409, "code_used")
}

func TestACodeCountsOnceAcrossTheDrawAndAfterIt(t *testing.T) {
	b := newBox(t)
	p := plan(60_000, 100, 100)
	p.Terms.Codes = true
	p.Closes = time.Now().Add(6 * time.Second)
	p.Opens = p.Closes
	b.put(p)
	code := b.keys.Code(b.event, 1)
	receipt := b.brings("ann", "code", code)
	if receipt.Status != 201 || !receipt.Draw {
		t.Fatalf("%d %s", receipt.Status, receipt.Body)
	}
	b.brings("bob", "code", code).wants(t, "bob, in the draw", 409, "code_used")
	b.brings("ann", "code", code).wants(t, "ann, from another device", 200, "")
	b.run(b.rooms)
	b.until("it is open", func(f frame) bool { return f.State == waitingroom.Open })
	b.brings("bob", "code", code).wants(t, "bob, after the draw", 409, "code_used")
	b.must(b.rdb.FlushAll(t.Context()).Err())
	b.brings("bob", "code", code).wants(t, "bob, after Redis lost everything", 409, "code_used")
	if drawn := b.brings("ann", "place", receipt.Place); drawn.Status != 200 || drawn.Number != 1 {
		t.Errorf("ann, with her receipt: %d %s", drawn.Status, drawn.Body)
	}
}

func TestOfFiftyAccountsThatRaceForOneCodeOneHasIt(t *testing.T) {
	b := newBox(t)
	p := plan(0, 1, 10)
	p.Terms.Codes = true
	b.put(p)
	code := b.keys.Code(b.event, 1)
	var won, used atomic.Int64
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			a := b.brings(fmt.Sprint("fan-", n), "code", code)
			for a.Code == "store_unavailable" { // as on a machine that is busy
				a = b.brings(fmt.Sprint("fan-", n), "code", code)
			}
			switch a.Code {
			case "":
				won.Add(1)
			case "code_used":
				used.Add(1)
			default:
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || used.Load() != 49 {
		t.Errorf("%d won, and %d were told that it is used", won.Load(), used.Load())
	}
}

// room is the room as it is known.
func (b *box) room() *waitingroom.Room {
	b.Helper()
	room, err := b.rooms.Room(b.Context(), b.event)
	b.must(err)
	return room
}

// challenge is work as a client is given it.
func (b *box) challenge(user string) waitingroom.Challenge {
	b.Helper()
	a := b.send("GET", user, b.queue("/challenge"), "")
	var c waitingroom.Challenge
	b.must(json.Unmarshal([]byte(a.Body), &c))
	if a.Status != 200 || a.Header.Get("Cache-Control") != "no-store" || c.Algorithm != "SHA-256" {
		b.Fatalf("%d %s", a.Status, a.Body)
	}
	return c
}

// solve does the work, as any client of ALTCHA's would.
func solve(t testing.TB, c waitingroom.Challenge) (number int) {
	t.Helper()
	for number := range c.MaxNumber + 1 {
		if sum := sha256.Sum256([]byte(c.Salt + strconv.Itoa(number))); hex.EncodeToString(sum[:]) == c.Challenge {
			return number
		}
	}
	t.Fatal("the challenge has no solution")
	return 0
}

// payload is a challenge with a number as it is sent.
func payload(c waitingroom.Challenge, number int) string {
	text := fmt.Sprintf(`{"algorithm":%q,"challenge":%q,"number":%d,"salt":%q,"signature":%q,"took":12}`, c.Algorithm, c.Challenge, number, c.Salt, c.Signature)
	return base64.StdEncoding.EncodeToString([]byte(text))
}

func TestAProofOfWorkIsOfOneAccountAndOneEventAndCountsOnce(t *testing.T) {
	b := newBox(t)
	p := plan(0, 1, 10)
	p.Terms.Proof = 2000
	b.put(p)
	id := b.keys.TicketOf(b.event, "ann").ID
	made := func(event, user string, most int, ago time.Duration) string {
		of := *b.room()
		of.Event, of.Terms.Proof = event, most
		c, err := b.keys.Challenge(&of, b.keys.TicketOf(event, user).ID, time.Now().Add(-ago))
		b.must(err)
		return payload(c, solve(t, c))
	}
	hers := b.challenge("ann")
	number := solve(t, hers)
	later := hers
	later.Salt = strings.Replace(hers.Salt, "expires=", "expires=9", 1)
	forged := later
	sum := sha256.Sum256([]byte(forged.Salt + "1"))
	forged.Challenge = hex.EncodeToString(sum[:])
	spliced := hers // the first digit of the number becomes one of the salt
	spliced.Salt += strconv.Itoa(number)[:1]
	rest, _ := strconv.Atoi(strconv.Itoa(number)[1:])
	unasked := hers
	unasked.Algorithm = "SHA-1"
	for what, c := range map[string]struct{ altcha, code string }{
		"none":                          {"", "proof_required"},
		"nonsense":                      {"no base64", "bad_proof"},
		"another number":                {payload(hers, number+1), "bad_proof"},
		"a later end":                   {payload(later, number), "bad_proof"},
		"a challenge of one's own":      {payload(forged, 1), "bad_proof"},
		"a number that ends in a salt":  {payload(spliced, rest), "bad_proof"},
		"another algorithm":             {payload(unasked, number), "bad_proof"},
		"that of another account":       {made(b.event, "bob", 2000, 0), "bad_proof"},
		"that of another event":         {made("elsewhere", "ann", 2000, 0), "bad_proof"},
		"one that is too easy":          {made(b.event, "ann", 1999, 0), "bad_proof"},
		"one whose time is over":        {made(b.event, "ann", 2000, 11*time.Minute), "proof_expired"},
		"a place of another in between": {base64.StdEncoding.EncodeToString([]byte(id.String())), "bad_proof"},
	} {
		b.brings("ann", "altcha", c.altcha).wants(t, what, 403, c.code)
	}
	if keys := b.rdb.Keys(t.Context(), "proof:*").Val(); len(keys) > 0 {
		t.Errorf("proofs that were refused are known to Redis: %v", keys)
	}

	b.brings("ann", "altcha", payload(hers, number)).wants(t, "her own", 201, "")
	b.brings("ann", "altcha", payload(hers, number)).wants(t, "the same, as the answer was lost", 200, "")
	b.brings("ann", "altcha", made(b.event, "ann", 2000, 11*time.Minute)).wants(t, "an old one, as she has a place", 200, "")
	b.send("POST", "ann", b.queue(""), "").wants(t, "none, as she has a place", 200, "")
	b.send("DELETE", "ann", b.queue("/me"), "").wants(t, "ann leaves", 204, "")
	b.brings("ann", "altcha", payload(hers, number)).wants(t, "replayed", 409, "proof_used")
	b.send("POST", "ann", b.queue(""), "").wants(t, "none", 403, "proof_required")
	again := b.challenge("ann")
	b.brings("ann", "altcha", payload(again, solve(t, again))).wants(t, "another", 201, "")

	his := b.brings("bob", "code", b.keys.Code(b.event, 9))
	his.wants(t, "a code in its stead", 201, "")
	b.brings("eve", "code", b.keys.Code(b.event, 9)).wants(t, "that code again", 409, "code_used")

	b.must(b.rdb.FlushAll(t.Context()).Err())
	b.send("POST", "ann", b.queue(""), "").wants(t, "without anything, after Redis lost everything", 403, "proof_required")
	if back := b.brings("bob", "place", his.Place); back.Status != 200 || back.Number != his.Number {
		t.Errorf("with his place: %d %s", back.Status, back.Body)
	}
}

func TestWhoCannotComputeWaitsInstead(t *testing.T) {
	b := newBox(t)
	p := plan(0, 1, 10)
	p.Terms.Proof = 1000
	b.put(p)
	wait := func(event, user string, wait, ago time.Duration) string {
		of := *b.room()
		of.Event = event
		token, err := b.keys.SignWait(&of, b.keys.TicketOf(event, user).ID, wait, time.Now().Add(-ago))
		b.must(err)
		return token
	}
	b.brings("ann", "waited", wait(b.event, "bob", 0, 0)).wants(t, "another account's", 403, "bad_proof")
	b.brings("ann", "waited", wait("elsewhere", "ann", 0, 0)).wants(t, "another event's", 403, "bad_proof")
	b.brings("ann", "waited", wait(b.event, "ann", 0, time.Hour)).wants(t, "an old one", 403, "proof_expired")
	if early := b.brings("ann", "waited", wait(b.event, "ann", time.Minute, 0)); early.Status != 409 || early.Code != "proof_early" || early.Header.Get("Retry-After") == "" {
		t.Errorf("too soon: %d %s", early.Status, early.Body)
	}
	a := b.send("GET", "ann", b.queue("/challenge?wait"), "")
	var got struct {
		Waited  string
		Seconds int
	}
	b.must(json.Unmarshal([]byte(a.Body), &got))
	if a.Status != 200 || got.Seconds != 1 || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	eventually(t, "the wait is over", func() bool { return b.brings("ann", "waited", got.Waited).Status == 201 })
	b.send("DELETE", "ann", b.queue("/me"), "").wants(t, "ann leaves", 204, "")
	b.brings("ann", "waited", got.Waited).wants(t, "replayed", 409, "proof_used")
}

func TestSuspectsAreNeverCalledAndChangeNothingForOthers(t *testing.T) {
	b := newBox(t)
	b.put(plan(600, 1, 1000)) // calls a hundred ahead
	bots := map[string]answer{}
	var fans []answer
	for n := range 40 { // nine of ten
		for k := range 9 {
			name := fmt.Sprint("bot-", n, "-", k)
			bots[name] = b.joins(name, "")
		}
		fans = append(fans, b.joins(fmt.Sprint("fan-", n), ""))
	}
	for name := range bots {
		b.must(b.rooms.Suspect(t.Context(), b.event, name))
	}
	line := waitingroom.NewLine(b.rdb)
	b.must(line.Left(t.Context(), b.event, 1000, 0))
	eventually(t, "it is open", func() bool {
		room, err := b.rooms.Open(t.Context(), b.event)
		return err == nil && room.State == waitingroom.Open
	})
	bot := b.keys.TicketOf(b.event, "bot-0-0").ID
	serving, err := line.Call(t.Context(), b.event)
	b.must(err)
	if serving < fans[39].Number {
		t.Errorf("of forty who are not suspected those up to %d are called, and the last has %d", serving, fans[39].Number)
	}
	for range 3 {
		if turn, err := line.Claim(t.Context(), b.event, bot, waitingroom.Known{}); err != nil || !turn.Inside.IsZero() || !turn.Called {
			t.Errorf("the first in line, which is suspected: %+v, %v", turn, err)
		}
	}
	for n := range 3 { // in order, though bots have asked before and are before them
		id := b.keys.TicketOf(b.event, fmt.Sprint("fan-", n)).ID
		eventually(t, "the next fan is let in", func() bool {
			turn, err := line.Claim(t.Context(), b.event, id, waitingroom.Known{})
			b.must(err)
			if turn.Inside.IsZero() && turn.Ahead > 0 {
				t.Errorf("before fan %d are %d", n, turn.Ahead)
			}
			return !turn.Inside.IsZero()
		})
	}
	if f, err := line.Look(t.Context(), b.event); err != nil || f.Inside != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, key := range []string{"try:{" + b.event + "}", "seen:{" + b.event + "}"} {
		if members := b.rdb.ZRange(t.Context(), key, 0, -1).Val(); slices.Contains(members, bot.String()) {
			t.Errorf("a suspect is in %s", key)
		}
	}
}

// members are the names in an answer, and in its header those that are not of the moment.
func (a answer) members(t testing.TB) []string {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	names := append(slices.Collect(maps.Keys(body)), slices.Collect(maps.Keys(a.Header))...)
	slices.Sort(names)
	return append(names, strconv.Itoa(a.Status))
}

func TestASuspectCannotTellAndIsSuspectedThoughRedisLosesEverything(t *testing.T) {
	b := newBox(t)
	b.put(plan(6000, 5, 1000))
	for _, rest := range []string{"/suspect", "/trust"} {
		b.admin("POST", rest, `{}`).wants(t, rest+" of nobody", 400, "bad_request")
		b.send("POST", "", "/v1/admin/rooms/elsewhere"+rest, `{"user":"bot"}`).wants(t, rest+" of no room", 404, "no_queue")
	}
	b.admin("POST", "/suspect", `{"user":"early bot"}`).wants(t, "suspect one who is not there yet", 204, "")
	bot := b.joins("bot", "")
	fan := b.joins("fan", "")
	b.admin("POST", "/suspect", `{"user":"bot"}`).wants(t, "suspect the bot", 204, "")
	b.admin("POST", "/suspect", `{"user":"bot"}`).wants(t, "suspect it again", 204, "")
	early := b.joins("early bot", "")
	if early.Number != 3 || !slices.Equal(early.members(t), fan.members(t)) {
		t.Errorf("who was suspected before has %s", early.Body)
	}
	same := func(what string, theirs, others answer) {
		t.Helper()
		if is, was := theirs.members(t), others.members(t); !slices.Equal(is, was) {
			t.Errorf("%s: a suspect gets %v, and another %v", what, is, was)
		}
	}
	same("joining", b.joins("bot", ""), b.joins("fan", ""))
	same("looking", b.send("GET", "bot", b.queue("/me"), ""), b.send("GET", "fan", b.queue("/me"), ""))
	same("waiting", b.send("POST", "bot", b.queue("/pass"), ""), b.send("POST", "fan", b.queue("/pass"), ""))
	if a := b.admin("GET", "", ""); !strings.Contains(a.Body, `"suspected":2`) {
		t.Errorf("%s", a.Body)
	}
	if a := b.admin("GET", "/suspects", ""); !strings.Contains(a.Body, `"user":"bot","because":"operator"`) {
		t.Errorf("%s", a.Body)
	}

	b.run(b.rooms)
	b.enters("fan", fan.Place)
	b.until("the bots are called", func(f frame) bool { return f.Serving >= 3 })
	asks := func(when string) {
		t.Helper()
		for _, who := range []answer{bot, early} {
			user := map[int64]string{1: "bot", 3: "early bot"}[who.Number]
			if a := b.send("POST", user, b.queue("/pass"), fmt.Sprintf(`{"place":%q}`, who.Place)); a.Status != 202 || !strings.Contains(a.Body, `"ahead"`) {
				t.Errorf("%s, %s: %d %s", when, user, a.Status, a.Body)
			}
		}
	}
	asks("called")
	late := b.joins("late", "")
	b.enters("late", late.Place)
	asks("when another was let in")
	eventually(t, "that is kept", func() bool { return b.count(`SELECT serving FROM rooms`) >= late.Number })
	b.must(b.rdb.FlushAll(t.Context()).Err())
	if back := b.joins("bot", bot.Place); back.Number != bot.Number {
		t.Errorf("the bot had place %d and has %d", bot.Number, back.Number)
	}
	b.joins("early bot", early.Place)
	asks("after Redis lost everything")
	b.must(b.rdb.Del(t.Context(), "tar:{"+b.event+"}").Err()) // a failover has lost who is suspected
	eventually(t, "they are suspected again", func() bool { return b.rdb.ZCard(t.Context(), "tar:{"+b.event+"}").Val() == 2 })

	b.joins("bot", bot.Place)
	b.admin("POST", "/trust", `{"user":"bot"}`).wants(t, "trust the bot", 204, "")
	b.enters("bot", bot.Place)
	if n := b.count(`SELECT count(*) FROM room_suspects WHERE NOT trusted`); n != 1 {
		t.Errorf("%d are suspected", n)
	}
}

func TestOneSuspectForAnotherIsFoundToo(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.must(b.rooms.Suspect(t.Context(), b.event, "bot"))
	fan := b.joins("fan", "")
	id := func(user string) string { return b.keys.TicketOf(b.event, user).ID.String() }
	tar, q := "tar:{"+b.event+"}", "q:{"+b.event+"}"
	b.must(b.rdb.ZRem(t.Context(), tar, id("bot")).Err()) // a failover has lost that the bot is suspected, and that the fan is trusted
	b.must(b.rdb.ZRem(t.Context(), q, id("fan")).Err())
	b.must(b.rdb.ZAdd(t.Context(), tar, redis.Z{Score: float64(fan.Number), Member: id("fan")}).Err())
	b.run(b.rooms)
	eventually(t, "the bot is suspected", func() bool {
		return slices.Equal(b.rdb.ZRange(t.Context(), tar, 0, -1).Val(), []string{id("bot")})
	})
	if n := b.rdb.ZScore(t.Context(), q, id("fan")).Val(); n != float64(fan.Number) {
		t.Errorf("the fan has place %v", n)
	}
}

func TestSuspectsAreListedAPageAtATimeAndCountedWithoutThat(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	for n := range 7 { // some at the same time
		_, err := b.pool.Exec(t.Context(), `INSERT INTO room_suspects (event_id, user_id, ticket, because, at) VALUES ($1, $2, $3, 'limits', $4)`,
			b.event, fmt.Sprint("bot ", n), make([]byte, 16), time.Unix(1_800_000_000-int64(n/3), 0))
		b.must(err)
	}
	var all []string
	for query, pages := "?limit=2", 1; ; pages++ {
		a := b.admin("GET", "/suspects"+query, "")
		var page struct {
			Suspects []struct{ User string }
			Next     string
		}
		if a.Status != 200 || json.Unmarshal([]byte(a.Body), &page) != nil || len(page.Suspects) > 2 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		for _, s := range page.Suspects {
			all = append(all, s.User)
		}
		if page.Next == "" {
			if pages != 4 {
				t.Errorf("seven are on %d pages", pages)
			}
			break
		}
		query = "?limit=2&before=" + page.Next
	}
	if want := []string{"bot 0", "bot 1", "bot 2", "bot 3", "bot 4", "bot 5", "bot 6"}; !slices.Equal(all, want) {
		t.Errorf("listed are %v", all)
	}
	for _, bad := range []string{"limit=0", "limit=5001", "limit=x", "before=x", "before=MSA"} {
		b.admin("GET", "/suspects?"+bad, "").wants(t, bad, 400, "bad_request")
	}
	if a := b.admin("GET", "", ""); !strings.Contains(a.Body, `"suspected":7`) {
		t.Errorf("%s", a.Body)
	}
}

func TestASuspectWhomAnOperatorSuspectsAgainIsSoSinceThen(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.limited(waitingroom.Limits{PerAccount: 1, PerAddress: -1, Suspect: 20})
	b.run(b.rooms)
	hammers := func() {
		for range 50 {
			b.send("POST", "bot", b.queue(""), "")
		}
	}
	shown := func() (s waitingroom.Suspect) {
		t.Helper()
		suspects, err := b.rooms.Suspects(t.Context(), b.event, waitingroom.SuspectQuery{})
		b.must(err)
		if len(suspects) != 1 {
			t.Fatalf("%+v", suspects)
		}
		return suspects[0]
	}
	hammers()
	eventually(t, "the bot is suspected", func() bool { return b.count(`SELECT count(*) FROM room_suspects`) == 1 })
	first := shown()
	b.admin("POST", "/suspect", `{"user":"bot"}`).wants(t, "an operator suspects it, too", 204, "")
	if s := shown(); s.Because != "limits" || !s.At.Equal(first.At) {
		t.Errorf("who was suspected already is so since %+v, not %+v", s, first)
	}
	b.admin("POST", "/trust", `{"user":"bot"}`).wants(t, "trust", 204, "")
	b.admin("POST", "/suspect", `{"user":"bot"}`).wants(t, "an operator suspects it again", 204, "")
	if s := shown(); s.Because != "operator" || !s.At.After(first.At) {
		t.Errorf("suspected again it is so since %+v, and was since %+v", s, first)
	}
}

func TestSuspectsOfADrawAreOnItsListAndDrawnAsAllOthers(t *testing.T) {
	b := newBox(t)
	p := plan(60_000, 1000, 1000)
	p.Closes = time.Now().Add(6 * time.Second)
	p.Opens = p.Closes
	b.put(p)
	receipts := map[string]answer{}
	for n := range 20 {
		user := fmt.Sprint("fan-", n)
		receipts[user] = b.joins(user, "")
	}
	for n := range 10 {
		b.must(b.rooms.Suspect(t.Context(), b.event, fmt.Sprint("fan-", n)))
	}
	b.run(b.rooms)
	b.until("all are drawn", func(f frame) bool { return f.State == waitingroom.Open && f.Draw.Tickets == 20 && f.Serving >= 20 })
	drawn := map[int64]bool{}
	for user, receipt := range receipts {
		drawn[b.joins(user, receipt.Place).Number] = true
	}
	if len(drawn) != 20 || drawn[0] {
		t.Errorf("the twenty have numbers %v", drawn)
	}
	for n := 10; n < 20; n++ {
		user := fmt.Sprint("fan-", n)
		b.enters(user, receipts[user].Place)
	}
	for n := range 10 {
		user := fmt.Sprint("fan-", n)
		b.send("POST", user, b.queue("/pass"), "").wants(t, "a suspect", 202, "")
	}
}
