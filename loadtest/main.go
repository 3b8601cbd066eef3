// Command loadtest puts Seatcast under load and measures it, beside others
// where there are others. It is a client like any other: it starts the real
// program and talks to it from outside.
//
//	go run ./loadtest fanout --conns 10000 --transport sse --against raw,nchan
//
// docs/benchmarks.md tells how to read what it prints.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"seatcast/loadtest/peers"
	"seatcast/loadtest/reader"
)

type commands struct {
	Fanout fanoutCmd `cmd:"" help:"How much it costs to tell a change to everybody, beside other servers."`

	Reader  readerCmd  `cmd:"" hidden:""`
	Raw     rawCmd     `cmd:"" hidden:""`
	Nethttp nethttpCmd `cmd:"" hidden:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "loadtest: %v\n", err)
		os.Exit(1)
	}
}

// streams are where a command writes: results to out, everything else to err.
type streams struct{ out, err io.Writer }

// run is main without the process: tests call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var cli commands
	exited := false
	parser, err := kong.New(&cli,
		kong.Name("loadtest"),
		kong.Description("Puts Seatcast under load and measures it."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exited = true }),
	)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited { // --help has been printed
		return nil
	}
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%w; see loadtest fanout --help", err)
	}
	if err != nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(&streams{stdout, stderr})
}

// readerCmd, rawCmd and nethttpCmd are processes a measurement starts.
type readerCmd struct{}

func (readerCmd) Run() error { return reader.Run(os.Stdin, os.Stdout) }

type rawCmd struct {
	Handshake string `arg:""`
}

func (c rawCmd) Run() error { return peers.Raw(c.Handshake) }

type nethttpCmd struct{}

func (nethttpCmd) Run(ctx context.Context, s *streams) error { return peers.NetHTTP(ctx, s.out) }
