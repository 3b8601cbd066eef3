package checkout_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"seatcast/checkout"
	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
	"seatcast/web"
)

// another is a second desk on the same books, with connections of its own.
func (h *house) another(o checkout.Options) (url string) {
	h.t.Helper()
	pool, err := pgxpool.NewWithConfig(h.t.Context(), h.pool.Config().Copy())
	must(h.t, err)
	h.t.Cleanup(pool.Close)
	o.Store, err = checkout.NewStore(pool)
	must(h.t, err)
	desk, err := checkout.New(o)
	must(h.t, err)
	e := echo.New()
	e.HTTPErrorHandler = web.ErrorHandler(slog.New(slog.DiscardHandler))
	desk.Mount(e.Group("/v1", func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return web.As(c.Request().Header.Get("X-User"))(next)(c) }
	}))
	server := httptest.NewServer(e)
	h.t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// told is how many tickets of an account Redis has been told of.
func (f *fakeHolds) told(user string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bought[user]
}

// The holds of an account may have been lost and given again, so that it pays
// for more than it may have, at two desks at once.
func TestTicketsOfAnAccountNeverExceedTheLimitWhenTwoDesksRace(t *testing.T) {
	var options checkout.Options
	h := setup(t, func(_ *house, o *checkout.Options, _ *sandbox.Options) { options = *o })
	options.Providers = []checkout.Provider{h.sandbox}
	first, second := *h, *h
	second.url = h.another(options)
	h.exec(`UPDATE events SET seats_per_user = 7`)
	var ids []string
	for i := range 12 {
		ids = append(ids, h.hold("ada", []int{2 * i, 2*i + 1}, 0))
	}
	replies := make([]reply, len(ids))
	var all sync.WaitGroup
	for k, id := range ids {
		at := []house{first, second}[k%2]
		all.Go(func() {
			err := at.try(http.MethodPost, "/bookings/"+id+"/payment", "ada", map[string]string{"paymentMethod": sandbox.CardApprove}, &replies[k])
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	sold := 0
	for _, r := range replies {
		switch {
		case r.State == "sold":
			sold++
		case r.Code != "seats_lost" || r.Reason != "account_limit":
			t.Errorf("payment: %+v", r)
		}
	}
	if n := ask[int](h, `SELECT count(*) FROM tickets WHERE state = 'live'`); sold != 3 || n != 6 {
		t.Errorf("%d bookings are sold with %d tickets; 7 are allowed", sold, n)
	}
	must(t, h.desk.Mirror(t.Context(), event)) // what a desk did is told by itself; this waits for it
	if n := h.holds.told("ada"); n != 6 {
		t.Errorf("Redis is told of %d tickets", n)
	}
}

func TestRedisIsToldHowManyTicketsAnAccountHas(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{1, 2}, 1), "ada", sandbox.CardApprove)
	if n := h.holds.told("ada"); n != 3 {
		t.Errorf("told of %d tickets, want two seats and a place", n)
	}
	id := h.hold("ada", []int{3}, 0)
	h.pay(id, "ada", sandbox.CardRefused)
	if n := h.holds.told("ada"); n != 4 {
		t.Errorf("told of %d tickets before the money is refused", n)
	}
	h.run(h.desk.Run)
	h.becomes(id, "lost")
	h.eventually(func() (string, bool) { return "four still count", h.holds.told("ada") == 3 })
	var truth seatmap.Truth
	must(t, h.store.Truth(t.Context(), event, func(_ context.Context, now seatmap.Truth) error { truth = now; return nil }))
	if len(truth.Bought) != 1 || truth.Bought["ada"] != 3 {
		t.Errorf("the truth says %v", truth.Bought)
	}
	if n := ask[int](h, `SELECT count(*) FROM buyers WHERE changes <> told`); n != 0 {
		t.Errorf("%d accounts are told of again and again", n)
	}
}

// A sale that commits while Redis is told of an older count is told of too.
func TestTicketsSoldWhileTheMirrorRunsAreToldNext(t *testing.T) {
	h := setup(t)
	h.pay(h.hold("ada", []int{1}, 0), "ada", sandbox.CardApprove)
	h.exec(`UPDATE buyers SET changes = changes + 1`)
	var once sync.Once
	h.holds.spend = func(context.Context, seatmap.Marks) error {
		once.Do(func() { h.exec(`UPDATE buyers SET changes = changes + 1`) })
		return nil
	}
	must(t, h.desk.Mirror(t.Context(), event))
	if n := ask[int](h, `SELECT count(*) FROM buyers WHERE changes <> told`); n != 1 {
		t.Error("the change in between is taken for told")
	}
	must(t, h.desk.Mirror(t.Context(), event))
	if n := ask[int](h, `SELECT count(*) FROM buyers WHERE changes <> told`); n != 0 {
		t.Error("the change in between is never told")
	}
}
