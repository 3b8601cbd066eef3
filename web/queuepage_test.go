package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// year is the beginning of 2030, in Unix milliseconds: when frames of lines are of.
const year = 1893456000000

// lineFrame is a frame of the beginning of 2030, when whoever likes may join.
func lineFrame(n int, state string, serving int) string {
	return fmt.Sprintf(`{"n":%d,"prev":0,"at":%d,"state":%q,"serving":%d,"rate":60,"waiting":90,"inside":3,"seatsLeft":120,"eta":{"slow":30,"fast":60},
		"joinsAt":"2020-01-01T00:00:00Z","closesAt":null,"opensAt":"2020-01-01T00:00:00Z","draw":null,"poll_after_ms":5000}`, n, year, state, serving)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), "") }

func TestWhoWaitsSeesTheirPlaceKeepsItAndIsToldWhenItIsTheirTurn(t *testing.T) {
	s := newStream()
	var places, claims atomic.Int64
	url := client(t, func(g *echo.Group) {
		g.GET("/events/e", func(c echo.Context) error {
			return c.JSONBlob(200, []byte(`{"id":"e","name":"Evening","venue":"Hall","zone":"Europe/Paris","startsAt":"2030-06-01T20:00:00+02:00"}`))
		})
		g.POST("/demo/session", func(c echo.Context) error { return c.JSON(200, map[string]string{"token": "tok"}) })
		g.GET("/queue/e", func(c echo.Context) error { return c.JSONBlob(200, []byte(lineFrame(1, "open", 10))) })
		g.GET("/queue/e/live", s.serve)
		g.POST("/queue/e", func(c echo.Context) error {
			var body struct{ Place string }
			if err := c.Bind(&body); err != nil {
				return err
			}
			if body.Place == "signed" {
				places.Add(1)
			}
			return c.JSONBlob(201, []byte(`{"ticket":"AAAAAAAAAAAAAAAAAAAAAA","state":"open","number":100,"place":"signed"}`))
		})
		g.GET("/queue/e/me", noPlace)
		g.POST("/queue/e/pass", func(c echo.Context) error {
			if claims.Add(1) == 1 {
				return c.JSONBlob(202, []byte(`{"ahead":2}`))
			}
			return c.JSONBlob(200, []byte(`{"pass":"her pass","expiresAt":"2099-01-01T00:00:00Z"}`))
		})
		g.POST("/bookings/e", func(c echo.Context) error {
			return &web.Problem{Status: 403, Code: "pass_revoked", Detail: c.Request().Header.Get("Seatcast-Pass")}
		})
	})
	res, _ := do(t, "GET", url+"/queue/e", "")
	if control := res.Header.Get("Cache-Control"); !strings.HasPrefix(control, "public") {
		t.Errorf("the page is for everybody, and caches are told %q", control)
	}
	p := browsertest.Open(t, url+"/queue/e")
	p.Until("it can be joined", `!document.getElementById('join').hidden && document.getElementById('left').innerText.includes('120 seats left')`)
	browsertest.Eval[int](p, `document.getElementById('join').click(); return 0;`)
	p.Until("the place is shown", `document.getElementById('ahead').innerText === '89' && document.getElementById('wait').innerText === 'Between 1 and 3 minutes.'`)
	c := <-s.conns
	c.say("event: snapshot\nid: 3\ndata: %s", oneLine(lineFrame(3, "open", 60)))
	p.Until("it came nearer", `document.getElementById('ahead').innerText === '39' && document.title.startsWith('39 before you') && document.getElementById('progress').value > 50`)
	p.Shot("queue-waiting", browsertest.Desk, browsertest.Dark, browsertest.Phone)
	slow := strings.Replace(oneLine(lineFrame(4, "open", 60)), `"rate":60,`, `"rate":60,"pace":42,"slowed":"checkout",`, 1)
	c.say("event: delta\nid: 4\ndata: %s", slow)
	p.Until("it is told that it goes slower", `document.getElementById('slowed').innerText.startsWith('The line moves more slowly')`)
	c.say("event: delta\nid: 2\ndata: %s", oneLine(lineFrame(2, "open", 20)))
	c.say("event: delta\nid: 5\ndata: %s", oneLine(lineFrame(5, "paused", 60)))
	p.Until("the pause is told, and the place has not risen", `document.getElementById('news').innerText.includes('for the moment') && document.getElementById('slowed').innerText === '' && document.getElementById('ahead').innerText === '39'`)
	p.Shot("queue-paused", browsertest.Desk)

	p.Reload()
	p.Until("the place is there again", `document.getElementById('ahead').innerText === '89'`) // the frame that is polled is old
	if places.Load() == 0 {
		t.Error("the place that was kept is not shown to the server")
	}
	c = <-s.conns
	c.say("event: snapshot\nid: 6\ndata: %s", oneLine(lineFrame(6, "open", 100)))
	p.Until("the turn is told", `document.title.startsWith('It is your turn') && document.getElementById('news').innerText.includes('your turn') && document.activeElement.id === 'enter'`)
	p.Shot("queue-turn", browsertest.Desk, browsertest.Phone)
	shown := browsertest.Eval[string](p, browsertest.Modules+`
		const { Api } = await use('api.js');
		const { Clock } = await use('clock.js');
		const { Session } = await use('session.js');
		try { await new Api(new Clock(), new Session(), await use('line.js')).call('POST', '/v1/bookings/e', { body: {} }); } catch (p) { return p.detail; }`)
	if shown != "her pass" {
		t.Errorf("with a booking %q is shown", shown)
	}
	p.Until("who is not let in is led to the line", `location.pathname === '/queue/e' && !Object.keys(localStorage).some((key) => key.startsWith('seatcast.pass'))
		&& document.getElementById('news').innerText.startsWith('Your time to choose seats is over') && !document.getElementById('join').hidden`)
}

// asking is a line that asks something of who joins: answer judges what they bring.
func asking(t *testing.T, asks string, answer func(c echo.Context, body map[string]string) error) *browsertest.Page {
	t.Helper()
	frame := strings.Replace(lineFrame(1, "open", 10), `"draw":null`, `"draw":null,"asks":"`+asks+`"`, 1)
	url := client(t, func(g *echo.Group) {
		g.POST("/demo/session", func(c echo.Context) error { return c.JSON(200, map[string]string{"token": "tok"}) })
		g.GET("/queue/e", func(c echo.Context) error { return c.JSONBlob(200, []byte(frame)) })
		g.GET("/queue/e/challenge", func(c echo.Context) error {
			if c.QueryParams().Has("wait") {
				return c.JSONBlob(200, []byte(`{"waited":"a token","seconds":1}`))
			}
			sum := sha256.Sum256([]byte("salt?expires=1&1500"))
			return c.JSONBlob(200, fmt.Appendf(nil, `{"algorithm":"SHA-256","challenge":"%x","maxnumber":3000,"salt":"salt?expires=1&","signature":"s"}`, sum))
		})
		g.POST("/queue/e", func(c echo.Context) error {
			body := map[string]string{}
			if err := c.Bind(&body); err != nil {
				return err
			}
			if err := answer(c, body); err != nil {
				return err
			}
			return c.JSONBlob(201, []byte(`{"ticket":"AAAAAAAAAAAAAAAAAAAAAA","state":"open","number":100,"place":"signed"}`))
		})
	})
	p := browsertest.Open(t, url+"/queue/e")
	p.Until("it can be joined", `!document.getElementById('join').hidden`)
	return p
}

const joins = `document.getElementById('join').click(); return 0;`

func TestTheBrowserDoesTheWorkAndShowsHowFarItIs(t *testing.T) {
	var got atomic.Value
	p := asking(t, "proof", func(_ echo.Context, body map[string]string) error {
		raw, err := base64.StdEncoding.DecodeString(body["altcha"])
		got.Store(string(raw))
		return err
	})
	browsertest.Eval[int](p, `
		window.heard = [];
		new MutationObserver(() => heard.push(document.getElementById('proof-text').textContent)).observe(document.getElementById('proof-text'), { childList: true });`+joins)
	p.Until("the place is shown", `document.getElementById('ahead').innerText === '89' && document.getElementById('proof').hidden`)
	if s, _ := got.Load().(string); !strings.Contains(s, `"number":1500,`) || !strings.Contains(s, `"signature":"s"`) {
		t.Errorf("the proof is %s", s)
	}
	if heard := browsertest.Eval[[]string](p, `return heard`); len(heard) < 2 || !strings.Contains(heard[0], "begun") {
		t.Errorf("read out was %q", heard)
	}
}

func TestWhereNoWorkCanBeDoneThePageWaitsInstead(t *testing.T) {
	for what, broken := range map[string]string{
		"without workers":          `window.Worker = undefined; `,
		"as the shopper wants":     `window.Worker = class { postMessage() { document.getElementById('proof-wait').click(); } terminate() {} }; `,
		"with a worker that fails": `window.Worker = class { postMessage() { this.onerror(); } terminate() {} }; `,
	} {
		var got atomic.Value
		p := asking(t, "proof", func(_ echo.Context, body map[string]string) error {
			got.Store(body["waited"])
			return nil
		})
		browsertest.Eval[int](p, broken+joins)
		p.Until(what+" the wait is told", `document.getElementById('proof-text').innerText.includes('wait before you join')`)
		p.Until("the place is shown", `document.getElementById('ahead').innerText === '89'`)
		if got.Load() != "a token" {
			t.Errorf("%s: joined with %v", what, got.Load())
		}
	}
}

func TestWorkThatWasDoneIsShownAgainWhenTheServerIsBusyOrEarly(t *testing.T) {
	brought := make(chan string, 8) // more than the test takes
	again := map[string]error{
		"first":  &web.Problem{Status: 503, Code: "store_unavailable", RetryAfter: time.Second},
		"second": &web.Problem{Status: 409, Code: "proof_early", RetryAfter: time.Second},
	}
	tries := []string{"first", "second", "third", "fourth"}
	p := asking(t, "proof", func(_ echo.Context, body map[string]string) error {
		brought <- body["altcha"]
		this := tries[0]
		tries = tries[1:]
		if this == "third" {
			return &web.Problem{Status: 403, Code: "proof_expired"}
		}
		return again[this]
	})
	browsertest.Eval[int](p, joins)
	p.Until("the place is shown", `document.getElementById('ahead').innerText === '89'`)
	if got := browsertest.Eval[int](p, `return performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/challenge')).length`); got != 2 {
		t.Errorf("%d times work was asked for", got)
	}
	one, two, three := <-brought, <-brought, <-brought
	if one == "" || two != one || three != one {
		t.Errorf("brought was %q, %q, %q", one, two, three)
	}
}

func TestAWaitEndsWhateverTheClockOfTheDeviceDoes(t *testing.T) {
	var got atomic.Value
	p := asking(t, "proof", func(_ echo.Context, body map[string]string) error {
		got.Store(body["waited"])
		return nil
	})
	browsertest.Eval[int](p, `window.Worker = undefined; let now = Date.now(); Date.now = () => now -= 1000;`+joins)
	p.Until("the place is shown", `document.getElementById('ahead').innerText === '89'`)
	if got.Load() != "a token" {
		t.Errorf("joined with %v", got.Load())
	}
}

func TestACodeThatWillNotDoIsSaidAtItsField(t *testing.T) {
	p := asking(t, "code", func(_ echo.Context, body map[string]string) error {
		if body["code"] != "GOOD-CODE" {
			return &web.Problem{Status: 403, Code: "bad_code"}
		}
		return nil
	})
	p.Until("the field is there", `!document.getElementById('code-field').hidden && document.getElementById('code').labels[0].innerText === 'Your code'`)
	browsertest.Eval[int](p, `document.getElementById('code').value = 'wrong'; `+joins)
	p.Until("it is said what is wrong", `document.getElementById('code-error').innerText.includes('not a code for this event')`)
	p.Until("at the field", `document.activeElement.id === 'code' && document.getElementById('code').getAttribute('aria-invalid') === 'true'`)
	browsertest.Eval[int](p, `document.getElementById('code').value = ''; return 0;`)
	p.Keys("GOOD-CODE\r")
	p.Until("the place is shown", `document.getElementById('ahead').innerText === '89' && document.getElementById('code-field').hidden`)
}

func TestAShardIsFoundByTheTicketAsTheServerFindsIt(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[[]int](p, browsertest.Modules+`
		const { shardOf } = await use('draw.js');
		const ticket = btoa(String.fromCharCode(0b10110111, 255, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)).replaceAll('=', '');
		return [1, 256, 257, 512, 513, 1024, 1025].map((n) => shardOf(ticket, n));`)
	if fmt.Sprint(got) != "[0 0 1 1 2 2 5]" {
		t.Errorf("got %v", got)
	}
}
