package holds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
)

func TestMain(m *testing.M) { devtest.Main(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// judge tells a truth that tests write, as Postgres would.
type judge func(ctx context.Context, event string) seatmap.Truth

func (j judge) Truth(ctx context.Context, event string, use func(context.Context, seatmap.Truth) error) error {
	return use(ctx, j(ctx, event))
}

type voice func(event string, change []byte)

func (v voice) Publish(_ context.Context, event string, change []byte) { v(event, change) }

// house is one event on a real Redis, and all that was published of it.
type house struct {
	testing.TB
	event string
	rdb   *redis.Client
	store *holds.Store

	mu        sync.Mutex
	truth     seatmap.Truth
	asked     int // how often the truth was asked for
	published []string
}

// setup is a warm event of so many seats on the Redis all tests share.
func setup(tb testing.TB, seats int) *house {
	tb.Helper()
	h := cold(tb, devtest.Redis(tb), seats)
	h.must(h.store.Rebuild(tb.Context(), h.event, 0))
	return h
}

// cold is an event whose keys are not there.
func cold(tb testing.TB, rdb *redis.Client, seats int) *house {
	h := &house{TB: tb, event: devtest.Event(tb), rdb: rdb, truth: seatmap.Truth{Seats: seats, Left: map[string]int{}}}
	h.store = holds.New(rdb, judge(h.ask), voice(h.hear), quiet)
	return h
}

func (h *house) ask(context.Context, string) seatmap.Truth {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	t := h.truth
	t.Sold, t.Closed, t.Baskets = slices.Clone(t.Sold), slices.Clone(t.Closed), slices.Clone(t.Baskets)
	return t
}

func (h *house) hear(event string, change []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if event == h.event {
		h.published = append(h.published, string(change))
	}
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

var terms = seatmap.Terms{Hold: 8 * time.Minute, Pay: 5 * time.Minute, Cap: 20 * time.Minute, Grace: 30 * time.Second,
	SeatsPerBooking: 8, SeatsPerUser: 8}

var quote = []byte(`{"seats":[{"i":11,"ticketId":"n-12-7","label":"7","section":"North","row":"12","category":"Gold","price":9500},` +
	`{"i":12,"ticketId":"n-12-8","label":"8","section":"North","row":"12","category":"Gold","price":9500}],"areas":[],"total":{"amount":19000,"currency":"EUR"}}`)

// asks is a request whose token, account and hash follow from its name.
func (h *house) asks(name string, seats ...int) holds.TakeRequest {
	return holds.TakeRequest{Event: h.event, Token: "token-" + name, User: "user-" + name, Seats: seats,
		Quote: quote, Hash: "hash-" + name, Terms: terms}
}

// takes is asks, granted.
func (h *house) takes(name string, seats ...int) seatmap.Basket {
	h.Helper()
	b, err := h.store.Take(h.Context(), h.asks(name, seats...))
	h.must(err)
	return b
}

// dump is every key of the event, with its value and its end.
func (h *house) dump() map[string]string {
	h.Helper()
	ctx := context.Background()
	keys, err := h.rdb.Keys(ctx, "*{"+h.event+"}*").Result()
	h.must(err)
	out := map[string]string{}
	for _, key := range keys {
		end, err := h.rdb.PExpireTime(ctx, key).Result()
		h.must(err)
		value, err := h.rdb.Dump(ctx, key).Result()
		if kind := h.rdb.Type(ctx, key).Val(); kind == "hash" { // its order is not its value
			var fields map[string]string
			fields, err = h.rdb.HGetAll(ctx, key).Result()
			value = fmt.Sprint(fields)
		}
		h.must(err)
		out[key] = fmt.Sprint(end, value)
	}
	return out
}

// unchanged fails when f changes a key of the event or publishes something.
func (h *house) unchanged(what string, f func()) {
	h.Helper()
	before, heard := h.dump(), len(h.heard())
	f()
	after := h.dump()
	for key := range before {
		if after[key] != before[key] {
			h.Errorf("%s: changed %s", what, key)
		}
	}
	for key := range after {
		if _, there := before[key]; !there {
			h.Errorf("%s: made %s", what, key)
		}
	}
	if len(h.heard()) != heard {
		h.Errorf("%s: published %s", what, h.heard()[heard:])
	}
}

func (h *house) heard() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.published)
}

// log is every change of the event's log.
func (h *house) log() []seatmap.Change {
	h.Helper()
	entries, err := h.rdb.XRange(context.Background(), seatmap.LogKey(h.event), "-", "+").Result()
	h.must(err)
	out := make([]seatmap.Change, len(entries))
	for k, entry := range entries {
		h.must(json.Unmarshal([]byte(entry.Values["c"].(string)), &out[k]))
		if id := strconv.FormatInt(out[k].N, 10) + "-0"; id != entry.ID {
			h.Errorf("change %d is logged as %s", out[k].N, entry.ID)
		}
	}
	return out
}

func (h *house) seatmap() seatmap.Map {
	h.Helper()
	m, err := h.rdb.Get(context.Background(), seatmap.MapKey(h.event)).Bytes()
	h.must(err)
	return m
}

func (h *house) holder(seat int) string {
	h.Helper()
	v, err := h.rdb.Get(context.Background(), seatmap.HoldKey(h.event, seat)).Result()
	if err != redis.Nil {
		h.must(err)
	}
	return v
}

// counts is how many seats the index of an account names.
func (h *house) counts(user string) int {
	h.Helper()
	index, err := h.rdb.Get(context.Background(), seatmap.UserKey(h.event, user)).Result()
	if err != redis.Nil {
		h.must(err)
	}
	n := 0
	for hold := range strings.FieldsSeq(index) {
		if _, seats, ok := strings.Cut(hold, ":"); ok {
			n += len(strings.Split(seats, ","))
		}
	}
	return n
}

// eventually polls for at most five seconds.
func (h *house) eventually(what string, f func() bool) {
	h.Helper()
	for begun := time.Now(); !f(); time.Sleep(2 * time.Millisecond) {
		if devtest.Late(begun, 5*time.Second) {
			h.Fatalf("not within five seconds: %s", what)
		}
	}
}

// sound derives the event's invariants anew: once what has ended has lapsed,
// the map is what the hold keys say, every live hold is indexed with its end,
// every change follows the one before it, and seq is the last one's number.
func (h *house) sound() {
	h.Helper()
	for begun := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		h.must(h.store.Lapse(context.Background(), h.event))
		how := h.differs()
		if how == "" {
			break
		}
		if devtest.Late(begun, 5*time.Second) {
			h.Fatalf("map and hold keys do not agree: %s", how)
		}
	}
	h.chained()
}

// differs says how the map differs from the hold keys, "" when it does not.
func (h *house) differs() string {
	h.Helper()
	ctx := context.Background()
	m := h.seatmap()
	h.mu.Lock()
	seats := h.truth.Seats
	h.mu.Unlock()
	if want := len(seatmap.NewMap(seats)); len(m) != want {
		return fmt.Sprintf("the map has %d bytes, want %d", len(m), want)
	}
	index, err := h.rdb.ZRangeWithScores(ctx, seatmap.HeldKey(h.event), 0, -1).Result()
	h.must(err)
	ends := map[string]float64{}
	for _, z := range index {
		for seat := range strings.SplitSeq(z.Member.(string), ",") {
			ends[seat] = max(ends[seat], z.Score)
		}
	}
	for i := range seats {
		want := seatmap.Available
		switch holder := h.holder(i); holder {
		case "":
		case seatmap.SoldMark:
			want = seatmap.Sold
		case seatmap.ClosedMark:
			want = seatmap.Unavailable
		default:
			want = seatmap.Held
			end := h.rdb.PExpireTime(ctx, seatmap.HoldKey(h.event, i)).Val()
			if ends[strconv.Itoa(i)] != float64(end.Milliseconds()) && end > 0 {
				return fmt.Sprintf("seat %d is held until %d, and held says %.0f", i, end.Milliseconds(), ends[strconv.Itoa(i)])
			}
		}
		if got := m.At(i); got != want {
			return fmt.Sprintf("seat %d is %s on the map and %s by its key", i, got, want)
		}
	}
	return ""
}

func (h *house) chained() {
	h.Helper()
	changes := h.log()
	for k := 1; k < len(changes); k++ {
		if changes[k].Prev != changes[k-1].N || changes[k].N <= changes[k-1].N {
			h.Errorf("change %d says it follows %d, but %d is before it", changes[k].N, changes[k].Prev, changes[k-1].N)
		}
	}
	seq, err := h.rdb.Get(context.Background(), seatmap.SeqKey(h.event)).Result()
	h.must(err)
	if last := strconv.FormatInt(changes[len(changes)-1].N, 10); last != seq {
		h.Errorf("seq is %s and the last change %s", seq, last)
	}
}

// told fails when what was published is not what was logged.
func (h *house) told() {
	h.Helper()
	entries, err := h.rdb.XRange(context.Background(), seatmap.LogKey(h.event), "-", "+").Result()
	h.must(err)
	logged := make([]string, len(entries))
	for k, entry := range entries {
		logged[k] = entry.Values["c"].(string)
	}
	if heard := h.heard(); !slices.Equal(heard, logged) {
		h.Errorf("published\n%s\nlogged\n%s", strings.Join(heard, "\n"), strings.Join(logged, "\n"))
	}
}

// zs gives seats one score, as entries of the index.
func zs(score float64, seats ...int) []redis.Z {
	out := make([]redis.Z, len(seats))
	for k, i := range seats {
		out[k] = redis.Z{Score: score, Member: i}
	}
	return out
}

// hot says which events' maps are pushed.
type hot []string

func (e hot) Sale(context.Context, string) (*seatmap.Sale, error) { return nil, seatmap.ErrNoEvent }
func (e hot) Hot(context.Context) ([]string, error)               { return e, nil }

// tick waits for the next millisecond of the clock of Redis.
func (h *house) tick() {
	h.Helper()
	now := func() int64 {
		t, err := h.rdb.Time(h.Context()).Result()
		h.must(err)
		return t.UnixMilli()
	}
	for began := now(); now() == began; {
	}
}

// takesAgain is what a take that was granted before holds.
func (h *house) takesAgain(r holds.TakeRequest) seatmap.Basket {
	h.Helper()
	b, err := h.store.Take(h.Context(), r)
	h.must(err)
	return b
}
