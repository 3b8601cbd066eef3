package main

import (
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"seatcast/checkout/sandbox"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// outages are the two ways a server is away: its machine is gone, or it hangs.
var outages = map[string]func(*forwarder){
	"gone":  (*forwarder).cut,
	"hangs": (*forwarder).freeze,
}

// turnedAway fails unless the request is answered 503 store_unavailable in time.
func turnedAway(t testing.TB, within time.Duration, ask func() answer) {
	t.Helper()
	asked := time.Now()
	a := ask().want(t, http.StatusServiceUnavailable, "store_unavailable")
	if devtest.Late(asked, within) {
		t.Errorf("refused after %v", time.Since(asked))
	}
	if a.header.Get("Retry-After") == "" {
		t.Error("the refusal does not say when to come back")
	}
}

// forwardedNATS starts a NATS whose way a test can cut and lead back to host;
// at is its URL by that way.
func forwardedNATS(t *testing.T) (via *forwarder, host, at string) {
	t.Helper()
	server, err := devstack.StartNATS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	host = u.Host
	via = forward(t, "tcp", host)
	u.Host = via.at()
	return via, host, u.String()
}

func TestMapsStayTrueWithoutNATS(t *testing.T) {
	t.Parallel()
	via, host, at := forwardedNATS(t)
	h := newHouse(t, plan{})
	nodes := []*node{h.node("SEATCAST_NATS_URL=" + at), h.node("SEATCAST_NATS_URL=" + at)}
	watchers := []*watcher{watch(t, h.event, nodes[0].url), watch(t, h.event, nodes[1].url)}
	agree := func() { t.Helper(); allSee(t, watchers, func() seatmap.Map { return h.truth(t.Context(), h.rdb) }) }
	s, seats := h.shopper(nodes[0], "ann"), h.seats(6)

	s.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	agree()
	via.cut()
	b := s.hold(h.event, "", seats[1:3]...).want(t, http.StatusCreated, "")
	agree()
	s.pay(b.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	agree()
	h.shopper(nodes[1], "bob").hold(h.event, "", seats[3]).want(t, http.StatusCreated, "")
	agree()
	via.lead("tcp", host)
	h.shopper(nodes[1], "bob").hold(h.event, "", seats[4]).want(t, http.StatusCreated, "")
	agree()
	h.balanced(t.Context())
}

func TestANodeIsUnreadyUntilItHasMetNATSAndReadyWithoutItAfterwards(t *testing.T) {
	t.Parallel()
	via, host, at := forwardedNATS(t)
	via.cut()
	h := newHouse(t, plan{})
	n := h.node("SEATCAST_NATS_URL=" + at)
	if c := readyz(t, n, http.StatusServiceUnavailable).Checks["nats"]; c.Status != "fail" {
		t.Errorf("a NATS that was never met is %+v", c)
	}
	via.lead("tcp", host)
	eventually(t, 10*time.Second, "it is ready", func() bool { return said[bool](n.readyz(t), "ready") })
	via.cut()
	eventually(t, 5*time.Second, "it warns", func() bool { return n.check(t, "nats") == "warn" })
	readyz(t, n, http.StatusOK)
	via.lead("tcp", host)
	eventually(t, 10*time.Second, "nothing is wrong", func() bool { return n.check(t, "nats") == "ok" })
}

func TestANodeAloneWithoutPostgresIsUnreadyAndWithoutItForEverybodyAllAreReady(t *testing.T) {
	t.Parallel()
	for name, away := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, nats := forwardedNATS(t) // on the one of all tests others' databases answer
			h := newHouse(t, plan{})
			h.env = append(h.env, "SEATCAST_NATS_URL="+nats)
			db := h.pool.Config().ConnConfig
			socket := filepath.Join(db.Host, ".s.PGSQL.5432")
			var ways [2]*forwarder
			var nodes [2]*node
			for k := range nodes {
				ways[k] = forward(t, "unix", socket)
				nodes[k] = h.node("SEATCAST_POSTGRES_URL=postgres://" + db.User + "@" + ways[k].at() + "/" + db.Database + "?sslmode=disable")
			}
			is := func(n *node, status string) {
				t.Helper()
				eventually(t, 15*time.Second, "Postgres is told as "+status, func() bool { return n.check(t, "postgres") == status })
				readyz(t, n, map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusOK}[status == "fail"])
			}
			is(nodes[0], "ok")
			is(nodes[1], "ok")
			away(ways[0])
			is(nodes[0], "fail")
			is(nodes[1], "ok")
			away(ways[1])
			is(nodes[0], "warn")
			is(nodes[1], "warn")
			ways[0].lead("unix", socket)
			is(nodes[0], "ok")
			is(nodes[1], "fail")
			ways[1].lead("unix", socket)
			is(nodes[1], "ok")
		})
	}
}

func TestWithoutPostgresHoldsGoOnAndPaymentsWait(t *testing.T) {
	t.Parallel()
	for name, away := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{})
			db := h.pool.Config().ConnConfig
			via := forward(t, "unix", filepath.Join(db.Host, ".s.PGSQL.5432"))
			n := h.node("SEATCAST_POSTGRES_URL=postgres://" + db.User + "@" + via.at() + "/" + db.Database + "?sslmode=disable")
			w := watch(t, h.event, n.url)
			ctx := t.Context()
			agree := func() { t.Helper(); w.sees(converge, func() seatmap.Map { return h.truth(ctx, h.rdb) }) }
			s, seats := h.shopper(n, "ann"), h.seats(6)
			b := s.hold(h.event, "", seats[:2]...).want(t, http.StatusCreated, "")
			agree()

			away(via)
			turnedAway(t, 4*time.Second, func() answer { return s.pay(b.BookingID, "", goodCard) })
			if got := s.hold(h.event, "", seats[2:4]...); got.status != http.StatusCreated {
				t.Errorf("a hold of an event that is known: %d %s", got.status, got.raw)
			}
			s.extend(b.BookingID).want(t, http.StatusOK, "")
			agree()
			h.withoutPostgres(s, b.BookingID, seats[4:])
			turnedAway(t, 4*time.Second, func() answer { return s.pay(b.BookingID, "", goodCard) })

			via.lead("unix", filepath.Join(db.Host, ".s.PGSQL.5432"))
			eventually(t, 10*time.Second, "it is sold once Postgres is back", func() bool {
				s.pay(b.BookingID, "once", goodCard)
				return s.booking(b.BookingID).State == "sold"
			})
			agree()
			h.balanced(ctx)
		})
	}
}

// withoutPostgres fails unless what docs/operating.md says goes on, and what it
// says is answered 503.
func (h *house) withoutPostgres(s shopper, booking string, free []string) {
	h.t.Helper()
	for _, path := range []string{"/v1/events/" + h.event, "/v1/events/" + h.event + "/seatmap", "/readyz"} {
		s.do(http.MethodGet, path, "", nil).want(h.t, http.StatusOK, "")
	}
	for _, body := range []map[string]any{{"bestAvailable": map[string]any{"quantity": 1}}, {"areas": []any{map[string]any{"area": "standing", "quantity": 1}}}} {
		s.do(http.MethodPost, "/v1/bookings/"+h.event, "", body).want(h.t, http.StatusCreated, "")
	}
	of := "/v1/bookings/" + booking
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{http.MethodGet, of, nil}, {http.MethodDelete, of, nil}, {http.MethodPut, of + "/confirm", nil},
		{http.MethodPut, of + "/seats", map[string]any{"ticketIds": free[:1]}},
		{http.MethodGet, "/v1/events/search", nil}, {http.MethodGet, "/v1/events/unknown-here", nil},
	} {
		turnedAway(h.t, 4*time.Second, func() answer { return s.do(c.method, c.path, "", c.body) })
	}
}

func TestANodeWithoutRedisRefusesBookingsFastAndTellsItsWatchers(t *testing.T) {
	t.Parallel()
	for name, away := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{})
			via := forward(t, "tcp", h.redis.Addr())
			n := h.node("SEATCAST_REDIS_URL=redis://" + via.at())
			h.node() // Redis answers another: see outage_test.go for when it answers nobody
			w := watch(t, h.event, n.url)
			ctx := t.Context()
			agree := func() { t.Helper(); w.sees(converge, func() seatmap.Map { return h.truth(ctx, h.rdb) }) }
			told := func(reason string) func() bool {
				return func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					return w.degraded == reason
				}
			}
			s, seats := h.shopper(n, "ann"), h.seats(6)
			b := s.hold(h.event, "", seats[:2]...).want(t, http.StatusCreated, "")
			slow := s.hold(h.event, "", seats[2]).want(t, http.StatusCreated, "")
			s.pay(slow.BookingID, "", sandbox.CardSlow).want(t, http.StatusCreated, "")
			agree()

			away(via)
			for range 3 {
				turnedAway(t, 2*time.Second, func() answer { return s.hold(h.event, "", seats[3]) })
			}
			turnedAway(t, 2*time.Second, func() answer { return s.extend(b.BookingID) })
			turnedAway(t, 2*time.Second, func() answer { return s.pay(b.BookingID, "", goodCard) })
			eventually(t, 5*time.Second, "watchers are told", told("redis_unreachable"))
			eventually(t, 10*time.Second, "what the bank authorised is sold all the same", func() bool {
				return h.count(ctx, `SELECT count(*) FROM tickets WHERE booking_id = $1`, slow.BookingID) == 1
			})

			via.lead("tcp", h.redis.Addr())
			back := time.Now()
			eventually(t, 5*time.Second, "watchers are told that it is over", told(""))
			w.sees(max(converge-time.Since(back), 0)+converge, func() seatmap.Map { return h.truth(ctx, h.rdb) })
			s.pay(b.BookingID, "", goodCard).want(t, http.StatusCreated, "")
			s.hold(h.event, "", seats[4]).want(t, http.StatusCreated, "")
			agree()
			h.balanced(ctx)
		})
	}
}
