package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seatcast/internal/devstack/devtest"
	"seatcast/seatmap"
	"seatcast/seatmap/live"
)

const seats = 400

// writer changes an event in Redis as the scripts of holds do: the map, the
// number and the log in one step.
type writer struct {
	tb    testing.TB
	rdb   *redis.Client
	event string
	nc    *nats.Conn // what rebuild says goes here

	mu       sync.Mutex
	m        seatmap.Map
	areas    map[string]int
	rebuilds []int64 // the positions it was called with
	lapses   int
}

func newWriter(tb testing.TB, rdb *redis.Client, nc *nats.Conn) *writer {
	w := &writer{tb: tb, rdb: rdb, nc: nc, event: devtest.Event(tb), m: seatmap.NewMap(seats), areas: map[string]int{"floor": 500}}
	w.change(seatmap.Change{Reset: true})
	return w
}

// change gives c its numbers, writes it and returns it.
func (w *writer) change(c seatmap.Change) seatmap.Change {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	c, err := w.changeLocked(context.Background(), c, 0)
	if err != nil {
		w.tb.Fatal(err)
	}
	return c
}

func (w *writer) changeLocked(ctx context.Context, c seatmap.Change, above int64) (seatmap.Change, error) {
	last, err := w.rdb.Get(ctx, seatmap.SeqKey(w.event)).Int64()
	if err != nil && err != redis.Nil {
		return c, err
	}
	now := time.Now()
	c.N, c.Prev, c.At = max(last+1, above+1, now.UnixMicro()), last, now.UnixMilli()
	c.Apply(w.m)
	maps.Copy(w.areas, c.Areas)
	body, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	_, err = w.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, seatmap.MapKey(w.event), []byte(w.m), 0)
		for area, left := range w.areas {
			p.HSet(ctx, seatmap.AreasKey(w.event), area, left)
		}
		p.XAdd(ctx, &redis.XAddArgs{Stream: seatmap.LogKey(w.event), ID: strconv.FormatInt(c.N, 10) + "-0", Values: []any{"c", body}})
		p.Set(ctx, seatmap.SeqKey(w.event), c.N, 0)
		return nil
	})
	return c, err
}

// Rebuild is holds' rebuild: a reset numbered above position, which it says.
func (w *writer) Rebuild(ctx context.Context, _ string, position int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rebuilds = append(w.rebuilds, position)
	reset, err := w.rdb.Get(ctx, seatmap.ResetKey(w.event)).Int64()
	if err == nil && reset > position {
		return nil
	}
	c, err := w.changeLocked(ctx, seatmap.Change{Reset: true}, position)
	if err != nil {
		return err
	}
	if err := w.rdb.Set(ctx, seatmap.ResetKey(w.event), c.N, 0).Err(); err != nil {
		return err
	}
	return publish(w.nc, w.event, c)
}

func (w *writer) Lapse(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lapses++
	return nil
}

func (w *writer) rebuilt() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int64(nil), w.rebuilds...)
}

func (w *writer) state() (seatmap.Map, map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(seatmap.Map(nil), w.m...), maps.Clone(w.areas)
}

func publish(nc *nats.Conn, event string, c seatmap.Change) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return nc.Publish("seatmap."+event, body)
}

// say publishes changes in the order given and returns when the server has
// them.
func (w *writer) say(changes ...seatmap.Change) {
	w.tb.Helper()
	for _, c := range changes {
		if err := publish(w.nc, w.event, c); err != nil {
			w.tb.Fatal(err)
		}
	}
	if err := w.nc.Flush(); err != nil {
		w.tb.Fatal(err)
	}
}

func reserve(i ...int) seatmap.Change { return seatmap.Change{Reserved: i} }

// crowd is everybody who watches, as a Broadcaster: it holds a map and applies
// what it is told, as a browser does.
type crowd struct {
	tb testing.TB

	mu     sync.Mutex
	n      int64
	m      seatmap.Map
	areas  map[string]int
	deltas []seatmap.Delta
	merged []int64 // all numbers published
	resets []int64
	words  []string      // degradations and ends
	ats    []time.Time   // of the deltas, as the hub is told
	gate   chan struct{} // when set, Publish waits for it to be closed
	walk   chan struct{} // when set, it is closed when a fan-out ends; else one ends at once
}

func (c *crowd) Publish(_ string, prev int64, numbers []int64, at time.Time, data []byte) <-chan struct{} {
	c.mu.Lock()
	gate, walked := c.gate, c.walk
	c.mu.Unlock()
	if walked == nil {
		walked = make(chan struct{})
		close(walked)
	}
	if gate != nil {
		c.word("publishing")
		<-gate
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var d seatmap.Delta
	if err := json.Unmarshal(data, &d); err != nil {
		c.tb.Error(err)
	}
	if n := numbers[len(numbers)-1]; d.N != n || d.Prev != prev {
		c.tb.Errorf("frame says %d after %d, the hub is told %d after %d", d.N, d.Prev, n, prev)
	}
	c.deltas, c.ats = append(c.deltas, d), append(c.ats, at)
	c.merged = append(c.merged, numbers...)
	if c.m == nil || d.N <= c.n {
		return walked // before the first snapshot, or older than it
	}
	if d.Prev > c.n {
		c.tb.Errorf("a delta from %d reached watchers at %d", d.Prev, c.n)
	}
	(&seatmap.Change{Reserved: d.Reserved, Released: d.Released, Booked: d.Booked, Closed: d.Closed}).Apply(c.m)
	maps.Copy(c.areas, d.Areas)
	c.n = d.N
	return walked
}

func (c *crowd) Reset(_ string, n int64, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resets = append(c.resets, n)
	c.takeLocked(data)
}

func (c *crowd) takeLocked(data []byte) {
	var s seatmap.Snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		c.tb.Error(err)
	}
	if s.N < c.n {
		c.tb.Errorf("watchers at %d were given a snapshot of %d", c.n, s.N)
	}
	c.n, c.m, c.areas = s.N, s.Map, s.Areas
}

func (c *crowd) Degrade(topic, reason, poll string) {
	c.word(fmt.Sprintf("degraded %s %q %s", topic, reason, poll))
}
func (c *crowd) End(topic string) { c.word("end " + topic) }

func (c *crowd) word(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.words = append(c.words, s)
}

// number is what the watchers are at.
func (c *crowd) number() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *crowd) shows(m seatmap.Map, areas map[string]int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.m) == string(m) && maps.Equal(c.areas, areas)
}

// sales is the catalog as these tests need it.
type sales struct {
	mu  sync.Mutex
	all map[string]*seatmap.Sale
}

func (s *sales) Sale(_ context.Context, event string) (*seatmap.Sale, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sale := s.all[event]; sale != nil {
		return sale, nil
	}
	return nil, seatmap.ErrNoEvent
}

func (s *sales) Hot(context.Context) (hot []string, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for event, sale := range s.all {
		if sale.Hot {
			hot = append(hot, event)
		}
	}
	return hot, nil
}

func (s *sales) put(event string, hot bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[event] = &seatmap.Sale{Event: event, Hot: hot, ChartSHA: "c0ffee", Chart: &seatmap.Chart{Seats: seats}}
}

// bundle is one node: a feed on real servers and its crowd.
type bundle struct {
	*writer
	feed  *live.Feed
	crowd *crowd
	sales *sales
	reg   *prometheus.Registry
	maps  *live.Maps
}

func setup(tb testing.TB) *bundle {
	tb.Helper()
	w := newWriter(tb, devtest.Redis(tb), devtest.NATS(tb))
	return node(tb, w, devtest.NATS(tb), live.FeedOptions{})
}

// node runs a feed of w's event until the test ends. Its crowd has a snapshot
// when node returns.
func node(tb testing.TB, w *writer, ear *nats.Conn, o live.FeedOptions) *bundle {
	tb.Helper()
	b := &bundle{writer: w, crowd: &crowd{tb: tb}, sales: &sales{all: map[string]*seatmap.Sale{}}, reg: prometheus.NewRegistry()}
	b.sales.put(w.event, true)
	b.maps = live.NewMaps(w.rdb, w)
	o.Metrics = live.NewMetrics(b.reg)
	o.Maps, o.Sales, o.Ear, o.Log = b.maps, b.sales, live.NewEar(ear, o.Metrics), slog.New(slog.DiscardHandler)
	b.feed = live.NewFeed(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.feed.Run(ctx, b.crowd) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	b.begin(tb)
	return b
}

func (b *bundle) begin(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Second)
	defer cancel()
	_, data, err := b.feed.Snapshot(ctx, seatmap.Topic(b.event))
	if err != nil {
		tb.Fatal(err)
	}
	b.crowd.mu.Lock()
	defer b.crowd.mu.Unlock()
	b.crowd.takeLocked(data)
}

// knows waits until the feed's projection is at n, told or not.
func (b *bundle) knows(n int64, within time.Duration) {
	b.tb.Helper()
	b.until(within, fmt.Sprintf("a projection at %d", n), func() bool {
		at, _, err := b.feed.Snapshot(b.tb.Context(), seatmap.Topic(b.event))
		return err == nil && at >= n
	})
}

// reaches waits until the crowd is at n and shows what Redis does.
func (b *bundle) reaches(n int64, within time.Duration) time.Duration {
	b.tb.Helper()
	start := time.Now()
	b.until(within, fmt.Sprintf("watchers at %d", n), func() bool {
		m, areas := b.state()
		return b.crowd.number() >= n && b.crowd.shows(m, areas)
	})
	return time.Since(start)
}

func (b *bundle) until(within time.Duration, what string, ok func() bool) {
	b.tb.Helper()
	for deadline := time.Now().Add(within); !ok(); {
		if time.Now().After(deadline) {
			b.tb.Fatalf("not within %v: %s (watchers at %d, resets %v, rebuilds %v, words %v)", within, what,
				b.crowd.number(), b.crowd.resets, b.rebuilt(), b.crowd.words)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// count is the sum of a metric's series, of a histogram that of its values.
func (b *bundle) count(name string) (sum float64) {
	b.tb.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		b.tb.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			}
		}
	}
	return sum
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func contextWithin(tb testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(tb.Context(), d)
}
