package web_test

import (
	"fmt"
	"image/color"
	"testing"
	"time"

	"seatcast/internal/browsertest"
)

func TestTheMarkOfAChosenSeatIsSeenOverTheNameOfItsBlock(t *testing.T) {
	p, _ := atBlocks(t)
	x, y := seatAt(p, 4*600+10*30+15) // where the label of the fifth would be
	browsertest.Eval[int](p, `
		document.getElementById('show-list').click();
		document.querySelectorAll('#list > details > summary')[4].click();
		return 0;`)
	p.Until("its rows are listed", `document.querySelectorAll('#list details details').length === 20`)
	browsertest.Eval[int](p, `document.querySelectorAll('#list details details summary')[10].click(); return 0;`)
	p.Until("its seats are listed", `document.querySelectorAll('.seats button').length === 30`)
	browsertest.Eval[int](p, `document.querySelectorAll('.seats button')[15].click(); document.getElementById('show-map').click(); return 0;`)
	p.Rests()
	accent := color.RGBA{0x25, 0x40, 0xc4, 255}
	for end := time.Now().Add(browsertest.Patience); ; {
		c := color.RGBAModel.Convert(p.Picture().At(int(x), int(y))).(color.RGBA)
		if near(c.R, accent.R) && near(c.G, accent.G) && near(c.B, accent.B) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("where it is the map is %v", c)
		}
	}
}

func near(a, b uint8) bool { return max(a, b)-min(a, b) < 24 }

func TestAMapOfAPartOfTheHouseShowsWhichAndLeadsToAnyOther(t *testing.T) {
	p, _ := atBlocks(t)
	overview := `document.getElementById('overview')`
	p.Until("all of it needs no other picture", overview+`.hidden`)
	for range 5 {
		press(p, `#zoom-in`)
		p.Rests()
	}
	p.Until("it is there", `!`+overview+`.hidden`)
	at := browsertest.Eval[[]float64](p, `
		const box = `+overview+`.getBoundingClientRect();
		return [box.left + box.width * 0.15, box.top + box.height * 0.35];`)
	p.Click(at[0], at[1])
	p.Until("the first block is near", `document.getElementById('here').innerText.startsWith('Block 1')`)
}

func TestATooltipSaysOfASeatThatItIsChosenAsSoonAsItIs(t *testing.T) {
	p, _ := atBlocks(t)
	x, y := seatAt(p, 4*600+10*30+15)
	for range 2 {
		p.Click(x, y)
		p.Rests()
	}
	at := browsertest.Eval[[]float64](p, `
		const box = document.getElementById('map').getBoundingClientRect();
		return [box.left + box.width / 2, box.top + box.height / 2];`)
	browsertest.Eval[int](p, fmt.Sprintf(`
		document.getElementById('map').dispatchEvent(new PointerEvent('pointermove', { pointerType: 'mouse', clientX: %f, clientY: %f }));
		return 0;`, at[0], at[1]))
	tip := `document.getElementById('tip').innerText`
	p.Until("it says that it is free", tip+`.includes('available')`)
	p.Click(at[0], at[1])
	p.Until("it says that it is chosen", tip+`.includes('chosen')`)
}

func TestWhatIsChosenIsListedByPlaceAndNoNumberIsTornFromItsWord(t *testing.T) {
	p, _ := atBlocks(t)
	press(p, `#show-list`)
	press(p, `#list summary`)
	p.Until("rows are listed", `document.querySelector('#list details details')`)
	press(p, `#list details details summary`)
	p.Until("seats are listed", `document.querySelectorAll('.seats button').length === 30`)
	for _, n := range []int{12, 2, 9} {
		press(p, fmt.Sprintf(`.seats button:nth-child(%d)`, n))
	}
	p.Until("they are chosen", `document.querySelectorAll('.panel .lines li').length === 3`)
	if got, want := browsertest.Eval[string](p, `return [...document.querySelectorAll('.panel .lines .place')].map((el) => el.innerText.split('\n')[0]).join('; ')`),
		"Block 1, row 1, seat 2; Block 1, row 1, seat 9; Block 1, row 1, seat 12"; got != want {
		t.Errorf("it lists %s", got)
	}
	browsertest.Eval[int](p, `document.querySelector('.panel .lines').style.width = '150px'; return 0;`)
	if torn := browsertest.Eval[int](p, `return [...document.querySelectorAll('.panel .lines .place')].filter((el) => {
			const range = document.createRange();
			range.selectNodeContents(el.querySelector('.whole:last-of-type'));
			return range.getClientRects().length !== 1;
		}).length`); torn > 0 {
		t.Errorf("%d numbers are torn from their words", torn)
	}
}
