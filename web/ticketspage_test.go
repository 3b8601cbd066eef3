package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"seatcast/internal/browsertest"
)

// bought is the page of the tickets of an account that has one, in Tokyo, with a code as long as codes are.
func bought(t *testing.T) *browsertest.Page {
	t.Helper()
	s := newStream()
	houseIsOpen(t, s)
	qr := "SC1.tk_eqbe7rn2vdy5lq4mnv3x6ztu2a.e.kJ3v0aXe." + strings.Repeat("Ab9_", 21) + "xQ"
	p := browsertest.Open(t, client(t, func(g *echo.Group) {
		dearShop(g, s, qr)
		order := fmt.Sprintf(`{"bookingId":"e.b1","bookedAt":"2026-11-30T18:00:00Z","state":"sold","event":{"id":"e"},"areas":[],"seats":[],"total":{"amount":5600,"currency":"KWD"},
			"tickets":[{"id":"T-1","section":"Stalls","row":"1","label":"1","price":5000,"allIn":5600,"status":"valid","qr":%q}]}`, qr)
		g.GET("/bookings/e.b1", func(c echo.Context) error { return c.JSONBlob(200, []byte(order)) })
		g.GET("/me/bookings", func(c echo.Context) error { return c.JSONBlob(200, []byte(`{"bookings":[`+order+`]}`)) })
	})+"/tickets")
	p.At("Asia/Tokyo")
	p.Reload()
	return p
}

// drawn waits for the code of a ticket; a canvas nobody has drawn on is 300 by 150.
func drawn(p *browsertest.Page) {
	p.Until("the code is drawn", `(c => c && c.width === c.height)(document.querySelector('canvas.qr'))`)
}

func TestEveryModuleOfACodeIsAsWideAsTheOthers(t *testing.T) {
	p := bought(t)
	even := func(where string, least float64) {
		t.Helper()
		drawn(p)
		for _, look := range []browsertest.Look{browsertest.Desk, browsertest.Phone} {
			p.See(look)
			box := browsertest.Eval[[]float64](p, `const c = document.querySelector('canvas.qr'), { width, height } = c.getBoundingClientRect(); return [width, height, width / c.width]`)
			if each := box[2]; box[0] != box[1] || each != float64(int(each)) || each < least {
				t.Errorf("%s: a code is %v by %v, its modules %v pixels", where, box[0], box[1], each)
			}
		}
		p.See(browsertest.Desk)
	}
	even("tickets", 3)
	browsertest.Eval[int](p, `sessionStorage.setItem('seatcast.booking.e', 'e.b1'); return 0;`)
	goTo(p, "/events/e")
	even("event", 4)
}

func TestATicketNamesTheTimeAtTheVenueAlone(t *testing.T) {
	p := bought(t)
	const says = `document.querySelector('.stub, .ticket').innerText.replace(/[\u00a0\u202f]/g, ' ')`
	alone := func(where string) {
		t.Helper()
		drawn(p)
		got := browsertest.Eval[string](p, `return `+says)
		if !strings.Contains(got, "(Asia/Kuwait)") || strings.Contains(got, "your time") {
			t.Errorf("%s: a ticket says %q", where, got)
		}
	}
	p.See(browsertest.Print)
	alone("on paper")
	p.See(browsertest.Desk)
	browsertest.Eval[int](p, `sessionStorage.setItem('seatcast.booking.e', 'e.b1'); return 0;`)
	goTo(p, "/events/e")
	alone("on the page of the event")
}
