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

// ordinary is the map of an ordinary event as the server sends it: caches may keep it
// for half a minute. It is asked for twice a second.
type ordinary struct {
	n     atomic.Int64
	chart atomic.Value
	down  atomic.Bool
	head  atomic.Value       // of func(http.Header): what something on the way adds
	asked chan *http.Request // those who ask
}

func newOrdinary() *ordinary {
	o := &ordinary{asked: make(chan *http.Request, 256)} // more than any test has polls
	o.n.Store(5)
	o.chart.Store("c1")
	o.head.Store(func(http.Header) {})
	return o
}

func (o *ordinary) serve(c echo.Context) error {
	o.asked <- c.Request()
	if o.down.Load() {
		return c.NoContent(http.StatusServiceUnavailable)
	}
	n, chart := o.n.Load(), o.chart.Load()
	o.head.Load().(func(http.Header))(c.Response().Header())
	body := fmt.Appendf(nil, `{"n":%d,"chart":%q,"map":"","areas":{},"mode":"ordinary","live":null,"poll_after_ms":500}`, n, chart)
	return web.Cacheable{Control: "public, max-age=30", Kind: echo.MIMEApplicationJSON, Tag: fmt.Sprint(n, chart), Plain: func() []byte { return body },
		Gzip: func() []byte { panic("nobody asked for it") }}.Serve(c)
}

// opens has a page that polls.
func (o *ordinary) opens(t *testing.T, before string) *browsertest.Page {
	t.Helper()
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			c.Request().Header.Set(echo.HeaderAcceptEncoding, "identity")
			return o.serve(c)
		})
	}))
	browsertest.Eval[int](p, before+fmt.Sprintf(feed, false))
	return p
}

func TestAPollIsAnsweredByTheServerThoughTheBrowserMayKeepTheLastAnswer(t *testing.T) {
	o := newOrdinary()
	p := o.opens(t, "")
	p.Until("polled", `mode === 'polling' && told.join() === 'snapshot 5'`)
	<-o.asked
	again := <-o.asked
	if got := again.Header; got.Get("If-None-Match") != `"5c1"` || got.Get("Cache-Control") != "max-age=0" || got.Get("Pragma") != "" {
		t.Errorf("it asks with If-None-Match %s, Cache-Control %s, Pragma %s", got.Get("If-None-Match"), got.Get("Cache-Control"), got.Get("Pragma"))
	}
	o.n.Store(6)
	p.Until("what has changed is shown", `told.at(-1) === 'snapshot 6'`)
	o.down.Store(true)
	p.Until("it says that it does not know", `mode === 'waiting'`)
	was := browsertest.Eval[int](p, `return heard`)
	for len(o.asked) > 0 {
		<-o.asked
	}
	<-o.asked
	<-o.asked // the one before is answered
	if now := browsertest.Eval[int](p, `return heard`); now != was {
		t.Errorf("without a server it is as of now %d times", now-was)
	}
}

// aged is an answer that a cache has kept for so many seconds.
func aged(seconds string) func(http.Header) {
	return func(h http.Header) { h.Set("Age", seconds) }
}

// dated is an answer of so long ago.
func dated(ago time.Duration) func(http.Header) {
	return func(h http.Header) { h.Set("Date", time.Now().Add(-ago).UTC().Format(http.TimeFormat)) }
}

func TestWhatACacheHasKeptIsAsOfThen(t *testing.T) {
	for name, tt := range map[string]struct {
		head func(http.Header)
		is   string
	}{
		"by its age":                 {aged("20"), `age >= 20000 && age < 22000`},
		"by its date":                {dated(time.Hour), `age >= 3600000 && age < 3602000`},
		"of a device that is behind": {dated(-time.Hour), `age < 2000 && clock.now() - Date.now() > 3500000`},
		"that nothing has kept":      {aged("0"), `age < 2000`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrdinary()
			o.head.Store(tt.head)
			o.opens(t, "").Until("it is as of then", `heard > 1 && `+tt.is)
		})
	}
}

func TestWhatACacheHasKeptDoesNotTakeAMapBack(t *testing.T) {
	o := newOrdinary()
	o.n.Store(9)
	p := o.opens(t, "")
	p.Until("polled", `told.at(-1) === 'snapshot 9'`)
	o.head.Store(aged("60"))
	o.n.Store(7)
	began := browsertest.Eval[float64](p, `return performance.now()`)
	p.Until("longer than any server is behind", fmt.Sprintf(`performance.now() - %f > 4000`, began))
	if got := browsertest.Eval[string](p, `return told.at(-1)`); got != "snapshot 9" {
		t.Errorf("it shows %s", got)
	}
	o.head.Store(aged("0"))
	p.Until("the server has lost it", `told.at(-1) === 'snapshot 7'`)
}

func TestAPollOfAChartThatCannotBeShownIsAskedForAgainAfterAWhile(t *testing.T) {
	o := newOrdinary()
	o.chart.Store("c2")
	began := time.Now()
	p := o.opens(t, `Math.random = () => 0.5;`)
	browsertest.Eval[int](p, `window.comes = Promise.reject(new Error('a server that is behind')); comes.catch(() => {}); return 0;`)
	p.Until("it has asked for the chart", `told.length > 2`)
	if took, asked := time.Since(began), browsertest.Eval[string](p, `return told.join() + ' ' + modes.join()`); took < 3*time.Second {
		t.Errorf("within %v: %s", took, asked)
	} else if strings.Contains(asked, "polling") {
		t.Errorf("while it is not shown: %s", asked)
	}
	browsertest.Eval[int](p, `window.comes = null; return 0;`)
	p.Until("it shows the other", `told.at(-1) === 'snapshot 5' && mode === 'polling'`)
}

func TestAMapWhoseConnectionIsLostKeepsTheTimeItWasKnownAt(t *testing.T) {
	s := newStream()
	o := newOrdinary()
	o.head.Store(aged("3600"))
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		hall(g, s)
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			c.Request().Header.Set(echo.HeaderAcceptEncoding, "identity")
			return o.serve(c)
		})
	})+"/events/e")
	c := <-s.conns
	now := time.Now().UnixMilli()
	c.say("event: hello\ndata: {\"n\":5,\"chart\":\"c1\",\"at\":%d}", now)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
	p.Until("live", `document.getElementById('live').dataset.mode === 'live' && document.getElementById('asof').textContent`)
	was := browsertest.Eval[string](p, `return document.getElementById('asof').textContent`)
	c.say("event: degraded\ndata: {\"reason\":\"redis_unreachable\",\"poll\":\"/v1/events/e/seatmap\"}")
	for range 3 { // two are answered
		<-o.asked
	}
	if got := browsertest.Eval[string](p, `return document.getElementById('asof').textContent`); got != was {
		t.Errorf("what was known %s is %s", was, got)
	}
}

func TestTheOpeningOfASaleIsToldByTheServersClock(t *testing.T) {
	for name, tt := range map[string]struct {
		ahead, opens time.Duration // of the device; after now, by the server
		says         string
	}{
		"of a device that is ahead":  {10 * time.Minute, 5 * time.Minute, "The sale opens in 4:"},
		"of a device that is behind": {-10 * time.Minute, -5 * time.Minute, "This event is not on sale."},
	} {
		t.Run(name, func(t *testing.T) {
			server := time.Now().Add(-tt.ahead)
			p := browsertest.Open(t, client(t, func(g *echo.Group) {
				g.GET("/events/e", func(c echo.Context) error {
					dated(tt.ahead)(c.Response().Header())
					c.Response().Header().Set("Cache-Control", "public, max-age=1")
					return c.JSONBlob(200, fmt.Appendf(nil, `{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00",
						"opensAt":%q,"chart":"c1","mode":"ordinary","state":"open","open":false,"currency":"EUR","seatsPerBooking":3,"prices":[],"areas":[]}`, server.Add(tt.opens).Format(time.RFC3339)))
				})
			})+"/events/e")
			p.Until("it says so", fmt.Sprintf(`document.getElementById('banner').textContent.startsWith(%q)`, tt.says))
		})
	}
}
