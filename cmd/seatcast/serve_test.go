package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
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
