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

// order is what a booking of t0 is answered with.
func order(state string, expires time.Time) []byte {
	return fmt.Appendf(nil, `{"bookingId":"e.b1","state":%q,"expiresAt":%q,"cap":"2099-01-01T00:00:00Z","areas":[],
		"seats":[{"ticketId":"t0","label":"1","section":"Stalls","row":"1","category":"A","price":5000}],"total":{"amount":5000,"currency":"EUR"}}`, state, expires.Format(time.RFC3339))
}

var nextYear = time.Now().AddDate(1, 0, 0)

// element opens a page that shows the map of hall, in which calls books.
func element(t *testing.T, s *stream, calls func(g *echo.Group)) (*browsertest.Page, conn) {
	t.Helper()
	url, _ := server(t, func(e *echo.Echo) {
		web.MountPages(e)
		g := e.Group("/v1")
		hall(g, s)
		calls(g)
		e.GET("/embed", func(c echo.Context) error {
			return c.HTML(200, `<!doctype html><html lang="en"><body><seat-map event="e"></seat-map><script type="module" src="/seat-map.js"></script></body></html>`)
		})
	})
	p := browsertest.Open(t, url+"/embed")
	browsertest.Eval[int](p, `
		window.map = document.querySelector('seat-map');
		window.heard = [];
		for (const name of ['hold', 'lost']) map.addEventListener(name, (e) => heard.push(name + ' ' + (e.detail.reason ?? e.detail.bookingId)));
		map.session = () => 'tok';
		map.selection = ['t0'];
		return 0;`)
	c := <-s.conns
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
	p.Until("live", `map.shadowRoot.querySelector('#live')?.dataset.mode === 'live'`)
	return p, c
}

// turns tells a page what has become of t0.
func turns(c conn, n int, how string) {
	c.say("event: delta\nid: %d\ndata: {\"n\":%d,\"prev\":%d,\"at\":1,%s}", n, n, n-1, strings.Replace(noSeats, `"`+how+`":[]`, `"`+how+`":[0]`, 1))
}

// loses is a booking whose first answer never comes, though it may have been carried
// out; the next ones are as answer says. It tells how many keys it has seen.
func loses(g *echo.Group, answer func(c echo.Context) error) (asked, keys *atomic.Int64) {
	asked, keys = new(atomic.Int64), new(atomic.Int64)
	var last atomic.Value
	g.POST("/bookings/e", func(c echo.Context) error {
		if key := c.Request().Header.Get("Idempotency-Key"); last.Swap(key) != key {
			keys.Add(1)
		}
		if asked.Add(1) == 1 {
			return c.HTML(http.StatusGatewayTimeout, "<h1>504</h1>")
		}
		return answer(c)
	})
	return asked, keys
}

func heldByThem(c echo.Context) error { return c.JSONBlob(201, order("held", nextYear)) }

func takenByOthers(echo.Context) error {
	return &web.Problem{Status: http.StatusConflict, Code: "seats_taken", Extra: map[string]any{"seats": []string{"t0"}}}
}

// holdsInVain opens the page of an event and holds t0, without an answer.
func holdsInVain(t *testing.T, answer func(c echo.Context) error) (p *browsertest.Page, c conn, asked, keys *atomic.Int64) {
	t.Helper()
	s := newStream()
	p = browsertest.Open(t, client(t, func(g *echo.Group) {
		hall(g, s)
		asked, keys = loses(g, answer)
	})+"/events/e")
	c = <-s.conns
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
	p.Until("counted", pricesAreThere)
	browsertest.Eval[int](p, `document.getElementById('show-list').click(); document.querySelector('#list details').open = true; return 0;`)
	p.Until("rows", `document.querySelector('#list details details')`)
	browsertest.Eval[int](p, `document.querySelector('#list details details').open = true; return 0;`)
	p.Until("seats", `document.querySelector('#list .seats button')`)
	browsertest.Eval[int](p, `
		document.querySelector('#list .seats button').click();
		window.said = new Set();
		new MutationObserver(() => said.add(document.getElementById('notes').innerText)).observe(document.getElementById('notes'), { childList: true, subtree: true });
		return 0;`)
	p.Until("chosen", `document.querySelector('[data-key=hold]')`)
	browsertest.Eval[int](p, `document.querySelector('[data-key=hold]').click(); return 0;`)
	p.Until("it has no answer", `said.size > 0 && document.getElementById('panel').ariaBusy === 'false'`)
	return p, c, asked, keys
}

const faster = `[...said].some((text) => text.includes('faster') || text.includes('Somebody'))`

func TestAHoldWhoseAnswerWasLostIsFoundWhenTheMapShowsItsSeats(t *testing.T) {
	p, c, asked, keys := holdsInVain(t, heldByThem)
	turns(c, 6, "reserved")
	p.Until("it is found", `document.getElementById('panel').dataset.stage === 'held'`)
	if asked.Load() != 2 || keys.Load() != 1 {
		t.Errorf("it was asked for %d times under %d keys", asked.Load(), keys.Load())
	}
	if browsertest.Eval[bool](p, `return `+faster) {
		t.Errorf("it is said: %s", browsertest.Eval[string](p, `return [...said].join('; ')`))
	}
}

func TestASeatThatSomebodyElseGotIsToldThoughAHoldOfItHadNoAnswer(t *testing.T) {
	p, c, asked, keys := holdsInVain(t, takenByOthers)
	turns(c, 6, "reserved")
	p.Until("it is told", faster+` && document.querySelector('.panel .gone')`)
	if asked.Load() != 2 || keys.Load() != 1 {
		t.Errorf("it was asked for %d times under %d keys", asked.Load(), keys.Load())
	}
}

func TestAnElementFindsItsHoldWhoseAnswerWasLost(t *testing.T) {
	s := newStream()
	var asked, keys *atomic.Int64
	p, c := element(t, s, func(g *echo.Group) { asked, keys = loses(g, heldByThem) })
	if code := browsertest.Eval[string](p, `return map.hold().then(() => 'held', (p) => p.code);`); code != "store_unavailable" {
		t.Fatalf("a hold without an answer is %s", code)
	}
	turns(c, 6, "reserved")
	p.Until("it is told", `heard.length`)
	if heard := browsertest.Eval[string](p, `return heard.join()`); heard != "hold e.b1" || asked.Load() != 2 || keys.Load() != 1 {
		t.Errorf("it is told %s; it was asked for %d times under %d keys", heard, asked.Load(), keys.Load())
	}
}

func TestAnElementThatIsTakenOutOfThePageTellsAndAsksNothingMore(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	var looked atomic.Int64
	p, _ := element(t, newStream(), func(g *echo.Group) {
		g.POST("/bookings/e", func(c echo.Context) error {
			close(asked)
			<-answer
			return c.JSONBlob(201, order("held", time.Now().Add(-time.Minute))) // its time is over: what became of it?
		})
		g.GET("/bookings/e.b1", func(c echo.Context) error {
			looked.Add(1)
			return c.JSONBlob(200, order("held", time.Now().Add(-time.Minute)))
		})
	})
	browsertest.Eval[int](p, `window.held = map.hold(); return 0;`)
	<-asked
	browsertest.Eval[int](p, `map.remove(); return 0;`)
	close(answer)
	if booking := browsertest.Eval[string](p, `return (await held).bookingId;`); booking != "e.b1" {
		t.Errorf("who called is answered %s", booking)
	}
	heard := browsertest.Eval[string](p, `for (let i = 0; i < 5; i++) await fetch('/v1/events/e', { cache: 'no-store' }); return heard.join();`)
	if heard != "" || looked.Load() != 0 {
		t.Errorf("it tells %q, and has asked %d times", heard, looked.Load())
	}
}

func TestAHoldIsLostForTheReasonItEndedAndForNoneBefore(t *testing.T) {
	var is atomic.Value
	is.Store("held")
	p, c := element(t, newStream(), func(g *echo.Group) {
		g.POST("/bookings/e", heldByThem)
		g.POST("/bookings/e.b1/extend", func(c echo.Context) error {
			return &web.Problem{Status: http.StatusTooManyRequests, Code: "too_many_requests", RetryAfter: time.Second}
		})
		g.GET("/bookings/e.b1", func(c echo.Context) error { return c.JSONBlob(200, order(is.Load().(string), nextYear)) })
	})
	browsertest.Eval[int](p, `await map.hold(); return 0;`)
	turns(c, 6, "reserved")
	if code := browsertest.Eval[string](p, `return map.extend().then(() => 'extended', (p) => p.code);`); code != "too_many_requests" {
		t.Fatalf("more time is refused with %s", code)
	}
	is.Store("released") // given back elsewhere
	turns(c, 7, "released")
	p.Until("it is told", `heard.length > 1`)
	if heard := browsertest.Eval[string](p, `return heard.join()`); heard != "hold e.b1,lost released" {
		t.Errorf("it is told %s", heard)
	}
}
