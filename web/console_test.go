package web_test

import (
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

func TestALineOfTheConsoleIsFollowedOnceHoweverOftenItIsRefreshed(t *testing.T) {
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		json := func(path, body string) {
			g.GET(path, func(c echo.Context) error { return c.JSONBlob(200, []byte(body)) })
		}
		json("/admin/jobs", `{"jobs":[]}`)
		json("/events/search", `{"events":[{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Berlin","startsAt":"2026-12-05T18:30:00Z","opensAt":"2020-01-01T10:00:00Z",
			"mode":"hot","state":"open","open":true,"holds":true,"queue":true}],"next":null}`)
		json("/admin/events/e/figures", `{"seats":{"available":4,"held":0,"sold":0,"unavailable":0},"holdsKnown":true,"areas":[],"tickets":0,"money":{"amount":0,"currency":"EUR","decimals":2}}`)
		json("/admin/rooms/e", `{"state":"open","rate":60,"burst":1,"cap":10,"sessionSeconds":600}`)
		g.GET("/queue/e", func(c echo.Context) error {
			asked <- struct{}{}
			<-answer
			return c.JSONBlob(200, []byte(`{"at":1893456000000,"state":"open","rate":60,"pace":60,"slowed":null,"waiting":0,"inside":7}`))
		})
	})+"/console")
	p.Until("a token is asked for", `!document.getElementById('enter').hidden`)
	browsertest.Eval[int](p, timersByHand)
	browsertest.Eval[int](p, `document.getElementById('token').value = 'tok'; document.querySelector('#enter button').click(); return 0;`)
	p.Until("its line is going to be looked at", `document.querySelector('.card[open] form.rate') && waits.size === 1`)
	browsertest.Eval[int](p, `passed(); return 0;`)
	<-asked
	browsertest.Eval[int](p, `document.querySelector('[data-do=refresh]').click(); return 0;`)
	p.Until("it is going to be looked at anew", `waits.size === 1`)
	close(answer)
	browsertest.Eval[int](p, `passed(); return 0;`)
	<-asked
	p.Until("it is shown", `document.querySelector('.room').innerText.includes('7')`)
	p.Until("and looked at again", `waits.size > 0`)
	if n := browsertest.Eval[int](p, `for (let i = 0; i < 5; i++) await fetch('/v1/admin/jobs'); return waits.size`); n != 1 {
		t.Errorf("it is going to be looked at %d times", n)
	}
}

func TestTheConsoleSaysNoProblemThatIsOverAndWhyALineIsOld(t *testing.T) {
	var is, line atomic.Bool // away
	away := func(is *atomic.Bool, body string) echo.HandlerFunc {
		return func(c echo.Context) error {
			if is.Load() {
				return &web.Problem{Status: 503, Code: "store_unavailable", Detail: "Postgres is away"}
			}
			return c.JSONBlob(200, []byte(body))
		}
	}
	const frame = `{"at":1893456000000,"state":"open","rate":60,"pace":60,"slowed":null,"waiting":0,"inside":7}`
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		var not atomic.Bool
		g.GET("/admin/jobs", away(&not, `{"jobs":[]}`))
		g.GET("/events/search", away(&not, `{"events":[{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Berlin","startsAt":"2026-12-05T18:30:00Z","opensAt":"2020-01-01T10:00:00Z",
			"mode":"hot","state":"open","open":true,"holds":true,"queue":true}],"next":null}`))
		g.GET("/admin/events/e/figures", away(&is, `{"seats":{"available":4,"held":0,"sold":0,"unavailable":0},"holdsKnown":true,"areas":[],"tickets":0,"money":{"amount":0,"currency":"EUR","decimals":2}}`))
		g.GET("/admin/rooms/e", away(&not, `{"state":"open","rate":60,"burst":1,"cap":10,"sessionSeconds":600,"frame":`+frame+`}`))
		g.GET("/queue/e", away(&line, frame))
	})+"/console")
	p.At("Europe/Berlin")
	p.Until("a token is asked for", `!document.getElementById('enter').hidden`)
	browsertest.Eval[int](p, timersByHand)
	browsertest.Eval[int](p, `document.getElementById('token').value = 'tok'; document.querySelector('#enter button').click(); return 0;`)
	const refresh, answer, room = `document.querySelector('[data-do=refresh]').click(); return 0;`, `document.querySelector('.answer').innerText`, `document.querySelector('.card .body').innerText`
	p.Until("the line says as of when it is", `document.querySelector('.room h2')?.innerText.includes('as of 1:00') && waits.size === 1`)

	is.Store(true)
	browsertest.Eval[int](p, refresh)
	p.Until("the problem is said", answer+`.includes('Postgres is away')`)
	is.Store(false)
	browsertest.Eval[int](p, refresh)
	p.Until("it is not said once it is over", answer+` === '' && waits.size === 1`)

	line.Store(true)
	browsertest.Eval[int](p, `passed(); return 0;`)
	p.Until("it says why the line is old", room+`.includes('Postgres is away (503 store_unavailable)') && waits.size === 1`)
	line.Store(false)
	browsertest.Eval[int](p, `passed(); return 0;`)
	p.Until("and no longer once it is not", `!`+room+`.includes('Postgres is away')`)
}

func TestTheConsoleShowsARoomThatHasComeOrGoneSinceItWasListed(t *testing.T) {
	var there atomic.Bool
	const frame = `{"at":1893456000000,"state":"open","rate":60,"pace":60,"slowed":null,"waiting":0,"inside":7}`
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		json := func(path, body string) {
			g.GET(path, func(c echo.Context) error { return c.JSONBlob(200, []byte(body)) })
		}
		json("/admin/jobs", `{"jobs":[]}`)
		json("/events/search", `{"events":[{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Berlin","startsAt":"2026-12-05T18:30:00Z","opensAt":"2020-01-01T10:00:00Z",
			"mode":"hot","state":"open","open":true,"holds":true,"queue":false}],"next":null}`)
		json("/admin/events/e/figures", `{"seats":{"available":4,"held":0,"sold":0,"unavailable":0},"holdsKnown":true,"areas":[],"tickets":0,"money":{"amount":0,"currency":"EUR","decimals":2}}`)
		g.GET("/admin/rooms/e", func(c echo.Context) error {
			if !there.Load() {
				return &web.Problem{Status: 404, Code: "no_queue", Detail: "this event has no waiting room"}
			}
			return c.JSONBlob(200, []byte(`{"state":"open","rate":60,"burst":1,"cap":10,"sessionSeconds":600,"frame":`+frame+`}`))
		})
		json("/queue/e", frame)
	})+"/console")
	p.Until("a token is asked for", `!document.getElementById('enter').hidden`)
	browsertest.Eval[int](p, `document.getElementById('token').value = 'tok'; document.querySelector('#enter button').click(); return 0;`)
	const refresh, room = `document.querySelector('[data-do=refresh]').click(); return 0;`, `document.querySelector('.card .body').innerText`
	p.Until("there is none", room+`?.includes('No waiting room') && !document.querySelector('form.rate')`)
	there.Store(true)
	browsertest.Eval[int](p, refresh)
	p.Until("it is shown", `document.querySelector('[data-room=open]') && document.querySelector('form.rate') && !`+room+`.includes('No waiting room')`)
	there.Store(false)
	browsertest.Eval[int](p, refresh)
	p.Until("it is shown no more", room+`.includes('No waiting room') && !document.querySelector('[data-room=open]') && !document.querySelector('form.rate')`)
}
