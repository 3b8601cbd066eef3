package outgoing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// MountAdmin adds the calls that manage webhooks to the group for operators.
func (h *Hooks) MountAdmin(g *echo.Group) {
	g.POST("/webhooks", h.postWebhook)
	g.GET("/webhooks", h.getWebhooks)
	g.GET("/webhooks/:webhook", h.getWebhook)
	g.PATCH("/webhooks/:webhook", h.patchWebhook)
	g.DELETE("/webhooks/:webhook", h.deleteWebhook)
	g.POST("/webhooks/:webhook/rotate-secret", h.postRotate)
	g.POST("/webhooks/:webhook/test", h.postTest)
	g.POST("/webhooks/:webhook/redeliver", h.postRedeliverAll)
	g.GET("/webhooks/:webhook/deliveries", h.getDeliveries)
	g.POST("/webhooks/deliveries/:delivery/redeliver", h.postRedeliver)
}

// Bounds of what an operator says.
const (
	mostEvents   = 100
	maxEvent     = 64
	usualListing = 50
	mostListed   = 200
)

// optional is a member of a body that may be absent, null or a list.
type optional[T any] struct {
	given bool
	list  []T
}

// UnmarshalJSON is called for a member that is there, null too.
func (o *optional[T]) UnmarshalJSON(b []byte) error {
	o.given = true
	return json.Unmarshal(b, &o.list)
}

// wish is what a body says a webhook shall be.
type wish struct {
	URL     *string          `json:"url"`
	Types   optional[Type]   `json:"types"`
	Events  optional[string] `json:"events"`
	Enabled *bool            `json:"enabled"`
}

func (h *Hooks) check(ctx context.Context, w wish) error {
	if w.URL != nil {
		if err := checkURL(*w.URL, h.o.HTTP, h.o.Private); err != nil {
			return web.Bad("bad_url", err.Error())
		}
	}
	if w.Types.list != nil && len(w.Types.list) == 0 || slices.ContainsFunc(w.Types.list, func(t Type) bool { return !known(t) }) {
		return web.Bad("bad_types", "types are some of "+typeNames()+"; absent or null: all")
	}
	if w.Events.list != nil && len(w.Events.list) == 0 || len(w.Events.list) > mostEvents ||
		slices.ContainsFunc(w.Events.list, func(e string) bool { return e == "" || len(e) > maxEvent || strings.ContainsFunc(e, unicode.IsControl) }) {
		return web.Bad("bad_events", fmt.Sprintf("events are the ids of 1 to %d; absent or null: all", mostEvents))
	}
	unknown, err := h.store.unknown(ctx, w.Events.list)
	if err != nil {
		return problem(err)
	}
	if len(unknown) > 0 {
		return web.Bad("bad_events", fmt.Sprintf("there are no events %q: events are ids of events, created before; what is told of them is said with types, some of %s", unknown, typeNames()))
	}
	return nil
}

func (h *Hooks) postWebhook(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	var body wish
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	switch {
	case body.URL == nil:
		return web.Bad("bad_url", "send url, where messages are sent")
	case body.Enabled != nil:
		return web.Bad("bad_request", "a new webhook is enabled; disable it with PATCH")
	}
	if err := h.check(c.Request().Context(), body); err != nil {
		return err
	}
	w, err := h.store.create(c.Request().Context(), Webhook{URL: *body.URL, Types: body.Types.list, Events: body.Events.list})
	if err != nil {
		return problem(err)
	}
	web.TellOnce(c)
	return private(c, http.StatusCreated, w)
}

func (h *Hooks) getWebhooks(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	all, err := h.store.list(c.Request().Context())
	if err != nil {
		return problem(err)
	}
	return private(c, http.StatusOK, map[string]any{"webhooks": all})
}

func (h *Hooks) getWebhook(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	w, err := h.store.get(c.Request().Context(), c.Param("webhook"))
	if err != nil {
		return problem(err)
	}
	return private(c, http.StatusOK, w)
}

func (h *Hooks) patchWebhook(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	var body wish
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	if err := h.check(c.Request().Context(), body); err != nil {
		return err
	}
	ch := change{URL: body.URL, Enabled: body.Enabled}
	if body.Types.given {
		ch.Types = &body.Types.list
	}
	if body.Events.given {
		ch.Events = &body.Events.list
	}
	w, err := h.store.change(c.Request().Context(), c.Param("webhook"), ch)
	if err != nil {
		return problem(err)
	}
	return private(c, http.StatusOK, w)
}

func (h *Hooks) deleteWebhook(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	if err := h.store.remove(c.Request().Context(), c.Param("webhook")); err != nil {
		return problem(err)
	}
	return c.NoContent(http.StatusNoContent)
}

func (h *Hooks) postRotate(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	w, until, err := h.store.rotate(c.Request().Context(), c.Param("webhook"))
	if err != nil {
		return problem(err)
	}
	web.TellOnce(c)
	return private(c, http.StatusOK, struct {
		Webhook
		OldUntil time.Time `json:"oldSecretUntil"`
	}{w, until.UTC()})
}

func (h *Hooks) postTest(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	id, err := h.store.test(c.Request().Context(), c.Param("webhook"))
	if err != nil {
		return problem(err)
	}
	return private(c, http.StatusAccepted, map[string]int64{"delivery": id})
}

func (h *Hooks) getDeliveries(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	q := query{Webhook: c.Param("webhook"), State: State(c.QueryParam("state")), Limit: usualListing}
	if q.State != "" && !slices.Contains(states, q.State) {
		return web.Bad("bad_request", fmt.Sprintf("state is one of %v", states))
	}
	var err error
	if text := c.QueryParam("before"); text != "" {
		if q.Before, err = strconv.ParseInt(text, 10, 64); err != nil || q.Before < 1 {
			return web.Bad("bad_request", "before is the number that next was of an earlier page")
		}
	}
	if text := c.QueryParam("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > mostListed {
			return web.Bad("bad_request", fmt.Sprintf("limit is 1 to %d", mostListed))
		}
	}
	all, err := h.store.deliveries(c.Request().Context(), q)
	if err != nil {
		return problem(err)
	}
	page := struct {
		Deliveries []Delivery `json:"deliveries"`
		Next       int64      `json:"next,omitempty"` // ask for what is before it; absent: that was all
	}{Deliveries: all}
	if len(all) > q.Limit {
		page.Deliveries, page.Next = all[:q.Limit], all[q.Limit-1].ID
	}
	return private(c, http.StatusOK, page)
}

func (h *Hooks) postRedeliver(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	id, err := strconv.ParseInt(c.Param("delivery"), 10, 64)
	if err != nil {
		return problem(ErrNoDelivery)
	}
	if err := h.store.again(c.Request().Context(), id); err != nil {
		return problem(err)
	}
	return private(c, http.StatusAccepted, map[string]int64{"delivery": id})
}

func (h *Hooks) postRedeliverAll(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	var body struct {
		Since *time.Time `json:"since"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	if body.Since == nil {
		return web.Bad("bad_time", "send since: what is dead and was written from then on is delivered again, such as 2027-03-01T10:00:00+01:00")
	}
	n, err := h.store.allAgain(c.Request().Context(), c.Param("webhook"), *body.Since)
	if err != nil {
		return problem(err)
	}
	return private(c, http.StatusAccepted, map[string]any{"redelivered": n, "more": n == mostAgain})
}

// private answers what only an operator may see.
func private(c echo.Context, status int, v any) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(status, v)
}

func problem(err error) error {
	for _, row := range problems {
		if !errors.Is(err, row.err) {
			continue
		}
		if row.problem.Status >= http.StatusInternalServerError {
			return fmt.Errorf("%w: %w", row.problem, err)
		}
		return row.problem
	}
	return err
}

var problems = []struct {
	err     error
	problem *web.Problem
}{
	{ErrNoWebhook, &web.Problem{Status: http.StatusNotFound, Code: "unknown_webhook", Detail: "there is no such webhook"}},
	{ErrNoDelivery, &web.Problem{Status: http.StatusNotFound, Code: "unknown_delivery", Detail: "there is no such delivery, or not any more"}},
	{ErrDisabled, &web.Problem{Status: http.StatusConflict, Code: "webhook_disabled", Detail: "the webhook is disabled, so nothing is sent; enable it with PATCH"}},
	{ErrTooMany, &web.Problem{Status: http.StatusConflict, Code: "too_many_webhooks", Detail: fmt.Sprintf("there are %d webhooks, and more there may not be; delete one", mostWebhooks)}},
	{seatmap.ErrUnavailable, &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable", Detail: "no answer in time. Try again.", RetryAfter: time.Second}},
}
