package peers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"seatcast/internal/devstack"
	"seatcast/loadtest/proc"
)

// natsd is a NATS that is a process of its own.
type natsd struct {
	child *proc.Child
	url   string
}

// startNATS starts the house's NATS and returns its address.
func (h *House) startNATS(ctx context.Context) (url string, err error) {
	if h.o.NATSBy == "" {
		if h.nats, err = devstack.StartNATS(); err != nil {
			return "", err
		}
		return h.nats.URL(), nil
	}
	child, err := proc.Start(proc.Command{Name: "nats", Path: h.o.NATSBy, Args: []string{"nats"}, Dir: h.dir, On: h.o.StoresOn, Out: true})
	if err != nil {
		return "", err
	}
	h.natsd = &natsd{child: child}
	h.natsd.url, err = FirstLine(ctx, child)
	return h.natsd.url, err
}

// FirstLine is what a child says first on its standard output. It fails when
// the child ends or ctx does.
func FirstLine(ctx context.Context, child *proc.Child) (string, error) {
	defer context.AfterFunc(ctx, child.Kill)()
	line, err := bufio.NewReader(child.Out).ReadString('\n')
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", child.Death()
	}
	return strings.TrimSpace(line), nil
}

// NATS is the process of a house's NATS: it says its address on out and serves
// until ctx ends.
func NATS(ctx context.Context, out io.Writer) error {
	server, err := devstack.StartNATS()
	if err != nil {
		return err
	}
	defer server.Stop()
	if _, err := fmt.Fprintln(out, server.URL()); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	<-ctx.Done()
	return nil
}
