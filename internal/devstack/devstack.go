// Package devstack starts private servers for the demo and for tests: a
// PostgreSQL and a Redis as child processes, a NATS inside this one.
//
// They clash with nothing else on the machine: Postgres and Redis answer on
// unix sockets that only the account they run as (and root) can reach, NATS on a
// free port of the loopback with a secret of its own. Started by root, the child
// processes run as an unprivileged account.
//
// They do not outlive the process that started them, however it ends: on Linux
// the kernel ends them when it dies. Should one linger, the next start on the
// same folder ends it first. A folder belongs to one running stack at a time.
package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Options say how a Stack is run.
type Options struct {
	// Dir keeps everything the servers write. It is made when missing; a
	// second start on it resumes with the data of the first.
	Dir string
}

// A Stack is one server of each kind on one folder.
type Stack struct {
	RedisURL    string
	PostgresURL string // database "seatcast", not migrated
	NATSURL     string

	home     *Home
	redis    *Redis
	postgres *Postgres
	nats     *NATS
	stop     sync.Once
	stopped  error
}

// Start starts the servers and returns when all of them answer. It returns
// ErrInUse when another running stack has the folder, ErrMissing when a server is
// not installed, and ErrMayNotEnter when the account of the servers cannot reach
// the folder. ctx bounds the start alone: when it ends before Start returns,
// whatever was started has been stopped. A Stack that was returned runs until Stop.
func Start(ctx context.Context, o Options) (*Stack, error) {
	h, err := Open(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Stack{home: h}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) (err error) {
	if s.postgres, err = s.home.Postgres(ctx, PostgresOptions{}); err != nil {
		return err
	}
	if s.redis, err = s.home.Redis(ctx, RedisOptions{Keep: true}); err != nil {
		return err
	}
	if s.nats, err = StartNATS(); err != nil {
		return err
	}
	s.RedisURL, s.NATSURL = s.redis.URL(), s.nats.URL()
	s.PostgresURL, err = s.postgres.Database(ctx, "seatcast")
	return err
}

// Watch blocks until ctx ends, which is no error, or until a server ends without
// having been asked to; then the error names it and shows the end of its log.
func (s *Stack) Watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.redis.process.done:
		return s.redis.process.death()
	case <-s.postgres.process.done:
		return s.postgres.process.death()
	}
}

// Stop stops the servers in good order and gives the folder free. When it
// returns no process is left. Later calls do nothing.
func (s *Stack) Stop() error {
	s.stop.Do(func() {
		if s.nats != nil {
			s.nats.Stop()
		}
		if s.redis != nil {
			s.stopped = s.redis.Stop()
		}
		if s.postgres != nil {
			s.stopped = errors.Join(s.stopped, s.postgres.Stop())
		}
		s.stopped = errors.Join(s.stopped, s.home.Close())
	})
	return s.stopped
}

// DefaultDir is where the demo keeps its data unless told otherwise: a folder
// that the account of the servers can reach.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/seatcast-demo", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "seatcast-demo"), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("devstack: no folder for the demo's data: %w", err)
	}
	return filepath.Join(user, ".local", "state", "seatcast-demo"), nil
}
