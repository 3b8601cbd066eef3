package live_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/seatmap/live"
)

func TestReorderedMessagesWaitAndAreNotRepaired(t *testing.T) {
	b := setup(t)
	for i := range 30 {
		one, two, three := b.change(reserve(3*i)), b.change(reserve(3*i+1)), b.change(reserve(3*i+2))
		b.say(three, two, one)
		b.reaches(three.N, time.Second)
	}
	if n := b.count("seatmap_reordered_total"); n != 60 {
		t.Errorf("%v changes counted as reordered, want 60", n)
	}
	if n := b.count("seatmap_repaired_total"); n != 0 {
		t.Errorf("%v repairs, want none", n)
	}
}

func TestLostMessageIsRepairedFromTheLog(t *testing.T) {
	b := setup(t)
	b.change(reserve(1)) // never said
	said := b.change(reserve(2))
	b.say(said)
	if took := b.reaches(said.N, time.Second); took > 500*time.Millisecond {
		t.Errorf("repaired after %v, want the wait for early messages and no more", took)
	}
	if n := b.count("seatmap_repaired_total"); n != 1 {
		t.Errorf("%v repairs, want 1", n)
	}
	if n := b.count("seatmap_gaps_total"); n != 1 {
		t.Errorf("%v gaps, want 1", n)
	}
	if len(b.crowd.resets) != 0 {
		t.Error("a gap is no reset")
	}
}

func TestSilenceIsRepairedWithinTwoSecondsWithNATSDown(t *testing.T) {
	server, err := devstack.StartNATS()
	if err != nil {
		t.Fatal(err)
	}
	ear, err := live.Connect(server.URL(), "test", live.NewMetrics(nil), discard())
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close()
	w := newWriter(t, devtest.Redis(t), devtest.NATS(t))
	b := node(t, w, ear, live.FeedOptions{})
	server.Stop()
	for i := range 3 {
		c := b.change(reserve(i))
		b.reaches(c.N, 2*time.Second)
	}
}

func TestTrimmedLogIsBridgedBySnapshot(t *testing.T) {
	b := setup(t)
	first := b.change(reserve(0))
	last := first
	for i := range 19 {
		last = b.change(reserve(1 + i))
	}
	b.change(seatmap.Change{Released: []int{3}, Areas: map[string]int{"floor": 490}})
	if err := b.rdb.XTrimMinID(t.Context(), seatmap.LogKey(b.event), fmt.Sprintf("%d-0", last.N)).Err(); err != nil {
		t.Fatal(err)
	}
	said := b.change(reserve(50))
	b.say(said)
	b.reaches(said.N, 2*time.Second)
	if len(b.crowd.resets) != 0 || len(b.rebuilt()) != 0 {
		t.Errorf("a trimmed log is no fork: resets %v, rebuilds %v", b.crowd.resets, b.rebuilt())
	}
	if at := b.crowd.ats[0].UnixMilli(); at > first.At {
		t.Errorf("the hub is told that the oldest change happened at %d; it did by %d", at, first.At)
	}
}

// lose takes writes back, as a failover to a replica that lacked them does.
func (b *bundle) lose(t *testing.T, changes ...seatmap.Change) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		for _, i := range c.Reserved {
			b.m.Set(i, seatmap.Available)
		}
		if err := b.rdb.XDel(t.Context(), seatmap.LogKey(b.event), fmt.Sprintf("%d-0", c.N)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for key, v := range map[string]any{seatmap.SeqKey(b.event): changes[0].Prev, seatmap.MapKey(b.event): []byte(b.m)} {
		if err := b.rdb.Set(t.Context(), key, v, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForkSeenByItsLowerNumberIsRebuiltAbovePosition(t *testing.T) {
	b := setup(t)
	lost := b.change(reserve(1, 2))
	b.say(lost)
	b.reaches(lost.N, time.Second)
	b.lose(t, lost)
	b.resetsAbove(t, lost.N)
}

func TestForkSeenByTheLogIsRebuiltAbovePosition(t *testing.T) {
	b := setup(t)
	first := b.change(reserve(9))
	lost := b.change(reserve(1, 2))
	b.say(first, lost)
	b.reaches(lost.N, time.Second)
	b.lose(t, lost)
	b.change(reserve(5)) // the new primary goes on, above the lost number, and nobody hears of it
	b.resetsAbove(t, lost.N)
}

func TestForkSeenByAMessageIsRebuiltAtOnce(t *testing.T) {
	b := setup(t)
	lost := b.change(reserve(1, 2))
	b.say(lost)
	b.reaches(lost.N, time.Second)
	b.lose(t, lost)
	b.say(b.change(reserve(5)))
	if took := b.resetsAbove(t, lost.N); took > 500*time.Millisecond {
		t.Errorf("took %v, want no wait for a look at the number", took)
	}
}

func (b *bundle) resetsAbove(t *testing.T, lost int64) time.Duration {
	t.Helper()
	took := b.reaches(lost+1, 2*time.Second)
	if got := b.rebuilt(); !slices.Contains(got, lost) {
		t.Errorf("rebuilt with positions %v, want %d", got, lost)
	}
	b.crowd.mu.Lock()
	defer b.crowd.mu.Unlock()
	if len(b.crowd.resets) == 0 || b.crowd.resets[0] <= lost {
		t.Errorf("resets %v, want one above %d", b.crowd.resets, lost)
	}
	return took
}

func TestColdEventIsRebuiltAbovePosition(t *testing.T) {
	b := setup(t)
	c := b.change(reserve(1))
	b.say(c)
	b.reaches(c.N, time.Second)
	for _, key := range []string{seatmap.SeqKey(b.event), seatmap.MapKey(b.event), seatmap.LogKey(b.event), seatmap.AreasKey(b.event)} {
		if err := b.rdb.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	b.resetsAbove(t, c.N)
}

func TestResetSaidByAnotherNodeStartsWatchersOver(t *testing.T) {
	b := setup(t)
	if err := b.Rebuild(t.Context(), b.event, 0); err != nil {
		t.Fatal(err)
	}
	b.until(time.Second, "a reset", func() bool {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		return len(b.crowd.resets) == 1
	})
	if got := b.rebuilt(); len(got) != 1 {
		t.Errorf("rebuilt %v, want only the other node's", got)
	}
}

func TestDriftIsFoundAndMended(t *testing.T) {
	w := newWriter(t, devtest.Redis(t), devtest.NATS(t))
	b := node(t, w, devtest.NATS(t), live.FeedOptions{Drift: 50 * time.Millisecond})
	for range 5 {
		c := b.change(reserve(rand.IntN(seats)))
		b.say(c)
		b.reaches(c.N, time.Second)
	}
	if n := b.count("seatmap_drift_total"); n != 0 {
		t.Fatalf("drift counted %v times without any", n)
	}
	b.mu.Lock()
	b.m.Set(7, seatmap.Sold) // a seat nobody was told of
	err := b.rdb.Set(t.Context(), seatmap.MapKey(b.event), []byte(b.m), 0).Err()
	b.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	b.reaches(0, time.Second)
	if n := b.count("seatmap_drift_total"); n != 1 {
		t.Errorf("drift counted %v times, want once", n)
	}
}

func TestFirstChangeAfterQuietGoesAtOnceAndTheRestIsMerged(t *testing.T) {
	w := newWriter(t, devtest.Redis(t), devtest.NATS(t))
	b := node(t, w, devtest.NATS(t), live.FeedOptions{Tick: 300 * time.Millisecond})
	c := b.change(reserve(0))
	b.say(c)
	if took := b.reaches(c.N, time.Second); took > 100*time.Millisecond {
		t.Errorf("the first change took %v, want no tick", took)
	}
	var all []int64
	for i := range 20 {
		c = b.change(reserve(1 + i%3))
		all = append(all, c.N)
		b.say(c)
	}
	b.reaches(c.N, time.Second)
	b.crowd.mu.Lock()
	defer b.crowd.mu.Unlock()
	if n := len(b.crowd.deltas); n > 3 {
		t.Errorf("21 changes became %d deltas, want one and then one a tick", n)
	}
	if got := b.crowd.merged[1:]; !slices.Equal(got, all) {
		t.Errorf("the hub was told numbers %v, want all of %v", got, all)
	}
}

func TestWhileAFanOutLastsChangesBecomeOneFrame(t *testing.T) {
	w := newWriter(t, devtest.Redis(t), devtest.NATS(t))
	b := node(t, w, devtest.NATS(t), live.FeedOptions{Tick: time.Millisecond}) // many ticks pass during the fan-out
	walk := make(chan struct{})
	b.crowd.mu.Lock()
	b.crowd.walk = walk
	b.crowd.mu.Unlock()
	first := b.change(reserve(0))
	b.say(first)
	b.reaches(first.N, time.Second)

	var all []int64
	var oldest, newest int64
	for i := range 50 {
		c := b.change(reserve(1 + i))
		if i == 0 {
			oldest = c.At
		}
		newest, all = c.At, append(all, c.N)
		b.say(c)
	}
	last := all[len(all)-1]
	b.knows(last, time.Second)
	if got := b.crowd.number(); got != first.N {
		t.Fatalf("watchers were taken to %d while they were still being told of %d", got, first.N)
	}

	close(walk)
	if took := b.reaches(last, time.Second); took > 200*time.Millisecond {
		t.Errorf("the frame came %v after the fan-out had ended", took)
	}
	b.crowd.mu.Lock()
	defer b.crowd.mu.Unlock()
	if len(b.crowd.deltas) != 2 || !slices.Equal(b.crowd.merged[1:], all) {
		t.Fatalf("50 changes became %d frames of the numbers %v, want one of %v", len(b.crowd.deltas)-1, b.crowd.merged[1:], all)
	}
	if at, says := b.crowd.ats[1].UnixMilli(), b.crowd.deltas[1].At; at != oldest || says != newest {
		t.Errorf("the hub is told of %d and the frame says %d; want the oldest change, %d, and the newest, %d", at, says, oldest, newest)
	}
	if n := b.count("seatmap_frame_changes"); n != 51 {
		t.Errorf("%v changes counted in frames, want 51", n)
	}
}

func TestHotEventsAreFollowedAndOthersEnd(t *testing.T) {
	b := setup(t)
	other := newWriter(t, b.rdb, b.nc)
	b.sales.put(other.event, true)
	ctx, cancel := contextWithin(t, 2*time.Second)
	defer cancel()
	start := time.Now()
	if _, _, err := b.feed.Snapshot(ctx, seatmap.Topic(other.event)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("followed after %v", took)
	}
	b.sales.put(other.event, false)
	b.until(2*time.Second, "an end", func() bool {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		return slices.Contains(b.crowd.words, "end "+seatmap.Topic(other.event))
	})
}

func TestNothingIsPublishedAfterTheEnd(t *testing.T) {
	b := setup(t)
	gate := make(chan struct{})
	b.crowd.mu.Lock()
	b.crowd.gate = gate
	b.crowd.mu.Unlock()
	last := func() string {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		if len(b.crowd.words) == 0 {
			return ""
		}
		return b.crowd.words[len(b.crowd.words)-1]
	}
	b.say(b.change(reserve(1)))
	b.until(time.Second, "a delta on its way", func() bool { return last() == "publishing" })
	other := newWriter(t, b.rdb, b.nc)
	b.sales.put(b.event, false)
	b.sales.put(other.event, true)
	ctx, cancel := contextWithin(t, 5*time.Second)
	defer cancel()
	if _, _, err := b.feed.Snapshot(ctx, seatmap.Topic(other.event)); err != nil {
		t.Fatal(err) // once the other event is followed, this one's follower has been told to stop
	}
	if got := last(); got != "publishing" {
		t.Errorf("told %q while a delta was on its way", got)
	}
	close(gate)
	b.until(time.Second, "an end", func() bool { return last() == "end "+seatmap.Topic(b.event) })
}

func TestAnotherChartIsAReset(t *testing.T) {
	b := setup(t)
	b.sales.mu.Lock()
	b.sales.all[b.event] = &seatmap.Sale{Event: b.event, Hot: true, ChartSHA: "decaf", Chart: &seatmap.Chart{Seats: seats + 40}}
	b.sales.mu.Unlock()
	b.until(3*time.Second, "a map of the new chart", func() bool {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		return len(b.crowd.resets) == 1 && len(b.crowd.m) == (seats+40)/4
	})
}

func TestWatchersAreToldOnceWhenRedisDoesNotAnswer(t *testing.T) {
	server := devtest.RedisServer(t, devstack.RedisOptions{})
	rdb := server.Client()
	defer func() { _ = rdb.Close() }()
	w := newWriter(t, rdb, devtest.NATS(t))
	b := node(t, w, devtest.NATS(t), live.FeedOptions{Silent: 100 * time.Millisecond})
	server.Kill()
	words := func() string {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		return strings.Join(b.crowd.words, "\n")
	}
	want := fmt.Sprintf("degraded %s %q /v1/events/%s/seatmap", seatmap.Topic(b.event), "redis_unreachable", b.event)
	b.until(5*time.Second, "degraded", func() bool { return words() != "" })
	time.Sleep(500 * time.Millisecond) // several more looks fail
	if got := words(); got != want {
		t.Errorf("told\n%s\nwant once\n%s", got, want)
	}
	if n := b.count("seatmap_degraded"); n != 1 {
		t.Errorf("the metric says %v", n)
	}
	b.sales.put("late", true)
	late := fmt.Sprintf("degraded %s %q /v1/events/late/seatmap", seatmap.Topic("late"), "redis_unreachable")
	b.until(5*time.Second, "an event that is hot only now told so too", func() bool { return words() == want+"\n"+late })
}

// Two nodes hear badly, each in its own way, and show the same map in the end.
func TestTwoFeedsConvergeThoughMessagesAreLostAndReordered(t *testing.T) {
	const changes = 5000
	w := newWriter(t, devtest.Redis(t), devtest.NATS(t))
	one := node(t, w, devtest.NATS(t), live.FeedOptions{})
	two := node(t, w, devtest.NATS(t), live.FeedOptions{})
	rng := rand.New(rand.NewPCG(1, 2))
	var late []seatmap.Change
	var last seatmap.Change
	for range changes {
		last = w.change(randomChange(rng))
		switch p := rng.IntN(10); {
		case p == 0: // lost
		case p <= 2:
			late = append(late, last)
		default:
			w.say(last)
			w.say(late...)
			late = nil
		}
	}
	for _, b := range []*bundle{one, two} {
		b.reaches(last.N, 2*time.Second)
		b.crowd.mu.Lock()
		if len(b.crowd.resets) != 0 {
			t.Errorf("%d resets without a fork", len(b.crowd.resets))
		}
		b.crowd.mu.Unlock()
		t.Logf("reordered %v, repaired %v, deltas %d", b.count("seatmap_reordered_total"), b.count("seatmap_repaired_total"), len(b.crowd.deltas))
	}
}

func randomChange(rng *rand.Rand) seatmap.Change {
	pick := func() []int {
		from := rng.IntN(seats - 4)
		return []int{from, from + 1, from + 2}[:1+rng.IntN(3)]
	}
	switch rng.IntN(6) {
	case 0, 1, 2:
		return seatmap.Change{Reserved: pick()}
	case 3:
		return seatmap.Change{Released: pick()}
	case 4:
		return seatmap.Change{Booked: pick(), Areas: map[string]int{"floor": rng.IntN(500)}}
	default:
		return seatmap.Change{Closed: pick()}
	}
}
