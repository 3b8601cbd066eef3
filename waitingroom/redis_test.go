package waitingroom_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/internal/browsertest"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/waitingroom"
	"seatcast/waitingroom/draw"
)

func TestMain(m *testing.M) { devtest.Main(m, browsertest.Stop) }

// hall is a room of a test of its own.
type hall struct {
	testing.TB
	event string
	line  *waitingroom.Line
	rdb   *redis.Client
	terms waitingroom.Terms
	told  int64 // how often the room was told what it is
}

func newHall(t testing.TB, o waitingroom.Opening) *hall {
	t.Helper()
	h := &hall{TB: t, event: devtest.Event(t), rdb: devtest.Redis(t), terms: o.Terms}
	h.line = waitingroom.NewLine(h.rdb)
	h.must(h.line.Make(t.Context(), h.event, o))
	return h
}

func (h *hall) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// fan is the ticket of the n-th fan.
func fan(n int) draw.Ticket {
	return draw.Ticket{ID: draw.ID{0: byte(n >> 16), 1: byte(n >> 8), 2: byte(n)}, Nonce: draw.ID{15: byte(n)}}
}

func (h *hall) join(n int) waitingroom.Joined {
	h.Helper()
	j, err := h.line.Join(h.Context(), h.event, fan(n), waitingroom.Known{})
	h.must(err)
	return j
}

func (h *hall) claim(n int) waitingroom.Turn {
	h.Helper()
	turn, err := h.line.Claim(h.Context(), h.event, fan(n).ID, waitingroom.Known{})
	h.must(err)
	return turn
}

func (h *hall) leave(n int) {
	h.Helper()
	_, err := h.line.Leave(h.Context(), h.event, fan(n).ID)
	h.must(err)
}

func (h *hall) tell(s waitingroom.State, t waitingroom.Terms) {
	h.Helper()
	h.told++
	h.must(h.line.Tell(h.Context(), h.event, waitingroom.Order{Version: h.told, State: s, Terms: t}))
}

func (h *hall) call() int64 {
	h.Helper()
	serving, err := h.line.Call(h.Context(), h.event)
	h.must(err)
	return serving
}

func (h *hall) look() waitingroom.Frame {
	h.Helper()
	f, err := h.line.Look(h.Context(), h.event)
	h.must(err)
	return f
}

// selling is an open room that lets many in, with few inside.
func selling(rate, burst, most int) waitingroom.Opening {
	return waitingroom.Opening{Free: 1000, New: true, Order: waitingroom.Order{State: waitingroom.Open,
		Terms: waitingroom.Terms{Rate: rate, Burst: burst, Cap: most, Session: time.Minute}}}
}

func TestAPlaceIsKeptWhoeverComesBack(t *testing.T) {
	h := newHall(t, selling(0, 1, 10))
	for n := range 5 {
		if j := h.join(n); j.Number != int64(n+1) {
			t.Errorf("fan %d has place %d", n, j.Number)
		}
	}
	for n := range 5 {
		if j := h.join(n); j.Number != int64(n+1) {
			t.Errorf("back, fan %d has place %d", n, j.Number)
		}
	}
	h.leave(1)
	if j := h.join(1); j.Number != 6 {
		t.Errorf("who had left comes back to place %d", j.Number)
	}
	if j := h.join(2); j.Number != 3 {
		t.Errorf("the place of another became %d", j.Number)
	}
}

func TestPlacesComeBackWithTheirTicketsToARedisThatForgotThem(t *testing.T) {
	h := newHall(t, selling(0, 1, 10))
	for n := range 5 {
		h.join(n)
	}
	h.must(h.rdb.FlushDB(t.Context()).Err())
	o := selling(0, 1, 10)
	o.Last = 5
	h.must(h.line.Make(t.Context(), h.event, o))
	known := func(n int, number int64) int64 {
		j, err := h.line.Join(t.Context(), h.event, fan(n), waitingroom.Known{Number: number})
		h.must(err)
		return j.Number
	}
	if got := known(9, 0); got != 6 {
		t.Errorf("a newcomer has place %d", got)
	}
	if got := known(3, 4); got != 4 {
		t.Errorf("who had place 4 has %d", got)
	}
	if got := known(2, 0); got != 7 {
		t.Errorf("another device without the ticket has %d", got)
	}
	if got := known(2, 3); got != 3 {
		t.Errorf("and with it %d", got)
	}
	if got := known(2, 7); got != 3 {
		t.Errorf("the worse of two places became %d", got)
	}
}

func TestANumberThatIsClaimedIsGivenToNobodyElse(t *testing.T) {
	h := newHall(t, selling(0, 1, 10))
	_, err := h.line.Claim(t.Context(), h.event, fan(0).ID, waitingroom.Known{Number: 7})
	h.must(err)
	if j := h.join(1); j.Number != 8 {
		t.Errorf("behind 7 a newcomer has %d", j.Number)
	}
}

func TestARoomThatIsBehindWhoAsksAnswersNobody(t *testing.T) {
	h := newHall(t, selling(60, 1, 10))
	known := waitingroom.Known{Version: 2}
	if j, err := h.line.Join(t.Context(), h.event, fan(0), known); err == nil {
		t.Errorf("a place: %+v", j)
	}
	if turn, err := h.line.Claim(t.Context(), h.event, fan(0).ID, known); err == nil || errors.Is(err, waitingroom.ErrNoPlace) {
		t.Errorf("%+v, %v", turn, err)
	}
	order := waitingroom.Order{Version: 2, State: waitingroom.Open, Terms: h.terms, Drawn: true}
	if err := h.line.Tell(t.Context(), h.event, order); err == nil {
		t.Error("it is told that it is drawn, and nobody has a place")
	}
	h.must(h.line.Place(t.Context(), h.event, []draw.Ranked{{Ticket: fan(0), Rank: 1}}))
	h.must(h.line.Tell(t.Context(), h.event, order))
	if j, err := h.line.Join(t.Context(), h.event, fan(0), known); err != nil || j.Number != 1 {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestALineThatRedisHasLostIsNotCalledAllAtOnce(t *testing.T) {
	o := selling(600, 10, 1000)
	o.Serving, o.Last = 100, 60_000
	h := newHall(t, o)
	since := h.look().Since
	for _, n := range []int{500, 50_000, 59_000} { // who is back
		_, err := h.line.Join(t.Context(), h.event, fan(n), waitingroom.Known{Number: int64(n)})
		h.must(err)
	}
	called := int64(0)
	for range 50 {
		called = h.call()
	}
	if called <= 100 || called > 2000 {
		t.Errorf("of 60000, at a hundred each ten seconds, numbers up to %d are called", called)
	}
	h.must(h.rdb.FlushDB(t.Context()).Err())
	h.must(h.line.Make(t.Context(), h.event, o))
	if is := h.look().Since; !is.After(since) {
		t.Errorf("made at %v and again at %v", since, is)
	}
}

func TestAColdRoomSaysSoAndIsMadeOnce(t *testing.T) {
	h := newHall(t, selling(60, 1, 10))
	h.must(h.rdb.FlushDB(t.Context()).Err())
	if _, err := h.line.Join(t.Context(), h.event, fan(1), waitingroom.Known{}); err == nil {
		t.Error("a cold room gives places")
	}
	h.must(h.line.Make(t.Context(), h.event, selling(60, 1, 10)))
	h.join(1)
	o := selling(60, 1, 10)
	o.State, o.Last = waitingroom.Over, 77
	h.must(h.line.Make(t.Context(), h.event, o))
	if j := h.join(2); j.Number != 2 {
		t.Errorf("a room that was there was made again: %+v", j)
	}
}

func TestWhoIsCalledAndHereIsLetInInOrder(t *testing.T) {
	h := newHall(t, selling(600, 3, 100))
	const fans = 50
	for n := range fans {
		h.join(n)
	}
	if serving := h.call(); serving != fans {
		t.Fatalf("called up to %d", serving)
	}
	for _, n := range []int{7, 3, 2} {
		if turn := h.claim(n); !turn.Inside.IsZero() && n > 2 || turn.Inside.IsZero() && n == 2 {
			t.Errorf("fan %d of three tokens: %+v", n, turn)
		}
	}
	for n := range 2 {
		if turn := h.claim(n); turn.Inside.IsZero() {
			t.Errorf("fan %d: %+v", n, turn)
		}
	}
}

func TestWhoIsNotCalledIsNotLetIn(t *testing.T) {
	h := newHall(t, selling(6, 10, 100))
	for n := range 20 {
		h.join(n)
	}
	serving := h.call()
	if serving != 1 {
		t.Fatalf("called up to %d at one each ten seconds", serving)
	}
	if turn := h.claim(1); !turn.Inside.IsZero() || turn.Called || turn.Number != 2 {
		t.Errorf("number 2 of 1: %+v", turn)
	}
	if _, err := h.line.Claim(t.Context(), h.event, fan(99).ID, waitingroom.Known{}); !errors.Is(err, waitingroom.ErrNoPlace) {
		t.Errorf("a stranger: %v", err)
	}
}

func TestThePlacesInsideAreNeverMoreThanTheCap(t *testing.T) {
	o := selling(60_000, 100, 3)
	h := newHall(t, o)
	for n := range 10 {
		h.join(n)
	}
	h.call()
	in := 0
	for n := range 10 {
		if !h.claim(n).Inside.IsZero() {
			in++
		}
	}
	if f := h.look(); in != 3 || f.Inside != 3 {
		t.Errorf("%d let in, %d inside", in, f.Inside)
	}
	h.leave(1)
	if turn := h.claim(3); turn.Inside.IsZero() {
		t.Errorf("a slot is free and the next is not let in: %+v", turn)
	}
	if turn := h.claim(4); !turn.Inside.IsZero() {
		t.Errorf("beyond the cap: %+v", turn)
	}
	if again := h.claim(2); again.Inside.IsZero() {
		t.Error("who is inside is not told so again")
	}
}

func TestWhoWasInsideComesBackBehindAllOthers(t *testing.T) {
	h := newHall(t, selling(60_000, 100, 10))
	for n := range 3 {
		h.join(n)
	}
	h.call()
	h.claim(0)
	if j := h.join(0); j.Until.IsZero() {
		t.Errorf("who is inside is not told so: %+v", j)
	}
	h.leave(0)
	j, err := h.line.Join(t.Context(), h.event, fan(0), waitingroom.Known{Number: 1})
	if h.must(err); j.Number != 4 {
		t.Errorf("with the place of before it is %d", j.Number)
	}
}

func TestPausedAndOverLetNobodyInAndPausingKeepsPlaces(t *testing.T) {
	h := newHall(t, selling(60_000, 100, 10))
	h.join(0)
	h.call()
	h.tell(waitingroom.Paused, h.terms)
	h.join(1)
	if turn := h.claim(0); !turn.Inside.IsZero() || turn.Number != 1 {
		t.Errorf("paused: %+v", turn)
	}
	h.tell(waitingroom.Open, h.terms)
	if turn := h.claim(0); turn.Inside.IsZero() {
		t.Errorf("open again: %+v", turn)
	}
	h.must(h.line.Left(t.Context(), h.event, 0, 0))
	h.call()
	if turn := h.claim(1); !turn.Inside.IsZero() {
		t.Errorf("no seat is left: %+v", turn)
	}
	h.tell(waitingroom.Over, h.terms)
	if _, err := h.line.Claim(t.Context(), h.event, fan(1).ID, waitingroom.Known{}); !errors.Is(err, waitingroom.ErrOver) {
		t.Errorf("over: %v", err)
	}
	if _, err := h.line.Join(t.Context(), h.event, fan(2), waitingroom.Known{}); !errors.Is(err, waitingroom.ErrOver) {
		t.Errorf("over, and somebody joins: %v", err)
	}
	if _, err := h.line.Claim(t.Context(), h.event, fan(0).ID, waitingroom.Known{}); err != nil {
		t.Errorf("who is inside is thrown out: %v", err)
	}
}

func TestWhatIsOlderChangesNothingButServingOnlyRises(t *testing.T) {
	h := newHall(t, selling(60, 5, 1000))
	say := func(version, serving int64, s waitingroom.State) waitingroom.Frame {
		h.must(h.line.Tell(t.Context(), h.event, waitingroom.Order{Version: version, State: s, Terms: h.terms, Serving: serving}))
		return h.look()
	}
	if f := say(2, 0, waitingroom.Paused); f.State != waitingroom.Paused {
		t.Errorf("told to pause it is %s", f.State)
	}
	if f := say(1, 7, waitingroom.Open); f.State != waitingroom.Paused || f.Serving != 7 {
		t.Errorf("what is older makes it %+v", f)
	}
	if f := say(3, 5, waitingroom.Open); f.State != waitingroom.Open || f.Serving != 7 {
		t.Errorf("what is newer makes it %+v", f)
	}
}

func TestWhoLeavesTheSaleHasNoPassAndNoSlotAnyMore(t *testing.T) {
	h := newHall(t, selling(60_000, 100, 1))
	h.join(0)
	h.join(1)
	h.call()
	in := h.claim(0).Inside
	if in.IsZero() || !h.claim(1).Inside.IsZero() {
		t.Fatal("one of two may be inside")
	}
	until, err := h.line.Finish(t.Context(), h.event, fan(0).ID)
	if h.must(err); !until.Equal(in) {
		t.Errorf("inside until %v, and it ended what lasted until %v", in, until)
	}
	over := h.rdb.ZRange(t.Context(), seatmap.RevokedKey(h.event), 0, -1).Val()
	if want := fmt.Sprintf("%v-%d", fan(0).ID, in.UnixMilli()); !slices.Equal(over, []string{want}) {
		t.Errorf("over are the passes %v, not %s", over, want)
	}
	if h.claim(1).Inside.IsZero() {
		t.Error("the slot is not free")
	}
	if until, err := h.line.Finish(t.Context(), h.event, fan(0).ID); err != nil || !until.IsZero() {
		t.Errorf("the second time: %v, %v", until, err)
	}
}

func TestALateOneIsBehindAllWhoAreDrawn(t *testing.T) {
	o := selling(60_000, 1000, 1000)
	o.State = waitingroom.Draw
	h := newHall(t, o)
	for n := range 30 {
		if j := h.join(n); !j.Drawn || j.Nonce != fan(n).Nonce.String() {
			t.Fatalf("%+v", j)
		}
	}
	again, err := h.line.Join(t.Context(), h.event, draw.Ticket{ID: fan(3).ID, Nonce: draw.ID{1}}, waitingroom.Known{})
	if h.must(err); again.Nonce != fan(3).Nonce.String() {
		t.Errorf("a second device changed the ticket: %+v", again)
	}
	h.leave(29)
	h.must(h.line.Close(t.Context(), h.event))
	h.must(h.line.Close(t.Context(), h.event))
	if j := h.join(40); j.Number != 31 {
		t.Errorf("a late one has place %d behind 30", j.Number)
	}
	tickets, err := h.line.Listed(t.Context(), h.event)
	h.must(err)
	list, err := draw.Freeze(tickets)
	h.must(err)
	if list.Len() != 30 { // who has left stays on it
		t.Fatalf("%d on the list", list.Len())
	}
	ranks := list.Ranks(draw.Digest{1})
	var ranked []draw.Ranked
	for at, t := range list.All() {
		if t.ID != fan(29).ID {
			ranked = append(ranked, draw.Ranked{Ticket: t, Rank: ranks[at]})
		}
	}
	h.must(h.line.Place(t.Context(), h.event, ranked))
	h.must(h.line.Place(t.Context(), h.event, ranked))
	h.tell(waitingroom.Open, h.terms)
	for n := range 29 {
		_, at, _ := list.Find(fan(n).ID)
		if j := h.join(n); j.Number != int64(ranks[at]) {
			t.Errorf("fan %d is drawn %d and has place %d", n, ranks[at], j.Number)
		}
	}
	if f := h.look(); f.Waiting != 30 || f.Last != 31 {
		t.Errorf("%+v", f)
	}
}

func TestWhoLeavesADrawAgainAndAgainIsWrittenDownOnce(t *testing.T) {
	o := selling(60_000, 1000, 1000)
	o.State = waitingroom.Draw
	h := newHall(t, o)
	h.join(0)
	for range 5 {
		h.leave(0)
	}
	h.join(0)
	h.leave(0)
	if n := h.rdb.LLen(t.Context(), "new:{"+h.event+"}").Val(); n != 4 {
		t.Errorf("two joins and as many times leaving are %d entries", n)
	}
}

// Four nodes that call and a crowd that claims as fast as it can.
func TestNeverMoreAreLetInThanTheRateWhoeverAsks(t *testing.T) {
	const (
		rate, burst, most, fans = 1200, 7, 60, 400 // twenty a second
		seconds                 = 4
	)
	h := newHall(t, selling(rate, burst, most))
	for n := range fans {
		h.join(n)
	}
	var (
		mu     sync.Mutex
		in     = map[int]time.Time{}
		nodes  sync.WaitGroup
		next   atomic.Int64
		ending = time.Now().Add(seconds * time.Second)
	)
	for range 4 {
		nodes.Go(func() {
			rdb := redis.NewClient(h.rdb.Options())
			defer rdb.Close()
			line := waitingroom.NewLine(rdb)
			for time.Now().Before(ending) {
				if _, err := line.Call(t.Context(), h.event); err != nil {
					t.Error(err)
				}
				n := int(next.Add(1)) % fans
				turn, err := line.Claim(t.Context(), h.event, fan(n).ID, waitingroom.Known{})
				if err != nil && !errors.Is(err, waitingroom.ErrNoPlace) {
					t.Error(err)
				}
				if !turn.Inside.IsZero() {
					mu.Lock()
					in[n] = turn.Inside.Add(-time.Minute) // by the clock of Redis
					mu.Unlock()
				}
			}
		})
	}
	nodes.Wait()
	got := slices.SortedFunc(maps.Values(in), time.Time.Compare)
	within(t, got, rate, burst)
	if f := h.look(); f.Inside > most {
		t.Errorf("%d are inside, and %d may be", f.Inside, most)
	}
	if len(got) < most/2 {
		t.Errorf("only %d were let in", len(got))
	}
}

// within fails unless in any window w at most rate × w + burst were let in.
func within(t *testing.T, in []time.Time, rate, burst int) {
	t.Helper()
	for from := range in {
		for to := from; to < len(in); to++ {
			w := in[to].Sub(in[from]) + 2*time.Millisecond // times are whole milliseconds
			if most := float64(rate)*w.Minutes() + float64(burst); float64(to-from+1) > most {
				t.Fatalf("%d were let in within %v, and %.1f may be", to-from+1, w, most)
			}
		}
	}
}

func TestSleepersArePassedOverAndFirstWhenTheyAreBack(t *testing.T) {
	h := newHall(t, selling(1200, 20, 1000))
	const fans = 300
	for n := range fans {
		h.join(n)
	}
	awake := func(n int) bool { return n%5 == 4 } // four of five sleep
	in := map[int]bool{}
	begun := time.Now()
	for len(in) < 40 {
		if time.Since(begun) > time.Minute {
			t.Fatalf("%d were let in, and the line is called up to %d", len(in), h.look().Serving)
		}
		h.call()
		for n := range fans {
			if awake(n) && !in[n] && int64(n) < h.look().Serving {
				if !h.claim(n).Inside.IsZero() {
					in[n] = true
				}
			}
		}
	}
	for begun = time.Now(); ; { // it is let in once a token is there
		turn := h.claim(0)
		if !turn.Inside.IsZero() {
			return
		}
		if turn.Ahead != 0 {
			t.Fatalf("the first of all is behind %d", turn.Ahead)
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("a sleeper who is back is not let in")
		}
	}
}

func TestServingNeverFalls(t *testing.T) {
	h := newHall(t, selling(600, 10, 1000))
	last := int64(0)
	for n := range 200 {
		h.join(n)
		if n%3 == 0 {
			h.leave(n / 2)
		}
		serving := h.call()
		if serving < last {
			t.Fatalf("serving fell from %d to %d", last, serving)
		}
		last = serving
	}
}

func TestAClockThatWentBackKeepsNobodyOut(t *testing.T) {
	h := newHall(t, selling(6000, 1, 100))
	for n := range 3 {
		h.join(n)
	}
	h.call()
	if h.claim(0).Inside.IsZero() {
		t.Fatal("the first of three is not let in")
	}
	ahead := time.Now().Add(time.Hour).UnixMilli() // as the primary before had it
	h.must(h.rdb.HSet(t.Context(), "room:{"+h.event+"}", "at", ahead, "tokens", 0).Err())
	for key, score := range map[string]int64{"try": 2, "seen": ahead} { // the second has asked, and is gone
		h.must(h.rdb.ZAdd(t.Context(), key+":{"+h.event+"}", redis.Z{Score: float64(score), Member: fan(1).ID.String()}).Err())
	}
	eventually(t, "who comes behind somebody who went is let in", func() bool {
		h.call()
		return !h.claim(2).Inside.IsZero()
	})
}

func TestARateThatChangesKeepsWhatTheBucketHas(t *testing.T) {
	h := newHall(t, selling(60, 5, 1000))
	terms := waitingroom.Terms{Rate: 0, Burst: 2, Cap: 1000, Session: time.Minute}
	h.tell(waitingroom.Open, terms)
	for n := range 4 {
		h.join(n)
	}
	h.call()
	if f := h.look(); f.Serving != 0 || f.Rate != 0 {
		t.Errorf("at rate 0 %d are called", f.Serving)
	}
	terms.Rate = 600
	h.tell(waitingroom.Open, terms)
	h.call()
	in := 0
	for n := range 4 {
		if !h.claim(n).Inside.IsZero() {
			in++
		}
	}
	if in != 2 {
		t.Errorf("%d are let in at once with a burst of 2", in)
	}
}

func BenchmarkJoin(b *testing.B) {
	h := newHall(b, selling(600, 10, 1000))
	n := 0
	for b.Loop() {
		h.join(n)
		n++
	}
	b.ReportMetric(float64(h.memory())/float64(n), "B/fan")
}

func (h *hall) memory() (bytes int64) {
	for _, key := range []string{"q", "pre"} {
		bytes += h.rdb.MemoryUsage(h.Context(), fmt.Sprintf("%s:{%s}", key, h.event), 0).Val()
	}
	return bytes
}
