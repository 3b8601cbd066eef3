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

// chooses opens the page of an event, whose bookings are as mount says, and chooses t0.
func chooses(t *testing.T, mount func(g *echo.Group)) (*browsertest.Page, *stream, conn) {
	t.Helper()
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		hall(g, s)
		mount(g)
	})+"/events/e")
	c := shows(s, "AAA=")
	p.Until("counted", pricesAreThere)
	browsertest.Eval[int](p, `document.getElementById('show-list').click(); document.querySelector('#list details').open = true; return 0;`)
	p.Until("rows", `document.querySelector('#list details details')`)
	browsertest.Eval[int](p, `document.querySelector('#list details details').open = true; return 0;`)
	p.Until("seats", `document.querySelector('#list .seats button')`)
	browsertest.Eval[int](p, `document.querySelector('#list .seats button').click(); `+hears)
	p.Until("chosen", hold)
	return p, s, c
}

// Another version of the page may have written it.
func TestAPageForgetsWhatItCannotReadOfWhatWasKept(t *testing.T) {
	p, s, _ := chooses(t, func(g *echo.Group) {
		g.GET("/bookings/e.b1", func(echo.Context) error {
			return &web.Problem{Status: http.StatusNotFound, Code: "unknown_booking"}
		})
	})
	for _, kept := range []string{"garbage", "{}", "[1,2]", "5", `"e.b1"`} {
		browsertest.Eval[int](p, fmt.Sprintf(`
			addEventListener('pagehide', () => {
				for (const what of ['hold', 'payment', 'choice']) sessionStorage.setItem('seatcast.' + what + '.e', %q);
				sessionStorage.setItem('seatcast.booking.e', 'e.b1');
			});
			return 0;`, kept))
		p.Reload()
		shows(s, "AAA=")
		p.Until("counted", pricesAreThere)
		p.Until("nothing is held or looked for", `document.getElementById('panel').dataset.stage === 'picking' && !sessionStorage.getItem('seatcast.booking.e')`)
		for line := range strings.Lines(p.Console()) {
			if !strings.Contains(line, "404") { // of the order
				t.Errorf("with %s: %s", kept, line)
			}
		}
	}
}

// shows sends a page that has come the map.
func shows(s *stream, seats string) conn {
	c := <-s.conns
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":%q,\"areas\":{\"pit\":50}}", seats)
	return c
}

// hears keeps what is said in notes.
const hears = `
	window.said = new Set();
	new MutationObserver(() => said.add(document.getElementById('notes').innerText)).observe(document.getElementById('notes'), { childList: true, subtree: true });
	return 0;`

const (
	hold     = `document.querySelector('[data-key=hold]:not(:disabled)')`
	isHeld   = `document.getElementById('panel').dataset.stage === 'held'`
	isSought = `document.getElementById('panel').innerText.includes('looking for your order') && !document.querySelector('.instead')`
	isTaken  = `/\b1 left/.test(document.getElementById('legend').innerText)` // t0, on the map
)

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

// orders answers what is asked of the order as these say, and then that it is held.
func orders(g *echo.Group, answers ...echo.HandlerFunc) {
	var asked atomic.Int64
	g.GET("/bookings/e.b1", func(c echo.Context) error {
		if n := int(asked.Add(1)); n <= len(answers) {
			return answers[n-1](c)
		}
		return c.JSONBlob(200, order("held", nextYear))
	})
}

func TestAReloadSaysNothingOfSeatsUntilTheOrderCanBeRead(t *testing.T) {
	second := make(chan struct{})
	p, s, _ := chooses(t, func(g *echo.Group) {
		g.POST("/bookings/e", heldByThem)
		orders(g, noAnswer, func(c echo.Context) error {
			<-second
			return c.JSONBlob(200, order("held", nextYear))
		})
	})
	browsertest.Eval[int](p, hold+`.click(); return 0;`)
	p.Until("held", isHeld)
	p.Reload()
	shows(s, "AQA=") // t0 is held
	p.Until("the map is there", pricesAreThere)
	browsertest.Eval[int](p, hears)
	p.Until("its order is being looked for", isSought)
	close(second)
	p.Until("it is held", isHeld)
	neverSaid(t, p, "are held") // which is no news
	neverSaid(t, p, "faster")
}

func TestAnElementThatComesBackLosesNothingWhileItsOrderCannotBeRead(t *testing.T) {
	s := newStream()
	first := make(chan struct{})
	p, c := element(t, s, func(g *echo.Group) {
		g.POST("/bookings/e", heldByThem)
		orders(g, func(c echo.Context) error {
			<-first
			return noAnswer(c)
		})
	})
	browsertest.Eval[int](p, `await map.hold(); return 0;`)
	turns(c, 6, "reserved")
	browsertest.Eval[int](p, `
		map.remove();
		await new Promise((done) => setTimeout(done)); // it has ended
		document.body.append(map);
		return 0;`)
	shows(s, "AQA=")
	p.Until("the map is there", strings.Replace(isTaken, "document.getElementById", "map.shadowRoot.getElementById", 1))
	close(first)
	p.Until("it is told", `heard.length > 1`)
	if heard := browsertest.Eval[string](p, `return heard.join() + ' ' + map.selection`); heard != "hold e.b1,hold e.b1 t0" {
		t.Errorf("it is told %s", heard)
	}
}

// cart is a Cart of t0, whose server answers what a test says.
const cart = browsertest.Modules + `
	const [{ Cart }, { State }, { Chart }] = await Promise.all(['cart.js', 'state.js', 'chart.js'].map(use));
	const reads = [];
	const api = { call: (method) => new Promise((done) => { if (method === 'GET') reads.push(done); }) };
	const of = (state) => ({ bookingId: 'e.b1', state, seats: [{ ticketId: 't0' }], areas: [], total: { amount: 1, currency: 'EUR' } });
	const kept = new Map([['seatcast.booking.e', 'e.b1']]);
	const cart = new Cart(api, { id: 'e', prices: [], areas: [] }, { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) });
	cart.on(new State(new Chart('c1', ` + house + `)));
	const told = [];
	cart.addEventListener('told', (e) => told.push(e.detail.what));
	const resumed = cart.resume();
	reads.shift()(of('paying'));
	await resumed;
`

func TestAnAnswerThatWasOvertakenUndoesNothing(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[string](p, cart+`
		const early = cart.refresh(), late = cart.refresh();
		reads[1](of('sold'));
		await late;
		reads[0](of('paying'));
		await early;
		return [cart.stage, ...told].join(' ');`)
	if got != "sold sold" {
		t.Errorf("it is %s", got)
	}
}

func TestAnOrderThatIsDoneWithDoesNotComeBack(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[string](p, cart+`
		const first = cart.refresh();
		reads.shift()(of('sold'));
		await first;
		const late = cart.refresh();
		cart.again();
		reads.shift()(of('sold'));
		await late;
		return cart.stage;`)
	if got != "picking" {
		t.Errorf("it is %s", got)
	}
}
