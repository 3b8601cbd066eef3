package waitingroom_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/internal/browsertest"
	"seatcast/waitingroom"
)

func TestADrawThatNobodyJoinedIsCheckedLikeAnyOther(t *testing.T) {
	b := newBox(t)
	var lie atomic.Pointer[published]
	page := browsertest.Open(t, b.site(&lie))
	p := plan(0, 1, 10)
	p.Closes = time.Now().Add(time.Second)
	p.Opens = p.Closes.Add(time.Hour)
	b.put(p)
	b.run(b.rooms)
	b.until("the draw is held", func(f frame) bool { return f.State == waitingroom.Closed && f.Draw != nil && f.Draw.State == "drawn" })
	browsertest.Eval[int](page, fmt.Sprintf(`setTimeout(() => location.assign('/queue/%s')); return 0;`, b.event))
	page.Until("it can be joined", `location.pathname.startsWith('/queue/') && document.getElementById('join') && !document.getElementById('join').hidden`)
	browsertest.Eval[int](page, `
		const real = window.fetch;
		window.fetch = async (...asked) => { // older servers leave a number out that is 0
			const res = await real(...asked);
			return String(asked[0]).endsWith('/draw') ? new Response((await res.text()).replace('"tickets":0,', ''), res) : res;
		};
		document.getElementById('join').click();
		return 0;`)
	page.Until("she is the first behind an empty list", `!document.getElementById('mine').hidden && document.getElementById('ahead').innerText === '0' && !document.getElementById('check').hidden`)
	browsertest.Eval[int](page, `document.getElementById('check-mine').click(); return 0;`)
	page.Until("all is checked, by itself", `document.getElementById('check-says').innerText.includes('passed, none failed') && document.getElementById('checks').innerText.includes('nobody is on it') && document.getElementById('check-all').hidden`)
	page.Size(390, 844)
	narrow := browsertest.Eval[string](page, `
		document.getElementById('check-all').hidden = false;
		document.getElementById('check-all').textContent = 'Recompute the whole draw: 1,234,567 tickets, 72 MB';
		const width = (of) => of.getBoundingClientRect().width;
		const tall = [...document.querySelectorAll('#check button')].filter((b) => b.getBoundingClientRect().height > 3 * parseFloat(getComputedStyle(b).fontSize) * 1.45);
		const says = [...document.querySelectorAll('#checks li > span')].map(width);
		document.getElementById('check-all').hidden = true;
		return Math.min(...says) < 280 || tall.length ? says + ' ' + tall.map((b) => b.id) : '';`)
	if narrow != "" {
		t.Errorf("on a phone too narrow or too tall are %s", narrow)
	}
	for line := range strings.Lines(page.Console()) {
		if !strings.Contains(line, "404") { // of what this site has not
			t.Errorf("console: %s", line)
		}
	}
}
