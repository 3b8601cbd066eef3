package checkout

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestManyWhoComeDuringAMirrorShareTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rounds
		var runs, at atomic.Int64
		run := func(context.Context) error {
			if at.Add(1) > 1 {
				t.Error("two at once")
			}
			time.Sleep(time.Second)
			at.Add(-1)
			runs.Add(1)
			return nil
		}
		ended := make(chan int64, 100)
		for range 100 {
			go func() {
				if err := r.share(t.Context(), "e", run); err != nil {
					t.Error(err)
				}
				ended <- runs.Load()
			}()
			synctest.Wait()
		}
		if first := <-ended; first != 1 {
			t.Errorf("the first was answered after %d runs", first)
		}
		for range 99 {
			if after := <-ended; after != 2 {
				t.Errorf("one who came during the first run was answered after %d", after)
			}
		}
		if r.events["e"].next != nil || len(r.events["e"].turn) != 0 {
			t.Error("somebody still has the turn")
		}
	})
}

func TestAMirrorWhoseCallerIsGoneIsRunByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rounds
		slow := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
				return nil
			}
		}
		busy := make(chan error, 1)
		go func() { busy <- r.share(t.Context(), "e", slow) }()
		synctest.Wait()
		for range []string{"before its turn", "in it"} {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			led := make(chan error, 1)
			go func() { led <- r.share(ctx, "e", slow) }()
			synctest.Wait()
			followed := make(chan error, 1)
			go func() { followed <- r.share(t.Context(), "e", slow) }()
			if err := <-led; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the one who left was told %v", err)
			}
			if err := <-followed; err != nil {
				t.Errorf("the one who stayed was told %v", err)
			}
			cancel()
		}
		if err := <-busy; err != nil {
			t.Error(err)
		}
	})
}

func TestAMirrorThatFailsFailsForAllWhoSharedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rounds
		broken := errors.New("broken")
		var runs atomic.Int64
		run := func(context.Context) error { runs.Add(1); time.Sleep(time.Second); return broken }
		ended := make(chan error, 10)
		for range 10 {
			go func() { ended <- r.share(t.Context(), "e", run) }()
		}
		for range 10 {
			if err := <-ended; !errors.Is(err, broken) {
				t.Error(err)
			}
		}
		if runs.Load() > 2 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}
