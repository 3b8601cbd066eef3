package web_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// says waits until the text of an element contains this.
func (p *page) says(id, text string) {
	p.Helper()
	p.Until(id+" says "+text, fmt.Sprintf(`!document.getElementById(%[1]q).hidden && document.getElementById(%[1]q).innerText.includes(%[2]q)`, id, text))
}

func (p *page) hides(id string) {
	p.Helper()
	p.Until(id+" is hidden", fmt.Sprintf(`document.getElementById(%q).hidden`, id))
}

func TestNobodyIsBeforeThemselvesAndWhoIsCalledReadsSo(t *testing.T) {
	l := newLine()
	l.joins(`{"ticket":"` + herTicket + `","state":"open","number":13,"place":"signed"}`)
	l.passes(func(c echo.Context) error { return c.JSONBlob(202, []byte(`{"ahead":1}`)) })
	p := &page{t, l.open(t)}
	click(p.Page, "join")
	p.ahead("2")
	p.title("2 before you")
	c := <-l.conns
	l.tells(c, 2, "open", 12)
	p.ahead("0")
	p.title("You are next")
	p.says("wait", "About 1 minute.")
	l.tells(c, 3, "open", 13)
	p.news("You are called.")
	p.title("You are called")
	p.hides("mine")
	p.shows("leave")
}

func TestWhileAListIsClosedAndNotDrawnNothingIsOfferedThatWouldFailAndNothingIsRed(t *testing.T) {
	l := newLine()
	closed := []string{`"closesAt":null`, `"closesAt":"2030-01-01T00:00:00Z"`, `"draw":null`, `"draw":{"state":"announced","tickets":0}`}
	frozen := append([]string{closed[0], closed[1], `"draw":null`, `"draw":{"state":"frozen","tickets":7}`, `"waiting":90`, `"waiting":7`}, []string{`"opensAt":"2020`, `"opensAt":"2030`}...)
	first := strings.NewReplacer(closed...).Replace(lineFrame(1, "draw", 0))
	l.frame.Store(&first)
	p := &page{t, l.open(t)}
	c := <-l.conns
	p.news("The list has closed, and the draw is being held. You can join in a moment")
	p.hides("join")
	l.tells(c, 2, "closed", 0, closed...)
	p.Until("the line is closed, and the list not frozen yet", `document.getElementById('left').innerText.includes('90 waiting')`)
	p.news("The list has closed, and the draw is being held. You can join in a moment")
	p.hides("join")
	l.tells(c, 3, "closed", 0, frozen...)
	p.news("The list has closed, and the draw is being held. Whoever joins now is right behind")
	p.says("left", "7 waiting")
	p.says("join", "Join the line now")

	l = newLine()
	before := []string{`"closesAt":null`, `"closesAt":"2030-01-01T00:10:00Z"`, `"draw":null`, `"draw":{"state":"announced","tickets":0}`}
	first = strings.NewReplacer(before...).Replace(lineFrame(1, "draw", 0))
	l.frame.Store(&first)
	closing := func(c echo.Context) error {
		c.Response().Header().Set("Retry-After", "1")
		return &web.Problem{Status: 503, Code: "queue_closing", RetryAfter: time.Second}
	}
	l.join.Store(&closing)
	p = &page{t, l.open(t)}
	c = <-l.conns
	p.says("join", "Take part in the draw")
	click(p.Page, "join") // the server's clock is ahead
	p.news("The list has closed, and the draw is being held. In a moment you have a place")
	p.hides("join")
	p.hides("trouble")
	l.joins(`{"ticket":"` + herTicket + `","state":"draw","draw":true,"place":"receipt"}`)
	p.news("You take part in the draw.")
	l.tells(c, 2, "draw", 0, append(closed, `"at":1893456000000`, `"at":1893456001000`, `"waiting":90`, `"waiting":0`)...)
	p.Until("nobody is said to wait no more", `document.getElementById('left').innerText === '120 seats left'`)
}

func TestWhoGetsAPlaceBehindTheListIsNotToldOfTheDraw(t *testing.T) {
	l := newLine()
	first := strings.NewReplacer(`"closesAt":null`, `"closesAt":"2030-01-01T00:10:00Z"`, `"draw":null`, `"draw":{"state":"announced","tickets":0}`).Replace(lineFrame(1, "draw", 0))
	l.frame.Store(&first)
	closing := func(echo.Context) error {
		return &web.Problem{Status: 503, Code: "queue_closing", RetryAfter: time.Second}
	}
	l.join.Store(&closing)
	p := &page{t, l.open(t)}
	c := <-l.conns
	p.says("join", "Take part in the draw")
	click(p.Page, "join")
	p.news("The list has closed, and the draw is being held. In a moment you have a place")
	l.tells(c, 2, "closed", 0, `"closesAt":null`, `"closesAt":"2030-01-01T00:00:00Z"`, `"draw":null`, `"draw":{"state":"announced","tickets":0}`)
	l.joins(`{"ticket":"` + herTicket + `","state":"closed","number":8,"place":"signed"}`)
	p.ahead("7")
	if said := browsertest.Eval[string](p.Page, `return document.getElementById('news').innerText`); said != "The list has closed, and the draw is being held." {
		t.Errorf("it says %s", said)
	}
}

func TestWhatIsNextIsCountedDownToInItsLastHourByTheClockOfTheServer(t *testing.T) {
	l := newLine()
	joins := []string{`"joinsAt":"2020-01-01T00:00:00Z"`, `"joinsAt":"2030-01-01T02:00:00Z"`, `"opensAt":"2020-01-01T00:00:00Z"`, `"opensAt":"2030-01-01T02:30:00Z"`}
	first := strings.NewReplacer(joins...).Replace(lineFrame(1, "closed", 0))
	l.frame.Store(&first)
	p := &page{t, l.open(t)}
	c := <-l.conns
	p.news("You can join from 3:00\u00a0AM (Europe/Paris")
	p.hides("count")
	told := func(n, minutes int) {
		was, is := at(minutes)
		l.tells(c, n, "closed", 0, append([]string{was, is}, joins...)...)
	}
	told(2, 100)
	p.says("count", "You can join in")
	p.Until("minutes and seconds are left", `/^(20:00|19:\d\d)$/.test(document.getElementById('count-left').innerText)`)
	was := browsertest.Eval[string](p.Page, `return document.getElementById('count-left').innerText`)
	p.Until("they become fewer", `document.getElementById('count-left').innerText < `+fmt.Sprintf("%q", was))
	if quiet := browsertest.Eval[bool](p.Page, `return !document.getElementById('count').closest('[aria-live=polite], [role=status], [role=alert]') && document.getElementById('count').role === 'timer'`); !quiet {
		t.Error("each second of it is read out")
	}
	told(3, 120)
	p.says("count", "Admission starts in")
	p.says("news", "You can join the line now. People are let in from 3:30\u00a0AM")
	p.says("join", "Join the line now")
	told(4, 151)
	p.hides("count")
}

func TestWhoIsInsideSeesHowLongTheyHave(t *testing.T) {
	l := newLine()
	l.passes(lets("2030-01-01T00:05:00Z"))
	p, c := l.joinedBy(t)
	l.tells(c, 2, "open", 100)
	p.shows("enter")
	p.says("count", "Left to choose your seats")
	p.Until("it is minutes and seconds", `/^(5:00|4:\d\d)$/.test(document.getElementById('count-left').innerText)`)
	p.Shot("queue-inside", browsertest.Desk, browsertest.Phone)
}

func TestWhatWasFoundOfADrawGoesWithItsRoom(t *testing.T) {
	of := func(room int) []string {
		return []string{`"draw":null`, fmt.Sprintf(`"draw":{"state":"drawn","tickets":1},"room":%[1]d,"since":%[1]d`, room)}
	}
	here := func(room int) string {
		return `{"ticket":"` + herTicket + `","state":"open","number":100,"place":"` + placeOf(room) + `"}`
	}
	l := newLine()
	first := strings.NewReplacer(of(1)...).Replace(lineFrame(1, "open", 10))
	l.frame.Store(&first)
	l.joins(here(1))
	no := func(echo.Context) error { return &web.Problem{Status: 404, Code: "not_drawn"} }
	l.draws(no)
	p, c := l.joinedBy(t)
	click(p.Page, "check-mine")
	p.says("check-says", "could not be finished")

	l.joins(here(2))
	l.tells(c, 2, "open", 10, of(2)...)
	p.shows("join")
	click(p.Page, "join")
	p.ahead("89")
	p.Until("nothing is said of the draw of this room", `!document.getElementById('check').hidden && document.getElementById('check-says').innerText === ''`)

	asked, answer := make(chan bool, 1), make(chan bool)
	let := sync.OnceFunc(func() { close(answer) })
	defer let()
	l.draws(func(c echo.Context) error {
		asked <- true
		<-answer
		return no(c)
	})
	p.eval(`
		const real = fetch;
		window.fetch = async (...args) => {
			const res = await real(...args);
			if (String(args[0]).endsWith('/draw')) window.answered = true;
			return res;
		}`)
	click(p.Page, "check-mine")
	<-asked
	p.says("check-says", "Checking")
	l.joins(here(3))
	l.tells(c, 3, "open", 10, of(3)...)
	p.shows("join")
	click(p.Page, "join")
	p.ahead("89")
	p.Until("it can be checked at once, and nothing is said yet", `!document.getElementById('check').hidden && document.getElementById('check-says').innerText === '' && document.getElementById('check-mine').ariaDisabled === 'false'`)
	let()
	l.tells(c, 4, "open", 11, of(3)...)
	p.ahead("88")
	p.Until("the answer to the check that is forgotten has come", `window.answered`)
	p.eval(`await new Promise(requestAnimationFrame)`)
	if says := browsertest.Eval[string](p.Page, `return document.getElementById('check-says').innerText + document.getElementById('checks').innerText`); says != "" {
		t.Errorf("of the draw of another room it says %q", says)
	}
}

func TestWhoIsLedToALineIsToldWhyUntilTheyHaveJoined(t *testing.T) {
	l := newLine()
	p := &page{t, l.open(t)}
	<-l.conns
	p.eval(browsertest.Modules + `
		const { backToLine } = await use('line.js');
		sessionStorage.setItem('seatcast.choice.e', '[[3],[]]');
		setTimeout(() => backToLine('POST', '/v1/bookings/e', 'pass_required'))`)
	<-l.conns
	p.says("why", "People are let in one by one. Take a place in the line")
	p.says("why", "The seats you chose stay chosen.")
	p.Shot("queue-why", browsertest.Desk, browsertest.Phone, browsertest.Dark)
	click(p.Page, "join")
	p.ahead("89")
	p.hides("why")
	l.finds(noPlace)
	p.Reload()
	p.ahead("89")
	p.hides("why")
}

func TestWhoLooksAtAMapIsToldOfARoomThatHasComeMeanwhileAndHowLongTheyAreInside(t *testing.T) {
	var queue, inside, away atomic.Bool
	var until atomic.Pointer[string]
	var state, joins atomic.Value
	state.Store("open")
	joins.Store("1970-01-01T00:00:00Z") // the clock of this server begins then
	away.Store(true)
	p, s, _ := chooses(t, func(g *echo.Group) {
		g.GET("/events/e", func(c echo.Context) error {
			return c.JSONBlob(200, fmt.Appendf(nil, `{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00","opensAt":"2020-01-01T10:00:00+01:00",
				"chart":"c1","mode":"hot","state":"open","open":true,"queue":%t,"currency":"EUR","seatsPerBooking":3,"prices":[{"category":"A","amount":5000},{"category":"B","amount":2500}],
				"areas":[{"area":"pit","name":"Pit","category":"B","capacity":50}]}`, queue.Load()))
		})
		g.GET("/queue/e", func(c echo.Context) error {
			if away.Load() {
				return &web.Problem{Status: 503, Code: "store_unavailable"}
			}
			return c.JSONBlob(200, []byte(strings.Replace(lineFrame(1, state.Load().(string), 10), `"joinsAt":"2020-01-01T00:00:00Z"`, `"joinsAt":"`+joins.Load().(string)+`"`, 1)))
		})
		g.GET("/queue/e/me", func(c echo.Context) error {
			if !inside.Load() {
				return noPlace(c)
			}
			return c.JSONBlob(200, []byte(`{"ticket":"`+herTicket+`","state":"open","insideUntil":"`+*until.Load()+`"}`))
		})
	})
	q := &page{t, p}
	q.hides("line")
	queue.Store(true)
	const later = `window.real ??= performance.now.bind(performance); window.ahead = (window.ahead ?? 0) + 60000; performance.now = () => real() + ahead; ` + awake
	q.eval(`await new Promise((f) => setTimeout(f, 1100)); ` + later)
	p.Until("how the line stands could not be told", `performance.getEntriesByName(location.origin + '/v1/queue/e').length === 1`)
	away.Store(false)
	q.eval(later)
	q.says("line", "People are let in one by one.")
	if to := browsertest.Eval[string](p, `return document.getElementById('line-to').pathname`); to != "/queue/e" {
		t.Errorf("it leads to %s", to)
	}
	p.Shot("event-line", browsertest.Desk, browsertest.Phone)

	ends := time.Now().Add(5 * time.Minute).UTC().Format(time.RFC3339)
	until.Store(&ends)
	inside.Store(true)
	q.keeps(`{ room: 1, until: '` + ends + `' }`)
	now := func() {
		c := <-s.conns
		c.say("event: hello\ndata: {\"n\":5,\"chart\":\"c1\",\"at\":%d}", time.Now().UnixMilli())
		c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
	}
	p.Reload()
	now()
	q.says("inside", "Left to choose your seats")
	p.Until("it is counted down", `document.getElementById('live').dataset.mode === 'live' && /^(5:0\d|4:\d\d)$/.test(document.getElementById('inside-left').innerText) && document.getElementById('line').hidden`)
	p.Shot("event-inside", browsertest.Desk, browsertest.Phone)

	inside.Store(false) // she has bought, and so made room for the next
	p.Reload()
	shows(s, "AAA=")
	q.says("line", "People are let in one by one.")
	q.hides("inside")

	state.Store("over") // nobody is told to take a place where nobody is let in any more
	q.eval(later)
	q.hides("line")

	state.Store("closed")
	joins.Store(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	p.Reload()
	now()
	p.Until("nobody is told before places may be taken", `performance.getEntriesByName(location.origin + '/v1/queue/e').length > 0 && document.getElementById('line').hidden`)
	joins.Store(time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano))
	q.eval(later)
	q.says("line", "People are let in one by one.")

	inside.Store(true)
	other := &page{t, browsertest.Open(t, browsertest.Eval[string](p, `return location.origin + '/v1/events/e'`))}
	other.eval(`localStorage.setItem('seatcast.place.e.', '{"room":1,"until":"2099-01-01T00:00:00Z"}')`)
	q.says("inside", "Left to choose your seats")
	q.hides("line")
}
