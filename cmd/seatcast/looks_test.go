package main

import (
	"fmt"
	"net/http"
	"testing"

	"seatcast/internal/browsertest"
	"seatcast/seatmap"
)

// busy has many shoppers hold seats all over the house, and every other of them pay.
func (h *house) busy(n *node) {
	h.t.Helper()
	seats := h.seats(h.chart.Seats)
	for k, at := 0, 7; at+4 <= len(seats); k, at = k+1, at+37 {
		s := h.shopper(n, fmt.Sprintf("fan-%d", k))
		a := s.hold(h.event, "", seats[at:at+2+k%3]...).want(h.t, http.StatusCreated, "")
		if k%2 == 0 {
			s.pay(a.BookingID, "", goodCard).want(h.t, http.StatusCreated, "")
		}
	}
}

// apart fails for what lies on something else, or out of the window.
func (p page) apart(how string) {
	p.t.Helper()
	for _, fault := range browsertest.Eval[[]string](p.Page, `
		const faults = [];
		if (document.documentElement.scrollWidth > innerWidth) faults.push('the page is ' + document.documentElement.scrollWidth + ' wide');
		const seen = ['.top', '.tools', '.zoom', '.here', '.key', '.doubt p', '.side'].map((name) => [name, document.querySelector(name)?.getBoundingClientRect()]).filter(([, box]) => box?.width);
		for (const [n, [one, a]] of seen.entries()) {
			if (a.left < -1 || a.right > innerWidth + 1) faults.push(one + ' is out of the window');
			for (const [other, b] of seen.slice(n + 1)) {
				if (Math.min(a.right, b.right) > Math.max(a.left, b.left) + 1 && Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top) + 1) faults.push(one + ' and ' + other + ' overlap');
			}
		}
		return faults;`) {
		p.t.Errorf("%s: %s", how, fault)
	}
}

func TestNothingOnAMapLiesOnSomethingElse(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{chart: seatmap.Theatre()})
	n := h.fated("demo")
	h.busy(n)
	p := h.visit(t, n, "live")
	looks := map[string]browsertest.Look{"at a desk": browsertest.Desk, "in the dark": browsertest.Dark, "on a phone": browsertest.Phone}
	fits := func(what string) {
		t.Helper()
		for how, look := range looks {
			p.See(look)
			p.apart(what + " " + how)
		}
		p.See(browsertest.Desk)
	}
	fits("all of it")
	p.Shot("map", browsertest.Desk, browsertest.Dark, browsertest.Phone)
	browsertest.Eval[int](p.Page, `document.querySelector('#legend button[aria-pressed]').click(); return 0;`)
	p.Until("one price is shown", `document.querySelector('#legend.filtered')`)
	fits("one price")
	p.Shot("map-filtered", browsertest.Desk, browsertest.Phone)
	browsertest.Eval[int](p.Page, `document.querySelector('#legend button[aria-pressed=true]').click(); return 0;`)
	browsertest.Eval[int](p.Page, `
		document.getElementById('show-list').click();
		document.querySelector('#list > details > summary').click();
		return 0;`)
	p.Until("the rows are listed", `document.querySelector('#list details details')`)
	browsertest.Eval[int](p.Page, `for (const s of [...document.querySelectorAll('#list details details summary')].slice(0, 3)) s.click(); return 0;`)
	p.Until("the seats are listed", `document.querySelectorAll('.seats button').length > 40`)
	browsertest.Eval[int](p.Page, `for (const b of [...document.querySelectorAll('.seats button[aria-label*=available]')].slice(40, 43)) b.click(); return 0;`)
	p.chosen(3)
	fits("the list")
	p.Shot("list", browsertest.Desk, browsertest.Phone)
	browsertest.Eval[int](p.Page, `
		const begun = performance.now();
		document.querySelector('.panel .lines .place').click();
		while (await new Promise(requestAnimationFrame) < begun + 500); // it glides for less
		return 0;`)
	fits("near")
	p.Shot("map-near", browsertest.Desk, browsertest.Dark, browsertest.Phone)

	german := page{browsertest.Open(t, n.url+"/events/"+h.event+"?lang=de"), t, h}
	german.Until("the map is live", `document.getElementById('live').dataset.mode === 'live' && document.querySelector('#legend small')?.innerText`)
	p, german = german, p
	fits("in German")
	p.Shot("german", browsertest.Desk, browsertest.Phone)
	browsertest.Eval[int](p.Page, `document.documentElement.dir = 'rtl'; return 0;`)
	fits("from right to left")
	p.Shot("right-to-left", browsertest.Desk, browsertest.Phone)
	p, german = german, p
	german.Close()

	browsertest.Eval[int](p.Page, `document.getElementById('show-map').click(); return 0;`)
	n.kill()
	p.is("waiting")
	p.Until("it says so over the map", `document.querySelector('.doubt p')`)
	fits("without its server")
	p.Shot("degraded", browsertest.Desk, browsertest.Dark, browsertest.Phone)
}
