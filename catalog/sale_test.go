package catalog

import (
	"testing"
	"time"
)

func TestNoAnswerOutlivesTheOpening(t *testing.T) {
	for _, c := range []struct {
		state   State
		opensIn time.Duration
		want    time.Duration
	}{
		{Open, 300 * time.Millisecond, 300 * time.Millisecond},
		{Open, time.Hour, freshFor},
		{Open, -time.Millisecond, freshFor},
		{Closed, 300 * time.Millisecond, freshFor},
	} {
		if got := keepFor(c.state, c.opensIn); got != c.want {
			t.Errorf("%s, opening in %v: kept for %v; want %v", c.state, c.opensIn, got, c.want)
		}
	}
}
