package peers

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"seatcast/internal/devstack"
	"seatcast/loadtest/proc"
	"seatcast/seatmap"
)

// House is what a node needs around it: private stores, an event on sale and an
// api node. All of it stays on the cores we may use ourselves, unless the
// options say otherwise.
type House struct {
	Chart *seatmap.Chart

	o       HouseOptions
	program string
	dir     string
	home    *devstack.Home
	pg      *devstack.Postgres
	redis   *devstack.Redis
	nats    *devstack.NATS // nil when it is a process of its own
	natsd   *natsd
	env     []string
	api     *node
	token   string
	http    http.Client
}

// HouseOptions say how a house is made.
type HouseOptions struct {
	Program string // the seatcast binary; built from this module when empty

	Chart    *seatmap.Chart // nil: a stadium of 60,000 seats
	Hold     time.Duration  // how long a hold really lasts; 0: longer than any run, since its end is no change of a plan
	Pay      time.Duration  // how long a payment may take; 0: the product's default
	Cap      time.Duration  // when a hold ends whatever is extended; 0: with the hold
	Durable  bool           // Postgres confirms only what is on disk
	StoresOn proc.Cores     // where the stores run; nil: where we do
	RedisTCP bool           // Redis is asked by TCP, as on a machine of its own, and not by a unix socket
	NATSBy   string         // this program: NATS is a process of its own, which can be counted; empty: it is inside this one
	NoAPI    bool           // no api node is started
}

// hotHold outlasts any run.
const hotHold = 2 * time.Hour

// event creates one, hot, with holds of so long.
func (h *House) event(id, chart string, hold time.Duration) []string {
	var prices []string
	for _, c := range h.Chart.Categories {
		prices = append(prices, c.Name+"=1000")
	}
	limit := hold
	if h.o.Cap > 0 {
		limit = h.o.Cap
	}
	more := []string{}
	if h.o.Pay > 0 {
		more = append(more, "--pay", h.o.Pay.String())
	}
	return append([]string{"event", "create", "--id", id, "--name", "Load test", "--venue", h.Chart.Name, "--zone", "UTC", "--chart", chart,
		"--starts", "2099-01-01T20:00", "--opens", "2020-01-01T10:00", "--currency", "EUR", "--prices", strings.Join(prices, ","),
		"--mode", "hot", "--orphans", "allow", "--hold", hold.String(), "--cap", limit.String(),
		"--seats-per-booking", "1000", "--seats-per-user", "60000",
		"--holds-per-user", "60000", "--holds-per-hour", "2000000000"}, more...)
}

// openHouse starts the stores, puts the event on sale and starts the api node.
// Its files are in dir, which others may enter.
func openHouse(ctx context.Context, dir string, o HouseOptions) (_ *House, err error) {
	h := &House{Chart: o.Chart, o: o, dir: dir, program: o.Program}
	if h.Chart == nil {
		h.Chart = seatmap.Stadium()
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if h.program == "" {
		h.program = filepath.Join(dir, "seatcast")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", h.program, "seatcast/cmd/seatcast").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build seatcast: %w\n%s", err, out)
		}
	}
	if err := h.storesWhere(ctx); err != nil {
		return nil, err
	}
	if err := h.sell(ctx); err != nil || o.NoAPI {
		return h, err
	}
	if h.api, err = h.serve(ctx, "api", "api", dir, nil); err != nil {
		return nil, err
	}
	return h, nil
}

// storesWhere starts the stores where they are to run: what we start inherits
// the cores we keep to.
func (h *House) storesWhere(ctx context.Context) error {
	if h.o.StoresOn == nil {
		return h.stores(ctx)
	}
	ours, err := proc.Allowed()
	if err != nil {
		return err
	}
	if err := proc.Stay(h.o.StoresOn); err != nil {
		return err
	}
	return errors.Join(h.stores(ctx), proc.Stay(ours))
}

func (h *House) stores(ctx context.Context) (err error) {
	if h.home, err = devstack.Open(filepath.Join(h.dir, "stack")); err != nil {
		return err
	}
	if h.pg, err = h.home.Postgres(ctx, devstack.PostgresOptions{Fast: !h.o.Durable}); err != nil {
		return err
	}
	if h.redis, err = h.home.Redis(ctx, devstack.RedisOptions{TCP: h.o.RedisTCP}); err != nil {
		return err
	}
	nats, err := h.startNATS(ctx)
	if err != nil {
		return err
	}
	database, err := h.pg.Database(ctx, "seatcast")
	if err != nil {
		return err
	}
	key := base64.StdEncoding.EncodeToString([]byte(sessionKey))
	h.env = []string{
		"SEATCAST_POSTGRES_URL=" + database, "SEATCAST_REDIS_URL=" + h.RedisURL(), "SEATCAST_NATS_URL=" + nats,
		"SEATCAST_SERVER_KEY=" + key, "SEATCAST_SESSION_KEY=hs256:" + key, "SEATCAST_SANDBOX=true", "SEATCAST_SANDBOX_SECRET=" + key,
		"SEATCAST_LOG_LEVEL=warn",
	}
	return nil
}

// sell creates the event and opens it, by the commands an operator would use.
func (h *House) sell(ctx context.Context) error {
	body, _, err := h.Chart.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.chartFile(), body, 0o644); err != nil {
		return err
	}
	if _, err := h.command(ctx, "migrate"); err != nil {
		return err
	}
	if err := h.Open(ctx, Event); err != nil {
		return err
	}
	if h.o.Hold > 0 {
		if err := h.noGrace(ctx); err != nil {
			return err
		}
	}
	h.token, err = h.command(ctx, "token", "--user", "loadtest", "--ttl", "24h")
	return err
}

func (h *House) chartFile() string { return filepath.Join(h.dir, "chart.json") }

// Open puts an event on sale, beside those there are.
func (h *House) Open(ctx context.Context, event string) error {
	hold := h.o.Hold
	if hold == 0 {
		hold = hotHold
	}
	if _, err := h.command(ctx, h.event(event, h.chartFile(), hold)...); err != nil {
		return err
	}
	_, err := h.command(ctx, "event", "open", event)
	return err
}

// command returns what it prints, also when it fails.
func (h *House) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Env = append(os.Environ(), h.env...)
	var wrong strings.Builder
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return strings.TrimSpace(string(out)), fmt.Errorf("seatcast %s: %w\n%s", strings.Join(args[:1], " "), err, wrong.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// node is a `seatcast serve`.
type node struct {
	child *proc.Child
	addr  string
}

// serve starts a node and returns when it is ready.
func (h *House) serve(ctx context.Context, name, roles, dir string, on proc.Cores, more ...string) (*node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	n := &node{addr: fmt.Sprintf("127.0.0.1:%d", port)}
	env := append(append([]string{"SEATCAST_ADDR=" + n.addr, "SEATCAST_ROLES=" + roles}, h.env...), more...)
	if n.child, err = proc.Start(proc.Command{Name: name, Path: h.program, Args: []string{"serve"}, Env: env, Dir: dir, On: on}); err != nil {
		return nil, err
	}
	if err := answers(ctx, n.child, func(ctx context.Context) error { _, err := h.get(ctx, n.addr, "/readyz"); return err }); err != nil {
		return nil, err
	}
	return n, nil
}

// Close stops everything. When it returns no process is left.
func (h *House) Close() (err error) {
	h.http.CloseIdleConnections()
	if h.api != nil {
		err = h.api.child.Stop(patience)
	}
	if h.nats != nil {
		h.nats.Stop()
	}
	if h.natsd != nil {
		err = errors.Join(err, h.natsd.child.Stop(patience))
	}
	if h.redis != nil {
		err = errors.Join(err, h.redis.Stop())
	}
	if h.pg != nil {
		err = errors.Join(err, h.pg.Stop())
	}
	if h.home != nil {
		err = errors.Join(err, h.home.Close())
	}
	return err
}

// requestPatience bounds one request to a node.
const requestPatience = 10 * time.Second
