package main

import (
	"fmt"
	"strings"
	"testing"

	"seatcast/internal/browsertest"
	"seatcast/seatmap"
)

// sizes are those of maps in CSS pixels, with device pixels for each: at a desk, on a
// phone, in a page of others.
var sizes = map[string]string{"at a desk": "920, 733, 1", "on a phone": "390, 437, 2", "in a page of others": "958, 502, 1"}

// charted has a page draw a chart by hand: at(width, height, dpr) is a view of such a
// size and at.to() the part of the chart that it shows now.
const charted = browsertest.Modules + `
	const [{ Chart }, { Painter, sheet, theme }, { View }, { Labels }, { Rows }] = await Promise.all(['chart.js', 'paint.js', 'view.js', 'labels.js', 'rows.js'].map(use));
	const chart = new Chart('c1', await (await fetch('/v1/charts/c1.json')).json());
	const painter = new Painter(chart, theme(document.body));
	const at = (width, height, dpr) => {
		const view = Object.assign(new View(), { width, height });
		view.bounds(chart);
		view.set(view.whole());
		const to = () => { const box = view.box(); return { k: view.k * dpr, x0: box.x0, y0: box.y0, box, dpr }; };
		return { view, to };
	};
	const overlap = (a, b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0;
`

// onChart opens a page of a site that serves the chart of a house.
func onChart(t *testing.T, chart *seatmap.Chart) *browsertest.Page {
	t.Helper()
	return browsertest.Open(t, serveChart(t, chart).URL)
}

func TestEachSectionIsNamedWhereItLiesAndNoNameLiesOnASeatOfTheShopper(t *testing.T) {
	for name, chart := range map[string]*seatmap.Chart{"stadium": seatmap.Stadium(), "arena": seatmap.Arena(), "theatre": seatmap.Theatre()} {
		p := onChart(t, chart)
		for how, size := range sizes {
			for _, fault := range browsertest.Eval[[]string](p, charted+fmt.Sprintf(`
				const { view, to } = at(%s);
				const labels = new Labels(chart, painter);
				const sells = (s) => ({ wanted: true, left: s.seats + ' free', from: 'from €112.50' });
				const own = [3, 4, 5].map((n) => { const row = chart.sections[0].rows[chart.sections[0].rows.length >> 1].seats; return row[(row.length >> 1) + n - 4] ?? row[0]; });
				const [canvas, ctx] = sheet(view.width * to().dpr, view.height * to().dpr);
				const faults = [];
				for (const seats of [[], own]) {
					labels.stale();
					const { k, x0, y0, dpr } = to();
					const tags = labels.paint(ctx, { sells }, to(), seats);
					const without = chart.sections.filter((s) => !tags.some((tag) => tag.section === s)).map((s) => s.name);
					if (without.length) faults.push(without.join(', ') + ' have no label');
					for (const [n, tag] of tags.entries()) {
						if (tags.slice(n + 1).some((other) => overlap(tag, other))) faults.push(tag.section.name + ' lies on another');
						const nearest = chart.nearest((tag.x0 + tag.x1) / 2 / k + x0, (tag.y0 + tag.y1) / 2 / k + y0, 30 * dpr / k);
						if (nearest < 0 || chart.section[nearest] !== tag.section.index) faults.push(tag.section.name + ' lies elsewhere');
					}
					const room = dpr === 1; // on a phone there is none in the smallest, and marks lie over labels
					if (room) for (const i of seats) {
						const [x, y] = [(chart.x[i] - x0) * k, (chart.y[i] - y0) * k];
						if (tags.some((tag) => overlap(tag, { x0: x, y0: y, x1: x, y1: y }))) faults.push('seat ' + i + ' is covered');
					}
				}
				return faults;`, size)) {
				t.Errorf("%s %s: %s", name, how, fault)
			}
		}
		p.Close()
	}
}

func TestWhereLabelsLieIsSettledOnceForAViewNotForEachFrame(t *testing.T) {
	p := onChart(t, seatmap.Stadium())
	if again := browsertest.Eval[int](p, charted+`
		const { to } = at(920, 733, 1);
		const labels = new Labels(chart, painter);
		let left = 900;
		const sells = () => ({ wanted: true, left: left + ' free', from: '' });
		const [, ctx] = sheet(920, 733);
		const first = labels.paint(ctx, { sells }, to(), []);
		let measured = 0;
		const { width } = painter;
		painter.width = (...args) => { measured++; return width.apply(painter, args); };
		left = 899;
		labels.paint(ctx, { sells }, to(), []);
		// a label that says something else has another picture, of two lines
		return measured > 2 * first.length ? measured : 0;`); again > 0 {
		t.Errorf("a frame measures %d texts", again)
	}
}

// rowNames is charted with named(to, worded), which is what Rows write in a view, in device pixels.
const rowNames = charted + `
	const named = (to, worded) => {
		const rows = new Rows(chart, painter);
		rows.place(to, worded);
		const texts = new Map();
		const all = [];
		for (const which of ['ends', 'edge']) rows.paint({ drawImage: (picture, x, y) => all.push({ picture, x0: x, y0: y, x1: x + picture.width, y1: y + picture.height }) }, which);
		for (const [key, picture] of painter.captions) texts.set(picture, key.split('\n').at(-1));
		return all.map((name) => ({ ...name, text: texts.get(name.picture) }));
	};
	const block = chart.sections.find((s) => s.name.endsWith('101'));
`

func TestRowNamesOfNeighbouringBlocksDoNotRunIntoEachOther(t *testing.T) {
	p := onChart(t, seatmap.Stadium())
	for _, fault := range browsertest.Eval[[]string](p, rowNames+`
		const { view, to } = at(920, 733, 1);
		const faults = [];
		for (const pitch of [13, 14.5, 18, 24, 32, 46]) {
			view.set({ x: block.box.x1, y: block.label.y, k: pitch / chart.pitch });
			const names = named(to(), false);
			if (names.length < 10) faults.push('at ' + pitch + ' only ' + names.length + ' rows are named');
			for (const [n, a] of names.entries()) {
				for (const b of names.slice(n + 1)) if (overlap(a, b)) faults.push('at ' + pitch + ' ' + a.text + ' and ' + b.text);
			}
		}
		return faults.slice(0, 10);`) {
		t.Error(fault)
	}
}

func TestNearInEachRowIsNamedThoughNeitherOfItsEndsIsSeen(t *testing.T) {
	p := onChart(t, seatmap.Stadium())
	for how, size := range sizes {
		if names := browsertest.Eval[string](p, rowNames+fmt.Sprintf(`
			const { view, to } = at(%s);
			view.set({ ...block.label, k: 40 / chart.pitch });
			return named(to(), true).map((name) => name.text).sort().join();`, size)); !strings.Contains(names, "Row 17") || !strings.Contains(names, "Row 16") {
			t.Errorf("%s it names %q", how, names)
		}
	}
}
