package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
	"seatcast/seatmap/history"
)

// storm is a sale in which everything happens at once: shoppers hold, swap, pay
// and give back, operators close, open, publish, extend and release, and servers
// die.
type storm struct {
	*house
	tally
	ids   []string
	nodes [2]atomic.Pointer[node]
	over  atomic.Bool
	sold  sync.Map // bookings that were answered as sold
}

const (
	stormShoppers  = 16
	stormOperators = 3
	stormSeats     = 60
)

// stormCards are paid with; what the bank takes back is on sale again.
var stormCards = []string{goodCard, declinedCard, sandbox.CardRefused, sandbox.CardRefused, sandbox.CardDuplicate, sandbox.CardEarly}

// somebody is an account at one of the nodes.
func (s *storm) somebody(rng *rand.Rand, user string, roles ...string) shopper {
	return s.with(s.nodes[rng.IntN(len(s.nodes))].Load(), user, roles...)
}

// came notes an answer. None is a fault of ours; a node that dies gives none.
func (s *storm) came(kind string, a answer) answer {
	s.note(kind, a)
	if a.status >= 500 && a.status != http.StatusServiceUnavailable {
		s.t.Errorf("%s was answered %d %s", kind, a.status, a.raw)
	}
	return a
}

// some are a few seats beside each other.
func (s *storm) some(rng *rand.Rand, most int) []string {
	n := 1 + rng.IntN(most)
	from := rng.IntN(len(s.ids) - n)
	return s.ids[from : from+n]
}

// shop is one account after the other, until the storm is over.
func (s *storm) shop(rng *rand.Rand, me int) {
	for turn := 0; !s.over.Load(); turn++ {
		user := fmt.Sprint("u", me, "-", turn)
		held := s.came("hold", s.somebody(rng, user).take(s.event, "k", s.some(rng, 3), area{"standing", 1}))
		for range 1 + rng.IntN(5) {
			if held.status != http.StatusCreated || s.over.Load() {
				break
			}
			s.goOn(rng, s.somebody(rng, user), held.BookingID)
		}
		pause(s.t.Context(), time.Duration(rng.IntN(20))*time.Millisecond)
	}
}

func (s *storm) goOn(rng *rand.Rand, at shopper, booking string) {
	switch rng.IntN(8) {
	case 0, 1:
		s.came("swap", at.swap(booking, s.some(rng, 3)...))
	case 2:
		s.came("extend", at.extend(booking))
	case 3:
		s.came("read", at.booking(booking))
	case 4, 5:
		s.came("give back", at.giveBack(booking))
	default:
		if p := s.came("pay", at.pay(booking, "", stormCards[rng.IntN(len(stormCards))])); p.State == "sold" {
			s.sold.Store(booking, true)
		}
	}
}

// operate does what operators do, until the storm is over.
func (s *storm) operate(rng *rand.Rand, me int) {
	for turn := 0; !s.over.Load(); turn++ {
		o := office{s.somebody(rng, fmt.Sprint("op", me), "operator"), s.event}
		seats, even := s.some(rng, 6), rng.IntN(3) == 0
		channel := "/channels/" + []string{"members", "press"}[rng.IntN(2)]
		switch rng.IntN(13) {
		case 0, 1:
			s.came("kill", o.call(http.MethodPost, "/kill", body{"ticketIds": seats, "reason": "a pillar", "evenHeld": even}))
		case 2:
			s.came("off-sale", o.call(http.MethodPost, "/off-sale", body{"ticketIds": seats, "evenHeld": even}))
		case 3, 4:
			s.came("release", o.call(http.MethodPost, "/release", body{"section": s.chart.Sections[0].ID}))
		case 5:
			s.came("release", o.call(http.MethodPost, "/release", body{"ticketIds": seats, "holds": true}))
		case 6:
			opens := time.Now().Add(time.Duration(rng.IntN(1500)) * time.Millisecond)
			s.came("channel", o.call(http.MethodPut, channel, body{"ticketIds": seats, "opensAt": opens, "evenHeld": even}))
		case 7:
			s.came("open", o.call(http.MethodPost, channel+"/open", nil))
		case 8:
			s.came("close", o.call(http.MethodPost, channel+"/close", body{"evenHeld": even}))
		case 9:
			s.came("drop", o.call(http.MethodDelete, channel, nil))
		case 10:
			s.came("extend all", o.do(http.MethodPost, "/v1/admin/events/"+s.event+"/extend-all", fmt.Sprint("k", turn/2), body{"by": "1s"}))
		case 11:
			_, a := o.publish(s.event, redrawn(rng.IntN(3), []string{"n1", "n2"}[:rng.IntN(3)]...), nil)
			s.came("publish", a)
		case 12:
			s.came("office hold", o.call(http.MethodPost, "/hold", body{"ticketIds": seats[:1], "for": "1m", "reason": "press"}))
		}
		pause(s.t.Context(), time.Duration(rng.IntN(60))*time.Millisecond)
	}
}

// rage lets a Redis be emptied, hang and die, and a node.
func (s *storm) rage(ctx context.Context) {
	s.rdb.FlushAll(ctx)
	pause(ctx, 2*time.Second)
	s.rdb.Do(ctx, "DEBUG", "SLEEP", "2")
	pause(ctx, 2*time.Second)
	s.nodes[1].Load().kill()
	s.nodes[1].Store(s.node())
	pause(ctx, 2*time.Second)
	s.redis.Kill()
	pause(ctx, time.Second)
	if err := s.redis.Restart(ctx); err != nil {
		s.t.Error(err)
	}
	pause(ctx, 3*time.Second)
}

func TestInAStormNoSeatIsSoldTwiceAndAfterItEveryMapIsTrue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHouse(t, plan{terms: seatmap.Terms{Hold: 4 * time.Second, Pay: 4 * time.Second, Cap: 8 * time.Second, Grace: 500 * time.Millisecond,
		SeatsPerBooking: 6, SeatsPerUser: 8}})
	s := &storm{house: h, ids: h.seats(stormSeats)}
	s.nodes[0].Store(h.node())
	s.nodes[1].Store(h.node())
	w := watch(t, h.event, s.nodes[0].Load().url)
	var all sync.WaitGroup
	for k := range stormShoppers {
		all.Go(func() { s.shop(rand.New(rand.NewPCG(1, uint64(k))), k) })
	}
	for k := range stormOperators {
		all.Go(func() { s.operate(rand.New(rand.NewPCG(2, uint64(k))), k) })
	}
	pause(ctx, 2*time.Second)
	s.rage(ctx)
	s.over.Store(true)
	all.Wait()

	s.settles(ctx)
	h.balanced(ctx)
	s.sold.Range(func(id, _ any) bool {
		if h.count(ctx, `SELECT count(*) FROM bookings WHERE id = $1 AND state IN ('sold', 'lost')`, id) != 1 {
			t.Errorf("%v was answered as sold, and is not", id)
		}
		return true
	})
	if n := h.count(ctx, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n > 0 {
		t.Errorf("%d transactions waited for each other", n)
	}
	s.tellsTheTruth(ctx, w)
	t.Log(s.by)
}

// settles waits until nothing is under way any more.
func (s *storm) settles(ctx context.Context) {
	s.t.Helper()
	for what, query := range map[string]string{
		"every payment has an outcome":  `SELECT count(*) FROM attempts WHERE state IN ('created', 'authorized', 'capturing')`,
		"bookings of shoppers are over": `SELECT count(*) FROM bookings WHERE state IN ('held', 'paying') AND operator = ''`,
		"Redis is told of seats":        `SELECT count(*) FROM seats WHERE mirror_due`,
		"Redis is told of bookings":     `SELECT count(*) FROM bookings WHERE mirror_due`,
		"Redis is told of the chart":    `SELECT count(*) FROM events WHERE chart_version <> chart_told`,
	} {
		eventually(s.t, 40*time.Second, what, func() bool { return s.count(ctx, query) == 0 })
	}
}

// tellsTheTruth waits until polls and streams of every node, and the seat log,
// say what Postgres and the holds say.
func (s *storm) tellsTheTruth(ctx context.Context, w *watcher) {
	s.t.Helper()
	var sha string
	if err := s.pool.QueryRow(ctx, `SELECT chart_sha FROM events WHERE id = $1`, s.event).Scan(&sha); err != nil {
		s.t.Fatal(err)
	}
	s.onChart(s.nodes[0].Load(), sha)
	for k := range s.nodes {
		n := s.nodes[k].Load()
		eventually(s.t, 10*time.Second, "a poll shows the truth", func() bool {
			m, stale := s.polled(n)
			return !stale && string(m) == string(s.truth(ctx, s.rdb))
		})
		late := watch(s.t, s.event, n.url)
		for _, one := range []*watcher{w, late} {
			eventually(s.t, 10*time.Second, "a stream shows the truth", func() bool { return string(one.see()) == string(s.truth(ctx, s.rdb)) })
		}
	}
	o := office{s.operator(s.nodes[0].Load(), "support"), s.event}
	for i, id := range s.seats(s.chart.Seats) {
		if id == "" { // not in this chart
			continue
		}
		eventually(s.t, 10*time.Second, "the seat log of "+id+" says what the seat is", func() bool {
			var told history.Answer
			err := json.Unmarshal(o.call(http.MethodGet, "/seats/"+id+"/history", nil).want(s.t, http.StatusOK, "").raw, &told)
			return err == nil && told.Status == s.truth(ctx, s.rdb).At(i).String()
		})
	}
}
