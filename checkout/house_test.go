package checkout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/web"
)

func TestMain(m *testing.M) { devtest.Main(m) }

const (
	event  = "opera"
	secret = "whispered in the wings"
)

// house is an event of 40 seats at 1000 and a floor of 10 places at 500, with
// a desk whose webhooks come over HTTP.
type house struct {
	t       *testing.T
	pool    *pgxpool.Pool
	store   *checkout.Store
	holds   *fakeHolds
	sale    *seatmap.Sale
	sandbox *sandbox.Sandbox
	desk    *checkout.Desk
	url     string
}

// setting changes the house before it opens.
type setting func(*house, *checkout.Options, *sandbox.Options)

func setup(t *testing.T, settings ...setting) *house {
	t.Helper()
	h := &house{t: t, pool: devtest.Postgres(t), sale: theSale()}
	h.holds = newFakeHolds()
	var err error
	h.store, err = checkout.NewStore(h.pool)
	must(t, err)
	h.seed()

	e := echo.New()
	e.HTTPErrorHandler = web.ErrorHandler(slog.New(slog.DiscardHandler))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	h.url = server.URL + "/v1"

	s := sandbox.Options{Books: sandbox.NewBooks(h.pool), URL: h.url + "/payments/webhook/sandbox", Secret: secret, Log: quiet(t),
		Delay: 50 * time.Millisecond, Late: time.Hour, Every: 10 * time.Millisecond}
	o := checkout.Options{Store: h.store, Holds: h.holds, Sales: sales{h.sale}, Log: quiet(t),
		AskAfter: time.Hour, ExtendAhead: 10 * time.Millisecond, Every: 20 * time.Millisecond}
	for _, set := range settings {
		set(h, &o, &s)
	}
	h.sandbox = sandbox.New(s)
	if o.Providers == nil {
		o.Providers = []checkout.Provider{h.sandbox}
	}
	h.desk, err = checkout.New(o)
	must(t, err)
	h.desk.Mount(e.Group("/v1", func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return web.As(c.Request().Header.Get("X-User"))(next)(c) }
	}))
	h.desk.MountAdmin(e.Group("/v1/admin", web.AsOperator("boss")))
	return h
}

func quiet(t *testing.T) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	return slog.New(slog.DiscardHandler)
}

// run starts runners that end with the test.
func (h *house) run(runners ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range runners {
		g.Go(func() error { return r(ctx) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := g.Wait(); err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

func theSale() *seatmap.Sale {
	c := &seatmap.Chart{Name: "Opera", Seats: 40, Categories: []seatmap.Category{{Name: "Stalls"}, {Name: "Floor"}},
		Areas: []seatmap.Area{{ID: "floor", Name: "Floor", Category: "Floor", Capacity: 10}}}
	row := seatmap.Row{Label: "A"}
	for i := range c.Seats {
		row.Seats = append(row.Seats, seatmap.Seat{TicketID: fmt.Sprintf("A-%d", i), I: i, Label: fmt.Sprint(i), Category: "Stalls"})
	}
	c.Sections = []seatmap.Section{{ID: "stalls", Name: "Stalls", Rows: []seatmap.Row{row}}}
	return &seatmap.Sale{Event: event, Chart: c, Index: c.Index(), Open: true, Currency: "EUR",
		Prices: map[string]int64{"Stalls": 1000, "Floor": 500},
		Terms:  seatmap.Terms{Hold: time.Minute, Pay: time.Minute, Cap: 20 * time.Minute, Grace: time.Second, SeatsPerBooking: 10, SeatsPerUser: 10}}
}

func (h *house) seed() {
	body, sha, err := h.sale.Chart.Encode()
	must(h.t, err)
	h.sale.ChartSHA = sha
	h.exec(`INSERT INTO charts (sha, name, seats, body) VALUES ($1, 'Opera', 40, $2)`, sha, body)
	h.exec(`INSERT INTO events (id, name, venue, zone, starts_at, opens_at, chart_sha, mode, state, currency, hold_ms, pay_ms, cap_ms, grace_ms, seats_per_booking, seats_per_user)
		VALUES ($1, 'Tosca', 'Opera', 'Europe/Paris', now(), now(), $2, 'hot', 'open', 'EUR', 60000, 60000, 1200000, 1000, 10, 10)`, event, sha)
	h.exec(`INSERT INTO seats (event_id, i, ticket_id, category) SELECT $1, i, 'A-' || i, 'Stalls' FROM generate_series(0, 39) i`, event)
	h.exec(`INSERT INTO areas (event_id, area, category, capacity) VALUES ($1, 'floor', 'Floor', 10)`, event)
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	_, err := h.pool.Exec(h.t.Context(), sql, args...)
	must(h.t, err)
}

// ask reads one value.
func ask[T any](h *house, sql string, args ...any) T {
	h.t.Helper()
	var v T
	must(h.t, h.pool.QueryRow(h.t.Context(), sql, args...).Scan(&v))
	return v
}

// hold puts a basket into the fake gate, which lets several hold one seat: as
// if the hold had been lost in between.
func (h *house) hold(user string, seats []int, floor int) (id string) {
	h.t.Helper()
	return h.holdUntil(user, seats, floor, time.Minute, 20*time.Minute)
}

func (h *house) holdUntil(user string, seats []int, floor int, until, limit time.Duration) (id string) {
	h.t.Helper()
	b, err := basketOf(h.sale, fmt.Sprintf("%032d", h.holds.next()), user, seats, floor)
	must(h.t, err)
	b.Until, b.Cap = b.First.Add(until), b.First.Add(limit)
	h.holds.put(b)
	return seatmap.BookingID(event, b.Token)
}

// basketOf is a basket that lasts a minute, and twenty at most.
func basketOf(sale *seatmap.Sale, token, user string, seats []int, floor int) (b seatmap.Basket, err error) {
	areas := map[string]int{}
	if floor > 0 {
		areas["floor"] = floor
	}
	q, err := sale.Quote(seats, areas)
	if err != nil {
		return b, err
	}
	quote, err := json.Marshal(q)
	now := time.Now()
	return seatmap.Basket{Event: sale.Event, Token: token, User: user, Seats: seats, Areas: areas, Quote: quote, Hash: "h",
		First: now, Until: now.Add(time.Minute), Cap: now.Add(20 * time.Minute), State: seatmap.BasketHeld}, err
}

// late moves the end of a booking and of its hold, cap and all, into the past.
func (h *house) late(id string) {
	h.t.Helper()
	h.exec(`UPDATE bookings SET deadline = now() - interval '1 second', cap_at = now() - interval '1 second' WHERE id = $1`, id)
	_, token, _ := seatmap.ParseBookingID(id)
	b, err := h.holds.Basket(h.t.Context(), event, token)
	must(h.t, err)
	b.Until, b.Cap = time.Now().Add(-time.Second), time.Now().Add(-time.Second)
	h.holds.put(b)
}

// reply is an answer of the API.
type reply struct {
	Status  int
	Code    string
	State   string
	Seats   json.RawMessage
	Reason  string
	Attempt struct{ ID, State, Reason string }
	Tickets []checkout.Ticket
	Action  checkout.Action
	Detail  string
}

func (h *house) call(method, path, user string, body any, header ...string) reply {
	h.t.Helper()
	var r reply
	must(h.t, h.try(method, path, user, body, &r, header...))
	return r
}

func (h *house) try(method, path, user string, body any, r *reply, header ...string) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-User", user)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if len(answer) > 0 {
		// status is a number in a problem and absent elsewhere
		if err := json.Unmarshal(answer, r); err != nil {
			return fmt.Errorf("%s %s: %w in %s", method, path, err, answer)
		}
	}
	r.Status = resp.StatusCode
	return nil
}

func (h *house) pay(id, user, card string) reply {
	h.t.Helper()
	return h.call(http.MethodPost, "/bookings/"+id+"/payment", user, map[string]string{"paymentMethod": card})
}

func (h *house) get(id, user string) reply {
	h.t.Helper()
	return h.call(http.MethodGet, "/bookings/"+id, user, nil)
}

// notify posts a signed webhook, as a provider does.
func (h *house) notify(body string) int {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+"/payments/webhook/sandbox", bytes.NewReader([]byte(body)))
	must(h.t, err)
	req.Header.Set(sandbox.SignatureHeader, sandbox.Sign([]byte(secret), []byte(body), time.Now()))
	resp, err := http.DefaultClient.Do(req)
	must(h.t, err)
	must(h.t, resp.Body.Close())
	return resp.StatusCode
}

// becomes waits until the state of a booking is so.
func (h *house) becomes(id, state string) {
	h.t.Helper()
	h.eventually(func() (string, bool) {
		got := ask[string](h, `SELECT state FROM bookings WHERE id = $1`, id)
		return "booking is " + got + ", not " + state, got == state
	})
}

// quietens waits until no attempt is open, whatever became of it.
func (h *house) quietens() {
	h.t.Helper()
	h.eventually(func() (string, bool) {
		n := ask[int](h, `SELECT count(*) FROM attempts WHERE state IN ('created', 'authorized', 'capturing', 'refunding')`)
		return fmt.Sprintf("%d attempts open", n), n == 0
	})
}

func (h *house) eventually(f func() (string, bool)) {
	h.t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		what, ok := f()
		if ok {
			return
		}
		if devtest.Late(begun, 20*time.Second) {
			h.t.Fatal("never happened: ", what)
		}
	}
}

// ledger counts the sandbox's payments by state: what happened to the money.
func (h *house) ledger() map[string]int {
	h.t.Helper()
	rows, err := h.pool.Query(h.t.Context(), `SELECT state, count(*) FROM sandbox_payments GROUP BY state`)
	must(h.t, err)
	defer rows.Close()
	m := map[string]int{}
	for rows.Next() {
		var state string
		var n int
		must(h.t, rows.Scan(&state, &n))
		m[state] = n
	}
	must(h.t, rows.Err())
	return m
}

// sound re-derives the invariants, in the books and against the provider's.
func (h *house) sound() checkout.Balance {
	h.t.Helper()
	report, err := h.store.Check(h.t.Context(), event)
	must(h.t, err)
	for _, fault := range report.Faults {
		h.t.Error("fault: ", fault)
	}
	r := report.Balances[0]
	if r.Tickets != r.Seats+r.Places {
		h.t.Errorf("%d seats and %d places sold, %d live tickets", r.Seats, r.Places, r.Tickets)
	}
	charged := ask[int64](h, `SELECT coalesce(sum(amount - refunded), 0)::bigint FROM sandbox_payments WHERE state = 'captured'`)
	if charged != r.Money.Amount {
		h.t.Errorf("the provider took %d, the books say %v", charged, r.Money)
	}
	return r
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

type sales struct{ sale *seatmap.Sale }

func (s sales) Sale(_ context.Context, id string) (*seatmap.Sale, error) {
	if id != s.sale.Event {
		return nil, seatmap.ErrNoEvent
	}
	return s.sale, nil
}

func (s sales) Hot(context.Context) ([]string, error) { return []string{s.sale.Event}, nil }

// fakeHolds is the gate as checkout sees it. It lets several baskets hold one
// seat, which the real one does only after it has lost a hold.
type fakeHolds struct {
	spend func(ctx context.Context, m seatmap.Marks) error // asked first, when set

	mu       sync.Mutex
	restore  func() error // likewise
	away     error        // what Holding and SetAside answer, when set
	serial   int
	baskets  map[string]seatmap.Basket
	sold     map[int]bool
	closed   map[int]bool
	aside    map[string][]int
	left     map[string]int
	bought   map[string]int // by account, as told last
	released []string
	extended int
}

func newFakeHolds() *fakeHolds {
	return &fakeHolds{baskets: map[string]seatmap.Basket{}, sold: map[int]bool{}, closed: map[int]bool{}, aside: map[string][]int{}, left: map[string]int{}, bought: map[string]int{}}
}

func (f *fakeHolds) next() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial++
	return f.serial
}

func (f *fakeHolds) put(b seatmap.Basket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.baskets[b.Token] = b
}

func (f *fakeHolds) Basket(_ context.Context, _, token string) (seatmap.Basket, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.baskets[token]
	if !ok {
		return b, seatmap.ErrNoBasket
	}
	if b.State == seatmap.BasketHeld && !b.Until.After(time.Now()) {
		b.State = seatmap.BasketExpired
	}
	return b, nil
}

func (f *fakeHolds) Extend(ctx context.Context, event, token, user string, by, grace time.Duration) (seatmap.Basket, error) {
	b, err := f.Basket(ctx, event, token)
	switch {
	case err != nil:
		return b, err
	case b.User != user:
		return b, seatmap.ErrNotYours
	case b.State != seatmap.BasketHeld:
		return b, seatmap.ErrHoldExpired
	}
	if until := time.Now().Add(by + grace); until.After(b.Until) {
		b.Until = until
	}
	if b.Until.After(b.Cap) {
		b.Until = b.Cap
	}
	f.put(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.extended++
	return b, nil
}

func (f *fakeHolds) Release(_ context.Context, _, token, user string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.baskets[token]
	switch {
	case !ok:
		return seatmap.ErrNoBasket
	case b.User != user:
		return seatmap.ErrNotYours
	}
	b.State = seatmap.BasketReleased
	f.baskets[token] = b
	f.released = append(f.released, token)
	return nil
}

func (f *fakeHolds) Spend(ctx context.Context, _ string, m seatmap.Marks) error {
	if f.spend != nil {
		if err := f.spend(ctx, m); err != nil {
			return err
		}
	}
	f.mark(m, true)
	return nil
}

func (f *fakeHolds) Restore(_ context.Context, _ string, m seatmap.Marks) error {
	f.mu.Lock()
	restore := f.restore
	f.mu.Unlock()
	if restore != nil {
		if err := restore(); err != nil {
			return err
		}
	}
	f.mark(m, false)
	return nil
}

func (f *fakeHolds) mark(m seatmap.Marks, sold bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.bought, m.Bought)
	for _, i := range m.Seats {
		f.sold[i] = sold
		delete(f.closed, i)
	}
	for _, i := range m.Closed {
		f.closed[i] = sold
	}
	for area, n := range m.Areas {
		f.left[area] = n
	}
	for _, token := range m.Baskets {
		b := f.baskets[token]
		b.State = seatmap.BasketSold
		f.baskets[token] = b
	}
}

func (f *fakeHolds) Shown(context.Context, string) (seatmap.Map, map[string]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, left := seatmap.NewMap(40), map[string]int{"floor": 10}
	for seat, sold := range f.sold {
		if sold {
			m.Set(seat, seatmap.Sold)
		}
	}
	for seat, closed := range f.closed {
		if closed {
			m.Set(seat, seatmap.Unavailable)
		}
	}
	maps.Copy(left, f.left)
	return m, left, nil
}

func (f *fakeHolds) Holding(_ context.Context, _ string, seats []int) (map[int]seatmap.Basket, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		return nil, f.away
	}
	holding := map[int]seatmap.Basket{}
	for _, b := range f.baskets {
		for _, i := range b.Seats {
			if b.State == seatmap.BasketHeld && b.Until.After(time.Now()) && slices.Contains(seats, i) && !f.sold[i] && !f.closed[i] {
				holding[i] = b
			}
		}
	}
	return holding, nil
}

func (f *fakeHolds) SetAside(ctx context.Context, event string, seats []int, _ time.Duration) (baskets []string, gone []int, err error) {
	holding, err := f.Holding(ctx, event, seats)
	if err != nil || len(holding) > 0 {
		return nil, slices.Sorted(maps.Keys(holding)), err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial++
	token := fmt.Sprintf("aside%d", f.serial)
	f.aside[token] = seats
	return []string{token}, nil, nil
}

func (f *fakeHolds) GiveBack(_ context.Context, _ string, baskets []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, token := range baskets {
		delete(f.aside, token)
	}
	return nil
}

// forget makes the gate show other than it was told.
func (f *fakeHolds) forget(seat int, floor int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sold[seat] = !f.sold[seat]
	f.left["floor"] = floor
}

func (f *fakeHolds) onRestore(do func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restore = do
}

// breaks makes a gate that does not answer.
func (f *fakeHolds) breaks(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
}

func (f *fakeHolds) isClosed(seat int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed[seat]
}

// asideNow are the baskets of nobody that were not given back.
func (f *fakeHolds) asideNow() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.aside))
}

func (f *fakeHolds) shows(seat int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sold[seat]
}

func (f *fakeHolds) gaveBack(id string) bool {
	_, token, _ := seatmap.ParseBookingID(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.released {
		if one == token {
			return true
		}
	}
	return false
}

func (f *fakeHolds) leftIn(area string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left[area]
}
