package reader

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"seatcast/loadtest/proc"
)

// Reader is a reader's process as seen by whoever measures. One call at a time.
type Reader struct {
	// Progress, when set, is told now and then how much of what is waited for
	// has come.
	Progress func(n int64)

	child *proc.Child
	lines *bufio.Scanner
}

// Start starts c, which must call Run on its standard input and output.
func Start(c proc.Command) (*Reader, error) {
	c.In, c.Out = true, true
	child, err := proc.Start(c)
	if err != nil {
		return nil, err
	}
	r := &Reader{child: child, lines: bufio.NewScanner(child.Out)}
	r.lines.Buffer(nil, 64<<20) // Finals have maps
	return r, nil
}

// Pid is the process.
func (r *Reader) Pid() int { return r.child.Pid() }

// Stop ends the process, and with it every session.
func (r *Reader) Stop() error {
	_ = r.child.In.Close() // it ends with its input
	select {
	case <-r.child.Done():
		return nil
	case <-time.After(5 * time.Second):
		return r.child.Stop(time.Second)
	}
}

// Open opens sessions and returns when all are on.
func (r *Reader) Open(ctx context.Context, j Join, within time.Duration) (Opened, error) {
	a, err := r.ask(ctx, request{Op: "open", Join: &j, Within: within.Milliseconds()})
	if err != nil || a.Opened == nil {
		return Opened{}, err
	}
	return *a.Opened, nil
}

// Expect says what will be published, and starts counting.
func (r *Reader) Expect(ctx context.Context, p Plan) error {
	_, err := r.ask(ctx, request{Op: "plan", Plan: &p})
	return err
}

// Await returns when everything of the plan has reached every session, or
// after within, with what has.
func (r *Reader) Await(ctx context.Context, within time.Duration) (Report, error) {
	a, err := r.ask(ctx, request{Op: "await", Within: within.Milliseconds()})
	if err != nil || a.Report == nil {
		return Report{}, err
	}
	return *a.Report, nil
}

// Herd closes every session and opens all of them at once. It returns when all
// are on.
func (r *Reader) Herd(ctx context.Context, numbers bool, within time.Duration) (Opened, error) {
	a, err := r.ask(ctx, request{Op: "herd", Return: &Return{Numbers: numbers}, Within: within.Milliseconds()})
	if err != nil || a.Opened == nil {
		return Opened{}, err
	}
	return *a.Opened, nil
}

// Churn has so many sessions a second leave and come back from now on; 0 ends it.
func (r *Reader) Churn(ctx context.Context, perSecond float64) error {
	_, err := r.ask(ctx, request{Op: "churn", Return: &Return{PerSecond: perSecond}})
	return err
}

// Settle returns when every session is on.
func (r *Reader) Settle(ctx context.Context, within time.Duration) error {
	_, err := r.ask(ctx, request{Op: "settle", Within: within.Milliseconds()})
	return err
}

// Follow has sessions that the server ends come back to next, when they were
// told to, with their number. Drained tells how that went.
func (r *Reader) Follow(ctx context.Context, next Target) error {
	_, err := r.ask(ctx, request{Op: "follow", Next: &next})
	return err
}

// Drained returns when every session has left the first server and is on at the
// next, or after within, with how far that is.
func (r *Reader) Drained(ctx context.Context, within time.Duration) (Drained, error) {
	a, err := r.ask(ctx, request{Op: "drained", Within: within.Milliseconds()})
	if err != nil || a.Drained == nil {
		return Drained{}, err
	}
	return *a.Drained, nil
}

// Finals returns the maps that sessions which read have now.
func (r *Reader) Finals(ctx context.Context) ([]Final, error) {
	a, err := r.ask(ctx, request{Op: "finals"})
	return a.Finals, err
}

func (r *Reader) ask(ctx context.Context, q request) (reply, error) {
	stop := context.AfterFunc(ctx, func() { _ = r.child.In.Close() }) // it ends with its input
	defer stop()
	if err := json.NewEncoder(r.child.In).Encode(q); err != nil {
		return reply{}, r.broken(ctx, q.Op, err)
	}
	for r.lines.Scan() {
		var a reply
		if err := json.Unmarshal(r.lines.Bytes(), &a); err != nil {
			return a, fmt.Errorf("reader: %s: %w", q.Op, err)
		}
		switch {
		case a.Progress != nil:
			if r.Progress != nil {
				r.Progress(*a.Progress)
			}
		case a.Err != "":
			return a, fmt.Errorf("reader: %s: %s", q.Op, a.Err)
		default:
			return a, nil
		}
	}
	return reply{}, r.broken(ctx, q.Op, r.lines.Err())
}

func (r *Reader) broken(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-r.child.Done():
		return errors.Join(fmt.Errorf("reader: %s: %w", op, err), r.child.Death())
	case <-time.After(time.Second):
		return fmt.Errorf("reader: %s: %w", op, err)
	}
}
