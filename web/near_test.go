package web_test

import (
	"fmt"
	"testing"

	"seatcast/internal/browsertest"
)

// rows is a chart of two sections of one price, four ordinary seats in a row of each
// and six in another, which an aisle parts in the middle; beside them a dearer row,
// and a wheelchair space. In a third section is a row of two prices more.
const rows = `
	const row = (label, from, n, y, more = {}) => ({ label, seats: Array.from({ length: n }, (_, k) => ({ ticketId: 't' + (from + k), i: from + k, label: String(k + 1), x: 10 * k, y, category: 'A', ...more })) });
	const parted = row('2', 4, 6, 20);
	parted.seats[3].break = true;
	const dear = row('3', 10, 4, 30, { category: 'B' });
	const spaces = row('4', 14, 1, 12, { accessible: true });
	const mixed = row('1', 19, 4, 12);
	for (const [k, seat] of mixed.seats.entries()) seat.category = k < 2 ? 'C' : 'D';
	const json = { name: '', width: 100, height: 100, focal: { x: 0, y: 0 }, categories: [{ name: 'A' }, { name: 'B' }, { name: 'C' }, { name: 'D' }], seats: 23, sections: [
		{ id: 's', name: 'Stalls', rows: [row('1', 0, 4, 10), parted, dear, spaces] }, { id: 'b', name: 'Balcony', rows: [row('1', 15, 4, 11)] }, { id: 'g', name: 'Gallery', rows: [mixed] }] };`

func TestTheNextBestIsAsManyTogetherAtTheSamePriceAndNear(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	for _, tt := range []struct {
		why             string
		chosen, taken   []int
		orphans         string
		want            []int
		together, there bool
	}{
		{"behind, not across the aisle, nor in another section", []int{1, 2}, []int{1, 2}, "allow", []int{5, 6}, true, true},
		{"the nearest leave single seats", []int{5, 6}, []int{4, 5, 6}, "allow", []int{1, 2}, true, true},
		{"no single seat is left", []int{5, 6}, []int{4, 5, 6}, "warn", []int{0, 1}, true, true},
		{"one that is left whichever are taken", []int{0, 1}, []int{0}, "refuse", []int{1, 2}, true, true},
		{"a single one", []int{2}, []int{2}, "allow", []int{1}, true, true},
		{"another section before a split", []int{0, 1, 2, 3}, []int{3}, "refuse", []int{15, 16, 17, 18}, true, true},
		{"a split when there is nothing else", []int{0, 1, 2, 3}, []int{3, 16}, "allow", []int{0, 1, 2, 7}, false, true},
		{"who chose apart keeps what is left", []int{0, 3}, []int{3}, "allow", []int{0, 2}, true, true},
		{"what was chosen at another price stays", []int{0, 1, 10}, []int{10}, "allow", []int{0, 1, 11}, true, true},
		{"who sat beside another price and is moved away", []int{20, 21}, []int{20}, "allow", []int{19, 21}, false, true},
		{"two pairs of one price, of which one is parted", []int{1, 2, 5, 6}, []int{1, 0, 3, 4, 7}, "allow", []int{2, 5, 6, 8}, false, true},
		{"two pairs of one price, of which one is moved", []int{0, 1, 17, 18}, []int{0, 1, 4, 5, 6, 7, 8, 9}, "allow", []int{17, 18, 2, 3}, true, true},
		{"nothing for who needs a space", []int{14}, []int{14}, "allow", nil, false, false},
		{"nothing when a price is sold out", []int{10}, []int{10, 11, 12, 13}, "allow", nil, false, false},
	} {
		type offer struct {
			Seats    []int
			Together bool
		}
		got := browsertest.Eval[*offer](p, browsertest.Modules+rows+fmt.Sprintf(`
			const [{ Chart }, { near }] = await Promise.all([use('chart.js'), use('near.js')]);
			const taken = new Set(%s);
			return near(new Chart('', json), %s, (i) => !taken.has(i), %q);`, list(tt.taken), list(tt.chosen), tt.orphans))
		if !tt.there {
			if got != nil {
				t.Errorf("%s: %v", tt.why, *got)
			}
			continue
		}
		if got == nil || fmt.Sprint(got.Seats) != fmt.Sprint(tt.want) || got.Together != tt.together {
			t.Errorf("%s: got %+v, want %v", tt.why, got, tt.want)
		}
	}
}

func list(numbers []int) string {
	s := ""
	for _, n := range numbers {
		s += fmt.Sprint(n, ",")
	}
	return "[" + s + "]"
}

func TestADeadlineAsksWhatBecameOfItAndGoesOnWhenTheClockWasWrong(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[[]string](p, browsertest.Modules+`
		const { Clock, Deadline, mmss } = await use('clock.js');
		let local = 1_700_000_000_000;
		const start = local;
		const clock = new Clock(() => local);
		clock.heard(start);
		const said = [];
		const left = () => new Promise((done) => { heard = done; });
		let heard = () => {};
		const d = new Deadline(clock, (ms) => { said.push(mmss(ms)); heard(); }, async () => {
			said.push('asked');
			clock.heardDate(new Date(start + 10_000).toUTCString()); // with the answer
		});
		d.until(start + 100_000);
		local += 3_600_000; // the device's clock is set an hour ahead
		document.dispatchEvent(new Event('visibilitychange'));
		while (said.at(-1) === '0:00' || said.at(-1) === 'asked') await left();
		d.until(null);
		return said;`)
	if fmt.Sprint(got) != "[1:40 0:00 asked 1:30]" {
		t.Errorf("got %v", got)
	}
}
