package devstack

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisOptions say how a private Redis is run. The zero value is a Redis that
// forgets everything when it stops and answers on its unix socket alone.
type RedisOptions struct {
	// Name tells the servers of one home apart: "redis" when empty. Short: it
	// is part of the socket's address.
	Name string
	// Keep makes it remember: the data of one start are there at the next.
	Keep bool
	// TCP makes it answer on a free port of the loopback too; a replica needs
	// that of its primary.
	TCP bool
	// ReplicaOf is the Addr of the primary it copies, which answers by TCP.
	ReplicaOf string
	// ClockOffset is how far its clock is ahead of the machine's.
	ClockOffset time.Duration
	// Settings are more of its settings, as on its command line: "--loglevel", "debug".
	Settings []string
	// CPU keeps it on these cores, written as for taskset: "0" or "2-3".
	CPU string
}

// Redis is a running private redis-server.
type Redis struct {
	socket  string
	addr    string
	process *process
	again   func(context.Context) error // starts it as it was started
}

// Redis starts a redis-server in the home and returns when it answers; a replica
// may still be copying then. It returns ErrMissing when a program that the
// options need is not installed.
func (h *Home) Redis(ctx context.Context, o RedisOptions) (r *Redis, err error) {
	err = onFreePorts(func() error {
		r, err = h.redisOnce(ctx, o)
		return err
	})
	return r, err
}

// redisOnce is Redis with one try to have its port.
func (h *Home) redisOnce(ctx context.Context, o RedisOptions) (*Redis, error) {
	if o.Name == "" {
		o.Name = "redis"
	}
	data := h.path(o.Name)
	if err := evict(data, "redis-server", syscall.SIGTERM); err != nil {
		return nil, err
	}
	if err := private(data, h.account); err != nil {
		return nil, err
	}
	r := &Redis{socket: filepath.Join(h.sockets, o.Name+".sock")}
	r.addr = r.socket
	port := 0
	if o.TCP {
		var err error
		if port, err = freePort(); err != nil {
			return nil, err
		}
		r.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	r.again = func(ctx context.Context) error { return r.start(ctx, h, o, port) }
	if err := r.again(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Redis) start(ctx context.Context, h *Home, o RedisOptions, port int) error {
	line, env, err := redisCommand(o)
	if err != nil {
		return err
	}
	args, err := r.settings(h.path(o.Name), o, port)
	if err != nil {
		return err
	}
	line = append(line, args...)
	cmd := h.command(syscall.SIGKILL, h.path(o.Name), line[0], line[1:]...)
	cmd.Env = append(cmd.Env, env...)
	if r.process, err = h.launch(o.Name, cmd); err != nil {
		return err
	}
	if err := r.process.answers(ctx, r.ping); err != nil {
		r.process.kill()
		return err
	}
	return nil
}

// redisCommand is the program, with what pins it before it, and what bends its
// clock in the environment.
func redisCommand(o RedisOptions) (line, env []string, err error) {
	server, err := program("redis-server", "redis-server")
	if err != nil {
		return nil, nil, err
	}
	if o.ClockOffset != 0 {
		lib, err := faketimeLibrary()
		if err != nil {
			return nil, nil, err
		}
		// libc comes second, so that memory is libc's: Debian's Redis links jemalloc,
		// which asks for the time while libfaketime asks it for memory, for ever.
		env = append(env, "LD_PRELOAD="+lib+" libc.so.6", "DONT_FAKE_MONOTONIC=1",
			fmt.Sprintf("FAKETIME=%+.6fs", o.ClockOffset.Seconds()))
	}
	if o.CPU != "" {
		taskset, err := program("taskset", "util-linux")
		if err != nil {
			return nil, nil, err
		}
		line = append(line, taskset, "-c", o.CPU)
	}
	return append(line, server), env, nil
}

func (r *Redis) settings(data string, o RedisOptions, port int) ([]string, error) {
	args := []string{
		"--dir", data, "--unixsocket", r.socket, "--unixsocketperm", "700",
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		// Holds are keys with a TTL: a Redis that evicts would give seats away.
		"--maxmemory-policy", "noeviction",
		"--save", "", "--repl-diskless-sync-delay", "0", "--shutdown-timeout", "0",
	}
	if o.Keep {
		args = append(args, "--appendonly", "yes")
	}
	if o.ReplicaOf != "" {
		host, port, err := net.SplitHostPort(o.ReplicaOf)
		if err != nil {
			return nil, fmt.Errorf("devstack: a replica needs its primary's TCP address: %w", err)
		}
		args = append(args, "--replicaof", host, port)
	}
	return append(args, o.Settings...), nil
}

func (r *Redis) ping(ctx context.Context) error {
	if !exists(r.socket) {
		return os.ErrNotExist // spares the client its retries and its log line
	}
	client := r.Client()
	defer func() { _ = client.Close() }()
	return client.Ping(ctx).Err()
}

// Addr is where it answers: host:port with TCP, the path of its socket without.
func (r *Redis) Addr() string { return r.addr }

// URL is the address as a configuration has it, by the unix socket.
func (r *Redis) URL() string {
	return (&url.URL{Scheme: "unix", Path: r.socket}).String()
}

// Client is a new client by the unix socket; the caller closes it.
func (r *Redis) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: r.socket, ContextTimeoutEnabled: true})
}

// Restart starts it again at the same address once it has been stopped or
// killed: with Keep, on what it wrote.
func (r *Redis) Restart(ctx context.Context) error { return r.again(ctx) }

// Kill ends it the hard way, as a crash would.
func (r *Redis) Kill() { r.process.kill() }

// Stop stops it in good order.
func (r *Redis) Stop() error { return r.process.stop(syscall.SIGTERM) }
