package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
)

// hasty is feed with waits that a test does not have to sit through, in ms.
func hasty(waits string) string {
	return fmt.Sprintf(strings.Replace(feed, "event: 'e'", "waits: "+waits+", event: 'e'", 1), true)
}

// sockets is a live endpoint for WebSockets that a test drives: each is handed over
// with the first message it has sent.
type sockets struct {
	t     *testing.T
	conns chan socket
}

type socket struct {
	asked struct {
		Sub    string
		Since  int
		Ticket string
	}
	*websocket.Conn
}

func newSockets(t *testing.T) *sockets { return &sockets{t, make(chan socket, 16)} } // more than any test opens

func (s *sockets) serve(c echo.Context) error {
	conn, err := websocket.Accept(c.Response(), c.Request(), &websocket.AcceptOptions{Subprotocols: []string{"seatcast.v1"}})
	if err != nil {
		return nil // it is answered
	}
	got := socket{Conn: conn}
	_, raw, err := conn.Read(c.Request().Context())
	if err != nil {
		return nil // the page has closed it
	}
	if err := json.Unmarshal(raw, &got.asked); err != nil {
		s.t.Errorf("a socket sends %q: %v", raw, err)
	}
	s.conns <- got
	<-conn.CloseRead(c.Request().Context()).Done()
	return nil
}

// say sends one object of the map.
func (s socket) say(t *testing.T, kind, members string) {
	t.Helper()
	if err := s.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"topic":"seatmap/e","type":%q%s}`, kind, members)); err != nil {
		t.Error(err)
	}
}

// polledAt answers a poll of a hot event.
func polledAt(c echo.Context, n int) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSONBlob(http.StatusOK, fmt.Appendf(nil, `{"n":%d,"chart":"c1","map":"","areas":{},"mode":"hot","live":"/v1/events/e/live","poll_after_ms":500}`, n))
}

// heldUp is a stream of events that something on the way keeps back.
func heldUp(c echo.Context) error {
	c.Response().Header().Set("Content-Type", "text/event-stream")
	c.Response().WriteHeader(http.StatusOK)
	c.Response().Flush()
	<-c.Request().Context().Done()
	return nil
}

func TestWhereNoStreamOfEventsComesThroughAFeedTakesASocket(t *testing.T) {
	for name, live := range map[string]echo.HandlerFunc{
		"held up":          heldUp,
		"refused":          func(c echo.Context) error { return c.String(http.StatusBadGateway, "no") },
		"another document": func(c echo.Context) error { return c.HTML(http.StatusOK, "<p>Sign in to this network") },
		"cut at once":      func(echo.Context) error { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSockets(t)
			p := browsertest.Open(t, client(t, func(g *echo.Group) {
				g.GET("/events/e/live", live)
				g.GET("/ws", s.serve)
				g.GET("/events/e/seatmap", func(c echo.Context) error { return polledAt(c, 5) })
			}))
			browsertest.Eval[int](p, hasty(`{ hello: 2000 }`))
			c := <-s.conns
			if c.asked.Sub != "seatmap/e" || c.asked.Since != 5 {
				t.Errorf("it asks for %+v", c.asked)
			}
			c.say(t, "hello", `,"n":5,"chart":"c1","at":1`)
			c.say(t, "delta", `,"n":7,"prev":5,"at":1,`+noSeats)
			p.Until("live", `mode === 'live' && told.join() === 'snapshot 5,delta 7'`)
			_ = c.Close(4000, "drain retry_ms=10")
			c = <-s.conns
			if c.asked.Since != 7 {
				t.Errorf("after a cut it asks for %+v", c.asked)
			}
			c.say(t, "hello", `,"n":9,"chart":"c1","at":1`)
			c.say(t, "delta", `,"n":9,"prev":7,"at":1,`+noSeats)
			c.say(t, "beat", `,"n":11,"at":1`) // 10 and 11 never came
			if c = <-s.conns; c.asked.Since != 9 {
				t.Errorf("after a gap it asks for %+v", c.asked)
			}
		})
	}
}

func TestAFeedWithoutStreamsPollsUntilItFindsOneAgain(t *testing.T) {
	s := newStream()
	var open atomic.Bool
	var polls atomic.Int64
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/live", func(c echo.Context) error {
			if !open.Load() {
				return heldUp(c)
			}
			return s.serve(c)
		})
		g.GET("/events/e/seatmap", func(c echo.Context) error { return polledAt(c, int(4+polls.Add(1))) })
	}))
	browsertest.Eval[int](p, hasty(`{ hello: 2000 }`)) // there is no /ws
	p.Until("polled", `mode === 'polling' && told.length > 2`)
	open.Store(true)
	c := <-s.conns
	c.say("event: hello\ndata: {\"n\":999,\"chart\":\"c1\",\"at\":1}")
	c.say("%s", snapshot(999))
	p.Until("live", `mode === 'live' && told.at(-1) === 'snapshot 999'`)
	was := polls.Load()
	c.say("%s", delta(999, 1000))
	p.Until("the stream is followed", `told.at(-1) === 'delta 1000'`)
	if now := polls.Load(); now > was+1 { // one may have been under way
		t.Errorf("beside a stream it has polled %d times", now-was)
	}
}

func TestAFeedThatIsRefusedPollsUntilItIsLetIn(t *testing.T) {
	s := newStream()
	var polls atomic.Int64
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/live", s.serve)
		g.GET("/events/e/seatmap", func(c echo.Context) error { return polledAt(c, int(4+polls.Add(1))) })
	}))
	browsertest.Eval[int](p, hasty(`{}`))
	c := <-s.conns
	c.say("retry: 3000\nevent: degraded\ndata: {\"reason\":\"full\",\"poll\":\"/v1/events/e/seatmap\"}")
	c.cut()
	p.Until("polled", `mode === 'polling' && told.length > 1`)
	c = <-s.conns // the browser comes back when it was told to
	c.say("event: hello\ndata: {\"n\":999,\"chart\":\"c1\",\"at\":1}")
	c.say("%s", snapshot(999))
	p.Until("live", `mode === 'live' && told.at(-1) === 'snapshot 999'`)
}

func TestWhatIsPolledGoesBackOnlyWhenTheServerHasLostIt(t *testing.T) {
	var n atomic.Int64
	n.Store(9)
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/live", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			c.Response().Header().Set("Cache-Control", "no-store")
			return c.JSONBlob(200, fmt.Appendf(nil, `{"n":%d,"chart":"c1","map":"","areas":{},"mode":"ordinary","live":null,"poll_after_ms":500}`, n.Load()))
		})
	}))
	browsertest.Eval[int](p, hasty(`{}`))
	p.Until("polled", `told.at(-1) === 'snapshot 9'`)
	n.Store(7) // a server that is behind
	began := browsertest.Eval[float64](p, `return performance.now()`)
	p.Until("the server has lost it", `told.at(-1) === 'snapshot 7'`)
	if took := browsertest.Eval[float64](p, `return performance.now()`) - began; took < 2000 {
		t.Errorf("it goes back after %.0f ms", took)
	}
}
