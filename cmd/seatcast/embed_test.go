package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/internal/browsertest"
)

// site is somebody else's, at an origin of its own: docs/embed.html with a content
// policy as strict as it can be.
type site struct {
	*httptest.Server
	page    atomic.Pointer[http.HandlerFunc]
	session atomic.Pointer[string] // of who is signed in there
}

func newSite(t *testing.T) *site {
	s := &site{}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { (*s.page.Load())(w, r) })
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/session", func(w http.ResponseWriter, _ *http.Request) {
		token := s.session.Load()
		if token == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.WriteString(w, *token)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// allowed is the setting of a server that lets this site show its maps.
func (s *site) allowed() string { return "SEATCAST_ORIGINS=" + strings.TrimPrefix(s.URL, "http://") }

// hashes are the sources of a content policy that let these parts of a page be.
func hashes(html, element string) string {
	var all []string
	for _, part := range regexp.MustCompile(`(?s)<`+element+`>(.*?)</`).FindAllStringSubmatch(html, -1) {
		sum := sha256.Sum256([]byte(part[1]))
		all = append(all, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	return strings.Join(all, " ")
}

// embedded is a page of a site that shows the map of an event of n.
type embedded struct {
	page
	site *site
}

// embeds opens the page of docs/embed.html at the site, with other attributes of the
// element if there are any.
func (h *house) embeds(t *testing.T, s *site, n *node, attributes string) embedded {
	t.Helper()
	raw, err := os.ReadFile("../../docs/embed.html")
	if err != nil {
		t.Fatal(err)
	}
	html := strings.ReplaceAll(string(raw), "https://tickets.example", n.url)
	html = strings.Replace(html, `event="theatre"`, fmt.Sprintf(`event=%q %s`, h.event, attributes), 1)
	policy := fmt.Sprintf("default-src 'none'; script-src %[1]s %[2]s; style-src %[3]s; connect-src 'self' %[1]s",
		n.url, hashes(html, `script type="module"`), hashes(html, "style"))
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, html)
	})
	s.page.Store(&handler)
	e := embedded{page{browsertest.Open(t, s.URL), t, h}, s}
	browsertest.Eval[int](e.Page, `
		window.map = document.querySelector('seat-map');
		window.heard = [];
		for (const name of ['select', 'hold', 'lost', 'mode']) document.body.addEventListener(name, (e) => heard.push([name, e.detail, performance.now()]));
		return 0;`)
	return e
}

// inside is an expression for something in the element's shadow.
func inside(selector string) string { return fmt.Sprintf(`map.shadowRoot.querySelector(%q)`, selector) }

// is waits until the map is live, or whatever else it may be.
func (e embedded) is(mode string) {
	e.t.Helper()
	e.Until("the map is "+mode, inside("#live")+`?.dataset.mode === '`+mode+`'`)
}

// selected waits until these seats are.
func (e embedded) selected(ids ...string) {
	e.t.Helper()
	e.Until(fmt.Sprintf("%q are selected", ids), fmt.Sprintf(`(map.getAttribute('selection') ?? '') === %q`, strings.Join(ids, " ")))
}

// last is what the last event of this name carried, which came.
func last[T any](e embedded, name string) T {
	e.t.Helper()
	of := fmt.Sprintf(`heard.findLast(([n]) => n === %q)`, name)
	e.Until(name+" is told", of)
	return browsertest.Eval[T](e.Page, `return `+of+`[1];`)
}

// taps goes to a seat on the map and clicks it.
func (e embedded) taps(id string) {
	e.t.Helper()
	at := browsertest.Eval[[]float64](e.Page, fmt.Sprintf(`
		const canvas = map.shadowRoot.getElementById('map');
		map.reveal(%q);
		while (canvas.hasAttribute('data-moving')) await new Promise(requestAnimationFrame);
		const box = canvas.getBoundingClientRect();
		return [box.left + box.width / 2, box.top + box.height / 2];`, id))
	e.Click(at[0], at[1])
}

func TestAPageOfAnotherSiteShowsAMapAndHoldsSeats(t *testing.T) {
	t.Parallel()
	h, s := newHouse(t, plan{}), newSite(t)
	n := h.node(s.allowed())
	seats := h.seats(3)
	e := h.embeds(t, s, n, "")
	e.is("live")
	if got := last[struct{ Mode string }](e, "mode"); got.Mode != "live" {
		t.Errorf("the page is told that the map is %s", got.Mode)
	}
	e.Until("prices and what is left are told", inside("#legend")+`.innerText.includes('left')`)
	if colours := e.drawn(460, 400, 300); colours < 20 {
		t.Errorf("the map is drawn in %d colours", colours)
	}
	e.taps(seats[0])
	e.selected(seats[0])
	e.taps(seats[1])
	e.selected(seats[0], seats[1])
	browsertest.Eval[int](e.Page, `map.fit(); return 0;`)
	for how, look := range looks {
		e.See(look)
		e.apart("the element " + how)
		e.clear("the element " + how)
	}
	e.See(browsertest.Desk)
	e.Shot("embed", browsertest.Desk, browsertest.Dark, browsertest.Phone)
	if got := last[struct {
		TicketIDs []string
		Total     int64
		Currency  string
	}](e, "select"); len(got.TicketIDs) != 2 || got.Total != 2000 || got.Currency != "EUR" {
		t.Errorf("the page is told %+v", got)
	}

	h.shopper(n, "faster").hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")
	answered := time.Now()
	lost := last[struct {
		TicketIDs []string
		Reason    string
	}](e, "lost")
	t.Logf("a seat that somebody else got was told %v after the answer", time.Since(answered).Round(time.Millisecond))
	if took := time.Since(answered); took > 5*time.Second {
		t.Errorf("a lost seat is told %v after somebody got it", took)
	}
	if len(lost.TicketIDs) != 1 || lost.TicketIDs[0] != seats[1] || lost.Reason != "seats_taken" {
		t.Errorf("the page is told %+v", lost)
	}
	e.selected(seats[0])

	e.press(`document.getElementById('hold')`)
	e.Until("who is not signed in is told", `document.getElementById('order').innerText === 'Sign in first.'`)
	ann := h.shopper(n, "ann")
	s.session.Store(&ann.token)
	e.press(`document.getElementById('hold')`)
	e.Until("the page says until when they are held", `document.getElementById('order').innerText.startsWith('Held until')`)
	booking := last[answer](e, "hold").BookingID
	if got := ann.do(http.MethodGet, "/v1/bookings/"+booking, "", nil).want(t, http.StatusOK, ""); got.State != "held" || len(got.Seats) != 1 {
		t.Errorf("her booking is %s, of %v", got.State, got.Seats)
	}
	browsertest.Eval[int](e.Page, `
		const until = map.booking.expiresAt;
		const { expiresAt } = await map.extend();
		if (!(Date.parse(expiresAt) >= Date.parse(until))) throw new Error('it ends earlier');
		return 0;`)
	e.press(`document.getElementById('back')`)
	e.selected()
	e.Until("nothing is held", `map.booking === null`)
	if got := ann.do(http.MethodGet, "/v1/bookings/"+booking, "", nil); got.State != "released" {
		t.Errorf("what she gave back is %s", got.State)
	}
	if state := browsertest.Eval[string](e.Page, `return (await map.best(2)).state;`); state != "held" {
		t.Errorf("the best two are %s", state)
	}
	if told := browsertest.Eval[int](e.Page, `return heard.filter(([n]) => n === 'lost').length;`); told != 1 {
		t.Errorf("%d losses are told; one was", told)
	}
	e.clean()

	browsertest.Eval[int](e.Page, `map.remove(); return 0;`)
	eventually(t, 10*time.Second, "its stream has ended", func() bool { return n.metric(t, "hub_sessions") == 0 })
	browsertest.Eval[int](e.Page, `document.querySelector('h1').after(map); return 0;`)
	e.is("live")
	e.Until("what was held is found again", `map.booking?.seats.length === 2`)
}

func TestAHoldThatIsGivenBackElsewhereIsToldToThePage(t *testing.T) {
	t.Parallel()
	h, s := newHouse(t, plan{}), newSite(t)
	n := h.node(s.allowed())
	ann := h.shopper(n, "ann")
	s.session.Store(&ann.token)
	e := h.embeds(t, s, n, fmt.Sprintf(`selection="%s nowhere"`, h.seats(1)[0]))
	e.is("live")
	e.selected(h.seats(1)...)
	booking := browsertest.Eval[answer](e.Page, `return map.hold();`).BookingID
	ann.do(http.MethodDelete, "/v1/bookings/"+booking, "", nil).want(t, http.StatusNoContent, "") // in another tab
	e.Until("it is told", fmt.Sprintf(`heard.some(([name, what]) => name === 'lost' && what.reason === 'released' && what.ticketIds.join() === %q)`, h.seats(1)[0]))
	if code := browsertest.Eval[string](e.Page, `return map.extend().then(() => 'extended', (p) => p.code);`); code != "no_booking" {
		t.Errorf("to extend it is answered %s", code)
	}
	e.selected()
}

func TestAGuardedMapIsShownInAPageOfAnotherSiteToWhoThePageSaysIsThere(t *testing.T) {
	t.Parallel()
	h, s := newHouse(t, plan{guard: true}), newSite(t)
	n := h.node(s.allowed())
	e := h.embeds(t, s, n, "")
	e.is("guarded")
	ann := h.shopper(n, "ann")
	s.session.Store(&ann.token)
	e.is("live") // by itself
	h.shopper(n, "bob").hold(h.event, "", h.seats(1)...).want(t, http.StatusCreated, "")
	e.Until("what others do is seen", inside("#legend")+`.innerText.includes('19 left')`)
	e.clean()
}

func TestAMapForThoseInsideIsShownInAPageOfAnotherSiteWithAPass(t *testing.T) {
	t.Parallel()
	h, s := newHouse(t, plan{}), newSite(t)
	n := h.node(s.allowed())
	w := h.guards(map[string]any{}, n)
	ann := h.shopper(n, "ann")
	s.session.Store(&ann.token)
	e := h.embeds(t, s, n, "")
	e.is("outside")
	browsertest.Eval[int](e.Page, fmt.Sprintf(`map.pass = %q; return 0;`, w.enters(ann)))
	e.is("live")
	browsertest.Eval[int](e.Page, fmt.Sprintf(`map.selection = [%q]; return 0;`, h.seats(1)[0]))
	if state := browsertest.Eval[string](e.Page, `return (await map.hold()).state;`); state != "held" {
		t.Errorf("what she holds is %s", state)
	}
	e.clean("403")
}

func TestAPageThatMayNotShowTheMapSaysSo(t *testing.T) {
	t.Parallel()
	h, s := newHouse(t, plan{}), newSite(t)
	e := h.embeds(t, s, h.node("SEATCAST_ORIGINS=somebody.example"), "")
	e.Until("it says so", inside(".says")+`?.innerText.includes('does not show its seats on this page')`)
	if code := browsertest.Eval[string](e.Page, `return map.hold().catch((p) => p.code);`); code != "origin_not_allowed" {
		t.Errorf("a hold is refused with %s", code)
	}
}

func TestElementsFollowTheirAttributesAndAreEachTheirOwn(t *testing.T) {
	t.Parallel()
	h, s := newHouse(t, plan{mode: catalog.Ordinary}), newSite(t)
	n := h.node(s.allowed())
	seats := h.seats(4)
	e := h.embeds(t, s, n, fmt.Sprintf(`selection="%s" theme="dark" view="list"`, strings.Join(seats, " ")))
	e.is("polling")
	e.selected(seats...)
	e.Until("it shows the list", inside("#list")+`.innerText.includes('Standing')`)
	dark := `getComputedStyle(` + inside("#list") + `).backgroundColor`
	was := browsertest.Eval[string](e.Page, `return `+dark)
	browsertest.Eval[int](e.Page, `map.setAttribute('theme', 'light'); map.setAttribute('max', '2'); return 0;`)
	if is := browsertest.Eval[string](e.Page, `return `+dark); is == was {
		t.Errorf("dark and light are both %s", is)
	}
	e.selected(seats[:2]...)
	browsertest.Eval[int](e.Page, inside("#list .stepper button:last-child")+`.click(); return 0;`)
	if got := last[struct{ Areas []any }](e, "select"); len(got.Areas) != 0 {
		t.Errorf("beside two seats of two there are %v", got.Areas)
	}
	browsertest.Eval[int](e.Page, `map.removeAttribute('max'); return 0;`)
	e.Until("there is room", `!`+inside("#list .stepper button:last-child")+`.disabled`)
	browsertest.Eval[int](e.Page, inside("#list .stepper button:last-child")+`.click(); return 0;`)
	e.Until("a place is chosen too", `heard.at(-1)[1].areas?.[0]?.quantity === 1 && heard.at(-1)[1].total === 5000`)

	browsertest.Eval[int](e.Page, `
		window.second = document.createElement('seat-map');
		second.setAttribute('event', map.getAttribute('event'));
		second.toggleAttribute('readonly', true);
		second.selection = [`+fmt.Sprintf("%q", seats[3])+`];
		document.body.append(second);
		return 0;`)
	e.Until("a second one is there", `second.shadowRoot.querySelector('#live')?.dataset.mode === 'polling' && second.getAttribute('selection') === `+fmt.Sprintf("%q", seats[3]))
	e.selected(seats[:2]...)
	browsertest.Eval[int](e.Page, `
		second.setAttribute('view', 'list');
		const list = second.shadowRoot.querySelector('#list');
		list.querySelector('summary').click();
		await new Promise((f) => setTimeout(f, 100)); // toggle is told a moment later
		list.querySelector('details details summary').click();
		return 0;`)
	e.Until("its seats are listed", `second.shadowRoot.querySelectorAll('.seats button').length === 10`)
	browsertest.Eval[int](e.Page, `second.shadowRoot.querySelector('.seats button').click(); return 0;`)
	if got := browsertest.Eval[string](e.Page, `return second.getAttribute('selection')`); got != seats[3] {
		t.Errorf("in a map to be looked at only %s is chosen", got)
	}

	browsertest.Eval[int](e.Page, `map.setAttribute('event', 'nowhere'); return 0;`)
	e.Until("of an event that there is not it says so", inside(".says")+`?.innerText.includes('There is no such event')`)
	e.Until("and nothing is chosen", `!`+inside("#map"))
	e.clean("404")
}
