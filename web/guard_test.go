package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// guardedFeed is feed at an event that guards its map, with what the page has
// as session.
func guardedFeed(session string) string {
	script := strings.Replace(feed, "event: 'e'", "guarded: true, event: 'e'", 1)
	return fmt.Sprintf(strings.Replace(script, "new Api(clock, null)", "new Api(clock, "+session+")", 1), true)
}

func TestAFeedOfAGuardedMapComesBackWithAnotherTicket(t *testing.T) {
	s := newStream()
	tickets := make(chan string, 8) // more than the test opens streams
	issued := 0
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.POST("/events/e/live-ticket", func(c echo.Context) error {
			if c.Request().Header.Get("Authorization") != "Bearer ann" {
				return c.NoContent(http.StatusUnauthorized)
			}
			issued++
			return c.JSONBlob(http.StatusCreated, fmt.Appendf(nil, `{"ticket":"t%d"}`, issued))
		})
		g.GET("/events/e/live", func(c echo.Context) error {
			tickets <- c.QueryParam("ticket")
			return s.serve(c)
		})
	}))
	browsertest.Eval[int](p, guardedFeed(`{ known: true, token: async () => 'ann', forget() {} }`))
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	p.Until("drawn", `told.length === 1`)
	c.cut() // the browser itself would come back with the ticket it has used
	c = <-s.conns
	if c.since != "5" {
		t.Errorf("after the cut it asks for since=%s", c.since)
	}
	if first, second := <-tickets, <-tickets; first != "t1" || second != "t2" {
		t.Errorf("it came with tickets %s and %s", first, second)
	}
}

// A browser keeps what retry: said to itself.
func TestAFeedOfAGuardedMapThatIsRefusedStaysAwayAsLongAsItWasTold(t *testing.T) {
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.POST("/events/e/live-ticket", func(c echo.Context) error {
			return c.JSONBlob(http.StatusCreated, []byte(`{"ticket":"t"}`))
		})
		g.GET("/events/e/live", s.serve)
		g.GET("/events/e/seatmap", func(c echo.Context) error { return polledAt(c, 5) })
	}))
	browsertest.Eval[int](p, guardedFeed(`{ known: true, token: async () => 'ann', forget() {} }`))
	c := <-s.conns
	const told = 6 * time.Second // by itself it comes back within five
	c.say("retry: %d\nevent: degraded\ndata: {\"reason\":\"full\",\"poll\":\"/v1/events/e/seatmap\",\"retry_ms\":%[1]d}", told.Milliseconds())
	p.Until("polled", `mode === 'polling'`)
	cut := time.Now()
	c.cut()
	<-s.conns
	if away := time.Since(cut); away < told {
		t.Errorf("it comes back after %v", away)
	}
}

func TestAFeedAsksOnceToSignInAndShowsTheMapWhenTheShopperHas(t *testing.T) {
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/live", s.serve)
		g.POST("/events/e/live-ticket", func(c echo.Context) error {
			return c.JSONBlob(http.StatusCreated, []byte(`{"ticket":"t"}`))
		})
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			if c.Request().Header.Get("Authorization") != "Bearer ann" {
				return c.NoContent(http.StatusUnauthorized)
			}
			return c.JSONBlob(http.StatusOK, []byte(`{"n":5,"chart":"c1","map":"","areas":{},"mode":"hot","live":"/","poll_after_ms":500}`))
		})
	}))
	browsertest.Eval[int](p, guardedFeed(`window.session = { asked: 0, known: false, forget() {}, async token(quiet) {
		if (this.known) return 'ann';
		if (!quiet) this.asked++;
		throw new DOMException('not signed in', 'AbortError');
	} }`))
	p.Until("it says that the map is guarded", `mode === 'guarded'`)
	browsertest.Eval[int](p, `session.known = true; return 0`)
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(6))
	p.Until("drawn", `told.at(-1) === 'snapshot 6'`)
	if asked := browsertest.Eval[int](p, `return session.asked`); asked != 1 {
		t.Errorf("the shopper was asked %d times to sign in", asked)
	}
}

func TestAMapThatIsGuardedSinceItsPageWasOpenedIsAskedForAsTheShopper(t *testing.T) {
	s := newStream()
	var guarded atomic.Bool
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/live", func(c echo.Context) error {
			if guarded.Load() && c.QueryParam("ticket") != "hers" {
				return &web.Problem{Status: http.StatusUnauthorized, Code: "ticket_missing"}
			}
			return s.serve(c)
		})
		g.POST("/events/e/live-ticket", func(c echo.Context) error {
			return c.JSONBlob(http.StatusCreated, []byte(`{"ticket":"hers"}`))
		})
		g.GET("/events/e/seatmap", func(echo.Context) error {
			return &web.Problem{Status: http.StatusUnauthorized, Code: "ticket_missing"}
		})
	}))
	browsertest.Eval[int](p, fmt.Sprintf(strings.Replace(feed, "new Api(clock, null)", "new Api(clock, { token: async () => 'ann', forget() {} })", 1), true))
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	p.Until("drawn", `told.length === 1`)
	guarded.Store(true)
	c.cut()
	c = <-s.conns
	c.say(hello)
	c.say("%s", snapshot(6))
	p.Until("drawn again", `told.at(-1) === 'snapshot 6' && mode === 'live'`)
}
