package main

import (
	"bytes"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/waitingroom"
	"seatcast/web"
)

// steps are the calls of a sale by which a waiting room is steered.
var steps = map[string]waitingroom.Step{
	"POST /v1/bookings/:booking":         waitingroom.Holding,
	"POST /v1/bookings/:booking/extend":  waitingroom.Holding,
	"PUT /v1/bookings/:booking/seats":    waitingroom.Holding,
	"POST /v1/bookings/:booking/payment": waitingroom.Paying,
	"PUT /v1/bookings/:booking/confirm":  waitingroom.Paying,
}

// measured tells waiting rooms how long the steps of their sales take. A call is
// measured from when it is here as a whole: whoever sends it slowly slows nobody
// down.
func measured(rooms *waitingroom.Rooms) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			r := c.Request()
			step, is := steps[r.Method+" "+c.Path()]
			if !is {
				return next(c)
			}
			event, _, booked := seatmap.ParseBookingID(c.Param("booking"))
			if !booked {
				event = c.Param("booking") // the name of one, of who books
			}
			if !rooms.Has(event) {
				return next(c)
			}
			body, _ := io.ReadAll(r.Body) // whoever reads on meets the error again
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
			done, how := rooms.Began(event, step), waitingroom.Failed // also when a handler panics
			defer func() { done(how) }()
			err = next(c)
			how = outcome(c, err)
			return err
		}
	}
}

func outcome(c echo.Context, err error) waitingroom.Outcome {
	switch {
	case err == nil, c.Request().Context().Err() != nil: // who has left has waited so long
		return waitingroom.Answered
	case web.Status(err) < http.StatusInternalServerError: // whoever made it, a handler or echo
		return waitingroom.Refused
	}
	return waitingroom.Failed
}
