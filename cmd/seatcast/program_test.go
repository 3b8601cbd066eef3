package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/internal/devstack/devtest"
)

// commandArgs makes this binary the seatcast program when it is set: its value
// is the JSON of its arguments.
const commandArgs = "SEATCAST_TEST_ARGS"

// beCommand is main in a process of its own. It ends when its parent does.
func beCommand(args string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var words []string
	err := json.Unmarshal([]byte(args), &words)
	if err == nil {
		err = run(ctx, words, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seatcast:", err)
	}
	return exitCode(words, err)
}

// command is the seatcast program, a child of the test.
type command struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdout syncBuffer
	stderr syncBuffer
	gone   chan struct{} // closed when it has ended
	err    error         // how, once gone
}

func startCommand(t testing.TB, args ...string) *command {
	t.Helper()
	words, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c := &command{t: t, cmd: exec.Command(os.Args[0]), gone: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), commandArgs+"="+string(words))
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	stdin, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the child
		defer close(c.gone)
		c.err = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		c.wait(30 * time.Second)
		if t.Failed() {
			t.Logf("seatcast %s\n%s%s", strings.Join(args, " "), c.stdout.String(), c.stderr.String())
		}
	})
	return c
}

// says waits until a line of its output begins so, and returns the rest of it.
func (c *command) says(d time.Duration, prefix string) string {
	c.t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		lines := bufio.NewScanner(strings.NewReader(c.stdout.String()))
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				return rest
			}
		}
		select {
		case <-c.gone:
			c.t.Fatalf("it ended (%v) and never said %q:\n%s%s", c.err, prefix, c.stdout.String(), c.stderr.String())
		default:
		}
		if devtest.Late(begun, d) {
			c.t.Fatalf("not within %v: %q", d, prefix)
		}
	}
}

func (c *command) wait(d time.Duration) {
	c.t.Helper()
	select {
	case <-c.gone:
	case <-time.After(d):
		c.t.Errorf("it does not end:\n%s%s", c.stdout.String(), c.stderr.String())
		c.kill()
	}
}

func (c *command) interrupt() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		c.t.Fatal(err)
	}
	c.wait(30 * time.Second)
	if c.err != nil {
		c.t.Errorf("after Ctrl-C it ended with %v: %s", c.err, c.stderr.String())
	}
}

func (c *command) kill() {
	_ = c.cmd.Process.Kill()
	<-c.gone
}

// refused runs the program until it ends and returns what it complained of.
func refused(t testing.TB, args ...string) string {
	t.Helper()
	c := startCommand(t, args...)
	c.wait(30 * time.Second)
	var exit *exec.ExitError
	if !errors.As(c.err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("seatcast %v ended with %v", args, c.err)
	}
	return c.stderr.String()
}

// syncBuffer is written by a child and read by a test.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
