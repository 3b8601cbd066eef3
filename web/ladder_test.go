package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

func TestAFeedWithoutHoldsIsAsOfNowOnlyWithItsPolls(t *testing.T) {
	s := newStream()
	var down atomic.Bool
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/live", s.serve)
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			if down.Load() {
				return c.NoContent(http.StatusServiceUnavailable)
			}
			c.Response().Header().Set("Cache-Control", "no-store")
			return c.JSONBlob(http.StatusOK, []byte(`{"n":5,"chart":"c1","map":"","areas":{},"mode":"hot","live":"/v1/events/e/live","stale":true,"poll_after_ms":500}`))
		})
	}))
	browsertest.Eval[int](p, hasty(`{ silence: 300000 }`))
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	c.say("event: degraded\ndata: {\"reason\":\"no_holds\",\"poll\":\"/v1/events/e/seatmap\"}")
	p.Until("polled", `mode === 'unheld' && told.length > 2 && heard > 2`)
	down.Store(true)
	p.Until("it says that it does not know", `mode === 'waiting'`)
	was := browsertest.Eval[int](p, `return heard`)
	c.say("%s", beat(5, time.Now().Add(time.Hour).UnixMilli()))
	p.Until("the beat is heard", `clock.now() - Date.now() > 1e6`)
	if now := browsertest.Eval[int](p, `return heard`); now != was {
		t.Errorf("without polls it is as of now %d times", now-was)
	}
	down.Store(false)
	p.Until("polled again", fmt.Sprintf(`mode === 'unheld' && heard > %d`, was))
}

func TestAWayUpThatIsHeldUpIsPolledBeside(t *testing.T) {
	for name, up := range map[string]func(p *browsertest.Page, c socket){
		"a socket's end": func(_ *browsertest.Page, c socket) { _ = c.Close(4000, "drain retry_ms=10") },
		"another network": func(p *browsertest.Page, _ socket) {
			browsertest.Eval[int](p, `dispatchEvent(new Event('online')); return 0;`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSockets(t)
			var hangs atomic.Bool
			p := browsertest.Open(t, client(t, func(g *echo.Group) {
				g.GET("/events/e/live", func(c echo.Context) error {
					if hangs.Load() {
						return heldUp(c)
					}
					return c.NoContent(http.StatusBadGateway)
				})
				g.GET("/ws", s.serve)
				g.GET("/events/e/seatmap", func(c echo.Context) error { return polledAt(c, 5) })
			}))
			browsertest.Eval[int](p, hasty(`{ hello: 300000, silence: 1e9 }`))
			c := <-s.conns
			c.say(t, "hello", `,"n":5,"chart":"c1","at":1`)
			p.Until("live", `mode === 'live'`)
			shown := browsertest.Eval[int](p, `return told.length`)
			hangs.Store(true)
			browsertest.Eval[int](p, `const now = Date.now; Date.now = () => now() + 3600000; return 0;`) // an hour later
			up(p, c)
			p.Until("polled", fmt.Sprintf(`mode === 'polling' && told.length > %d`, shown))
		})
	}
}

func TestAFeedComesBackNoSoonerThanTheServerHasSaid(t *testing.T) {
	s := newSockets(t)
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/ws", s.serve)
		g.GET("/events/e/seatmap", func(c echo.Context) error { return polledAt(c, 5) })
	})) // there is no stream of events
	browsertest.Eval[int](p, hasty(`{}`))
	c := <-s.conns
	for _, begun := range []bool{true, false} {
		if begun {
			c.say(t, "hello", `,"n":5,"chart":"c1","at":1`)
			p.Until("live", `mode === 'live'`)
		}
		said := time.Now()
		_ = c.Close(4000, "drain retry_ms=3000")
		c = <-s.conns
		if took := time.Since(said); took < 3*time.Second {
			t.Errorf("begun: %v: it comes back after %v", begun, took)
		}
	}
}

func TestATicketThatIsRefusedForAWhileIsAskedForNoSooner(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	browsertest.Eval[int](p, browsertest.Modules+`
		const [{ Ladder }, { Problem }] = await Promise.all([use('ladder.js'), use('api.js')]);
		const now = Date.now;
		window.ahead = 0;
		Date.now = () => now() + ahead;
		window.asked = { ticket: 0, polls: 0 };
		const api = { url: (path) => path, call: async (method) => {
			if (method === 'GET') {
				asked.polls++;
				return { n: 5, chart: 'c1', map: '', areas: {}, mode: 'hot', live: '/', poll_after_ms: 500 };
			}
			asked.ticket++;
			throw new Problem({ code: 'store_unavailable', status: 503, retryAfter: 60000 });
		} };
		const ladder = new Ladder({ event: 'e', api, taker: { mine: 0, take() {}, mode() {}, guarded() {} } });
		ladder.guarded = true;
		ladder.start(true);
		return 0;`)
	p.Until("polled", `asked.polls > 0`)
	browsertest.Eval[int](p, `ahead = 50000; return asked.polls = 0;`)
	p.Until("polled", `asked.polls > 1`)
	if asked := browsertest.Eval[int](p, `return asked.ticket`); asked != 1 {
		t.Errorf("in the first minute it has asked for %d tickets", asked)
	}
	browsertest.Eval[int](p, `ahead = 100000; return 0;`)
	p.Until("it has asked for another", `asked.ticket > 1`)
}

func TestNoSocketIsOpenedBeforeAPollWasAnswered(t *testing.T) {
	s := newSockets(t)
	var polls atomic.Int64
	browsertest.Eval[int](browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/ws", s.serve)
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			if polls.Add(1) == 1 {
				return c.NoContent(http.StatusServiceUnavailable)
			}
			return polledAt(c, 5)
		})
	})), hasty(`{}`)) // there is no stream of events
	if c := <-s.conns; polls.Load() < 2 || c.asked.Since != 5 {
		t.Errorf("after %d polls a socket asks for %+v", polls.Load(), c.asked)
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
	if got := browsertest.Eval[[]int](p, `return [told.length, heard]`); got[0] != got[1] {
		t.Errorf("of %d polls that were shown it is as of %d", got[0], got[1])
	}
}
