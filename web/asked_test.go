package web_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// asks are the holds that were asked for, and their keys.
type asks struct{ n, keys atomic.Int64 }

// were fails unless so many were asked for, under one key.
func (a *asks) were(t *testing.T, n int64) {
	t.Helper()
	if a.n.Load() != n || a.keys.Load() != 1 {
		t.Errorf("it was asked for %d times under %d keys", a.n.Load(), a.keys.Load())
	}
}

// books answers holds in this order, and all that come later as the last of them.
func books(g *echo.Group, answers ...echo.HandlerFunc) *asks {
	var last atomic.Value
	a := new(asks)
	g.POST("/bookings/e", func(c echo.Context) error {
		if key := c.Request().Header.Get("Idempotency-Key"); last.Swap(key) != key {
			a.keys.Add(1)
		}
		return answers[min(int(a.n.Add(1)), len(answers))-1](c)
	})
	return a
}

// noAnswer is what is left of one that was lost on its way.
func noAnswer(c echo.Context) error { return c.HTML(http.StatusGatewayTimeout, "<h1>504</h1>") }

func heldByThem(c echo.Context) error { return c.JSONBlob(201, order("held", nextYear)) }

func takenByOthers(echo.Context) error {
	return &web.Problem{Status: http.StatusConflict, Code: "seats_taken", Extra: map[string]any{"seats": []string{"t0"}}}
}

// refused is a hold that is not to be had, with a code.
func refused(status int, code string) echo.HandlerFunc {
	return func(echo.Context) error { return &web.Problem{Status: status, Code: code} }
}

// asksFor opens the page of an event, chooses t0 and asks for it.
func asksFor(t *testing.T, answers ...echo.HandlerFunc) (p *browsertest.Page, s *stream, c conn, asked *asks) {
	t.Helper()
	p, s, c = chooses(t, func(g *echo.Group) { asked = books(g, answers...) })
	browsertest.Eval[int](p, hold+`.click(); return 0;`)
	return p, s, c, asked
}

// inVain waits until it is said that there was no answer.
func inVain(p *browsertest.Page) {
	p.Until("it has no answer", `said.size > 0 && document.getElementById('panel').ariaBusy === 'false'`)
}

const faster = `[...said].some((text) => text.includes('Somebody was faster'))`

// neverSaid fails when a note has had these words.
func neverSaid(t *testing.T, p *browsertest.Page, words string) {
	t.Helper()
	if said := browsertest.Eval[string](p, `return [...said].join('; ')`); strings.Contains(said, words) {
		t.Errorf("it was said: %s", said)
	}
}

func TestAHoldWhoseAnswerWasLostIsFoundWhenTheMapShowsItsSeats(t *testing.T) {
	p, _, c, asked := asksFor(t, noAnswer, heldByThem)
	inVain(p)
	turns(c, 6, "reserved")
	p.Until("it is found", isHeld)
	asked.were(t, 2)
	neverSaid(t, p, "faster")
}

// The usual order: the map is quicker than an answer that is lost in the end.
func TestAHoldIsFoundWhoseSeatsTheMapShowedBeforeItsAnswerWasLost(t *testing.T) {
	shown := make(chan struct{})
	p, _, c, asked := asksFor(t, func(c echo.Context) error {
		<-shown
		return noAnswer(c)
	}, heldByThem)
	turns(c, 6, "reserved")
	p.Until("the map shows its seat as held", isTaken)
	close(shown)
	p.Until("it is found", isHeld)
	asked.were(t, 2)
	neverSaid(t, p, "faster")
}

func TestAHoldIsAskedForUntilThereIsAnAnswer(t *testing.T) {
	p, _, c, asked := asksFor(t, noAnswer, noAnswer, noAnswer, heldByThem)
	inVain(p)
	turns(c, 6, "reserved")
	p.Until("it is found", isHeld)
	asked.were(t, 4)
	neverSaid(t, p, "faster")
}

func TestAHoldWithoutAnAnswerIsAskedForAfterAReloadUntilThereIsOne(t *testing.T) {
	second, third := make(chan struct{}), make(chan struct{})
	p, s, _, asked := asksFor(t, noAnswer, func(c echo.Context) error {
		<-second
		return noAnswer(c)
	}, func(c echo.Context) error {
		<-third
		return heldByThem(c)
	})
	inVain(p)
	p.Reload()
	shows(s, "AQA=") // t0 is held
	p.Until("the map is there", pricesAreThere)
	close(second)
	p.Until("its order is being looked for", isSought)
	close(third)
	p.Until("it is found", isHeld)
	asked.were(t, 3)
}

// best is a hold of seats the house chooses: no map shows which they are.
func TestAHoldOfTheBestSeatsIsAskedForUntilThereIsAnAnswer(t *testing.T) {
	var asked *asks
	p, _, _ := chooses(t, func(g *echo.Group) { asked = books(g, noAnswer, noAnswer, heldByThem) })
	browsertest.Eval[int](p, `
		document.querySelector('[data-key=clear]').click();
		document.querySelector('[data-key=best]').click();
		return 0;`)
	p.Until("it is found", isHeld)
	asked.were(t, 3)
}

// Without that, the seats of the first would be gone for who has them.
func TestAnotherHoldIsAskedForWhenItIsKnownWhatBecameOfTheFirst(t *testing.T) {
	var asked *asks
	var swapped atomic.Value
	p, _, _ := chooses(t, func(g *echo.Group) {
		asked = books(g, noAnswer, heldByThem, takenByOthers)
		g.PUT("/bookings/e.b1/seats", func(c echo.Context) error {
			var body struct{ TicketIDs []string }
			if err := c.Bind(&body); err != nil {
				return err
			}
			swapped.Store(strings.Join(body.TicketIDs, " "))
			return heldByThem(c)
		})
	})
	browsertest.Eval[int](p, hold+`.click(); return 0;`)
	inVain(p)
	browsertest.Eval[int](p, `document.querySelectorAll('#list .seats button')[2].click(); return 0;`)
	p.Until("both are chosen", hold+`?.innerText === 'Hold 2'`)
	browsertest.Eval[int](p, hold+`.click(); return 0;`)
	p.Until("it is found", isHeld)
	asked.were(t, 2)
	p.Until("it is not busy", `document.getElementById('panel').ariaBusy === 'false'`)
	if swapped.Load() != "t0 t2" {
		t.Errorf("the seats of the order are then to be %v", swapped.Load())
	}
	neverSaid(t, p, "faster")
}

func TestASeatThatSomebodyElseGotIsToldThoughAHoldOfItHadNoAnswer(t *testing.T) {
	p, _, c, asked := asksFor(t, noAnswer, takenByOthers)
	inVain(p)
	turns(c, 6, "reserved")
	p.Until("it is told", faster+` && document.querySelector('.panel .gone')`)
	asked.were(t, 2)
}

// It was there, and it ended unseen.
func TestASeatThatSomebodyElseGotAfterAHoldIsNotToldToBeFree(t *testing.T) {
	p, _, c, asked := asksFor(t, noAnswer, refused(http.StatusConflict, "hold_expired"))
	inVain(p)
	turns(c, 6, "reserved")
	p.Until("it is told", faster+` && document.querySelector('.panel .gone')`)
	asked.were(t, 2)
	neverSaid(t, p, "free again")
}

func TestARepeatThatIsNotLetInLeadsNobodyToTheLine(t *testing.T) {
	p, _, c, _ := asksFor(t, noAnswer, refused(http.StatusForbidden, "pass_expired"))
	inVain(p)
	turns(c, 6, "reserved")
	p.Until("what the map shows is told, on the same page", faster+` && location.pathname === '/events/e'`)
}

// quick has what a page would do in a while be done at once.
const quick = `
	const wait = window.setTimeout;
	window.setTimeout = (f, ms) => wait(f, Math.min(ms ?? 0, 5));
	window.passed = async () => { for (let i = 0; i < 10; i++) await new Promise((done) => wait(done, 20)); };
	return 0;`

func TestAHoldThatIsNotWantedAnyMoreIsNotAskedForAgain(t *testing.T) {
	p, _, c, asked := asksFor(t, noAnswer, takenByOthers)
	inVain(p)
	browsertest.Eval[int](p, `document.querySelector('[data-key=clear]').click(); said.clear(); `+quick)
	turns(c, 6, "reserved")
	p.Until("the map shows it", isTaken)
	browsertest.Eval[int](p, `await passed(); return 0;`)
	asked.were(t, 1)
	neverSaid(t, p, "faster")
}

func TestAHoldThatTheMapNeverShowedIsForgottenAfterAWhile(t *testing.T) {
	p, _, c, asked := asksFor(t, noAnswer, heldByThem)
	inVain(p)
	browsertest.Eval[int](p, `
		const now = Date.now.bind(Date);
		Date.now = () => now() + 600000;`+quick)
	c.say("event: delta\nid: 6\ndata: {\"n\":6,\"prev\":5,\"at\":1,%s}", strings.Replace(noSeats, `"reserved":[]`, `"reserved":[4]`, 1))
	turns(c, 7, "reserved")
	p.Until("it is told", faster+` && document.querySelector('.panel .gone')`)
	browsertest.Eval[int](p, `await passed(); return 0;`)
	asked.were(t, 1)
}

func TestAnElementFindsItsHoldWhoseAnswerWasLost(t *testing.T) {
	var asked *asks
	p, c := element(t, newStream(), func(g *echo.Group) { asked = books(g, noAnswer, heldByThem) })
	if code := browsertest.Eval[string](p, `return map.hold().then(() => 'held', (p) => p.code);`); code != "store_unavailable" {
		t.Fatalf("a hold without an answer is %s", code)
	}
	turns(c, 6, "reserved")
	p.Until("it is told", `heard.length`)
	if heard := browsertest.Eval[string](p, `return heard.join()`); heard != "hold e.b1" {
		t.Errorf("it is told %s", heard)
	}
	asked.were(t, 2)
}

func TestAnElementFindsItsHoldWhoseSeatsTheMapShowedBeforeItsAnswerWasLost(t *testing.T) {
	var asked *asks
	shown := make(chan struct{})
	p, c := element(t, newStream(), func(g *echo.Group) {
		asked = books(g, func(c echo.Context) error {
			<-shown
			return noAnswer(c)
		}, heldByThem)
	})
	browsertest.Eval[int](p, `map.hold().catch(() => {}); return 0;`)
	turns(c, 6, "reserved")
	p.Until("the map shows its seat as held", strings.Replace(isTaken, "document.getElementById('legend')", "map.shadowRoot.getElementById('legend')", 1))
	close(shown)
	p.Until("it is told", `heard.length`)
	if heard := browsertest.Eval[string](p, `return heard.join()`); heard != "hold e.b1" {
		t.Errorf("it is told %s", heard)
	}
	asked.were(t, 2)
}

// Whoever asks how the order is meanwhile hears first that it is over.
func TestSeatsThatAreGivenBackAreChosenWhoeverIsToldFirst(t *testing.T) {
	given, read := make(chan struct{}), make(chan struct{}, 8) // more than it is read
	p, _, _ := chooses(t, func(g *echo.Group) {
		books(g, heldByThem)
		g.GET("/bookings/e.b1", func(c echo.Context) error {
			read <- struct{}{}
			return c.JSONBlob(200, order("released", nextYear))
		})
		g.DELETE("/bookings/e.b1", func(c echo.Context) error {
			<-given
			return c.NoContent(http.StatusNoContent)
		})
	})
	browsertest.Eval[int](p, hold+`.click(); return 0;`)
	p.Until("it is held", isHeld)
	browsertest.Eval[int](p, `document.querySelector('[data-key=back]').click(); document.dispatchEvent(new Event('visibilitychange')); return 0;`)
	<-read
	p.Until("it is told that it is over", `document.getElementById('panel').dataset.stage === 'picking'`)
	close(given)
	p.Until("the seat is chosen", hold+` && !`+hold+`.disabled && `+hold+`.innerText === 'Hold 1'`)
}
