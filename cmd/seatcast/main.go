// Command seatcast is the on-sale engine for reserved seating: one binary that
// serves, demonstrates, migrates and administers. README.md tells what it
// does; `seatcast --help` how it is called.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"seatcast/internal/devstack"
)

type commands struct {
	Version kong.VersionFlag `help:"Print which version this is, and which Go built it."`

	Serve    serveCmd    `cmd:"" help:"Serve bookings, live maps and jobs. Configured by the environment."`
	Demo     demoCmd     `cmd:"" help:"Start private Redis, Postgres and NATS, and put a venue on sale."`
	Migrate  migrateCmd  `cmd:"" help:"Bring the database schema up to date (SEATCAST_POSTGRES_URL)."`
	Import   importCmd   `cmd:"" help:"Import a seating chart."`
	Event    eventCmd    `cmd:"" help:"Create, open, close and list events."`
	Token    tokenCmd    `cmd:"" help:"Mint a session token for a local key (SEATCAST_SESSION_KEY)."`
	Check    checkCmd    `cmd:"" help:"Look for what contradicts itself in the books, and for unsafe settings of Postgres and Redis."`
	Rehearse rehearseCmd `cmd:"" help:"Let simulated fans wait before a copy of an event, and see whether its waiting room keeps what it promises."`
	Plan     planCmd     `cmd:"" help:"Work out how fast a waiting room lets people in, how long it takes, and what it needs."`

	Codes codesCmd `cmd:"" help:"Mint codes for a waiting room that asks for them (SEATCAST_SERVER_KEY)."`

	VerifyDraw verifyDrawCmd `cmd:"" help:"Check that the draw of a waiting room was held as announced, and find your rank."`
}

func main() {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the first to be done
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		say(os.Stderr, "seatcast: %v\n", err)
	}
	os.Exit(exitCode(os.Args[1:], err))
}

// silent drops what go-redis prints of its own accord: the same errors come back
// from its calls, and are logged where they end.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// streams are where a command writes: results to out, everything else to err.
type streams struct {
	out, err io.Writer
}

// say writes to the terminal. One that has gone has nobody to be told of it.
func say(w io.Writer, format string, a ...any) { _, _ = fmt.Fprintf(w, format, a...) }

// run is main without the process: tests call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	data, err := devstack.DefaultDir()
	if err != nil {
		data = "none; name one"
	}
	var cli commands
	exited := false
	parser, err := kong.New(&cli,
		kong.Name("seatcast"),
		kong.Description("The on-sale engine for reserved seating."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exited = true }),
		kong.Vars{"demo_data": data, "version": version()},
	)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usage(parser, stderr)
	}
	if args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	if exited { // --help has been printed
		return nil
	}
	if err != nil {
		return explain(parser, err)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(&streams{stdout, stderr})
}

// version is what the binary knows of where it is from: the release it was
// installed as, or the commit it was built at.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "seatcast, of unknown origin"
	}
	return fmt.Sprintf("seatcast %s, %s %s/%s", info.Main.Version, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}

// usage tells how to call what was called without a word.
func usage(parser *kong.Kong, w io.Writer) error {
	parser.Stdout = w
	_, _ = parser.Parse([]string{"--help"}) // prints it, and then misses the command too
	return errors.New("name a command")
}

// explain says of a wrong call what is wrong and where to look.
func explain(parser *kong.Kong, err error) error {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) || wrong.Context == nil {
		return err
	}
	command, _, _ := strings.Cut(wrong.Context.Command(), " <") // without its arguments
	help := strings.TrimSpace(parser.Model.Name + " " + command)
	if missed, ok := strings.CutPrefix(err.Error(), "missing flags: "); ok {
		err = fmt.Errorf("missing flags: %s", orVariables(missed, wrong.Context.Flags()))
	}
	if word, ok := strings.CutPrefix(err.Error(), "unexpected argument "); ok && command == "" {
		err = fmt.Errorf("there is no command %q", word)
	}
	return fmt.Errorf("%w; see %s --help", err, help)
}

// orVariables names beside each flag the variable it can be read from as well.
func orVariables(missed string, flags []*kong.Flag) string {
	all := strings.Split(missed, ", ")
	for _, f := range flags {
		if i := slices.Index(all, f.Summary()); i >= 0 && len(f.Envs) > 0 {
			all[i] += " (or " + f.Envs[0] + " in the environment)"
		}
	}
	return strings.Join(all, ", ")
}

// newLog returns a log of JSON lines. A duration in it is text with its unit: as
// a number nobody knows of what.
func newLog(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: use debug, info, warn or error", level)
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l, ReplaceAttr: withUnit})), nil
}

func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
