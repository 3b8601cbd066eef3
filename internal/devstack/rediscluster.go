package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisCluster is a running private Redis Cluster on the loopback: three
// primaries that share the slots, each with a replica.
type RedisCluster struct {
	servers []*Redis // primaries first, then the replica of each
}

const (
	clusterPrimaries = 3
	clusterSlots     = 16384
	// clusterTimeout is how long a server must be silent until its replica takes
	// its place: a busy machine keeps one silent for a second.
	clusterTimeout = 2 * time.Second
)

// RedisCluster starts six redis-servers of that name in the home, makes them a
// cluster, and returns when it serves every slot and every replica has copied
// its primary. Names are as short as those of RedisOptions.
func (h *Home) RedisCluster(ctx context.Context, name string) (_ *RedisCluster, err error) {
	c := &RedisCluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	var buses []int
	for k := range 2 * clusterPrimaries {
		bus, err := freePort()
		if err != nil {
			return nil, err
		}
		r, err := h.Redis(ctx, RedisOptions{Name: name + strconv.Itoa(k), TCP: true, Settings: []string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes-" + strconv.FormatInt(time.Now().UnixNano(), 36), "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", strconv.FormatInt(clusterTimeout.Milliseconds(), 10), "--repl-ping-replica-period", "1",
			"--cluster-require-full-coverage", "no", // one primary's death is not the others'
		}})
		if err != nil {
			return nil, err
		}
		c.servers, buses = append(c.servers, r), append(buses, bus)
	}
	if err := c.meet(ctx, buses); err != nil {
		return nil, fmt.Errorf("devstack: redis cluster: %w", err)
	}
	return c, nil
}

// meet makes the servers know each other, shares out the slots, and waits until
// all is in place.
func (c *RedisCluster) meet(ctx context.Context, buses []int) error {
	ids := make([]string, len(c.servers))
	for k, r := range c.servers {
		err := r.ask(ctx, func(client *redis.Client) (err error) {
			if ids[k], err = client.Do(ctx, "CLUSTER", "MYID").Text(); err != nil {
				return err
			}
			if k < clusterPrimaries {
				from, to := k*clusterSlots/clusterPrimaries, (k+1)*clusterSlots/clusterPrimaries-1
				if err := client.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
					return err
				}
			}
			host, port, err := net.SplitHostPort(c.servers[0].addr)
			if err != nil || k == 0 {
				return err
			}
			return client.Do(ctx, "CLUSTER", "MEET", host, port, buses[0]).Err()
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
		if err := r.process.answers(ctx, r.settled); err != nil {
			return err
		}
	}
	return nil
}

// settled is nil once a server sees the whole cluster and, when it is a
// replica, has copied its primary.
func (r *Redis) settled(ctx context.Context) error {
	return r.ask(ctx, func(client *redis.Client) error {
		info, err := client.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		nodes, err := client.ClusterNodes(ctx).Result()
		if err != nil {
			return err
		}
		link, err := client.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		switch {
		case !strings.Contains(info, "cluster_state:ok") || strings.Count(nodes, " slave ")+strings.Count(nodes, ",slave ") < clusterPrimaries:
			return errors.New("the cluster is not whole")
		case strings.Contains(link, "role:slave") && !strings.Contains(link, "master_link_status:up"):
			return errors.New("the replica has not copied its primary")
		}
		return nil
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

// Primary is the server that serves a key now, as those see it that live; nil
// while none does.
func (c *RedisCluster) Primary(ctx context.Context, key string) *Redis {
	for _, r := range c.servers {
		if r.process.ended() {
			continue
		}
		var serves bool
		_ = r.ask(ctx, func(client *redis.Client) error { // one that cannot tell does not serve
			err := client.Get(ctx, key).Err()
			role, roleErr := client.Do(ctx, "ROLE").Slice()
			serves = (err == nil || errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")) &&
				roleErr == nil && len(role) > 0 && role[0] == "master"
			return nil
		})
		if serves {
			return r
		}
	}
	return nil
}

// Stop stops every server, all at once.
func (c *RedisCluster) Stop() error { return stopAll(c.servers) }

func stopAll(servers []*Redis) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for k, r := range servers {
		all.Go(func() { errs[k] = r.Stop() })
	}
	all.Wait()
	return errors.Join(errs...)
}
