package devstack_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"seatcast/internal/devstack"
)

func start(t *testing.T, dir string) *devstack.Stack {
	t.Helper()
	stack, err := devstack.Start(t.Context(), devstack.Options{Dir: dir})
	installed(t, err)
	t.Cleanup(func() { _ = stack.Stop() })
	return stack
}

func TestStopLeavesNoProcessAndAFolderThatResumes(t *testing.T) {
	dir := folder(t)
	first := start(t, dir)
	write(t, first, "first")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	wantNoneLiving(t, dir)
	second := start(t, dir)
	wantWord(t, second, "first")
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
}

// The servers live as long as their parent however it ends, and no end of it
// keeps the folder from starting again with what was committed.
func TestParentEnds(t *testing.T) {
	dir := folder(t)
	stack := start(t, dir) // learns whether the servers are installed
	if err := stack.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Run("CtrlCStopsAll", func(t *testing.T) {
		c := startChild(t, dir)
		write(t, &c.Stack, "before Ctrl-C")
		c.interrupt(t)
		wantNoneLiving(t, dir)
	})
	t.Run("KilledParentTakesTheServersAlong", func(t *testing.T) {
		c := startChild(t, dir)
		c.kill()
		eventually(t, "no process left", func() bool { return len(living(t, dir)) == 0 })
	})
	t.Run("StartRightAfterKillKeepsCommittedData", func(t *testing.T) {
		c := startChild(t, dir)
		write(t, &c.Stack, "before kill")
		c.kill()
		next := startChild(t, dir)
		wantWord(t, &next.Stack, "before Ctrl-C")
		wantWord(t, &next.Stack, "before kill")
		next.interrupt(t)
		wantNoneLiving(t, dir)
	})
	t.Run("AServerThatOutlivedItsParentIsEvicted", func(t *testing.T) {
		c := startChild(t, dir)
		postgres := postgresCommand(t, dir)
		c.kill()
		eventually(t, "no process left", func() bool { return len(living(t, dir)) == 0 })
		outliving(t, dir, "postgres", postgres[0], postgres[1:]...)
		outliving(t, dir, "redis", "redis-server", "--dir", ".", "--port", "0", "--unixsocket", "../run/redis.sock", "--appendonly", "yes")
		eventually(t, "both old servers answer", func() bool { return answer(t, &c.Stack) })
		next := startChild(t, dir)
		wantWord(t, &next.Stack, "before kill")
		next.interrupt(t)
		wantNoneLiving(t, dir)
	})
	t.Run("OneThatDoesNotListenIsKilled", func(t *testing.T) {
		deaf := filepath.Join(folder(t), "postgres")
		if err := os.WriteFile(deaf, []byte("#!/bin/sh\ntrap '' QUIT\nread nothing\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		outliving(t, dir, "postgres", deaf)
		next := startChild(t, dir)
		next.interrupt(t)
		wantNoneLiving(t, dir)
	})
	t.Run("AProcessNumberUsedAgainBlocksNothing", func(t *testing.T) {
		c := startChild(t, dir)
		c.kill()
		eventually(t, "no process left", func() bool { return len(living(t, dir)) == 0 })
		stranger := outliving(t, dir, ".", "sleep", "600")
		text := strconv.Itoa(stranger) + "\n" + dir + "/postgres\n1\n5432\n" + dir + "/run\n\n"
		if err := os.WriteFile(filepath.Join(dir, "postgres", "postmaster.pid"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		next := startChild(t, dir)
		next.interrupt(t)
		if err := syscall.Kill(stranger, 0); err != nil {
			t.Errorf("the stranger was harmed: %v", err)
		}
	})
}

func TestKilledDuringTheFirstStartStartsAgain(t *testing.T) {
	dir := folder(t)
	cmd := begin(t, dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, "postgres.new", "PG_VERSION")
	ended := false
	eventually(t, "initdb under way", func() bool {
		_, err := os.Stat(half)
		ended = cmd.Process.Signal(syscall.Signal(0)) != nil
		return err == nil || ended
	})
	_, _ = cmd.Process.Kill(), cmd.Wait()
	stack := start(t, dir)
	write(t, stack, "after")
}

func TestOneFolderOneStack(t *testing.T) {
	dir := folder(t)
	stack := start(t, dir)
	_, err := devstack.Start(t.Context(), devstack.Options{Dir: dir})
	if !errors.Is(err, devstack.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("the second start got %v, want ErrInUse and process %d", err, os.Getpid())
	}
	write(t, stack, "unharmed")
}

func TestClosedFolderIsNamedBeforeAnythingIsMade(t *testing.T) {
	closed := filepath.Join(folder(t), "closed")
	if err := os.Mkdir(closed, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "deeper", "data")
	_, err := devstack.Start(t.Context(), devstack.Options{Dir: dir})
	if !errors.Is(err, devstack.ErrMayNotEnter) || !strings.Contains(err.Error(), "may not enter "+closed+" ") {
		t.Fatalf("got %v, want ErrMayNotEnter naming %s", err, closed)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if made, _ := os.ReadDir(closed); len(made) > 0 {
		t.Errorf("made %v", made)
	}
}

func TestFolderTooDeepForSocketsWorks(t *testing.T) {
	dir := filepath.Join(folder(t), strings.Repeat("deep/", 30)+"data, \"quoted\"")
	stack := start(t, dir)
	write(t, stack, "deep")
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	dir := folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := devstack.Start(ctx, devstack.Options{Dir: dir}); !errors.Is(err, context.Canceled) {
		if errors.Is(err, devstack.ErrMissing) {
			installed(t, err)
		}
		t.Fatalf("got %v", err)
	}
	wantNoneLiving(t, dir)
}

func TestWatchTellsOfAServerThatDied(t *testing.T) {
	dir := folder(t)
	stack := start(t, dir)
	_, rdb := connect(t, stack)
	pid, err := strconv.Atoi(rdb.InfoMap(t.Context(), "server").Item("Server", "process_id"))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := stack.Watch(t.Context()); err == nil || !strings.Contains(err.Error(), "redis ended") {
		t.Fatalf("got %v", err)
	}
}

func TestAFolderOfOtherFilesIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := devstack.Open(dir); !errors.Is(err, devstack.ErrForeign) {
		t.Fatalf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
