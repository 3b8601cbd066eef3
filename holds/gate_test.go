package holds_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/seatmap"
	"seatcast/web"
)

// hearsay is what a process has heard, as tests say it.
type hearsay func(tag seatmap.Tag, seats []int) (seatmap.Known, bool)

func (h hearsay) Known(_ string, tag seatmap.Tag, seats []int) (seatmap.Known, bool) {
	return h(tag, seats)
}

// all says the same of every seat asked for.
func all(seat seatmap.KnownSeat, holder bool, age time.Duration) hearsay {
	return func(_ seatmap.Tag, seats []int) (k seatmap.Known, ok bool) {
		k = seatmap.Known{Holder: holder, Age: age}
		for range seats {
			k.Seats = append(k.Seats, seat)
		}
		return k, true
	}
}

// calls counts what is sent to Redis.
type calls struct{ n atomic.Int64 }

func (c *calls) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmds)
	}
}

// gated is a shop behind a gate that has heard so.
type gated struct {
	*shop
	calls *calls
	gate  *holds.Gate
}

func newGated(t *testing.T, heard holds.Hearsay, every int) *gated {
	t.Helper()
	g := &gated{calls: &calls{}}
	g.shop = newShop(t, onStore)
	o := *g.rdb.Options()
	counted := redis.NewClient(&o)
	t.Cleanup(func() { _ = counted.Close() })
	counted.AddHook(g.calls)
	store := holds.New(counted, judge(g.ask), voice(g.hear), quiet)
	g.gate = holds.NewGate(holds.GateOptions{Store: store, Heard: heard, Log: quiet, Every: every})
	e := web.New(web.Options{Log: quiet})
	holds.NewAPI(store, g, []byte("a key of this server")).Behind(g.gate).Mount(e.Group("/v1", web.As("ann")))
	g.handler = e
	return g
}

// value is that of a counter of the gate, of one answer if it has several, or how
// often a histogram was told.
func (g *gated) value(name, label string) float64 {
	g.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(g.gate)
	families, err := reg.Gather()
	g.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	g.Fatalf("no metric %s %s", name, label)
	return 0
}

var soldHeard = seatmap.KnownSeat{Status: seatmap.Sold}

func heldHeard(left time.Duration) seatmap.KnownSeat {
	return seatmap.KnownSeat{Status: seatmap.Held, Left: left}
}

func TestMemoryRefusesWhatItIsSureOfAndAsksRedisForTheRest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		heard  hearsay
		answer string
	}{
		"sold":                     {all(soldHeard, false, 0), "refused"},
		"closed":                   {all(seatmap.KnownSeat{Status: seatmap.Unavailable}, false, 0), "refused"},
		"held":                     {all(heldHeard(time.Minute), false, 500*time.Millisecond), "refused"},
		"held, of a second ago":    {all(heldHeard(time.Minute), false, 1100*time.Millisecond), "asked_stale"},
		"sold, of a second ago":    {all(soldHeard, false, 1100*time.Millisecond), "asked_stale"},
		"held, by herself perhaps": {all(heldHeard(time.Minute), true, 0), "asked_own"},
		"sold, to herself perhaps": {all(soldHeard, true, 0), "asked_own"},
		"held, perhaps no longer":  {all(heldHeard(0), false, 0), "asked_unknown"},
		"free":                     {all(seatmap.KnownSeat{}, false, 0), "passed"},
		"free, she has others":     {all(seatmap.KnownSeat{}, true, time.Hour), "passed"},
		"one sold, one of unknown end": {func(seatmap.Tag, []int) (seatmap.Known, bool) {
			return seatmap.Known{Seats: []seatmap.KnownSeat{soldHeard, heldHeard(-1)}}, true
		}, "asked_unknown"},
		"not followed": {func(seatmap.Tag, []int) (seatmap.Known, bool) { return seatmap.Known{}, false }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t, c.heard, 0)
			a := g.take("ann", "", `{"ticketIds":["n-a-3","n-a-4"]}`) // free in Redis
			if refused := c.answer == "refused"; refused != (a.Code == "seats_taken") || refused != (g.calls.n.Load() == 0) {
				t.Errorf("%d %s, after %d calls to Redis", a.Status, a.Body, g.calls.n.Load())
			}
			for _, answer := range []string{"refused", "asked_own", "asked_stale", "asked_unknown", "passed"} {
				if n := g.value("holds_gate_total", answer); (n == 1) != (answer == c.answer) {
					t.Errorf("%s is counted %v times", answer, n)
				}
			}
		})
	}
}

func TestARefusalFromMemoryIsThatOfRedis(t *testing.T) {
	t.Parallel()
	sure := false
	g := newGated(t, hearsay(func(_ seatmap.Tag, seats []int) (k seatmap.Known, ok bool) {
		for _, i := range seats {
			s := seatmap.KnownSeat{}
			if i == 1 || i == 5 {
				s = heldHeard(time.Minute)
			}
			k.Seats = append(k.Seats, s)
		}
		return k, sure
	}), 0)
	g.takes("bob", 1, 5)
	body := `{"ticketIds":["n-a-5","n-a-9","n-a-1"],"areas":[{"area":"pit","quantity":1}]}`
	fromRedis := g.take("ann", "k", body)
	sure = true
	before := g.calls.n.Load()
	fromMemory := g.take("ann", "k", body)
	if g.calls.n.Load() != before || fromMemory.Status != http.StatusConflict || fromMemory.Body != fromRedis.Body {
		t.Errorf("%d %s\nRedis: %d %s", fromMemory.Status, fromMemory.Body, fromRedis.Status, fromRedis.Body)
	}
	for _, name := range []string{"Content-Type", "Cache-Control"} {
		if fromMemory.Header.Get(name) != fromRedis.Header.Get(name) {
			t.Errorf("%s is %q", name, fromMemory.Header.Get(name))
		}
	}
	if a := g.take("ann", "k2", `{"areas":[{"area":"pit","quantity":1}]}`); a.Status != http.StatusCreated {
		t.Errorf("places only: %d %s", a.Status, a.Body)
	}
}

func TestRefusalsAreComparedWithRedisAfterwards(t *testing.T) {
	t.Parallel()
	g := newGated(t, all(heldHeard(time.Minute), false, 300*time.Millisecond), 2)
	g.takes("bob", 1)
	refuse := func(seat string) {
		t.Helper()
		for range 2 {
			if a := g.take("ann", "", `{"ticketIds":["`+seat+`"]}`); a.Code != "seats_taken" {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.gate.Run(ctx) }()
	refuse("n-a-1")
	g.eventually("one is compared", func() bool { return g.value("holds_gate_sampled_total", "") == 1 })
	if n := g.value("holds_gate_false_total", ""); n != 0 {
		t.Errorf("%v are false, and somebody has the seat", n)
	}
	refuse("n-a-2")
	g.eventually("another", func() bool { return g.value("holds_gate_sampled_total", "") == 2 })
	if wrong, right := g.value("holds_gate_age_seconds", "false"), g.value("holds_gate_age_seconds", "right"); wrong != 1 || right != 1 || g.value("holds_gate_false_total", "") != 1 {
		t.Errorf("%v are false and %v right, want one each", wrong, right)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	before := g.calls.n.Load()
	for range 100 { // nobody compares: nobody waits
		refuse("n-a-2")
	}
	if n := g.calls.n.Load() - before; n != 0 {
		t.Errorf("%d calls to Redis", n)
	}
}
