package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// client serves the browser client and whatever API a test mounts under /v1.
func client(t *testing.T, mount func(g *echo.Group)) string {
	t.Helper()
	url, _ := server(t, func(e *echo.Echo) {
		web.MountPages(e)
		mount(e.Group("/v1"))
	})
	return url
}

// noAPI is for tests of browsertest.Modules alone.
func noAPI(*echo.Group) {}

func TestAPathThatTakesAnotherMethodSaysWhich(t *testing.T) {
	url := client(t, func(g *echo.Group) {
		g.POST("/bookings", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
		g.PUT("/bookings/:booking/seats", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	})
	for _, asked := range [][3]string{{"GET", "/v1/bookings", "POST"}, {"GET", "/v1/bookings/b/seats", "PUT"}, {"POST", "/", "GET"}, {"DELETE", "/events/e", "GET"}} {
		res, body := do(t, asked[0], url+asked[1], "", "Accept", "text/html")
		if res.StatusCode != http.StatusMethodNotAllowed || code(t, body) != "method_not_allowed" || !strings.Contains(res.Header.Get("Allow"), asked[2]) {
			t.Errorf("%v: %d, allowed %q, %.60s", asked, res.StatusCode, res.Header.Get("Allow"), body)
		}
	}
}

func TestAnAddressWithASlashTooManyLeadsToItsPage(t *testing.T) {
	url := client(t, noAPI)
	for from, to := range map[string]string{"/events": "/", "/events/": "/", "/queue/": "/", "/tickets/": "/tickets", "/console/": "/console"} {
		if res, _ := do(t, "GET", url+from, "", "Accept", "text/html"); res.StatusCode != http.StatusOK || res.Request.URL.Path != to {
			t.Errorf("%s: %d, at %s", from, res.StatusCode, res.Request.URL.Path)
		}
	}
}

func TestAMapIsReadAsItIsSent(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	// Byte 0 holds seats 0 to 3 as 0, 1, 2, 3; byte 1 holds seat 4 as 2; seat 5
	// and 6 are available, 7 held; the map ends before seat 8.
	got := browsertest.Eval[[]int](p, browsertest.Modules+`
		const { decodeMap } = await use('state.js');
		return [...decodeMap(btoa(String.fromCharCode(0b11100100, 0b01000010)), 9)];`)
	if fmt.Sprint(got) != "[0 1 2 3 2 0 0 1 3]" {
		t.Errorf("got %v", got)
	}
}

func TestOnlyAFrameThatFollowsIsApplied(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	for _, tt := range []struct {
		mine, prev, n int
		resuming      bool
		want          string
	}{
		{10, 10, 12, false, "apply"},
		{10, 10, 12, true, "apply"},
		{10, 8, 10, false, "old"},
		{10, 3, 5, true, "old"},
		{10, 11, 12, false, "gap"},
		{10, 11, 12, true, "gap"},
		{10, 8, 12, false, "gap"}, // another history: a fork
		{10, 8, 12, true, "apply"},
		{0, 0, 12, true, "gap"}, // nothing to apply it to
	} {
		got := browsertest.Eval[string](p, browsertest.Modules+fmt.Sprintf(`
			const { judge } = await use('state.js');
			return judge(%d, { prev: %d, n: %d }, %v);`, tt.mine, tt.prev, tt.n, tt.resuming))
		if got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

// house is a chart of two sections: seats 0 to 2 and 4 exist, index 3 is a
// hole.
const house = `{"name":"Test","width":100,"height":100,"focal":{"x":0,"y":0},"categories":[{"name":"A","color":"#c00"},{"name":"B"}],"seats":5,
	"sections":[{"id":"s1","name":"Stalls","rows":[{"label":"1","seats":[
		{"ticketId":"t0","i":0,"label":"1","x":10,"y":10,"category":"A"},{"ticketId":"t1","i":1,"label":"2","x":20,"y":10,"category":"A","accessible":true},
		{"ticketId":"t2","i":2,"label":"3","x":30,"y":10,"category":"B"}]}]},
		{"id":"s2","name":"Balcony","rows":[{"label":"A","seats":[{"ticketId":"t4","i":4,"label":"1","x":10,"y":40,"category":"B"}]}]}],
	"areas":[{"id":"pit","name":"Pit","category":"B","capacity":50,"points":[{"x":0,"y":60},{"x":90,"y":60},{"x":90,"y":90},{"x":0,"y":90}]}]}`

func TestCountsFollowFrames(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[string](p, browsertest.Modules+`
		const [{ State }, { Chart }] = await Promise.all([use('state.js'), use('chart.js')]);
		const s = new State(new Chart('x', `+house+`));
		const seen = () => [[...s.free], [...s.freeByCategory], s.areas.get('pit')];
		const none = { reserved: [], released: [], booked: [], closed: [], areas: {} };
		return JSON.stringify([
			s.snapshot({ map: btoa('\0\0'), areas: { pit: 50 } }), seen(),
			s.delta({ ...none, reserved: [0, 4], areas: { pit: 48 } }), seen(),
			s.delta({ ...none, reserved: [0] }), // again: nothing changes
			s.delta({ ...none, booked: [0], released: [4], closed: [2, 3, 99] }), seen(),
		]);`)
	want := `[[0,1,2,4],[[3,1],[2,2],50],[0,4],[[2,0],[1,1],48],[],[4,0,2],[[1,1],[1,1],48]]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOutlinesLieOnTheStageAndWordsHaveNoGround(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[[]string](p, browsertest.Modules+`
		const { Chart } = await use('chart.js');
		const { Painter, theme } = await use('paint.js');
		const { paintShapes } = await use('legend.js');
		const box = (from, to) => [[from, from], [to, from], [to, to], [from, to]].map(([x, y]) => ({ x, y }));
		const chart = new Chart('', {
			seats: 1, categories: [{ name: 'A' }], sections: [{ id: 's', name: 'S', rows: [{ label: '1', seats: [{ i: 0, x: 0, y: 0, label: '1', ticketId: 't', category: 'A' }] }] }],
			stage: { color: '#00ff00', points: box(0, 100) },
			shapes: [{ color: '#ff0000', points: box(10, 30) }, { color: 'transparent', points: box(50, 70) }],
		});
		const ctx = document.createElement('canvas').getContext('2d');
		paintShapes(ctx, { chart, painter: new Painter(chart, theme(document.body)) }, { k: 1, x0: 0, y0: 0, dpr: 1 });
		return [[90, 90], [20, 20], [60, 60]].map(([x, y]) => [...ctx.getImageData(x, y, 1, 1).data].join());`)
	if stage, outline, words := got[0], got[1], got[2]; outline == stage || words != stage {
		t.Errorf("the stage is %s, an outline on it %s, words on it %s", stage, outline, words)
	}
}

func TestTheNearestSeatIsFoundAndHolesAreNot(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[[]int](p, browsertest.Modules+`
		const { Chart } = await use('chart.js');
		const c = new Chart('x', `+house+`);
		const all = [];
		c.within(c.box, (i) => all.push(i));
		return [c.nearest(21, 11, 5), c.nearest(26, 10, 5), c.nearest(0, 0, 5), c.nearest(10, 41, 5), all.length, c.countWithin(c.box)];`)
	if fmt.Sprint(got) != "[1 2 -1 4 4 4]" {
		t.Errorf("got %v", got)
	}
}

func TestTheClockIsTheServersAndSurvivesAJumpOfTheDevices(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[[]float64](p, browsertest.Modules+`
		const { Clock } = await use('clock.js');
		let local = 1_000_000;
		const c = new Clock(() => local);
		const out = [];
		c.heardDate(new Date(61_000_000).toUTCString());
		out.push(c.now());
		c.heard(60_000_000 + 900); c.heard(60_000_000 + 990); c.heard(60_000_000 + 500); // three ways of different length
		out.push(c.now());
		local += 5000;
		out.push(c.now());
		local -= 3_600_000; // the shopper sets the clock back
		c.heard(60_006_000);
		out.push(c.now());
		return out;`)
	want := []float64{61_000_500, 60_000_990, 60_005_990, 60_006_000}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestACountdownEndsWhenTheServersTimeSays(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[[]string](p, browsertest.Modules+`
		const { Clock, Countdown, mmss } = await use('clock.js');
		let local = 0;
		const clock = new Clock(() => local);
		const said = [];
		const c = new Countdown(clock, (left) => said.push(mmss(left)));
		c.until(125_000);
		local = 64_100; // a throttled tab: no tick came in between
		document.dispatchEvent(new Event('visibilitychange'));
		local = 200_000;
		document.dispatchEvent(new Event('visibilitychange'));
		document.dispatchEvent(new Event('visibilitychange')); // over is said once
		return said;`)
	if strings.Join(got, " ") != "2:05 1:01 0:00" {
		t.Errorf("got %v", got)
	}
}

// stream is a live endpoint a test drives: each connection is handed over with
// the query it came with.
type stream struct {
	conns chan conn
}

type conn struct {
	since string
	lines chan string
}

// say sends one event, to whoever is still there.
func (c conn) say(format string, a ...any) { c.lines <- fmt.Sprintf(format, a...) }

// cut ends the stream, as a server that leaves does.
func (c conn) cut() { close(c.lines) }

func newStream() *stream { return &stream{conns: make(chan conn, 16)} } // more than any test opens

func (s *stream) serve(c echo.Context) error {
	w := c.Response()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.Flush()
	lines := make(chan string, 16) // more than any test says before it looks
	s.conns <- conn{since: c.QueryParam("since"), lines: lines}
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			if _, err := fmt.Fprintf(w, "%s\n\n", line); err != nil {
				return nil // the page has closed it
			}
			w.Flush()
		case <-c.Request().Context().Done():
			return nil
		}
	}
}

// feed starts a Feed in the page that writes what its sink is told to
// window.told.
const feed = browsertest.Modules + `
	const [{ Feed }, { Api }, { Clock }] = await Promise.all([use('feed.js'), use('api.js'), use('clock.js')]);
	window.told = []; window.mode = ''; window.modes = []; window.heard = 0; window.age = null; window.comes = null;
	const clock = window.clock = new Clock();
	window.feed = new Feed({ event: 'e', chart: 'c1', api: new Api(clock, null), clock, sink: {
		snapshot: (f) => told.push('snapshot ' + f.n), delta: (f) => told.push('delta ' + f.n),
		chart: async (sha) => { told.push('chart ' + sha); await comes; }, mode: (m) => { window.mode = m; modes.push(m); }, heard: (at) => { window.heard++; window.age = clock.now() - at; },
	} });
	feed.start(%v);
	return 0;`

const noSeats = `"reserved":[],"released":[],"booked":[],"closed":[],"areas":{}`

func delta(prev, n int) string {
	return fmt.Sprintf("event: delta\nid: %d\ndata: {\"n\":%d,\"prev\":%d,\"at\":1,%s}", n, n, prev, noSeats)
}

func snapshot(n int) string {
	return fmt.Sprintf("event: snapshot\nid: %d\ndata: {\"n\":%d,\"chart\":\"c1\",\"map\":\"\",\"areas\":{}}", n, n)
}

const hello = "retry: 100\nevent: hello\ndata: {\"n\":5,\"chart\":\"c1\",\"at\":1}"

// beat is one of a stream whose reader holds n.
func beat(n int, at int64) string {
	return fmt.Sprintf("event: beat\nid: %d\ndata: {\"n\":%d,\"at\":%d}", n, n, at)
}

func TestWhatHappenedLongAgoDoesNotSetTheClockBack(t *testing.T) {
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) { g.GET("/events/e/live", s.serve) }))
	browsertest.Eval[int](p, fmt.Sprintf(feed, true))
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	c.say("%s", beat(5, time.Now().Add(time.Hour).UnixMilli()))
	c.say("%s", delta(5, 7)) // of 1970
	p.Until("told", `told.at(-1) === 'delta 7'`)
	if ahead := browsertest.Eval[float64](p, `return clock.now() - Date.now()`); time.Duration(ahead)*time.Millisecond < 59*time.Minute {
		t.Errorf("the clock is ahead of the device's by %v", time.Duration(ahead)*time.Millisecond)
	}
}

func TestAChartThatComesWhenNobodySeesTheHouseAnyMoreIsNotShown(t *testing.T) {
	s := newStream()
	asked, late := make(chan struct{}, 8), make(chan struct{}) // more than it asks
	let := sync.OnceFunc(func() { close(late) })
	url := client(t, func(g *echo.Group) {
		g.GET("/events/e/live", s.serve)
		g.GET("/events/e", func(c echo.Context) error {
			return c.JSONBlob(200, []byte(`{"id":"e","chart":"c2","mode":"hot","state":"open","open":true,"currency":"EUR","prices":[],"areas":[]}`))
		})
		g.GET("/charts/c1.json", func(c echo.Context) error { return c.JSONBlob(200, []byte(house)) })
		g.GET("/charts/c2.json", func(c echo.Context) error {
			asked <- struct{}{}
			<-late
			return c.JSONBlob(200, []byte(house))
		})
	})
	t.Cleanup(let)
	p := browsertest.Open(t, url)
	browsertest.Eval[int](p, browsertest.Modules+`
		const [{ House }, { Cart }, { Api }, { Clock }, { Speaker }] = await Promise.all(['house.js', 'cart.js', 'api.js', 'clock.js', 'say.js'].map(use));
		const clock = new Clock(), api = new Api(clock, null), say = new Speaker();
		const event = { id: 'e', chart: 'c1', mode: 'hot', state: 'open', open: true, holds: true, currency: 'EUR', prices: [], areas: [] };
		const get = api.get.bind(api);
		window.gets = []; window.charts = [];
		api.get = (...a) => { const got = get(...a); gets.push(got); return got; };
		const [stage, legend, live] = [0, 0, 0].map(() => document.body.appendChild(document.createElement('div')));
		window.theHouse = new House({ event, cart: new Cart(api, event, sessionStorage), api, clock, say, stage, legend, live,
			watcher: { area() {}, chart: (state) => { charts.push(state.chart.sha); }, changed() {}, turned() {}, mode() {} } });
		await theHouse.open();
		return 0;`)
	c := <-s.conns
	c.say("event: hello\nid: 0\ndata: {\"n\":5,\"chart\":\"c2\",\"at\":1}")
	<-asked
	browsertest.Eval[int](p, `theHouse.stop(); return 0;`)
	let()
	got := browsertest.Eval[string](p, `
		await Promise.allSettled(gets);
		await new Promise((done) => setTimeout(done)); // what waited for them has gone on
		return gets.length + ' ' + charts.join() + ' ' + theHouse.state.chart.sha;`)
	if got != "3 c1 c1" {
		t.Errorf("answers, charts and the one that is shown: %s", got)
	}
}

func TestAFeedComesBackFromItsNumberWhenItSeesAGap(t *testing.T) {
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) { g.GET("/events/e/live", s.serve) }))
	browsertest.Eval[int](p, fmt.Sprintf(feed, true))

	c := <-s.conns
	if c.since != "" {
		t.Errorf("a first connection asks for since=%s", c.since)
	}
	c.say(hello)
	c.say("%s", snapshot(5))
	c.say("%s", delta(5, 7))
	c.say("%s", delta(8, 9)) // 8 is missing
	c = <-s.conns
	if c.since != "7" {
		t.Errorf("after the gap it asks for since=%s", c.since)
	}
	c.say(hello)
	c.say("%s", delta(6, 8)) // it begins before 7: harmless
	c.say("%s", delta(8, 9))
	c.say("%s", snapshot(6)) // from a lagging replica
	c.say("%s", delta(9, 10))
	p.Until("all applied", `told.at(-1) === 'delta 10'`)
	if got := browsertest.Eval[string](p, `return told.join()`); got != "snapshot 5,delta 7,delta 8,delta 9,delta 10" {
		t.Errorf("the sink was told %s", got)
	}

	c.say("event: beat\nid: 12\ndata: {\"at\":2}") // 11 and 12 never came
	if c = <-s.conns; c.since != "10" {
		t.Errorf("after silence it asks for since=%s", c.since)
	}
}

func TestAFeedDropsWhatItKnowsAtAReset(t *testing.T) {
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) { g.GET("/events/e/live", s.serve) }))
	browsertest.Eval[int](p, fmt.Sprintf(feed, true))
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(5))
	c.say("event: reset\nid: 0\ndata: {\"n\":20}")
	c.say("%s", snapshot(19)) // older than the reset: not the truth yet
	c.say("%s", snapshot(20))
	c.say("%s", delta(20, 21))
	p.Until("all applied", `told.at(-1) === 'delta 21'`)
	if got := browsertest.Eval[string](p, `return told.join()`); got != "snapshot 5,snapshot 20,delta 21" {
		t.Errorf("the sink was told %s", got)
	}
}

// What a failover lost is lost: the number this page has seen never comes back.
func TestAFeedFollowsAResetToALowerNumber(t *testing.T) {
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) { g.GET("/events/e/live", s.serve) }))
	browsertest.Eval[int](p, fmt.Sprintf(feed, true))
	c := <-s.conns
	c.say(hello)
	c.say("%s", snapshot(50))
	c.say("event: reset\nid: 0\ndata: {\"n\":20}")
	c.say("%s", snapshot(20))
	c.say("%s", delta(20, 21))
	p.Until("all applied", `told.length === 3`)
	if got := browsertest.Eval[string](p, `return told.join()`); got != "snapshot 50,snapshot 20,delta 21" {
		t.Errorf("the sink was told %s", got)
	}
}

func TestAFeedPollsWhereNothingIsPushed(t *testing.T) {
	polls := make(chan int, 64) // more than the test can take
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/e/live", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
		n := 4
		g.GET("/events/e/seatmap", func(c echo.Context) error {
			n++
			polls <- n
			c.Response().Header().Set("Cache-Control", "no-store")
			return c.JSONBlob(200, fmt.Appendf(nil, `{"n":%d,"chart":"c1","map":"","areas":{},"mode":"ordinary","live":null,"poll_after_ms":500}`, n))
		})
	}))
	browsertest.Eval[int](p, fmt.Sprintf(feed, true))
	<-polls
	<-polls
	p.Until("polled", `mode === 'polling' && told.length >= 2`)
	if got := browsertest.Eval[string](p, `return told.slice(0, 2).join()`); got != "snapshot 5,snapshot 6" {
		t.Errorf("the sink was told %s", got)
	}
}
