package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/checkout"
	"seatcast/holds"
	"seatcast/internal/browsertest"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// nodeSeam makes this binary a serving node when it is set: its value names
// where the node kills itself, "none" for nowhere.
const nodeSeam = "SEATCAST_TEST_SEAM"

func TestMain(m *testing.M) {
	if seam := os.Getenv(nodeSeam); seam != "" {
		os.Exit(beNode(seam))
	}
	if args := os.Getenv(commandArgs); args != "" {
		os.Exit(beCommand(args))
	}
	parallelTests(3)
	devtest.Main(m, browsertest.Stop)
}

// parallelTests has so many tests a core run at a time unless -parallel says how
// many: most of the time they wait, for what ends by the clock.
func parallelTests(perCore int) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(perCore*runtime.GOMAXPROCS(0))) // a number is taken
	}
}

// beNode is `seatcast serve` in a process of its own: it reads the same
// environment and ends when its parent does.
func beNode(seam string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	parentGone := make(chan struct{})
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(parentGone)
		cancel()
	}()
	cfg, err := loadConfig()
	if err == nil {
		err = serveNode(ctx, cfg, seam)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveNode(ctx context.Context, cfg Config, seam string) error {
	log, err := newLog(os.Stderr, cfg.LogLevel)
	if err != nil {
		return err
	}
	s := seams{ready: func(addr string) { fmt.Println("ready", addr) }}
	switch seam {
	case "none":
	case "demo":
		s.demo = true
	case "die before publish":
		s.voice = func(holds.Voice) holds.Voice { return deadlyVoice{} }
	case "die before mirror":
		s.holds = func(h checkout.Holds) checkout.Holds { return deadlyMirror{h} }
	case "die before restore":
		s.holds = func(h checkout.Holds) checkout.Holds { return deadlyRestore{h} }
	case "die before chart":
		s.aside = func(h catalog.Holds) catalog.Holds { return deadlyAside{h} }
	case "die before reset":
		s.aside = func(h catalog.Holds) catalog.Holds { return deadlyReset{h} }
	case "mute":
		s.voice = func(holds.Voice) holds.Voice { return muteVoice{} }
	default:
		return fmt.Errorf("no such seam: %q", seam)
	}
	return serve(ctx, cfg, log, s)
}

// kill ends this process as kill -9 does: nothing deferred runs.
func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// deadlyVoice dies between the script that changed a seat and its publishing.
type deadlyVoice struct{}

func (deadlyVoice) Publish(context.Context, string, []byte) { kill() }

// muteVoice loses every message, as a NATS nobody hears.
type muteVoice struct{}

func (muteVoice) Publish(context.Context, string, []byte) {}

// deadlyMirror dies between the commit of a sale and telling Redis.
type deadlyMirror struct{ checkout.Holds }

func (deadlyMirror) Spend(context.Context, string, seatmap.Marks) error {
	kill()
	return nil
}

// deadlyRestore dies between the commit that opens seats and telling Redis.
type deadlyRestore struct{ checkout.Holds }

func (deadlyRestore) Restore(context.Context, string, seatmap.Marks) error {
	kill()
	return nil
}

// deadlyAside dies between setting seats aside, for a moment, and the commit of
// the chart that drops them.
type deadlyAside struct{ catalog.Holds }

func (d deadlyAside) SetAside(ctx context.Context, event string, seats []int, _ time.Duration) ([]string, []int, error) {
	_, _, err := d.Holds.SetAside(ctx, event, seats, 3*time.Second)
	if err == nil {
		kill()
	}
	return nil, nil, err
}

// deadlyReset dies between the commit of a chart and telling Redis.
type deadlyReset struct{ catalog.Holds }

func (deadlyReset) Reset(context.Context, string) error {
	kill()
	return nil
}

// node is a serving process, a child of the test.
type node struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer     // what tells it to stop
	gone  chan struct{} // closed when the process has ended
	err   error         // how, once gone
}

// startNode starts a node and waits until it answers.
func startNode(t testing.TB, seam string, env []string) *node {
	t.Helper()
	return start(t, exec.Command(os.Args[0]), seam, env)
}

// startCapped starts a node that may have so many descriptors, and begins with
// a few of them.
func startCapped(t testing.TB, descriptors int, env []string) *node {
	t.Helper()
	return start(t, exec.Command("/bin/sh", "-c", `ulimit -S -n 64 && ulimit -H -n "$1" && exec "$0"`, os.Args[0], fmt.Sprint(descriptors)), "none", env)
}

func start(t testing.TB, cmd *exec.Cmd, seam string, env []string) *node {
	t.Helper()
	n := &node{cmd: cmd, gone: make(chan struct{})}
	// A process built with -race sleeps a second before it ends, unless told otherwise.
	n.cmd.Env = append(os.Environ(), append(env, nodeSeam+"="+seam, "GORACE=atexit_sleep_ms=0")...)
	n.cmd.Stderr = &testLog{t: t}
	stdin, err := n.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	n.stdin = stdin
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for n.url == "" && lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			n.url = "http://" + addr
		}
	}
	go func() { // ends with the child
		defer close(n.gone)
		n.err = n.cmd.Wait()
	}()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections() // one dialled and never used would keep the node waiting
		_ = stdin.Close()
		select {
		case <-n.gone:
			if n.err != nil && !n.wasKilled() { // a data race among others
				t.Errorf("node %s ended with %v", n.url, n.err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("node %s did not stop", n.url)
			n.kill()
		}
	})
	if n.url == "" {
		<-n.gone
		t.Fatalf("node did not start: %v", n.err)
	}
	return n
}

// metric is the sum of what the node's metric of this name says, whatever its
// other labels, where the line has these words.
func (n *node) metric(t testing.TB, name string, words ...string) (sum float64) {
	t.Helper()
	a := shopper{t, n.url, ""}.do(http.MethodGet, "/metrics", "", nil).want(t, http.StatusOK, "")
	for line := range strings.Lines(string(a.raw)) {
		rest, is := strings.CutPrefix(line, name)
		if !is || rest[0] != ' ' && rest[0] != '{' || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(rest, w) }) {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// stop asks the node to stop and returns when it has, which must be in time
// and by itself.
func (n *node) stop(t testing.TB, within time.Duration) {
	t.Helper()
	_ = n.stdin.Close()
	select {
	case <-n.gone:
		if n.err != nil {
			t.Errorf("asked to stop, the node ended with %v", n.err)
		}
	case <-time.After(within):
		t.Errorf("asked to stop, the node has not ended within %v", within)
	}
}

// kill is kill -9 from outside.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	<-n.gone
}

// diedBySignal waits until the node has killed itself.
func (n *node) diedBySignal(t testing.TB) {
	t.Helper()
	select {
	case <-n.gone:
	case <-time.After(time.Minute):
		t.Fatal("the node was to die and lives")
	}
	if !n.wasKilled() {
		t.Fatalf("the node ended with %v, not by kill -9", n.err)
	}
}

// wasKilled says that a node that is gone was ended by kill -9.
func (n *node) wasKilled() bool {
	var exit *exec.ExitError
	return errors.As(n.err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// testLog shows what a node logs in the log of its test.
type testLog struct{ t testing.TB }

func (l *testLog) Write(p []byte) (int, error) {
	l.t.Logf("node: %s", strings.TrimSpace(string(p)))
	return len(p), nil
}
