package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisCluster is a running private Redis Cluster on the loopback: three
// primaries that share the slots, each with a replica. Which is which does not
// change but by Promote: a server that a busy machine keeps silent is waited for.
type RedisCluster struct {
	servers []*Redis // primaries first, then the replica of each
}

const (
	clusterPrimaries = 3
	clusterSlots     = 16384
	clusterPatience  = time.Hour // until a silent server would be taken for dead
)

// RedisCluster starts six redis-servers of that name in the home, makes them a
// cluster, and returns when every server knows who serves each slot and every
// replica has copied its primary. Names are as short as those of RedisOptions.
func (h *Home) RedisCluster(ctx context.Context, name string) (_ *RedisCluster, err error) {
	c := &RedisCluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	var buses []int
	for k := range 2 * clusterPrimaries {
		bus, err := c.join(ctx, h, name+strconv.Itoa(k))
		if err != nil {
			return nil, err
		}
		buses = append(buses, bus)
	}
	if err := c.meet(ctx, buses); err != nil {
		return nil, fmt.Errorf("devstack: redis cluster: %w", err)
	}
	return c, nil
}

// join starts one more server and returns the port where the others of a
// cluster talk to it.
func (c *RedisCluster) join(ctx context.Context, h *Home, name string) (bus int, err error) {
	var r *Redis
	err = onFreePorts(func() error {
		if bus, err = freePort(); err != nil {
			return err
		}
		r, err = h.redisOnce(ctx, RedisOptions{Name: name, TCP: true, Settings: []string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes-" + strconv.FormatInt(time.Now().UnixNano(), 36), "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", millis(clusterPatience), "--repl-ping-replica-period", "1",
			"--cluster-require-full-coverage", "no", // one primary's death is not the others'
		}})
		return err
	})
	if err == nil {
		c.servers = append(c.servers, r)
	}
	return bus, err
}

// meet makes the servers know each other, shares out the slots, and waits until
// all is in place. Each has an epoch of its own, the replicas higher ones: what a
// replica claims when it takes over then counts, whatever it has heard by then.
// Left to gossip, it may claim with the epoch of its primary and be believed by nobody.
func (c *RedisCluster) meet(ctx context.Context, buses []int) error {
	ids := make([]string, len(c.servers))
	for k, r := range c.servers {
		err := r.ask(ctx, func(client *redis.Client) (err error) {
			if ids[k], err = client.Do(ctx, "CLUSTER", "MYID").Text(); err != nil {
				return err
			}
			if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", k+1).Err(); err != nil {
				return err
			}
			if k < clusterPrimaries {
				from, to := k*clusterSlots/clusterPrimaries, (k+1)*clusterSlots/clusterPrimaries-1
				if err := client.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
					return err
				}
			}
			for j, met := range c.servers[:k] { // everybody: gossip takes its time
				host, port, err := net.SplitHostPort(met.addr)
				if err != nil {
					return err
				}
				if err := client.Do(ctx, "CLUSTER", "MEET", host, port, buses[j]).Err(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for k, r := range c.servers[clusterPrimaries:] {
		err := r.process.answers(ctx, func(ctx context.Context) error {
			return r.ask(ctx, func(client *redis.Client) error { return client.ClusterReplicate(ctx, ids[k]).Err() })
		})
		if err != nil {
			return err
		}
	}
	for _, r := range c.servers {
		if err := r.process.answers(ctx, r.whole); err != nil {
			return err
		}
	}
	return c.settle(ctx)
}

// Promote has the replicas of the primaries that were killed take their places,
// and returns when every server that lives knows who serves each slot. Nobody
// votes: an election is lost when a busy machine is late, and begins again after
// twice the time a server may be silent.
func (c *RedisCluster) Promote(ctx context.Context) error {
	for k, primary := range c.servers[:clusterPrimaries] {
		if !primary.process.ended() {
			continue
		}
		err := c.servers[clusterPrimaries+k].ask(ctx, func(client *redis.Client) error {
			return client.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER").Err()
		})
		if err != nil {
			return fmt.Errorf("devstack: promote: %w", err)
		}
	}
	if err := c.settle(ctx); err != nil {
		return fmt.Errorf("devstack: promote: %w", err)
	}
	return nil
}

// settle waits until every living server is settled.
func (c *RedisCluster) settle(ctx context.Context) error {
	for _, r := range c.living() {
		err := r.process.answers(ctx, func(ctx context.Context) error { return c.settled(ctx, r) })
		if err != nil {
			return err
		}
	}
	return nil
}

// living are the servers that were not killed.
func (c *RedisCluster) living() (all []*Redis) {
	for _, r := range c.servers {
		if !r.process.ended() {
			all = append(all, r)
		}
	}
	return all
}

// settled is nil once a server knows a living one that serves each slot, hears
// from it, and, when it is a replica, has copied its primary.
func (c *RedisCluster) settled(ctx context.Context, r *Redis) error {
	return r.ask(ctx, func(client *redis.Client) error {
		info, err := client.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		link, err := client.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		nodes, err := client.ClusterNodes(ctx).Result()
		switch {
		case err != nil:
			return err
		case !strings.Contains(info, "cluster_state:ok"):
			return errors.New("the cluster is down")
		case c.served(nodes) < clusterSlots:
			return fmt.Errorf("not every slot is served:\n%s", nodes)
		case strings.Contains(link, "role:slave") && !strings.Contains(link, "master_link_status:up"):
			return errors.New("the replica has not copied its primary")
		}
		return nil
	})
}

// served counts the slots that living servers serve, as the lines of CLUSTER
// NODES have it: id, address, flags, five fields more, and then ranges of slots.
func (c *RedisCluster) served(nodes string) (slots int) {
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) < 9 || strings.Contains(f[2], "fail") || !c.lives(f[1]) {
			continue
		}
		for _, some := range f[8:] {
			first, last, isRange := strings.Cut(some, "-")
			from, err := strconv.Atoi(first)
			to := from
			if isRange && err == nil {
				to, err = strconv.Atoi(last)
			}
			if err == nil { // others are on their way from one to the other
				slots += to - from + 1
			}
		}
	}
	return slots
}

// lives says whether the server at host:port@bus was not killed.
func (c *RedisCluster) lives(address string) bool {
	return slices.ContainsFunc(c.living(), func(r *Redis) bool { return strings.HasPrefix(address, r.addr+"@") })
}

// whole is nil once a server knows all the others and who is whose replica.
func (r *Redis) whole(ctx context.Context) error {
	return r.ask(ctx, func(client *redis.Client) error {
		nodes, err := client.ClusterNodes(ctx).Result()
		if err == nil && strings.Count(nodes, "slave ") < clusterPrimaries {
			err = errors.New("the cluster is not whole")
		}
		return err
	})
}

// ask lends f a client of the server.
func (r *Redis) ask(ctx context.Context, f func(*redis.Client) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	client := r.Client()
	defer func() { _ = client.Close() }()
	return f(client)
}

// URL is the addresses of all servers, as a configuration has them.
func (c *RedisCluster) URL() string {
	urls := make([]string, len(c.servers))
	for k, r := range c.servers {
		urls[k] = "redis://" + r.addr
	}
	return strings.Join(urls, ",")
}

// Servers are all servers, those that were killed too.
func (c *RedisCluster) Servers() []*Redis { return c.servers }

// Primary returns the server that serves a key, as those see it that live. It
// waits until one does: between a kill and the end of Promote none may.
func (c *RedisCluster) Primary(ctx context.Context, key string) (*Redis, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		for _, r := range c.living() {
			if r.serves(ctx, key) {
				return r, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("devstack: no server of the cluster serves %s: %w", key, context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// serves says whether a server is the one a key is written to.
func (r *Redis) serves(ctx context.Context, key string) (is bool) {
	_ = r.ask(ctx, func(client *redis.Client) error { // one that cannot tell does not serve
		err := client.Get(ctx, key).Err()
		role, roleErr := client.Do(ctx, "ROLE").Slice()
		is = (err == nil || errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")) &&
			roleErr == nil && len(role) > 0 && role[0] == "master"
		return nil
	})
	return is
}

// Stop stops every server, all at once.
func (c *RedisCluster) Stop() error { return stopAll(c.servers) }

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func stopAll(servers []*Redis) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for k, r := range servers {
		all.Go(func() { errs[k] = r.Stop() })
	}
	all.Wait()
	return errors.Join(errs...)
}
