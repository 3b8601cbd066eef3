// Package devtest gives tests real servers. Each kind is started at most once
// in a test binary, when the first test asks, and stopped by Main; tests share
// it without seeing each other. A server that is not installed skips the test at
// a desk and fails it where CI is set in the environment.
package devtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seatcast/internal/devstack"
)

// shared is what the tests of this binary share.
var shared struct {
	mu       sync.Mutex
	main     bool // Main runs, so what is started will be stopped
	home     *devstack.Home
	redis    *devstack.Redis
	postgres *postgres
	nats     *devstack.NATS
}

var serial atomic.Int64

// Main runs the tests, stops the servers they shared and whatever else they
// did, and exits. Call it from TestMain.
func Main(m *testing.M, others ...func()) {
	shared.main = true
	hush()
	code := m.Run()
	for _, stop := range others {
		stop()
	}
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Event is a fresh event id, unique in this binary.
func Event(testing.TB) string {
	return "event-" + strconv.FormatInt(serial.Add(1), 10)
}

func stop() error {
	var errs []error
	if shared.nats != nil {
		shared.nats.Stop()
	}
	if shared.redis != nil {
		errs = append(errs, shared.redis.Stop())
	}
	if shared.postgres != nil {
		errs = append(errs, shared.postgres.server.Stop())
	}
	if shared.home != nil {
		errs = append(errs, shared.home.Close(), os.RemoveAll(dir()))
	}
	return errors.Join(errs...)
}

// once starts something the tests share, or returns what was started before.
func once[T any](tb testing.TB, have *T, start func(context.Context, *devstack.Home) (T, error)) T {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	home := openLocked(tb)
	var none T
	if any(*have) != any(none) {
		return *have
	}
	got, err := start(context.Background(), home)
	must(tb, err)
	*have = got
	return got
}

// must ends the test: skipped when a server is not installed at a desk.
func must(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, devstack.ErrMissing) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// home is the folder of this binary's servers.
func home(tb testing.TB) *devstack.Home {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return openLocked(tb)
}

func openLocked(tb testing.TB) *devstack.Home {
	tb.Helper()
	if !shared.main {
		tb.Fatal("devtest: call devtest.Main from TestMain, which stops the servers")
	}
	if shared.home == nil {
		sweep()
		h, err := devstack.Open(dir())
		must(tb, err)
		shared.home = h
	}
	return shared.home
}

const prefix = "seatcast-test-"

func dir() string {
	return filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getuid())+"-"+strconv.Itoa(os.Getpid()))
}

// sweep removes the folders of test binaries that were killed. Whoever lives
// holds the lock of its folder; a minute is for those about to take it.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getuid())+"-*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := os.Open(filepath.Join(dir, "lock"))
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
