package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// API answers operators.
type API struct {
	book    *Book
	sales   seatmap.Sales
	baskets Baskets
}

// NewAPI returns the call over a log. It does no I/O.
func NewAPI(book *Book, sales seatmap.Sales, baskets Baskets) *API {
	return &API{book: book, sales: sales, baskets: baskets}
}

// MountAdmin adds the history of a seat to g, which is /v1/admin and for
// operators only.
func (a *API) MountAdmin(g *echo.Group) {
	g.GET("/events/:event/seats/:seat/history", a.getHistory)
}

// How many entries a page has.
const (
	usualPage = 50
	mostPage  = 200
)

// question is what is asked of a seat: a page of its history, or a moment.
type question struct {
	before int64
	limit  int
	moment time.Time
}

func (a *API) getHistory(c echo.Context) error {
	q, err := asked(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), 2*patience)
	defer cancel()
	event := c.Param("event")
	sale, err := a.sales.Sale(ctx, event)
	if err != nil {
		return problem(err)
	}
	ticket := seatOf(c)
	i, err := a.index(ctx, sale, ticket)
	if err != nil {
		return problem(err)
	}
	var answer *Answer
	if q.moment.IsZero() {
		answer, err = a.pageOf(ctx, event, i, q.before, q.limit)
	} else {
		answer, err = a.momentOf(ctx, event, i, q.moment)
	}
	if err != nil {
		return problem(err)
	}
	answer.TicketID = ticket
	if at, ok := sale.Index.At(i); ok {
		answer.Section, answer.Row, answer.Label = at.Section.Name, at.Row.Label, at.Seat.Label
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, answer)
}

// index is that of a seat of the event's chart, or of one before.
func (a *API) index(ctx context.Context, sale *seatmap.Sale, ticket string) (int, error) {
	if seat, ok := sale.Index.Seat(ticket); ok {
		return seat.I, nil
	}
	return a.book.index(ctx, sale.Event, ticket)
}

// seatOf is the ticket id of the path. The router leaves a path as it was sent when it has to: one
// with an escaped slash.
func seatOf(c echo.Context) string {
	seat := c.Param("seat")
	if c.Request().URL.RawPath == "" {
		return seat
	}
	if plain, err := url.PathUnescape(seat); err == nil {
		return plain
	}
	return seat
}

func asked(c echo.Context) (q question, err error) {
	q = question{before: math.MaxInt64, limit: usualPage}
	if text := c.QueryParam("before"); text != "" {
		if q.before, err = strconv.ParseInt(text, 10, 64); err != nil || q.before < 1 {
			return q, web.Bad("bad_request", "before is the number of a change, such as next of the page before")
		}
	}
	if text := c.QueryParam("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > mostPage {
			return q, web.Bad("bad_request", "limit is a number from 1 to "+strconv.Itoa(mostPage))
		}
	}
	if text := c.QueryParam("at"); text != "" {
		if q.moment, err = time.Parse(time.RFC3339, text); err != nil || q.moment.Year() < 1970 || q.moment.After(time.Now().Add(skew)) {
			return q, web.Bad("bad_time", "at is a moment that is past, as RFC 3339 with its offset: 2027-03-01T10:02:13.250Z; + in a query is %2B")
		}
		if c.QueryParam("before") != "" || c.QueryParam("limit") != "" {
			return q, web.Bad("bad_request", "a moment has no pages: send at, or before and limit")
		}
	}
	return q, nil
}

// problem tells an outcome as the API does.
func problem(err error) error {
	switch {
	case errors.Is(err, seatmap.ErrNoEvent):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event", Detail: "there is no such event"}
	case errors.Is(err, errNoSeat):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_seat", Detail: "the event never had such a seat; areas have no history"}
	case errors.Is(err, seatmap.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
			Detail: "the seat log does not answer right now; try again", RetryAfter: time.Second}, err)
	default:
		return err
	}
}
