package audit

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/web"
)

// How many calls are answered at once.
const (
	usualPage = 50
	mostPage  = 200
)

// MountAdmin adds the routes of the record to the group for operators.
func (l *Log) MountAdmin(g *echo.Group) {
	g.GET("/audit", l.getAudit)
}

func (l *Log) getAudit(c echo.Context) error {
	q, err := query(c)
	if err != nil {
		return err
	}
	page, err := l.Read(c.Request().Context(), q)
	if err != nil {
		return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
			Detail: "the record cannot be read; try again", RetryAfter: time.Second}, err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, page)
}

func query(c echo.Context) (Query, error) {
	q := Query{Event: plain(c.QueryParam("event")), Limit: usualPage}
	var err error
	if text := c.QueryParam("before"); text != "" {
		if q.Before, err = strconv.ParseInt(text, 10, 64); err != nil || q.Before < 1 {
			return q, web.Bad("bad_request", "before is the number that next was of an earlier page")
		}
	}
	if text := c.QueryParam("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > mostPage {
			return q, web.Bad("bad_request", fmt.Sprintf("limit is 1 to %d", mostPage))
		}
	}
	if text := c.QueryParam("reads"); text != "" {
		if q.Reads, err = strconv.ParseBool(text); err != nil {
			return q, web.Bad("bad_request", "reads is true or false")
		}
	}
	return q, nil
}
