package web_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
	"seatcast/web"
)

// declines is a house whose first payment is declined; the second has no answer before
// answer is closed.
func declines(t *testing.T, answer chan struct{}) *browsertest.Page {
	t.Helper()
	var payments, confirms atomic.Int64
	declined := bytes.Replace(order("held", nextYear), []byte(`"areas":[]`), []byte(`"areas":[],"attempts":[{"id":"a","state":"failed","provider":"sandbox","reason":"card_declined"}]`), 1)
	p, _, _ := chooses(t, func(g *echo.Group) {
		g.POST("/bookings/e", heldByThem)
		g.POST("/bookings/e.b1/payment", func(c echo.Context) error {
			if payments.Add(1) > 1 {
				<-answer
			}
			return c.JSONBlob(201, []byte(`{"bookingId":"e.b1","attempt":{"id":"a","state":"created","provider":"sandbox"},"state":"paying"}`))
		})
		g.PUT("/bookings/e.b1/confirm", func(c echo.Context) error {
			confirms.Add(1)
			return c.JSONBlob(200, []byte(`{"bookingId":"e.b1","state":"held"}`))
		})
		g.GET("/bookings/e.b1", func(c echo.Context) error {
			if confirms.Load() > 0 {
				return c.JSONBlob(200, declined)
			}
			return c.JSONBlob(200, order("held", nextYear))
		})
	})
	browsertest.Eval[int](p, hold+`.click(); return 0;`)
	p.Until("held", isHeld)
	return p
}

const (
	payable = `document.querySelector('[data-key=pay]:not(:disabled)')`
	redBox  = `document.querySelector('.hint.bad')`
)

func TestADeclineIsToldOnceAndIsOldNewsWhenAnotherPaymentBegins(t *testing.T) {
	answer := make(chan struct{})
	p := declines(t, answer)
	p.See(browsertest.Phone)
	p.Until("it is told that seats are held", `document.getElementById('notes').innerText.includes('held')`)
	p.Until("it can be paid", payable)
	browsertest.Eval[int](p, payable+`.click(); return 0;`)
	p.Until("the order says that it was declined", redBox)
	p.Until("a screen reader hears it", `document.getElementById('announcer').innerText.includes('declined')`)
	if notes := browsertest.Eval[string](p, `return document.getElementById('notes').innerText`); notes != "" {
		t.Errorf("notes say %q besides", notes)
	}
	p.Until("it can be paid again", payable)
	browsertest.Eval[int](p, payable+`.click(); return 0;`)
	p.Until("it says that it is being paid", `document.querySelector('[data-key=pay]').innerText === 'Paying…' && document.querySelector('[data-key=pay]').disabled`)
	if browsertest.Eval[bool](p, `return Boolean(`+redBox+`)`) {
		t.Error("while the next payment is under way it still says that the last was declined")
	}
	p.Until("a screen reader hears it", `document.getElementById('announcer').innerText === 'Paying…'`)
	close(answer)
	p.Until("the order says that it was declined, too", redBox)
}

func TestADeclineIsNotSaidOfAnotherCardNorAfterAReload(t *testing.T) {
	answer := make(chan struct{})
	close(answer)
	p := declines(t, answer)
	decline := func() {
		p.Until("it can be paid", payable)
		browsertest.Eval[int](p, payable+`.click(); return 0;`)
		p.Until("it was declined", redBox)
	}
	decline()
	browsertest.Eval[int](p, `
		const card = document.querySelector('[data-key=card]');
		card.selectedIndex++;
		card.dispatchEvent(new Event('change', { bubbles: true }));
		return 0;`)
	p.Until("it is not said of another card", `!`+redBox+` && document.querySelector('[data-key=card]').selectedIndex === 1`)
	decline()
	p.Reload()
	p.Until("the order is there again", payable)
	if browsertest.Eval[bool](p, `return Boolean(`+redBox+`)`) {
		t.Error("after a reload it is said again")
	}
}

func TestAPaymentOfAnOrderThatIsGoneIsNotRepeatedForTheNext(t *testing.T) {
	paid := make(chan string, 1)
	p, _, _ := chooses(t, func(g *echo.Group) {
		g.GET("/bookings/e.b0", func(echo.Context) error { return &web.Problem{Status: 404, Code: "unknown_booking"} })
		g.GET("/bookings/e.b1", func(c echo.Context) error { return c.JSONBlob(200, order("held", nextYear)) })
		g.POST("/bookings/:booking/payment", func(c echo.Context) error {
			paid <- c.Param("booking")
			return c.JSONBlob(201, []byte(`{"bookingId":"e.b1","attempt":{"id":"a","state":"created","provider":"sandbox"},"state":"paying"}`))
		})
		g.PUT("/bookings/:booking/confirm", func(c echo.Context) error { return c.JSONBlob(200, []byte(`{"state":"paying"}`)) })
	})
	browsertest.Eval[int](p, `
		sessionStorage.setItem('seatcast.booking.e', 'e.b0');
		sessionStorage.setItem('seatcast.payment.e', '{"booking":"e.b0","key":"k","method":"4242424242424242"}');
		localStorage.setItem('seatcast.token', 'tok');
		localStorage.setItem('seatcast.booking.e', 'e.b1');
		return 0;`)
	p.Reload()
	p.Until("the order of the tab that is closed is there", payable)
	browsertest.Eval[int](p, `const card = document.querySelector('[data-key=card]'); card.value = '4242424242424242'; card.dispatchEvent(new Event('change', { bubbles: true })); `+payable+`.click(); return 0;`)
	if booking := <-paid; booking != "e.b1" {
		t.Errorf("paid is %s", booking)
	}
}

func TestEachTestCardIsReadInFullOnAPhone(t *testing.T) {
	answer := make(chan struct{})
	close(answer)
	p := declines(t, answer)
	p.See(browsertest.Phone)
	p.Until("it can be paid", payable)
	for _, cut := range browsertest.Eval[[]string](p, browsertest.Modules+`
		const [{ en }, { de }] = await Promise.all([use('en.js'), use('de.js')]);
		const select = document.querySelector('[data-key=card]');
		const style = getComputedStyle(select);
		const ruler = document.createElement('canvas').getContext('2d');
		ruler.font = style.fontWeight + ' ' + style.fontSize + ' ' + style.fontFamily;
		const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 22; // and its arrow
		return [en, de].flatMap(({ pay }) => Object.entries(pay.cards)).map(([number, what]) => '•••• ' + number.slice(-4) + ' · ' + what)
			.filter((text) => ruler.measureText(text).width > room);`) {
		t.Errorf("%q is cut", cut)
	}
}
