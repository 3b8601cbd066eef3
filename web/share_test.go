package web_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
)

// shared is an event that tabs of one browser watch.
type shared struct {
	t *testing.T
	*stream
	url   string
	polls atomic.Int64 // the number that whoever asks is told
}

func newShared(t *testing.T) *shared {
	s := &shared{t: t, stream: newStream()}
	s.polls.Store(5)
	s.url = client(t, func(g *echo.Group) {
		g.GET("/events/e/live", s.serve)
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			n := s.polls.Load()
			if since := c.QueryParam("since"); since != "" {
				return c.JSONBlob(http.StatusOK, fmt.Appendf(nil, `{"n":%d,"prev":%s,"at":1,"chart":"c1",%s}`, n, since, noSeats))
			}
			return polledAt(c, int(n))
		})
	})
	return s
}

// tab opens a tab that watches. It has all the patience that a busy machine needs, but
// where a test says otherwise.
func (s *shared) tab(waits string) *browsertest.Page {
	s.t.Helper()
	p := browsertest.Open(s.t, s.url)
	browsertest.Eval[int](p, hasty(`{ hello: 300000, silence: 300000, answer: 300000, rest: 300000, `+waits+`}`))
	return p
}

// alone fails when another stream than those the test knows of is opened.
func (s *shared) alone() {
	s.t.Helper()
	select {
	case <-s.conns:
		s.t.Error("another stream was opened")
	default:
	}
}

func TestTabsOfOneBrowserShareAStreamAndTheNextOneGoesOnWithoutAGap(t *testing.T) {
	s := newShared(t)
	first := s.tab(``)
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	first.Until("live", `mode === 'live' && told.length === 1`)
	second, third := s.tab(``), s.tab(``)
	for _, p := range []*browsertest.Page{second, third} {
		p.Until("live", `mode === 'live' && told.join() === 'snapshot 5'`)
	}
	c.say("%s", delta(5, 7))
	for _, p := range []*browsertest.Page{first, second, third} {
		p.Until("told", `told.join() === 'snapshot 5,delta 7'`)
	}
	s.alone()

	c.say("%s", delta(7, 8))
	first.Until("told", `told.at(-1) === 'delta 8'`)
	first.Close()
	c = <-s.conns
	if c.since != "8" {
		t.Errorf("the next tab asks for since=%s", c.since)
	}
	c.say(hello)
	c.say("%s", delta(8, 9))
	c.say("%s", delta(9, 10))
	for _, p := range []*browsertest.Page{second, third} {
		p.Until("told", `mode === 'live' && told.at(-1) === 'delta 10'`)
		if got := browsertest.Eval[string](p, `return told.join()`); got != "snapshot 5,delta 7,delta 8,delta 9,delta 10" {
			t.Errorf("a tab was told %s", got)
		}
	}
	s.alone()
}

func TestATabThatMissesAFrameAsksForItAndHearsOfAResetAsTheOthersDo(t *testing.T) {
	s := newShared(t)
	first := s.tab(``)
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	c.say("%s", delta(5, 7))
	first.Until("told", `told.length === 2`)
	second := s.tab(``)
	second.Until("it has a map", `told.join() === 'snapshot 5' && mode === 'connecting'`) // of a server that is behind
	s.polls.Store(7)
	second.Until("it has caught up", `told.join() === 'snapshot 5,delta 7' && mode === 'live'`)
	c.say("event: reset\nid: 0\ndata: {\"n\":3}")
	c.say("%s", snapshot(3))
	for _, p := range []*browsertest.Page{first, second} {
		p.Until("reset", `told.at(-1) === 'snapshot 3'`)
	}
	c.say("%s", delta(3, 4))
	second.Until("told", `told.at(-1) === 'delta 4' && mode === 'live'`)
	s.alone()
}

func TestATabThatLeadsAndSaysNothingIsReplaced(t *testing.T) {
	s := newShared(t)
	stuck := browsertest.Open(t, s.url)
	browsertest.Eval[int](stuck, `
		window.lost = false;
		navigator.locks.request('seatcast.live.1 ' + new URL('/v1/events/e', location.href), () => new Promise(() => {})).catch(() => { lost = true; });
		return 0;`)
	p := s.tab(`ask: 1000, answer: 500`)
	p.Until("it has a map at once", `told[0] === 'snapshot 5'`)
	c := <-s.conns
	if c.since != "5" {
		t.Errorf("it asks for since=%s", c.since)
	}
	c.say(hello)
	c.say("%s", delta(5, 7))
	p.Until("live", `mode === 'live' && told.at(-1) === 'delta 7'`)
	stuck.Until("the other has lost it", `lost`)
}

// hide has a page believe that it is seen, or not.
func hide(p *browsertest.Page, hidden bool) {
	browsertest.Eval[int](p, fmt.Sprintf(`
		Object.defineProperty(document, 'hidden', { value: %v, configurable: true });
		document.dispatchEvent(new Event('visibilitychange'));
		return 0;`, hidden))
}

func TestATabThatNobodyLooksAtLetsItsStreamGoAndIsUpToDateWhenItIsSeen(t *testing.T) {
	gone := make(chan struct{}, 8) // more than the test opens streams
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/live", func(c echo.Context) error {
			defer func() { gone <- struct{}{} }()
			return s.serve(c)
		})
	}))
	browsertest.Eval[int](p, hasty(`{ hello: 300000, rest: 300 }`))
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	p.Until("live", `mode === 'live' && told.length === 1`)
	hide(p, true)
	<-gone
	p.Until("it says so", `mode === 'waiting'`)
	began := time.Now()
	hide(p, false)
	c = <-s.conns
	if c.since != "5" {
		t.Errorf("it asks for since=%s", c.since)
	}
	c.say(hello)
	c.say("%s", delta(5, 7))
	p.Until("up to date", `mode === 'live' && told.join() === 'snapshot 5,delta 7'`)
	t.Logf("up to date %v after it was seen", time.Since(began).Round(time.Millisecond))
}

func TestATabThatIsSeenLeadsInPlaceOfOneThatIsNot(t *testing.T) {
	s := newShared(t)
	first := s.tab(`rest: 300`)
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	first.Until("live", `mode === 'live' && told.length === 1`)
	second := s.tab(`rest: 300`)
	second.Until("live", `mode === 'live' && told.length === 1`)
	hide(first, true)
	if c = <-s.conns; c.since != "5" {
		t.Errorf("the other asks for since=%s", c.since)
	}
	c.say(hello)
	c.say("%s", delta(5, 7))
	second.Until("told", `mode === 'live' && told.at(-1) === 'delta 7'`)
	s.polls.Store(7)
	hide(first, false)
	first.Until("it has caught up", `mode === 'live' && told.at(-1) === 'delta 7'`)
	c.say("%s", delta(7, 8))
	first.Until("told", `told.at(-1) === 'delta 8'`)
	s.alone()
}

func TestAGuardedMapIsNotShared(t *testing.T) {
	s := newStream()
	url := client(t, func(g *echo.Group) {
		g.GET("/events/e/live", s.serve)
		g.POST("/events/e/live-ticket", func(c echo.Context) error { return c.JSONBlob(http.StatusCreated, []byte(`{"ticket":"t"}`)) })
	})
	for _, who := range []string{"ann", "bob"} {
		p := browsertest.Open(t, url)
		browsertest.Eval[int](p, guardedFeed(`{ token: async () => '`+who+`', forget() {} }`))
		c := <-s.conns
		c.say(hello)
		c.say("%s", snapshot(5))
		p.Until("live", `mode === 'live' && told.length === 1`)
	}
}
