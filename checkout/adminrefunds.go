package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// OfficeAnswer is a booking as an operator sees it: as its owner does, but for
// what a door reads, and all that is known of its money.
type OfficeAnswer struct {
	Answer
	User     string          `json:"user"`
	HeldBy   *HeldBy         `json:"heldBy,omitempty"` // of a hold of the box office
	Attempts []OfficeAttempt `json:"attempts"`         // oldest first
	Refunds  []RefundReport  `json:"refunds"`          // likewise
}

// OfficeAttempt is a try at paying as an operator sees it.
type OfficeAttempt struct {
	AttemptAnswer
	Payment  string        `json:"payment,omitempty"` // the provider's id of it
	Money    seatmap.Money `json:"money"`
	Refunded int64         `json:"refunded"`          // of what was captured, given back so far, as the provider says
	Card     string        `json:"card,omitempty"`    // the same for every payment with one card
	Dispute  string        `json:"dispute,omitempty"` // how a dispute about it stands, in the provider's words
	At       time.Time     `json:"at"`
}

// OfficeBooking shows a booking to an operator. ErrNoBooking, seatmap.ErrNoBasket.
func (d *Desk) OfficeBooking(ctx context.Context, id string) (*OfficeAnswer, error) {
	user, err := d.owner(ctx, id)
	if err != nil {
		return nil, err
	}
	shown, err := d.Booking(ctx, id, user)
	if err != nil {
		return nil, err
	}
	a := &OfficeAnswer{Answer: *shown, User: user, Attempts: []OfficeAttempt{}, Refunds: []RefundReport{}}
	for k := range a.Tickets {
		a.Tickets[k].QR = ""
	}
	b, err := d.store.booking(ctx, id)
	if errors.Is(err, ErrNoBooking) { // a basket has no more than that
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	if b.Operator != "" {
		a.HeldBy = &HeldBy{b.Operator, b.Note}
	}
	attempts, err := d.store.attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, one := range attempts {
		a.Attempts = append(a.Attempts, OfficeAttempt{AttemptAnswer: one.answer(), Payment: one.Ref, Money: one.Money, Refunded: one.Refunded,
			Card: one.Card, Dispute: one.Dispute, At: one.Begun.UTC()})
	}
	refunds, err := d.store.refunds(ctx, id)
	for _, r := range refunds {
		a.Refunds = append(a.Refunds, r.report())
	}
	return a, err
}

func (d *Desk) getOfficeBooking(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	a, err := d.OfficeBooking(c.Request().Context(), c.Param("booking"))
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, a)
}

// maxRefunded is how many tickets one call names.
const maxRefunded = 1000

func (d *Desk) postRefund(c echo.Context) error {
	operator, err := web.Operator(c)
	if err != nil {
		return err
	}
	var body struct {
		Tickets []string `json:"tickets"`
		Seats   string   `json:"seats"`
		Reason  string   `json:"reason"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	switch {
	case body.Seats != SeatsOnSale && body.Seats != SeatsKilled:
		return web.Bad("bad_request", "say who gets the seats, with seats: "+SeatsOnSale+" or "+SeatsKilled)
	case !sayable(body.Reason, maxReason):
		return web.Bad("bad_request", fmt.Sprintf("say why, with reason: 1 to %d characters", maxReason))
	case body.Tickets != nil && (len(body.Tickets) == 0 || len(body.Tickets) > maxRefunded || slices.Contains(body.Tickets, "")):
		return web.Bad("bad_request", fmt.Sprintf("tickets are the ids of 1 to %d; leave it out for all of the booking", maxRefunded))
	}
	r, err := d.Refund(c.Request().Context(), RefundRequest{Booking: c.Param("booking"), Tickets: body.Tickets, Seats: body.Seats,
		Reason: body.Reason, By: operator})
	if err != nil {
		return d.unrefunded(c, err)
	}
	return private(c, http.StatusAccepted, r)
}

// unrefunded is the table of why tickets are not refunded; the rest is problem's.
func (d *Desk) unrefunded(c echo.Context, err error) error {
	for _, row := range refundProblems {
		if !errors.Is(err, row.err) {
			continue
		}
		var which *TicketsError
		if !errors.As(err, &which) {
			return row.problem
		}
		told := *row.problem
		told.Extra = map[string]any{"tickets": which.Tickets}
		return &told
	}
	return d.problem(c, err)
}

var refundProblems = []struct {
	err     error
	problem *web.Problem
}{
	{ErrNotSold, &web.Problem{Status: http.StatusConflict, Code: "booking_not_sold", Detail: "the booking is not sold, so there is nothing to give back; one that is not over is given back with release"}},
	{ErrCapturePending, &web.Problem{Status: http.StatusConflict, Code: "capture_pending", Detail: "the money is being taken and has not arrived; wait a moment", RetryAfter: 2 * time.Second}},
	{ErrNotTickets, &web.Problem{Status: http.StatusUnprocessableEntity, Code: "unknown_tickets", Detail: "these are no tickets of the booking; nothing is refunded"}},
	{ErrRefunding, &web.Problem{Status: http.StatusConflict, Code: "refund_in_progress", Detail: "a refund of these tickets is under way; GET the booking to see how it stands. Nothing else is refunded"}},
	{ErrRefunded, &web.Problem{Status: http.StatusConflict, Code: "already_refunded", Detail: "these tickets are refunded already; nothing else is"}},
}
