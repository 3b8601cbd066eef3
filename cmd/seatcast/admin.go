package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"seatcast/catalog"
	"seatcast/migrations"
	"seatcast/seatmap"
	"seatcast/web"
)

// database is the one setting the administering commands need.
type database struct {
	Postgres string `env:"SEATCAST_POSTGRES_URL" name:"postgres" required:"" placeholder:"URL" help:"The database, as postgres://…"`
}

// Validate is called by the parser: a URL that cannot be used is told before
// anything is done.
func (d database) Validate() error {
	if d.Postgres == "" {
		return nil // which the parser tells with whatever else is missing
	}
	if _, err := poolConfig(d.Postgres); err != nil {
		return fmt.Errorf("the database's URL (--postgres, or %sPOSTGRES_URL) %w", envPrefix, err)
	}
	return nil
}

// open connects to the database, if it is one this program can be used with.
func (d database) open(ctx context.Context) (*pgxpool.Pool, error) {
	pool, err := openPool(ctx, d.Postgres)
	if err != nil {
		return nil, err
	}
	if err := usable(ctx, pool, slog.Default()); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// shop opens the catalog and closes it after use.
func (d database) shop(ctx context.Context, use func(*catalog.Store) error) error {
	pool, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	return use(catalog.New(pool))
}

type migrateCmd struct{ database }

// Run brings the schema up to date; nodes started at once wait for each other.
func (c migrateCmd) Run(ctx context.Context, s *streams) error {
	if _, err := poolConfig(c.Postgres); err != nil { // to the parser a variable that is empty is set
		return fmt.Errorf("%sPOSTGRES_URL %w", envPrefix, err)
	}
	if err := migrations.Up(ctx, c.Postgres); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out, "the schema is up to date")
	return err
}

type importCmd struct {
	Chart importChartCmd `cmd:"" help:"Import a chart (pretix seating plan or Seatcast JSON) and print its SHA-256."`
}

type importChartCmd struct {
	database
	File string `arg:"" help:"The chart's file."`
}

// Run imports the chart, or names everything wrong with it and imports nothing.
func (c importChartCmd) Run(ctx context.Context, s *streams) error {
	chart, err := readChart(s.err, c.File)
	if err != nil {
		return err
	}
	return c.shop(ctx, func(shop *catalog.Store) error {
		sha, err := shop.PutChart(ctx, chart)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.out, sha)
		return err
	})
}

// readChart reads a chart of any format we know; warnings go to w.
func readChart(w io.Writer, file string) (*seatmap.Chart, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	chart, warnings, err := seatmap.ImportChart(file, body)
	if err != nil {
		return nil, err
	}
	for _, f := range warnings {
		say(w, "warning: %v\n", f)
	}
	return chart, nil
}

type eventCmd struct {
	Create eventCreateCmd `cmd:"" help:"Create an event on a chart. It begins closed."`
	Open   eventOpenCmd   `cmd:"" help:"Open an event: bookings are taken from its opening time on."`
	Close  eventCloseCmd  `cmd:"" help:"Close an event: no new bookings; holds and payments go on."`
	Chart  eventChartCmd  `cmd:"" help:"Publish another chart for an event, also one that sells. A seat somebody has is not dropped."`
	List   eventListCmd   `cmd:"" help:"List events."`
}

type eventCreateCmd struct {
	database
	Chart    string        `required:"" placeholder:"FILE" help:"Chart file, or the SHA-256 of an imported chart."`
	ID       string        `name:"id" help:"Id in URLs (default: made from the letters a-z and digits of the name, or else event)."`
	Name     string        `required:"" help:"Name of the event."`
	Venue    string        `required:"" help:"Name of the venue."`
	Zone     string        `required:"" placeholder:"Europe/Paris" help:"IANA time zone of the venue."`
	Starts   string        `required:"" placeholder:"2027-06-01T20:00" help:"When it starts: wall clock of the venue, or RFC 3339."`
	Opens    string        `required:"" placeholder:"2027-03-01T10:00" help:"When the sale opens, written likewise."`
	Prices   string        `required:"" placeholder:"'Stalls A=8500,…'" help:"Price of every category of the chart, in minor units (cents; of JPY yen)."`
	Fees     string        `placeholder:"'Service=5%,…'" help:"What is asked beside the prices: Service=5% of the price of each ticket, Facility=250 for each ticket, Order=150/order for the order; in minor units (default: nothing)."`
	Currency string        `required:"" placeholder:"EUR" help:"ISO 4217 currency."`
	Mode     string        `default:"ordinary" enum:"hot,ordinary" help:"hot: the map is pushed; ordinary: it is polled."`
	GuardMap bool          `help:"Show the map only to who has a session or a ticket (default: to everybody)."`
	Orphans  string        `default:"warn" enum:"allow,warn,refuse" help:"Seats chosen by hand that leave a single one beside them: allow them, warn, or refuse them."`
	Hold     time.Duration `placeholder:"DURATION" help:"How long a hold lasts (default 8m)."`
	Pay      time.Duration `placeholder:"DURATION" help:"How long a payment may take (default 5m)."`
	Cap      time.Duration `placeholder:"DURATION" help:"When a hold ends whatever is extended (default 20m)."`
	PerOrder int           `name:"seats-per-booking" placeholder:"N" help:"Most seats and places in one booking (default 10)."`
	PerUser  int           `name:"seats-per-user" placeholder:"N" help:"Most seats one account may hold at a time, and tickets it may have in all (default 10)."`
	PerCard  int           `name:"seats-per-card" placeholder:"N" help:"Most tickets one card pays for, whatever the account (default: any number)."`
	Holds    int           `name:"holds-per-user" placeholder:"N" help:"Most bookings in which one account may hold seats at a time (default 4)."`
	Hourly   int           `name:"holds-per-hour" placeholder:"N" help:"Holds of one account in an hour before each must wait; one that is paid for does not count (default 20)."`
	CoolDown time.Duration `placeholder:"DURATION" help:"The first of these waits; each is twice the one before, up to twenty times the first (default 30s)."`
}

var shaPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Run creates the event and prints its id.
func (c eventCreateCmd) Run(ctx context.Context, s *streams) error {
	n, err := c.event()
	if err != nil {
		return err
	}
	return c.shop(ctx, func(shop *catalog.Store) error {
		if n.ChartSHA, err = c.chart(ctx, s.err, shop); err != nil {
			return err
		}
		e, err := shop.CreateEvent(ctx, n)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.out, e.ID)
		return err
	})
}

func (c eventCreateCmd) event() (n catalog.NewEvent, err error) {
	n = catalog.NewEvent{
		ID: c.ID, Name: c.Name, Venue: c.Venue, Zone: c.Zone, Mode: catalog.Mode(c.Mode), Guarded: c.GuardMap, Orphans: seatmap.OrphanRule(c.Orphans), Currency: c.Currency,
		Terms: seatmap.Terms{Hold: c.Hold, Pay: c.Pay, Cap: c.Cap, SeatsPerBooking: c.PerOrder, SeatsPerUser: c.PerUser, SeatsPerCard: c.PerCard,
			HoldsPerUser: c.Holds, HoldsPerHour: c.Hourly, CoolDown: c.CoolDown},
	}
	var faults seatmap.Faults
	if err := catalog.CheckZone(c.Zone); err != nil {
		faults.Add("zone", "%v", err)
	} else {
		n.Starts = when(&faults, "starts", c.Starts, c.Zone)
		n.Opens = when(&faults, "opens", c.Opens, c.Zone)
	}
	var prices seatmap.Faults
	if n.Prices, err = catalog.ParsePrices(c.Prices, c.Currency); errors.As(err, &prices) {
		faults = append(faults, prices...)
	}
	var fees seatmap.Faults
	if n.Fees, err = catalog.ParseFees(c.Fees, c.Currency); errors.As(err, &fees) {
		faults = append(faults, fees...)
	}
	return n, faults.Err()
}

func when(faults *seatmap.Faults, path, text, zone string) time.Time {
	t, err := catalog.ParseWhen(text, zone)
	if err != nil {
		faults.Add(path, "%v", err)
	}
	return t
}

// chart returns the SHA-256 of the chart meant, importing a file first.
func (c eventCreateCmd) chart(ctx context.Context, w io.Writer, shop *catalog.Store) (string, error) {
	if shaPattern.MatchString(c.Chart) {
		return c.Chart, nil
	}
	chart, err := readChart(w, c.Chart)
	if err != nil {
		return "", err
	}
	return shop.PutChart(ctx, chart)
}

type eventOpenCmd struct {
	database
	Event string `arg:"" help:"The event's id."`
}

// Run opens the event and says from when bookings are taken.
func (c eventOpenCmd) Run(ctx context.Context, s *streams) error {
	return c.shop(ctx, func(shop *catalog.Store) error {
		if err := shop.SetState(ctx, c.Event, catalog.Open); err != nil {
			return orNone(c.Event, err)
		}
		e, err := shop.Get(ctx, c.Event)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "%s is open: bookings from %s\n", e.ID, e.Opens.Format(time.RFC3339))
		return err
	})
}

// orNone says of an event that there is none where to look; other errors it returns
// as they are.
func orNone(event string, err error) error {
	if errors.Is(err, seatmap.ErrNoEvent) {
		return fmt.Errorf("there is no event %q: see seatcast event list", event)
	}
	return err
}

type eventCloseCmd struct {
	database
	Event string `arg:"" help:"The event's id."`
}

// Run closes the event and says so.
func (c eventCloseCmd) Run(ctx context.Context, s *streams) error {
	return c.shop(ctx, func(shop *catalog.Store) error {
		if err := shop.SetState(ctx, c.Event, catalog.Closed); err != nil {
			return orNone(c.Event, err)
		}
		_, err := fmt.Fprintf(s.out, "%s is closed: every node knows within two seconds, and takes no new bookings from then on\n", c.Event)
		return err
	})
}

type eventListCmd struct {
	database
	JSON bool `name:"json" help:"One JSON object a line."`
}

// Run lists the events, open ones first.
func (c eventListCmd) Run(ctx context.Context, s *streams) error {
	return c.shop(ctx, func(shop *catalog.Store) error {
		events, err := shop.List(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, events)
		}
		w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		say(w, "ID\tNAME\tVENUE\tSTARTS\tOPENS\tFROM\tMODE\tSTATE\tHOLDS\n") // errors show at Flush
		for _, e := range events {
			say(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.ID, e.Name, e.Venue,
				e.Starts.Format(time.RFC3339), e.Opens.Format(time.RFC3339), from(e), e.Mode, e.State, kept(e))
		}
		return w.Flush()
	})
}

// from is what the cheapest ticket of an event costs, all in.
func from(e catalog.Event) string {
	if len(e.Prices) == 0 {
		return "-"
	}
	lowest := slices.Min(slices.Collect(maps.Values(e.Prices)))
	return seatmap.Money{Amount: seatmap.AllIn(lowest, e.Fees), Currency: e.Currency}.String()
}

// kept says whether bookings of an event hold their seats.
func kept(e catalog.Event) string {
	if e.NoHolds {
		return "none"
	}
	return "kept"
}

func printJSON[T any](w io.Writer, all []T) error {
	lines := json.NewEncoder(w)
	for _, one := range all {
		if err := lines.Encode(one); err != nil {
			return err
		}
	}
	return nil
}

type tokenCmd struct {
	Key      string        `env:"SEATCAST_SESSION_KEY" required:"" placeholder:"KEY" help:"The local key the servers check with: hs256:… or ed25519:…"`
	Issuer   string        `env:"SEATCAST_SESSION_ISSUER" help:"The iss the servers ask for."`
	Audience string        `env:"SEATCAST_SESSION_AUDIENCE" help:"The aud the servers ask for."`
	Claims   string        `env:"SEATCAST_SESSION_CLAIMS" default:"user=sub" help:"The servers' claim map: which claim names the account, and which its roles."`
	User     string        `required:"" help:"The account."`
	Role     []string      `placeholder:"operator" help:"A role it has, such as operator, which opens /v1/admin, or scanner, which of that opens the scan of tickets; needs a claim map with roles=<claim>."`
	TTL      time.Duration `default:"1h" help:"How long it is good for."`
}

// Run prints a session token.
func (c tokenCmd) Run(ctx context.Context, s *streams) error {
	if c.TTL <= 0 {
		return fmt.Errorf("--ttl %v: a token lasts longer than nought", c.TTL)
	}
	key, err := web.ParseKey(c.Key)
	if err != nil {
		return err
	}
	sessions, err := web.OpenSessions(ctx, web.SessionOptions{Key: key, Issuer: c.Issuer, Audience: c.Audience, Claims: c.Claims})
	if err != nil {
		return err
	}
	token, err := sessions.Mint(c.User, c.TTL, c.Role...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, token)
	return err
}
