package main

import (
	"fmt"
	"image/color"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/internal/browsertest"
	"seatcast/seatmap"
)

// page is a shopper's tab at an event.
type page struct {
	*browsertest.Page
	t *testing.T
	h *house
}

// visit opens the event's page and waits until its map is there.
func (h *house) visit(t *testing.T, n *node, mode string) page {
	t.Helper()
	p := page{browsertest.Open(t, n.url+"/events/"+h.event), t, h}
	p.Until("the map is "+mode, fmt.Sprintf(`document.getElementById('live').dataset.mode === %q && document.querySelector('#legend small')?.innerText`, mode))
	return p
}

// atMap is a house with an event on sale, a node of its own that decides as the
// demo does, and a shopper's tab at the event.
func atMap(t *testing.T) (*house, *node, page) {
	t.Helper()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	return h, n, h.visit(t, n, "live")
}

// clean fails for whatever the page complained of: a script that failed, or
// something its content policy refused. Calls the test meant to be refused have
// these statuses.
func (p page) clean(meant ...string) {
	p.t.Helper()
lines:
	for line := range strings.Lines(p.Console()) {
		for _, status := range meant {
			if strings.Contains(line, "Failed to load resource") && strings.Contains(line, status) {
				continue lines
			}
		}
		p.t.Errorf("console: %s", line)
	}
}

// drawn counts the colours of a square of the window.
func (p page) drawn(x, y, side float64) int {
	p.t.Helper()
	picture := p.Picture()
	colours := map[color.Color]bool{}
	for dx := -side / 2; dx < side/2; dx++ {
		for dy := -side / 2; dy < side/2; dy++ {
			colours[picture.At(int(x+dx), int(y+dy))] = true
		}
	}
	return len(colours)
}

// place is where the map shows a seat while it shows everything, in the window.
func (p page) place(seat int) (x, y float64) {
	p.t.Helper()
	at := browsertest.Eval[[]float64](p.Page, browsertest.Modules+fmt.Sprintf(`
		const { Chart } = await use('chart.js');
		const { View } = await use('view.js');
		const event = await (await fetch('/v1/events/%[1]s')).json();
		const chart = new Chart('', await (await fetch('/v1/charts/' + event.chart + '.json')).json());
		const box = document.getElementById('map').getBoundingClientRect();
		const view = Object.assign(new View(), { width: box.width, height: box.height });
		view.bounds(chart);
		view.set(view.whole());
		const at = view.screen(chart.x[%[2]d], chart.y[%[2]d]);
		return [box.left + at.x, box.top + at.y];`, p.h.event, seat))
	return at[0], at[1]
}

// tap clicks a seat on the map.
func (p page) tap(seat int) {
	p.t.Helper()
	p.Click(p.place(seat))
}

const (
	holdButton = `document.querySelector('[data-key=hold]')`
	payButton  = `document.querySelector('[data-key=pay]')`
)

func (p page) press(button string) {
	p.t.Helper()
	p.Until(button+" can be pressed", button+` && !`+button+`.disabled`)
	browsertest.Eval[int](p.Page, button+`.click(); return 0;`)
}

func (p page) stage(is string) {
	p.t.Helper()
	p.Until("the order is "+is, fmt.Sprintf(`document.getElementById('panel').dataset.stage === %q`, is))
}

// told waits until a note on the page says so.
func (p page) told(words string) {
	p.t.Helper()
	p.Until("it says "+words, fmt.Sprintf(`document.getElementById('notes').innerText.includes(%q)`, words))
}

// declined waits until the order says why a payment came to nothing, and a screen reader hears the same.
func (p page) declined(why string) {
	p.t.Helper()
	p.Until("it says that it "+why, fmt.Sprintf(`document.querySelector('.hint.bad')?.innerText.includes(%q)`, why))
	p.Until("a screen reader hears it", `document.getElementById('announcer').innerText === document.querySelector('.hint.bad').innerText`)
}

// notes are those that are shown now.
func (p page) notes() string {
	p.t.Helper()
	return browsertest.Eval[string](p.Page, `return document.getElementById('notes').innerText`)
}

// list opens the row of the club's first seats as buttons.
func (p page) list() {
	p.t.Helper()
	browsertest.Eval[int](p.Page, `
		document.getElementById('show-list').click();
		document.querySelector('#list > details > summary').click();
		return 0;`)
	p.Until("the rows are listed", `document.querySelector('#list details details')`)
	browsertest.Eval[int](p.Page, `document.querySelector('#list details details summary').click(); return 0;`)
	p.Until("the seats are listed", `document.querySelectorAll('.seats button').length === 10`)
}

// lists waits until the list calls the first so many seats that.
func (p page) lists(n int, state string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%d seats are %s", n, state),
		fmt.Sprintf(`[...document.querySelectorAll('.seats button')].filter((b) => b.getAttribute('aria-label').endsWith(', %s')).length === %d`, state, n))
}

func TestAShopperBuysOnTheMapWhileAnotherWatches(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.fated("demo")
	ann, bob := h.visit(t, n, "live"), h.elsewhere(t, n, "live")
	if colours := ann.drawn(460, 430, 400); colours < 20 {
		t.Errorf("the map is drawn in %d colours", colours)
	}
	ann.tap(0)
	ann.tap(1)
	ann.Until("two are chosen", holdButton+`?.innerText === 'Hold 2'`)
	x, y := bob.place(0)
	free := bob.Picture().At(int(x), int(y-4))
	ann.press(holdButton)
	ann.stage("held")
	left := `document.querySelector('.clock').innerText`
	began := browsertest.Eval[string](ann.Page, `return `+left)
	ann.Until("the clock runs", fmt.Sprintf(`/^[78]:[0-5][0-9]$/.test(%[1]s) && %[1]s !== %[2]q`, left, began))
	eventually(t, 5*time.Second, "a held seat looks otherwise than a free one", func() bool { return bob.Picture().At(int(x), int(y-4)) != free })
	bob.list()
	bob.lists(2, "on hold")

	ann.press(payButton)
	ann.stage("sold")
	ann.Until("two valid tickets are shown", `document.querySelectorAll('.ticket.valid').length === 2`)
	if said := browsertest.Eval[string](ann.Page, `return document.querySelector('.ticket').innerText`); !strings.Contains(said, "A night out") || !strings.Contains(said, "Room") {
		t.Errorf("a ticket says %q", said)
	}
	bob.lists(2, "sold")
	browsertest.Eval[int](bob.Page, `document.querySelector('.seats button').click(); return 0;`)
	bob.told("is not free")
	ann.clean()
	bob.clean()
	h.balanced(t.Context())
}

// The map of an ordinary event is polled, so what somebody else has just taken
// is news to the page.
func TestASeatTakenInBetweenCostsNothingElse(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{mode: catalog.Ordinary})
	n := h.fated("demo")
	p := h.visit(t, n, "polling")
	p.tap(0)
	p.tap(1)
	p.Until("two are chosen", holdButton+`?.innerText === 'Hold 2'`)
	h.shopper(n, "faster").hold(h.event, "", h.seats(1)...).want(t, http.StatusCreated, "")

	p.press(holdButton)
	p.Until("it says what is gone", `document.querySelector('.instead')?.innerText.includes('Gone: Room, row A, seat 1.')`)
	p.Until("one is gone, the other still chosen", holdButton+`?.innerText === 'Hold 1 of 2' && document.querySelectorAll('.panel .lines li').length === 2 && document.querySelectorAll('.panel .gone').length === 1`)
	eventually(t, 30*time.Second, "the map shows the one otherwise than the other", func() bool {
		picture := p.Picture()
		at := func(seat int) color.Color {
			x, y := p.place(seat)
			return picture.At(int(x), int(y-4))
		}
		return at(0) != at(1) && at(0) != at(2) // the next is free
	})
	p.press(holdButton)
	p.stage("held")

	card := func(number string) {
		p.Until("a card can be chosen", `document.querySelector('[data-key=card]')`)
		browsertest.Eval[int](p.Page, fmt.Sprintf(`
			const card = document.querySelector('[data-key=card]');
			card.value = %q;
			card.dispatchEvent(new Event('change', { bubbles: true }));
			return 0;`, number))
		p.press(payButton)
	}
	card(declinedCard)
	p.declined("was declined")
	p.stage("held")
	card(goodCard)
	p.stage("sold")
	p.Until("the ticket is valid", `document.querySelectorAll('.ticket.valid').length === 1`)
	p.clean("409")
	h.balanced(t.Context())
}

// tabTo presses Tab until the focus is on what the selector names.
func (p page) tabTo(selector string) {
	p.t.Helper()
	for range 40 {
		if browsertest.Eval[bool](p.Page, fmt.Sprintf(`return document.activeElement.matches(%q)`, selector)) {
			return
		}
		p.Keys("\t")
	}
	p.t.Fatalf("Tab never leads to %s; it is at %s", selector, browsertest.Eval[string](p.Page, `return document.activeElement.outerHTML.slice(0, 200)`))
}

func TestTheKeyboardAloneLeadsToATicket(t *testing.T) {
	t.Parallel()
	h, _, p := atMap(t)
	p.tabTo("#show-list")
	p.Keys("\r")
	p.tabTo("#list > details > summary")
	p.Keys("\r")
	p.Until("the rows are listed", `document.querySelector('#list details details')`)
	p.tabTo("#list details details summary")
	p.Keys("\r")
	p.Until("the seats are listed", `document.querySelectorAll('.seats button').length === 10`)
	p.tabTo(".seats button:nth-child(3)")
	p.Keys(" ")
	p.Until("the seat is chosen", holdButton+`?.innerText === 'Hold 1' && document.activeElement.getAttribute('aria-pressed') === 'true'`)
	p.tabTo("[data-key=hold]")
	p.Keys("\r")
	p.stage("held")
	// The focus stays in the order, so the next step is near.
	if !browsertest.Eval[bool](p.Page, `return document.getElementById('panel').contains(document.activeElement)`) {
		t.Error("the focus left the order when it was held")
	}
	p.tabTo("[data-key=pay]")
	p.Keys("\r")
	p.stage("sold")
	p.Until("the ticket is valid", `document.querySelectorAll('.ticket.valid').length === 1`)
	if !browsertest.Eval[bool](p.Page, `return document.getElementById('panel').contains(document.activeElement)`) {
		t.Error("the focus left the order when it was sold")
	}
	p.clean()
	if got := h.truth(t.Context(), h.rdb).At(2); got != seatmap.Sold {
		t.Errorf("the third seat is %v", got)
	}
}

func TestAShopperMayLetTheHouseChooseAndIsToldOfASingleSeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	ann := h.visit(t, h.fated("demo"), "live")
	lines := func(n int) {
		t.Helper()
		ann.Until(fmt.Sprintf("%d seats are in the order", n), fmt.Sprintf(`document.querySelectorAll('.panel .lines li').length === %d`, n))
	}
	ann.press(`document.querySelector('[data-key="best+"]')`)
	ann.Until("it counts three", `document.querySelector('.best output').innerText === '3' && document.querySelector('[data-key=best]').innerText === 'Hold the best 3'`)
	ann.press(`document.querySelector('[data-key=best]')`)
	ann.stage("held")
	lines(3)
	if hints := browsertest.Eval[int](ann.Page, `return document.querySelectorAll('.panel > .hint').length`); hints != 0 {
		t.Errorf("%d hints at three seats side by side", hints)
	}
	ann.press(`document.querySelector('[data-key=back]')`)
	ann.stage("picking")
	ann.press(`document.querySelector('[data-key=clear]')`)
	ann.tap(1)
	ann.tap(2)
	ann.press(holdButton)
	ann.stage("held")
	ann.Until("she is told of the single seat", `document.querySelector('.panel > .hint')?.innerText.includes('single seat')`)
	ann.clean()
}
