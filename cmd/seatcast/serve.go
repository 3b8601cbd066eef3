package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"seatcast/catalog"
	"seatcast/checkout"
	"seatcast/checkout/outgoing"
	"seatcast/checkout/sandbox"
	"seatcast/checkout/stripe"
	"seatcast/checkout/tickets"
	"seatcast/holds"
	"seatcast/hub"
	"seatcast/internal/audit"
	"seatcast/internal/idempotency"
	"seatcast/internal/jobs"
	"seatcast/seatmap/live"
	"seatcast/waitingroom"
	"seatcast/web"
)

type serveCmd struct{}

// Help is printed below the flags.
func (serveCmd) Help() string { return "Environment:\n\n" + configHelp() }

// Run serves until ctx ends.
func (serveCmd) Run(ctx context.Context, s *streams) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	log, err := newLog(s.err, cfg.LogLevel)
	if err != nil {
		return err
	}
	slog.SetDefault(log)
	cfg.print(s.err)
	if names := unknownSettings(os.Environ()); len(names) > 0 {
		log.WarnContext(ctx, "settings that mean nothing: see seatcast serve --help", "names", names)
	}
	cfg.collects()
	return serve(ctx, cfg, log, seams{})
}

// seams are where parts meet: a test wraps what it wants to see fail, and the
// demo brings a listener and sessions of its own. The zero value changes
// nothing.
type seams struct {
	voice func(holds.Voice) holds.Voice
	holds func(checkout.Holds) checkout.Holds
	aside func(catalog.Holds) catalog.Holds
	ready func(addr string) // called once requests are answered
	ln    net.Listener      // listens already, in place of the configured address
	demo  bool              // offer demo sessions
}

// serve opens, builds, listens, waits and drains, in that order. It returns
// nil when ctx ended and everything stopped in time.
func serve(ctx context.Context, cfg Config, log *slog.Logger, s seams) (err error) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := live.NewMetrics(reg)
	st, err := openStores(ctx, cfg, metrics, log)
	if err != nil {
		return err
	}
	defer st.close()
	sessions, err := openSessions(ctx, cfg, reg, log)
	if err != nil {
		return err
	}
	ln := s.ln
	if ln == nil {
		if ln, err = net.Listen("tcp", cfg.Addr); err != nil {
			return fmt.Errorf("%sADDR: %w", envPrefix, err)
		}
	}
	defer func() { _ = ln.Close() }() // closed already when the server ran
	guarded, err := web.Guard(ln, log, reg)
	if err != nil {
		return err
	}
	b := builder{cfg: cfg, log: log, st: st, seams: s, reg: reg, metrics: metrics, addr: ln.Addr()}
	a, err := b.build(sessions)
	if err != nil {
		return err
	}
	a.ready.warn(ctx, log)
	log.Info("serving", "addr", ln.Addr().String(), "roles", cfg.Roles)
	return a.run(ctx, guarded, s.ready)
}

func openSessions(ctx context.Context, cfg Config, reg *prometheus.Registry, log *slog.Logger) (*web.Sessions, error) {
	o := web.SessionOptions{JWKSURL: cfg.JWKSURL, Issuer: cfg.Issuer, Audience: cfg.Audience, Claims: cfg.Claims, Log: log, Registerer: reg}
	if cfg.SessionKey != "" {
		key, err := web.ParseKey(cfg.SessionKey)
		if err != nil {
			return nil, fmt.Errorf("%sSESSION_KEY: %w", envPrefix, err)
		}
		o.Key = key
	}
	return web.OpenSessions(ctx, o)
}

// app is one serving process, wired and not yet running.
type app struct {
	log     *slog.Logger
	echo    *echo.Echo
	hub     *hub.Hub // nil when this process is no hub
	drain   time.Duration
	ready   *readiness
	runners []func(context.Context) error
	callers []func(context.Context) error // the same, that call this process over HTTP: they end before it listens no more
}

// builder hands every part what it needs of the others: the only place where
// they meet.
type builder struct {
	cfg     Config
	log     *slog.Logger
	st      *stores
	seams   seams
	reg     *prometheus.Registry
	metrics *live.Metrics
	addr    net.Addr // where this process answers
}

func (b *builder) build(sessions *web.Sessions) (*app, error) {
	e, err := b.echo()
	if err != nil {
		return nil, err
	}
	a := &app{log: b.log, drain: b.cfg.Drain, echo: e, ready: newReadiness(b.st, sessions)}
	a.ready.peers = newPeers(b.st, b.log)
	b.reg.MustRegister(a.ready.peers.seen())
	a.runners = append(a.runners, a.ready.peers.Run)
	v1, admin := b.groups(a, sessions)
	shop := catalog.New(b.st.pool)
	ledger, err := checkout.NewStore(b.st.pool)
	if err != nil {
		return nil, err
	}
	said := live.NewVoice(b.st.say, b.metrics, b.log)
	var voice holds.Voice = said
	if b.seams.voice != nil {
		voice = b.seams.voice(voice)
	}
	store := holds.New(b.st.rdb, ledger, voice, b.log)
	b.reg.MustRegister(store)
	watch := checkout.NewOutage(checkout.OutageOptions{Store: ledger, Holds: store, Log: b.log})
	a.ready.outage = watch
	books := checkout.NewBooks(ledger)
	rooms, err := b.rooms(shop, store)
	if err != nil {
		return nil, err
	}

	a.echo.Use(measured(rooms)) // of the group it would answer a wrong method with 404
	b.reg.MustRegister(rooms)
	if b.cfg.has("api") || b.cfg.has("hub") {
		a.runners = append(a.runners, holds.Lapser{Store: store, Sales: shop, Log: b.log}.Run)
		shop.Mount(v1)
		feed := live.NewFeed(live.FeedOptions{
			Maps: live.NewMaps(b.st.rdb, store), Sales: shop, Ear: live.NewEar(b.st.hear, b.metrics), Metrics: b.metrics, Log: b.log,
		})
		said.Near(feed)
		if b.cfg.has("hub") {
			b.buildHub(a, v1, feed, books, rooms)
		} else {
			a.runners = append(a.runners, func(ctx context.Context) error { return feed.Run(ctx, nil) })
		}
		if b.cfg.has("api") {
			b.reg.MustRegister(watch)
			a.runners = append(a.runners, watch.Run)
			b.buildBookings(a, v1, admin, books, shop, store, feed, rooms)
		}
	}
	b.buildRooms(a, v1, admin, rooms)
	b.buildPublisher(a, admin, shop, store)
	b.buildSeatLog(a, admin, shop, store)
	if err := b.buildCheckout(a, v1, admin, ledger, shop, store, rooms); err != nil {
		return nil, err
	}
	if b.seams.demo {
		web.MountDemo(v1, sessions)
	}
	web.MountPages(a.echo)
	web.Health{Checks: a.ready.checks(), Metrics: b.reg}.Mount(a.echo)
	return a, nil
}

// groups are where calls are mounted: everybody's, and those of operators, which
// are written down and answered once for each Idempotency-Key.
func (b *builder) groups(a *app, sessions *web.Sessions) (v1, admin *echo.Group) {
	trail := audit.New(b.st.pool)
	b.reg.MustRegister(trail)
	keys := idempotency.New(idempotency.Options{Pool: b.st.pool, Log: b.log})
	if b.cfg.has("worker") {
		a.runners = append(a.runners, keys.Tidy)
	}
	v1, admin = sessions.Groups(a.echo, trail, keys)
	if b.cfg.has("api") {
		a.runners = append(a.runners, keys.Run)
		trail.MountAdmin(admin)
	}
	return v1, admin
}

// echo is what answers. Only an operator sends a chart.
func (b *builder) echo() (*echo.Echo, error) {
	proxies, err := b.cfg.proxies()
	if err != nil {
		return nil, fmt.Errorf("%sTRUSTED_PROXIES: %w", envPrefix, err)
	}
	o := web.Options{Log: b.log, Origins: b.cfg.Origins, Bodies: map[string]int64{"/v1/admin" + catalog.ChartRoute: catalog.MaxChart}, Proxies: proxies}
	if b.cfg.StripeSecretKey != "" && b.cfg.StripePublishableKey != "" {
		o.Sources = stripe.Policy
	}
	return web.New(o), nil
}

// buildPublisher joins who puts a chart in force to who holds its seats.
func (b *builder) buildPublisher(a *app, admin *echo.Group, shop *catalog.Store, gate catalog.Holds) {
	if b.seams.aside != nil {
		gate = b.seams.aside(gate)
	}
	charts := catalog.NewPublisher(shop, gate, b.log)
	if b.cfg.has("api") {
		charts.MountAdmin(admin)
	}
	if b.cfg.has("worker") {
		a.runners = append(a.runners, charts.Run)
	}
}

// buildBookings lets shoppers hold seats, behind what the feed has heard of them,
// or book without holding while Redis is away; and operators for them.
func (b *builder) buildBookings(a *app, v1, admin *echo.Group, books *checkout.Books, shop *catalog.Store, store *holds.Store, feed *live.Feed, rooms *waitingroom.Rooms) {
	api := holds.NewAPI(store, shop, []byte(b.cfg.ServerKey)).With(feed, books).Without(books).Admitting(waitingroom.NewPasses(rooms))
	if b.cfg.Gate == "on" {
		gate := holds.NewGate(holds.GateOptions{Store: store, Heard: feed, Log: b.log})
		b.reg.MustRegister(gate)
		a.runners = append(a.runners, gate.Run)
		api.Behind(gate)
	}
	api.Mount(v1)
	holds.NewOffice(api, books).MountAdmin(admin)
}

// buildHub joins the feed to those who watch: it orders and merges, the hub
// writes.
func (b *builder) buildHub(a *app, v1 *echo.Group, feed *live.Feed, books *checkout.Books, rooms *waitingroom.Rooms) {
	a.hub = hub.New(hub.Options{
		Source: topics{feed, rooms}, Origins: b.cfg.Origins, Log: b.log, Registerer: b.reg,
		Limits: b.cfg.hubLimits(a.echo.IPExtractor, b.log), MaxAge: b.cfg.HubMaxAge, Portable: b.cfg.HubEngine == "portable",
	})
	a.runners = append(a.runners, func(ctx context.Context) error { return feed.Run(ctx, a.hub) })
	tickets := live.NewTickets(live.TicketOptions{Redis: b.st.rdb, Key: []byte(b.cfg.ServerKey)})
	live.NewAPI(feed, a.hub, tickets).Without(books).Admitting(waitingroom.NewPasses(rooms)).
		Beside(waitingroom.Topic(""), waitingroom.NewAPI(rooms).Allow).Mount(v1)
}

// buildCheckout joins the arbiter to the gate and to who moves the money.
func (b *builder) buildCheckout(a *app, v1, admin *echo.Group, ledger *checkout.Store, shop *catalog.Store, gate checkout.Holds, rooms *waitingroom.Rooms) error {
	if !b.cfg.has("api") && !b.cfg.has("worker") {
		return nil
	}
	if b.seams.holds != nil {
		gate = b.seams.holds(gate)
	}
	providers, err := b.providers(a, v1)
	if err != nil {
		return err
	}
	keys, err := tickets.ParseKeys(b.cfg.TicketKey, b.cfg.ServerKey)
	if err != nil {
		return fmt.Errorf("%sTICKET_KEY: %w", envPrefix, err)
	}
	queue, err := jobs.New(b.st.pool, checkout.JobKinds, b.log)
	if err != nil {
		return err
	}
	hooks, err := outgoing.New(outgoing.Options{Pool: b.st.pool, ServerKey: []byte(b.cfg.ServerKey), Log: b.log,
		HTTP: b.cfg.WebhooksHTTP, Private: b.cfg.WebhooksPrivate, Keep: b.cfg.WebhooksKeep})
	if err != nil {
		return err
	}
	desk, err := checkout.New(checkout.Options{Store: ledger, Holds: gate, Sales: shop, Providers: providers, Signer: keys, Outgoing: hooks, Line: rooms, Log: b.log})
	if err != nil {
		return err
	}
	if b.cfg.has("api") {
		desk.Mount(v1)
		desk.MountAdmin(admin)
		door := tickets.NewDoor(b.st.pool, keys)
		door.Mount(v1)
		door.MountAdmin(admin)
		hooks.MountAdmin(admin)
		queue.MountAdmin(admin)
	}
	if b.cfg.has("worker") {
		b.reg.MustRegister(desk, hooks, queue)
		a.runners = append(a.runners, desk.Run, hooks.Run, queue.Run)
	}
	return nil
}

// providers are those that move money. The first takes new payments, and is
// said: that is Stripe when there is one, for the sandbox gives tickets away.
func (b *builder) providers(a *app, v1 *echo.Group) (all []checkout.Provider, err error) {
	if b.cfg.StripeSecretKey != "" {
		s, err := stripe.New(b.cfg.stripe(b.log))
		if err != nil {
			return nil, err
		}
		offered, atOnce, left := s.Methods()
		b.log.Info("Stripe takes new payments", "testing", strings.Contains(b.cfg.StripeSecretKey, "k_test_"), "methods", offered)
		if len(atOnce) > 0 {
			b.log.Warn("some methods can only capture at once: when the seats are gone their money is taken first and then refunded", "methods", atOnce)
		}
		if len(left) > 0 {
			b.log.Warn("some methods can only capture at once and are not offered", "methods", left)
		}
		all = append(all, s)
	}
	if b.cfg.Sandbox {
		s := sandbox.New(sandbox.Options{Books: sandbox.NewBooks(b.st.pool), URL: b.webhookURL(), Secret: b.cfg.SandboxSecret, Within: b.cfg.SandboxWithin, Log: b.log})
		if len(all) > 0 {
			b.log.Info("the sandbox takes no new payments: it finishes those it has")
		} else {
			b.log.Info("the sandbox takes new payments: no money moves")
		}
		if b.cfg.has("worker") {
			a.callers = append(a.callers, s.Run)
		}
		if b.cfg.has("api") {
			s.Mount(v1)
		}
		all = append(all, s)
	}
	return all, nil
}

// webhookURL is where the sandbox sends its webhooks: this process, unless
// told otherwise. A node's address alone is enough.
func (b *builder) webhookURL() string {
	to := cmp.Or(b.cfg.SandboxWebhookURL, "http://"+browsable(b.addr.String()))
	if u, err := url.Parse(to); err == nil && strings.Trim(u.Path, "/") == "" {
		return u.JoinPath("/v1/payments/webhook", sandbox.Name).String()
	}
	return to
}

// run answers requests on ln until ctx ends, then stops in the one order that
// loses nothing: unready, no new watchers, those there are sent elsewhere while
// frames still flow, those who call this process, no new requests, runners, and last, by the caller, the
// stores.
func (a *app) run(ctx context.Context, ln net.Listener, ready func(string)) error {
	a.echo.Server.Handler = a.echo
	serving, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	g, work := errgroup.WithContext(serving)
	for _, r := range a.runners {
		g.Go(func() error { return r(work) })
	}
	calling, stopCalls := context.WithCancel(work)
	defer stopCalls()
	for _, r := range a.callers {
		g.Go(func() error { return r(calling) })
	}
	if a.hub != nil { // watchers are sent elsewhere also when a runner fails
		g.Go(func() error { return a.hub.Run(serving) })
	}
	g.Go(func() error {
		if err := a.echo.Server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	if ready != nil {
		ready(ln.Addr().String())
	}
	select {
	case <-ctx.Done():
	case <-work.Done(): // a runner failed: stop as if asked to
	}
	err := a.stop(ctx, stopCalls)
	stopWork()
	return errors.Join(g.Wait(), err)
}

// finishWithin is how long requests under way may still take once the watchers
// have left: longer than the five seconds after which net/http closes a
// connection that never carried one.
const finishWithin = 10 * time.Second

// noticeWithin is how long a process is unready, at least, before it listens no
// more: a balancer that asks every second notices. Watchers who are few have
// left long before.
const noticeWithin = 2 * time.Second

func (a *app) stop(ctx context.Context, stopCalls func()) error {
	ctx = context.WithoutCancel(ctx)
	a.ready.leave()
	noticed := time.NewTimer(min(noticeWithin, a.drain))
	defer noticed.Stop()
	a.log.Info("stopping")
	a.drainWatchers(ctx)
	<-noticed.C
	stopCalls()
	// A time of its own: one watcher who does not leave costs no payment its answer.
	ctx, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	if err := a.echo.Server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop: %w", err), a.echo.Server.Close())
	}
	return nil
}

func (a *app) drainWatchers(ctx context.Context) {
	if a.hub == nil {
		return
	}
	a.log.Info("draining watchers", "for", a.drain)
	ctx, cancel := context.WithTimeout(ctx, a.drain)
	defer cancel()
	if err := a.hub.Drain(ctx, a.drain*4/5); err != nil {
		a.log.Warn("watchers were cut off", "err", err)
	}
}
