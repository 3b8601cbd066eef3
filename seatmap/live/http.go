package live

import (
	"cmp"
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
	// Serve streams a topic as Server-Sent Events until the session ends, at the
	// deadline of r's context at the latest. An error says that nothing was written.
	Serve(w http.ResponseWriter, r *http.Request, topic string) error
	// ServeWS upgrades to a WebSocket. allow returns a code when a topic may
	// not be watched, and else when the session must end, if it must.
	ServeWS(w http.ResponseWriter, r *http.Request, allow func(ctx context.Context, topic, ticket string) (end time.Time, code, detail string))
}

// Books know what is sold of an event while it is without holds; checkout has
// them.
type Books interface {
	// Sold returns the map of what is sold and unavailable, and the places left.
	// Neither must be written.
	Sold(ctx context.Context, event string) (seatmap.Map, map[string]int, error)
}

// PassHeader carries the pass of who watches a map that is for those inside.
const PassHeader = "Seatcast-Pass"

// Passes judge who may watch a map that is for those inside alone; the waiting
// room does.
type Passes interface {
	// Watch returns until when an account may watch with the pass it shows; the
	// zero time where none is asked for. Its errors are ready to be returned.
	Watch(ctx context.Context, event, user, pass string) (until time.Time, err error)
}

// API serves maps: to poll, and to watch.
type API struct {
	feed    *Feed
	streams Streams
	tickets *Tickets
	others  map[string]Allow   // by what a topic begins with
	books   Books              // nil: without Redis what was known last is shown
	passes  Passes             // nil: no map is for those inside alone
	direct  singleflight.Group // reads of Redis, by event
}

// NewAPI returns the routes of a feed whose watchers streams holds, and whose
// guarded events ask for tickets.
func NewAPI(feed *Feed, streams Streams, tickets *Tickets) *API {
	return &API{feed: feed, streams: streams, tickets: tickets}
}

// Without has the maps of events without holds read from b.
func (a *API) Without(b Books) *API {
	a.books = b
	return a
}

// Admitting has p judge the passes of those who want to watch.
func (a *API) Admitting(p Passes) *API {
	a.passes = p
	return a
}

// Allow returns a code when a topic may not be watched.
type Allow func(ctx context.Context, topic string) (code, detail string)

// Beside has sockets watch topics that begin with a prefix and are no maps.
func (a *API) Beside(prefix string, allow Allow) *API {
	if a.others == nil {
		a.others = make(map[string]Allow)
	}
	a.others[prefix] = allow
	return a
}

// Mount adds the routes to g, which is /v1.
func (a *API) Mount(g *echo.Group) {
	g.GET("/events/:event/seatmap", a.seatmap)
	g.GET("/events/:event/live", a.live)
	g.POST("/events/:event/live-ticket", a.ticket)
	g.GET("/ws", a.ws)
}

func seatmapPath(event string) string { return "/v1/events/" + event + "/seatmap" }

func livePath(event string) string { return "/v1/events/" + event + "/live" }

// mayWatch judges who is given a ticket of a guarded event, and who may read
// its map without one: whoever has a session, and a pass where the map is for those
// inside. It returns when that ends, if it does.
func (a *API) mayWatch(c echo.Context, event string) (end time.Time, err error) {
	user, err := web.User(c)
	if err != nil || a.passes == nil {
		return end, err
	}
	return a.passes.Watch(c.Request().Context(), event, user, c.Request().Header.Get(PassHeader))
}

// ticket gives one to who may watch. One of an event that is not guarded opens
// nothing that is not open.
func (a *API) ticket(c echo.Context) error {
	end, err := a.mayWatch(c, c.Param("event"))
	if err != nil {
		return err
	}
	sale, err := a.sale(c.Request().Context(), c.Param("event"))
	if err != nil {
		return problem(err)
	}
	ticket, expires := a.tickets.Issue(sale.Event, end)
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusCreated, struct {
		Ticket    string    `json:"ticket"`
		ExpiresAt time.Time `json:"expiresAt"`
		Live      string    `json:"live"`
	}{ticket, expires.UTC(), livePath(sale.Event) + "?ticket=" + ticket})
}

// admit uses up a ticket of a guarded event and returns its end. Any other asks for
// none.
func (a *API) admit(ctx context.Context, sale *seatmap.Sale, ticket string) (end time.Time, err error) {
	if !sale.Guarded {
		return end, nil
	}
	return a.tickets.Redeem(ctx, sale.Event, ticket)
}

// seatmap answers the whole map, or with ?since=n what changed after n.
func (a *API) seatmap(c echo.Context) error {
	ctx := c.Request().Context()
	sale, err := a.sale(ctx, c.Param("event"))
	if err != nil {
		return problem(err)
	}
	if err := a.mayRead(c, sale); err != nil {
		return problem(err)
	}
	if c.QueryParams().Has("since") {
		return a.since(c, sale)
	}
	return a.whole(c, sale)
}

// mayRead judges who reads a map: with a session, or with a ticket, which is used
// up. Whoever is signed in and shows no ticket is told what their session lacks.
func (a *API) mayRead(c echo.Context, sale *seatmap.Sale) error {
	if !sale.Guarded {
		return nil
	}
	ticket := c.QueryParam("ticket")
	_, refused := a.mayWatch(c, sale.Event)
	if _, stranger := web.User(c); refused == nil || ticket == "" && stranger == nil {
		return refused
	}
	_, err := a.admit(c.Request().Context(), sale, ticket)
	return err
}

func (a *API) whole(c echo.Context, sale *seatmap.Sale) error {
	v, err := a.view(c.Request().Context(), sale)
	if err != nil {
		return problem(err)
	}
	return web.Cacheable{Control: cacheControl(sale), Kind: echo.MIMEApplicationJSON, Tag: v.tag(), Plain: v.Body, Gzip: v.Gzip}.Serve(c)
}

func cacheControl(sale *seatmap.Sale) string {
	if sale.Guarded {
		return "private, no-store"
	}
	if sale.Hot {
		return "public, max-age=1"
	}
	return "public, max-age=30"
}

func deltaControl(sale *seatmap.Sale) string {
	if sale.Guarded {
		return cacheControl(sale)
	}
	return "no-store"
}

// view is this node's projection, or one read of Redis shared by all who ask
// meanwhile, or the projection again, marked stale, when Redis does not answer.
// Of an event without holds it is what is sold, marked likewise.
func (a *API) view(ctx context.Context, sale *seatmap.Sale) (*view, error) {
	one, sure := a.feed.projected(sale)
	if a.away(sale) {
		v, err := a.sold(ctx, sale, one)
		if err != nil && one != nil {
			return one.view().Stale(), nil
		}
		return v, err
	}
	if sure {
		return one.view(), nil
	}
	v, err := a.shared(ctx, sale)
	if errors.Is(err, ErrStore) && one != nil {
		return one.view().Stale(), nil
	}
	return v, err
}

// away says that an event is without holds.
func (a *API) away(sale *seatmap.Sale) bool { return sale.NoHolds && a.books != nil }

// sold is the map of what is sold, under the number this node has come to: the
// reset that ends the mode without holds is above it.
func (a *API) sold(ctx context.Context, sale *seatmap.Sale, one *follower) (*view, error) {
	m, left, err := a.books.Sold(ctx, sale.Event)
	if err != nil {
		return nil, fmt.Errorf("sold seats of %s: %w: %w", sale.Event, ErrStore, err)
	}
	s := State{Map: m, Areas: left}
	if one != nil {
		s.N, _, _ = one.position()
	}
	return newView(s, sale, true), nil
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
	if err := a.feed.o.Maps.rebuilder.Lapse(ctx, sale.Event); err != nil {
		return fmt.Errorf("lapse %s: %w: %w", sale.Event, ErrStore, err)
	}
	return nil
}

// since answers one delta from n to now, or sends who cannot be helped so to
// the whole map. A guarded one is no cache's, and the ticket is used up: it is
// answered here.
func (a *API) since(c echo.Context, sale *seatmap.Sale) error {
	c.Response().Header().Set("Cache-Control", deltaControl(sale))
	n, err := strconv.ParseInt(c.QueryParam("since"), 10, 64)
	if err != nil || n < 0 {
		return web.Bad("bad_request", "since is the number of the map you have")
	}
	ctx := c.Request().Context()
	d, err := seatmap.Delta{}, ErrTrimmed // of an event without holds nothing is told but the whole
	if !a.away(sale) {
		d, err = a.changes(ctx, sale, n)
	}
	lost := errors.Is(err, ErrTrimmed) || errors.Is(err, ErrFork) || errors.Is(err, ErrCold)
	switch {
	case lost && sale.Guarded:
		return a.whole(c, sale)
	case lost:
		return c.Redirect(http.StatusTemporaryRedirect, seatmapPath(sale.Event))
	case err != nil:
		return problem(err)
	}
	d.Chart = a.chart(sale)
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, encode(d))
}

// chart is the SHA-256 of the chart that view is of.
func (a *API) chart(sale *seatmap.Sale) string {
	if one, sure := a.feed.projected(sale); sure {
		return one.chart()
	}
	return sale.ChartSHA
}

func (a *API) changes(ctx context.Context, sale *seatmap.Sale, n int64) (seatmap.Delta, error) {
	changes, err := a.missed(ctx, sale, n)
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

// missed returns the changes after number n: of a hot event those this node
// has heard, so that its pollers cost Redis nothing. A number above ours may be
// of a node that has heard more: the log knows.
func (a *API) missed(ctx context.Context, sale *seatmap.Sale, n int64) ([]seatmap.Change, error) {
	if one, sure := a.feed.projected(sale); sure {
		changes, mine, ok := one.since(n)
		if ok {
			return changes, nil
		}
		if n < mine {
			return nil, ErrTrimmed
		}
	}
	if err := a.lapse(ctx, sale); err != nil {
		return nil, err
	}
	return a.feed.o.Maps.Since(ctx, sale.Event, n)
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
		return problem(err)
	}
	if !sale.Hot {
		return c.NoContent(http.StatusNoContent)
	}
	end, err := a.admit(ctx, sale, c.QueryParam("ticket"))
	if err != nil {
		return problem(err)
	}
	r := c.Request()
	if !end.IsZero() {
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if err := a.streams.Serve(web.Stream(c), r, seatmap.Topic(sale.Event)); err != nil {
		return problem(err)
	}
	c.Response().Committed = true
	return nil
}

// ws upgrades. A ticket in the query stands for that of the first topic it is
// good for.
func (a *API) ws(c echo.Context) error {
	first := c.QueryParam("ticket")
	a.streams.ServeWS(web.Stream(c), c.Request(), func(ctx context.Context, topic, ticket string) (end time.Time, code, detail string) {
		return a.allow(ctx, topic, cmp.Or(ticket, first))
	})
	c.Response().Committed = true
	return nil
}

// allow judges a topic a WebSocket asks for with a ticket, or none.
func (a *API) allow(ctx context.Context, topic, ticket string) (end time.Time, code, detail string) {
	event, ok := eventOf(topic)
	if !ok {
		for prefix, allow := range a.others {
			if strings.HasPrefix(topic, prefix) {
				code, detail = allow(ctx, topic)
				return end, code, detail
			}
		}
		return end, "unknown_topic", "topics are seatmap/<event> and queue/<event>"
	}
	sale, err := a.sale(ctx, event)
	switch {
	case errors.Is(err, seatmap.ErrNoEvent):
		return end, "unknown_topic", "there is no event of this id"
	case err != nil:
		return end, "unavailable", "events cannot be looked up now; ask again in a second"
	case !sale.Hot:
		return end, "not_pushed", "poll " + seatmapPath(event)
	}
	end, err = a.admit(ctx, sale, ticket)
	if p := refused(err); p != nil {
		return end, p.Code, p.Detail
	}
	if err != nil {
		a.feed.o.Log.WarnContext(ctx, "ticket of a socket not judged", "event", event, "err", err)
		return end, "unavailable", "tickets cannot be looked up now; ask again in a second"
	}
	return end, "", ""
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
func problem(err error) error {
	if p := refused(err); p != nil {
		return p
	}
	switch {
	case errors.Is(err, seatmap.ErrNoEvent):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event", Detail: "there is no event of this id"}
	case errors.Is(err, ErrStore):
		return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable", RetryAfter: time.Second,
			Detail: "the map cannot be read now; ask again in a second"}, err)
	default:
		return err
	}
}

// refused is what a ticket that lets nobody in means to its bearer, or nil.
func refused(err error) *web.Problem {
	const another = "; POST …/live-ticket for another"
	switch {
	case errors.Is(err, ErrNoTicket):
		return &web.Problem{Status: http.StatusUnauthorized, Code: "ticket_missing",
			Detail: "this map is guarded: POST …/live-ticket with your session, and show what it answers as ticket"}
	case errors.Is(err, ErrTicketForged):
		return &web.Problem{Status: http.StatusForbidden, Code: "ticket_invalid", Detail: "this is no ticket of this event" + another}
	case errors.Is(err, ErrTicketExpired):
		return &web.Problem{Status: http.StatusForbidden, Code: "ticket_expired", Detail: "the ticket was not used in time" + another}
	case errors.Is(err, ErrTicketUsed):
		return &web.Problem{Status: http.StatusForbidden, Code: "ticket_used", Detail: "a ticket is good for one stream" + another}
	default:
		return nil
	}
}
