package holds_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatcast/holds"
	"seatcast/seatmap"
)

func TestAPassThatIsOverTakesNothingAndOneThatRedisHasLostIsInsideAgain(t *testing.T) {
	t.Parallel()
	h := setup(t, 40)
	if err := h.rdb.HSet(t.Context(), seatmap.AreasKey(h.event), "pit", 10).Err(); err != nil {
		t.Fatal(err)
	}
	till := time.Now().Add(time.Minute)
	r := h.asks("ann", 3, 4)
	r.Pass = &seatmap.Pass{ID: "hers-1", Inside: "hers", Until: till}
	revoke := redis.Z{Score: float64(till.UnixMilli()), Member: "hers-1"}
	if err := h.rdb.ZAdd(t.Context(), seatmap.RevokedKey(h.event), revoke).Err(); err != nil {
		t.Fatal(err)
	}
	h.unchanged("a take with a pass that is over", func() {
		if _, err := h.store.Take(t.Context(), r); !errors.Is(err, holds.ErrRevoked) {
			t.Errorf("got %v", err)
		}
	})
	r.Pass.ID = "hers-2"
	if _, err := h.store.Take(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	inside := h.rdb.ZRangeWithScores(t.Context(), seatmap.InsideKey(h.event), 0, -1).Val()
	if want := []redis.Z{{Score: float64(till.UnixMilli()), Member: "hers"}}; !slices.Equal(inside, want) {
		t.Errorf("inside are %v, not %v", inside, want)
	}
	h.rdb.ZAdd(t.Context(), seatmap.InsideKey(h.event), redis.Z{Score: 1, Member: "hers"})
	both := h.asks("bob", 9)
	both.Areas, both.Pass = map[string]int{"pit": 2}, r.Pass
	if _, err := h.store.Take(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	if till := h.rdb.ZScore(t.Context(), seatmap.InsideKey(h.event), "hers").Val(); till != 1 {
		t.Errorf("whom Redis knows is inside until %v", till)
	}
	h.rdb.ZAdd(t.Context(), seatmap.RevokedKey(h.event), redis.Z{Score: 1, Member: "hers-2"})
	if _, err := h.store.Take(t.Context(), both); err != nil {
		t.Errorf("the repeat of what was granted: %v", err)
	}
	h.rdb.Del(t.Context(), seatmap.RevokedKey(h.event), seatmap.InsideKey(h.event))
	h.sound()
}
