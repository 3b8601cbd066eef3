package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"seatcast/catalog"
	"seatcast/checkout"
	"seatcast/holds"
	"seatcast/seatmap"
	"seatcast/seatmap/history"
	"seatcast/web"
)

// past is a moment somebody has seen: what the map was once number n had
// happened, and until the next change.
type past struct {
	n    int64 // 0: it was lost, nobody knows when
	seen int64 // the same, whatever became of it
	at   int64 // ms
	m    seatmap.Map
	by   map[int]int64 // by seat: the change that made it so, as far as one was seen
}

// traveller changes an event in every way there is, records it now and then, and
// remembers what everybody could see at each moment.
type traveller struct {
	*house
	rt       *rapid.T
	store    *holds.Store
	recorder *history.Recorder
	admin    http.Handler
	serial   int
	open     []seatmap.Basket
	kept     map[string]copied // the keys of a replica, when it has parted
	pasts    []past
}

type mute struct{}

func (mute) Publish(context.Context, string, []byte) {}

var travelTerms = seatmap.Terms{Hold: time.Minute, Pay: time.Minute, Cap: time.Hour, Grace: time.Second,
	SeatsPerBooking: 8, SeatsPerUser: 80, HoldsPerUser: 1000}

const travelSeats = 12

// Random operations, Redis emptied, failed over and its log cut short among
// them, recorded at random: what a seat was at any moment is what the map was
// then, unless the answer says that it is not known.
func TestTimeTravelIsTheMapReplayed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	ledger, err := checkout.NewStore(h.pool)
	if err != nil {
		t.Fatal(err)
	}
	store := holds.New(h.rdb, ledger, mute{}, slog.New(slog.DiscardHandler))
	book, shop := history.NewBook(h.pool), catalog.New(h.pool)
	e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	history.NewAPI(book, shop, store).MountAdmin(e.Group("/v1/admin", web.AsOperator("ada")))
	recorder := history.NewRecorder(history.Options{Book: book, Redis: h.rdb, Rebuilder: store, Log: slog.New(slog.DiscardHandler)})

	sure, unsure := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		event := *h
		event.event = h.create(plan{chart: h.chart, mode: catalog.Ordinary})
		w := &traveller{house: &event, rt: rt, store: store, recorder: recorder, admin: e}
		w.none(store.Rebuild(context.Background(), w.event, 0))
		w.record()
		w.look()
		rt.Repeat(map[string]func(*rapid.T){
			"take":    w.take,
			"brief":   w.brief,
			"release": w.release,
			"swap":    w.swap,
			"sell":    func(*rapid.T) { w.decide("sold") },
			"kill":    func(*rapid.T) { w.decide("unavailable") },
			"restore": func(*rapid.T) { w.decide("available") },
			"rebuild": w.rebuild,
			"flush":   func(*rapid.T) { w.forget() },
			"part":    func(*rapid.T) { w.kept = w.dump() },
			"promote": w.promote,
			"trim":    func(*rapid.T) { w.rdb.XTrimMaxLen(context.Background(), seatmap.LogKey(w.event), 1) },
			"record":  func(*rapid.T) { w.record() },
			"":        func(*rapid.T) { w.look() },
		})
		a, b := w.travel()
		sure, unsure = sure+a, unsure+b
	})
	if sure < 20*unsure/100 || sure == 0 {
		t.Errorf("of %d answers all but %d were not sure", sure+unsure, sure)
	}
	t.Logf("%d moments of a seat were known, %d lay in gaps", sure, unsure)
}

func (w *traveller) none(err error) {
	w.rt.Helper()
	if err != nil {
		w.rt.Fatal(err)
	}
}

func (w *traveller) record() {
	w.rt.Helper()
	w.none(w.recorder.Record(context.Background(), w.event))
}

func (w *traveller) request(rt *rapid.T) holds.TakeRequest {
	w.serial++
	seats := rapid.SliceOfNDistinct(rapid.IntRange(0, travelSeats-1), 1, 4, rapid.ID).Draw(rt, "seats")
	slices.Sort(seats)
	return holds.TakeRequest{Event: w.event, Token: fmt.Sprintf("%06d-token", w.serial), User: "ann", Seats: seats,
		Quote: json.RawMessage(`{}`), Hash: "h", Terms: travelTerms}
}

func (w *traveller) take(rt *rapid.T) {
	if b, err := w.store.Take(context.Background(), w.request(rt)); err == nil {
		w.open = append(w.open, b)
	}
}

// brief is a hold that ends by itself at once.
func (w *traveller) brief(rt *rapid.T) {
	r := w.request(rt)
	r.Terms.Hold, r.Terms.Grace = time.Millisecond, 0
	if _, err := w.store.Take(context.Background(), r); err != nil {
		return
	}
	w.look()
	w.record()
	eventually(w.t, 20*time.Second, "the hold is over", func() bool {
		return w.rdb.Get(context.Background(), seatmap.HoldKey(w.event, r.Seats[0])).Val() != r.Token
	})
	w.none(w.store.Lapse(context.Background(), w.event))
}

func (w *traveller) drawBasket(rt *rapid.T) seatmap.Basket {
	if len(w.open) == 0 {
		rt.Skip("nothing is held")
	}
	return rapid.SampledFrom(w.open).Draw(rt, "basket")
}

func (w *traveller) release(rt *rapid.T) {
	b := w.drawBasket(rt)
	_ = w.store.Release(context.Background(), w.event, b.Token, b.User) // it may be sold or forgotten
}

func (w *traveller) swap(rt *rapid.T) {
	b, r := w.drawBasket(rt), w.request(rt)
	_, _ = w.store.Swap(context.Background(), holds.SwapRequest{Event: w.event, Token: b.Token, User: b.User, Seats: r.Seats, Terms: travelTerms,
		Quote: func(seatmap.Basket) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }}) // it may be refused
}

// decide is what Postgres says of a seat from now on, and Redis is told.
func (w *traveller) decide(status string) {
	w.rt.Helper()
	ctx, i := context.Background(), rapid.IntRange(0, travelSeats-1).Draw(w.rt, "seat")
	_, err := w.pool.Exec(ctx, `INSERT INTO bookings (id, event_id, user_id, state, seats, currency, amount, quote, request_hash, first_held_at, deadline, cap_at)
		VALUES ($1 || '.office', $1, 'office', 'sold', '{}', 'EUR', 0, '{}', '', now(), now(), now()) ON CONFLICT DO NOTHING`, w.event)
	w.none(err)
	_, err = w.pool.Exec(ctx, `UPDATE seats SET status = $3, off_sale = $3 = 'unavailable', booking_id = CASE WHEN $3 = 'sold' THEN $1 || '.office' END
		WHERE event_id = $1 AND i = $2`, w.event, i, status)
	w.none(err)
	switch status {
	case "sold":
		w.none(w.store.Spend(ctx, w.event, seatmap.Marks{Seats: []int{i}}))
	case "unavailable":
		w.none(w.store.Spend(ctx, w.event, seatmap.Marks{Closed: []int{i}}))
	default:
		w.none(w.store.Restore(ctx, w.event, seatmap.Marks{Seats: []int{i}}))
	}
}

func (w *traveller) rebuild(*rapid.T) {
	w.none(w.store.Rebuild(context.Background(), w.event, w.top()))
}

// forget is a Redis that has lost everything.
func (w *traveller) forget() {
	for _, key := range w.rdb.Keys(context.Background(), "*{"+w.event+"}*").Val() {
		w.rdb.Del(context.Background(), key)
	}
	w.lost()
}

// lost ends what was seen last: until when it was so nobody knows.
func (w *traveller) lost() {
	if k := len(w.pasts) - 1; k >= 0 {
		w.pasts[k].n = 0
	}
}

// copied is a key as a replica has it.
type copied struct {
	value string
	ends  time.Duration // since 1970; below zero: never
}

func (w *traveller) dump() map[string]copied {
	ctx, all := context.Background(), map[string]copied{}
	for _, key := range w.rdb.Keys(ctx, "*{"+w.event+"}*").Val() {
		if c := (copied{w.rdb.Dump(ctx, key).Val(), w.rdb.PExpireTime(ctx, key).Val()}); c.value != "" {
			all[key] = c
		}
	}
	return all
}

// promote goes on with what the replica had when it parted. Either everything that is
// lost was recorded, or somebody has followed the event and has it rebuilt: what
// nobody has read before it was lost nobody can miss. Of a Redis that is empty nothing
// can be recorded any more.
func (w *traveller) promote(rt *rapid.T) {
	if len(w.kept) == 0 {
		rt.Skip("there is no replica")
	}
	followed := rapid.Bool().Draw(rt, "followed")
	if w.rdb.Exists(context.Background(), seatmap.SeqKey(w.event)).Val() == 0 {
		followed = true
	}
	if !followed {
		w.record()
	}
	top := w.top()
	w.forget()
	for key, c := range w.kept {
		w.none(w.rdb.Do(context.Background(), "RESTORE", key, max(c.ends.Milliseconds(), 0), c.value, "ABSTTL").Err())
	}
	w.kept = nil
	if followed {
		w.none(w.store.Rebuild(context.Background(), w.event, top))
	}
}

// top is the highest number anybody has seen.
func (w *traveller) top() (n int64) {
	for _, p := range w.pasts {
		n = max(n, p.seen)
	}
	return n
}

// look remembers what can be seen now.
func (w *traveller) look() {
	ctx := context.Background()
	n, err := w.rdb.Get(ctx, seatmap.SeqKey(w.event)).Int64()
	if err == redis.Nil || len(w.pasts) > 0 && w.pasts[len(w.pasts)-1].n == n {
		return
	}
	w.none(err)
	m, err := w.rdb.Get(ctx, seatmap.MapKey(w.event)).Result()
	w.none(err)
	log := w.log(ctx)
	if len(log) == 0 || log[len(log)-1].N != n {
		w.rt.Fatalf("at %d the log has %v", n, log)
	}
	at := log[len(log)-1].At
	by := map[int]int64{}
	for _, c := range log {
		if c.Reset {
			clear(by) // it does not say what it changes
		}
		c.Each(func(i int, _ seatmap.Status) { by[i] = c.N })
	}
	w.pasts = append(w.pasts, past{n: n, seen: n, at: at, m: seatmap.Map(m), by: by})
}

// travel asks what some seats were at some moments, and at last what all are now.
func (w *traveller) travel() (sure, unsure int) {
	w.rt.Helper()
	w.none(w.store.Rebuild(context.Background(), w.event, 0)) // if it is cold
	w.record()
	w.look()
	for range min(20, 2*len(w.pasts)) {
		k := rapid.IntRange(0, len(w.pasts)-1).Draw(w.rt, "moment")
		p, i := w.pasts[k], rapid.IntRange(0, travelSeats-1).Draw(w.rt, "seat")
		if p.n == 0 || k+1 < len(w.pasts) && w.pasts[k+1].at <= p.at {
			continue // two changes in one millisecond
		}
		a := w.ask(i, "at="+url.QueryEscape(time.UnixMilli(p.at).UTC().Format(time.RFC3339Nano)))
		if len(a.Gaps) > 0 {
			unsure++
			continue
		}
		sure++
		if a.Status != p.m.At(i).String() {
			w.rt.Fatalf("at %d, number %d, seat %d was %v, and it is said %+v", p.at, p.n, i, p.m.At(i), a)
		}
		// A later one is of a history that was lost, in which the seat came to be the same.
		if len(a.Entries) == 1 && !a.Entries[0].Seen && a.Entries[0].N < p.by[i] {
			w.rt.Fatalf("change %d made seat %d so, and it is said %+v", p.by[i], i, a.Entries[0])
		}
	}
	now := w.pasts[len(w.pasts)-1]
	for i := range travelSeats {
		if a := w.ask(i, ""); now.n != 0 && a.Status != now.m.At(i).String() {
			w.rt.Fatalf("seat %d is %v, and it is said %+v", i, now.m.At(i), a)
		}
	}
	return sure, unsure
}

func (w *traveller) ask(seat int, query string) (a history.Answer) {
	w.rt.Helper()
	rec := httptest.NewRecorder()
	path := "/v1/admin/events/" + w.event + "/seats/" + url.PathEscape(w.seats(travelSeats)[seat]) + "/history?" + query
	w.admin.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	if rec.Code != http.StatusOK {
		w.rt.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
	}
	w.none(json.Unmarshal(rec.Body.Bytes(), &a))
	return a
}
