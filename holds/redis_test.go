package holds_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// optioned is an event reached as a deployment would.
func optioned(t *testing.T, server *devstack.Redis) *house {
	o, err := holds.Options(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	h := cold(t, rdb.(*redis.Client), 40)
	h.must(h.store.Rebuild(t.Context(), h.event, 0))
	return h
}

func TestACutConnectionIsNotTheShoppersProblem(t *testing.T) {
	t.Parallel()
	server := devtest.RedisServer(t, devstack.RedisOptions{})
	h := optioned(t, server)
	knife := server.Client()
	defer func() { _ = knife.Close() }()
	h.must(knife.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
	h.takes("ann", 3)
	h.sound()
}

func TestACallersDeadlineIsKept(t *testing.T) {
	t.Parallel()
	server := devtest.RedisServer(t, devstack.RedisOptions{})
	h := optioned(t, server)
	h.must(h.rdb.Do(t.Context(), "CLIENT", "PAUSE", "2000", "ALL").Err())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := h.store.Take(ctx, h.asks("ann", 3))
	if !errors.Is(err, seatmap.ErrUnavailable) || time.Since(start) > time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func TestARedisThatFollowsAnotherIsUnavailableAndChangesNothing(t *testing.T) {
	t.Parallel()
	primary := devtest.RedisServer(t, devstack.RedisOptions{})
	h := optioned(t, primary)
	ann := h.takes("ann", 3)
	replica := devtest.RedisServer(t, devstack.RedisOptions{ReplicaOf: primary.Addr()})
	rdb := replica.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	h.rdb = rdb
	h.eventually("the replica has copied", func() bool { return h.rdb.Exists(t.Context(), seatmap.SeqKey(h.event)).Val() == 1 })
	store := holds.New(rdb, judge(h.ask), voice(h.hear), quiet)
	h.unchanged("a replica", func() {
		for name, call := range map[string]func() error{
			"take": func() error { _, err := store.Take(t.Context(), h.asks("bob", 4)); return err },
			"extend": func() error {
				_, err := store.Extend(t.Context(), h.event, ann.Token, ann.User, time.Hour, 0)
				return err
			},
			"release": func() error { return store.Release(t.Context(), h.event, ann.Token, ann.User) },
			"spend":   func() error { return store.Spend(t.Context(), h.event, seatmap.Marks{Seats: []int{3}}) },
			"rebuild": func() error { return store.Rebuild(t.Context(), h.event, time.Now().UnixMicro()) },
		} {
			if err := call(); !errors.Is(err, seatmap.ErrUnavailable) {
				t.Errorf("%s on a replica: %v", name, err)
			}
		}
	})
}

func TestOptionsOfAClusterNameEveryNode(t *testing.T) {
	t.Parallel()
	o, err := holds.Options("redis://user:pass@a:1/0?pool_size=7,redis://user:pass@b:2/0?pool_size=7")
	if err != nil || !slices.Equal(o.Addrs, []string{"a:1", "b:2"}) || o.Password != "pass" || o.PoolSize != 7 || !o.ContextTimeoutEnabled {
		t.Errorf("%+v %v", o, err)
	}
	if _, err := holds.Options("http://a"); err == nil {
		t.Error("http://a passes for a Redis URL")
	}
}

func TestOutcomesAreCounted(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	h.takes("ann", 3)
	_, _ = h.store.Take(t.Context(), h.asks("bob", 3))
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.store)
	families, err := registry.Gather()
	h.must(err)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			key := family.GetName()
			for _, label := range m.GetLabel() {
				key += " " + label.GetValue()
			}
			got[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for _, key := range []string{"holds_total ok take", "holds_total taken take", "holds_total ok rebuild"} {
		if got[key] != 1 {
			t.Errorf("%s is %v", key, got[key])
		}
	}
	if got["holds_script_seconds take"] != 1 || got["holds_script_seconds peek"] != 1 {
		t.Errorf("counted %v", got)
	}
}
