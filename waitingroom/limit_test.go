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
	if all := families[0].GetMetric(); len(all) != 10 {
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

// from has somebody join from an address, as a proxy of our own tells it.
func (b *box) from(address, user string) (status int) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, b.queue(""), nil)
	r.RemoteAddr = "10.0.0.1:1234"
	r.Header.Set(echo.HeaderXForwardedFor, address)
	r.Header.Set("X-User", user)
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w.Code
}

func TestAnAddressIsLimitedWhateverAccountsCallFromIt(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.limited(waitingroom.Limits{PerAccount: -1, PerAddress: 1, Suspect: -1})
	refused := 0
	for n := range 20 {
		if b.from("203.0.113.7", fmt.Sprint("fan-", n)) == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 || refused > 15 {
		t.Errorf("of 20 accounts of one address %d are refused", refused)
	}
	if status := b.from("203.0.113.8", "fan-20"); status != 201 {
		t.Errorf("from another address: %d", status)
	}
	for n := range 20 {
		if b.from(fmt.Sprintf("2001:db8:1:1::%x", n), fmt.Sprint("fan-6-", n)) == http.StatusTooManyRequests {
			refused = -1
		}
	}
	if refused != -1 {
		t.Error("twenty addresses of one IPv6 network are not one")
	}
	if status := b.from("2001:db8:1:2::1", "fan-6-20"); status != 201 {
		t.Errorf("from another network: %d", status)
	}
}

func TestWhatAnAddressIsRefusedCountsForNoAccount(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.limited(waitingroom.Limits{PerAccount: 1, PerAddress: 1, Suspect: 20})
	b.run(b.rooms)
	for n := range 5 {
		b.from("203.0.113.7", fmt.Sprint("fan-", n))
	}
	refused := 0
	for range 100 {
		if b.from("203.0.113.7", "ann") == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 50 {
		t.Fatalf("of 100 calls %d are refused", refused)
	}
	for n := range 100 { // what its first address lets it do, and then its second, is more than an account may
		b.from(fmt.Sprint("203.0.113.", 8+min(n/5, 1)), "bot")
	}
	eventually(t, "who calls too often is suspected", func() bool { return b.count(`SELECT count(*) FROM room_suspects WHERE user_id = 'bot'`) == 1 })
	if n := b.count(`SELECT count(*) FROM room_suspects`); n != 1 {
		t.Errorf("%d accounts are suspected: one too many for what its address was refused", n)
	}
}

func TestWhatIsTooMuchOfAnAccountCostsItsAddressNothing(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.limited(waitingroom.Limits{PerAccount: 1, PerAddress: 5, Suspect: -1})
	for range 200 {
		b.from("203.0.113.7", "bot")
	}
	for n := range 10 {
		if status := b.from("203.0.113.7", fmt.Sprint("fan-", n)); status != 201 {
			t.Errorf("an account behind the same address joins: %d", status)
		}
	}
}

func TestLeavingAndLookingAreLimitedToo(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.limited(waitingroom.Limits{PerAccount: 1, PerAddress: -1, Suspect: -1})
	for _, method := range []string{"GET", "DELETE"} {
		b.joins(method, "")
		refused := 0
		for range 30 {
			if a := b.send(method, method, b.queue("/me"), ""); a.Status == 429 {
				refused++
			}
		}
		if refused == 0 || refused == 30 {
			t.Errorf("of 30 calls %s …/me %d are refused", method, refused)
		}
	}
}

func TestWhoCallsWhereThereIsNoRoomInBetweenIsSuspectedAllTheSame(t *testing.T) {
	b := newBox(t)
	b.put(plan(0, 1, 10))
	b.limited(waitingroom.Limits{PerAccount: 1, PerAddress: -1, Suspect: 20})
	b.run(b.rooms)
	paths := []string{b.queue(""), "/v1/queue/elsewhere"}
	for n := range 100 {
		b.send("POST", "even", paths[n%2], "")
		b.send("POST", "odd", paths[1-n%2], "")
	}
	eventually(t, "both are suspected", func() bool { return b.count(`SELECT count(*) FROM room_suspects`) == 2 })
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
	eventually(t, "Redis suspects it alone", func() bool { return b.rdb.ZCard(t.Context(), "tar:{"+b.event+"}").Val() == 1 })
	b.admin("POST", "/trust", `{"user":"bot"}`).wants(t, "trust the bot", 204, "")
	b.admin("POST", "/suspect", `{"user":"tester"}`).wants(t, "an operator suspects whom one has trusted", 204, "")
	if n := b.count(`SELECT count(*) FROM room_suspects WHERE NOT trusted AND user_id = 'tester'`); n != 1 {
		t.Error("an operator's word does not count")
	}
}
