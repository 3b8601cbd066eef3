package holds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// clustered are events on a cluster, reached as a deployment would; what a test
// reads of an event it asks of the primary that has it.
type clustered struct {
	cluster *devstack.RedisCluster
	rdb     redis.UniversalClient
	events  []*house
}

func newClustered(t *testing.T, events, seats int) *clustered {
	c := &clustered{cluster: devtest.RedisCluster(t)}
	var err error
	if c.rdb, err = holds.Client(c.cluster.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.rdb.Close() })
	for range events {
		h := cold(t, nil, seats)
		h.rdb = c.primary(h)
		h.store = holds.New(c.rdb, judge(h.ask), voice(h.hear), quiet)
		c.events = append(c.events, h)
	}
	return c
}

// primary is a client of the server that has an event.
func (c *clustered) primary(h *house) *redis.Client {
	rdb := c.server(h).Client()
	h.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// server is the one that has an event.
func (c *clustered) server(h *house) *devstack.Redis {
	server, err := c.cluster.Primary(context.Background(), seatmap.SeqKey(h.event))
	h.must(err)
	return server
}

// Every verb, on events all over a cluster: a script whose keys were not all of
// one event's slot would be refused with CROSSSLOT.
func TestEveryVerbWorksOnAClusterWhereverAnEventLives(t *testing.T) {
	t.Parallel()
	c := newClustered(t, 12, 40)
	primaries := map[string]bool{}
	for _, h := range c.events {
		primaries[h.rdb.Do(t.Context(), "CLUSTER", "MYID").String()] = true
		h.everyVerb()
	}
	if len(primaries) != 3 {
		t.Errorf("twelve events live on %d of three primaries", len(primaries))
	}
}

// everyVerb runs each script with and without something to do.
func (h *house) everyVerb() {
	h.Helper()
	ctx := h.Context()
	h.truth.Left = map[string]int{"pit": 10}
	h.truth.Bought = map[string]int{"old": 2}
	h.must(h.store.Rebuild(ctx, h.event, 0))
	r := h.asks("ann", 1, 2)
	r.Areas = map[string]int{"pit": 2}
	ann := h.takesAgain(r)
	for range 2 { // the second refusal is a plain read's
		if _, err := h.store.Take(ctx, h.asks("bob", 2, 3)); !errors.As(err, new(*holds.TakenError)) {
			h.Errorf("a seat that is gone: %v", err)
		}
	}
	ann, err := h.store.Swap(ctx, h.swaps(ann, 2, 5))
	h.must(err)
	ann, err = h.store.Extend(ctx, h.event, ann.Token, ann.User, 9*time.Minute, 0)
	h.must(err)
	ann, err = h.store.Seal(ctx, h.event, ann.Token)
	h.must(err)
	if done, err := h.store.ShiftAll(ctx, h.event, "op", time.Minute, &books{open: []string{ann.Token}}); err != nil || done.Moved != 1 {
		h.Errorf("all extended: %+v %v", done, err)
	}
	if holding, err := h.store.Holding(ctx, h.event, []int{2, 3, 5}); err != nil || len(holding) != 2 || holding[5].User != ann.User {
		h.Errorf("holding: %v %v", holding, err)
	}
	cid := h.takes("cid", 7, 8)
	h.must(h.store.Release(ctx, h.event, cid.Token, cid.User))
	brief := h.asks("brief", 9)
	brief.Terms.Hold, brief.Terms.Grace = 10*time.Millisecond, 0
	h.takesAgain(brief)
	h.must(h.store.Spend(ctx, h.event, seatmap.Marks{Seats: ann.Seats, Closed: []int{30}, Areas: map[string]int{"pit": 8},
		Baskets: []string{ann.Token}, Bought: map[string]int{ann.User: 4, "old": 1}}))
	h.must(h.store.Restore(ctx, h.event, seatmap.Marks{Closed: []int{30}}))
	if b, err := h.store.Basket(ctx, h.event, ann.Token); err != nil || b.State != seatmap.BasketSold {
		h.Errorf("the basket is %+v %v", b, err)
	}
	if m, left, err := h.store.Shown(ctx, h.event); err != nil || m.At(5) != seatmap.Sold || left["pit"] != 8 {
		h.Errorf("shown %v %v %v", m, left, err)
	}
	h.sound()
	h.told()
}

// A primary is killed while many take: whatever its replica had not heard of is
// lost, and what Postgres knows as sold is not given again.
func TestAPrimaryOfAClusterDiesAndItsReplicaGoesOn(t *testing.T) {
	t.Parallel()
	const seats = 400
	c := newClustered(t, 12, seats)
	for _, h := range c.events {
		h.must(h.store.Rebuild(t.Context(), h.event, 0))
		h.truth.Sold = []int{0, 1}
		h.must(h.store.Spend(t.Context(), h.event, seatmap.Marks{Seats: h.truth.Sold}))
	}
	victim := c.events[0]
	server := c.server(victim)
	other := c.events[slices.IndexFunc(c.events, func(h *house) bool { return c.server(h) != server })]
	stop := make(chan struct{})
	var shoppers sync.WaitGroup
	for k := range 4 {
		shoppers.Go(func() {
			for seat := 2 + k; seat < seats; seat += 4 {
				select {
				case <-stop:
					return
				default:
				}
				_, err := victim.store.Take(context.Background(), victim.asks(fmt.Sprint("shopper-", seat), seat))
				if err != nil && !errors.Is(err, seatmap.ErrUnavailable) && !errors.As(err, new(*holds.TakenError)) {
					t.Errorf("while its primary dies: %v", err)
				}
			}
		})
	}
	victim.eventually("takes", func() bool { return len(victim.heard()) > 10 })
	server.Kill()
	victim.eventually("another primary's events do not notice", func() bool {
		_, err := other.store.Take(t.Context(), other.asks("elsewhere", 5, 6))
		return err == nil
	})
	died := time.Now()
	victim.must(c.cluster.Promote(t.Context()))
	victim.eventually("the event is served again", func() bool { // its client has yet to find the new primary
		_, err := victim.store.Take(t.Context(), victim.asks("after", seats-1))
		if err != nil && !errors.Is(err, seatmap.ErrUnavailable) && !errors.As(err, new(*holds.TakenError)) {
			t.Fatal(err)
		}
		return !errors.Is(err, seatmap.ErrUnavailable)
	})
	t.Logf("served again %v after its primary was killed", time.Since(died).Round(time.Millisecond))
	close(stop)
	shoppers.Wait()
	for _, h := range c.events {
		h.rdb = c.primary(h)
		if _, err := h.store.Take(t.Context(), h.asks("sold", 1)); !errors.As(err, new(*holds.TakenError)) {
			t.Errorf("a sold seat: %v", err)
		}
		// As the feed does, that knows a number of what was lost.
		h.must(h.store.Rebuild(t.Context(), h.event, time.Now().UnixMicro()))
		h.sound()
	}
}

func TestSentinelsLeadStoresToTheNewPrimary(t *testing.T) {
	t.Parallel()
	watched := devtest.RedisSentinel(t)
	rdb, err := holds.Client(watched.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	first := watched.Primary.Client()
	t.Cleanup(func() { _ = first.Close() })
	h := cold(t, first, 40)
	h.store = holds.New(rdb, judge(h.ask), voice(h.hear), quiet)
	h.everyVerb()
	h.truth.Sold = []int{2, 5}
	ann := h.takes("eve", 20, 21)
	second := watched.Replica.Client()
	t.Cleanup(func() { _ = second.Close() })
	h.eventually("the replica is where the primary is", func() bool {
		return second.Get(t.Context(), seatmap.SeqKey(h.event)).Val() == first.Get(t.Context(), seatmap.SeqKey(h.event)).Val()
	})
	died := time.Now()
	h.must(watched.FailOver(t.Context()))
	h.rdb = second
	h.eventually("the new primary serves", func() bool { // its client has yet to find it
		_, err := h.store.Extend(t.Context(), h.event, ann.Token, ann.User, 10*time.Minute, 0)
		if err != nil && !errors.Is(err, seatmap.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Logf("served again %v after the primary was killed", time.Since(died).Round(time.Millisecond))
	if _, err := h.store.Take(t.Context(), h.asks("bob", 2)); !errors.As(err, new(*holds.TakenError)) {
		t.Errorf("a sold seat: %v", err)
	}
	h.takes("bob", 3, 4)
	h.sound()
}

func TestOptionsOfSentinelsNameTheMaster(t *testing.T) {
	t.Parallel()
	o, err := holds.Options("redis-sentinel://user:pass@a:26379/2?master=tickets&sentinel_password=word&pool_size=7,redis-sentinel://user:pass@b:26379/2?master=tickets&sentinel_password=word")
	if err != nil || o.MasterName != "tickets" || fmt.Sprint(o.Addrs) != "[a:26379 b:26379]" || o.Password != "pass" || o.SentinelPassword != "word" || o.DB != 2 {
		t.Errorf("%+v %v", o, err)
	}
	for _, bad := range []string{"redis-sentinel://a:26379", "redis-sentinel://a?master=x,redis://b", "redis-sentinel://a?master=x,redis-sentinel://b?master=y"} {
		if _, err := holds.Options(bad); err == nil {
			t.Errorf("%s can be used", bad)
		}
	}
}
