package web_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/web"
)

// pipes is a listener whose connections are in memory, so that its server's
// time is the test's.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// patient runs use against a server of ours with nothing but routes.
func patient(t *testing.T, routes func(e *echo.Echo), use func(dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		e := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
		e.Server.Handler = e
		routes(e)
		p := make(pipes)
		served := make(chan error, 1)
		go func() { served <- e.Server.Serve(p) }()
		use(func() net.Conn {
			client, server := net.Pipe()
			p <- server
			return client
		})
		close(p)
		<-served
		if err := e.Server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// cutWithin fails unless the server ends the connection of a client that says
// a little all the time and never all of it.
func cutWithin(t *testing.T, most time.Duration, conn net.Conn, start, dribble string) {
	t.Helper()
	begun := time.Now()
	if _, err := io.WriteString(conn, start); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	for time.Since(begun) < most {
		time.Sleep(500 * time.Millisecond)
		if _, err := io.WriteString(conn, dribble); err != nil {
			return
		}
	}
	t.Errorf("after %v it still has its connection", most)
	_ = conn.Close()
}

func TestWhoeverSendsARequestForEverIsCutOff(t *testing.T) {
	patient(t, func(e *echo.Echo) {
		e.POST("/", func(c echo.Context) error {
			_, err := io.ReadAll(c.Request().Body)
			return err
		})
	}, func(dial func() net.Conn) {
		cutWithin(t, 11*time.Second, dial(), "GET /v1/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n", "X: y\r\n")
		cutWithin(t, 11*time.Second, dial(), "G", "E")
		cutWithin(t, 31*time.Second, dial(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n", "x")
	})
}

func TestWhoeverConnectsAndSaysNothingIsCutOff(t *testing.T) {
	patient(t, func(e *echo.Echo) {
		e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	}, func(dial func() net.Conn) {
		begun, fresh := time.Now(), dial()
		if _, err := fresh.Read(make([]byte, 1)); err == nil || time.Since(begun) > 11*time.Second {
			t.Errorf("before its first request: %v after %v", err, time.Since(begun))
		}
		idle := dial()
		if _, err := io.WriteString(idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		if _, err := io.Copy(io.Discard, idle); err != nil || time.Since(begun) > 121*time.Second {
			t.Errorf("after a request: %v after %v", err, time.Since(begun))
		}
	})
}

func TestWhoeverNeverReadsTheAnswerIsCutOff(t *testing.T) {
	wrote := make(chan error, 1)
	patient(t, func(e *echo.Echo) {
		e.GET("/", func(c echo.Context) error {
			_, err := io.WriteString(c.Response(), strings.Repeat("x", 1<<20))
			wrote <- err
			return err
		})
	}, func(dial func() net.Conn) {
		begun, conn := time.Now(), dial()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		select {
		case err := <-wrote:
			if err == nil {
				t.Error("what nobody read was written")
			}
		default:
			t.Errorf("after %v it still holds its handler", time.Since(begun))
			_ = conn.Close()
		}
	})
}

// As the hub does: a deadline for every write, and never one for them all.
func TestAStreamThatIsReadOutlivesEveryTimeout(t *testing.T) {
	patient(t, func(e *echo.Echo) {
		e.GET("/", func(c echo.Context) error {
			rc := http.NewResponseController(c.Response())
			for {
				if err := rc.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
					return err
				}
				if _, err := io.WriteString(c.Response(), "beat\n"); err != nil {
					return err
				}
				if err := rc.Flush(); err != nil {
					return err
				}
				time.Sleep(20 * time.Second)
			}
		})
	}, func(dial func() net.Conn) {
		conn := dial()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(conn)
		begun, beats := time.Now(), 0
		for beats < 90 && lines.Scan() {
			if lines.Text() == "beat" {
				beats++
			}
		}
		if beats < 90 {
			t.Errorf("it ended after %v and %d beats: %v", time.Since(begun), beats, lines.Err())
		}
		_ = conn.Close()
		time.Sleep(time.Minute) // the handler finds out
	})
}
