package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

func TestAssetsAreKeptForEverUnderTheirOwnHashOnly(t *testing.T) {
	url := client(t, noAPI)
	res, html := do(t, "GET", url+"/events/any", "")
	if res.StatusCode != 200 || res.Header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("the page: %d, %s", res.StatusCode, res.Header.Get("Cache-Control"))
	}
	_, rest, _ := strings.Cut(html, `src="/app/`)
	hash, _, ok := strings.Cut(rest, "/")
	if !ok || strings.Contains(html, "{{") {
		t.Fatalf("the page names no version: %s", html)
	}
	res, _ = do(t, "GET", url+"/app/"+hash+"/event.js", "", "Accept-Encoding", "identity")
	if res.StatusCode != 200 || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("a module: %d %v", res.StatusCode, res.Header)
	}
	if res, body := do(t, "GET", url+"/app/"+hash+"/event.js", "", "If-None-Match", res.Header.Get("ETag"), "Accept-Encoding", "identity"); res.StatusCode != 304 || body != "" {
		t.Errorf("a module known already: %d", res.StatusCode)
	}
	if res, _ := do(t, "GET", url+"/app/0000/event.js", ""); res.StatusCode != 200 || res.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("a module of another version: %d %s", res.StatusCode, res.Header.Get("Cache-Control"))
	}
	for _, path := range []string{"/app/" + hash + "/none.js", "/app/" + hash + "/event.html", "/app/" + hash + "/..%2Fweb.go"} {
		if res, _ := do(t, "GET", url+path, ""); res.StatusCode != 404 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestTheElementIsOneFileThatAnySiteMayLoad(t *testing.T) {
	url := client(t, noAPI)
	res, script := do(t, "GET", url+"/seat-map.js", "", "Accept-Encoding", "identity", "Origin", "https://shop.example")
	h := res.Header
	if res.StatusCode != 200 || h.Get("Access-Control-Allow-Origin") != "*" || !strings.HasPrefix(h.Get("Content-Type"), "text/javascript") || h.Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("%d %v", res.StatusCode, h)
	}
	if loads := regexp.MustCompile(`\bimport ?[("'{*]|\bfrom ?["']`).FindString(script); loads != "" {
		t.Errorf("it loads something more: %s", loads)
	}
	if res, _ := do(t, "GET", url+"/seat-map.js", "", "If-None-Match", h.Get("ETag"), "Accept-Encoding", "identity"); res.StatusCode != 304 || res.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("one that is known already: %d %v", res.StatusCode, res.Header)
	}
}

// hall is an API of one event with four seats, all free, in which nothing can be
// booked yet; and of one that is cancelled, off.
func hall(g *echo.Group, s *stream) {
	g.GET("/events/:event", func(c echo.Context) error {
		id, state := c.Param("event"), "open"
		switch id {
		case "e":
		case "off":
			state = "cancelled"
		default:
			return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event"}
		}
		return c.JSONBlob(200, fmt.Appendf(nil, `{"id":%q,"name":"Evening","venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00",
			"opensAt":"2020-01-01T10:00:00+01:00","chart":"c1","mode":"hot","state":%q,"open":%t,"currency":"EUR","seatsPerBooking":3,
			"prices":[{"category":"A","amount":5000},{"category":"B","amount":2500}],"areas":[{"area":"pit","name":"Pit","category":"B","capacity":50}]}`, id, state, state == "open"))
	})
	g.GET("/charts/c1.json", func(c echo.Context) error { return c.JSONBlob(200, []byte(house)) })
	g.GET("/events/:event/live", s.serve)
	g.POST("/demo/session", func(c echo.Context) error { return c.JSON(200, map[string]string{"token": "tok"}) })
	g.GET("/payments/config", func(c echo.Context) error { return c.JSONBlob(200, []byte(`{"provider":"sandbox"}`)) })
}

// shop is hall, where the first booking is refused because t1 is gone.
func shop(g *echo.Group, s *stream) {
	hall(g, s)
	var bookings, confirms atomic.Int64
	const booking = `"bookingId":"e.b1","expiresAt":"2099-01-01T00:00:00Z","cap":"2099-01-01T00:00:00Z","areas":[],
		"seats":[{"ticketId":"t0","label":"1","section":"Stalls","row":"1","category":"A","price":5000}],"total":{"amount":5000,"currency":"EUR"}`
	g.POST("/bookings/e", func(c echo.Context) error {
		if bookings.Add(1) == 1 {
			return &web.Problem{Status: http.StatusConflict, Code: "seats_taken", Extra: map[string]any{"seats": []string{"t1"}}}
		}
		return c.JSONBlob(201, []byte(`{"state":"held",`+booking+`}`))
	})
	g.POST("/bookings/e.b1/payment", func(c echo.Context) error {
		return c.JSONBlob(201, []byte(`{"bookingId":"e.b1","attempt":{"id":"a","state":"created","provider":"sandbox"},"state":"paying"}`))
	})
	g.PUT("/bookings/e.b1/confirm", func(c echo.Context) error {
		confirms.Add(1)
		return c.JSONBlob(200, []byte(`{"bookingId":"e.b1","state":"paying"}`))
	})
	g.GET("/bookings/e.b1", func(c echo.Context) error {
		if confirms.Load() < 2 {
			return c.JSONBlob(200, []byte(`{"state":"paying",`+booking+`}`))
		}
		return c.JSONBlob(200, []byte(`{"state":"sold",`+booking+`,"tickets":[{"id":"T-1","section":"Stalls","row":"1","label":"1","price":5000,"status":"valid"}]}`))
	})
}

func TestAShopperGetsFromTheListToATicket(t *testing.T) {
	s := newStream()
	url := client(t, func(g *echo.Group) { shop(g, s) })
	p := browsertest.Open(t, url+"/events/e")
	c := <-s.conns
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
	p.Until("live", `document.getElementById('live').dataset.mode === 'live'`)
	p.Until("counted", `document.getElementById('legend').innerText.includes('52 left')`) // two seats and fifty places

	browsertest.Eval[int](p, `
		document.getElementById('show-list').click();
		for (const s of document.querySelectorAll('#list > details > summary')) s.click();
		await new Promise((f) => setTimeout(f, 100)); // toggle is told a moment later
		document.querySelector('#list details details summary').click();
		return 0;`)
	p.Until("a row is open", `document.querySelectorAll('.seats button').length === 3`)
	if label := browsertest.Eval[string](p, `return document.querySelectorAll('.seats button')[1].getAttribute('aria-label')`); !strings.Contains(label, "wheelchair space") || !strings.Contains(label, "available") {
		t.Errorf("a seat is called %q", label)
	}
	browsertest.Eval[int](p, `for (const b of [...document.querySelectorAll('.seats button')].slice(0, 2)) b.click(); return 0;`)
	p.Until("two are chosen", `document.querySelector('[data-key=hold]')?.innerText === 'Hold 2'`)

	hold := `document.querySelector('[data-key=hold]')`
	browsertest.Eval[int](p, hold+`.click(); return 0;`)
	p.Until("the one that is gone is marked, the other still chosen", hold+`?.innerText === 'Hold 1 of 2' && document.querySelectorAll('.panel .gone').length === 1`)
	p.Until("the list does not show it as chosen", `[...document.querySelectorAll('.seats button')].slice(0, 2).map((b) => b.dataset.kind).join() === 'picked,held'`)
	if says := browsertest.Eval[string](p, `return document.getElementById('notes').innerText + document.querySelector('.instead').innerText`); strings.Count(says, "Somebody was faster") != 1 {
		t.Errorf("it is said: %s", says)
	}
	browsertest.Eval[int](p, hold+`.click(); return 0;`)
	p.Until("held", `document.getElementById('panel').dataset.stage === 'held' && document.querySelector('.clock').innerText.includes(':')`)
	p.Until("it can be paid", `!document.querySelector('[data-key=pay]').disabled`)
	browsertest.Eval[int](p, `document.querySelector('[data-key=pay]').click(); return 0;`)
	p.Until("sold", `document.querySelector('.ticket.valid')?.innerText.includes('T-1')`)

	c.say("event: delta\nid: 6\ndata: {\"n\":6,\"prev\":5,\"at\":1,\"reserved\":[4],\"released\":[],\"booked\":[0],\"closed\":[],\"areas\":{\"pit\":49}}")
	p.Until("the change is shown", `document.querySelector('#list').innerText.includes('none free now') && document.getElementById('legend').innerText.includes('50 left')`)
	for _, line := range strings.Split(p.Console(), "\n") {
		if line != "" && !strings.Contains(line, "409") { // the browser logs the refused booking itself
			t.Errorf("console: %s", line)
		}
	}
}

func TestThePageOfACancelledEventSaysSoAndOffersNothing(t *testing.T) {
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/:event", func(c echo.Context) error {
			if c.Param("event") != "e" {
				return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event"}
			}
			return c.JSONBlob(200, []byte(`{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00",
				"opensAt":"2020-01-01T10:00:00+01:00","chart":"c1","mode":"hot","state":"cancelled","open":false,"currency":"EUR","seatsPerBooking":3,
				"prices":[],"areas":[{"area":"pit","name":"Pit","category":"B","capacity":50}]}`))
		})
		g.GET("/charts/c1.json", func(c echo.Context) error { return c.JSONBlob(200, []byte(house)) })
		g.GET("/events/:event/live", s.serve)
	})+"/events/e")
	c := <-s.conns
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"//8=\",\"areas\":{\"pit\":0}}")
	p.Until("live", `document.getElementById('live').dataset.mode === 'live'`)
	text := browsertest.Eval[string](p, `return document.body.innerText`)
	if strings.Count(text, "This event is cancelled.") != 1 || strings.Contains(text, "sold out") || strings.Contains(text, "Choose seats") || strings.Contains(text, "choose") {
		t.Errorf("the page says %s", text)
	}
	browsertest.Eval[int](p, `location.assign('/events/nope'); return 0;`)
	p.Until("there is none", `document.querySelector('#fatal h1')`)
	if text := browsertest.Eval[string](p, `return document.getElementById('fatal').innerText`); strings.Count(text, "There is no such event") != 1 {
		t.Errorf("of an event that there is not it says %s", text)
	}
}

func TestTheFrontPagePutsWhatIsOnSaleFirst(t *testing.T) {
	event := func(id string, open bool) string {
		return fmt.Sprintf(`{"id":%q,"name":%q,"venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00","opensAt":"2020-01-01T10:00:00+01:00","open":%v}`, id, id, open)
	}
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/search", func(c echo.Context) error {
			return c.JSONBlob(200, []byte(`{"events":[`+event("closed", false)+`,`+event("onsale", true)+`],"next":null}`))
		})
	}))
	p.Until("listed", `document.querySelectorAll('.event').length === 2`)
	if first := browsertest.Eval[string](p, `return document.querySelector('.event a').getAttribute('href')`); first != "/events/onsale" {
		t.Errorf("first is %s", first)
	}
}

func TestAnOrderThatWasRefundedSaysSoAndSoDoesEachTicket(t *testing.T) {
	s := newStream()
	state := atomic.Value{}
	state.Store("sold")
	url := client(t, func(g *echo.Group) {
		g.GET("/events/:event", func(c echo.Context) error {
			return c.JSONBlob(200, []byte(`{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00",
				"opensAt":"2020-01-01T10:00:00+01:00","chart":"c1","mode":"hot","state":"open","open":true,"currency":"EUR","prices":[],"areas":[]}`))
		})
		g.GET("/charts/c1.json", func(c echo.Context) error { return c.JSONBlob(200, []byte(house)) })
		g.GET("/events/:event/live", s.serve)
		g.POST("/demo/session", func(c echo.Context) error { return c.JSON(200, map[string]string{"token": "tok"}) })
		g.GET("/bookings/e.b1", func(c echo.Context) error {
			ticket := func(status string) string {
				return `{"id":"T-` + status + `","section":"Stalls","row":"1","label":"1","price":5000,"status":"` + status + `"}`
			}
			return c.JSONBlob(200, []byte(fmt.Sprintf(`{"state":%q,"bookingId":"e.b1","areas":[],"seats":[],"total":{"amount":15000,"currency":"EUR"},"tickets":[%s,%s,%s]}`,
				state.Load(), ticket("refunding"), ticket("refunded"), ticket("refund_failed"))))
		})
	})
	p := browsertest.Open(t, url+"/events/e")
	browsertest.Eval[int](p, `sessionStorage.setItem('seatcast.booking.e', 'e.b1'); return 0;`)
	for is, says := range map[string]string{"sold": "These are yours", "refunded": "Refunded"} {
		state.Store(is)
		p.Reload()
		p.Until(is, `document.getElementById('panel').dataset.stage === 'sold'`)
		got := browsertest.Eval[[]string](p, `return [document.querySelector('.panel h2').innerText, ...[...document.querySelectorAll('.ticket .state')].map((s) => s.innerText)];`)
		if want := []string{says, "Being refunded", "Refunded", "Refund failed: ask the box office"}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("an order that is %s says %q", is, got)
		}
	}
}
