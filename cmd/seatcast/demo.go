package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/catalog"
	"seatcast/internal/devstack"
	"seatcast/migrations"
	"seatcast/seatmap"
	"seatcast/web"
)

type demoCmd struct {
	Addr    string   `default:"127.0.0.1:8080" help:"Address to serve on."`
	Origins []string `default:"127.0.0.1:*,localhost:*" placeholder:"HOST" help:"Other sites whose pages may show the map and call the API: host patterns, or * for any."`
	Data    string   `placeholder:"DIR" help:"Where Redis and Postgres keep their data. Kept between runs: a second start resumes the same sale. Default: ${demo_data}."`
	Event   string   `default:"stadium" enum:"theatre,arena,stadium,club" help:"The event on sale: theatre, arena, stadium or club. The other three are there too, closed."`
	Crowd   int      `default:"0" placeholder:"N" help:"So many simulated shoppers, who watch, hold, pay or walk away: 0 to 5000."`
}

const (
	demoLog    = "warn" // the terminal is for the one who tries it
	demoClaims = "user=sub,roles=roles"
	// sessionKeyFile is beside the data, where the owner of the demo can read it.
	sessionKeyFile = "session.key"
	maxCrowd       = 5000
)

// Run starts everything privately and serves until ctx ends.
func (d demoCmd) Run(ctx context.Context, s *streams) (err error) {
	if d.Crowd < 0 || d.Crowd > maxCrowd {
		return fmt.Errorf("--crowd %d: use 0 to %d", d.Crowd, maxCrowd)
	}
	log, err := newLog(s.err, demoLog)
	if err != nil {
		return err
	}
	slog.SetDefault(log)
	dir, err := d.dir()
	if err != nil {
		return err
	}
	d.Data = dir
	// Before anything is started: an address in use is the commonest trouble.
	ln, err := net.Listen("tcp", d.Addr)
	if err != nil {
		return d.unlistened(err)
	}
	defer func() { _ = ln.Close() }() // closed already when the server ran
	defer context.AfterFunc(ctx, func() { say(s.out, "stopping everything\n") })()
	say(s.out, "starting private Redis, Postgres and NATS in %s\n", dir)
	if _, err := os.Stat(filepath.Join(dir, sessionKeyFile)); err == nil {
		say(s.out, "the sale that is there goes on; to begin anew: --data DIR, another folder\n")
	}
	stack, err := devstack.Start(ctx, devstack.Options{Dir: dir})
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(unlessEnded(ctx, err), stack.Stop()) }()

	cfg, err := d.config(stack, dir)
	if err != nil {
		return err
	}
	cancelled, err := d.putOnSale(ctx, cfg)
	if err != nil {
		return err
	}
	if cancelled {
		say(s.out, "the event %s is cancelled: choose another with --event, or begin anew with --data DIR\n", d.Event)
	}
	return d.serve(ctx, cfg, ln, stack, s, log)
}

// unlessEnded is err, unless it only says that ctx has ended: Ctrl-C is no
// error whenever it comes.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (d demoCmd) unlistened(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--addr %s is in use, by another demo perhaps: choose another, such as --addr 127.0.0.1:0 for any free port", d.Addr)
	}
	return fmt.Errorf("--addr %s: %w", d.Addr, err)
}

func (d demoCmd) dir() (string, error) {
	if d.Data == "" {
		return devstack.DefaultDir()
	}
	return filepath.Abs(d.Data)
}

// config is what `seatcast serve` would read from the environment. The keys
// live beside the data: bookings of the last run stay valid.
func (d demoCmd) config(stack *devstack.Stack, dir string) (Config, error) {
	cfg, err := defaultConfig()
	if err != nil {
		return cfg, err
	}
	cfg.Addr, cfg.Drain, cfg.LogLevel = d.Addr, time.Second/2, demoLog
	cfg.Postgres, cfg.Redis, cfg.NATS = stack.PostgresURL, stack.RedisURL, stack.NATSURL
	cfg.Sandbox, cfg.Claims, cfg.Origins = true, demoClaims, d.Origins
	cfg.WebhooksHTTP, cfg.WebhooksPrivate = true, true // to a receiver on the same desk
	for _, key := range []struct {
		file string
		into *string
	}{{"server.key", &cfg.ServerKey}, {sessionKeyFile, &cfg.SessionKey}, {"sandbox.key", &cfg.SandboxSecret}} {
		kept, err := keptKey(filepath.Join(dir, key.file))
		if err != nil {
			return cfg, err
		}
		*key.into = kept
	}
	return cfg, cfg.validate()
}

// keptKey reads a key from file, making it the first time.
func keptKey(file string) (string, error) {
	key, err := os.ReadFile(file)
	if err == nil && len(key) > 0 {
		return string(key), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("demo key: %w", err)
	}
	fresh := web.GenerateKey()
	if err := os.WriteFile(file, []byte(fresh), 0o600); err != nil {
		return "", fmt.Errorf("demo key: %w", err)
	}
	return fresh, nil
}

// demoVenue is one of the generated houses and what its show is called.
type demoVenue struct {
	id, name, venue, zone string
	chart                 func() *seatmap.Chart
	price                 int64 // of the cheapest category, minor units
	currency              string
}

var demoVenues = []demoVenue{
	{"stadium", "The Last Summer Concert", "Parkland Stadium", "Europe/Paris", seatmap.Stadium, 4500, "EUR"},
	{"arena", "Northern Lights Tour", "Harbour Arena", "Europe/Oslo", seatmap.Arena, 45000, "NOK"},
	{"theatre", "The Winter's Tale", "Old Court Theatre", "Europe/London", seatmap.Theatre, 2500, "GBP"},
	{"club", "Late Session", "The Cellar", "America/New_York", seatmap.Club, 1800, "USD"},
}

// putOnSale migrates, imports the venues that are not there yet, opens the one
// that was asked for, unless an operator has cancelled it, and closes the others. A
// second start finds the sale as it was left.
func (d demoCmd) putOnSale(ctx context.Context, cfg Config) (cancelled bool, err error) {
	if err := migrations.Up(ctx, cfg.Postgres); err != nil {
		return false, err
	}
	pool, err := openPool(ctx, cfg.Postgres)
	if err != nil {
		return false, err
	}
	defer pool.Close()
	shop := catalog.New(pool)
	for _, v := range demoVenues {
		if err := v.ensure(ctx, shop); err != nil {
			return false, fmt.Errorf("demo venue %s: %w", v.id, err)
		}
		state := catalog.Closed
		if v.id == d.Event {
			state = catalog.Open
		}
		switch err := shop.SetState(ctx, v.id, state); {
		case errors.Is(err, catalog.ErrCancelled) && v.id == d.Event && d.Crowd > 0:
			return false, fmt.Errorf("--event %s is cancelled, so that a crowd finds nothing to buy: choose another, or begin anew with --data DIR", v.id)
		case errors.Is(err, catalog.ErrCancelled):
			cancelled = cancelled || v.id == d.Event
		case err != nil:
			return false, err
		}
	}
	return cancelled, nil
}

func (v demoVenue) ensure(ctx context.Context, shop *catalog.Store) error {
	if _, err := shop.Get(ctx, v.id); !errors.Is(err, seatmap.ErrNoEvent) {
		return err
	}
	chart := v.chart()
	sha, err := shop.PutChart(ctx, chart)
	if err != nil {
		return err
	}
	opens, starts, err := v.times(time.Now())
	if err != nil {
		return err
	}
	_, err = shop.CreateEvent(ctx, catalog.NewEvent{
		ID: v.id, Name: v.name, Venue: v.venue, Zone: v.zone, Starts: starts, Opens: opens,
		ChartSHA: sha, Mode: catalog.Hot, Currency: v.currency, Prices: v.prices(chart),
	})
	return err
}

// times are the last midnight and an evening months from now, at the venue.
func (v demoVenue) times(now time.Time) (opens, starts time.Time, err error) {
	at, err := time.LoadLocation(v.zone)
	if err != nil {
		return opens, starts, err
	}
	year, month, day := now.In(at).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, at), time.Date(year, month+9, day, 20, 0, 0, 0, at), nil
}

// prices rise by half a step from the last category to the first.
func (v demoVenue) prices(chart *seatmap.Chart) map[string]int64 {
	prices := make(map[string]int64, len(chart.Categories))
	for i, c := range chart.Categories {
		steps := int64(len(chart.Categories) - 1 - i)
		prices[c.Name] = v.price + v.price*steps/2
	}
	return prices
}

// serve runs the product with the crowd in front of it.
func (d demoCmd) serve(ctx context.Context, cfg Config, ln net.Listener, stack *devstack.Stack, s *streams, log *slog.Logger) error {
	g, ctx := errgroup.WithContext(ctx)
	up := make(chan string, 1) // serve says it once
	g.Go(func() error { return stack.Watch(ctx) })
	g.Go(func() error {
		return serve(ctx, cfg, log, seams{demo: true, ln: ln, ready: func(addr string) { up <- addr }})
	})
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case addr := <-up:
			base := "http://" + browsable(addr)
			d.welcome(s, base, stack)
			if d.Crowd == 0 {
				return nil
			}
			c := crowd{base: base, event: d.Event, people: d.Crowd, pace: time.Second, log: log}
			if err := c.run(ctx); err != nil || ctx.Err() != nil {
				return err
			}
			say(s.out, "sold out: the crowd goes home\n")
			return nil
		}
	})
	return g.Wait()
}

// browsable turns the address of a listener into one a browser can open.
func browsable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// closed is an event that is there and not on sale.
func (d demoCmd) closed() string {
	if d.Event == "theatre" {
		return "arena"
	}
	return "theatre"
}

func (d demoCmd) welcome(s *streams, base string, stack *devstack.Stack) {
	say(s.out, `ready: %[1]s

Try:
  open %[1]s/events/%[2]s in two browsers: pick seats in one, watch the other
                                          (tabs of one browser are one shopper; a private window is another)
  curl -N %[1]s/v1/events/%[2]s/live      the live map as it is streamed
  curl %[1]s/v1/events/%[2]s              the event
  pay with card 4242424242424242 (approved) or 4000000000000002 (declined)
  %[5]s token --claims %[3]s --key "$(cat '%[4]s')" --user me --role operator
                                          a token of an operator: paste it at %[1]s/console,
                                          or send it to /v1/admin as Authorization: Bearer <token>
  %[5]s check --postgres '%[6]s' --redis '%[7]s'
                                          do the books add up?
  %[5]s rehearse --url %[1]s --event %[8]s --fans 300 --postgres '%[6]s' --claims %[3]s --key "$(cat '%[4]s')"
                                          a waiting room with simulated fans: of an event that is not on sale, once
                                          it has a room that is joined later (docs/waitingroom.md says how)
`, base, d.Event, demoClaims, filepath.Join(d.Data, sessionKeyFile), os.Args[0], stack.PostgresURL, stack.RedisURL, d.closed())
	if d.Crowd == 0 {
		say(s.out, "  start with --crowd 200 to see it sell\n")
	}
	say(s.out, "Ctrl-C stops everything; the sale is resumed by the next start.\n")
}
