package live_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/seatmap/live"
)

var ann, bob = seatmap.TagOf("ann-token"), seatmap.TagOf("bob-token")

// holds is a take of seats by ann, for so long.
func holds(d time.Duration, i ...int) seatmap.Change {
	return seatmap.Change{Reserved: i, Until: time.Now().Add(d).UnixMilli(), Tag: "ann-to"}
}

// heard is what the node knows of one seat, and of a tag.
func (b *bundle) heard(tag seatmap.Tag, i int) (seatmap.KnownSeat, seatmap.Known) {
	b.tb.Helper()
	k, ok := b.feed.Known(b.event, tag, []int{i})
	if !ok {
		b.tb.Fatal("the event is not followed")
	}
	return k.Seats[0], k
}

func TestAHoldHeardOfIsKnownWithItsEndAndItsHolder(t *testing.T) {
	b := setup(t)
	if s, k := b.heard(ann, 3); s.Status != seatmap.Available || k.Holder {
		t.Errorf("before anything happened: %+v", k)
	}
	c := b.change(holds(time.Minute, 3))
	b.say(c)
	b.knows(c.N, time.Second)
	if s, k := b.heard(ann, 3); s.Status != seatmap.Held || s.Left < 55*time.Second || s.Left > 61*time.Second || !k.Holder || k.Age > time.Second {
		t.Errorf("held for a minute: %+v", k)
	}
	if _, k := b.heard(bob, 3); k.Holder {
		t.Error("bob holds nothing")
	}
	for _, c := range []struct {
		change seatmap.Change
		want   seatmap.Status
	}{{seatmap.Change{Booked: []int{3}}, seatmap.Sold}, {seatmap.Change{Released: []int{3}}, seatmap.Available}, {reserve(3), seatmap.Held}} {
		said := b.change(c.change)
		b.say(said)
		b.knows(said.N, time.Second)
		if s, k := b.heard(ann, 3); s.Status != c.want || !k.Holder || c.want == seatmap.Held && s.Left > 0 {
			t.Errorf("%s: %+v; a token is remembered, an end that is not said is not known", c.want, k)
		}
	}
	if s, _ := b.heard(ann, seats+1000); s.Status != seatmap.Available {
		t.Errorf("a seat of a chart not read yet is %s", s.Status)
	}
	if _, ok := b.feed.Known("no-event", ann, []int{1}); ok {
		t.Error("an event nobody follows is known")
	}
}

// A clock that is wrong by an hour, here or at Redis, moves no end.
func TestHowLongAHoldLastsIsNotToldByTheTimeOfDay(t *testing.T) {
	b := setup(t)
	c := b.change(reserve(5))
	c.At -= time.Hour.Milliseconds()
	c.Until, c.Tag = c.At+30_000, "ann-to"
	b.say(c)
	b.knows(c.N, time.Second)
	if s, _ := b.heard(ann, 5); s.Left < 25*time.Second || s.Left > 30*time.Second {
		t.Errorf("held for %v more, want 30 s from now", s.Left)
	}
}

func TestASnapshotDoesNotTellWhoHolds(t *testing.T) {
	w := newWriter(t, devtest.Redis(t), devtest.NATS(t))
	w.change(holds(time.Minute, 1))
	w.change(seatmap.Change{Booked: []int{2}})
	b := node(t, w, devtest.NATS(t), live.FeedOptions{})
	if s, k := b.heard(ann, 1); s.Status != seatmap.Held || s.Left > 0 || k.Holder {
		t.Errorf("held before this node came: %+v", k)
	}
	if s, _ := b.heard(ann, 2); s.Status != seatmap.Sold {
		t.Errorf("sold before this node came: %+v", s)
	}
}

func TestAForkClearsWhatWasHeard(t *testing.T) {
	b := setup(t)
	kept, lost := b.change(holds(time.Minute, 1)), b.change(holds(time.Minute, 2))
	b.say(kept, lost)
	b.reaches(lost.N, time.Second)
	b.lose(t, lost)
	b.resetsAbove(t, lost.N)
	if s, k := b.heard(ann, 1); s.Status != seatmap.Held || s.Left > 0 || !k.Holder {
		t.Errorf("kept over a fork: %+v", k)
	}
	if s, _ := b.heard(ann, 2); s.Status != seatmap.Available {
		t.Errorf("lost in a fork: %+v", s)
	}
}

func TestALostMessageIsKnownFromTheLog(t *testing.T) {
	b := setup(t)
	c := b.change(holds(time.Minute, 7)) // never said
	b.knows(c.N, 2*time.Second)
	if s, k := b.heard(ann, 7); s.Status != seatmap.Held || s.Left < 55*time.Second || !k.Holder {
		t.Errorf("%+v", k)
	}
}

func TestWhatAProcessHasChangedItKnowsBeforeItIsHeard(t *testing.T) {
	b := setup(t)
	server, err := devstack.StartNATS()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	m := live.NewMetrics(nil)
	nobodyHears, err := live.Connect(server.URL(), "test", m, discard())
	if err != nil {
		t.Fatal(err)
	}
	defer nobodyHears.Close()
	voice := live.NewVoice(nobodyHears, m, discard())
	voice.Near(b.feed)
	publish := func(c seatmap.Change) seatmap.Change {
		c = b.change(c)
		body, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		voice.Publish(t.Context(), b.event, body)
		return c
	}
	for range 20 {
		publish(holds(time.Minute, 8, 9))
		if s, k := b.heard(ann, 9); s.Status != seatmap.Held || s.Left < 55*time.Second || !k.Holder {
			t.Fatalf("taken by this process: %+v", k)
		}
		last := publish(seatmap.Change{Released: []int{9}})
		if s, _ := b.heard(ann, 9); s.Status != seatmap.Available {
			t.Fatalf("given back by this process: %+v", s)
		}
		if s, _ := b.heard(ann, 8); s.Status != seatmap.Held {
			t.Fatalf("still held: %+v", s)
		}
		b.knows(last.N, 2*time.Second)
		if s, _ := b.heard(ann, 9); s.Status != seatmap.Available {
			t.Fatalf("given back, and repaired from the log: %+v", s)
		}
		said := b.change(seatmap.Change{Booked: []int{8}})
		b.say(said)
		b.knows(said.N, time.Second)
		if s, _ := b.heard(ann, 8); s.Status != seatmap.Sold {
			t.Fatalf("what comes after is heard: %+v", s)
		}
	}
}

func TestKnowledgeAgesWhileRedisDoesNotAnswerAndIsConfirmedWhenItDoes(t *testing.T) {
	server := devtest.RedisServer(t, devstack.RedisOptions{})
	rdb := server.Client()
	defer func() { _ = rdb.Close() }()
	b := node(t, newWriter(t, rdb, devtest.NATS(t)), devtest.NATS(t), live.FeedOptions{Silent: 50 * time.Millisecond})
	age := func() time.Duration { _, k := b.heard(ann, 1); return k.Age }
	for range 20 {
		if a := age(); a > time.Second {
			t.Fatalf("in quiet, %v old", a)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if _, ok := b.feed.Map(&seatmap.Sale{Event: b.event, Hot: true}); !ok {
		t.Error("no map while all is well")
	}
	server.Kill()
	b.until(5*time.Second, "knowledge of a second ago", func() bool { return age() > time.Second })
	if _, ok := b.feed.Map(&seatmap.Sale{Event: b.event, Hot: true}); ok {
		t.Error("a map that nothing confirms")
	}
}

func TestAFeedNobodyWatchesFollowsToo(t *testing.T) {
	w := newWriter(t, devtest.Redis(t), devtest.NATS(t))
	b := &bundle{writer: w, crowd: &crowd{tb: t}, sales: &sales{all: map[string]*seatmap.Sale{}}}
	b.sales.put(w.event, true)
	m := live.NewMetrics(nil)
	b.feed = live.NewFeed(live.FeedOptions{Maps: live.NewMaps(w.rdb, w), Sales: b.sales, Ear: live.NewEar(devtest.NATS(t), m), Metrics: m, Log: discard()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.feed.Run(ctx, nil) }()
	b.begin(t)
	c := w.change(holds(time.Minute, 4))
	w.say(c)
	b.knows(c.N, time.Second)
	shown, ok := b.feed.Map(&seatmap.Sale{Event: w.event, Hot: true})
	if want, _ := w.state(); !ok || string(shown) != string(want) {
		t.Errorf("the map is %x, %v", shown, ok)
	}
	if err := w.Rebuild(t.Context(), w.event, 0); err != nil {
		t.Fatal(err)
	}
	b.knows(c.N+1, time.Second)
	w.rdb.Set(t.Context(), seatmap.SeqKey(w.event), c.N, 0) // a fork
	b.knows(c.N+2, 2*time.Second)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
