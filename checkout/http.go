package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// Mount adds the routes of checkout to the /v1 group.
func (d *Desk) Mount(g *echo.Group) {
	g.GET("/me/bookings", d.getOrders)
	g.GET("/bookings/:booking", d.getBooking)
	g.DELETE("/bookings/:booking", d.deleteBooking)
	g.POST("/bookings/:booking/payment", d.postPayment)
	g.PUT("/bookings/:booking/confirm", d.putConfirm)
	g.GET("/payments/config", d.getPaymentConfig)
	g.POST("/payments/webhook/:provider", d.postWebhook)
}

func (d *Desk) getBooking(c echo.Context) error {
	user, err := web.User(c)
	if err != nil {
		return err
	}
	a, err := d.Booking(c.Request().Context(), c.Param("booking"), user)
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, a)
}

func (d *Desk) getOrders(c echo.Context) error {
	user, err := web.User(c)
	if err != nil {
		return err
	}
	q := OrderQuery{User: user, Limit: usualOrders}
	if text := c.QueryParam("before"); text != "" {
		if q.Before, q.BeforeID, err = parseCursor(text); err != nil {
			return web.Bad("bad_request", "before is what next was of an earlier page")
		}
	}
	if text := c.QueryParam("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > mostOrders {
			return web.Bad("bad_request", fmt.Sprintf("limit is 1 to %d", mostOrders))
		}
	}
	list, err := d.Orders(c.Request().Context(), q)
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, list)
}

func (d *Desk) deleteBooking(c echo.Context) error {
	user, err := web.User(c)
	if err != nil {
		return err
	}
	if err := d.Cancel(c.Request().Context(), c.Param("booking"), user); err != nil {
		return d.problem(c, err)
	}
	return c.NoContent(http.StatusNoContent)
}

func (d *Desk) postPayment(c echo.Context) error {
	user, err := web.User(c)
	if err != nil {
		return err
	}
	var body struct {
		Method string `json:"paymentMethod"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	key, err := web.IdempotencyKey(c)
	if err != nil {
		return err
	}
	if body.Method == "" || len(body.Method) > maxMethod || strings.ContainsFunc(body.Method, unicode.IsControl) {
		return web.Bad("bad_request", "send paymentMethod, the provider's name for a card, of at most 255 characters")
	}
	r, err := d.Pay(c.Request().Context(), PayRequest{Booking: c.Param("booking"), User: user, Method: body.Method, Key: key})
	if err != nil {
		return d.problem(c, err)
	}
	if r.Repeated {
		return private(c, http.StatusOK, r)
	}
	return private(c, http.StatusCreated, r)
}

// maxMethod is what providers accept for a name of theirs.
const maxMethod = 255

func (d *Desk) putConfirm(c echo.Context) error {
	user, err := web.User(c)
	if err != nil {
		return err
	}
	a, err := d.Confirm(c.Request().Context(), c.Param("booking"), user)
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, a)
}

// getPaymentConfig tells a page who takes new payments, and what it needs for
// that. It is the same for everybody and has no secret in it.
func (d *Desk) getPaymentConfig(c echo.Context) error {
	answer := struct {
		Provider string `json:"provider"`
		Page
	}{Provider: d.pays.Name()}
	if p, tells := d.pays.(interface{ Page() Page }); tells {
		answer.Page = p.Page()
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=60")
	return c.JSON(http.StatusOK, answer)
}

// postWebhook answers 2xx only when the notice has had its effect, or never
// will have one: a payment that is none of ours.
func (d *Desk) postWebhook(c echo.Context) error {
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err // over the body limit, or cut short
	}
	err = d.Webhook(c.Request().Context(), c.Param("provider"), c.Request().Header.Get, body)
	if errors.Is(err, ErrUnknownPayment) {
		d.log.WarnContext(c.Request().Context(), "webhook of a payment that is none of ours", "provider", c.Param("provider"))
		return c.NoContent(http.StatusNoContent)
	}
	if err != nil {
		return d.problem(c, err)
	}
	return c.NoContent(http.StatusNoContent)
}

// private answers what only its owner may see.
func private(c echo.Context, status int, v any) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(status, v)
}

// problem gives an error its meaning at the API.
func (d *Desk) problem(c echo.Context, err error) error {
	var (
		lost *LostError
		took *seatmap.LostError
	)
	switch {
	case errors.As(err, &lost):
		return d.seatsLost(c, lost)
	case errors.As(err, &took):
		return d.seatsLost(c, &LostError{Reason: ReasonSeatsGone, Seats: took.Seats})
	}
	for _, row := range problems {
		if !errors.Is(err, row.err) {
			continue
		}
		if row.problem.Status >= http.StatusInternalServerError {
			return fmt.Errorf("%w: %w", row.problem, err) // our fault: the log needs the cause
		}
		return row.problem
	}
	return err
}

// seatsLost names the seats as the API does.
func (d *Desk) seatsLost(c echo.Context, lost *LostError) error {
	seats := []string{}
	event, _, _ := seatmap.ParseBookingID(c.Param("booking"))
	if sale, err := d.sales.Sale(c.Request().Context(), event); err == nil {
		for _, i := range lost.Seats {
			if at, ok := sale.Index.At(i); ok {
				seats = append(seats, at.Seat.TicketID)
			}
		}
	}
	areas := lost.Areas
	if areas == nil {
		areas = []string{}
	}
	return &web.Problem{Status: http.StatusConflict, Code: "seats_lost",
		Detail: "nothing is charged: " + lostDetails[lost.Reason],
		Extra:  map[string]any{"seats": seats, "areas": areas, "reason": lost.Reason}}
}

var lostDetails = map[string]string{
	ReasonSeatsGone:      "somebody else has one of these seats, or it is not for sale any more; choose others",
	ReasonAreaFull:       "not enough places are left in the area; choose another",
	ReasonAccountLimit:   "with this booking the account would have more tickets than one may buy",
	ReasonCardLimit:      "with this booking the card would have paid for more tickets than one may; pay with another card",
	ReasonWrongAmount:    "other money was taken than the booking costs, and it goes back; the seats are on sale again",
	ReasonCancelled:      "the event is cancelled",
	ReasonCaptureRefused: "the bank promised the money and then refused it; the seats are on sale again",
}

var problems = []struct {
	err     error
	problem *web.Problem
}{
	{ErrNoBooking, &web.Problem{Status: http.StatusNotFound, Code: "unknown_booking", Detail: "there is no such booking; one that was never paid is forgotten ten minutes after its hold"}},
	{seatmap.ErrNoBasket, &web.Problem{Status: http.StatusNotFound, Code: "unknown_booking", Detail: "there is no such booking; one that was never paid is forgotten ten minutes after its hold"}},
	{seatmap.ErrNoEvent, &web.Problem{Status: http.StatusNotFound, Code: "unknown_booking", Detail: "there is no such booking"}},
	{seatmap.ErrNotYours, &web.Problem{Status: http.StatusForbidden, Code: "not_your_booking", Detail: "the booking belongs to another account"}},
	// These two before ErrHoldExpired, which they also are.
	{seatmap.ErrSold, &web.Problem{Status: http.StatusConflict, Code: "booking_final", Detail: "this booking is sold: its tickets are in GET /v1/bookings/{booking}"}},
	{ErrUncharged, &web.Problem{Status: http.StatusConflict, Code: "hold_expired", Detail: "nothing is charged: the hold has ended or was given back, and any payment of it with it; money that was taken all the same goes back. Begin a new booking"}},
	{seatmap.ErrHoldExpired, &web.Problem{Status: http.StatusConflict, Code: "hold_expired", Detail: "the hold has ended or was given back; begin a new booking"}},
	{ErrFinal, &web.Problem{Status: http.StatusConflict, Code: "booking_final", Detail: "the booking is over; GET it to see how"}},
	{ErrCancelled, &web.Problem{Status: http.StatusConflict, Code: "event_cancelled", Detail: "the event is cancelled, and from there no way leads back"}},
	{ErrInProgress, &web.Problem{Status: http.StatusConflict, Code: "payment_in_progress", Detail: "a payment of this booking is under way; wait for its verdict", RetryAfter: 2 * time.Second}},
	{ErrSwapped, &web.Problem{Status: http.StatusConflict, Code: "booking_changed", Detail: "its seats were swapped while the payment began: nothing is charged. GET the booking, and pay it with a new Idempotency-Key"}},
	{ErrReused, &web.Problem{Status: http.StatusUnprocessableEntity, Code: "idempotency_key_reused", Detail: "this Idempotency-Key was used for another payment of the booking"}},
	{ErrNoProvider, &web.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "there is no such payment provider"}},
	{ErrBadSignature, &web.Problem{Status: http.StatusBadRequest, Code: "bad_signature", Detail: "the webhook is not signed with the secret of this provider, or was signed more than five minutes ago"}},
	{seatmap.ErrUnavailable, &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable", Detail: "a store does not answer; what you hold stays held. Try again.", RetryAfter: time.Second}},
	{context.DeadlineExceeded, &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable", Detail: "no answer in time. Try again.", RetryAfter: time.Second}},
}
