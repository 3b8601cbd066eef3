package web_test

import (
	"encoding/json"
	"fmt"
	"image/color"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
)

// blocks is a chart of six blocks of 600 seats, of category A those of the first row
// and of B the others. In each block's first row the first seat is a wheelchair
// space, the second a companion seat, and the third has a restricted view.
func blocks() string {
	var sections []map[string]any
	i := 0
	for block := range 6 {
		var rows []map[string]any
		for row := range 20 {
			var seats []map[string]any
			for n := range 30 {
				seat := map[string]any{"ticketId": fmt.Sprint("t", i), "i": i, "label": fmt.Sprint(n + 1), "category": "B",
					"x": block%3*340 + n*10, "y": block/3*260 + row*10}
				if row == 0 {
					seat["category"] = "A"
					seat["accessible"], seat["companion"], seat["restricted"] = n == 0, n == 1, n == 2
				}
				seats, i = append(seats, seat), i+1
			}
			rows = append(rows, map[string]any{"label": fmt.Sprint(row + 1), "seats": seats})
		}
		sections = append(sections, map[string]any{"id": fmt.Sprint("s", block+1), "name": fmt.Sprint("Block ", block+1), "rows": rows})
	}
	chart, err := json.Marshal(map[string]any{"name": "Blocks", "width": 1000, "height": 500, "focal": map[string]int{"x": 500, "y": 0}, "seats": i, "sections": sections,
		"categories": []map[string]string{{"name": "A", "color": "#cc0000"}, {"name": "B", "color": "#0000cc"}}})
	if err != nil {
		panic(err)
	}
	return string(chart)
}

// atBlocks opens the page of an event in these blocks, all free. What is asked of
// the house is sent to wishes, and refused.
func atBlocks(t *testing.T) (p *browsertest.Page, wishes chan string) {
	t.Helper()
	s := newStream()
	wishes = make(chan string, 8) // more than any test asks
	p = browsertest.Open(t, client(t, func(g *echo.Group) {
		shop(g, s)
		g.GET("/charts/c1.json", func(c echo.Context) error { return c.JSONBlob(200, []byte(blocks())) })
		g.POST("/bookings/e", func(c echo.Context) error {
			var asked struct{ BestAvailable json.RawMessage }
			if err := c.Bind(&asked); err != nil {
				return err
			}
			wishes <- string(asked.BestAvailable)
			return c.JSONBlob(409, []byte(`{"code":"sold_out"}`))
		})
	})+"/events/e")
	c := <-s.conns
	browsertest.Eval[int](p, `
		window.written = new Set();
		const { fillText } = CanvasRenderingContext2D.prototype;
		CanvasRenderingContext2D.prototype.fillText = function (text, ...at) { written.add(text); return fillText.call(this, text, ...at); };
		return 0;`)
	c.say(hello)
	c.say("event: snapshot\nid: 5\ndata: {\"n\":5,\"chart\":\"c1\",\"map\":\"%s\",\"areas\":{\"pit\":50}}", strings.Repeat("AAAA", 300))
	p.Until("it is counted", `document.querySelector('#legend small')?.innerText === '180 left'`)
	return p, wishes
}

// seatAt is where a seat of the blocks is in the window while the map shows everything.
func seatAt(p *browsertest.Page, seat int) (x, y float64) {
	place := browsertest.Eval[[]float64](p, browsertest.Modules+fmt.Sprintf(`
		const { Chart } = await use('chart.js');
		const { View } = await use('view.js');
		const chart = new Chart('', await (await fetch('/v1/charts/c1.json')).json());
		const box = document.getElementById('map').getBoundingClientRect();
		const view = Object.assign(new View(), { width: box.width, height: box.height });
		view.bounds(chart);
		view.set(view.whole());
		const at = view.screen(chart.x[%[1]d], chart.y[%[1]d]);
		return [box.left + at.x, box.top + at.y];`, seat))
	return place[0], place[1]
}

func press(p *browsertest.Page, selector string) {
	browsertest.Eval[int](p, fmt.Sprintf(`document.querySelector(%q).click(); return 0;`, selector))
}

func TestAPriceFiltersTheMapTheListAndWhatTheHouseChooses(t *testing.T) {
	p, wishes := atBlocks(t)
	x, y := seatAt(p, 15)        // an A
	bx, by := seatAt(p, 5*30+15) // a B
	pixel := func(x, y float64) color.Color { return p.Picture().At(int(x), int(y)) }
	drawn := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(browsertest.Patience); !is(); {
			if time.Now().After(end) {
				t.Fatalf("never drawn: %s", what)
			}
		}
	}
	drawn("seats in the colours of their prices", func() bool { return mostly(pixel(x, y), 0) && mostly(pixel(bx, by), 2) })
	red, blue := pixel(x, y), pixel(bx, by)

	press(p, `#legend li:first-child button`)
	p.Until("the price is pressed", `document.querySelector('#legend button').getAttribute('aria-pressed') === 'true'`)
	p.Until("the map counts what is wanted", `written.has('30 free')`)
	drawn("what is not wanted otherwise than before", func() bool { return pixel(bx, by) != blue })
	if still := pixel(x, y); still != red {
		t.Errorf("a seat that is wanted was %v and is %v", red, still)
	}
	if dim := pixel(bx, by); mostly(dim, 2) {
		t.Errorf("a seat that is not wanted is %v, not dimmed", dim)
	}

	press(p, `#show-list`)
	p.Until("the list counts what is wanted", `document.querySelector('#list .count').innerText.startsWith('30 of 30 free')`)
	press(p, `#list summary`)
	p.Until("its rows are listed", `document.querySelector('#list details details')`)
	if rows := browsertest.Eval[int](p, `return document.querySelectorAll('#list details details').length`); rows != 1 {
		t.Errorf("the list has %d rows of a block; only one has seats at that price", rows)
	}

	press(p, `[data-key=best]`)
	if asked, want := <-wishes, `{"quantity":2,"categories":["A"]}`; asked != want {
		t.Errorf("the house was asked for %s; want %s", asked, want)
	}
	p.Until("it can be asked again", `!document.querySelector('[data-key=best]').disabled`)
	press(p, `#filter-accessible`)
	p.Until("the list has those of wheelchair users", `document.querySelector('#list .count').innerText.startsWith('2 of 2 free')`)
	press(p, `[data-key=best]`)
	if asked, want := <-wishes, `{"quantity":2,"categories":["A"],"accessible":1}`; asked != want {
		t.Errorf("the house was asked for %s; want %s", asked, want)
	}
	p.Until("it can be asked again", `!document.querySelector('[data-key=best]').disabled`)
	press(p, `#filter-all`)
	p.Until("the list has everything", `document.querySelector('#list .count').innerText.startsWith('600 of 600 free')`)
	if pressed := browsertest.Eval[int](p, `return document.querySelectorAll('#legend [aria-pressed=true]').length`); pressed != 0 {
		t.Errorf("%d prices are still pressed", pressed)
	}
	press(p, `[data-key=best]`)
	if asked, want := <-wishes, `{"quantity":2}`; asked != want {
		t.Errorf("the house was asked for %s; want %s", asked, want)
	}
}

// mostly says whether a colour has more of red, green or blue, by number, than of
// both others together.
func mostly(c color.Color, of int) bool {
	r, g, b, _ := c.RGBA()
	parts := []uint32{r, g, b}
	return 2*parts[of] > r+g+b
}

func TestTheOverviewSaysWhatBlocksHaveAndATapGoesToOne(t *testing.T) {
	p, _ := atBlocks(t)
	p.Until("names, counts and prices are written", `['Block 5', '600 free', 'from €25'].every((text) => written.has(text))`)
	p.Until("no block is near yet", `document.getElementById('here').hidden`)
	p.Click(seatAt(p, 4*600+10*30+15)) // the middle of the fifth, where its label is
	p.Until("the fifth is near", `document.getElementById('here').innerText === 'Block 5 · 600 free · from €25'`)
	p.Until("its seats are numbered, and its rows", `written.has('30') && written.has('20')`)
	if cart := browsertest.Eval[bool](p, `return Boolean(document.querySelector('[data-key=hold]'))`); cart {
		t.Error("a tap on a block far away chose a seat")
	}
}

func TestAMapGivenAnotherSizeWhileItGlidesToShowEverythingShowsEverything(t *testing.T) {
	p, _ := atBlocks(t)
	p.Click(seatAt(p, 4*600+10*30+15))
	p.Until("the fifth is near", `document.getElementById('here').innerText.startsWith('Block 5')`)
	p.Rests()
	browsertest.Eval[int](p, `
		document.getElementById('zoom-fit').click();
		document.getElementById('map').parentElement.style.width = '600px'; // wide enough that a block that fills it is told as near
		return 0;`)
	p.Rests()
	p.Click(seatAt(p, 10*30+29)) // the end of the first that is next to the second
	p.Until("the first, tapped where its end is when all of them fit, is near", `document.getElementById('here').innerText.startsWith('Block 1')`)
}

func TestWheelchairCompanionAndRestrictedSeatsAreToldByShapeAndInWords(t *testing.T) {
	p, _ := atBlocks(t)
	shapes := browsertest.Eval[[]string](p, browsertest.Modules+`
		const [{ Chart }, { Painter, sheet, theme }] = await Promise.all([use('chart.js'), use('paint.js')]);
		const chart = new Chart('', await (await fetch('/v1/charts/c1.json')).json());
		const painter = new Painter(chart, theme(document.body));
		return [0, 1, 2, 3].map((i) => {
			const [, ctx] = sheet(40, 40);
			painter.seats(ctx, [i], { k: 3, x0: chart.x[i] - 20 / 3, y0: chart.y[i] - 20 / 3 }, () => 0);
			return [...ctx.getImageData(0, 0, 40, 40).data].filter((_, n) => n % 4 === 3).map((a) => (a > 200 ? 1 : 0)).join('');
		});`)
	for i, one := range shapes {
		if !strings.Contains(one, "1") || slices.Contains(shapes[:i], one) {
			t.Errorf("seat %d has the shape of another, or none", i)
		}
	}
	if key := browsertest.Eval[string](p, `return document.querySelector('.key').innerText`); !strings.Contains(key, "wheelchair") || !strings.Contains(key, "companion") || !strings.Contains(key, "restricted view") {
		t.Errorf("the key explains %q", key)
	}
	press(p, `#show-list`)
	press(p, `#list summary`)
	p.Until("rows are listed", `document.querySelector('#list details details')`)
	press(p, `#list details details summary`)
	p.Until("seats are listed", `document.querySelectorAll('.seats button').length === 30`)
	for i, words := range []string{"wheelchair space", "companion seat", "restricted view"} {
		if name := browsertest.Eval[string](p, fmt.Sprintf(`return document.querySelectorAll('.seats button')[%d].getAttribute('aria-label')`, i)); !strings.Contains(name, words) {
			t.Errorf("seat %d is called %q in the list", i, name)
		}
	}
	press(p, `.seats button:nth-child(3)`)
	p.Until("the order says so, too", `document.querySelector('#panel .remark')?.innerText === 'restricted view'`)
}
