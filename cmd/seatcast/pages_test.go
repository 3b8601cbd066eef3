package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"seatcast/catalog"
	"seatcast/internal/browsertest"
	"seatcast/seatmap"
)

// at opens any page.
func (h *house) at(t *testing.T, n *node, path string) page {
	t.Helper()
	return page{browsertest.Open(t, n.url+path), t, h}
}

// goes leads the tab to another page.
func (p page) goes(path string) {
	p.t.Helper()
	browsertest.Eval[int](p.Page, fmt.Sprintf(`setTimeout(() => location.assign(%q)); return 0;`, path))
	p.Until("it is at "+path, fmt.Sprintf(`location.pathname === %q && document.readyState === 'complete'`, path))
}

// types sets a field as somebody who types does.
func (p page) types(id, text string) {
	p.t.Helper()
	browsertest.Eval[int](p.Page, fmt.Sprintf(`
		const f = document.getElementById(%q);
		f.value = %q;
		f.dispatchEvent(new Event('input', { bubbles: true }));
		return 0;`, id, text))
}

func TestASearchFindsEventsByTheirNamesAndVenues(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	ctx := t.Context()
	name := func(id, name, venue, state string) {
		if _, err := h.pool.Exec(ctx, `UPDATE events SET name = $2, venue = $3, state = $4 WHERE id = $1`, id, name, venue, state); err != nil {
			t.Fatal(err)
		}
	}
	club := plan{chart: h.chart, mode: catalog.Hot}
	tosca, rite, talk := h.create(club), h.create(club), h.create(club)
	name(h.event, "Late Session", "The Cellar", "open")
	name(tosca, "Tosca", "Opéra Bastille", "open")
	name(rite, "The Rite of Spring", "Opéra Garnier", "closed")
	name(talk, "An Evening of Poems", "The Cellar", "cancelled")
	n := h.node()
	h.waits(nil, n)
	p := h.at(t, n, "/")
	listed := func(want int) {
		t.Helper()
		p.Until(fmt.Sprintf("%d events are listed", want), fmt.Sprintf(`document.querySelectorAll('.event').length === %d && document.getElementById('events').getAttribute('aria-busy') === 'false'`, want))
	}
	listed(4)
	p.Until("each says how it is sold", `['open on', 'open on', 'closed', 'cancelled'].every((kind, n) => document.querySelectorAll('.event .badge')[n].className === 'badge ' + kind)`)
	if to := browsertest.Eval[string](p.Page, `return [...document.querySelectorAll('.event a')].find((a) => a.textContent.includes('Late Session')).getAttribute('href')`); to != "/queue/"+h.event {
		t.Errorf("where people are let in one by one it leads to %s", to)
	}
	p.Shot("home", browsertest.Desk, browsertest.Dark, browsertest.Phone)
	p.Keys("/")
	p.Until("a stroke leads to the search", `document.activeElement.id === 'words'`)
	p.types("words", "")
	p.Keys("opéra")
	listed(2)
	p.Until("the address keeps it", `new URLSearchParams(location.search).get('q') === 'opéra'`)
	p.Reload()
	listed(2)
	p.types("words", "tosc")
	listed(1)
	p.types("words", "no such thing")
	listed(0)
	p.Until("it says that there is none", `document.getElementById('found').innerText.includes('no such thing')`)
	p.Shot("home-none", browsertest.Phone)
	p.types("words", "")
	listed(4)
	browsertest.Eval[int](p.Page, `document.getElementById('words').focus(); return 0;`)
	p.Keys(kb.ArrowDown)
	p.Keys(kb.ArrowDown)
	p.Until("arrows lead through the list", `document.activeElement === document.querySelectorAll('.event a')[1]`)
	p.clean()
}

// stub waits until the page of tickets shows so many that are like the selector.
func (p page) stubs(n int, of string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%d tickets are %s", n, of), fmt.Sprintf(`document.querySelectorAll('.stub%s').length === %d`, of, n))
}

func TestMyTicketsAreThoseOfMyAccountWhateverBecameOfThem(t *testing.T) {
	t.Parallel()
	h, n, ann := atMap(t)
	ann.goes("/tickets")
	ann.Until("there is none yet", `document.getElementById('says').innerText !== ''`)
	ann.goes("/events/" + h.event)
	ann.Until("the map is live", `document.getElementById('live').dataset.mode === 'live' && document.querySelector('#legend small')?.innerText`)
	ann.tap(0)
	ann.tap(1)
	ann.press(holdButton)
	ann.stage("held")

	// What is only held is known to this tab, and leads back to where it is paid.
	ann.goes("/tickets")
	ann.Until("the hold is listed, with its time", `document.querySelector('.order.held .clock')?.innerText.match(/^[0-9]+:[0-9]{2}$/)`)
	ann.Shot("tickets-held", browsertest.Desk, browsertest.Phone)
	browsertest.Eval[int](ann.Page, `setTimeout(() => document.querySelector('.order.held .go').click()); return 0;`)
	ann.Until("it is to be paid", `document.getElementById('panel')?.dataset.stage === 'held'`)
	ann.press(payButton)
	ann.stage("sold")
	ann.goes("/tickets")
	ann.stubs(2, ".valid")
	ann.Until("each has its code", `document.querySelectorAll('.stub canvas.qr').length === 2 && [...document.querySelectorAll('.stub canvas.qr')].every((c) => c.width > 20)`)
	booking := browsertest.Eval[string](ann.Page, `return document.querySelector('.order.sold').dataset.booking`)
	ann.Reload()
	ann.stubs(2, ".valid")
	said := browsertest.Eval[string](ann.Page, `return document.querySelector('.order').innerText`)
	if !strings.Contains(said, "A night out") || !strings.Contains(said, "Room") {
		t.Errorf("the order says %q", said)
	}
	if orders := browsertest.Eval[int](ann.Page, `return document.querySelectorAll('.order').length`); orders != 1 {
		t.Errorf("the one order is listed %d times", orders)
	}
	ann.See(browsertest.Phone)
	if wide := browsertest.Eval[int](ann.Page, `return document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("on a telephone it is %d wide", wide)
	}
	ann.See(browsertest.Print)
	if shown := browsertest.Eval[[]string](ann.Page, `return ['.top', '.actions', '.order header', '.stub'].filter((s) => document.querySelector(s).getClientRects().length > 0)`); fmt.Sprint(shown) != "[.stub]" {
		t.Errorf("printed are %v", shown)
	}
	ann.See(browsertest.Desk)

	// Somebody else's browser shows nothing of it, whatever it has kept.
	eve := page{browsertest.Elsewhere(t, n.url+"/tickets"), t, h}
	eve.Until("there is none yet", `document.getElementById('says').innerText !== ''`)
	browsertest.Eval[int](eve.Page, fmt.Sprintf(`sessionStorage.setItem('seatcast.booking.%s', %q); return 0;`, h.event, booking))
	eve.Reload()
	eve.Until("there is none still", `document.getElementById('says').innerText !== ''`)
	if orders := browsertest.Eval[int](eve.Page, `return document.querySelectorAll('.order').length`); orders != 0 {
		t.Errorf("somebody else sees %d orders", orders)
	}
	eve.clean("403")

	first := browsertest.Eval[string](ann.Page, `return document.querySelector('.stub footer code').innerText`)
	o := h.operator(n, "olga")
	o.do(http.MethodPost, "/v1/admin/bookings/"+booking+"/refund", "", map[string]any{"tickets": []string{first}, "seats": "on_sale", "reason": "ill"}).want(t, http.StatusAccepted, "")
	ann.Reload()
	ann.stubs(1, ":is(.refunding, .refunded)")
	ann.stubs(1, ".valid")
	ann.stubs(1, ".refunded") // without another look by hand
	ann.Until("only the good one has a code", `document.querySelectorAll('.stub canvas.qr').length === 1`)
	ann.Shot("tickets", browsertest.Desk, browsertest.Dark, browsertest.Phone, browsertest.Print)
	ann.clean()
}

func TestTheConsoleShowsASaleAndPausesItsWaitingRoom(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	n := h.fated("demo")
	w := h.waits(map[string]any{"rate": 600}, n)
	ann, seats := h.shopper(n, "ann"), h.seats(3)
	pass := w.enters(ann)
	sold := w.takes(ann, pass, seats[0], seats[1]).want(t, http.StatusCreated, "")
	bob := h.shopper(n, "bob")
	w.takes(bob, w.enters(bob), seats[2]).want(t, http.StatusCreated, "")
	ann.pay(sold.BookingID, "", goodCard).want(t, http.StatusCreated, "")

	p := h.at(t, n, "/console")
	enter := func(token string) {
		t.Helper()
		p.Until("a token is asked for", `!document.getElementById('enter').hidden`)
		browsertest.Eval[int](p.Page, fmt.Sprintf(`
			document.getElementById('token').value = %q;
			document.querySelector('#enter button').click();
			return 0;`, token))
	}
	refused := func(code string) {
		t.Helper()
		p.Until("it says "+code, fmt.Sprintf(`document.getElementById('refused').innerText.includes(%q) && document.getElementById('desk').hidden && sessionStorage.getItem('seatcast.operator') === null`, code))
	}
	p.Shot("console-enter", browsertest.Desk)
	enter("nonsense")
	refused("token_invalid")
	enter(ann.token)
	refused("not_operator")
	enter(w.operator.token)
	p.Until("the event is there", fmt.Sprintf(`document.querySelector('[data-event=%q]')`, h.event))
	card := fmt.Sprintf(`document.querySelector('[data-event=%q]')`, h.event)
	browsertest.Eval[int](p.Page, card+`.open = true; return 0;`)
	p.Until("it shows what is sold and held", card+`.querySelector('.figure.sold dd')?.innerText === '2' && `+card+`.querySelector('.figure.held dd').innerText === '1'`)
	p.Until("and what it came to", card+`.querySelector('.figures').innerText.includes('€')`)
	p.Until("and who is inside", card+`.querySelector('.room').innerText.includes('Inside')`)
	p.Shot("console", browsertest.Desk, browsertest.Dark, browsertest.Phone)

	does := func(what string) {
		t.Helper()
		button := card + `.querySelector('[data-do=` + what + `]')`
		p.Until(what+" can be done", button)
		browsertest.Eval[int](p.Page, button+`.click(); return 0;`)
		p.Until("it is asked about", `document.getElementById('sure').open`)
	}
	state := func(is string) {
		t.Helper()
		eventually(t, 10*time.Second, "the room is "+is, func() bool {
			return shopper{t, n.url, ""}.do(http.MethodGet, "/v1/queue/"+h.event, "", nil).State == is
		})
	}
	does("pause")
	browsertest.Eval[int](p.Page, `document.getElementById('sure-no').click(); return 0;`)
	state("open")
	does("pause")
	p.Shot("console-sure", browsertest.Desk)
	browsertest.Eval[int](p.Page, `document.getElementById('sure-yes').click(); return 0;`)
	p.Until("the answer is shown", card+`.querySelector('.answer').innerText.includes('Paused')`)
	state("paused")
	p.Until("so is the room", card+`.querySelector('[data-room=paused]')`)
	browsertest.Eval[int](p.Page, card+`.querySelector('input').value = 120; return 0;`)
	does("set-rate")
	browsertest.Eval[int](p.Page, `document.getElementById('sure-yes').click(); return 0;`)
	p.Until("the answer has it", card+`.querySelector('.answer').innerText.includes('120')`)
	does("resume")
	browsertest.Eval[int](p.Page, `document.getElementById('sure-yes').click(); return 0;`)
	state("open")

	p.Reload()
	p.Until("the token is kept in the tab", fmt.Sprintf(`document.querySelector('[data-event=%q]')`, h.event))
	browsertest.Eval[int](p.Page, `document.getElementById('sign-out').click(); return 0;`)
	p.Until("it is forgotten", `!document.getElementById('enter').hidden && document.querySelectorAll('.card').length === 0`)
	if kept := browsertest.Eval[string](p.Page, `return document.cookie + JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage })`); strings.Contains(kept, w.operator.token) {
		t.Errorf("it is kept in %s", kept)
	}
	p.clean("401", "403")
	if m := h.truth(t.Context(), h.rdb); m.At(0) != seatmap.Sold {
		t.Errorf("the first seat is %v", m.At(0))
	}
}
