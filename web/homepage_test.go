package web_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

func homeEvent(id, state string, open, queue bool, opens time.Time) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00","opensAt":%q,"state":%q,"open":%v,"queue":%v}`,
		id, id, opens.Format(time.RFC3339), state, open, queue)
}

func TestTheFrontPageHasMoreThanOnePageAndTellsWhenItIsCutOff(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	var down atomic.Bool
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/search", func(c echo.Context) error {
			switch {
			case down.Load():
				return &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable"}
			case c.QueryParam("page") == "2":
				return c.JSONBlob(200, fmt.Appendf(nil, `{"events":[%s],"next":null}`, homeEvent("third", "cancelled", false, false, past)))
			}
			return c.JSONBlob(200, fmt.Appendf(nil, `{"events":[%s,%s],"next":2}`, homeEvent("first", "open", true, true, past), homeEvent("second", "closed", false, false, past)))
		})
	}))
	more := `document.getElementById('more')`
	p.Until("a page is listed", `document.querySelectorAll('.event').length === 2 && !`+more+`.hidden`)
	down.Store(true)
	browsertest.Eval[int](p, more+`.click(); return 0;`)
	p.Until("it says what is wrong, and keeps what it has", `!document.getElementById('trouble').hidden && document.querySelectorAll('.event').length === 2 && `+more+`.hidden`)
	down.Store(false)
	browsertest.Eval[int](p, `document.getElementById('again').click(); return 0;`)
	p.Until("the next page is behind it, and has the focus", `document.querySelectorAll('.event').length === 3 && document.getElementById('trouble').hidden && `+more+`.hidden
		&& document.activeElement.getAttribute('href') === '/events/third'`)
	down.Store(true)
	browsertest.Eval[int](p, `document.getElementById('words').value = 'x'; document.getElementById('find').requestSubmit(); return 0;`)
	p.Until("what is no answer to the question is gone", `!document.getElementById('trouble').hidden && document.querySelectorAll('.event').length === 0 && document.getElementById('found').innerText === ''`)
}

func TestTheFrontPageCountsDownToAnOpeningAndThenOffersSeats(t *testing.T) {
	opens := time.Now().Add(4 * time.Second)
	later := homeEvent("later", "open", false, false, time.Now().Add(50*time.Minute))
	is := func() string { return homeEvent("soon", "open", time.Now().After(opens), false, opens) }
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/search", func(c echo.Context) error {
			return c.JSONBlob(200, fmt.Appendf(nil, `{"events":[%s,%s],"next":null}`, later, is()))
		})
		g.GET("/events/soon", func(c echo.Context) error { return c.JSONBlob(200, []byte(is())) })
	}))
	of := func(id string) string {
		return `document.querySelector('.event a[href="/events/` + id + `"]')?.querySelector('.badge')`
	}
	p.Until("it counts down", `/4[0-9]:[0-9]{2}/.test(`+of("later")+`?.innerText)`)
	p.Until("it is on sale", of("soon")+`?.classList.contains('on') && document.querySelector('.event .go')`)
}

// timersByHand has the page wait for nothing that takes longer than a second: what it
// would do then is in waits.
const timersByHand = `
	const [later, never] = [setTimeout, clearTimeout];
	window.waits = new Map();
	window.setTimeout = (f, ms, ...with_) => {
		if (!(ms > 1000)) return later(f, ms, ...with_);
		const id = later(() => {}, 2 ** 30);
		waits.set(id, f);
		return id;
	};
	window.clearTimeout = (id) => {
		waits.delete(id);
		never(id);
	};
	window.passed = () => {
		const due = [...waits.values()];
		waits.clear();
		for (const f of due) f();
	};
	return 0;`

func TestASaleThatIsNotLookedForAnyMoreIsNotAskedAbout(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	late := homeEvent("late", "open", false, false, past) // it should be open by now
	var asked atomic.Int64
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		g.GET("/events/search", func(c echo.Context) error {
			if c.QueryParam("q") == "late" {
				return c.JSONBlob(200, []byte(`{"events":[`+late+`],"next":null}`))
			}
			return c.JSONBlob(200, []byte(`{"events":[`+homeEvent("other", "open", true, false, past)+`],"next":null}`))
		})
		g.GET("/events/late", func(c echo.Context) error {
			asked.Add(1)
			return c.JSONBlob(200, []byte(late))
		})
	}))
	p.Until("listed", `document.querySelector('a[href="/events/other"]')`)
	browsertest.Eval[int](p, timersByHand)
	find := func(words string) {
		t.Helper()
		browsertest.Eval[int](p, fmt.Sprintf(`Math.random = () => 0.5; document.getElementById('words').value = %q; document.getElementById('find').requestSubmit(); return 0;`, words))
	}
	find("late")
	p.Until("it is going to ask", `document.querySelector('a[href="/events/late"]') && waits.size === 1`)
	browsertest.Eval[int](p, `passed(); return 0;`)
	p.Until("it has asked, and is going to again", `waits.size === 1`)
	find("other")
	p.Until("something else is listed", `document.querySelector('a[href="/events/other"]')`)
	browsertest.Eval[int](p, `passed(); await fetch('/v1/events/search?q='); return 0;`)
	p.Until("nothing is under way", `document.getElementById('events').getAttribute('aria-busy') === 'false'`)
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked about %d times", n)
	}
	if n := browsertest.Eval[int](p, `return waits.size`); n != 0 {
		t.Errorf("%d questions are still to come", n)
	}
}
