package web_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// wavering is a house whose stream says what is the matter, or that stays away.
type wavering struct {
	*stream
	gone atomic.Bool // it is away
	away chan bool
	said chan string // what is the matter from now on
}

// runs serves whoever watches, the last who came, while it is not away: who comes
// back, as on a slow machine a page does by itself, is told what is the matter too.
func (w *wavering) runs(t *testing.T) {
	go func() { // for as long as the test
		reason := `""`
		var there *conn
		tell := func() { there.say("event: degraded\ndata: {\"reason\":%s,\"poll\":\"/v1/events/e/seatmap\"}", reason) }
		for {
			select {
			case c := <-w.conns:
				if w.gone.Load() {
					c.cut()
					continue
				}
				there = &c
				c.say(hello)
				c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
				if reason != `""` {
					tell()
				}
			case reason = <-w.said:
				if there != nil {
					tell()
				}
			case away := <-w.away:
				w.gone.Store(away)
				if away && there != nil {
					there.cut()
					there = nil
				}
			case <-t.Context().Done():
				return
			}
		}
	}()
}

// polled answers who polls beside the stream.
func (w *wavering) polled(c echo.Context) error {
	if w.gone.Load() {
		return &web.Problem{Status: 503, Code: "store_unavailable"}
	}
	return polledAt(c, 5)
}

func TestAMapThatIsNotAsOfNowSaysSoOverItself(t *testing.T) {
	for _, tt := range []struct {
		name, path, root                     string
		late, asOf, unheld, waiting, offline string
	}{
		{"event", "/events/e", `document`, "Updates come late", "What you see is as of ", "Seats cannot be held right now", "There is no connection", "You are offline"},
		{"element", "/embed", `document.querySelector('seat-map').shadowRoot`, "Änderungen kommen verspätet", "Sie sehen den Stand von ", "Plätze können gerade nicht reserviert werden", "Gerade besteht keine Verbindung", "Sie sind offline"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &wavering{stream: newStream(), away: make(chan bool), said: make(chan string)}
			url, _ := server(t, func(e *echo.Echo) {
				web.MountPages(e)
				shop(e.Group("/v1"), w.stream)
				e.GET("/v1/events/e/seatmap", w.polled)
				e.GET("/embed", func(c echo.Context) error {
					return c.HTML(200, `<!doctype html><html lang="de"><title>A site</title><seat-map event="e"></seat-map><script type="module" src="/seat-map.js"></script></html>`)
				})
			})
			w.runs(t)
			p := browsertest.Elsewhere(t, url+tt.path)
			find := func(selector string) string { return fmt.Sprintf(`%s?.querySelector(%q)`, tt.root, selector) }
			is := func(mode string) {
				t.Helper()
				p.Until(mode, find("#live")+`?.dataset.mode === '`+mode+`'`)
			}
			says := func(words ...string) {
				t.Helper()
				p.Until("it says "+words[0], fmt.Sprintf(`%q.split('|').every((words) => %s.innerText.includes(words))`, strings.Join(words, "|"), find(".doubt")))
			}
			quiet := func() {
				t.Helper()
				p.Until("it says nothing any more", find(".doubt")+`.innerText === '' && !`+find(".doubt")+`.offsetHeight`)
			}
			boxes := func() string {
				return browsertest.Eval[string](p, fmt.Sprintf(`return JSON.stringify(['#map', '.tools', '.zoom', '.key'].map((one) => %s.querySelector(one).getBoundingClientRect()))`, tt.root))
			}
			is("live")
			quiet()
			if role := browsertest.Eval[string](p, `return `+find(".doubt")+`.getAttribute('role')`); role != "status" {
				t.Errorf("its role is %s", role)
			}
			before := boxes()
			w.said <- `"redis_unreachable"`
			says(tt.late, tt.asOf)
			if now := boxes(); now != before {
				t.Errorf("what is shown has moved from %s to %s", before, now)
			}
			w.said <- `"no_holds"`
			says(tt.unheld)
			w.said <- `""`
			quiet()

			browsertest.Eval[int](p, fmt.Sprintf(`
				const doubt = %s, live = %s;
				window.said = 0;
				window.waited = [];
				new MutationObserver(() => { said++; waited.push(performance.now()); }).observe(doubt, { childList: true, characterData: true, subtree: true });
				new MutationObserver(() => { if (live.dataset.mode === 'waiting' && !waited.length) waited.push(performance.now()); }).observe(live, { attributes: true });
				return 0;`, find(".doubt"), find("#live")))
			w.away <- true
			says(tt.waiting, tt.asOf)
			if after := browsertest.Eval[float64](p, `return waited[1] - waited[0]`); after < 4000 {
				t.Errorf("a connection that is away for %.0f ms is already told", after)
			}
			browsertest.Eval[int](p, `
				Object.defineProperty(navigator, 'onLine', { value: false, configurable: true });
				dispatchEvent(new Event('offline'));
				return 0;`)
			says(tt.offline, tt.asOf)
			if said := browsertest.Eval[int](p, `return said`); said != 2 {
				t.Errorf("it said something %d times", said)
			}
			w.away <- false
			browsertest.Eval[int](p, `
				delete navigator.onLine;
				dispatchEvent(new Event('online'));
				return 0;`)
			is("live")
			quiet()
		})
	}
}

func TestNothingIsSaidOfWhatIsLeftBeforeItIsKnown(t *testing.T) {
	for name, at := range map[string]struct{ path, root string }{
		"event":   {"/events/e", `document`},
		"element": {"/embed", `document.querySelector('seat-map').shadowRoot`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream()
			url, _ := server(t, func(e *echo.Echo) {
				web.MountPages(e)
				shop(e.Group("/v1"), s)
				e.GET("/embed", func(c echo.Context) error {
					return c.HTML(200, `<!doctype html><html lang="en"><title>A site</title><seat-map event="e"></seat-map><script type="module" src="/seat-map.js"></script></html>`)
				})
			})
			p := browsertest.Open(t, url+at.path)
			c := <-s.conns
			p.Until("the list", at.root+`.querySelector('.list details')`)
			for _, parts := range []string{".list details", ".list .rows details"} {
				browsertest.Eval[int](p, at.root+`.querySelectorAll('`+parts+`').forEach((d) => { d.open = true; }); return 0;`)
				p.Until("what is in it", at.root+`.querySelector('.list .rows details')`)
			}
			p.Until("a row", at.root+`.querySelector('.list .seats button')`)
			words := `[...` + at.root + `.querySelectorAll('.legend small, .list .count, .panel .area small, .list .seats button')].map((e) => e.ariaLabel ?? e.textContent).join(' | ')`
			got := browsertest.Eval[string](p, `return `+words)
			for _, word := range []string{"sold", "left", "free", "full", "available", "taken"} {
				if strings.Contains(got, word) {
					t.Errorf("before anything is known of what is left it says %q", got)
				}
			}
			c.say(hello)
			c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{\"pit\":50}}")
			p.Until("what is left", words+`.includes('50') && `+words+`.includes('52 left')`)
		})
	}
}
