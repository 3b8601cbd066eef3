package checkout

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// MountAdmin adds the calls with which operators close and open seats, and give
// money back, to the group for operators.
func (d *Desk) MountAdmin(g *echo.Group) {
	g.GET("/events/:event/seats", d.getSeats)
	g.GET("/events/:event/figures", d.getFigures)
	g.POST("/events/:event/kill", d.postKill)
	g.POST("/events/:event/off-sale", d.postOffSale)
	g.POST("/events/:event/release", d.postRelease)
	g.GET("/events/:event/channels", d.getChannels)
	g.PUT("/events/:event/channels/:channel", d.putChannel)
	g.DELETE("/events/:event/channels/:channel", d.deleteChannel)
	g.POST("/events/:event/channels/:channel/open", d.postChannelOpen)
	g.POST("/events/:event/channels/:channel/close", d.postChannelClose)
	g.POST("/events/:event/cancel", d.postCancel)
	g.PATCH("/events/:event/cancel", d.patchCancel)
	g.GET("/events/:event/cancel", d.getCancel)
	g.GET("/bookings/:booking", d.getOfficeBooking)
	g.POST("/bookings/:booking/refund", d.postRefund)
}

// Bounds of what an operator says.
const (
	maxReason    = 500
	maxBookings  = 500
	usualListing = 200
	mostListed   = 5000
)

// office is what every call needs: who asks, and of which event.
func (d *Desk) office(c echo.Context) (operator string, sale *seatmap.Sale, err error) {
	if operator, err = web.Operator(c); err != nil {
		return "", nil, err
	}
	sale, err = d.sales.Sale(c.Request().Context(), c.Param("event"))
	if errors.Is(err, seatmap.ErrNoEvent) {
		return "", nil, &web.Problem{Status: http.StatusNotFound, Code: "unknown_event", Detail: "there is no such event"}
	}
	if err != nil {
		return "", nil, d.problem(c, err)
	}
	return operator, sale, nil
}

func (d *Desk) postKill(c echo.Context) error {
	operator, sale, err := d.office(c)
	if err != nil {
		return err
	}
	var body struct {
		pick
		Reason   string `json:"reason"`
		EvenHeld bool   `json:"evenHeld"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	if !sayable(body.Reason, maxReason) {
		return web.Bad("bad_request", fmt.Sprintf("say why, with reason: 1 to %d characters", maxReason))
	}
	return d.close(c, sale, body.pick, Close{Reason: body.Reason, By: operator, EvenHeld: body.EvenHeld})
}

func (d *Desk) postOffSale(c echo.Context) error {
	_, sale, err := d.office(c)
	if err != nil {
		return err
	}
	var body struct {
		pick
		EvenHeld bool `json:"evenHeld"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	return d.close(c, sale, body.pick, Close{EvenHeld: body.EvenHeld})
}

func (d *Desk) close(c echo.Context, sale *seatmap.Sale, p pick, how Close) (err error) {
	if how.Seats, err = p.seats(sale); err != nil {
		return err
	}
	a, err := d.Close(c.Request().Context(), sale.Event, how)
	return d.altered(c, sale, a, err)
}

// sayable says whether text is something to read, and not too long.
func sayable(text string, most int) bool {
	return strings.TrimSpace(text) != "" && utf8.ValidString(text) && utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, unicode.IsControl)
}

// altered answers with what came of a change.
func (d *Desk) altered(c echo.Context, sale *seatmap.Sale, a Altered, err error) error {
	if err != nil {
		return d.unaltered(c, sale, err)
	}
	return private(c, http.StatusOK, a)
}

func (d *Desk) unaltered(c echo.Context, sale *seatmap.Sale, err error) error {
	var seats *SeatsError
	switch {
	case errors.As(err, &seats) && len(seats.Sold) > 0:
		return &web.Problem{Status: http.StatusConflict, Code: "seats_sold", Extra: map[string]any{"seats": named(sale, seats.Sold)},
			Detail: "of these seats a ticket is sold; refund it first. Nothing changed."}
	case errors.As(err, &seats):
		return &web.Problem{Status: http.StatusConflict, Code: "seats_held", Extra: map[string]any{"seats": named(sale, seats.Held)},
			Detail: "somebody holds these seats; nothing changed. With evenHeld: true they are closed all the same, and whoever holds them is told that they are lost."}
	case errors.Is(err, ErrNoChannel):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_channel", Detail: "this event has no such channel"}
	}
	return d.problem(c, err)
}

// postRelease takes back kill and off-sale, and gives back bookings.
func (d *Desk) postRelease(c echo.Context) error {
	_, sale, err := d.office(c)
	if err != nil {
		return err
	}
	var body struct {
		pick
		Holds    bool     `json:"holds"` // of the seats, too
		Bookings []string `json:"bookings"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	if err := ofEvent(sale.Event, body.Bookings); err != nil {
		return err
	}
	var seats []int
	if !body.empty() || len(body.Bookings) == 0 {
		if seats, err = body.pick.seats(sale); err != nil {
			return err
		}
	}
	ctx := c.Request().Context()
	if body.Holds {
		holding, err := d.holds.Holding(ctx, sale.Event, seats)
		if err != nil {
			return d.problem(c, err)
		}
		body.Bookings = append(body.Bookings, bookingsOf(sale.Event, holding)...)
	}
	var a Altered
	if len(seats) > 0 {
		if a, err = d.Reopen(ctx, sale.Event, seats); err != nil {
			return d.unaltered(c, sale, err)
		}
	}
	released, err := d.giveBackAll(c, body.Bookings)
	if err != nil {
		return err
	}
	return private(c, http.StatusOK, struct {
		Altered
		Released []string `json:"released"`
	}{a, released})
}

// ofEvent refuses bookings that cannot be of the event.
func ofEvent(event string, bookings []string) error {
	if len(bookings) > maxBookings {
		return refuse("too_many_bookings", fmt.Sprintf("one call gives back at most %d bookings", maxBookings), nil)
	}
	for _, id := range bookings {
		if of, _, ok := seatmap.ParseBookingID(id); !ok || of != event {
			return refuse("unknown_booking", "these are no bookings of this event; nothing changed", map[string]any{"bookings": []string{id}})
		}
	}
	return nil
}

// giveBackAll gives back what can be given back. When something cannot, the
// answer is that of the first, with all that was and was not.
func (d *Desk) giveBackAll(c echo.Context, ids []string) ([]string, error) {
	released, refused := []string{}, []string{}
	var first error
	for _, id := range ids {
		err := d.GiveBack(c.Request().Context(), id)
		if err == nil {
			released = append(released, id)
			continue
		}
		refused = append(refused, id)
		if first == nil {
			first = d.problem(c, err)
		}
	}
	var p *web.Problem
	if !errors.As(first, &p) {
		return released, first
	}
	told := *p
	told.Extra = map[string]any{"released": released, "refused": refused}
	return nil, &told
}

var channelName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// generalChannel is how the seats of no channel are asked for.
const generalChannel = "general"

// ofChannel is office and the channel of the route.
func (d *Desk) ofChannel(c echo.Context) (name string, sale *seatmap.Sale, err error) {
	if _, sale, err = d.office(c); err != nil {
		return "", nil, err
	}
	name = c.Param("channel")
	if !channelName.MatchString(name) || name == generalChannel {
		return "", nil, web.Bad("bad_channel", "a channel's name is 1 to 40 lower-case letters, digits, dashes and underscores, and not "+generalChannel)
	}
	return name, sale, nil
}

func (d *Desk) putChannel(c echo.Context) error {
	name, sale, err := d.ofChannel(c)
	if err != nil {
		return err
	}
	var body struct {
		pick
		OpensAt  json.RawMessage `json:"opensAt"` // absent, null or a time
		EvenHeld bool            `json:"evenHeld"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	p := PutChannel{Name: name, EvenHeld: body.EvenHeld, Timed: len(body.OpensAt) > 0}
	if p.Timed {
		if p.OpensAt, err = opening(body.OpensAt); err != nil {
			return err
		}
	}
	if !body.empty() {
		if p.Seats, err = body.pick.seats(sale); err != nil {
			return err
		}
	}
	a, err := d.SetChannel(c.Request().Context(), sale.Event, p)
	return d.altered(c, sale, a, err)
}

// opening reads when a channel opens: null for by hand.
func opening(raw json.RawMessage) (*time.Time, error) {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, badOpening()
	}
	if text == nil {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return nil, badOpening()
	}
	return &at, nil
}

func badOpening() error {
	return web.Bad("bad_time", "opensAt is a time as RFC 3339 has it, with its zone, such as 2027-03-01T10:00:00+01:00; or null, to open by hand")
}

func (d *Desk) getChannels(c echo.Context) error {
	_, sale, err := d.office(c)
	if err != nil {
		return err
	}
	all, err := d.store.Channels(c.Request().Context(), sale.Event)
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, map[string]any{"channels": all})
}

func (d *Desk) deleteChannel(c echo.Context) error {
	name, sale, err := d.ofChannel(c)
	if err != nil {
		return err
	}
	a, err := d.DropChannel(c.Request().Context(), sale.Event, name)
	return d.altered(c, sale, a, err)
}

func (d *Desk) postChannelOpen(c echo.Context) error {
	name, sale, err := d.ofChannel(c)
	if err != nil {
		return err
	}
	a, err := d.OpenChannel(c.Request().Context(), sale.Event, name)
	return d.altered(c, sale, a, err)
}

func (d *Desk) postChannelClose(c echo.Context) error {
	name, sale, err := d.ofChannel(c)
	if err != nil {
		return err
	}
	var body struct {
		EvenHeld bool `json:"evenHeld"`
	}
	if c.Request().ContentLength != 0 {
		if err := web.Bind(c, &body); err != nil {
			return err
		}
	}
	a, err := d.CloseChannel(c.Request().Context(), sale.Event, name, body.EvenHeld)
	return d.altered(c, sale, a, err)
}

func (d *Desk) getSeats(c echo.Context) error {
	_, sale, err := d.office(c)
	if err != nil {
		return err
	}
	q, err := seatQuery(c)
	if err != nil {
		return err
	}
	list, err := d.Seats(c.Request().Context(), sale, q)
	if err != nil {
		return d.problem(c, err)
	}
	return private(c, http.StatusOK, list)
}

var seatStatuses = []string{seatAvailable, seatHeld, seatSold, seatUnavailable}

func seatQuery(c echo.Context) (q SeatQuery, err error) {
	q = SeatQuery{Status: c.QueryParam("status"), After: -1, Limit: usualListing,
		pick: pick{Section: c.QueryParam("section"), Row: c.QueryParam("row"), Category: c.QueryParam("category")}}
	if q.Status != "" && !slices.Contains(seatStatuses, q.Status) {
		return q, web.Bad("bad_request", "status is one of "+strings.Join(seatStatuses, ", "))
	}
	switch name := c.QueryParam("channel"); {
	case name == generalChannel:
		q.Channel = new(string)
	case channelName.MatchString(name):
		q.Channel = &name
	case name != "":
		return q, web.Bad("bad_request", "channel is the name of one, or "+generalChannel)
	}
	if text := c.QueryParam("after"); text != "" {
		if q.After, err = strconv.Atoi(text); err != nil || q.After < 0 || q.After > math.MaxInt32 {
			return q, web.Bad("bad_request", "after is the number that next was of an earlier page")
		}
	}
	if text := c.QueryParam("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > mostListed {
			return q, web.Bad("bad_request", fmt.Sprintf("limit is 1 to %d", mostListed))
		}
	}
	return q, nil
}
