package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"seatcast/loadtest/proc"
	"seatcast/loadtest/reader"
)

// ErrMissing says that a server is not installed here; the error says how to
// get it.
var ErrMissing = errors.New("not installed")

// Server is a running server.
type Server interface {
	// Target is where readers go.
	Target() reader.Target
	// Pid is the process whose usage counts, with its descendants.
	Pid() int
	// N is the number of change i; 0 where that is not known before, and the
	// change by its seats.
	N(i int) int64
	// Publish has change i reach every reader. Changes are published in order,
	// one at a time.
	Publish(ctx context.Context, i int) error
	// Note says what a reader of the results should know of this server, or nothing.
	Note() string
	// Stop ends the server. When it returns no process of it is left.
	Stop() error
}

// Setup says how a server is started.
type Setup struct {
	Dir     string     // for its files; exists
	On      proc.Cores // it may use
	WS      bool       // WebSocket; otherwise Server-Sent Events
	Changes Changes    // that will be published
	Self    string     // this program, which is also the peers in Go
	House   *House     // of seatcast
}

// Names are the servers there are, in the order they are measured in.
var Names = []string{Seatcast, "raw", "nchan", "centrifugo", "nethttp"}

// Seatcast is the server that is always measured.
const Seatcast = "seatcast"

var starts = map[string]func(context.Context, Setup) (Server, error){
	Seatcast: startSeatcast, "raw": startRaw, "nchan": startNchan, "centrifugo": startCentrifugo, "nethttp": startNetHTTP,
}

// Check returns an error that names what is no peer.
func Check(names []string) error {
	for _, n := range names {
		switch {
		case n == Seatcast:
			return errors.New("seatcast is always measured: name what it is compared with")
		case !slices.Contains(Names, n):
			return fmt.Errorf("there is no server %q: there are %s", n, strings.Join(Names[1:], ", "))
		}
	}
	return nil
}

// Start starts a server and returns when it answers. It returns ErrMissing
// when the server is not installed.
func Start(ctx context.Context, name string, s Setup) (Server, error) {
	server, err := starts[name](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return server, nil
}

// patience is how long a server may take to start or to stop.
const patience = 30 * time.Second

// freePort finds a port to listen on, for servers that must be told one. It is
// below those the kernel gives to readers.
func freePort() (int, error) {
	for port := 9100; port < 9900; port++ {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("a free port: %w", err)
		}
		return port, ln.Close()
	}
	return 0, errors.New("no port of 9100 to 9900 is free")
}

// answers waits until probe succeeds. It fails when the child ends, when ctx
// ends, or when patience does; then the child has been killed.
func answers(ctx context.Context, child *proc.Child, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-child.Done():
			return child.Death()
		case <-ctx.Done():
			child.Kill()
			return fmt.Errorf("it does not answer: %w: %w\n%s", context.Cause(ctx), err, child.Tail())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// listens is a probe: something listens at addr.
func listens(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}
