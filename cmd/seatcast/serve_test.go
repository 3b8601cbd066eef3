package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/hub"
)

// A drain that used up all its time, here none, takes nothing from requests.
func TestStoppingAnswersTheRequestsUnderWay(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &app{log: slog.New(slog.NewTextHandler(t.Output(), nil)), echo: echo.New(), ready: newReadiness(nil, nil)}
	started, finish := make(chan struct{}), make(chan struct{})
	a.echo.GET("/", func(c echo.Context) error {
		close(started)
		<-finish
		return c.NoContent(http.StatusNoContent)
	})
	ctx, stop := context.WithCancel(t.Context())
	ended, answered := make(chan error, 1), make(chan error, 1)
	go func() { ended <- a.run(ctx, ln, nil) }()
	go func() {
		res, err := http.Get("http://" + ln.Addr().String())
		if err == nil {
			err = res.Body.Close()
		}
		answered <- err
	}()
	<-started
	stop()
	eventually(t, 5*time.Second, "nobody is let in", func() bool {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(finish)
	if err := <-answered; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("stopping: %v", err)
	}
}

// quiet is the source of a map that never changes.
type quiet struct{}

func (quiet) Snapshot(context.Context, string) (int64, []byte, error) {
	return 1, []byte(`{"n":1}`), nil
}
func (quiet) Hello(context.Context, string) ([]byte, error) { return []byte(`{"n":1}`), nil }
func (quiet) Poll(string) string                            { return "/" }

// A process that stops because a part of it failed does so as if asked to: one
// watcher after the other is told to come back, elsewhere.
func TestAFailureSendsWatchersElsewhereOneByOne(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	fail, broken := make(chan struct{}), errors.New("broken")
	a := &app{log: log, echo: echo.New(), ready: newReadiness(nil, nil), drain: time.Second, hub: hub.New(hub.Options{Source: quiet{}, Log: log}),
		runners: []func(context.Context) error{func(context.Context) error { <-fail; return broken }}}
	a.echo.GET("/", func(c echo.Context) error { return a.hub.Serve(c.Response().Writer, c.Request(), "x") })
	ended := make(chan error, 1)
	go func() { ended <- a.run(t.Context(), ln, nil) }()

	const watchers = 20
	left := make(chan time.Time, watchers)
	for range watchers {
		res, err := http.Get("http://" + ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() && lines.Text() != "event: snapshot" {
		}
		go func() {
			last := ""
			for lines.Scan() {
				last = cmp.Or(lines.Text(), last)
			}
			if !strings.HasPrefix(last, "retry: ") {
				t.Errorf("a stream ended with %q", last)
			}
			left <- time.Now()
		}()
	}
	close(fail)
	first := <-left
	last := first
	for range watchers - 1 {
		last = <-left
	}
	if took := last.Sub(first); took < 400*time.Millisecond {
		t.Errorf("all %d left within %v of a drain of %v", watchers, took, a.drain)
	}
	if err := <-ended; !errors.Is(err, broken) {
		t.Errorf("it ended with %v", err)
	}
}

// Who calls this very process while it stops is told to end first, and meets no
// closed door.
func TestWhoCallsThisProcessEndsBeforeItListensNoMore(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls := make(chan struct{}, 1)
	call := func(ctx context.Context) error {
		for {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ln.Addr().String(), nil)
			if err != nil {
				return err
			}
			req.Close = true // each call is at the door
			res, err := http.DefaultClient.Do(req)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			}
			if err := res.Body.Close(); err != nil {
				return err
			}
			select {
			case calls <- struct{}{}:
			default:
			}
		}
	}
	a := &app{log: slog.New(slog.DiscardHandler), echo: echo.New(), ready: newReadiness(nil, nil), drain: 100 * time.Millisecond,
		callers: []func(context.Context) error{call}}
	a.echo.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx, ln, nil) }()
	<-calls
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
