package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"seatcast/checkout/sandbox"
	"seatcast/internal/devstack"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

// A promoted replica that never saw the last writes is a fork of the event's
// history, whatever the two clocks say.
func TestAFailoverThatLosesWritesIsSeenAndMended(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]struct{ old, young time.Duration }{
		"clocks agree":       {},
		"old clock is ahead": {old: 90 * time.Second},
		"new clock is ahead": {young: 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failover(t, offset.old, offset.young)
		})
	}
}

// pair is a primary and its replica, behind one address.
type pair struct {
	primary, replica *devstack.Redis
	via              *forwarder
}

func newPair(t testing.TB, old, young time.Duration) pair {
	p := pair{primary: devtest.RedisServer(t, devstack.RedisOptions{ClockOffset: old})}
	p.replica = devtest.RedisServer(t, devstack.RedisOptions{ClockOffset: young, ReplicaOf: p.primary.Addr()})
	p.via = forward(t, "tcp", p.primary.Addr())
	return p
}

// serves makes the house ask that server for its truth.
func (h *house) serves(r *devstack.Redis) {
	h.redis, h.rdb = r, r.Client()
	client := h.rdb
	h.t.Cleanup(func() { _ = client.Close() })
}

// part promotes the replica as soon as it has everything written so far.
func (p pair) part(h *house) {
	h.t.Helper()
	replica := p.replica.Client()
	defer func() { _ = replica.Close() }()
	ctx := h.t.Context()
	eventually(h.t, 10*time.Second, "the replica is where the primary is", func() bool {
		seq := h.rdb.Get(ctx, seatmap.SeqKey(h.event)).Val()
		return seq != "" && seq == replica.Get(ctx, seatmap.SeqKey(h.event)).Val()
	})
	if err := replica.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		h.t.Fatal(err)
	}
}

func failover(t *testing.T, old, young time.Duration) {
	ctx := t.Context()
	p := newPair(t, old, young)
	h := newHouse(t, plan{redis: "redis://" + p.via.at()})
	h.serves(p.primary)
	nodes := []*node{h.node(), h.node()}
	watchers := []*watcher{watch(t, h.event, nodes[0].url), watch(t, h.event, nodes[1].url)}
	agree := func() { t.Helper(); allSee(t, watchers, func() seatmap.Map { return h.truth(ctx, h.rdb) }) }
	seats := h.seats(30)
	holds := func(user string, seats ...string) (shopper, answer) {
		t.Helper()
		s := h.shopper(nodes[len(user)%2], user)
		return s, s.hold(h.event, "", seats...).want(t, http.StatusCreated, "")
	}

	// What both have: a hold, a sale, somebody who pays, and two who will buy.
	keeper, kept := holds("keeper", seats[0:2]...)
	early, earlier := holds("early", seats[2:4]...)
	early.pay(earlier.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	slow, paying := holds("slow", seats[4:6]...)
	slow.pay(paying.BookingID, "", sandbox.CardSlow).want(t, http.StatusCreated, "")
	buyer, bought := holds("buyer", seats[6])
	agree()
	p.part(h)

	// What the replica never hears of.
	loser, lost := holds("loser", seats[10:13]...)
	buyer.pay(bought.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	late, later := holds("late", seats[7:9]...)
	late.pay(later.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	payer, pays := holds("payer", seats[9])
	payer.pay(pays.BookingID, "", sandbox.CardSlow).want(t, http.StatusCreated, "")
	agree()

	sold := newWitness(h, nodes, seats[2:4], seats[6:9])
	p.primary.Kill()
	h.serves(p.replica)
	p.via.lead("tcp", p.replica.Addr())
	agree()
	mended := time.Now()
	if h.rdb.Get(ctx, seatmap.ResetKey(h.event)).Val() == "" {
		t.Error("the new primary was not rebuilt")
	}
	for i := range 30 {
		var want []seatmap.Status
		switch i {
		case 0, 1:
			want = []seatmap.Status{seatmap.Held}
		case 2, 3, 6, 7, 8:
			want = []seatmap.Status{seatmap.Sold}
		case 4, 5, 9: // being paid for; the verdict may have come
			want = []seatmap.Status{seatmap.Held, seatmap.Sold}
		default:
			want = []seatmap.Status{seatmap.Available}
		}
		if got := watchers[0].see().At(i); !slices.Contains(want, got) {
			t.Errorf("seat %d is seen as %v, not %v", i, got, want)
		}
	}

	// Life goes on: for who lost a hold, who kept one, and who was paying.
	loser.extend(lost.BookingID).want(t, http.StatusNotFound, "unknown_booking")
	again := loser.hold(h.event, "", seats[10:13]...).want(t, http.StatusCreated, "")
	loser.pay(again.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	keeper.pay(kept.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	for s, b := range map[shopper]answer{slow: paying, payer: pays, late: later, loser: again, keeper: kept} {
		eventually(t, 10*time.Second, "everybody who paid has tickets", func() bool { return s.confirm(b.BookingID).State == "sold" })
	}
	agree()
	sold.none(mended)
	h.balanced(ctx)
}

// witness tries all the time to hold seats that are sold.
type witness struct {
	h     *house
	stop  context.CancelFunc
	wg    sync.WaitGroup
	mu    sync.Mutex
	grant []grant
}

// grant is a hold somebody was given.
type grant struct {
	asked time.Time
	s     shopper
	a     answer
}

func newWitness(h *house, nodes []*node, seats ...[]string) *witness {
	ctx, stop := context.WithCancel(h.t.Context())
	w := &witness{h: h, stop: stop}
	for k, n := range nodes {
		for j, some := range seats {
			s := h.shopper(n, fmt.Sprintf("witness-%d-%d", k, j))
			for _, seat := range some {
				w.wg.Go(func() { w.try(ctx, s, seat) })
			}
		}
	}
	return w
}

func (w *witness) try(ctx context.Context, s shopper, seat string) {
	for pause(ctx, 10*time.Millisecond) {
		asked := time.Now()
		if a := s.hold(w.h.event, "", seat); a.status == http.StatusCreated {
			w.mu.Lock()
			w.grant = append(w.grant, grant{asked, s, a})
			w.mu.Unlock()
		}
	}
}

// none ends the witness. No sold seat was given after mended, and who was
// given one before cannot buy it.
func (w *witness) none(mended time.Time) {
	w.h.t.Helper()
	w.stop()
	w.wg.Wait()
	w.h.t.Logf("%d holds of sold seats before the fork was mended", len(w.grant))
	for _, g := range w.grant {
		if g.asked.After(mended) {
			w.h.t.Errorf("a sold seat was given to somebody %v after the fork was mended", g.asked.Sub(mended))
		}
		g.s.pay(g.a.BookingID, "", goodCard).want(w.h.t, http.StatusConflict, "")
	}
}

// The only node that followed the map dies with the primary, and so nobody has
// a number of the history that was lost: only the books tell.
func TestSalesOfAForkNobodySawComeBack(t *testing.T) {
	t.Parallel()
	p := newPair(t, 0, 0)
	h := newHouse(t, plan{redis: "redis://" + p.via.at()})
	h.serves(p.primary)
	api := h.node(onlyAPI)
	s, area := h.shopper(api, "ann"), h.chart.Areas[0].ID
	b := s.do(http.MethodPost, "/v1/bookings/"+h.event, "", map[string]any{
		"ticketIds": h.seats(2), "areas": []map[string]any{{"area": area, "quantity": 3}},
	}).want(t, http.StatusCreated, "")
	p.part(h)
	s.pay(b.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	api.kill()
	p.primary.Kill()
	h.serves(p.replica)
	p.via.lead("tcp", p.replica.Addr())

	w := watch(t, h.event, h.node(onlyHub).url)
	w.sees(converge, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Held, 0, 1) })
	api = h.node(onlyAPI)
	h.node(onlyWorker, "SEATCAST_SANDBOX_WEBHOOK_URL="+api.url+"/v1/payments/webhook/"+sandbox.Name)
	w.sees(5*time.Second, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Sold, 0, 1) })
	w.seesAreas(converge, h.left)
	h.shopper(api, "bob").hold(h.event, "", h.seats(1)...).want(t, http.StatusConflict, "seats_taken")
	h.balanced(t.Context())
}
