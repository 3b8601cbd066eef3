package web_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

const (
	someFigures = `{"seats":{"available":4,"held":0,"sold":0,"unavailable":0},"holdsKnown":true,"areas":[],"tickets":0,"money":{"amount":0,"currency":"EUR","decimals":2}}`
	someRoom    = `{"state":"open","rate":60,"burst":1,"cap":10,"sessionSeconds":600,"frame":` + someLine + `}`
	someLine    = `{"at":1893456000000,"state":"open","rate":60,"pace":60,"slowed":null,"waiting":0,"inside":7}`
)

func says(body string) echo.HandlerFunc {
	return func(c echo.Context) error { return c.JSONBlob(200, []byte(body)) }
}

// console opens the console of a house that has one event, listed with a room or
// without. What is asked about it mount answers.
func console(t *testing.T, room bool, mount func(g *echo.Group)) *browsertest.Page {
	t.Helper()
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/admin/jobs", says(`{"jobs":[]}`))
		g.GET("/events/search", says(fmt.Sprintf(`{"events":[{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Berlin","startsAt":"2026-12-05T18:30:00Z","opensAt":"2020-01-01T10:00:00Z",
			"mode":"hot","state":"open","open":true,"holds":true,"queue":%t}],"next":null}`, room)))
		mount(g)
	})+"/console")
	p.Until("a token is asked for", `!document.getElementById('enter').hidden`)
	return p
}

// signIn signs somebody in who is an operator.
const signIn = `document.getElementById('token').value = 'tok'; document.querySelector('#enter button').click(); return 0;`

func TestALineOfTheConsoleIsFollowedOnceHoweverOftenItIsRefreshed(t *testing.T) {
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	p := console(t, true, func(g *echo.Group) {
		g.GET("/admin/events/e/figures", says(someFigures))
		g.GET("/admin/rooms/e", says(`{"state":"open","rate":60,"burst":1,"cap":10,"sessionSeconds":600}`))
		g.GET("/queue/e", func(c echo.Context) error {
			asked <- struct{}{}
			<-answer
			return says(someLine)(c)
		})
	})
	browsertest.Eval[int](p, timersByHand)
	browsertest.Eval[int](p, signIn)
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
			return says(body)(c)
		}
	}
	p := console(t, true, func(g *echo.Group) {
		g.GET("/admin/events/e/figures", away(&is, someFigures))
		g.GET("/admin/rooms/e", says(someRoom))
		g.GET("/queue/e", away(&line, someLine))
	})
	p.At("Europe/Berlin")
	browsertest.Eval[int](p, timersByHand)
	browsertest.Eval[int](p, signIn)
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
	p := console(t, false, func(g *echo.Group) {
		g.GET("/admin/events/e/figures", says(someFigures))
		perhaps := func(body string) echo.HandlerFunc {
			return func(c echo.Context) error {
				if !there.Load() {
					return &web.Problem{Status: 404, Code: "no_queue", Detail: "this event has no waiting room"}
				}
				return says(body)(c)
			}
		}
		g.GET("/admin/rooms/e", perhaps(someRoom))
		g.GET("/queue/e", perhaps(someLine))
	})
	browsertest.Eval[int](p, timersByHand)
	browsertest.Eval[int](p, signIn)
	const refresh, room = `document.querySelector('[data-do=refresh]').click(); return 0;`, `document.querySelector('.card .body').innerText`
	p.Until("there is none", room+`?.includes('No waiting room') && !document.querySelector('form.rate')`)
	there.Store(true)
	browsertest.Eval[int](p, refresh)
	p.Until("it is shown", `waits.size === 1 && document.querySelector('[data-room=open]') && document.querySelector('form.rate') && !`+room+`.includes('No waiting room')`)
	there.Store(false)
	browsertest.Eval[int](p, `passed(); return 0;`) // by itself
	p.Until("it is shown no more", room+`.includes('No waiting room') && !document.querySelector('[data-room=open]') && !document.querySelector('form.rate')`)
}
