package contention

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// linesTo connects so many buyers to a server that is answered by h.
func linesTo(t *testing.T, h http.HandlerFunc, buyers int) (lines []*line) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for range buyers {
		l, err := dial(t.Context(), server.Listener.Addr().String(), "e", "token")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.close)
		lines = append(lines, l)
	}
	return lines
}

func grantAll(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"expiresAt":%q}`, time.Now().Add(time.Minute).Format(time.RFC3339Nano))
}

func refuseAll(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusConflict)
	_, _ = w.Write([]byte(`{}`))
}

func TestAServerThatGrantsEverythingIsFoundToSellTwice(t *testing.T) {
	c := crowd{lines: linesTo(t, grantAll, 4), seats: []string{"a", "b"}, next: inTurn(0, 1)}
	got, err := c.run(t.Context(), time.Now(), time.Now().Add(100*time.Millisecond))
	if err != nil || len(got.grants) < 8 {
		t.Fatalf("%d grants, %v", len(got.grants), err)
	}
	if n := soldTwice(got.grants); n < len(got.grants)/2 {
		t.Errorf("%d of %d grants are found", n, len(got.grants))
	}
}

func TestAServerThatRefusesEverythingIsFoundToBeWrong(t *testing.T) {
	c := crowd{lines: linesTo(t, refuseAll, 4), seats: []string{"a"}, next: anySeat(1)}
	got, err := c.run(t.Context(), time.Now(), time.Now().Add(50*time.Millisecond))
	if err != nil || len(got.shots) < 4 {
		t.Fatalf("%d shots, %v", len(got.shots), err)
	}
	if n, _ := falseRefusals(got.grants, 0, got.shots); n != len(got.shots) {
		t.Errorf("%d of %d refusals are found", n, len(got.shots))
	}
}

func TestAtAFixedRateWhoWaitsIsLateFromWhenSheWasDue(t *testing.T) {
	var first atomic.Bool
	h := func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(false, true) {
			time.Sleep(200 * time.Millisecond) // a server that stands still once
		}
		refuseAll(w, r)
	}
	c := crowd{lines: linesTo(t, h, 1), seats: []string{"a"}, next: anySeat(1), rate: 100}
	start := time.Now()
	got, err := c.run(t.Context(), start, start.Add(300*time.Millisecond))
	if err != nil || len(got.shots) != 30 {
		t.Fatalf("%d shots, want 30: %v", len(got.shots), err)
	}
	late := 0
	for _, s := range got.shots {
		if s.got-s.due > int64(50*time.Millisecond) {
			late++
		}
	}
	if late < 10 {
		t.Errorf("%d are late: those due while the server stood still are not", late)
	}
}

func TestOtherAnswersAreCountedAndShown(t *testing.T) {
	c := crowd{lines: linesTo(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no way", http.StatusTeapot) }, 1),
		seats: []string{"a"}, next: anySeat(1), rate: 100}
	start := time.Now()
	got, err := c.run(t.Context(), start, start.Add(20*time.Millisecond))
	if err != nil || got.odd != 2 || got.oddest != "418 no way" || len(got.shots) != 0 {
		t.Errorf("%d odd, %q, %v", got.odd, got.oddest, err)
	}
}

func TestABuyerWithoutAnswerEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lines := linesTo(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices who leaves
		cancel()
		<-r.Context().Done()
	}, 1)
	_, err := crowd{lines: lines, seats: []string{"a"}, next: anySeat(1)}.run(ctx, time.Now(), time.Now().Add(time.Hour))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestALineThatWasNotUsedForLongIsConnectedAnew(t *testing.T) {
	l := linesTo(t, refuseAll, 1)[0]
	l.close() // as a server does
	l.used = time.Now().Add(-time.Minute)
	if err := l.fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, err := l.ask("a"); err != nil || a.status != http.StatusConflict {
		t.Errorf("%v, %v", a, err)
	}
}

func TestWhatIsNoAnswerIsAnError(t *testing.T) {
	for body, want := range map[string]string{
		"":          "",
		"HTTP/1.1 ": "begins with",
		"chunked":   "does not tell its length",
	} {
		h := func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			text := body + "\n"
			if body == "chunked" {
				text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			}
			_, _ = conn.Write([]byte(text))
			_ = conn.Close()
		}
		_, err := linesTo(t, h, 1)[0].ask("a")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; it should say %q", body, err, want)
		}
	}
}
