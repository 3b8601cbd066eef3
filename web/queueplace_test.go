package web_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// at is a change of a frame's time to so many minutes after the beginning of 2030.
func at(minutes int) (was, is string) {
	return fmt.Sprintf(`"at":%d`, year), fmt.Sprintf(`"at":%d`, year+minutes*60000)
}

func (p *page) title(begins string) {
	p.Helper()
	p.Until(begins, fmt.Sprintf(`document.title.startsWith(%q)`, begins))
}

func (p *page) news(begins string) {
	p.Helper()
	p.Until(begins, fmt.Sprintf(`document.getElementById('news').innerText.startsWith(%q)`, begins))
}

// page is the page of a line, for tests of what it says.
type page struct {
	*testing.T
	*browsertest.Page
}

func (p *page) eval(body string) { p.Helper(); browsertest.Eval[int](p.Page, body+`; return 0;`) }

// ahead waits until so many are before her.
func (p *page) ahead(n string) {
	p.Helper()
	p.Until(n+" are before her", fmt.Sprintf(`!document.getElementById('mine').hidden && document.getElementById('ahead').innerText === %q`, n))
}

func (p *page) shows(id string) {
	p.Helper()
	p.Until(id+" is shown", fmt.Sprintf(`!document.getElementById(%q).hidden`, id))
}

func (p *page) focused(id string) {
	p.Helper()
	p.Until("the focus is on "+id, fmt.Sprintf(`document.activeElement.id === %q`, id))
}

// joinedBy is the page of a line in which she has joined, with 89 people before her.
func (l *line) joinedBy(t *testing.T) (*page, conn) {
	t.Helper()
	p := &page{t, l.open(t)}
	click(p.Page, "join")
	p.ahead("89")
	return p, <-l.conns
}

const awake = `document.dispatchEvent(new Event('visibilitychange'))`

func TestAPlaceThatIsTakenAnewIsShownAsItIs(t *testing.T) {
	l := newLine()
	p, c := l.joinedBy(t)
	l.joins(`{"ticket":"` + herTicket + `","state":"open","number":61010,"place":"anew"}`) // she has left on another device
	p.eval(awake)
	p.ahead("60,999")
	l.tells(c, 2, "open", 11)
	p.ahead("60,998")
}

func TestALineThatWasLeftInAnotherTabIsNotJoinedAgain(t *testing.T) {
	l := newLine()
	p, c := l.joinedBy(t)
	p.eval(`for (const key of Object.keys(localStorage)) if (key.startsWith('seatcast.place.')) localStorage.removeItem(key);
		dispatchEvent(new StorageEvent('storage', { storageArea: localStorage }))`)
	p.news("You have no place in this line any more.")
	p.shows("join")
	p.eval(awake)
	l.tells(c, 2, "open", 100, `"waiting":90`, `"waiting":91`)
	p.Until("the frame is heard", `document.getElementById('left').innerText.includes('91 waiting')`)
	if n := l.joined.Load(); n != 1 {
		t.Errorf("joined %d times", n)
	}
}

func TestWhoIsLetInInOneTabIsInsideInAll(t *testing.T) {
	l := newLine()
	l.finds(func(c echo.Context) error {
		return c.JSONBlob(200, []byte(`{"ticket":"`+herTicket+`","state":"open","insideUntil":"2099-01-01T00:00:00Z"}`))
	})
	l.passes(lets("2099-01-01T00:00:00Z"))
	p, _ := l.joinedBy(t)
	p.eval(browsertest.Modules + `
		const { Keep } = await use('line.js');
		new Keep('e').enter('hers', '2099-01-01T00:00:00Z', 0);
		dispatchEvent(new StorageEvent('storage', { storageArea: localStorage }))`)
	p.title("It is your turn")
	p.shows("enter")
}

func TestATurnIsToldToWhoHasToSignInForItAndTheDialogComesByHandAlone(t *testing.T) {
	l := newLine()
	l.guests = false
	token := func(token string) string {
		return fmt.Sprintf(`sessionStorage.setItem('seatcast.token', %q)`, token)
	}
	l.passes(func(c echo.Context) error {
		if c.Request().Header.Get("Authorization") != "Bearer new" {
			return &web.Problem{Status: 401, Code: "token_expired"}
		}
		return lets("2099-01-01T00:00:00Z")(c)
	})
	p := &page{t, l.open(t)}
	p.eval(token("old"))
	click(p.Page, "join")
	p.ahead("89")
	c := <-l.conns
	l.tells(c, 2, "open", 100)
	p.title("It is your turn")
	p.news("It is your turn. Sign in")
	p.focused("sign-in")
	closed := func() bool { return !browsertest.Eval[bool](p.Page, `return document.getElementById('signin').open;`) }
	if !closed() {
		t.Error("the dialog is open unasked")
	}
	click(p.Page, "sign-in")
	p.Until("it asks", `document.getElementById('signin').open`)
	click(p.Page, "signin-cancel")
	p.Until("it is closed", `!document.getElementById('signin').open`)
	l.tells(c, 3, "open", 100, `"waiting":90`, `"waiting":80`)
	p.Until("the frame is heard", `document.getElementById('left').innerText.includes('80 waiting')`)
	if !closed() {
		t.Error("the dialog is back")
	}
	click(p.Page, "sign-in")
	p.Until("it asks again", `document.getElementById('signin').open`)
	p.eval(`document.getElementById('signin-token').value = 'new'`)
	click(p.Page, "signin-ok")
	p.shows("enter")
	p.focused("enter")
}

func TestATimeInsideThatIsOverIsSaidAndNobodyIsInLineAgainUnasked(t *testing.T) {
	l := newLine()
	l.passes(lets("2030-01-01T00:05:00Z"))
	p, c := l.joinedBy(t)
	l.tells(c, 2, "open", 100)
	p.title("It is your turn")
	was, is := at(6)
	l.tells(c, 3, "open", 100, was, is)
	p.news("Your time to choose seats is over")
	p.title("Your time is over")
	p.shows("join")
	p.Until("nothing leads there", `document.getElementById('enter').hidden`)
	p.eval(awake)
	later := strings.Replace(lineFrame(4, "open", 100), was, is, 1)
	l.frame.Store(&later)
	p.Reload()
	p.news("Your time to choose seats is over")
	p.shows("join")
	if n := l.joined.Load(); n != 1 {
		t.Errorf("joined %d times", n)
	}
}

func TestWhatIsWrongWithAPlaceIsSaidNoMoreOnceItIsGone(t *testing.T) {
	l := newLine()
	l.passes(busy)
	p, c := l.joinedBy(t)
	l.tells(c, 2, "open", 100)
	p.Until("it is said", `document.getElementById('trouble').innerText.includes('very busy')`)
	asked, answer := make(chan bool, 8), make(chan bool) // more than the page asks
	let := sync.OnceFunc(func() { close(answer) })
	defer let() // a server waits for its handlers
	l.passes(func(c echo.Context) error {
		asked <- true
		<-answer
		return noPlace(c)
	})
	<-asked
	l.leaves(gone)
	click(p.Page, "leave")
	p.Until("she has left", `!document.getElementById('join').hidden && document.getElementById('trouble').hidden`)
	let()
	l.tells(c, 3, "open", 100, `"waiting":90`, `"waiting":80`)
	p.Until("the frame is heard", `document.getElementById('left').innerText.includes('80 waiting')`)
	p.news("The line is open, and people")
	p.Until("nothing is wrong", `document.getElementById('trouble').hidden && document.title === 'Evening'`)
}

func TestBeforeItsTimeALineSaysWhenItCanBeJoined(t *testing.T) {
	l := newLine()
	joins := []string{`"joinsAt":"2020-01-01T00:00:00Z"`, `"joinsAt":"2030-01-01T00:10:00Z"`, `"closesAt":null`, `"closesAt":"2030-01-01T00:20:00Z"`,
		`"opensAt":"2020-01-01T00:00:00Z"`, `"opensAt":"2030-01-01T00:30:00Z"`, `"draw":null`, `"draw":{"state":"announced","tickets":0}`}
	first := strings.NewReplacer(joins...).Replace(lineFrame(1, "draw", 0))
	l.frame.Store(&first)
	p := &page{t, l.open(t)}
	c := <-l.conns
	p.news("You can join from 1:10")
	p.Until("nobody is said to wait before anybody can join", `document.getElementById('left').innerText === ''`)
	p.Shot("queue-early", browsertest.Desk)
	if hidden := browsertest.Eval[bool](p.Page, `return document.getElementById('join').hidden;`); !hidden {
		t.Error("it can be joined")
	}
	told := func(n, minute int) {
		was, is := at(minute)
		l.tells(c, n, "draw", 0, append([]string{was, is}, joins...)...)
	}
	told(2, 10)
	p.shows("join")
	p.news("Whoever joins before 1:20\u00a0AM takes part in the draw. People are let in from 1:30\u00a0AM (Europe/Paris; ")
	l.joins(`{"ticket":"` + herTicket + `","state":"draw","draw":true,"place":"receipt","announcement":"5f1e"}`)
	click(p.Page, "join")
	p.news("You take part in the draw. The list closes at 1:20\u00a0AM. People are let in from 1:30\u00a0AM (")
	p.Shot("queue-listed", browsertest.Desk)
	closing := func(echo.Context) error { return &web.Problem{Status: 503, Code: "queue_closing"} }
	l.join.Store(&closing)
	told(3, 20)
	waitUntil(t, "she is put on the list again", func() bool { return l.joined.Load() >= 2 }) // again and again, while it is closed
	p.news("You take part in the draw. The list has closed, and the draw is being held.")
	p.Until("nothing is wrong with that", `document.getElementById('trouble').hidden`)
}

func TestAPassStaysInItsCookieForHalfAnHourAfterTheTimeInside(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	for until, want := range map[string]string{"2030-01-01T00:05:00Z": "Max-Age=2100;", "2030-01-01T04:00:00Z": "Max-Age=16200;"} {
		got := browsertest.Eval[string](p, browsertest.Modules+`
			const { Keep } = await use('line.js');
			let cookie = '';
			Object.defineProperty(document, 'cookie', { configurable: true, set(text) { cookie = text; } });
			new Keep('e').enter('hers', '`+until+`', Date.parse('2030-01-01'));
			return cookie;`)
		if !strings.HasPrefix(got, "seatcast-pass=hers; Path=/events/e; "+want) {
			t.Errorf("until %s: %s", until, got)
		}
	}
}

func TestASoundThatCannotBeMadeKeepsNoTurnFromBeingTold(t *testing.T) {
	l := newLine()
	l.passes(lets("2099-01-01T00:00:00Z"))
	p, c := l.joinedBy(t)
	p.eval(`document.getElementById('sound').checked = true`) // as a browser does that restores what was filled in
	l.tells(c, 2, "open", 100)
	p.focused("enter")
	p.Until("the place is not shown any more", `document.getElementById('mine').hidden && document.getElementById('leave').hidden`)
}

func TestTheTitleAndTheNameAreTrueThoughTheEventIsToldLate(t *testing.T) {
	l := newLine()
	l.passes(lets("2030-01-01T00:05:00Z"))
	l.event = busy
	p := &page{t, l.open(t)}
	click(p.Page, "join")
	p.ahead("89")
	c := <-l.conns
	l.tells(c, 2, "open", 100)
	p.title("It is your turn")
	p.Until("in Paris it is an hour later, and the turn is still told", `document.getElementById('name').innerText === 'Evening'
		&& document.title === 'It is your turn: Evening' && document.getElementById('news').innerText.includes('1:05')`)

	l = newLine()
	p, c = l.joinedBy(t)
	p.title("89 before you")
	l.tells(c, 2, "over", 10)
	p.title("Nobody is let in any more")
}

func TestALineThatIsOverSaysWhyAndLeadsToOtherEvents(t *testing.T) {
	l := newLine()
	p, c := l.joinedBy(t)
	if hidden := browsertest.Eval[bool](p.Page, `return document.getElementById('others').hidden`); !hidden {
		t.Error("it leads away while there is something to wait for")
	}
	l.tells(c, 2, "over", 10)
	p.news("Nobody is let in any more.") // by hand: there are seats
	l.tells(c, 3, "over", 10, `"seatsLeft":120`, `"seatsLeft":0`)
	p.news("All seats are taken. Nobody is let in any more.")
	p.shows("others")
	p.Shot("queue-over", browsertest.Desk)
	click(p.Page, "others")
	p.Until("all events are shown", `location.pathname === '/'`)
}

func TestTheFocusIsNeverLostWithWhatWasPressed(t *testing.T) {
	l := newLine()
	l.leaves(gone)
	p := &page{t, l.open(t)}
	press := func(id string) {
		p.eval(fmt.Sprintf(`document.getElementById(%[1]q).focus(); document.getElementById(%[1]q).click()`, id))
	}
	press("join")
	p.ahead("89")
	p.focused("news")
	press("leave")
	p.shows("join")
	p.focused("news")
	unnamed := browsertest.Eval[int](p.Page, `return [...document.querySelectorAll('dialog')].filter((d) => !document.getElementById(d.getAttribute('aria-labelledby'))?.textContent).length`)
	if unnamed > 0 {
		t.Errorf("%d dialogs have no name", unnamed)
	}
}

func TestALineThatIsNoMoreIsLookedForOnceAMinuteAndItsPlaceIsShownOnceItIsThereAgain(t *testing.T) {
	l := newLine()
	p, c := l.joinedBy(t)
	no := func(echo.Context) error { return &web.Problem{Status: 404, Code: "no_queue"} }
	l.none.Store(&no)
	p.eval(`window.waits = []; window.real = window.setTimeout;
		window.setTimeout = (f, ms, ...a) => { if (ms > 1000) waits.push(ms); return real(f, ms / 100, ...a); }`) // the test's own are shorter
	c.say("retry: 10")
	c.cut()
	p.news("There is no waiting room for this event.")
	p.Until("the event is shown", `!document.getElementById('enter').hidden && document.getElementById('enter').pathname === '/events/e' && document.getElementById('mine').hidden`)
	p.eval(`waits.length = 0`)
	p.Until("it is looked for", `waits.length >= 3`)
	if waits := browsertest.Eval[[]float64](p.Page, `return waits`); slices.Min(waits) < 45_000 || slices.Max(waits) > 75_000 {
		t.Errorf("it is looked for after %v ms", waits)
	}
	p.eval(`Object.defineProperty(document, 'visibilityState', { configurable: true, value: 'hidden' }); waits.length = 0`)
	asked := l.looked.Load()
	p.eval(`await new Promise((f) => real(f, 1000))`) // in which it would be looked for
	if n := l.looked.Load() - asked; n > 1 {          // which was on its way
		t.Errorf("out of sight it was looked for %d times", n)
	}
	l.none.Store(nil)
	p.eval(`delete document.visibilityState; ` + awake)
	p.ahead("89")
	if n := l.joined.Load(); n != 2 {
		t.Errorf("joined %d times", n)
	}
	l.tells(<-l.conns, 2, "open", 20)
	p.ahead("79")
}

// of is a change of a frame to one of this room.
func of(room int) (was, is string) {
	return `"draw":null`, fmt.Sprintf(`"draw":null,"room":%[1]d,"since":%[1]d`, room)
}

// placeOf is a place as one room signs it.
func placeOf(room int) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"room":%d}`, room)) + ".c2ln"
}

// keeps has the browser keep what it was given.
func (p *page) keeps(place string) {
	p.Helper()
	p.eval(browsertest.Modules + `
		const { Keep } = await use('line.js');
		new Keep('e').place = ` + place)
}

func TestAPlaceOfAnEarlierRoomCountsForNothingAndNobodyIsInTheNextUnasked(t *testing.T) {
	const later, now = `"joinsAt":"2030-01-01T00:10:00Z"`, `"joinsAt":"2020-01-01T00:00:00Z"`
	was, is := of(2)
	for what, kept := range map[string]string{
		"who waited":     `{ place: '` + placeOf(1) + `', number: 100, from: 90 }`,
		"who was inside": `{ room: 1, until: '2099-01-01T00:00:00Z' }`,
	} {
		t.Run(what, func(t *testing.T) {
			l := newLine()
			p := &page{t, l.open(t)}
			p.keeps(kept)
			<-l.conns
			first := strings.NewReplacer(was, is, now, later).Replace(lineFrame(1, "closed", 0))
			l.frame.Store(&first)
			p.Reload()
			p.news("You can join from 1:10")
			minute, ten := at(10)
			l.tells(<-l.conns, 2, "open", 0, was, is, now, later, minute, ten)
			p.shows("join")
			p.news("The line is open, and people")
			if n := l.joined.Load(); n != 0 {
				t.Errorf("joined %d times", n)
			}
			shown := make(chan string, 1)
			l.accepts(func(place string) { shown <- place })
			click(p.Page, "join")
			if place := <-shown; place != "" {
				t.Errorf("with %q", place)
			}
			p.ahead("99")
		})
	}
}

// accepts has everybody join, and tells with which place.
func (l *line) accepts(shown func(place string)) {
	join := func(c echo.Context) error {
		var body struct{ Place string }
		if err := c.Bind(&body); err != nil {
			return err
		}
		shown(body.Place)
		return c.JSONBlob(200, []byte(`{"ticket":"`+herTicket+`","state":"open","number":100,"place":"signed"}`))
	}
	l.join.Store(&join)
}

func TestWhoseRoomGivesWayToAnotherWhileThePageIsOpenJoinsItByHandAlone(t *testing.T) {
	l := newLine()
	was, is := of(1)
	first := strings.Replace(lineFrame(1, "open", 10), was, is, 1)
	l.frame.Store(&first)
	l.joins(`{"ticket":"` + herTicket + `","state":"open","number":100,"place":"` + placeOf(1) + `"}`)
	p, c := l.joinedBy(t)
	was, is = of(2)
	l.tells(c, 2, "open", 0, was, is)
	p.news("The line is open, and people")
	p.shows("join")
	p.eval(awake)
	l.tells(c, 3, "open", 0, was, is, `"waiting":90`, `"waiting":80`)
	p.Until("the frame is heard", `document.getElementById('left').innerText.includes('80 waiting')`)
	if n := l.joined.Load(); n != 1 {
		t.Errorf("joined %d times", n)
	}
	l.joins(`{"ticket":"` + herTicket + `","state":"open","number":7,"place":"` + placeOf(2) + `"}`)
	click(p.Page, "join")
	p.ahead("6")
	next := strings.Replace(lineFrame(4, "open", 0), was, is, 1)
	l.frame.Store(&next)
	p.Reload()
	p.ahead("6")
}

func TestWhoComesBackJoinsTheRoomThatTheyWereInOrNone(t *testing.T) {
	l := newLine()
	was, is := of(1)
	first := strings.Replace(lineFrame(1, "open", 10), was, is, 1)
	l.frame.Store(&first)
	l.joins(`{"ticket":"` + herTicket + `","state":"open","number":100,"place":"` + placeOf(1) + `"}`)
	p, _ := l.joinedBy(t)
	meant := make(chan int, 1)
	join := func(c echo.Context) error {
		var body struct{ Room int }
		if err := c.Bind(&body); err != nil {
			return err
		}
		meant <- body.Room
		if body.Room != 0 {
			return &web.Problem{Status: 409, Code: "other_room"} // the frame is behind
		}
		return c.JSONBlob(200, []byte(`{"ticket":"`+herTicket+`","state":"open","number":40,"place":"`+placeOf(2)+`"}`))
	}
	l.join.Store(&join)
	p.Reload()
	if room := <-meant; room != 1 {
		t.Errorf("unasked she joins room %d", room)
	}
	p.shows("join")
	p.Until("nothing is wrong with that", `document.getElementById('trouble').hidden`)
	click(p.Page, "join")
	if room := <-meant; room != 0 {
		t.Errorf("by hand she joins room %d alone", room)
	}
	p.ahead("29")
}

func TestWhoKeepsAPlaceOfALineThatNobodyCanJoinYetIsToldWhenAndTriesNoMore(t *testing.T) {
	l := newLine()
	p := &page{t, l.open(t)}
	p.keeps(`{ place: 'signed', number: 100, from: 90 }`) // by a server that did not say of which room
	<-l.conns
	early := func(c echo.Context) error {
		c.Response().Header().Set("Retry-After", "1")
		return &web.Problem{Status: 409, Code: "queue_not_open", RetryAfter: time.Second}
	}
	l.join.Store(&early)
	const later, now = `"joinsAt":"2030-01-01T00:10:00Z"`, `"joinsAt":"2020-01-01T00:00:00Z"`
	first := strings.Replace(lineFrame(1, "closed", 0), now, later, 1)
	l.frame.Store(&first)
	p.Reload()
	p.news("You can join from 1:10")
	p.Until("nothing is wrong", `document.getElementById('trouble').hidden`)
	p.eval(`await new Promise((f) => setTimeout(f, 1500))`) // in which it would try again
	if n := l.joined.Load(); n != 1 {
		t.Errorf("joined %d times", n)
	}
	minute, ten := at(10)
	l.tells(<-l.conns, 2, "open", 0, now, later, minute, ten)
	p.shows("join")
	l.joins(`{"ticket":"` + herTicket + `","state":"open","number":100,"place":"signed"}`)
	click(p.Page, "join")
	p.ahead("99")
}

func TestWhatIsFoundOfOneAccountIsNotKeptAsAnothers(t *testing.T) {
	l := newLine()
	p := &page{t, l.open(t)}
	<-l.conns
	p.eval(browsertest.Modules + `
		const { Keep } = await use('line.js');
		const ann = new Keep('e');
		ann.is('ann');
		ann.place = { place: 'of ann', number: 3, from: 2 };
		ann.enter('pass of ann', '2099-01-01T00:00:00Z', 0);
		sessionStorage.clear()`) // another tab: bob signs in, who has a place from his phone
	l.finds(func(c echo.Context) error {
		return c.JSONBlob(200, []byte(`{"ticket":"bob","state":"open","number":100,"place":"of bob"}`))
	})
	l.passes(lets("2099-01-01T00:00:00Z"))
	p.Reload()
	p.ahead("89")
	l.tells(<-l.conns, 2, "open", 100)
	p.shows("enter")
	got := browsertest.Eval[string](p.Page, browsertest.Modules+`
		const { Keep, passFor } = await use('line.js');
		const keep = new Keep('e');
		const has = () => keep.place.place + ', ' + passFor('/v1/bookings/e');
		const bob = has();
		sessionStorage.setItem('seatcast.ticket.e', 'ann');
		return bob + '; ' + has();`)
	if got != "of bob, hers; of ann, pass of ann" {
		t.Errorf("kept are %s", got)
	}
}

func TestADrawThatDoesNotSayWhenItsListClosesIsToldWithoutATime(t *testing.T) {
	l := newLine()
	drawn := []string{`"draw":null`, `"draw":{"state":"announced","tickets":1}`}
	first := strings.NewReplacer(drawn...).Replace(lineFrame(1, "draw", 0))
	l.frame.Store(&first)
	l.joins(`{"ticket":"` + herTicket + `","state":"draw","draw":true,"place":"receipt","announcement":"5f1e"}`)
	p := &page{t, l.open(t)}
	p.news("Whoever joins now takes part in the draw.")
	click(p.Page, "join")
	p.Until("it says no more", `document.getElementById('news').innerText === 'You take part in the draw.'`)
	l.tells(<-l.conns, 2, "draw", 0, append(drawn, `"waiting":90`, `"waiting":80`)...)
	p.Until("the frame is heard", `document.getElementById('left').innerText.includes('80 waiting')`)
	if n := l.joined.Load(); n != 1 {
		t.Errorf("joined %d times", n)
	}
}
