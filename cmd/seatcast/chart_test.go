package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/checkout"
	"seatcast/holds"
	"seatcast/internal/browsertest"
	"seatcast/seatmap"
)

// redrawn is the club's chart without the first so many seats, and with new
// ones of these ids.
func redrawn(less int, ids ...string) *seatmap.Chart {
	c := seatmap.Club()
	row := &c.Sections[0].Rows[0]
	row.Seats = row.Seats[less:]
	row.Seats[0].Break = false
	more := seatmap.Row{Label: "New"}
	for k, id := range ids {
		more.Seats = append(more.Seats, seatmap.Seat{TicketID: id, I: c.Seats, Label: fmt.Sprint(k + 1), X: 20 * float64(k), Y: 420, Category: c.Categories[0].Name})
		c.Seats++
	}
	if len(ids) > 0 {
		c.Sections[0].Rows = append(c.Sections[0].Rows, more)
	}
	return c
}

// publish sends a chart as an operator does.
func (s shopper) publish(event string, chart any, prices map[string]int64) (catalog.Published, answer) {
	s.t.Helper()
	a := s.do(http.MethodPut, "/v1/admin/events/"+event+"/chart", "", map[string]any{"chart": chart, "prices": prices})
	var done catalog.Published
	if a.status == http.StatusOK {
		if err := json.Unmarshal(a.raw, &done); err != nil {
			s.t.Fatal(err)
		}
	}
	return done, a
}

// onChart makes the house expect maps of a chart that was published.
func (h *house) onChart(n *node, sha string) {
	h.t.Helper()
	a := shopper{t: h.t, base: n.url}.do(http.MethodGet, "/v1/charts/"+sha+".json", "", nil).want(h.t, http.StatusOK, "")
	c, err := seatmap.DecodeChart(a.raw)
	if err != nil {
		h.t.Fatal(err)
	}
	h.chart = c
}

func TestAChartIsPublishedWhileItsEventSells(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	one, other := h.node(), h.node()
	olga, ann := h.operator(one, "olga"), h.shopper(other, "ann")
	seats, old := h.seats(80), h.poll(one, "", "")
	watchers := []*watcher{watch(t, h.event, one.url), watch(t, h.event, other.url)}
	held := ann.hold(h.event, "", seats[4]).want(t, http.StatusCreated, "")
	sold := ann.hold(h.event, "", seats[5]).want(t, http.StatusCreated, "")
	ann.pay(sold.BookingID, "", goodCard).want(t, http.StatusCreated, "")

	_, a := olga.publish(h.event, redrawn(6), nil)
	a.want(t, http.StatusConflict, "chart_in_use")
	if got := fmt.Sprint(a.Seats); len(a.Seats) != 2 || !strings.Contains(got, seats[4]) || !strings.Contains(got, "use:held") ||
		!strings.Contains(got, seats[5]) || !strings.Contains(got, "use:sold") {
		t.Errorf("in use are %s", got)
	}
	allSee(t, watchers, func() seatmap.Map { return h.truth(t.Context(), h.rdb) }) // what was set aside is free again

	next := redrawn(4, "n1", "n2")
	next.Sections[0].Rows[0].Seats[1].Label = "5b" // ann's
	done, a := olga.publish(h.event, next, nil)
	if a.want(t, http.StatusOK, ""); done.Dropped != 4 || done.Added != 2 || done.Version != 2 || done.Chart == old.Chart {
		t.Fatalf("published %+v", done)
	}
	h.onChart(one, done.Chart)
	ann.do(http.MethodGet, "/v1/charts/"+old.Chart+".json", "", nil).want(t, http.StatusOK, "")
	eventually(t, converge, "every watcher is on the new chart", func() bool {
		return watchers[0].drawn() == done.Chart && watchers[1].drawn() == done.Chart
	})
	allSee(t, watchers, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
	for _, w := range watchers {
		if m := w.see(); m.At(0) != seatmap.Unavailable || m.At(4) != seatmap.Held || m.At(5) != seatmap.Sold || m.At(81) != seatmap.Available {
			t.Errorf("seats 0, 4, 5 and 81 are %v, %v, %v and %v", m.At(0), m.At(4), m.At(5), m.At(81))
		}
	}
	for _, n := range []*node{one, other} {
		if p := h.poll(n, "", old.tag); p.status != http.StatusOK || p.Chart != done.Chart || p.tag == old.tag {
			t.Errorf("a poll says %d, chart %s", p.status, p.Chart)
		}
		if p := h.poll(n, "", ""); h.since(n, p.N).Chart != done.Chart {
			t.Error("a poll since a number does not tell the chart")
		}
	}
	ann.hold(h.event, "", "n2").want(t, http.StatusCreated, "")
	ann.hold(h.event, "", seats[0]).want(t, http.StatusUnprocessableEntity, "unknown_seat")
	if b := ann.confirm(sold.BookingID); b.State != "sold" || !strings.Contains(string(b.raw), `"label":"6"`) {
		t.Errorf("what was sold is now %s", b.raw)
	}
	if b := ann.extend(held.BookingID).want(t, http.StatusOK, ""); strings.Contains(string(b.raw), `"label":"5b"`) {
		t.Errorf("what is held has another label: %s", b.raw)
	}
	ann.pay(held.BookingID, "", goodCard).want(t, http.StatusCreated, "")
	h.balanced(t.Context())
}

func TestChartsOfAnEventAreForOperators(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	olga := h.operator(n, "olga")
	for _, s := range []shopper{h.shopper(n, "ann"), {t: t, base: n.url}} {
		if _, a := s.publish(h.event, redrawn(2), nil); a.status != http.StatusForbidden && a.status != http.StatusUnauthorized {
			t.Errorf("anybody publishes: %d", a.status)
		}
	}
	for _, c := range []struct {
		event  string
		chart  any
		status int
		code   string
	}{
		{h.event, strings.Repeat("0", 64), 422, "unknown_chart"},
		{h.event, "hall.json", 422, "chart_refused"},
		{h.event, map[string]any{"sections": []int{1}}, 422, "chart_refused"},
		{h.event, map[string]any{}, 422, "chart_refused"},
		{h.event, 7, 422, "chart_refused"},
		{"nothing", redrawn(2), 404, "unknown_event"},
		{h.event, strings.Repeat("x", catalog.MaxChart), 413, "body_too_large"},
	} {
		_, a := olga.publish(c.event, c.chart, nil)
		a.want(t, c.status, c.code)
	}
	c := redrawn(0)
	c.Categories = append(c.Categories, seatmap.Category{Name: "Bar"})
	_, a := olga.publish(h.event, c, nil)
	if a.want(t, http.StatusUnprocessableEntity, "chart_refused"); !strings.Contains(string(a.raw), `\"Bar\"`) {
		t.Errorf("a category without a price: %s", a.raw)
	}
	olga.do(http.MethodPut, "/v1/admin/events/"+h.event+"/chart", "", map[string]any{}).want(t, http.StatusBadRequest, "bad_request")
	done, _ := olga.publish(h.event, c, map[string]int64{"Bar": 700})

	again, a := olga.publish(h.event, done.Chart, nil)
	if a.want(t, http.StatusOK, ""); again.Changed || again.Chart != done.Chart || again.Version != 2 {
		t.Errorf("the same chart by its name: %+v", again)
	}
	var told struct{ Charts []catalog.ChartVersion }
	a = olga.do(http.MethodGet, "/v1/admin/events/"+h.event+"/charts", "", nil).want(t, http.StatusOK, "")
	if err := json.Unmarshal(a.raw, &told); err != nil || len(told.Charts) != 2 || told.Charts[0].Chart != done.Chart || told.Charts[0].By != "olga" {
		t.Errorf("its charts: %s", a.raw)
	}
	olga.do(http.MethodGet, "/v1/admin/events/nothing/charts", "", nil).want(t, http.StatusNotFound, "unknown_event")
}

// press is what publishes in this process.
func (h *house) press() (*catalog.Publisher, *holds.Store, *catalog.Store) {
	h.t.Helper()
	ledger, err := checkout.NewStore(h.pool)
	if err != nil {
		h.t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	store, shop := holds.New(h.rdb, ledger, nobodyHears{}, quiet), catalog.New(h.pool)
	return catalog.NewPublisher(shop, store, quiet), store, shop
}

// Of a seat that is dropped and taken in the same moment either the taker has
// it and the chart is refused, or the chart is in force and the taker is
// refused: never both.
func TestASeatIsDroppedOrTakenNeverBoth(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	press, store, shop := h.press()
	won, lost := 0, 0
	for round := range 60 {
		sale, err := shop.Sale(t.Context(), h.event)
		if err != nil {
			t.Fatal(err)
		}
		less := 1 + round%4
		if round%2 == 1 {
			less = 0 // they come back
		}
		taken := h.takersOf(store, sale, round)
		_, err = press.Publish(t.Context(), catalog.Publication{Event: h.event, Chart: redrawn(less, "n1")})
		got := taken()
		var used *catalog.InUseError
		switch {
		case err == nil:
			won++
		case errors.As(err, &used):
			lost++
		default:
			t.Fatal(err)
		}
		for i, token := range got {
			if i < less && err == nil && h.count(t.Context(), `SELECT count(*) FROM seats WHERE event_id = $1 AND i = $2 AND dropped`, h.event, i) == 1 {
				t.Errorf("round %d: seat %d is dropped and somebody's", round, i)
			}
			if err := store.Release(t.Context(), h.event, token, "taker"+token); err != nil {
				t.Fatal(err)
			}
		}
	}
	if won < 5 || lost < 5 {
		t.Errorf("%d charts were published and %d refused: neither side wins often enough to tell", won, lost)
	}
}

// takersOf sends shoppers for the first four seats of a sale, some of whom go by
// a chart that is no more; the function it returns waits for them and returns
// the token of who has each seat.
func (h *house) takersOf(store *holds.Store, sale *seatmap.Sale, round int) func() map[int]string {
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		got = map[int]string{}
	)
	for k := range 12 {
		i, wait := k%4, time.Duration(rand.IntN(30))*time.Millisecond
		wg.Go(func() {
			if !pause(context.Background(), wait) {
				return
			}
			token := fmt.Sprintf("%d-%d", round, k)
			_, err := store.Take(context.Background(), holds.TakeRequest{Event: h.event, Token: token, User: "taker" + token, Seats: []int{i},
				Quote: json.RawMessage(`{}`), Hash: token, Terms: sale.Terms})
			if err == nil {
				mu.Lock()
				got[i] = token
				mu.Unlock()
			}
		})
	}
	return func() map[int]string {
		wg.Wait()
		return got
	}
}

func TestAPublisherKilledBeforeItsCommitLeavesHoldsThatEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	watchers := twoHubs(t, h)
	other, doomed := h.node(desk), h.fated("die before chart", onlyAPI)
	before := watchers[0].drawn()
	if _, a := h.operator(doomed, "olga").publish(h.event, redrawn(4), nil); a.status != 0 {
		t.Errorf("a node that died answered %d", a.status)
	}
	doomed.diedBySignal(t)
	allSee(t, watchers, func() seatmap.Map { return stateOf(h.chart.Seats, seatmap.Held, 0, 1, 2, 3) })
	eventually(t, 10*time.Second, "what it held is free again", func() bool { return h.rdb.Exists(t.Context(), seatmap.HoldKey(h.event, 0)).Val() == 0 })
	allSee(t, watchers, func() seatmap.Map { return seatmap.NewMap(h.chart.Seats) })
	if watchers[0].drawn() != before {
		t.Error("a chart that was not published is in force")
	}
	_, a := h.operator(other, "olga").publish(h.event, redrawn(4), nil)
	a.want(t, http.StatusOK, "")
}

func TestAChartWhosePublisherWasKilledIsToldByAnotherNode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	watchers := twoHubs(t, h)
	before := watchers[0].drawn()
	other, doomed := h.node(desk), h.fated("die before reset", onlyAPI)
	if _, a := h.operator(doomed, "olga").publish(h.event, redrawn(4, "n1"), nil); a.status != 0 {
		t.Errorf("a node that died answered %d", a.status)
	}
	doomed.diedBySignal(t)
	ann := h.shopper(other, "ann")
	eventually(t, 5*time.Second, "a new seat can be held", func() bool { return ann.hold(h.event, "", "n1").status == http.StatusCreated })
	eventually(t, 5*time.Second, "every watcher is on the new chart", func() bool {
		return watchers[0].drawn() != before && watchers[0].drawn() == watchers[1].drawn()
	})
	h.onChart(other, watchers[0].drawn())
	allSee(t, watchers, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
	eventually(t, 5*time.Second, "nothing is left to tell", func() bool {
		return h.count(t.Context(), `SELECT count(*) FROM events WHERE chart_version <> chart_told`) == 0
	})
	if m := watchers[0].see(); m.At(0) != seatmap.Unavailable || m.At(80) != seatmap.Held {
		t.Errorf("seats 0 and 80 are %v and %v", m.At(0), m.At(80))
	}
}

func TestAnEventsChartIsPublishedByCommand(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	stores := []string{"--postgres", h.pool.Config().ConnString(), "--redis", h.redis.URL()}
	body, _, err := redrawn(2, "n1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"event", "chart", h.event, file(t, "next.json", body)}, stores...)
	sha, said, err := call(t, args...)
	if err != nil || !strings.Contains(said, "version 2: 1 seats added, 2 dropped, 0 restored") {
		t.Fatalf("%q, %v", said, err)
	}
	if again, said, err := call(t, append([]string{"event", "chart", h.event, strings.TrimSpace(sha)}, stores...)...); err != nil || again != sha || !strings.Contains(said, "version 2") {
		t.Errorf("again: %q, %q, %v", again, said, err)
	}
	n := h.node()
	seat := h.seats(4)[3]
	h.shopper(n, "ann").hold(h.event, "", seat).want(t, http.StatusCreated, "")
	if body, _, err = redrawn(4).Encode(); err != nil {
		t.Fatal(err)
	}
	if _, _, err = call(t, append([]string{"event", "chart", h.event, file(t, "next.json", body)}, stores...)...); err == nil || !strings.Contains(err.Error(), "seat "+seat+" (") {
		t.Errorf("a held seat is dropped: %v", err)
	}
	if _, _, err = call(t, "event", "chart", h.event, "/nonexistent.json", "--postgres", "postgres://x/y", "--redis", "redis://x"); err == nil {
		t.Error("a file that is not there is published")
	}
}

func TestThePageGoesOnUnderAnotherChart(t *testing.T) {
	t.Parallel()
	h, n, p := atMap(t)
	p.tap(0)
	p.tap(5)
	p.Until("two are chosen", holdButton+`?.innerText === 'Hold 2'`)

	next := redrawn(2, "n1", "n2")
	next.Categories = append(next.Categories, seatmap.Category{Name: "Bar stools"})
	next.Sections[0].Rows[len(next.Sections[0].Rows)-1].Seats[0].Category = "Bar stools"
	done, a := h.operator(n, "olga").publish(h.event, next, map[string]int64{"Bar stools": 770})
	a.want(t, http.StatusOK, "")
	p.Until("the new category is there, with its price", `document.getElementById('legend').innerText.includes('Bar stools') && document.getElementById('legend').innerText.includes('7.70')`)
	p.Until("what is not drawn any more is not chosen", holdButton+`?.innerText === 'Hold 1'`)
	p.Until("the map is live", `document.getElementById('live').dataset.mode === 'live' && document.querySelector('#legend small')?.innerText`)
	h.onChart(n, done.Chart)
	browsertest.Eval[int](p.Page, `for (const close of document.querySelectorAll('.note button')) close.click(); return 0;`) // what it says lies on the map
	p.tap(80)
	p.Until("a new seat is chosen", holdButton+`?.innerText === 'Hold 2'`)
	p.press(holdButton)
	p.stage("held")
	if held := h.count(t.Context(), `SELECT count(*) FROM seats WHERE event_id = $1 AND dropped`, h.event); held != 2 {
		t.Errorf("%d seats are dropped", held)
	}
	want := stateOf(h.chart.Seats, seatmap.Held, 5, 80)
	want.Set(0, seatmap.Unavailable)
	want.Set(1, seatmap.Unavailable)
	if got := h.poll(n, "", ""); string(got.Map) != string(want) {
		t.Error(differ(want, got.Map))
	}
	p.clean()
}
