package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStormAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads atomic.Int32
		c := &cache[string]{max: 8, load: func(_ context.Context, key string) (string, time.Duration, error) {
			time.Sleep(10 * time.Millisecond)
			return fmt.Sprint(key, loads.Add(1)), time.Second, nil
		}}
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if v, err := c.get(t.Context(), "a"); v != "a1" || err != nil {
					t.Errorf("get = %q, %v", v, err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		if v, _ := c.get(t.Context(), "a"); v != "a2" {
			t.Errorf("an answer over a second old is given: %q", v)
		}
	})
}

func TestTheLastAnswerStandsWhileNoneCanBeLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		loads := 0
		c := &cache[string]{max: 8, load: func(context.Context, string) (string, time.Duration, error) {
			loads++
			if down {
				return "", 0, errors.New("down")
			}
			return "good", time.Second, nil
		}}
		if v, err := c.get(t.Context(), "a"); v != "good" || err != nil {
			t.Fatalf("get = %q, %v", v, err)
		}
		down = true
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			if v, err := c.get(t.Context(), "a"); v != "good" || err != nil {
				t.Fatalf("get = %q, %v; want the last answer", v, err)
			}
		}
		if loads > 4 {
			t.Errorf("%d loads in three seconds of failing; want one a second", loads)
		}
		if _, err := c.get(t.Context(), "b"); err == nil {
			t.Error("what was never answered is no error")
		}
	})
}

func TestACallerWhoLeavesTakesNobodyWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cache[string]{max: 8, load: func(ctx context.Context, _ string) (string, time.Duration, error) {
			time.Sleep(time.Second)
			return "good", time.Second, ctx.Err()
		}}
		leaving, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.get(leaving, "a"); !errors.Is(err, context.Canceled) {
				t.Errorf("get of a caller who left = %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, err := c.get(t.Context(), "a"); v != "good" || err != nil {
				t.Errorf("get = %q, %v", v, err)
			}
		})
		synctest.Wait()
		leave()
		wg.Wait()
	})
}

func TestAnAnswerBegunBeforeAChangeIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		value := "old"
		c := &cache[string]{max: 8, load: func(context.Context, string) (string, time.Duration, error) {
			seen := value
			time.Sleep(time.Second)
			return seen, time.Minute, nil
		}}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.get(t.Context(), "a") })
		synctest.Wait()
		value = "new"
		c.forget("a")
		if v, _ := c.get(t.Context(), "a"); v != "new" {
			t.Errorf("right after the change get = %q", v)
		}
		wg.Wait()
		if v, _ := c.get(t.Context(), "a"); v != "new" {
			t.Errorf("the late answer replaced the new one: %q", v)
		}
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	c := &cache[string]{max: 3, load: func(_ context.Context, key string) (string, time.Duration, error) {
		return key, time.Hour, nil
	}}
	for i := range 100 {
		if v, _ := c.get(t.Context(), fmt.Sprint(i)); v != fmt.Sprint(i) {
			t.Fatalf("get(%d) = %q", i, v)
		}
	}
	if len(c.answers) != 3 {
		t.Errorf("%d answers kept; want 3", len(c.answers))
	}
}
