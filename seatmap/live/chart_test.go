package live_test

import (
	"fmt"
	"testing"
	"time"

	"seatcast/seatmap"
)

// A chart is published: Redis has it at once, this node a little later. Until
// then it shows what it knows, and afterwards all of it.
func TestAMapIsOfTheChartThatIsNamedBesideIt(t *testing.T) {
	b := setup(t)
	b.mu.Lock()
	b.m = append(b.m, make(seatmap.Map, 10)...)
	b.mu.Unlock()
	b.say(b.change(seatmap.Change{Reset: true}))
	b.say(b.change(reserve(3, seats+1)))
	shows := func(when string, resets, bytes int, sha string) {
		t.Helper()
		b.until(3*time.Second, when, func() bool {
			b.crowd.mu.Lock()
			defer b.crowd.mu.Unlock()
			return len(b.crowd.resets) == resets && b.crowd.m.At(3) == seatmap.Held
		})
		if p := decode[pageJSON](t, get(t, b.handler(), "/v1/events/"+b.event+"/seatmap").Body); p.Chart != sha || len(p.Map) != bytes {
			t.Errorf("%s: %d bytes of chart %s", when, len(p.Map), p.Chart)
		}
	}
	shows("the reset, under the old chart", 1, seats/4, "c0ffee")

	b.sales.mu.Lock()
	b.sales.all[b.event] = &seatmap.Sale{Event: b.event, Hot: true, ChartSHA: "decaf", Chart: &seatmap.Chart{Seats: seats + 40}}
	b.sales.mu.Unlock()
	shows("the new chart", 2, seats/4+10, "decaf")
	b.until(time.Second, "what happened to its seats before", func() bool {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		return b.crowd.m.At(seats+1) == seatmap.Held
	})
}

// Who has the map of a number and asks what came since must not go on by the
// chart of then.
func TestADeltaThatIsPolledTellsItsChart(t *testing.T) {
	b := setup(t)
	first, second := b.change(reserve(1)), b.change(reserve(2))
	b.say(first, second)
	b.reaches(second.N, time.Second)
	ask := func(n int64) string {
		path := fmt.Sprintf("/v1/events/%s/seatmap?since=%d", b.event, n)
		return decode[seatmap.Delta](t, get(t, b.handler(), path).Body).Chart
	}
	for _, n := range []int64{first.N, second.N} {
		if sha := ask(n); sha != "c0ffee" {
			t.Errorf("since %d: of chart %q", n, sha)
		}
	}
	b.sales.mu.Lock()
	b.sales.all[b.event] = &seatmap.Sale{Event: b.event, Hot: true, ChartSHA: "decaf", Chart: &seatmap.Chart{Seats: seats}}
	b.sales.mu.Unlock()
	b.until(3*time.Second, "a delta of the new chart", func() bool { return ask(second.N) == "decaf" })
}
