package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"seatcast/checkout/sandbox"
	"seatcast/seatmap"
)

// Roles of nodes that do one thing each.
const (
	onlyAPI    = "SEATCAST_ROLES=api"
	onlyHub    = "SEATCAST_ROLES=hub"
	onlyWorker = "SEATCAST_ROLES=worker"
	desk       = "SEATCAST_ROLES=api,worker"
)

// converge is how soon every watcher is at the truth when something was lost.
const converge = 2 * time.Second

// twoHubs are two nodes that only show maps, and a watcher at each, both with
// a map.
func twoHubs(t testing.TB, h *house) []*watcher {
	t.Helper()
	var all []*watcher
	for range 2 {
		all = append(all, watch(t, h.event, h.node(onlyHub).url))
	}
	allSee(t, all, func() seatmap.Map { return seatmap.NewMap(h.chart.Seats) })
	return all
}

// allSee fails unless every watcher sees the map that want returns in time.
func allSee(t testing.TB, all []*watcher, want func() seatmap.Map) {
	t.Helper()
	begun := time.Now()
	for _, w := range all {
		w.seesBy(begun, converge, want)
	}
}

func TestANodeKilledBetweenScriptAndPublishLeavesNoWatcherBehind(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{terms: seatmap.Terms{Hold: 6 * time.Second, Cap: 6 * time.Second, Grace: 100 * time.Millisecond}})
	watchers := twoHubs(t, h)
	doomed := h.fated("die before publish", onlyAPI)

	if a := h.shopper(doomed, "ann").hold(h.event, "", h.seats(2)...); a.status != 0 {
		t.Errorf("a node that died answered %d", a.status)
	}
	doomed.diedBySignal(t)
	allSee(t, watchers, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Held, 0, 1) })

	eventually(t, 15*time.Second, "the hold of nobody ends by itself", func() bool {
		return h.rdb.Exists(t.Context(), seatmap.HoldKey(h.event, 0), seatmap.HoldKey(h.event, 1)).Val() == 0
	})
	allSee(t, watchers, func() seatmap.Map { return seatmap.NewMap(h.chart.Seats) })
}

func TestLostMessagesDelayNoWatcherBeyondTwoSeconds(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	watchers := twoHubs(t, h)
	mute := h.fated("mute", desk)
	s, seats := h.shopper(mute, "ann"), h.seats(6)
	agree := func() { allSee(t, watchers, func() seatmap.Map { return h.truth(t.Context(), h.rdb) }) }

	kept := s.hold(h.event, "", seats[:2]...).want(t, http.StatusCreated, "")
	agree()
	other := s.hold(h.event, "", seats[2:4]...).want(t, http.StatusCreated, "")
	s.giveBack(other.BookingID).want(t, http.StatusNoContent, "")
	agree()
	s.pay(kept.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	agree()
	for _, w := range watchers {
		if m := w.see(); m.At(0) != seatmap.Sold || m.At(2) != seatmap.Available {
			t.Errorf("seats 0 and 2 are seen as %v and %v", m.At(0), m.At(2))
		}
	}
	h.balanced(t.Context())
}

func TestANodeKilledBetweenCommitAndMirrorIsFinishedByAnother(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	watchers := twoHubs(t, h)
	other, doomed := h.node(desk), h.fated("die before mirror", onlyAPI)
	seat := h.seats(1)[0]
	s := h.shopper(doomed, "ann")
	b := s.hold(h.event, "", seat).want(t, http.StatusCreated, "")

	rush := h.rush(other, seat)
	if a := s.pay(b.BookingID, "", goodCard); a.status != 0 {
		t.Errorf("a node that died answered %d", a.status)
	}
	doomed.diedBySignal(t)
	allSee(t, watchers, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Sold, 0) })

	if got := rush(); len(got) > 0 {
		t.Errorf("the seat of a sale was given to %d others", len(got))
	}
	s.base = other.url
	h.soldTo(s, b.BookingID)
}

// A Redis that lost the hold of somebody who pays gives the seat to another;
// then the node that sold it to the first dies before it can tell.
func TestTheArbiterRefusesWhoHoldsASoldSeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	watchers := twoHubs(t, h)
	doomed := h.fated("die before mirror", onlyAPI)
	other := h.node(desk, "SEATCAST_GATE=off", "SEATCAST_SANDBOX_WEBHOOK_URL="+doomed.url+"/v1/payments/webhook/"+sandbox.Name)
	seat := h.seats(1)[0]
	ann, bob := h.shopper(doomed, "ann"), h.shopper(other, "bob")
	a := ann.hold(h.event, "", seat).want(t, http.StatusCreated, "")
	ann.pay(a.BookingID, "", sandbox.CardSlow).want(t, http.StatusCreated, "")
	if err := h.rdb.Del(t.Context(), seatmap.HoldKey(h.event, 0)).Err(); err != nil {
		t.Fatal(err)
	}
	b := bob.hold(h.event, "", seat).want(t, http.StatusCreated, "")
	rush := h.rush(other, seat)

	doomed.diedBySignal(t) // of the webhook that made the sale
	bob.pay(b.BookingID, "", goodCard).want(t, http.StatusConflict, "seats_lost")
	allSee(t, watchers, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Sold, 0) })
	if got := rush(); len(got) > 0 {
		t.Errorf("the seat of a sale was given to %d others", len(got))
	}
	ann.base = other.url
	h.soldTo(ann, a.BookingID)
	bob.confirm(b.BookingID).want(t, http.StatusConflict, "")
}

// rush sends a few shoppers for one seat until the function it returns is
// called; that returns the holds they were given.
func (h *house) rush(n *node, seat string) (end func() []answer) {
	ctx, stop := context.WithCancel(h.t.Context())
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		got []answer
	)
	for i := range 4 {
		s := h.shopper(n, fmt.Sprintf("rusher-%d", i))
		wg.Go(func() {
			for pause(ctx, 5*time.Millisecond) {
				if a := s.hold(h.event, "", seat); a.status == http.StatusCreated {
					mu.Lock()
					got = append(got, a)
					mu.Unlock()
				}
			}
		})
	}
	return func() []answer {
		stop()
		wg.Wait()
		return got
	}
}

// soldTo fails unless that booking is the only one with tickets, its money is
// captured once and nobody else's is kept.
func (h *house) soldTo(s shopper, booking string) {
	h.t.Helper()
	ctx := h.t.Context()
	eventually(h.t, 10*time.Second, "the money is captured", func() bool {
		a := s.confirm(booking)
		return a.State == "sold" && len(a.Tickets) > 0 && a.Tickets[0].Status == "valid"
	})
	if n := h.count(ctx, `SELECT count(*) FROM tickets WHERE event_id = $1 AND booking_id <> $2`, h.event, booking); n > 0 {
		h.t.Errorf("%d tickets of others", n)
	}
	eventually(h.t, 10*time.Second, "no money is kept but that of the sale", func() bool {
		return h.count(ctx, `SELECT count(*) FROM sandbox_payments WHERE state IN ('processing', 'authorized')`) == 0
	})
	captured := h.count(ctx, `SELECT count(*) FROM sandbox_payments WHERE state = 'captured'`)
	own := h.count(ctx, `SELECT count(*) FROM sandbox_payments p JOIN attempts a ON a.id = p.idempotency_key
		WHERE p.state = 'captured' AND a.booking_id = $1 AND p.amount = a.amount`, booking)
	if captured != 1 || own != 1 {
		h.t.Errorf("%d payments are captured, %d of them for the booking", captured, own)
	}
	h.balanced(ctx)
}

// Two bookings, each with a payment to be taken and one to be given back. Of
// the first the provider is about to hear when the worker is killed; of the
// second it has heard already, and we have not noted it.
func TestAKilledWorkersJobsAreRescuedAndMoveMoneyOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHouse(t, plan{})
	api := h.node(onlyAPI)
	hook := "SEATCAST_SANDBOX_WEBHOOK_URL=" + "http://127.0.0.1:9/" // nobody: jobs are on their own
	before := h.twoCards(h.shopper(api, "ann"), h.seats(4)[:2])
	behind := h.twoCards(h.shopper(api, "bob"), h.seats(4)[2:])

	block, err := h.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = block.Rollback(context.WithoutCancel(ctx)) }()
	for _, lock := range []struct{ sql, booking string }{
		{`SELECT FROM sandbox_payments WHERE idempotency_key IN (SELECT id FROM attempts WHERE booking_id = $1) FOR UPDATE`, before},
		{`SELECT FROM bookings WHERE id = $1 FOR UPDATE`, behind},
	} {
		if _, err := block.Exec(ctx, lock.sql, lock.booking); err != nil {
			t.Fatal(err)
		}
	}
	doomed := h.node(onlyWorker, hook)
	eventually(t, 20*time.Second, "its jobs are all in the middle of it", func() bool {
		return h.count(ctx, `SELECT count(*) FROM river_job WHERE state = 'running' AND kind IN ('capture', 'void')`) == 4 &&
			h.count(ctx, `SELECT count(*) FROM sandbox_payments WHERE state IN ('captured', 'voided')`) == 2
	})
	doomed.kill()
	if err := block.Rollback(ctx); err != nil {
		t.Fatal(err)
	}

	h.node(onlyWorker, hook)
	eventually(t, time.Minute, "every payment is taken or given back", func() bool {
		return h.count(ctx, `SELECT count(*) FROM attempts WHERE state IN ('captured', 'voided')`) == 4 &&
			h.count(ctx, `SELECT count(*) FROM river_job WHERE state = 'running'`) == 0
	})
	for _, booking := range []string{before, behind} {
		for state, want := range map[string]int{"captured": 1, "voided": 1} {
			n := h.count(ctx, `SELECT count(*) FROM sandbox_payments p JOIN attempts a ON a.id = p.idempotency_key AND a.state = p.state
				WHERE a.booking_id = $1 AND p.state = $2`, booking, state)
			if n != want {
				t.Errorf("%d payments of %s are %s, not %d", n, booking, state, want)
			}
		}
	}
	h.balanced(ctx)
}

// twoCards pays a booking in two tabs: with a slow card, and with one that buys
// the seats meanwhile. It returns the booking, a payment of which is to be
// captured and one to be voided.
func (h *house) twoCards(s shopper, seats []string) (booking string) {
	h.t.Helper()
	b := s.hold(h.event, "", seats...).want(h.t, http.StatusCreated, "")
	s.pay(b.BookingID, "slow", sandbox.CardSlow).want(h.t, http.StatusCreated, "")
	s.pay(b.BookingID, "good", goodCard).want(h.t, http.StatusCreated, "")
	if n := h.count(h.t.Context(), `SELECT count(*) FROM attempts WHERE booking_id = $1 AND void_due`, b.BookingID); n != 1 {
		h.t.Fatalf("%d payments have to go back", n)
	}
	return b.BookingID
}
