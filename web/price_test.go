package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
)

func TestMoneyHasTheDecimalsTheServerSays(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	for _, tt := range []struct{ of, want string }{
		{`{ currency: 'EUR', decimals: 2 }`, "85.00"}, {`{ currency: 'JPY', decimals: 0 }`, "8,500"}, {`{ currency: 'KWD', decimals: 3 }`, "8.500"},
		{`{ currency: 'RSD', decimals: 2 }`, "85.00"}, {`{ currency: 'IQD', decimals: 3 }`, "8.500"}, {`{ currency: 'IRR', decimals: 2 }`, "85.00"}, // browsers write these without
		{`{ currency: 'EUR' }`, "85.00"}, // a server that does not say
	} {
		got := browsertest.Eval[string](p, browsertest.Modules+`const { money } = await use('words.js'); return money(8500, `+tt.of+`);`)
		if digits := strings.TrimFunc(got, func(r rune) bool { return r < '0' || r > '9' }); digits != tt.want {
			t.Errorf("8500 of %s is %q; want %s", tt.of, got, tt.want)
		}
	}
}

func TestThePageAddsFeesAsTheServerDoes(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[string](p, browsertest.Modules+`
		const { allIn } = await use('price.js');
		const fees = [{ name: 'Service', per: 'percent', basisPoints: 525 }, { name: 'Facility', per: 'ticket', amount: 250 }, { name: 'Order', per: 'order', amount: 100 }];
		return JSON.stringify([allIn([9000, 2500, 2500, 2500], fees), allIn([], fees), allIn([700]), allIn([0], fees)]);`)
	// The first is what a quote of these says: see seatmap's TestFeesAreItemisedAndSharedByTheTickets.
	want := `[{"total":18466,"fees":[{"name":"Service","amount":866},{"name":"Facility","amount":1000},{"name":"Order","amount":100}]},` +
		`{"total":0,"fees":[{"name":"Service","amount":0},{"name":"Facility","amount":0},{"name":"Order","amount":0}]},` +
		`{"total":700,"fees":[]},{"total":350,"fees":[{"name":"Service","amount":0},{"name":"Facility","amount":250},{"name":"Order","amount":100}]}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// dearShop is an API of an event in dinars with fees; t0 is sold to whoever asks.
func dearShop(g *echo.Group, s *stream, qr string) {
	g.GET("/events/:event", func(c echo.Context) error {
		return c.JSONBlob(200, []byte(`{"id":"e","name":"Evening","venue":"Hall","zone":"Asia/Kuwait","startsAt":"2030-06-01T20:00:00+03:00",
			"opensAt":"2020-01-01T10:00:00+03:00","chart":"c1","mode":"hot","state":"open","open":true,"holds":true,"currency":"KWD","decimals":3,"seatsPerBooking":3,
			"prices":[{"category":"A","amount":5000,"allIn":5600},{"category":"B","amount":2500,"allIn":2975}],"areas":[],
			"fees":[{"name":"Service","per":"percent","basisPoints":500},{"name":"Order","per":"order","amount":350}]}`))
	})
	g.GET("/charts/c1.json", func(c echo.Context) error { return c.JSONBlob(200, []byte(house)) })
	g.GET("/events/:event/live", s.serve)
	g.POST("/demo/session", func(c echo.Context) error { return c.JSON(200, map[string]string{"token": "tok"}) })
	g.POST("/bookings/e", func(c echo.Context) error {
		return c.JSONBlob(201, []byte(`{"state":"sold","bookingId":"e.b1","areas":[],"fees":[{"name":"Service","amount":250},{"name":"Order","amount":350}],
			"seats":[{"ticketId":"t0","label":"1","section":"Stalls","row":"1","category":"A","price":5000,"allIn":5600}],"total":{"amount":5600,"currency":"KWD"},
			"tickets":[{"id":"T-1","section":"Stalls","row":"1","label":"1","price":5000,"allIn":5600,"status":"valid","qr":"`+qr+`"}]}`))
	})
}

func TestWhatIsPaidComesFirstWithEveryFeeAndTheTicketCanBeScanned(t *testing.T) {
	qr := "SC1.tk_eqbe7rn2vdy5lq4mnv3x6ztu2a.e.kJ3v0aXe." + strings.Repeat("Ab9_", 21) + "xQ"
	s := newStream()
	p := browsertest.Open(t, client(t, func(g *echo.Group) { dearShop(g, s, qr) })+"/events/e")
	c := <-s.conns
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"AAA=\",\"areas\":{}}")
	p.Until("prices are told with their fees", `document.getElementById('legend').innerText.includes('5.600')`)
	browsertest.Eval[int](p, `
		document.getElementById('show-list').click();
		document.querySelector('#list > details > summary').click();
		return 0;`)
	p.Until("rows are there", `document.querySelector('#list details details summary')`)
	browsertest.Eval[int](p, `document.querySelector('#list details details summary').click(); return 0;`)
	p.Until("seats are there", `document.querySelector('.seats button')`)
	browsertest.Eval[int](p, `document.querySelector('.seats button').click(); return 0;`)
	const panel = `document.getElementById('panel').innerText`
	p.Until("one is chosen", panel+`.includes('Order')`)
	says := browsertest.Eval[string](p, `return `+panel)
	last := -1
	for _, word := range []string{"5.600", "5.000", "Service", "0.250", "Order", "0.350"} {
		if at := strings.Index(says, word); at <= last {
			t.Errorf("%s does not follow in %q", word, says)
		} else {
			last = at
		}
	}

	browsertest.Eval[int](p, `document.querySelector('[data-key=hold]').click(); return 0;`)
	// A canvas nobody has drawn on is 300 by 150.
	p.Until("the code is drawn", `(c => c && c.width === c.height)(document.querySelector('.ticket canvas.qr'))`)
	read := browsertest.Eval[string](p, browsertest.Modules+fmt.Sprintf(`
		const { generate } = await use('lean-qr.js');
		const code = generate(%q);
		const shown = document.querySelector('.ticket canvas.qr');
		const pixels = shown.getContext('2d').getImageData(0, 0, shown.width, shown.height).data;
		const pad = (shown.width - code.size) / 2;
		for (let y = 0; y < code.size; y++) {
			for (let x = 0; x < code.size; x++) {
				const at = 4 * ((y + pad) * shown.width + x + pad);
				if (pixels[at] !== (code.get(x, y) ? 0 : 255) || pixels[at + 3] !== 255) return 'differs at ' + x + ' ' + y;
			}
		}
		return pad >= 4 ? 'same' : 'no quiet zone';`, qr))
	if read != "same" {
		t.Errorf("the code of the ticket: %s", read)
	}
}
