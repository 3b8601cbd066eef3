package main

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// on is the house as another of its events has it.
func (h *house) on(event string, r *devstack.Redis) *house {
	other := *h
	other.event = event
	other.serves(r)
	return &other
}

// serving is the server of the cluster that has an event.
func (h *house) serving(c *devstack.RedisCluster, event string) *devstack.Redis {
	h.t.Helper()
	r, err := c.Primary(h.t.Context(), seatmap.SeqKey(event))
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// Two nodes sell two events that live on different primaries of a cluster. One
// primary is killed: the other's event goes on, map and all, and the first is
// sold again once its replica serves it, with nothing sold twice.
func TestNodesSellOnAClusterWhosePrimaryDies(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cluster := devtest.RedisCluster(t)
	h := newHouse(t, plan{redis: cluster.URL()})
	victim := h.serving(cluster, h.event)
	h.serves(victim)
	var quiet *house
	for quiet == nil {
		event := h.create(plan{chart: h.chart, mode: "hot"})
		if r := h.serving(cluster, event); r != victim {
			quiet = h.on(event, r)
		}
	}
	nodes := []*node{h.node(), h.node()}
	watchers := []*watcher{watch(t, h.event, nodes[0].url), watchSocket(t, h.event, nodes[1].url)}
	beside := []*watcher{watch(t, quiet.event, nodes[1].url)}
	agree := func() { t.Helper(); allSee(t, watchers, func() seatmap.Map { return h.truth(ctx, h.rdb) }) }
	seats := h.seats(20)
	ann, bob := h.shopper(nodes[0], "ann"), h.shopper(nodes[1], "bob")
	buy := func(event string, seats ...string) {
		t.Helper()
		b := ann.hold(event, "", seats...).want(t, http.StatusCreated, "")
		ann.pay(b.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	}
	buy(h.event, seats[0:2]...)
	buy(quiet.event, seats[0:2]...)
	kept := bob.hold(h.event, "", seats[2:4]...).want(t, http.StatusCreated, "")
	agree()

	victim.Kill()
	died := time.Now()
	bob.hold(quiet.event, "", seats[5]).want(t, http.StatusCreated, "")
	allSee(t, beside, func() seatmap.Map { return quiet.truth(ctx, quiet.rdb) })
	var promotion sync.WaitGroup
	promotion.Go(func() {
		if err := cluster.Promote(ctx); err != nil {
			t.Error(err)
		}
	})
	eventually(t, 60*time.Second, "seats are held again", func() bool {
		return ann.hold(h.event, "", seats[8]).status == http.StatusCreated
	})
	t.Logf("seats are held again %v after their primary was killed", time.Since(died).Round(time.Millisecond))
	promotion.Wait()
	h.serves(h.serving(cluster, h.event))
	bob.hold(h.event, "", seats[0]).want(t, http.StatusConflict, "seats_taken")
	eventually(t, 10*time.Second, "the other node has found the new primary too", func() bool {
		return bob.pay(kept.BookingID, "", goodCard).status == http.StatusCreated
	})
	agree()
	for _, one := range []*house{h, quiet} {
		one.balanced(context.WithoutCancel(ctx))
	}
}

func TestNodesFollowTheirSentinelsToTheNewPrimary(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	watched := devtest.RedisSentinel(t)
	h := newHouse(t, plan{redis: watched.URL()})
	h.serves(watched.Primary)
	nodes := []*node{h.node(), h.node()}
	watchers := []*watcher{watch(t, h.event, nodes[0].url), watchSocket(t, h.event, nodes[1].url)}
	agree := func() { t.Helper(); allSee(t, watchers, func() seatmap.Map { return h.truth(ctx, h.rdb) }) }
	seats := h.seats(10)
	ann, bob := h.shopper(nodes[0], "ann"), h.shopper(nodes[1], "bob")
	sold := ann.hold(h.event, "", seats[0:2]...).want(t, http.StatusCreated, "")
	ann.pay(sold.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	agree()
	died := time.Now()
	if err := watched.FailOver(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "seats are held again", func() bool {
		return bob.hold(h.event, "", seats[4]).status == http.StatusCreated
	})
	t.Logf("seats are held again %v after the primary was killed", time.Since(died).Round(time.Millisecond))
	h.serves(watched.Replica)
	bob.hold(h.event, "", seats[0]).want(t, http.StatusConflict, "seats_taken")
	agree()
	h.balanced(ctx)
}
