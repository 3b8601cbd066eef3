package checkout

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"seatcast/web"
)

// usualPace is how many bookings of a cancelled event are refunded in a minute
// when nothing is said.
const usualPace = 600

func (d *Desk) postCancel(c echo.Context) error {
	operator, sale, err := d.office(c)
	if err != nil {
		return err
	}
	body := struct {
		Reason    string `json:"reason"`
		Refund    *bool  `json:"refund"`
		PerMinute int    `json:"perMinute"`
	}{PerMinute: usualPace}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	switch {
	case !sayable(body.Reason, maxReason):
		return web.Bad("bad_request", fmt.Sprintf("say why, with reason: 1 to %d characters", maxReason))
	case body.Refund == nil:
		return web.Bad("bad_request", "say with refund, true or false, whether what is sold is refunded; false can be changed later")
	case !pace(body.PerMinute):
		return badPace()
	}
	r, err := d.CancelEvent(c.Request().Context(), sale.Event, Cancellation{Reason: body.Reason, By: operator, Refund: *body.Refund, PerMinute: body.PerMinute})
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, r)
}

func pace(perMinute int) bool { return perMinute >= 0 && perMinute <= mostMinute }

func badPace() error {
	return web.Bad("bad_request", fmt.Sprintf("perMinute, how many bookings are refunded in a minute, is 0 to %d", mostMinute))
}

func (d *Desk) patchCancel(c echo.Context) error {
	_, sale, err := d.office(c)
	if err != nil {
		return err
	}
	var body struct {
		PerMinute *int `json:"perMinute"`
		Refund    bool `json:"refund"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	switch {
	case body.PerMinute == nil && !body.Refund:
		return web.Bad("bad_request", "say what changes: perMinute, or refund: true")
	case body.PerMinute != nil && !pace(*body.PerMinute):
		return badPace()
	}
	r, err := d.PaceCancellation(c.Request().Context(), sale.Event, body.PerMinute, body.Refund)
	return d.cancelAnswer(c, r, err)
}

func (d *Desk) getCancel(c echo.Context) error {
	_, sale, err := d.office(c)
	if err != nil {
		return err
	}
	r, err := d.store.CancelReport(c.Request().Context(), sale.Event)
	return d.cancelAnswer(c, r, err)
}

func (d *Desk) cancelAnswer(c echo.Context, r CancelReport, err error) error {
	if errors.Is(err, ErrNotCancelled) {
		return &web.Problem{Status: http.StatusNotFound, Code: "not_cancelled", Detail: "the event is not cancelled"}
	}
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, r)
}
