package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/internal/browsertest"
	"seatcast/seatmap"
)

const (
	insteadButton = `document.querySelector('[data-key=instead]')`
	extendButton  = `document.querySelector('[data-key=extend]')`
	ticketShown   = `document.querySelectorAll('.ticket.valid canvas.qr').length`
	clockShown    = `document.querySelector('.panel .clock').innerText`
)

// middle is where something is in the window, once it can be pressed.
func (p page) middle(element string) (x, y float64) {
	p.t.Helper()
	p.Until(element+" can be pressed", element+` && !`+element+`.disabled`)
	at := browsertest.Eval[[]float64](p.Page, `
		const el = `+element+`;
		el.scrollIntoView({ block: 'nearest' });
		const box = el.getBoundingClientRect();
		return [box.left + box.width / 2, box.top + box.height / 2];`)
	return at[0], at[1]
}

// clicks presses something with the mouse.
func (p page) clicks(element string) {
	p.t.Helper()
	p.Click(p.middle(element))
}

// touches presses something with a finger.
func (p page) touches(element string) {
	p.t.Helper()
	p.Tap(p.middle(element))
}

// finds chooses a seat at or near to this one with a finger: the map comes nearer until
// seats are large enough to be meant.
func (p page) finds(seat int) {
	p.t.Helper()
	x, y := p.place(seat)
	for n := range 6 {
		p.Tap(x, y)
		at := browsertest.Eval[[]float64](p.Page, `
			const begun = performance.now();
			while (await new Promise(requestAnimationFrame) < begun + 400); // it glides for less
			const box = document.getElementById('map').getBoundingClientRect();
			return [box.left + box.width / 2, box.top + box.height / 2];`)
		if browsertest.Eval[bool](p.Page, `return Boolean(`+holdButton+`)`) {
			break
		}
		x, y = at[0]+28, at[1]+float64(n*10) // beside the aisle; between two rows there is no seat
	}
	p.chosen(1)
}

// pays pays with a card of the sandbox.
func (p page) pays(card string) {
	p.t.Helper()
	p.Until("it can be paid", payButton+` && !`+payButton+`.disabled && document.querySelector('[data-key=card]')`)
	browsertest.Eval[int](p.Page, fmt.Sprintf(`const card = document.querySelector('[data-key=card]'); card.value = %q; card.dispatchEvent(new Event('change')); return 0;`, card))
	p.press(payButton)
}

// chosen waits until so many seats can be held.
func (p page) chosen(n int) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%d are chosen", n), fmt.Sprintf(holdButton+`?.innerText === 'Hold %d'`, n))
}

func TestTheMouseLeadsFromTheFrontPageToATicket(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	p := page{browsertest.Open(t, n.url), t, h}
	p.clicks(fmt.Sprintf(`document.querySelector('a[href="/events/%s"]')`, h.event))
	p.Until("the map is live", `document.getElementById('live')?.dataset.mode === 'live'`)
	p.tap(3)
	p.tap(4)
	p.chosen(2)
	p.clicks(holdButton)
	p.stage("held")
	p.Until("it says what the card does", `document.getElementById('card-does').innerText.startsWith('4242 4242 4242 4242')`)
	p.clicks(payButton)
	p.stage("sold")
	p.Until("two tickets have their codes", ticketShown+` === 2`)
	p.clean()
	h.balanced(t.Context())
}

func TestAFingerOnAPhoneLeadsToATicket(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	p := page{browsertest.OpenPhone(t, n.url), t, h}
	p.touches(fmt.Sprintf(`document.querySelector('a[href="/events/%s"]')`, h.event))
	p.Until("the map is live", `document.getElementById('live')?.dataset.mode === 'live'`)
	p.finds(3)
	p.touches(holdButton)
	p.stage("held")
	wide := `document.querySelector('.side').getBoundingClientRect().width === innerWidth && document.documentElement.scrollWidth <= innerWidth`
	p.Until("the order has the window", `document.body.dataset.view === 'order' && `+wide)
	p.touches(`document.querySelector('.to-map')`)
	p.Until("the map is seen, and the time that is left", `document.body.dataset.view === 'map' && /^\d:\d\d$/.test(document.querySelector('.to-order .clock').innerText)`)
	p.touches(`document.querySelector('.to-order')`)
	p.touches(payButton)
	p.stage("sold")
	p.Until("the ticket has its code", ticketShown+` === 1`)
	if !browsertest.Eval[bool](p.Page, `return `+wide) {
		t.Error("the ticket is wider than the phone")
	}
	p.clean()
	h.balanced(t.Context())
}

func TestAReloadAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	h, _, p := atMap(t)
	p.tap(3)
	p.tap(4)
	p.chosen(2)
	p.press(`document.getElementById('zoom-in')`)
	p.Rests()
	p.Reload()
	p.chosen(2)
	p.Rests()
	if !browsertest.Eval[bool](p.Page, `return !document.getElementById('overview').hidden`) {
		t.Error("after a reload the map shows another part of the house")
	}
	p.press(`document.getElementById('zoom-fit')`)
	p.press(holdButton)
	p.stage("held")
	p.Reload()
	p.stage("held")
	p.Until("the clock goes on", `/^[78]:/.test(`+clockShown+`)`)
	if says := p.notes(); says != "" {
		t.Errorf("after a reload it is told as news: %s", says)
	}
	p.Shot("held", browsertest.Desk, browsertest.Phone)
	p.pays(declinedCard)
	p.Until("it says why, and that it can be tried again", `document.querySelector('.hint.bad')?.innerText.includes('still held')`)
	p.Shot("declined", browsertest.Desk)
	p.Reload()
	p.stage("held")
	p.pays(slowCard)
	p.stage("paying")
	p.Reload()
	p.Until("the payment goes on", `['paying', 'sold'].includes(document.getElementById('panel').dataset.stage)`)
	p.stage("sold")
	p.Until("both tickets are valid", ticketShown+` === 2`)
	p.Reload()
	p.Until("both tickets are still there", ticketShown+` === 2`)
	p.Shot("ticket", browsertest.Desk, browsertest.Phone)
	if made := h.count(t.Context(), `SELECT count(*) FROM attempts`); made != 2 {
		t.Errorf("%d attempts were made, of two cards", made)
	}
	p.clean()
	h.balanced(t.Context())
}

// The answer to a hold is lost with the page that asked for it.
func TestAHoldIsFoundThatWasNotAnsweredBeforeAReload(t *testing.T) {
	t.Parallel()
	h, _, p := atMap(t)
	p.tap(3)
	p.chosen(1)
	browsertest.Eval[int](p.Page, `
		const send = window.fetch;
		window.fetch = async (url, init) => {
			const answer = await send(url, init);
			if (init?.method !== 'POST' || !String(url).includes('/v1/bookings/')) return answer;
			window.answered = true;
			return new Promise(() => {});
		};
		return 0;`)
	p.press(holdButton)
	p.Until("the server has answered", `window.answered`)
	p.Reload()
	p.stage("held")
	if held := h.truth(t.Context(), h.rdb).At(3); held != seatmap.Held {
		t.Errorf("the seat is %v", held)
	}
}

func TestBackLeadsToTheMapWithTheOrderAsItWas(t *testing.T) {
	t.Parallel()
	h, _, p := atMap(t)
	entries := browsertest.Eval[int](p.Page, `return history.length`)
	at := func(view string) {
		t.Helper()
		p.Until("the view is of the "+view, fmt.Sprintf(`document.body.dataset.view === %q && location.pathname === '/events/%s'`, view, h.event))
	}
	p.tap(3)
	p.chosen(1)
	p.press(holdButton)
	p.stage("held")
	at("order")
	p.Back()
	at("map")
	p.told("as it was")
	p.stage("held")
	browsertest.Eval[int](p.Page, `history.forward(); return 0;`)
	at("order")
	p.pays(goodCard)
	p.stage("sold")
	p.Back()
	at("map")
	p.stage("sold")
	p.Reload()
	at("map")
	p.Until("the ticket is there", ticketShown+` === 1`)
	if more := browsertest.Eval[int](p.Page, `return history.length`) - entries; more != 1 {
		t.Errorf("the order made %d entries in the history", more)
	}
	if made := h.count(t.Context(), `SELECT count(*) FROM attempts`); made != 1 {
		t.Errorf("%d attempts were made", made)
	}
	p.clean()
}

func TestTabsOfAnAccountAgree(t *testing.T) {
	t.Parallel()
	h, n, ann := atMap(t)
	ann.tap(3)
	ann.press(holdButton)
	ann.stage("held")
	other := h.visit(t, n, "live") // asks what there is
	other.stage("held")
	was := browsertest.Eval[string](other.Page, `return `+clockShown)
	ann.Until("some time has passed", clockShown+` < '7:56'`)
	ann.press(extendButton)
	other.Until("there is more time in the other", fmt.Sprintf(clockShown+` > %q`, was))
	other.press(`document.querySelector('[data-key=back]')`)
	ann.stage("picking")
	ann.chosen(1)
	other.press(holdButton)
	ann.stage("held")
	ann.pays(slowCard)
	other.Until("that it is being paid is said in the other", `document.getElementById('panel').innerText.includes('another tab') || document.getElementById('panel').dataset.stage === 'sold'`)
	other.stage("sold")
	ann.stage("sold")
	for _, p := range []page{ann, other} {
		p.Until("the ticket is valid", ticketShown+` === 1`)
		p.clean()
	}
	bob := h.elsewhere(t, n, "live")
	bob.stage("picking")
	h.balanced(t.Context())
}

func TestATabThatIsClosedAndOpenedAgainHasItsOrder(t *testing.T) {
	t.Parallel()
	h, n, p := atMap(t)
	p.tap(3)
	p.press(holdButton)
	p.stage("held")
	p.Close()
	tickets := h.at(t, n, "/tickets")
	tickets.Until("the order is listed", `document.querySelectorAll('.order').length === 1`)
	tickets.Close()
	p = h.visit(t, n, "live")
	p.stage("held")
	p.press(`document.querySelector('[data-key=back]')`)
	p.chosen(1)
	p.Close()
	p = h.visit(t, n, "live")
	p.stage("picking")
	p.clean()

	// Of one that ended while no tab was open nothing is asked any more.
	p.tap(3)
	p.press(holdButton)
	p.stage("held")
	kept := browsertest.Eval[[]string](p.Page, fmt.Sprintf(`return [localStorage.getItem('seatcast.token'), localStorage.getItem('seatcast.booking.%s')];`, h.event))
	p.Close()
	shopper{t, n.url, kept[0]}.giveBack(kept[1]).want(t, http.StatusNoContent, "")
	p = h.visit(t, n, "live")
	p.Until("it is forgotten", fmt.Sprintf(`localStorage.getItem('seatcast.booking.%s') === null`, h.event))
	p.stage("picking")
	if said := browsertest.Eval[string](p.Page, `return (`+holdButton+`?.innerText ?? '') + document.getElementById('notes').innerText`); said != "" {
		t.Errorf("of an order that was over before this tab was opened it says %q", said)
	}
	p.clean()
}

func TestTheOrderOfATabThatIsClosedIsFoundByOneWhoseOwnIsOver(t *testing.T) {
	t.Parallel()
	h, n, p := atMap(t)
	key := "seatcast.booking." + h.event
	ends := func() (over string) {
		p.stage("held")
		kept := browsertest.Eval[[]string](p.Page, fmt.Sprintf(`return [localStorage.getItem('seatcast.token'), sessionStorage.getItem(%q)];`, key))
		shopper{t, n.url, kept[0]}.giveBack(kept[1]).want(t, http.StatusNoContent, "")
		p.stage("picking")
		return kept[1]
	}
	p.tap(3)
	p.press(holdButton)
	over := ends()
	p.press(holdButton)
	p.stage("held")
	open := browsertest.Eval[string](p.Page, fmt.Sprintf(`return localStorage.getItem(%q)`, key))
	p.Close()

	p = h.visit(t, n, "live")
	p.stage("held")
	browsertest.Eval[int](p.Page, fmt.Sprintf(`sessionStorage.setItem(%q, %q); location.reload(); return 0;`, key, over))
	p.Until("it is the other one's", fmt.Sprintf(`sessionStorage.getItem(%q) === %q && document.getElementById('panel').dataset.stage === 'held'`, key, open))

	// Whoever else is signed in for a while takes it from nobody.
	browsertest.Eval[int](p.Page, `
		window.name = localStorage.getItem('seatcast.token');
		const { token } = await (await fetch('/v1/demo/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"user":"bob"}' })).json();
		localStorage.setItem('seatcast.token', token);
		location.reload();
		return 0;`)
	p.Until("bob has none", fmt.Sprintf(`sessionStorage.getItem(%q) === null && document.getElementById('panel').dataset.stage === 'picking'`, key))
	browsertest.Eval[int](p.Page, `localStorage.setItem('seatcast.token', window.name); location.reload(); return 0;`)
	p.Until("hers is there again", fmt.Sprintf(`sessionStorage.getItem(%q) === %q && document.getElementById('panel').dataset.stage === 'held'`, key, open))
	p.clean("403")
}

func TestAGuestThatTheServerRefusesIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	_, _, p := atMap(t)
	browsertest.Eval[int](p.Page, `localStorage.setItem('seatcast.user', 'x'.repeat(5000)); localStorage.removeItem('seatcast.token'); return 0;`)
	p.Reload()
	p.is("live")
	p.tap(3)
	p.press(holdButton)
	p.told("cannot reach the box office")
	p.press(holdButton)
	p.stage("held")
	p.clean("400")
}

func TestAnOrderThatEndsElsewhereIsNoticed(t *testing.T) {
	t.Parallel()
	h, n, p := atMap(t)
	p.tap(3)
	p.press(holdButton)
	p.stage("held")
	kept := browsertest.Eval[[]string](p.Page, fmt.Sprintf(`return [localStorage.getItem('seatcast.token'), sessionStorage.getItem('seatcast.booking.%s')];`, h.event))
	shopper{t, n.url, kept[0]}.giveBack(kept[1]).want(t, http.StatusNoContent, "") // on another device
	p.stage("picking")
	p.chosen(1)
}

func TestALostSeatIsNamedAndTheNextBestIsOneKeyAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	n := h.fated("demo")
	p := h.visit(t, n, "polling")
	p.tap(0)
	p.tap(1)
	p.chosen(2)
	h.shopper(n, "faster").hold(h.event, "", h.seats(1)...).want(t, http.StatusCreated, "")
	browsertest.Eval[int](p.Page, holdButton+`.focus(); return 0;`)
	p.Keys("\r")
	p.Until("it says what is gone", `document.querySelector('.instead')?.innerText.includes('Gone: Room, row A, seat 1.')`)
	p.Until("and offers others", insteadButton+`?.innerText === 'Hold these 2 instead' && document.activeElement === `+insteadButton)
	if offered := browsertest.Eval[string](p.Page, `return document.querySelector('.instead strong').innerText`); offered != "Room, row A, seats 2, 3" {
		t.Errorf("it offers %s", offered)
	}
	p.Shot("lost", browsertest.Desk, browsertest.Phone)
	p.Keys("\r")
	p.stage("held")
	if m := h.truth(t.Context(), h.rdb); m.At(1) != seatmap.Held || m.At(2) != seatmap.Held {
		t.Errorf("the seats are %v and %v", m.At(1), m.At(2))
	}

	h.loseHold(1)
	h.shopper(n, "faster").hold(h.event, "", h.seats(2)[1]).want(t, http.StatusCreated, "")
	p.pays(goodCard)
	p.Until("what was lost while paying is named too", `document.querySelector('.instead')?.innerText.includes('Gone: Room, row A, seat 2.')`)
	p.told("not been charged")
	p.press(insteadButton)
	p.stage("held")
	p.pays(goodCard)
	p.stage("sold")
	p.Until("two tickets are valid", ticketShown+` === 2`)
	p.clean("409")
}

func TestAPaymentThatIsCancelledGivesTheSeatsBack(t *testing.T) {
	t.Parallel()
	h, _, p := atMap(t)
	p.tap(3)
	p.press(holdButton)
	p.stage("held")
	p.pays(lateCard)
	p.stage("paying")
	p.press(`document.querySelector('[data-key=cancel]')`)
	p.told("The payment is cancelled")
	p.chosen(1)
	if is := h.truth(t.Context(), h.rdb).At(3); is != seatmap.Available {
		t.Errorf("the seat is %v", is)
	}
	p.clean("409") // it may have asked for the verdict as the order ended
}

func TestTheEndIsToldBeforeAndOneKeyGivesMoreTime(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{terms: seatmap.Terms{Hold: 90 * time.Second}})
	n := h.fated("demo")
	p := h.visit(t, n, "live")
	p.tap(3)
	p.press(holdButton)
	p.stage("held")
	p.Until("it warns", `document.querySelector('.soon:not([hidden])')?.innerText.includes('nearly up') && document.activeElement === `+extendButton)
	p.Shot("soon", browsertest.Desk)
	p.Until("some time has passed", clockShown+` <= '1:26'`)
	p.Keys("\r")
	p.told("You have more time")
	p.Until("there is more", clockShown+` > '1:26'`)
}
