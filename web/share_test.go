package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
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
	polls atomic.Int64  // the number that whoever asks is told
	chart atomic.Value  // and the chart
	since atomic.Int64  // how often somebody asked for what it has missed
	held  sync.RWMutex  // locked: those are not answered
	asks  chan struct{} // what they ask has come
}

func newShared(t *testing.T) *shared {
	s := &shared{t: t, stream: newStream(), asks: make(chan struct{}, 256)} // more than any test has asked
	s.polls.Store(5)
	s.chart.Store("c1")
	s.url = client(t, func(g *echo.Group) {
		g.GET("/events/e/live", s.serve)
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			since := c.QueryParam("since")
			if since != "" {
				s.since.Add(1)
				select {
				case s.asks <- struct{}{}:
				default: // nobody looks
				}
				s.held.RLock()
				defer s.held.RUnlock()
			}
			n, chart := s.polls.Load(), s.chart.Load()
			if since != "" {
				return c.JSONBlob(http.StatusOK, fmt.Appendf(nil, `{"n":%d,"prev":%s,"at":1,"chart":%q,%s}`, n, since, chart, noSeats))
			}
			c.Response().Header().Set("Cache-Control", "no-store")
			return c.JSONBlob(http.StatusOK, fmt.Appendf(nil, `{"n":%d,"chart":%q,"map":"","areas":{},"mode":"hot","live":"/v1/events/e/live","poll_after_ms":500}`, n, chart))
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

// hold keeps back what is answered to who has missed something, until it is let go.
func (s *shared) hold() (let func()) {
	s.held.Lock()
	let = sync.OnceFunc(s.held.Unlock)
	s.t.Cleanup(let)
	return let
}

// forge has the tabs that follow p hear a frame that p has not.
func forge(p *browsertest.Page, frame string) {
	browsertest.Eval[int](p, `
		const channel = new BroadcastChannel('seatcast.live.2 ' + new URL('/v1/events/e', location.href));
		channel.postMessage({ is: 'frame', age: 0, `+frame+` });
		channel.close();
		return 0;`)
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
	for _, p := range []*browsertest.Page{first, second, third} {
		p.Until("told", `told.at(-1) === 'delta 8'`)
	}
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
		navigator.locks.request('seatcast.live.2 ' + new URL('/v1/events/e', location.href), () => new Promise(() => {})).catch(() => { lost = true; });
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

// follows opens two tabs, both at 5, of which the second follows the first, was hidden for
// long and is seen again when the test calls seen.
func (s *shared) follows() (second *browsertest.Page, c conn, seen func()) {
	first := s.tab(``)
	c = <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	first.Until("live", `mode === 'live' && told.length === 1`)
	second = s.tab(`rest: 100, ask: 300000`)
	second.Until("live", `mode === 'live' && told.length === 1`)
	hide(second, true)
	second.Until("it lets go", `mode === 'waiting'`)
	return second, c, func() { hide(second, false) }
}

func TestATabWhoseAnswerEndsInTheMiddleOfAFrameGoesOnWithThatFrame(t *testing.T) {
	s := newShared(t)
	second, c, seen := s.follows()
	s.polls.Store(6)
	seen()
	second.Until("it has caught up", `told.join() === 'snapshot 5,delta 6' && mode === 'live'`)
	c.say("%s", delta(5, 7))
	c.say("%s", delta(7, 8))
	second.Until("told", `told.join() === 'snapshot 5,delta 6,delta 7,delta 8' && mode === 'live'`)
	if asked := s.since.Load(); asked > 2 { // once more when it hears that the first is behind it
		t.Errorf("it has asked %d times for what it missed", asked)
	}
}

func TestATabThatHearsAFrameWhileItAsksDoesNotAskAgain(t *testing.T) {
	s := newShared(t)
	second, c, seen := s.follows()
	s.polls.Store(6)
	let := s.hold()
	seen()
	<-s.asks
	c.say("%s", delta(5, 7))
	second.Until("told", `told.at(-1) === 'delta 7'`)
	let()
	second.Until("live", `mode === 'live' && told.join() === 'snapshot 5,delta 7'`)
	c.say("%s", delta(7, 8))
	second.Until("told", `told.at(-1) === 'delta 8'`)
	if asked := s.since.Load(); asked != 1 {
		t.Errorf("it has asked %d times for what it missed", asked)
	}
}

// pair is a tab that leads, one that follows it, and the connection of the first.
func (s *shared) pair() (first, second *browsertest.Page, c conn) {
	first = s.tab(``)
	c = <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	second = s.tab(``)
	second.Until("live", `mode === 'live' && told.length === 1`)
	return first, second, c
}

func TestATabThatHasMissedAFrameIsNotLiveAndAsOfNowUntilItHasIt(t *testing.T) {
	s := newShared(t)
	first, second, c := s.pair()
	c.say("%s", delta(5, 6))
	second.Until("told", `told.length === 2`)
	was := browsertest.Eval[int](second, `return heard`)
	s.polls.Store(9)
	let := s.hold()
	forge(first, `id: 8, frame: { name: 'delta', data: { n: 8, prev: 7, at: 1, `+noSeats+` } }`)
	second.Until("it says so", `mode === 'waiting'`)
	forge(first, `id: 9, frame: { name: 'delta', data: { n: 9, prev: 8, at: 1, `+noSeats+` } }`)
	forge(first, `id: 9, frame: { name: 'beat', data: { n: 9, at: 41 } }`)
	second.Until("the beat is heard", `clock.now() < 1e9`)
	if got := browsertest.Eval[string](second, `return told.join() + ' ' + mode + ' ' + heard`); got != fmt.Sprint("snapshot 5,delta 6 waiting ", was) {
		t.Errorf("without what it missed: %s, and it was heard %d times", got, was)
	}
	let()
	second.Until("it has what it missed", fmt.Sprintf(`mode === 'live' && told.at(-1) === 'delta 9' && heard > %d`, was))
}

func TestATabIsToldHowOldItIsWhatAnotherHasPolled(t *testing.T) {
	s := newShared(t)
	first, second, _ := s.pair()
	forge(first, `age: 20000, id: 5, frame: { name: 'snapshot', data: { n: 5, chart: 'c1', map: '', areas: {} } }`)
	second.Until("it is as of then", `age >= 20000`)
	forge(first, `age: null, id: 5, frame: { name: 'snapshot', data: { n: 5, chart: 'c1', map: '', areas: {} } }`)
	forge(first, `id: 5, frame: { name: 'beat', data: { n: 5, at: 41 } }`)
	second.Until("it is as of now", `age < 1000`)
	if heard := browsertest.Eval[int](second, `return heard`); heard < 2 {
		t.Error(heard)
	}
}

func TestATabDoesNotShowAnOldChartAsLiveAndAsksForTheOtherAfterAWhile(t *testing.T) {
	s := newShared(t)
	second, _, seen := s.follows()
	s.chart.Store("c2")
	browsertest.Eval[int](second, `window.comes = Promise.reject(new Error('a server that is behind')); comes.catch(() => {}); window.modes = []; return 0;`)
	began := time.Now()
	seen()
	second.Until("it has asked for the chart", `told.filter((what) => what === 'chart c2').length > 2`)
	if took := time.Since(began); took < time.Second {
		t.Errorf("it has asked three times within %v", took)
	}
	if modes := browsertest.Eval[string](second, `return modes.join()`); strings.Contains(modes, "live") {
		t.Errorf("the old chart is shown as %s", modes)
	}
	browsertest.Eval[int](second, `window.comes = null; return 0;`)
	second.Until("it shows the other", `told.at(-1) === 'snapshot 5' && mode === 'live'`)
}

func TestATabFetchesAChartOnceHoweverOftenItIsNamed(t *testing.T) {
	s := newShared(t)
	first, second, _ := s.pair()
	browsertest.Eval[int](second, `window.comes = new Promise((done) => { window.come = done; }); return 0;`)
	s.chart.Store("c2")
	for n := 6; n < 9; n++ {
		forge(first, fmt.Sprintf(`id: %d, frame: { name: 'snapshot', data: { n: %[1]d, chart: 'c2', map: '', areas: {} } }`, n))
		forge(first, fmt.Sprintf(`id: %d, frame: { name: 'delta', data: { n: %[1]d, prev: 5, at: 1, %s } }`, n, noSeats)) // of seats of the other chart
	}
	forge(first, `id: 5, frame: { name: 'beat', data: { n: 5, at: 41 } }`)
	second.Until("all are heard", `clock.now() < 1e9`)
	if got := browsertest.Eval[string](second, `return told.join()`); got != "snapshot 5,chart c2" {
		t.Errorf("while the chart comes it is told %s", got)
	}
	browsertest.Eval[int](second, `come(); return 0;`)
	second.Until("it shows the other", `told.join() === 'snapshot 5,chart c2,snapshot 5' && mode === 'live'`)
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
