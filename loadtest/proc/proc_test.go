//go:build linux

package proc

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string, on Cores) *Child {
	t.Helper()
	p, err := Start(Command{Name: "sh", Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir(), On: on, In: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestAChildStaysOnItsCores(t *testing.T) {
	all, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1:]
	p := shell(t, "grep Cpus_allowed_list /proc/self/status", last)
	<-p.Done()
	if got := strings.Fields(p.Tail()); len(got) != 2 || got[1] != strconv.Itoa(last[0]) {
		t.Errorf("on core %d alone the kernel says %q", last[0], p.Tail())
	}
	if now, err := Allowed(); err != nil || len(now) != len(all) {
		t.Errorf("we may use %v instead of %v now, %v", now, all, err)
	}
}

func TestUsageIsOfTheWholeTree(t *testing.T) {
	p := shell(t, "(while :; do :; done) & wait", nil)
	deadline := time.Now().Add(10 * time.Second)
	for {
		u, err := Of(p.Pid())
		if err != nil {
			t.Fatal(err)
		}
		if u.CPU > 50*time.Millisecond && u.RSS > 0 && u.FDs > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("what the child of a child uses is not seen: %+v", u)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestStopEndsAChildThatDoesNotListenWithItsChildren(t *testing.T) {
	p := shell(t, "trap '' TERM; sleep 100 & echo $!; wait; wait", nil)
	for strings.TrimSpace(p.Tail()) == "" { // until it is deaf
		time.Sleep(time.Millisecond)
	}
	if err := p.Stop(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("%v", err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(p.Tail()))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); syscall.Kill(child, 0) == nil && !isZombie(child); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("its child lives")
		}
	}
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// isZombie says that a process has ended and nobody has asked how.
func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestADeathShowsTheEndOfTheLog(t *testing.T) {
	p := shell(t, "echo what went wrong; exit 3", nil)
	if err := p.Death(); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "what went wrong") {
		t.Errorf("%v", err)
	}
	var none *Child
	if err := errors.Join(none.Stop(time.Second)); err != nil {
		t.Error(err)
	}
}

func TestACoreIsBusyAsTimeGoesOn(t *testing.T) {
	all, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := Busy(all[0]); err != nil || d <= 0 {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := Busy(100_000); err == nil {
		t.Error("there is a core 100,000")
	}
}
