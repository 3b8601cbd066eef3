package holds

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// MountAdmin adds the calls of operators to the group for them.
func (o *Office) MountAdmin(g *echo.Group) {
	g.POST("/events/:event/hold", o.postHold)
	g.POST("/events/:event/extend-all", o.postExtendAll)
}

// enter is what every call needs: who asks, of which event, and the key of a
// request that may be repeated.
func (o *Office) enter(c echo.Context) (operator, key string, sale *seatmap.Sale, err error) {
	if operator, err = web.Operator(c); err != nil {
		return "", "", nil, err
	}
	if key, err = web.IdempotencyKey(c); err != nil {
		return "", "", nil, err
	}
	if sale, err = o.api.sale(c, c.Param("event"), "unknown_event"); err != nil {
		return "", "", nil, err
	}
	if sale.Cancelled {
		return "", "", nil, notOpen(sale)
	}
	if sale.NoHolds {
		return "", "", nil, problem(sale, fmt.Errorf("no seat of %s is held: %w", sale.Event, seatmap.ErrUnavailable))
	}
	return operator, key, sale, nil
}

// postHold answers 201 with a new booking, or 200 with the one the same request
// has made before.
func (o *Office) postHold(c echo.Context) error {
	operator, key, sale, err := o.enter(c)
	if err != nil {
		return err
	}
	var body holdBody
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	r, err := body.request(sale, operator)
	if err != nil {
		return err
	}
	if key == "" {
		key = rand.Text()
	}
	b, fresh, err := o.take(c.Request().Context(), sale, r, operator, key)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	return answer(c, status, sale, granted{basket: b})
}

// shiftWithin bounds an operation on all holds of an event, whose caller may go.
const shiftWithin = 90 * time.Second

func (o *Office) postExtendAll(c echo.Context) error {
	operator, key, sale, err := o.enter(c)
	if err != nil {
		return err
	}
	if key == "" {
		return web.Bad("idempotency_key_missing", "send an Idempotency-Key: with it the same request goes on where an interrupted one was, and extends no hold twice")
	}
	var body struct {
		By string `json:"by"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	by, err := span(body.By, shortShift, longestShift)
	if err != nil {
		return web.Bad("bad_time", "by is how much longer every hold lasts, such as 90s, 5m or 2h: a second at least, and a day at most")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), shiftWithin)
	defer cancel()
	done, err := o.api.store.ShiftAll(ctx, sale.Event, o.api.token("extend-all\n"+operator, sale.Event, key), by, o.books)
	if err != nil {
		return unshifted(sale, done, err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, map[string]int{"extended": done.Moved, "before": done.Again, "ended": done.Ended})
}

// unshifted says how far an operation came that did not end.
func unshifted(sale *seatmap.Sale, done Shift, err error) error {
	if errors.Is(err, ErrOtherShift) {
		return refuse("idempotency_key_reused", "this Idempotency-Key was sent with another time; use a new one", nil)
	}
	if !errors.Is(err, seatmap.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return problem(sale, err)
	}
	return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "interrupted", RetryAfter: time.Second,
		Detail: "not every hold was extended; send the same request with the same Idempotency-Key within the hour, and it goes on from here",
		Extra:  map[string]any{"extended": done.Moved, "before": done.Again, "ended": done.Ended}}, err)
}
