package web_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// axe has axe-core judge all that the page shows, in the light and in the dark.
func axe(t *testing.T, p *browsertest.Page, state string) {
	t.Helper()
	script, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		p.Prefers(map[string]string{"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"})
		for _, violation := range browsertest.Eval[[]string](p, `
			if (!globalThis.axe) {`+string(script)+`
			}
			const { violations } = await axe.run(document, { resultTypes: ['violations'] });
			return violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 160) + ' ' + n.failureSummary));`) {
			t.Errorf("%s, %s: %s", state, scheme, violation)
		}
	}
}

// stages is an API of one event with a booking that is in the state that it holds.
func stages(g *echo.Group, s *stream, is *atomic.Value) {
	shop(g, s)
	fair(g)
	g.GET("/bookings/e.b2", func(c echo.Context) error {
		const booking = `"bookingId":"e.b2","expiresAt":"2099-01-01T00:00:00Z","cap":"2099-01-02T00:00:00Z","areas":[],
			"seats":[{"ticketId":"t0","label":"1","section":"Stalls","row":"1","category":"A","price":5000}],"total":{"amount":5000,"currency":"EUR"},
			"tickets":[{"id":"T-1","section":"Stalls","row":"1","label":"1","price":5000,"status":"valid","qr":"one"},{"id":"T-2","section":"Stalls","row":"1","label":"2","price":5000,"status":"refunded"}]`
		return c.JSONBlob(200, fmt.Appendf(nil, `{"state":%q,%s}`, is.Load(), booking))
	})
	g.PUT("/bookings/e.b2/confirm", func(c echo.Context) error { return c.JSONBlob(200, []byte(`{"bookingId":"e.b2","state":"paying"}`)) })
}

// mine is what an account has booked, of the event of shop.
func mine(g *echo.Group) {
	order := func(state, tickets string) string {
		return fmt.Sprintf(`{"bookingId":"e.%[1]s","bookedAt":"2026-11-30T18:00:00Z","state":%[1]q,"reason":"area_full","expiresAt":"2099-01-01T00:00:00Z","cap":"2099-01-02T00:00:00Z","event":{"id":"e"},"areas":[{"area":"pit","quantity":2}],
			"seats":[{"ticketId":"t0","label":"1","section":"Stalls","row":"1","category":"A","price":5000}],"total":{"amount":5000,"currency":"EUR"},"tickets":[%[2]s]}`, state, tickets)
	}
	ticket := func(status, qr string) string {
		return fmt.Sprintf(`{"id":"T-%[1]s","section":"Stalls","row":"1","label":"1","price":5000,"allIn":5000,"status":%[1]q,"qr":%[2]q}`, status, qr)
	}
	g.GET("/me/bookings", func(c echo.Context) error {
		all := []string{order("held", ""), order("paying", ""), order("sold", strings.Join([]string{ticket("valid", "one"), ticket("pending", ""), ticket("refunded", "")}, ",")), order("lost", ""), order("expired", "")}
		return c.JSONBlob(200, []byte(`{"bookings":[`+strings.Join(all, ",")+`]}`))
	})
}

// desk is what operators see of the event of fair.
func desk(g *echo.Group) {
	const frame = `{"at":1893456000000,"state":"open","rate":600,"pace":300,"slowed":"holds","waiting":1200,"inside":80,"seatsLeft":2,"since":0,"serving":90}`
	for path, body := range map[string]string{
		"/admin/jobs":             `{"jobs":[{"id":1,"kind":"refund"}]}`,
		"/admin/events/e/figures": `{"seats":{"available":2,"held":1,"sold":3,"unavailable":1},"holdsKnown":false,"areas":[{"area":"pit","name":"Pit","capacity":50,"sold":7}],"tickets":10,"money":{"amount":50000,"currency":"EUR","decimals":2}}`,
		"/admin/rooms/e":          `{"state":"open","rate":600,"burst":10,"cap":500,"sessionSeconds":600,"suspected":3,"frame":` + frame + `}`,
		"/queue/e":                frame,
	} {
		g.GET(path, func(c echo.Context) error { return c.JSONBlob(200, []byte(body)) })
	}
}

// atDesk signs an operator in, and waits for the figures of the event.
func atDesk(p *browsertest.Page) {
	goTo(p, "/console")
	p.Until("a token is asked for", `!document.getElementById('enter').hidden`)
	browsertest.Eval[int](p, `document.getElementById('token').value = 'tok'; document.getElementById('enter').requestSubmit(); return 0;`)
	p.Until("figures", `document.querySelector('.card[open] .figure') && document.querySelector('.room .figure')`)
}

// houseIsOpen serves whoever watches the map of stages.
func houseIsOpen(t *testing.T, s *stream) {
	go func() { // for as long as the test
		for {
			select {
			case c := <-s.conns:
				c.say(hello)
				c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
			case <-t.Context().Done():
				return
			}
		}
	}()
}

// goTo leads to another page of the same server.
func goTo(p *browsertest.Page, path string) {
	browsertest.Eval[int](p, fmt.Sprintf(`setTimeout(() => location.assign(%q)); return 0;`, path))
	p.Until(path, fmt.Sprintf(`location.pathname + location.search === %q && document.readyState === 'complete'`, path))
}

// pricesAreThere says that a map has come: only then is anything left.
const pricesAreThere = `document.querySelector('#legend small')?.innerText.match(/[1-9]/)`

func TestNoPageHasAnythingThatAxeCallsABarrier(t *testing.T) {
	s := newStream()
	var is atomic.Value
	is.Store("held")
	url, _ := server(t, func(e *echo.Echo) {
		web.MountPages(e)
		api := e.Group("/v1")
		stages(api, s, &is)
		mine(api)
		desk(api)
		e.GET("/embed", func(c echo.Context) error {
			return c.HTML(200, `<!doctype html><html lang="de"><head><title>A site</title><meta name="viewport" content="width=device-width"></head><body><main><h1>A site</h1><seat-map event="e"></seat-map></main><script type="module" src="/seat-map.js"></script></body></html>`)
		})
	})
	houseIsOpen(t, s)
	p := browsertest.Open(t, url)
	p.Until("listed", `document.querySelector('.event')`)
	axe(t, p, "home")
	goTo(p, "/tickets")
	p.Until("all orders", `document.querySelectorAll('.order').length === 5`)
	axe(t, p, "tickets")
	goTo(p, "/console")
	p.Until("a token is asked for", `!document.getElementById('enter').hidden`)
	axe(t, p, "console, nobody signed in")
	atDesk(p)
	axe(t, p, "console")
	browsertest.Eval[int](p, `document.querySelector('[data-do=pause]').click(); return 0;`)
	p.Until("it is asked about", `document.getElementById('sure').open`)
	axe(t, p, "console, asking")
	goTo(p, "/events/none")
	p.Until("there is none", `document.querySelector('#fatal h1')`)
	axe(t, p, "no event")
	goTo(p, "/events/off")
	p.Until("cancelled", `document.getElementById('banner').innerText && document.getElementById('live').dataset.mode === 'live'`)
	axe(t, p, "cancelled")

	goTo(p, "/events/e")
	p.Until("counted", pricesAreThere)
	axe(t, p, "map")
	browsertest.Eval[int](p, `document.getElementById('signin').showModal(); return 0;`)
	axe(t, p, "sign-in")
	browsertest.Eval[int](p, `document.getElementById('signin').close(); document.getElementById('show-list').click();
		for (const d of document.querySelectorAll('#list details')) d.open = true; return 0;`)
	p.Until("rows", `document.querySelector('#list details details')`)
	browsertest.Eval[int](p, `for (const d of document.querySelectorAll('#list details details')) d.open = true; return 0;`)
	p.Until("seats", `document.querySelectorAll('#list .seats button').length > 3`)
	browsertest.Eval[int](p, `document.querySelector('#list .seats button').click(); return 0;`)
	p.Until("chosen", `document.querySelector('[data-key=hold]') && document.querySelector('#list .seats button[aria-pressed=true]')`)
	axe(t, p, "list, a seat chosen")
	for _, state := range []string{"held", "paying", "sold", "refunded", "lost"} {
		is.Store(state)
		browsertest.Eval[int](p, `sessionStorage.setItem('seatcast.booking.e', 'e.b2'); return 0;`)
		p.Reload()
		stage := map[string]string{"refunded": "sold", "lost": "picking"}[state]
		if stage == "" {
			stage = state
		}
		p.Until(state, fmt.Sprintf(`document.getElementById('panel').dataset.stage === %q && %s`, stage, pricesAreThere))
		axe(t, p, state)
	}
	for _, scene := range browsertest.Eval[[]string](p, browsertest.Modules+`const { t } = await use('lang.js'); return Object.keys(t.preview.scenes);`) {
		goTo(p, "/queue/e?preview="+scene)
		p.Until(scene, `document.querySelector('#scenes [aria-current]')`)
		axe(t, p, "line: "+scene)
	}

	is.Store("held")
	goTo(p, "/embed")
	p.Until("the element", `document.querySelector('seat-map')?.shadowRoot.querySelector('#legend small')?.innerText.includes('noch')`) // in the language of the page
	axe(t, p, "element")
	browsertest.Eval[int](p, `document.querySelector('seat-map').setAttribute('view', 'list'); document.querySelector('seat-map').lang = 'en'; return 0;`)
	p.Until("the element in English", `document.querySelector('seat-map').shadowRoot.querySelector('#legend small')?.innerText.includes('left')`)
	axe(t, p, "element, list")
}

func TestAScreenReaderFindsWhatThereIsByName(t *testing.T) {
	s := newStream()
	var is atomic.Value
	is.Store("held")
	url := client(t, func(g *echo.Group) { stages(g, s, &is) })
	houseIsOpen(t, s)
	p := browsertest.Open(t, url+"/events/e")
	p.Until("counted", pricesAreThere)
	browsertest.Eval[int](p, `document.getElementById('show-list').click(); document.querySelector('#list details').open = true; return 0;`)
	p.Until("rows", `document.querySelector('#list details details')`)
	browsertest.Eval[int](p, `document.querySelector('#list details details').open = true; return 0;`)
	p.Until("seats", `document.querySelectorAll('#list .seats button').length > 2`)
	browsertest.Eval[int](p, `document.querySelectorAll('#list .seats button')[1].click(); return 0;`)
	p.Until("chosen", `document.querySelector('[data-key=hold]') && document.querySelector('#list .seats button[aria-pressed=true]')`)
	finds := func(names ...string) {
		t.Helper()
		all := p.Named()
		for _, want := range names {
			if !slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, want) }) {
				t.Errorf("no %s among\n%s", want, strings.Join(all, "\n"))
			}
		}
	}
	finds("heading Evening", "button Map", "button List", "button Seat 1, A, €50.00, available", "button Seat 2, A, €50.00, wheelchair space, chosen",
		"button Hold 1", "group Places in Pit", "button One more", "button Remove Stalls, row 1, seat 2", "link Deutsch")
	browsertest.Eval[int](p, `sessionStorage.setItem('seatcast.booking.e', 'e.b2'); return 0;`)
	p.Reload()
	p.Until("held", `document.getElementById('panel').dataset.stage === 'held' && document.querySelector('.means select')`)
	finds("heading Held for you", "timer", "button Pay €50.00", "button More time", "button Give back", "combobox Test card", "Canvas Seat map.")
}

func TestFiftyFramesAreNotAnnounced(t *testing.T) {
	s := newStream()
	url := client(t, func(g *echo.Group) { shop(g, s) })
	p := browsertest.Open(t, url+"/events/e")
	c := <-s.conns
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
	p.Until("counted", pricesAreThere)
	browsertest.Eval[int](p, `
		window.heard = [];
		for (const live of document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log], output')) {
			new MutationObserver(() => heard.push(live.outerHTML)).observe(live, { childList: true, characterData: true, subtree: true });
		}
		return 0;`)
	for n := 5; n < 55; n++ {
		what := "released"
		if n%2 == 1 {
			what = "booked"
		}
		c.say("event: delta\nid: %d\ndata: {\"n\":%d,\"prev\":%d,\"at\":1,%s}", n+1, n+1, n, strings.Replace(noSeats, `"`+what+`":[]`, `"`+what+`":[0,1]`, 1))
	}
	c.say("event: delta\nid: 56\ndata: {\"n\":56,\"prev\":55,\"at\":1,%s}", strings.Replace(noSeats, `"booked":[]`, `"booked":[0,1,2,4]`, 1))
	p.Until("all are applied", `document.getElementById('legend').innerText.includes('sold out')`)
	if heard := browsertest.Eval[[]string](p, `return heard`); len(heard) > 1 {
		t.Errorf("%d announcements: %q", len(heard), heard)
	}
}

func TestOneKeyGivesMoreTimeAndAltGrDoesNot(t *testing.T) {
	s := newStream()
	var is atomic.Value
	is.Store("held")
	var extended atomic.Int64
	url := client(t, func(g *echo.Group) {
		stages(g, s, &is)
		g.POST("/bookings/e.b2/extend", func(c echo.Context) error {
			extended.Add(1)
			return c.JSONBlob(200, []byte(`{"bookingId":"e.b2","expiresAt":"2099-01-01T01:00:00Z","cap":"2099-01-02T00:00:00Z"}`))
		})
	})
	houseIsOpen(t, s)
	p := browsertest.Open(t, url+"/events/e")
	browsertest.Eval[int](p, `sessionStorage.setItem('seatcast.booking.e', 'e.b2'); return 0;`)
	p.Reload()
	p.Until("held", `document.getElementById('panel').dataset.stage === 'held'`)
	left := func(with string) bool { // to whatever else wants the key
		return browsertest.Eval[bool](p, `return document.dispatchEvent(new KeyboardEvent('keydown', { code: 'KeyE', altKey: true, bubbles: true, cancelable: true, `+with+` }))`)
	}
	if !left(`key: '€', ctrlKey: true`) || !left(`metaKey: true`) {
		t.Error("a key of another meaning is taken")
	}
	if left(`key: 'e'`) {
		t.Error("the key is not taken")
	}
	p.Until("there is more time", `document.getElementById('announcer').innerText.includes('You have more time') || document.getElementById('notes').innerText.includes('You have more time')`)
	if n := extended.Load(); n != 1 {
		t.Errorf("it was extended %d times", n)
	}
}

func TestTheEndOfAHoldIsAnnouncedInTimeToAct(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI)+"/events/e")
	got := browsertest.Eval[[]string](p, browsertest.Modules+`
		const [{ Clock }, { Cart }, { Panel }, { Chart }, { State }] = await Promise.all(['clock.js', 'cart.js', 'panel.js', 'chart.js', 'state.js'].map(use));
		const start = 1_700_000_000_000, end = start + 300_000;
		let local = start;
		const clock = new Clock(() => local);
		clock.heard(start);
		const at = (ms) => new Date(ms).toISOString();
		const order = { bookingId: 'e.b2', state: 'held', expiresAt: at(end), cap: at(end + 600_000), areas: [], total: { amount: 0 },
			seats: [{ ticketId: 't0', label: '1', section: 'Stalls', row: '1', category: 'A', price: 0 }] };
		const event = { id: 'e', currency: 'EUR', decimals: 2, prices: [], areas: [] };
		const api = { call: async () => order, get: async () => ({ provider: 'none' }) };
		const cart = new Cart(api, event, { getItem: (key) => (key === 'seatcast.booking.e' ? 'e.b2' : null), setItem: () => {}, removeItem: () => {} });
		const state = new State(new Chart('c1', `+house+`));
		const said = [];
		const say = { announce: (text) => said.push(Math.round((end - local) / 1000) + ': ' + text) };
		const panel = new Panel(document.createElement('section'), { api, cart, event, clock, say, ticking: document.createElement('span'), reveal: () => {} });
		cart.on(state);
		panel.on(state);
		await cart.resume();
		while (local < end) {
			local += 1000;
			document.dispatchEvent(new Event('visibilitychange')); // the countdown looks
		}
		return said;`)
	want := []string{
		"120: Two minutes left to pay. Alt and E give you more time.",
		"60: One minute left to pay. Alt and E give you more time.",
		"30: Thirty seconds left to pay. Alt and E give you more time.", // more than the twenty that WCAG 2.2.1 wants
	}
	if !slices.Equal(got, want) {
		t.Errorf("it is said %q", got)
	}
}

func TestNothingOverflowsAPhoneFromRightToLeft(t *testing.T) {
	s := newStream()
	var is atomic.Value
	is.Store("held")
	url := client(t, func(g *echo.Group) {
		stages(g, s, &is)
		mine(g)
		desk(g)
	})
	houseIsOpen(t, s)
	p := browsertest.Open(t, url)
	p.Size(390, 844)
	fits := func(what string) {
		t.Helper()
		browsertest.Eval[int](p, `document.documentElement.dir = 'rtl'; return 0;`)
		for _, over := range browsertest.Eval[[]string](p, `
			const { scrollWidth, clientWidth } = document.documentElement;
			const out = scrollWidth > clientWidth ? ['the page is ' + scrollWidth + ' wide'] : [];
			for (const el of document.querySelectorAll('button, a, h1, h2, input, select, .tools, .zoom, .key')) {
				const box = el.getBoundingClientRect();
				if (box.width && !el.closest('.legend, .tickets, .unseen') && (box.left < -1 || box.right > innerWidth + 1)) out.push(el.outerHTML.slice(0, 120));
			}
			return out;`) {
			t.Errorf("%s: %s", what, over)
		}
	}
	p.Until("listed", `document.querySelector('.event')`)
	fits("home")
	goTo(p, "/tickets?lang=de")
	p.Until("all orders", `document.querySelectorAll('.order').length === 5`)
	fits("tickets")
	atDesk(p)
	fits("console")
	for path, there := range map[string]string{"/events/none": `#fatal h1`, "/events/off": `#banner:not([hidden])`} {
		goTo(p, path)
		p.Until(path, fmt.Sprintf(`document.querySelector(%q)`, there))
		fits(path)
	}
	goTo(p, "/events/e?lang=de")
	p.Until("counted", pricesAreThere)
	fits("map")
	if beside := browsertest.Eval[bool](p, `return document.querySelector('.tools').getBoundingClientRect().left > document.querySelector('.zoom').getBoundingClientRect().left`); !beside {
		t.Error("the tools of the map are where they are from left to right")
	}
	for _, state := range []string{"held", "sold"} {
		is.Store(state)
		browsertest.Eval[int](p, `sessionStorage.setItem('seatcast.booking.e', 'e.b2'); return 0;`)
		p.Reload()
		p.Until(state, fmt.Sprintf(`document.getElementById('panel').dataset.stage === %q && %s`, state, pricesAreThere))
		fits(state)
	}
	for _, scene := range []string{"join", "code", "far", "signin", "turn"} {
		goTo(p, "/queue/e?preview="+scene)
		p.Until(scene, `document.querySelector('#scenes [aria-current]')`)
		fits("line: " + scene)
	}
}

func TestAtFourHundredPerCentThePageScrollsAndTheMapHasRoom(t *testing.T) {
	p, _, _ := chooses(t, func(*echo.Group) {})
	p.Size(320, 256) // a window of 1280 by 1024 then
	p.Until("it is laid out", `innerWidth === 320`)
	for _, fault := range browsertest.Eval[[]string](p, `
		const { scrollWidth, scrollHeight } = document.documentElement;
		const out = [];
		if (scrollWidth > 320 || scrollHeight <= 256) out.push('the page is ' + scrollWidth + ' by ' + scrollHeight);
		const stage = document.querySelector('.stage').getBoundingClientRect();
		if (stage.height < 200) out.push('the map is ' + stage.height + ' high');
		for (const name of ['.tools', '.zoom', '.side']) {
			const box = document.querySelector(name).getBoundingClientRect();
			if (name === '.side' ? box.top < stage.bottom - 20 : box.bottom > stage.bottom) out.push(name + ' is from ' + box.top + ' to ' + box.bottom + ', the map to ' + stage.bottom);
		}
		return out;`) {
		t.Error(fault)
	}
}
