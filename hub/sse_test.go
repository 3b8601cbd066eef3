package hub_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seatcast/hub"
)

func TestStreamOpensWithHelloThenSnapshotThenDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 40}
		h := hub.New(hub.Options{Source: src})
		w := watch(t, h, 0, nil)
		synctest.Wait()
		src.step(h, 2)
		synctest.Wait()

		got := w.stream()
		head, rest, _ := strings.Cut(got, "\n")
		if len(head) < 2048 || head[0] != ':' {
			t.Errorf("the stream opens with %d bytes %.10q, want a comment of 2 KiB", len(head), head)
		}
		retry, rest, _ := strings.Cut(rest, "\n\n")
		if !strings.HasPrefix(retry, "retry: ") {
			t.Errorf("then %q, want retry", retry)
		}
		want := "event: hello\nid: 0\ndata: {\"n\":40,\"chart\":\"c0ffee\",\"at\":1}\n\n" +
			"event: snapshot\nid: 40\ndata: {\"n\":40,\"map\":\"AAAA\"}\n\n" +
			"event: delta\nid: 42\ndata: {\"n\":42,\"prev\":40}\n\n"
		if rest != want {
			t.Errorf("then\n%s\nwant\n%s", rest, want)
		}
		for k, want := range map[string]string{"Content-Type": "text/event-stream",
			"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"} {
			if got := w.header.Get(k); got != want {
				t.Errorf("%s: %q, want %q", k, got, want)
			}
		}
	})
}

// Two nodes merge the same changes differently; a watcher comes with every
// number there is.
func TestResumeGivesExactlyWhatWasMissedOnAnyNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, merges := range [][]int{{1, 3, 2, 4}, {4, 4, 2}, {10}} {
			src := &truth{n: 100}
			h := hub.New(hub.Options{Source: src})
			for _, m := range merges {
				src.step(h, m)
			}
			for since := int64(100); since <= 110; since++ {
				w := watch(t, h, since, nil)
				synctest.Wait()
				events := w.events()
				if strings.Contains(names(events), "snapshot") {
					t.Fatalf("merges %v since %d: %s: want no snapshot", merges, since, names(events))
				}
				if events[0].ID != since {
					t.Errorf("hello says the watcher holds %d, want %d", events[0].ID, since)
				}
				have := since
				for _, e := range events[1:] {
					if prev := e.number("prev"); prev > have || e.ID <= have {
						t.Fatalf("merges %v since %d: %v after %d", merges, since, e, have)
					}
					have = e.ID
				}
				if have != 110 {
					t.Errorf("merges %v since %d: reached %d, want 110", merges, since, have)
				}
				w.leave()
			}
		}
	})
}

func TestUnknownNumberGetsSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 1000}
		h := hub.New(hub.Options{Source: src, RingSize: 4})
		for range 10 {
			src.step(h, 2)
		}
		trimmed := watch(t, h, 1004, nil)
		foreign := watch(t, h, 7, nil)
		ahead := watch(t, h, 5000, nil)
		synctest.Wait()
		for name, w := range map[string]*watcher{"trimmed": trimmed, "foreign": foreign} {
			if got := names(w.events()); got != "hello#0 snapshot#1020" {
				t.Errorf("%s: %s, want hello and snapshot", name, got)
			}
		}
		if got := names(ahead.events()); got != "hello#0" {
			t.Errorf("a number above ours: %s: nothing older may be sent", got)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := names(ahead.events()); got != "hello#0 reset#0 snapshot#1020" {
			t.Errorf("a number of a lost history: %s, want a reset said aloud", got)
		}
	})
}

func TestResetTellsEverybodyAndForgetsNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 10}
		h := hub.New(hub.Options{Source: src})
		w := watch(t, h, 0, nil)
		synctest.Wait()
		src.step(h, 1)
		synctest.Wait()
		src.mu.Lock()
		src.n = 50
		src.mu.Unlock()
		h.Reset(topic, 50, []byte(`{"n":50}`))
		synctest.Wait()
		src.step(h, 1)
		late := watch(t, h, 11, nil)
		synctest.Wait()
		if got := names(w.events()); got != "hello#0 snapshot#10 delta#11 reset#0 snapshot#50 delta#51" {
			t.Errorf("got %s", got)
		}
		if got := names(late.events()); got != "hello#0 snapshot#51" {
			t.Errorf("resumed with a forked number: %s, want a snapshot", got)
		}
	})
}

// A reset at the very number a watcher holds corrects what it has drawn.
func TestResetAtTheSameNumberIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 10}
		h := hub.New(hub.Options{Source: src})
		w := watch(t, h, 0, nil)
		synctest.Wait()
		h.Reset(topic, 10, []byte(`{"n":10,"mended":true}`))
		synctest.Wait()
		events := w.events()
		if got := names(events); got != "hello#0 snapshot#10 reset#0 snapshot#10" {
			t.Fatalf("got %s", got)
		}
		if last := events[len(events)-1].Data; !strings.Contains(last, "mended") {
			t.Errorf("the snapshot after the reset is %s, want the mended one", last)
		}
	})
}

func TestDegradedIsToldOnceAndToNewcomersWhileItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(hub.Options{Source: &truth{n: 1}})
		w := watch(t, h, 0, nil)
		synctest.Wait()
		h.Degrade(topic, "redis", "/poll")
		synctest.Wait()
		during := watch(t, h, 0, nil)
		synctest.Wait()
		h.Degrade(topic, "", "")
		synctest.Wait()
		after := watch(t, h, 0, nil)
		synctest.Wait()
		for name, c := range map[string]struct {
			w    *watcher
			want string
		}{
			"before": {w, "hello#0 snapshot#1 degraded#-1 degraded#-1"},
			"during": {during, "hello#0 degraded#-1 snapshot#1 degraded#-1"},
			"after":  {after, "hello#0 snapshot#1"},
		} {
			if got := names(c.w.events()); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	})
}

func TestBeatsCarryTheNumberHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &truth{n: 5}
		h := hub.New(hub.Options{Source: src})
		w := watch(t, h, 0, nil)
		last, start := 0, time.Now()
		for range 5 * 60 {
			time.Sleep(time.Second)
			synctest.Wait()
			beats := 0
			for _, e := range w.events() {
				if e.Event == "beat" {
					beats++
					if e.ID != 5 || e.number("n") != 5 || e.number("at") == 0 {
						t.Fatalf("beat %+v, want id and n 5 and a time", e)
					}
				}
			}
			if beats != last {
				if quiet := time.Since(start); quiet < 14*time.Second || quiet > 27*time.Second {
					t.Errorf("%v between beats, want 15 to 25 s", quiet)
				}
				last, start = beats, time.Now()
			}
		}
		if last < 11 {
			t.Errorf("%d beats in 5 minutes", last)
		}
	})
}

func TestSessionsEndAtARandomAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(hub.Options{Source: &truth{n: 1}, MaxAge: 100 * time.Second})
		start := time.Now()
		ages := map[time.Duration]bool{}
		for range 10 {
			w := watch(t, h, 0, nil)
			<-w.done
			ages[time.Since(start)] = true
			if age := time.Since(start); age < 80*time.Second || age > 100*time.Second {
				t.Errorf("ended after %v, want 80 to 100 s", age)
			}
			if s := w.stream(); !strings.Contains(s[strings.LastIndex(s, "data: "):], "retry: ") {
				t.Error("ended without a hint when to come back")
			}
			start = time.Now()
		}
		if len(ages) < 5 {
			t.Errorf("only %d different ages of 10", len(ages))
		}
	})
}

func TestDrainClosesEverySessionAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(hub.Options{Source: &truth{n: 1}})
		var ws []*watcher
		for range 50 {
			ws = append(ws, watch(t, h, 0, nil))
		}
		synctest.Wait()
		if err := h.Drain(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		hints := map[string]bool{}
		for _, w := range ws {
			<-w.done
			s := w.stream()
			hints[s[strings.LastIndex(s, "retry: "):]] = true
		}
		if len(hints) < 25 {
			t.Errorf("50 sessions got only %d different hints", len(hints))
		}
		late := watch(t, h, 0, nil)
		<-late.done
		if got := late.stream(); !strings.HasPrefix(got, "retry: ") || names(late.events()) != "degraded#-1" {
			t.Errorf("a session after drain got %q, want a retry and where to poll", got)
		}
	})
}

func TestDrainGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(hub.Options{Source: &truth{n: 1}, WriteTimeout: time.Minute})
		watch(t, h, 0, func() time.Duration { return time.Hour })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Drain(ctx, 0); err != context.DeadlineExceeded {
			t.Errorf("got %v, want the context's error while a write is stuck", err)
		}
	})
}

func TestEndedTopicEndsItsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(hub.Options{Source: &truth{n: 1}})
		w := watch(t, h, 0, nil)
		synctest.Wait()
		h.End(topic)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
	})
}
