package peers

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"seatcast/loadtest/proc"
)

func TestWhoSaysNothingAndEndsIsAnError(t *testing.T) {
	child, err := proc.Start(proc.Command{Name: "silent", Path: "/bin/true", Dir: t.TempDir(), Out: true})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := FirstLine(context.Background(), child); err == nil {
		t.Errorf("it said %q", line)
	}
}

func TestWaitingForTheFirstLineEndsWithTheContext(t *testing.T) {
	child, err := proc.Start(proc.Command{Name: "slow", Path: "/bin/sleep", Args: []string{"60"}, Dir: t.TempDir(), Out: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := FirstLine(ctx, child); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	select {
	case <-child.Done():
	case <-time.After(10 * time.Second):
		t.Error("it lives")
	}
}

func TestTheProcessOfNATSSaysWhereItAnswers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1) // one error
	go func() { ended <- NATS(ctx, w) }()
	line := make([]byte, 200)
	if n, err := r.Read(line); err != nil || string(line[:7]) != "nats://" {
		t.Errorf("%q, %v", line[:n], err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
