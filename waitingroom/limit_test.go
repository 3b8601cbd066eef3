package waitingroom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"seatcast/waitingroom"
	"seatcast/web"
)

// limited has the box answer within limits.
func (b *box) limited(l waitingroom.Limits) *prometheus.Registry {
	e, reg := web.New(web.Options{Log: quiet}), prometheus.NewRegistry()
	v1 := e.Group("/v1", func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return web.As(c.Request().Header.Get("X-User"))(next)(c) }
	})
	api := waitingroom.NewAPI(b.rooms).Limited(l, reg)
	api.Mount(v1)
	api.MountAdmin(v1.Group("/admin", web.AsOperator("olga")))
	b.handler = e
	return reg
}

func TestWhoCallsTooOftenIsToldWhenToComeBackAndLosesNothing(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	reg := b.limited(waitingroom.Limits{PerAccount: 1, PerAddress: -1, Suspect: -1})
	place := b.joins("ann", "")
	refused := 0
	for range 30 {
		a := b.send("POST", "ann", b.queue("/pass"), "")
		if a.Status == 429 {
			refused++
			if after, err := strconv.Atoi(a.Header.Get("Retry-After")); a.Code != "too_many_requests" || err != nil || after < 1 || after > 3 {
				t.Errorf("%v %s", a.Header, a.Body)
			}
		}
	}
	if refused == 0 || refused == 30 {
		t.Fatalf("of 30 calls at once %d are refused", refused)
	}
	b.joins("bob", "") // from the same address
	families, err := reg.Gather()
	b.must(err)
	if all := families[0].GetMetric(); len(all) != 6 {
		t.Errorf("%d kinds of refusals are counted", len(all))
	}
	for _, m := range families[0].GetMetric() {
		want := 0.0
		if m.GetLabel()[0].GetValue() == "account" && m.GetLabel()[1].GetValue() == "claim" {
			want = float64(refused)
		}
		if got := m.GetCounter().GetValue(); got != want {
			t.Errorf("of %v are counted %v, not %v", m.GetLabel(), got, want)
		}
	}
	var again answer
	eventually(t, "ann may call again", func() bool {
		again = b.send("POST", "ann", b.queue(""), "")
		return again.Status == 200
	})
	if again.Number != place.Number {
		t.Errorf("her place became %d", again.Number)
	}
}

func TestAnAddressIsLimitedWhateverAccountsCallFromIt(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.limited(waitingroom.Limits{PerAccount: -1, PerAddress: 1, Suspect: 1})
	from := func(address string, n int) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, b.queue(""), nil)
		r.RemoteAddr = "10.0.0.1:1234" // a proxy of our own
		r.Header.Set(echo.HeaderXForwardedFor, address)
		r.Header.Set("X-User", fmt.Sprint("fan-", address, n))
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		return w.Code
	}
	refused := 0
	for n := range 20 {
		if from("203.0.113.7", n) == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 || refused > 15 {
		t.Errorf("of 20 accounts of one address %d are refused", refused)
	}
	if status := from("203.0.113.8", 0); status != 201 {
		t.Errorf("from another address: %d", status)
	}
	for n := range 20 {
		if from(fmt.Sprintf("2001:db8:1:1::%x", n), n) == http.StatusTooManyRequests {
			refused = -1
		}
	}
	if refused != -1 {
		t.Error("twenty addresses of one IPv6 network are not one")
	}
	if status := from("2001:db8:1:2::1", 0); status != 201 {
		t.Errorf("from another network: %d", status)
	}
	if n := b.count(`SELECT count(*) FROM room_suspects`); n != 0 {
		t.Errorf("%d accounts are suspected for what their address did", n)
	}
}

func TestWhoGoesFarOverTheLimitsIsSuspectedUnlessTrusted(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.limited(waitingroom.Limits{PerAccount: 1, PerAddress: -1, Suspect: 20})
	b.admin("POST", "/trust", `{"user":"tester"}`).wants(t, "trust", 204, "")
	b.run(b.rooms)
	hammers := func(user string, times int) {
		for range times {
			b.send("POST", user, b.queue(""), "")
		}
	}
	hammers("tester", 50)
	hammers("impatient", 20) // six are let through
	hammers("bot", 50)
	eventually(t, "the bot is suspected", func() bool {
		return b.count(`SELECT count(*) FROM room_suspects WHERE user_id = 'bot' AND because = 'limits' AND NOT trusted`) == 1
	})
	if n := b.count(`SELECT count(*) FROM room_suspects WHERE NOT trusted`); n != 1 {
		t.Errorf("%d are suspected", n)
	}
	if n := b.rdb.ZCard(t.Context(), "tar:{"+b.event+"}").Val(); n != 1 {
		t.Errorf("Redis suspects %d", n)
	}
	b.admin("POST", "/trust", `{"user":"bot"}`).wants(t, "trust the bot", 204, "")
	b.admin("POST", "/suspect", `{"user":"tester"}`).wants(t, "an operator suspects whom one has trusted", 204, "")
	if n := b.count(`SELECT count(*) FROM room_suspects WHERE NOT trusted AND user_id = 'tester'`); n != 1 {
		t.Error("an operator's word does not count")
	}
}
