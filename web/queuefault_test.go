package web_test

import (
	"encoding/json"
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

// line is a server of one line that answers as a test likes.
type line struct {
	*stream
	join, pass, draw, me, leave atomic.Pointer[func(c echo.Context) error]
	none                        atomic.Pointer[func(c echo.Context) error] // in place of the line
	frame                       atomic.Pointer[string]
	asked, joined, looked       atomic.Int64               // for passes, to join, and for the frame or a stream
	event                       func(c echo.Context) error // the first time that it is asked for
	guests                      bool                       // signs people in
	at                          atomic.Int64               // what it is by the frame that was told last, Unix ms
}

func newLine() *line {
	l := &line{stream: newStream(), guests: true}
	l.at.Store(year)
	l.finds(noPlace)
	first := lineFrame(1, "open", 10)
	l.frame.Store(&first)
	l.joins(`{"ticket":"` + herTicket + `","state":"open","number":100,"place":"signed"}`)
	return l
}

const herTicket = "AAAAAAAAAAAAAAAAAAAAAA"

func (l *line) joins(answer string) {
	do := func(c echo.Context) error { return c.JSONBlob(200, []byte(answer)) }
	l.join.Store(&do)
}

func (l *line) finds(do func(c echo.Context) error) { l.me.Store(&do) }

func (l *line) leaves(do func(c echo.Context) error) { l.leave.Store(&do) }

func noPlace(echo.Context) error { return &web.Problem{Status: 404, Code: "no_place"} }

func gone(c echo.Context) error { return c.NoContent(204) }

// lets answers that she is let in until a time.
func lets(until string) func(c echo.Context) error {
	return func(c echo.Context) error { return c.JSONBlob(200, []byte(`{"pass":"hers","expiresAt":"`+until+`"}`)) }
}

func (l *line) passes(do func(c echo.Context) error) { l.pass.Store(&do) }

func (l *line) draws(do func(c echo.Context) error) { l.draw.Store(&do) }

// open opens the page of the line.
func (l *line) open(t *testing.T) *browsertest.Page {
	t.Helper()
	by := func(do *atomic.Pointer[func(c echo.Context) error]) echo.HandlerFunc {
		return func(c echo.Context) error { return (*do.Load())(c) }
	}
	dated := func(next echo.HandlerFunc) echo.HandlerFunc { // by the clock of its frames: a page goes by both
		return func(c echo.Context) error {
			c.Response().Header().Set("Date", time.UnixMilli(l.at.Load()).UTC().Format(http.TimeFormat))
			return next(c)
		}
	}
	url := client(t, func(g *echo.Group) {
		g.GET("/events/e", func(c echo.Context) error {
			if do := l.event; do != nil {
				l.event = nil
				return do(c)
			}
			return c.JSONBlob(200, []byte(`{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00"}`))
		})
		if l.guests {
			g.POST("/demo/session", func(c echo.Context) error {
				var body struct{ User string }
				if err := c.Bind(&body); err != nil {
					return err
				}
				return c.JSON(200, map[string]string{"token": body.User})
			}, dated)
		}
		or := func(there echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				l.looked.Add(1)
				if no := l.none.Load(); no != nil {
					return (*no)(c)
				}
				return there(c)
			}
		}
		g.GET("/queue/e", or(func(c echo.Context) error { return c.JSONBlob(200, []byte(l.dates(*l.frame.Load()))) }), dated)
		g.GET("/queue/e/live", or(l.serve), dated)
		g.POST("/queue/e", func(c echo.Context) error { l.joined.Add(1); return by(&l.join)(c) }, dated)
		g.GET("/queue/e/me", by(&l.me), dated)
		g.DELETE("/queue/e/me", by(&l.leave), dated)
		g.POST("/queue/e/pass", func(c echo.Context) error { l.asked.Add(1); return by(&l.pass)(c) }, dated)
		g.GET("/queue/e/draw", by(&l.draw), dated)
		g.GET("/queue/e/draw/shards/0", func(c echo.Context) error {
			return c.JSONBlob(200, []byte(`{"shard":0,"tickets":[["`+herTicket+`","nonce",7]],"path":[]}`))
		}, dated)
	})
	p := browsertest.Open(t, url+"/queue/e")
	p.Until("the page is there", `document.getElementById('news').innerText !== ''`)
	return p
}

func (l *line) tells(c conn, n int, state string, serving int, change ...string) {
	text := strings.NewReplacer(change...).Replace(oneLine(lineFrame(n, state, serving)))
	c.say("event: delta\nid: %d\ndata: %s", n, l.dates(text))
}

// dates has it be when a frame says that it is, at least.
func (l *line) dates(frame string) string {
	var f struct{ At int64 }
	if json.Unmarshal([]byte(frame), &f) == nil && f.At > l.at.Load() {
		l.at.Store(f.At)
	}
	return frame
}

func click(p *browsertest.Page, id string) {
	browsertest.Eval[int](p, fmt.Sprintf(`document.getElementById(%q).click(); return 0;`, id))
}

func busy(c echo.Context) error {
	c.Response().Header().Set("Retry-After", "2")
	return &web.Problem{Status: 503, Code: "store_unavailable", RetryAfter: 2 * time.Second, Detail: "later"}
}

func TestInAnOutageAPageAsksNoMoreOftenThanItIsToldHoweverManyFramesCome(t *testing.T) {
	l := newLine()
	l.passes(busy)
	p := l.open(t)
	click(p, "join")
	c := <-l.conns
	p.Until("the place is shown", `document.getElementById('ahead').innerText === '89'`)
	l.tells(c, 2, "open", 100)
	p.Until("she is called", `document.getElementById('news').innerText.startsWith('You are called')`)
	browsertest.Eval[int](p, `window.spoken = 0; new MutationObserver(() => spoken++).observe(document.getElementById('news'), { childList: true, characterData: true, subtree: true }); return 0;`)
	begun := time.Now()
	n := 3
	for ; time.Since(begun) < 5*time.Second; n++ {
		l.tells(c, n, "open", 100)
		time.Sleep(50 * time.Millisecond)
	}
	asked, may := l.asked.Load(), int64(time.Since(begun)/(2*time.Second))+1
	if asked < 2 || asked > may {
		t.Errorf("asked %d times in %v, and it may be %d", asked, time.Since(begun), may)
	}
	if spoken := browsertest.Eval[int](p, `return spoken;`); spoken > 0 {
		t.Errorf("%d times the news were said though nothing had changed", spoken)
	}
	p.Until("what is wrong is said beside it", `document.getElementById('trouble').innerText.includes('very busy') && document.getElementById('news').innerText.startsWith('You are called')`)

	var entered atomic.Int64
	l.passes(func(c echo.Context) error {
		entered.Add(1)
		return c.JSONBlob(200, []byte(`{"pass":"hers","expiresAt":"2099-01-01T00:00:00Z"}`))
	})
	p.Until("she is let in", `!document.getElementById('enter').hidden && document.getElementById('trouble').hidden`)
	browsertest.Eval[int](p, `document.activeElement.blur(); return 0;`)
	for until := n + 50; n < until; n++ {
		l.tells(c, n, "open", 100)
		time.Sleep(50 * time.Millisecond)
	}
	if focus := browsertest.Eval[string](p, `return document.activeElement.id;`); focus != "" || entered.Load() != 1 {
		t.Errorf("inside she was let in %d times, and the focus is on %q", entered.Load(), focus)
	}
}

func TestARankIsLearntThoughTheNodeThatIsAskedHearsOfTheDrawLater(t *testing.T) {
	l := newLine()
	first := strings.Replace(lineFrame(1, "closed", 0), `"draw":null`, `"draw":{"state":"frozen","tickets":1}`, 1)
	l.frame.Store(&first)
	l.joins(`{"ticket":"` + herTicket + `","state":"closed","draw":true,"place":"receipt","announcement":"5f1e"}`)
	var tries atomic.Int64
	l.draws(func(c echo.Context) error {
		if tries.Add(1) < 3 {
			return &web.Problem{Status: 404, Code: "not_drawn", Detail: "not yet"} // an old node does not say when
		}
		return c.JSONBlob(200, []byte(`{"tickets":1,"key":"00"}`))
	})
	p := l.open(t)
	click(p, "join")
	c := <-l.conns
	for n := 2; n < 5; n++ {
		l.tells(c, n, "closed", 0, `"draw":null`, `"draw":{"state":"drawn","tickets":1}`)
		want := int64(n - 1)
		waitUntil(t, "it has asked again", func() bool { return tries.Load() >= want })
	}
	p.Until("the rank is shown", `document.getElementById('ahead').innerText === '6'`)
}

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(browsertest.Patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestAReceiptStaysAndWhoIsLeftOutOfTheListIsToldSo(t *testing.T) {
	l := newLine()
	first := strings.Replace(lineFrame(1, "draw", 0), `"draw":null`, `"draw":{"state":"announced","tickets":1}`, 1)
	l.frame.Store(&first)
	dropped := strings.Replace(herTicket, "AA", "AB", 1)
	l.joins(`{"ticket":"` + dropped + `","state":"draw","draw":true,"place":"receipt","announcement":"5f1e"}`)
	l.draws(func(c echo.Context) error { return c.JSONBlob(200, []byte(`{"tickets":1,"key":"00"}`)) })
	p := l.open(t)
	click(p, "join")
	c := <-l.conns
	p.Until("she takes part", `document.getElementById('news').innerText.startsWith('You take part')`)
	l.joins(`{"ticket":"` + dropped + `","state":"closed","number":2,"place":"late"}`)
	l.tells(c, 2, "closed", 0, `"draw":null`, `"draw":{"state":"drawn","tickets":1}`)
	p.Until("she is told, and has a place behind the list", `!document.getElementById('left-out').hidden && document.getElementById('ahead').innerText === '1'`)
	kept := browsertest.Eval[string](p, browsertest.Modules+`
		const { Keep } = await use('line.js');
		const keep = new Keep('e');
		return keep.place.place + ' ' + keep.receipt.place;`)
	if kept != "late receipt" {
		t.Errorf("kept are %s", kept)
	}
}

func TestWhoTakesPartInADrawJoinsOnceMoreBeforeItsListCloses(t *testing.T) {
	l := newLine()
	at := func(s int) string {
		return fmt.Sprintf(`"at":%d`, time.Date(2030, 1, 1, 0, 0, s, 0, time.UTC).UnixMilli())
	}
	const closes, now = `"closesAt":"2030-01-01T00:10:00Z"`, `"at":1893456000000`
	first := strings.NewReplacer(`"draw":null`, `"draw":{"state":"announced","tickets":1}`, `"closesAt":null`, closes, now, at(0)).Replace(lineFrame(1, "draw", 0))
	l.frame.Store(&first)
	shown := make(chan string, 16)
	join := func(c echo.Context) error {
		var body struct{ Place string }
		if err := c.Bind(&body); err != nil {
			return err
		}
		shown <- body.Place
		return c.JSONBlob(200, []byte(`{"ticket":"`+herTicket+`","state":"draw","draw":true,"place":"receipt","announcement":"5f1e"}`))
	}
	l.join.Store(&join)
	p := l.open(t)
	click(p, "join")
	c := <-l.conns
	p.Until("she takes part", `document.getElementById('news').innerText.startsWith('You take part')`)
	n := 2
	for _, s := range []int{1, 300, 460} { // she joins again between 465 and 585, when chance will have it
		l.tells(c, n, "draw", 0, `"closesAt":null`, closes, now, at(s), `"waiting":90`, fmt.Sprintf(`"waiting":%d`, s))
		p.Until("the frame is heard", fmt.Sprintf(`document.getElementById('left').innerText.includes('%d waiting')`, s))
		n++
	}
	if n := l.joined.Load(); n != 1 {
		t.Errorf("joined %d times long before the list closes", n)
	}
	for _, s := range []int{586, 590, 595} {
		l.tells(c, n, "draw", 0, `"closesAt":null`, closes, now, at(s), `"waiting":90`, fmt.Sprintf(`"waiting":%d`, s))
		p.Until("the frame is heard", fmt.Sprintf(`document.getElementById('left').innerText.includes('%d waiting')`, s))
		n++
	}
	waitUntil(t, "she has joined again", func() bool { return l.joined.Load() == 2 })
	if one, two := <-shown, <-shown; one != "" || two != "receipt" {
		t.Errorf("she showed %q and %q", one, two)
	}
}

func TestAStreamThatIsSilentIsOpenedAnew(t *testing.T) {
	l := newLine()
	p := l.open(t)
	first := <-l.conns
	browsertest.Eval[int](p, `const real = window.setTimeout; window.setTimeout = (f, ms, ...a) => real(f, ms / 50, ...a); return 0;`)
	l.tells(first, 2, "open", 20) // from now on its time is short
	second := <-l.conns
	l.tells(second, 3, "paused", 20)
	p.Until("what the new one tells is heard", `document.getElementById('news').innerText.includes('for the moment')`)
}

func TestALineIsWatchedWhileSomebodySignsIn(t *testing.T) {
	l := newLine()
	l.guests = false
	p := l.open(t)
	<-l.conns
	browsertest.Eval[int](p, browsertest.Modules+`
		const { Keep } = await use('line.js');
		new Keep('e').place = { place: 'signed', number: 100, from: 90 };
		return 0;`)
	p.Reload()
	p.Until("it says that she has to sign in, and asks nothing", `document.getElementById('news').innerText.startsWith('Sign in') && !document.getElementById('signin').open`)
	click(p, "sign-in")
	p.Until("it asks who she is", `document.getElementById('signin').open`)
	c := <-l.conns
	l.tells(c, 2, "open", 20, `"waiting":90`, `"waiting":80`)
	p.Until("the line is heard", `document.getElementById('left').innerText.includes('80 waiting')`)
}

func TestTwoAccountsInOneBrowserHaveAPlaceAndAPassEach(t *testing.T) {
	l := newLine()
	tickets := map[string]string{}
	var shown []string
	join := func(c echo.Context) error { // one call at a time: there is one page
		var body struct{ Place string }
		if err := c.Bind(&body); err != nil {
			return err
		}
		guest := c.Request().Header.Get("Authorization")
		if tickets[guest] == "" {
			tickets[guest] = fmt.Sprint("ticket", len(tickets)+1)
		}
		shown = append(shown, tickets[guest]+" shows "+body.Place)
		return c.JSONBlob(200, fmt.Appendf(nil, `{"ticket":%q,"state":"open","number":10%d,"place":"of %s"}`, tickets[guest], len(tickets), tickets[guest]))
	}
	l.join.Store(&join)
	l.finds(func(c echo.Context) error {
		if tickets[c.Request().Header.Get("Authorization")] != "ticket1" {
			return noPlace(c)
		}
		return c.JSONBlob(200, []byte(`{"ticket":"ticket1","insideUntil":"2099-01-01T00:00:00Z"}`))
	})
	l.passes(func(c echo.Context) error {
		return c.JSONBlob(200, fmt.Appendf(nil, `{"pass":"pass of %s","expiresAt":"2099-01-01T00:00:00Z"}`, tickets[c.Request().Header.Get("Authorization")]))
	})
	const pass = browsertest.Modules + `
		const { passFor } = await use('line.js');
		return passFor('/v1/bookings/e') ?? '';`
	p := l.open(t)
	click(p, "join")
	p.Until("the first waits", `document.getElementById('ahead').innerText === '90'`)
	l.tells(<-l.conns, 2, "open", 101)
	p.Until("the first is let in", `!document.getElementById('enter').hidden`)
	tab := browsertest.Eval[map[string]string](p, `return { ...sessionStorage, 'seatcast.token': localStorage.getItem('seatcast.token') };`)

	browsertest.Eval[int](p, `sessionStorage.clear(); localStorage.removeItem('seatcast.token'); localStorage.removeItem('seatcast.user'); return 0;`) // as in a tab of another account
	p.Reload()
	p.Until("the second is asked nothing and has nothing", `document.getElementById('news').innerText === 'The line is open, and people are being let in.' && !document.getElementById('join').hidden`)
	click(p, "join")
	p.Until("the second waits", `document.getElementById('ahead').innerText === '91'`)
	if got := browsertest.Eval[string](p, pass); got != "" {
		t.Errorf("the second has %q", got)
	}
	browsertest.Eval[int](p, browsertest.Modules+`
		const { backToLine } = await use('line.js');
		backToLine('POST', '/v1/bookings/e', 'pass_required');
		return 0;`)
	p.Until("the second is led to the line", `document.getElementById('ahead').innerText === '91'`)

	for key, value := range tab { // the first tab again
		browsertest.Eval[int](p, fmt.Sprintf(`sessionStorage.setItem(%q, %q); return 0;`, key, value))
	}
	if got := browsertest.Eval[string](p, pass); got != "pass of ticket1" {
		t.Errorf("the first has %q", got)
	}
	p.Reload()
	p.Until("the first is inside", `!document.getElementById('enter').hidden`)
	if got := fmt.Sprint(shown); got != "[ticket1 shows  ticket2 shows of ticket1 ticket2 shows of ticket2]" {
		t.Errorf("shown were %s", got)
	}
}

func TestASoundIsAllowedWhenItIsAskedFor(t *testing.T) {
	l := newLine()
	l.passes(lets("2099-01-01T00:00:00Z"))
	p := l.open(t)
	click(p, "join")
	p.Until("the place is shown", `document.getElementById('ahead').innerText === '89'`)
	browsertest.Eval[int](p, `window.made = 0; window.AudioContext = class extends AudioContext { constructor() { super(); window.made++; } }; return 0;`)
	click(p, "sound")
	p.Until("it is allowed", `window.made === 1`)
	l.tells(<-l.conns, 2, "open", 100)
	p.Until("she is let in", `!document.getElementById('enter').hidden`)
	if made := browsertest.Eval[int](p, `return window.made;`); made != 1 {
		t.Errorf("the sound is made by another: %d", made)
	}
}
