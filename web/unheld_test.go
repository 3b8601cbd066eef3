package web_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
)

// unheldShop is an API of an event without holds, or with them, as held says;
// t0 is booked by whoever asks.
func unheldShop(g *echo.Group, s *stream, held func() bool) {
	flag := func() string { return strconv.FormatBool(held()) }
	g.GET("/events/:event", func(c echo.Context) error {
		return c.JSONBlob(200, []byte(`{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00",
			"opensAt":"2020-01-01T10:00:00+01:00","chart":"c1","mode":"hot","state":"open","open":true,"holds":`+flag()+`,"currency":"EUR","seatsPerBooking":3,
			"prices":[{"category":"A","amount":5000},{"category":"B","amount":2500}],"areas":[]}`))
	})
	g.GET("/charts/c1.json", func(c echo.Context) error { return c.JSONBlob(200, []byte(house)) })
	g.GET("/events/:event/live", s.serve)
	g.GET("/events/:event/seatmap", func(c echo.Context) error {
		return c.JSONBlob(200, []byte(`{"n":5,"chart":"c1","map":"AAA=","areas":{},"mode":"hot","live":null,"stale":`+strconv.FormatBool(!held())+`,"poll_after_ms":500}`))
	})
	g.POST("/demo/session", func(c echo.Context) error { return c.JSON(200, map[string]string{"token": "tok"}) })
	told := func(c echo.Context, status int) error {
		mark := ""
		if !held() {
			mark = `"holds":false,`
		}
		return c.JSONBlob(status, []byte(`{"state":"held",`+mark+`"bookingId":"e.b1","expiresAt":"2099-01-01T00:00:00Z","cap":"2099-01-01T00:20:00Z","areas":[],
			"seats":[{"ticketId":"t0","label":"1","section":"Stalls","row":"1","category":"A","price":5000}],"total":{"amount":5000,"currency":"EUR"}}`))
	}
	g.POST("/bookings/e", func(c echo.Context) error { return told(c, 201) })
	g.GET("/bookings/e.b1", func(c echo.Context) error { return told(c, 200) })
	g.POST("/bookings/e.b1/extend", func(c echo.Context) error { return told(c, 200) })
}

func TestAnOrderWithoutAHoldSaysSoUntilItHasOne(t *testing.T) {
	s := newStream()
	var held atomic.Bool
	url := client(t, func(g *echo.Group) { unheldShop(g, s, held.Load) })
	p := browsertest.Open(t, url+"/events/e")
	c := <-s.conns
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{}}")
	c.say("event: degraded\ndata: {\"reason\":\"no_holds\",\"poll\":\"/v1/events/e/seatmap\"}")
	p.Until("the map says what it shows", `document.getElementById('live-text').innerText.includes('Holds are not shown')`)
	p.Until("what to book is not called a hold", `document.querySelector('[data-key=best]').innerText.startsWith('Book')`)
	if says := browsertest.Eval[string](p, `return document.getElementById('panel').innerText`); strings.Contains(says, "once you hold them") {
		t.Errorf("before booking it says %q", says)
	}
	browsertest.Eval[int](p, `document.querySelector('[data-key=best]').click(); return 0;`)
	p.Until("booked", `document.getElementById('panel').dataset.stage === 'held'`)
	panel := `document.getElementById('panel').innerText`
	for _, word := range []string{"not held", "yours when you have paid", "how long this order and its price stand"} {
		if says := browsertest.Eval[string](p, `return `+panel); !strings.Contains(says, word) {
			t.Errorf("the order does not say %q but %q", word, says)
		}
	}
	if notes := browsertest.Eval[string](p, `return document.getElementById('notes').innerText`); strings.Contains(notes, "are held.") {
		t.Errorf("it was told that seats are held: %q", notes)
	}

	held.Store(true) // Redis is back, and the order has its hold
	c.say("event: reset\nid: 0\ndata: {\"n\":6}")
	c.say("event: snapshot\nid: 6\ndata: {\"n\":6,\"chart\":\"c1\",\"map\":\"AQA=\",\"areas\":{}}")
	c.say("event: degraded\ndata: {\"reason\":\"\",\"poll\":\"\"}")
	p.Until("the map is live", `document.getElementById('live').dataset.mode === 'live'`)
	browsertest.Eval[int](p, `document.querySelector('[data-key=extend]').click(); return 0;`)
	p.Until("the order is held", panel+`.includes('Held for you') && !`+panel+`.includes('not held')`)
}
