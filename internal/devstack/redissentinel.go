package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisSentinel is a running private Redis with a replica, and three sentinels
// that promote it when the primary is killed and they are told to: one that a
// busy machine keeps silent is waited for.
type RedisSentinel struct {
	Primary, Replica *Redis // as they were started
	sentinels        []*Redis
}

// sentinelMaster is what the sentinels call the primary.
const sentinelMaster = "seatcast"

// How long a server must be silent until the sentinels take it for dead: while
// they elect, and before.
const sentinelHasty, sentinelCalm = 2 * time.Second, time.Hour

// RedisSentinel starts a primary, its replica and three sentinels, of that
// name, and returns when each sentinel knows all the others. Names are as short
// as those of RedisOptions.
func (h *Home) RedisSentinel(ctx context.Context, name string) (_ *RedisSentinel, err error) {
	s := &RedisSentinel{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.Primary, err = h.Redis(ctx, RedisOptions{Name: name + "p", TCP: true}); err != nil {
		return nil, err
	}
	if s.Replica, err = h.Redis(ctx, RedisOptions{Name: name + "r", TCP: true, ReplicaOf: s.Primary.Addr()}); err != nil {
		return nil, err
	}
	for k := range 3 {
		var r *Redis
		err = onFreePorts(func() error {
			r, err = h.sentinel(ctx, name+"s"+strconv.Itoa(k), s.Primary.Addr())
			return err
		})
		if err != nil {
			return nil, err
		}
		s.sentinels = append(s.sentinels, r)
	}
	for _, r := range s.sentinels {
		if err := r.process.answers(ctx, r.knows); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// sentinel starts one. It keeps what it learns in its configuration, so it needs
// a file.
func (h *Home) sentinel(ctx context.Context, name, primary string) (*Redis, error) {
	data := h.path(name)
	if err := private(data, h.account); err != nil {
		return nil, err
	}
	server, err := program("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	host, of, err := net.SplitHostPort(primary)
	if err != nil {
		return nil, fmt.Errorf("devstack: a sentinel needs its primary's TCP address: %w", err)
	}
	r := &Redis{socket: filepath.Join(h.sockets, name+".sock"), addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	config := filepath.Join(data, "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %q\nunixsocket %q\nunixsocketperm 700\nsentinel monitor %s %s %s 2\n"+
		"sentinel down-after-milliseconds %s %s\nsentinel failover-timeout %s 6000\n",
		port, data, r.socket, sentinelMaster, host, of, sentinelMaster, millis(sentinelCalm), sentinelMaster)
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.Chown(config, h.account.uid, h.account.gid)); err != nil {
		return nil, fmt.Errorf("devstack: %w", err)
	}
	cmd := h.command(syscall.SIGKILL, data, server, config, "--sentinel")
	if r.process, err = h.launch(name, cmd); err != nil {
		return nil, err
	}
	if err := r.process.answers(ctx, r.ping); err != nil {
		r.process.kill()
		return nil, err
	}
	return r, nil
}

// knows is nil once a sentinel has found the replica and the other sentinels.
func (r *Redis) knows(ctx context.Context) error {
	return r.ask(ctx, func(client *redis.Client) error {
		info, err := client.Info(ctx, "sentinel").Result()
		if err == nil && !strings.Contains(info, "status=ok") {
			err = errors.New("the primary is not known")
		}
		if err == nil && !strings.Contains(info, "slaves=1,sentinels=3") {
			err = errors.New("not all sentinels are known")
		}
		return err
	})
}

// FailOver kills the primary and returns when the sentinels have made its replica
// one and tell so.
func (s *RedisSentinel) FailOver(ctx context.Context) error {
	s.Primary.Kill()
	for _, r := range s.sentinels {
		err := r.process.answers(ctx, func(ctx context.Context) error {
			return r.ask(ctx, func(client *redis.Client) error {
				return client.Do(ctx, "SENTINEL", "SET", sentinelMaster, "down-after-milliseconds", millis(sentinelHasty)).Err()
			})
		})
		if err != nil {
			return fmt.Errorf("devstack: fail over: %w", err)
		}
	}
	for _, r := range s.sentinels {
		if err := r.process.answers(ctx, func(ctx context.Context) error { return r.follows(ctx, s.Replica.addr) }); err != nil {
			return fmt.Errorf("devstack: fail over: %w", err)
		}
	}
	return nil
}

// follows is nil once a sentinel tells that the primary is at that address.
func (r *Redis) follows(ctx context.Context, primary string) error {
	return r.ask(ctx, func(client *redis.Client) error {
		at, err := client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelMaster).StringSlice()
		if err == nil && (len(at) != 2 || net.JoinHostPort(at[0], at[1]) != primary) {
			err = fmt.Errorf("the primary is told to be at %v", at)
		}
		return err
	})
}

// URL is the addresses of the sentinels, as a configuration has them.
func (s *RedisSentinel) URL() string {
	urls := make([]string, len(s.sentinels))
	for k, r := range s.sentinels {
		urls[k] = "redis-sentinel://" + r.addr + "?master=" + sentinelMaster
	}
	return strings.Join(urls, ",")
}

// Stop stops every server, all at once.
func (s *RedisSentinel) Stop() error {
	servers := s.sentinels
	for _, r := range []*Redis{s.Primary, s.Replica} {
		if r != nil {
			servers = append(servers, r)
		}
	}
	return stopAll(servers)
}
