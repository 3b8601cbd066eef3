package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	"seatcast/seatmap"
	"seatcast/web"
)

// Streams holds the sessions of those who watch; the hub does.
type Streams interface {
	// Serve streams a topic as Server-Sent Events until the session ends. An
	// error says that nothing was written.
	Serve(w http.ResponseWriter, r *http.Request, topic string) error
	// ServeWS upgrades to a WebSocket. allow returns a code when a topic may
	// not be watched.
	ServeWS(w http.ResponseWriter, r *http.Request, allow func(ctx context.Context, topic string) (code, detail string))
}

// API serves maps: to poll, and to watch.
type API struct {
	feed    *Feed
	streams Streams
	direct  singleflight.Group // reads of Redis, by event
}

// NewAPI returns the routes of a feed whose watchers streams holds.
func NewAPI(feed *Feed, streams Streams) *API { return &API{feed: feed, streams: streams} }

// Mount adds the routes to g, which is /v1.
func (a *API) Mount(g *echo.Group) {
	g.GET("/events/:event/seatmap", a.seatmap)
	g.GET("/events/:event/live", a.live)
	g.GET("/ws", a.ws)
}

func seatmapPath(event string) string { return "/v1/events/" + event + "/seatmap" }

// seatmap answers the whole map, or with ?since=n what changed after n.
func (a *API) seatmap(c echo.Context) error {
	ctx := c.Request().Context()
	sale, err := a.sale(ctx, c.Param("event"))
	if err != nil {
		return a.problem(ctx, err)
	}
	if c.QueryParams().Has("since") {
		return a.since(c, sale)
	}
	v, err := a.view(ctx, sale)
	if err != nil {
		return a.problem(ctx, err)
	}
	return writeView(c, v, maxAge(sale))
}

func maxAge(sale *seatmap.Sale) int {
	if sale.Hot {
		return 1
	}
	return 30
}

// view is this node's projection, or one read of Redis shared by all who ask
// meanwhile, or the projection again, marked stale, when Redis does not answer.
func (a *API) view(ctx context.Context, sale *seatmap.Sale) (*view, error) {
	projection, sure := a.feed.projected(sale)
	if sure {
		return projection, nil
	}
	v, err := a.shared(ctx, sale)
	if errors.Is(err, ErrStore) && projection != nil {
		return newView(projection.state, sale, true), nil
	}
	return v, err
}

func (a *API) shared(ctx context.Context, sale *seatmap.Sale) (*view, error) {
	ch := a.direct.DoChan(sale.Event, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), directTimeout)
		defer cancel()
		return a.read(ctx, sale)
	})
	select {
	case r := <-ch:
		v, _ := r.Val.(*view)
		return v, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// directTimeout bounds a read that others wait for, so no single client's
// patience does.
const directTimeout = 3 * time.Second

func (a *API) read(ctx context.Context, sale *seatmap.Sale) (*view, error) {
	if err := a.lapse(ctx, sale); err != nil {
		return nil, err
	}
	s, err := a.feed.o.Maps.Snapshot(ctx, sale.Event)
	if err != nil {
		return nil, err
	}
	s.fit(sale.Chart.Seats)
	return newView(s, sale, false), nil
}

// lapse lets holds of an ordinary event end before it is looked at; those of
// hot events end by the clock.
func (a *API) lapse(ctx context.Context, sale *seatmap.Sale) error {
	if sale.Hot {
		return nil
	}
	if err := a.feed.o.Maps.rebuild.Lapse(ctx, sale.Event); err != nil {
		return fmt.Errorf("lapse %s: %w: %w", sale.Event, ErrStore, err)
	}
	return nil
}

func writeView(c echo.Context, v *view, maxAge int) error {
	h := c.Response().Header()
	encoding := "identity"
	if acceptsGzip(c.Request()) {
		encoding = "gzip"
	}
	tag := v.tag(encoding)
	h.Set("ETag", tag)
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(maxAge))
	h.Set("Vary", "Accept-Encoding")
	if matches(c.Request().Header.Get("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	if encoding == "gzip" {
		h.Set("Content-Encoding", "gzip")
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, v.Gzip())
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, v.Body())
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(name, "gzip") || name == "*" {
			q = strings.ReplaceAll(q, " ", "")
			return q != "q=0" && !strings.HasPrefix(q, "q=0.000")
		}
	}
	return false
}

// matches compares an If-None-Match with a tag, weakly as RFC 9110 asks.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}

// since answers one delta from n to now, or sends who cannot be helped so to
// the whole map.
func (a *API) since(c echo.Context, sale *seatmap.Sale) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	n, err := strconv.ParseInt(c.QueryParam("since"), 10, 64)
	if err != nil || n < 0 {
		return web.Bad("bad_request", "since is the number of the map you have")
	}
	ctx := c.Request().Context()
	d, err := a.changes(ctx, sale, n)
	switch {
	case errors.Is(err, ErrTrimmed), errors.Is(err, ErrFork), errors.Is(err, ErrCold):
		return c.Redirect(http.StatusTemporaryRedirect, seatmapPath(sale.Event))
	case err != nil:
		return a.problem(ctx, err)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, encode(d))
}

func (a *API) changes(ctx context.Context, sale *seatmap.Sale, n int64) (seatmap.Delta, error) {
	if v, sure := a.feed.projected(sale); sure && v.state.N == n {
		return nothing(n), nil
	}
	if err := a.lapse(ctx, sale); err != nil {
		return seatmap.Delta{}, err
	}
	changes, err := a.feed.o.Maps.Since(ctx, sale.Event, n)
	if err != nil || len(changes) == 0 {
		return nothing(n), err
	}
	var m merge
	for _, c := range changes {
		if c.Reset {
			return seatmap.Delta{}, ErrFork
		}
		m.add(&c)
	}
	return m.delta(), nil
}

// nothing is the delta of a reader who has everything.
func nothing(n int64) seatmap.Delta {
	return seatmap.Delta{N: n, Prev: n, At: time.Now().UnixMilli(), Areas: map[string]int{},
		Reserved: []int{}, Released: []int{}, Booked: []int{}, Closed: []int{}}
}

// live streams a hot event. For an ordinary one 204 tells EventSource to stop:
// it is polled.
func (a *API) live(c echo.Context) error {
	ctx := c.Request().Context()
	sale, err := a.sale(ctx, c.Param("event"))
	if err != nil {
		return a.problem(ctx, err)
	}
	if !sale.Hot {
		return c.NoContent(http.StatusNoContent)
	}
	// The writer below echo's, whose Flush hides errors.
	if err := a.streams.Serve(c.Response().Writer, c.Request(), seatmap.Topic(sale.Event)); err != nil {
		return a.problem(ctx, err)
	}
	c.Response().Committed = true
	return nil
}

func (a *API) ws(c echo.Context) error {
	a.streams.ServeWS(c.Response().Writer, c.Request(), a.allow)
	c.Response().Committed = true
	return nil
}

// allow judges a topic a WebSocket asks for.
func (a *API) allow(ctx context.Context, topic string) (code, detail string) {
	event, ok := eventOf(topic)
	if !ok {
		return "unknown_topic", "topics are seatmap/<event>"
	}
	sale, err := a.sale(ctx, event)
	switch {
	case errors.Is(err, seatmap.ErrNoEvent):
		return "unknown_topic", "there is no event " + event
	case err != nil:
		return "unavailable", "events cannot be looked up now; ask again in a second"
	case !sale.Hot:
		return "not_pushed", "poll " + seatmapPath(event)
	}
	return "", ""
}

func (a *API) sale(ctx context.Context, event string) (*seatmap.Sale, error) {
	sale, err := a.feed.o.Sales.Sale(ctx, event)
	if err != nil && !errors.Is(err, seatmap.ErrNoEvent) {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return sale, err
}

// problem is the table of what errors mean to a client. What is not in it is a
// fault of ours.
func (a *API) problem(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, seatmap.ErrNoEvent):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event", Detail: "there is no event of this id"}
	case errors.Is(err, ErrStore):
		if ctx.Err() == nil {
			a.feed.o.Log.WarnContext(ctx, "map not served", "err", err)
		}
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable", RetryAfter: time.Second,
			Detail: "the map cannot be read now; ask again in a second"}
	default:
		return err
	}
}
