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

// root is an expression for what the parts of a map are in.
const root = `(document.querySelector('seat-map')?.shadowRoot ?? document)`

// apart fails for what lies on something else, or out of the window.
func (p page) apart(how string) {
	p.t.Helper()
	for _, fault := range browsertest.Eval[[]string](p.Page, `
		const faults = [];
		if (document.documentElement.scrollWidth > innerWidth) faults.push('the page is ' + document.documentElement.scrollWidth + ' wide');
		const seen = ['.top', '.tools', '.zoom', '.overview', '.here', '.key', '.doubt p', '.side', '.foot'].map((name) => [name, `+root+`.querySelector(name)?.getBoundingClientRect()]).filter(([, box]) => box?.width);
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

// clear fails for tools that lie on anything the map has drawn, which shows the whole house.
func (p page) clear(how string) {
	p.t.Helper()
	p.Rests()
	for _, fault := range browsertest.Eval[[]string](p.Page, `
		const root = `+root+`;
		const seats = root.querySelector('#map');
		const at = seats.getBoundingClientRect();
		const scale = seats.width / at.width;
		const under = (canvas, box) => {
			const [width, height] = [box.width, box.height].map((side) => Math.round(side * scale));
			const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
			copy.drawImage(canvas, (at.left - box.left) * scale, (at.top - box.top) * scale);
			return copy.getImageData(0, 0, width, height).data;
		};
		const ground = getComputedStyle(seats).backgroundColor.match(/\d+/g).map(Number);
		const faults = [];
		for (const name of ['.tools', '.zoom', '.overview', '.here', '.key']) {
			const box = root.querySelector(name).getBoundingClientRect();
			if (!box.width) continue;
			if (under(seats, box).some((value, n) => n % 4 < 3 && value !== ground[n % 4])) faults.push(name + ' lies on what is drawn');
			if (under(root.querySelector('.above'), box).some((value, n) => n % 4 === 3 && value)) faults.push(name + ' lies on what is written');
		}
		return faults;`) {
		p.t.Errorf("%s: %s", how, fault)
	}
}

// looks are those that a map is looked at in.
var looks = map[string]browsertest.Look{"at a desk": browsertest.Desk, "in the dark": browsertest.Dark, "on a phone": browsertest.Phone}

func TestNothingOnAMapLiesOnSomethingElse(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{chart: seatmap.Theatre()})
	n := h.fated("demo")
	h.busy(n)
	p := h.visit(t, n, "live")
	fits := func(what string, checks ...func(p page, how string)) {
		t.Helper()
		for how, look := range looks {
			p.See(look)
			for _, check := range checks {
				check(p, what+" "+how)
			}
		}
		p.See(browsertest.Desk)
	}
	fits("all of it", page.apart, page.clear)
	p.Shot("map", browsertest.Desk, browsertest.Dark, browsertest.Phone)
	browsertest.Eval[int](p.Page, `document.querySelector('#legend button[aria-pressed]').click(); return 0;`)
	p.Until("one price is shown", `document.querySelector('#legend.filtered')`)
	fits("one price", page.apart, page.clear)
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
	fits("the list", page.apart)
	p.Shot("list", browsertest.Desk, browsertest.Phone)
	browsertest.Eval[int](p.Page, `document.querySelector('.panel .lines .place').click(); return 0;`)
	p.Rests()
	fits("near", page.apart)
	p.Shot("map-near", browsertest.Desk, browsertest.Dark, browsertest.Phone)

	german := page{browsertest.Open(t, n.url+"/events/"+h.event+"?lang=de"), t, h}
	german.Until("the map is live", `document.getElementById('live').dataset.mode === 'live' && document.querySelector('#legend small')?.innerText`)
	p, german = german, p
	fits("in German", page.apart, page.clear)
	p.Shot("german", browsertest.Desk, browsertest.Phone)
	browsertest.Eval[int](p.Page, `document.documentElement.dir = 'rtl'; return 0;`)
	fits("from right to left", page.apart, page.clear)
	p.Shot("right-to-left", browsertest.Desk, browsertest.Phone)
	p, german = german, p
	german.Close()

	browsertest.Eval[int](p.Page, `document.getElementById('show-map').click(); return 0;`)
	n.kill()
	p.is("waiting")
	p.Until("it says so over the map", `document.querySelector('.doubt p')`)
	fits("without its server", page.apart)
	p.Shot("degraded", browsertest.Desk, browsertest.Dark, browsertest.Phone)
}
