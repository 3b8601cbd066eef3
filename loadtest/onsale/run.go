package onsale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"seatcast/checkout/sandbox"
	"seatcast/loadtest/contention/front"
	"seatcast/loadtest/peers"
	"seatcast/loadtest/report"
)

// Times of the sale: short, so that what comes late comes within the run. The
// sandbox's latest verdict comes after the last moment of a hold.
const (
	hold    = 15 * time.Second
	limit   = 25 * time.Second
	within  = 32 * time.Second
	settles = 4 * time.Minute // after the last shopper has gone

	sessionsFor = 24 * time.Hour
)

// ErrRed says that something contradicts.
var ErrRed = errors.New("red: the sale does not add up")

// Run sells out, compares and prints. ErrRed when it does not add up.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	report.Say(o.Err, "starting private Redis, Postgres and NATS, and putting %d seats on sale\n", o.seats())
	in := peers.HouseOptions{Program: o.Program, Chart: front.Hall(o.seats()), Hold: hold, Pay: hold, Cap: limit, NoAPI: true}
	return peers.InHouse(ctx, in, func(h *peers.House, dir string) error {
		s := &sale{o: &o, house: h, dir: dir}
		return s.run(ctx)
	})
}

// sale is a run.
type sale struct {
	o     *Options
	house *peers.House
	dir   string
	shop  *shop
	fans  []*shopper

	mu    sync.Mutex
	nodes []*peers.API
	named int
	kills int
}

func (s *sale) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.stop()) }()
	n := 1
	if s.o.Kill > 0 {
		n = 2
	}
	for range n {
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := s.sell(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	report.Say(s.o.Err, "the last shopper has gone after %v; waiting until nothing is under way\n", took.Round(time.Second))
	late, err := s.settle(ctx)
	if err != nil {
		return err
	}
	r, err := s.compare(ctx)
	if err != nil {
		return err
	}
	if late > 0 {
		r.wrong("%d bookings, payments or mirrors are still under way after %v", late, settles)
	}
	r.Took = took.Seconds()
	if !s.shop.sold.IsZero() {
		r.LastSold = s.shop.sold.Sub(began).Seconds()
	}
	return s.finish(r)
}

// start adds a node.
func (s *sale) start(ctx context.Context) error {
	s.mu.Lock()
	s.named++
	name := "node" + strconv.Itoa(s.named)
	s.mu.Unlock()
	n, err := s.house.StartWhole(ctx, name, s.dir, nil, "SEATCAST_SANDBOX_WITHIN="+within.String())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = append(s.nodes, n)
	return nil
}

// where are the nodes that live.
func (s *sale) where() (addrs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

func (s *sale) stop() (err error) {
	for _, n := range s.nodes {
		err = errors.Join(err, n.Died(), n.Stop())
	}
	return err
}

// kill kills the node that is oldest, again and again, and starts another one.
func (s *sale) kill(ctx context.Context) error {
	for {
		if peers.Wait(ctx, s.o.Kill) != nil {
			return nil
		}
		s.mu.Lock()
		oldest := s.nodes[0]
		s.nodes = s.nodes[1:]
		s.kills++
		s.mu.Unlock()
		oldest.Kill()
		if err := s.start(ctx); err != nil {
			if ctx.Err() != nil { // the sale is over; one is left
				return nil
			}
			return err
		}
	}
}

// sell lets shoppers in until the last has gone.
func (s *sale) sell(ctx context.Context) error {
	s.shop = &shop{event: peers.Event, tickets: front.Tickets(s.house.Chart), fail: s.o.Fail, patient: limit + within,
		cards: map[string]int{}, story: map[string]int{},
		clients: &clients{where: s.where, steps: newSteps(), http: http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: s.o.Wide},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}}
	defer s.shop.http.CloseIdleConnections()
	killing, over := context.WithCancel(ctx)
	defer over()
	var killer errgroup.Group
	if s.o.Kill > 0 {
		killer.Go(func() error { return s.kill(killing) })
	}
	bar := report.NewBar(s.o.Err, int64(s.o.Users))
	bar.What("shoppers")
	crowd, inside := errgroup.WithContext(ctx)
	crowd.SetLimit(s.o.Wide)
	closes := time.Now().Add(s.o.For)
	for i := range s.o.Users {
		if time.Now().After(closes) || inside.Err() != nil {
			break
		}
		name := "shopper-" + strconv.Itoa(i)
		token, err := front.Mint(s.house.SessionKey(), name, sessionsFor)
		if err != nil {
			return err
		}
		p := &shopper{shop: s.shop, name: name, token: token}
		s.fans = append(s.fans, p)
		crowd.Go(func() error {
			if err := p.buys(inside); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			bar.Done(1)
			return nil
		})
	}
	err := crowd.Wait()
	bar.End()
	over()
	return errors.Join(err, killer.Wait())
}

// settle waits until nothing is under way, and returns how much still is when
// that took too long.
func (s *sale) settle(ctx context.Context) (left int, err error) {
	for began := time.Now(); ; {
		if left, err = s.house.UnderWay(ctx); err != nil || left == 0 || time.Since(began) > settles {
			return left, err
		}
		if err := peers.Wait(ctx, 500*time.Millisecond); err != nil {
			return left, err
		}
	}
}

// compare looks whether the books, the sandbox and the shoppers agree.
func (s *sale) compare(ctx context.Context) (r *Result, err error) {
	r = &Result{Wrong: []string{}, Users: len(s.fans), Seats: s.o.seats(), Kills: s.kills, Story: s.shop.story, Cards: s.shop.cards, Steps: s.shop.steps.all(), Again: s.shop.steps.agains}
	if err := s.books(ctx, r); err != nil {
		return nil, err
	}
	ledger, err := s.ledger(ctx)
	if err != nil {
		return nil, err
	}
	said, err := s.statements(ctx)
	if err != nil {
		return nil, err
	}
	r.judge(ledger, said)
	return r, nil
}

// books is the word of seatcast check. How servers of a trial are set is no
// matter of the sale.
func (s *sale) books(ctx context.Context, r *Result) error {
	text, err := s.house.Check(ctx)
	if err != nil {
		return err
	}
	var check struct {
		Events []struct {
			Seats, Tickets int
			Money          struct{ Amount int64 }
		}
		Findings []struct {
			Severity, Name, What string
			Count                int
			Rows                 []string
		}
	}
	if err := json.Unmarshal(text, &check); err != nil || len(check.Events) != 1 {
		return errors.Join(fmt.Errorf("seatcast check says %s", text), err)
	}
	for _, f := range check.Findings {
		if f.Severity != "note" && !settings[f.Name] {
			r.wrong("books: %s: %s (%d): %q", f.Name, f.What, f.Count, f.Rows)
		}
	}
	e := check.Events[0]
	r.Sold, r.Tickets, r.Money = e.Seats, e.Tickets, e.Money.Amount
	r.Left = r.Seats - r.Sold
	return nil
}

var settings = map[string]bool{"postgres_fsync": true, "postgres_full_page_writes": true}

// ledger is the sandbox's word, by attempt.
func (s *sale) ledger(ctx context.Context) (map[string]sandbox.Account, error) {
	database, err := s.house.PostgresURL(ctx, "seatcast")
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	all, err := sandbox.NewBooks(pool).Ledger(ctx)
	if err != nil {
		return nil, fmt.Errorf("the sandbox's ledger: %w", err)
	}
	by := make(map[string]sandbox.Account, len(all))
	for _, a := range all {
		by[a.Key] = a
	}
	return by, nil
}

// statements are what all shoppers are told in the end.
func (s *sale) statements(ctx context.Context) (said []booking, err error) {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(min(s.o.Wide, 50))
	for _, p := range s.fans {
		g.Go(func() error {
			all, err := p.statement(ctx)
			mu.Lock()
			defer mu.Unlock()
			said = append(said, all...)
			return err
		})
	}
	return said, g.Wait()
}

// finish prints and writes what came of it.
func (s *sale) finish(r *Result) error {
	r.Verdict = "green"
	if len(r.Wrong) > 0 {
		r.Verdict = "red"
	}
	r.print(s.o.Out)
	if s.o.JSON != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			err = os.WriteFile(s.o.JSON, append(text, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	if r.Verdict == "red" {
		return ErrRed
	}
	return nil
}
