// Command loadtest puts Seatcast under load and measures it, beside others
// where there are others. It is a client like any other: it starts the real
// program and talks to it from outside.
//
//	go run ./loadtest fanout --conns 10000 --transport sse --against raw,nchan
//	go run ./loadtest contention --buyers 500 --hot 200 --seats 20000
//	go run ./loadtest onsale --users 5000 --fail 20%
//	go run ./loadtest room --fans 200000
//
// docs/benchmarks.md tells how to read what it prints.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"seatcast/loadtest/contention/front"
	"seatcast/loadtest/peers"
	"seatcast/loadtest/reader"
)

type commands struct {
	Fanout fanoutCmd `cmd:"" help:"How much it costs to tell a change to everybody, beside other servers."`

	Contention contentionCmd `cmd:"" help:"How much it costs to refuse a seat that is gone, beside the usual attempts."`

	Onsale onsaleCmd `cmd:"" help:"Sell out to thousands of shoppers whose payments fail in every way, and see whether it adds up."`

	Room roomCmd `cmd:"" help:"How much it costs to wait: to join a waiting room, to be in it, and to learn a drawn place."`

	Front   frontCmd   `cmd:"" hidden:""`
	NATS    natsCmd    `cmd:"" name:"nats" hidden:""`
	Reader  readerCmd  `cmd:"" hidden:""`
	Raw     rawCmd     `cmd:"" hidden:""`
	Nethttp nethttpCmd `cmd:"" hidden:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the first to be done
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
		return fmt.Errorf("%w; see loadtest %s --help", err, about(args[0]))
	}
	if err != nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(&streams{stdout, stderr})
}

// about is the command whose help says more.
func about(command string) string {
	if command == "contention" || command == "onsale" || command == "room" {
		return command
	}
	return "fanout"
}

// readerCmd and those below are processes a measurement starts.
type readerCmd struct{}

func (readerCmd) Run() error { return reader.Run(os.Stdin, os.Stdout) }

type rawCmd struct {
	Handshake string `arg:""`
}

func (c rawCmd) Run() error { return peers.Raw(c.Handshake) }

type nethttpCmd struct{}

func (nethttpCmd) Run(ctx context.Context, s *streams) error { return peers.NetHTTP(ctx, s.out) }

type frontCmd struct {
	Options string `arg:""`
}

func (c frontCmd) Run(ctx context.Context, s *streams) error {
	var o front.Options
	if err := json.Unmarshal([]byte(c.Options), &o); err != nil {
		return err
	}
	return front.Run(ctx, o, s.out)
}

type natsCmd struct{}

func (natsCmd) Run(ctx context.Context, s *streams) error { return peers.NATS(ctx, s.out) }
