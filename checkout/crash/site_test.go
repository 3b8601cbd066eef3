package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/holds"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/web"
)

func TestMain(m *testing.M) {
	if os.Getenv(doomedEnv) != "" {
		if err := live(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	devtest.Main(m)
}

const secret = "whispered in the wings"

// stage is where a lot of sales happen: a database, a Redis, and an address for
// webhooks. It is told to a process that is going to die.
type stage struct {
	Postgres, Redis string
	Address         string // host:port
	Sales           []plan
	Attended        bool // nothing happens but by requests, webhooks and jobs
}

// plan is one sale.
type plan struct {
	Event, Booking string
	Behaviour      string
	Point          string // where it is killed; "": nowhere
}

func (p plan) String() string { return p.Behaviour + ", killed " + p.Point }

// site is a desk on a stage.
type site struct {
	pool    *pgxpool.Pool // that of the desk's provider, and of who looks at it
	holds   *holds.Store
	sandbox *sandbox.Sandbox
	desk    *checkout.Desk
	echo    *echo.Echo
	close   func()

	sandboxURL string // where the page of the bank is
}

// times of the sandbox: short enough for a thousand sales.
var times = sandbox.Options{Delay: 30 * time.Millisecond, Late: time.Hour, Authenticate: 1500 * time.Millisecond, Lapse: time.Hour,
	Down: 300 * time.Millisecond, Refund: 50 * time.Millisecond, Every: 25 * time.Millisecond}

// open opens a desk, behind a gate when there is one. It does not run.
func (st stage) open(g *gate, o checkout.Options) (*site, error) {
	ctx := context.Background()
	log := slog.New(slog.DiscardHandler)
	pool, err := pgxpool.New(ctx, st.Postgres)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(st.Postgres)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 20
	if g != nil {
		cfg.MaxConns = 70 // many wait for ever in the middle of a transaction
		cfg.ConnConfig.Tracer = g
	}
	desks, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	rdb := redis.NewClient(redisOptions(st.Redis))
	s := &site{pool: pool, close: func() {
		desks.Close()
		pool.Close()
		_ = rdb.Close()
	}}
	store, err := checkout.NewStore(desks)
	if err != nil {
		return nil, err
	}
	s.holds = holds.New(rdb, store, mute{}, log)
	how := times
	how.Books, how.Secret, how.Log = sandbox.NewBooks(pool), secret, log
	how.URL = "http://" + st.Address + "/v1/payments/webhook/" + sandbox.Name
	s.sandbox = sandbox.New(how)

	o.Store, o.Holds, o.Sales, o.Providers, o.Log = store, s.holds, bill{}, []checkout.Provider{s.sandbox}, log
	if g != nil {
		o.Holds, o.Providers = gatedHolds{s.holds, g}, []checkout.Provider{gatedProvider{s.sandbox, g}}
	}
	if s.desk, err = checkout.New(o); err != nil {
		return nil, err
	}
	s.echo = echo.New()
	s.echo.HTTPErrorHandler = web.ErrorHandler(log)
	v1 := s.echo.Group("/v1", func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if g != nil {
				return droppedWhenFrozen(g, web.As(shopper)(next), c)
			}
			return web.As(shopper)(next)(c)
		}
	})
	s.desk.Mount(v1)
	s.sandbox.Mount(v1)
	return s, nil
}

// droppedWhenFrozen ends the connection of a webhook about a sale that is
// stopped, as the death of the process does.
func droppedWhenFrozen(g *gate, next echo.HandlerFunc, c echo.Context) error {
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	c.Request().Body = io.NopCloser(strings.NewReader(string(body)))
	var about struct{ Payment string }
	_ = json.Unmarshal(body, &about) // a form of the bank's is about none
	s := g.of(about.Payment)
	if s == nil {
		return next(c)
	}
	if _, stopped := g.told(s); stopped {
		panic(http.ErrAbortHandler)
	}
	done := make(chan error, 1)
	go func() { done <- next(c) }()
	select {
	case err := <-done:
		return err
	case <-s.frozen:
		panic(http.ErrAbortHandler)
	}
}

func redisOptions(url string) *redis.Options {
	network, addr, _ := strings.Cut(url, ":")
	return &redis.Options{Network: network, Addr: addr}
}

// mute tells nobody of changes.
type mute struct{}

func (mute) Publish(context.Context, string, []byte) {}

const shopper = "ada"

// A house is of 6 seats at 1000 and a floor of 10 places at 500; each sale has
// one of its own.
const (
	houseSeats = 6
	houseFloor = 10
)

var (
	wanted = []int{1, 2} // and one place of the floor
	chart  = theChart()
)

func theChart() *seatmap.Chart {
	c := &seatmap.Chart{Name: "Opera", Seats: houseSeats, Categories: []seatmap.Category{{Name: "Stalls"}, {Name: "Floor"}},
		Areas: []seatmap.Area{{ID: "floor", Name: "Floor", Category: "Floor", Capacity: houseFloor}}}
	row := seatmap.Row{Label: "A"}
	for i := range c.Seats {
		row.Seats = append(row.Seats, seatmap.Seat{TicketID: fmt.Sprintf("A-%d", i), I: i, Label: fmt.Sprint(i), Category: "Stalls"})
	}
	c.Sections = []seatmap.Section{{ID: "stalls", Name: "Stalls", Rows: []seatmap.Row{row}}}
	return c
}

// bill is every event there is: its name says what its terms are.
type bill struct{}

// short begins the name of an event whose holds end soon, whatever is extended.
const short = "short-"

func (bill) Sale(_ context.Context, event string) (*seatmap.Sale, error) {
	s := &seatmap.Sale{Event: event, Chart: chart, Index: chart.Index(), Open: true, Currency: "EUR",
		Prices: map[string]int64{"Stalls": 1000, "Floor": 500},
		Terms: seatmap.Terms{Hold: 20 * time.Minute, Pay: 20 * time.Minute, Cap: 20 * time.Minute, Grace: time.Millisecond,
			SeatsPerBooking: 10, SeatsPerUser: 10}}
	if strings.HasPrefix(event, short) {
		s.Terms.Hold, s.Terms.Pay, s.Terms.Cap = shortHold, shortHold, shortHold
	}
	return s, nil
}

// shortHold is long enough for a process to begin and its shopper to pay.
const shortHold = 4 * time.Second

func (bill) Hot(context.Context) ([]string, error) { return nil, nil }

// seed puts events on sale.
func (st stage) seed(ctx context.Context, pool *pgxpool.Pool) error {
	body, sha, err := chart.Encode()
	if err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, `INSERT INTO charts (sha, name, seats, body) VALUES ($1, 'Opera', $2, $3)`, sha, houseSeats, body); err != nil {
		return err
	}
	var events []string
	for _, p := range st.Sales {
		events = append(events, p.Event)
	}
	for _, sql := range []string{
		`INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user)
			SELECT id, 'Tosca', 'Opera', 'UTC', now(), now(), (SELECT sha FROM charts), 'hot', 'open', 'EUR', 60000, 60000, 1200000, 1000, 10, 10 FROM unnest($1::text[]) id`,
		`INSERT INTO seats (event_id, i, ticket_id, category) SELECT id, i, 'A-' || i, 'Stalls' FROM unnest($1::text[]) id, generate_series(0, 5) i`,
		`INSERT INTO areas (event_id, area, category, capacity) SELECT id, 'floor', 'Floor', 10 FROM unnest($1::text[]) id`,
	} {
		if _, err := pool.Exec(ctx, sql, events); err != nil {
			return err
		}
	}
	return nil
}

// hold takes the seats of a sale, and makes one that it is going to lose
// unavailable behind its back.
func (s *site) hold(ctx context.Context, p plan) error {
	sale, err := bill{}.Sale(ctx, p.Event)
	if err != nil {
		return err
	}
	q, err := sale.Quote(wanted, map[string]int{"floor": 1})
	if err != nil {
		return err
	}
	quote, err := json.Marshal(q)
	if err != nil {
		return err
	}
	_, token, _ := seatmap.ParseBookingID(p.Booking)
	_, err = s.holds.Take(ctx, holds.TakeRequest{Event: p.Event, Token: token, User: shopper, Seats: wanted, Areas: map[string]int{"floor": 1},
		Quote: quote, Hash: "h", Terms: sale.Terms})
	if err != nil || !behaviours[p.Behaviour].loses {
		return err
	}
	_, err = s.pool.Exec(ctx, `UPDATE seats SET status = 'unavailable', off_sale = true, mirror_due = true WHERE event_id = $1 AND i = 2`, p.Event)
	return err
}
