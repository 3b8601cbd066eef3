package waitingroom

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/waitingroom/draw"
	"seatcast/web"
)

// MountAdmin adds the calls of operators to their group.
func (a *API) MountAdmin(g *echo.Group) {
	g.PUT("/rooms/:event", a.putRoom)
	g.GET("/rooms/:event", a.getRoom)
	g.DELETE("/rooms/:event", a.deleteRoom)
	g.PUT("/rooms/:event/rate", a.putRate)
	g.POST("/rooms/:event/pause", a.turning(Paused))
	g.POST("/rooms/:event/resume", a.turning(Open))
	g.POST("/rooms/:event/over", a.turning(Over))
	g.POST("/rooms/:event/open", a.postOpen)
	g.POST("/rooms/:event/draw", a.postDraw)
	g.POST("/rooms/:event/revoke", a.postRevoke)
	g.GET("/rooms/:event/suspects", a.getSuspects)
	g.POST("/rooms/:event/suspect", a.judging((*Rooms).Suspect))
	g.POST("/rooms/:event/trust", a.judging((*Rooms).Trust))
}

// termsBody is what an operator says of a room, and is told of it.
type termsBody struct {
	Rate           int            `json:"rate"` // people let in a minute
	Burst          int            `json:"burst"`
	Cap            int            `json:"cap"`
	SessionSeconds int            `json:"sessionSeconds"`
	JoinsAt        time.Time      `json:"joinsAt"`
	ClosesAt       *time.Time     `json:"closesAt"` // of the draw; null: there is none
	OpensAt        time.Time      `json:"opensAt"`
	External       *draw.External `json:"external,omitempty"`
	GuardsMap      bool           `json:"guardsMap"` // the map of seats is for who is inside
	Codes          bool           `json:"codes"`     // who joins needs one
	Proof          int            `json:"proof"`     // of work: the highest number to be tried; 0: none
	Slow           *slowBody      `json:"slow"`      // null: it never slows down
}

type roomBody struct {
	Event string `json:"event"`
	State State  `json:"state"`
	termsBody
	Draw  string `json:"draw,omitempty"`  // announced, frozen or drawn
	Frame any    `json:"frame,omitempty"` // what everybody is told

	Suspected *int  `json:"suspected,omitempty"` // accounts
	Measured  *sale `json:"measured,omitempty"`  // of the sale, within the last seconds
}

func (r *Room) body() roomBody {
	b := roomBody{Event: r.Event, State: r.State, termsBody: termsBody{Rate: r.Terms.Rate, Burst: r.Terms.Burst, Cap: r.Terms.Cap,
		SessionSeconds: int(r.Terms.Session.Seconds()), JoinsAt: r.Joins, OpensAt: r.Opens, GuardsMap: r.GuardsMap,
		Codes: r.Terms.Codes, Proof: r.Terms.Proof, Slow: r.Terms.Slow.body()}}
	if r.HasDraw() {
		b.ClosesAt, b.External, b.Draw = &r.Closes, &r.announced.External, r.drawState()
	}
	return b
}

// putRoom makes a room, or changes one.
func (a *API) putRoom(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	body := termsBody{Slow: usualSlow.body()} // what is not said stays so
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	p := Plan{Terms: Terms{Rate: body.Rate, Burst: body.Burst, Cap: body.Cap, Session: time.Duration(body.SessionSeconds) * time.Second,
		Codes: body.Codes, Proof: body.Proof, Slow: body.Slow.slow()},
		Joins: body.JoinsAt, Opens: body.OpensAt, GuardsMap: body.GuardsMap}
	if body.ClosesAt != nil {
		p.Closes = *body.ClosesAt
	}
	if body.External != nil {
		p.External = *body.External
	}
	if err := p.Check(); err != nil {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "bad_room", Detail: strings.TrimPrefix(err.Error(), "draw: ")}
	}
	return a.changed(c)(a.rooms.Put(c.Request().Context(), c.Param("event"), p))
}

func (a *API) getRoom(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	ctx := c.Request().Context()
	room, err := a.rooms.Room(ctx, c.Param("event"))
	if err != nil {
		return problem(err)
	}
	b := room.body()
	if _, _, err := a.rooms.Frame(ctx, room.Event); err == nil {
		h := a.rooms.hall(room)
		b.Frame, b.Measured = h.shown(), h.measured()
	}
	if n, err := a.rooms.o.Store.suspected(ctx, room.Event); err == nil {
		b.Suspected = &n
	}
	return c.JSON(http.StatusOK, b)
}

// How many suspects are listed at a time.
const (
	usualSuspects = 200
	mostSuspects  = 5000
)

// getSuspects answers who waits and is not let in, the latest first.
func (a *API) getSuspects(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	q := SuspectQuery{Limit: usualSuspects}
	var err error
	if text := c.QueryParam("before"); text != "" {
		if q.Before, err = parseCursor(text); err != nil {
			return web.Bad("bad_request", "before is what next was of an earlier page")
		}
	}
	if text := c.QueryParam("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > mostSuspects {
			return web.Bad("bad_request", fmt.Sprintf("limit is 1 to %d", mostSuspects))
		}
	}
	limit := q.Limit
	q.Limit++ // whether there are more
	all, err := a.rooms.Suspects(c.Request().Context(), c.Param("event"), q)
	if err != nil {
		return problem(err)
	}
	page := struct {
		Suspects []Suspect `json:"suspects"`
		Next     string    `json:"next,omitempty"` // ask for what is before it; absent: that was all
	}{Suspects: all}
	if len(all) > limit {
		page.Suspects, page.Next = all[:limit], all[limit-1].cursor()
	}
	return c.JSON(http.StatusOK, page)
}

// cursor names a place in the list of suspects.
func (s *Suspect) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", s.At.UnixMicro(), s.User))
}

// parseCursor is the way back.
func parseCursor(text string) (s Suspect, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return s, err
	}
	number, user, _ := strings.Cut(string(raw), " ")
	micros, err := strconv.ParseInt(number, 10, 64)
	if err != nil || micros < 0 || micros > latestMicros || user == "" || strings.ContainsRune(user, 0) || !utf8.ValidString(user) {
		return s, errors.New("waitingroom: no cursor of ours")
	}
	return Suspect{User: user, At: time.UnixMicro(micros)}, nil
}

// latestMicros is in the year 5138: Postgres knows later days, a cursor need not.
const latestMicros = 100_000_000_000 * 1_000_000

// judging says of an account whether it is suspected.
func (a *API) judging(judge func(*Rooms, context.Context, string, string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := web.Operator(c); err != nil {
			return err
		}
		var body struct {
			User string `json:"user"`
		}
		if err := web.Bind(c, &body); err != nil {
			return err
		}
		if body.User == "" || strings.ContainsRune(body.User, 0) {
			return web.Bad("bad_request", "name an account, with user")
		}
		if err := judge(a.rooms, c.Request().Context(), c.Param("event"), body.User); err != nil {
			return problem(err)
		}
		return c.NoContent(http.StatusNoContent)
	}
}

// deleteRoom removes a room.
func (a *API) deleteRoom(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	err := a.rooms.Drop(c.Request().Context(), c.Param("event"))
	if errors.Is(err, ErrState) {
		return &web.Problem{Status: http.StatusConflict, Code: "room_state",
			Detail: "people could join this room already: end it first, with POST /v1/admin/rooms/{event}/over, or with state draw wait until its list is frozen"}
	}
	if err != nil {
		return refused(err)
	}
	return c.NoContent(http.StatusNoContent)
}

func (a *API) putRate(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	var body struct {
		Rate  *int `json:"rate"`
		Burst int  `json:"burst"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	if body.Rate == nil || *body.Rate < 0 || *body.Rate > mostRate || body.Burst < 0 || body.Burst > mostRate {
		return web.Bad("bad_request", "rate is how many people are let in a minute, 0 or more; burst, which may be left out, how many at once")
	}
	return a.changed(c)(a.rooms.Rate(c.Request().Context(), c.Param("event"), *body.Rate, body.Burst))
}

func (a *API) turning(to State) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := web.Operator(c); err != nil {
			return err
		}
		return a.changed(c)(a.rooms.Turn(c.Request().Context(), c.Param("event"), to))
	}
}

func (a *API) postOpen(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	return a.changed(c)(a.rooms.Open(c.Request().Context(), c.Param("event")))
}

// postDraw takes in what the external source has told.
func (a *API) postDraw(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	var body struct {
		Told draw.Hex `json:"told"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	return a.changed(c)(a.rooms.Told(c.Request().Context(), c.Param("event"), body.Told))
}

// postRevoke ends one pass, or what an account has.
func (a *API) postRevoke(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	var body struct {
		JTI  string `json:"jti"`
		User string `json:"user"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	ctx, event := c.Request().Context(), c.Param("event")
	var err error
	switch {
	case (body.JTI == "") == (body.User == ""):
		return web.Bad("bad_request", "name a pass, with jti, or an account, with user")
	case body.User != "":
		err = a.rooms.RevokeUser(ctx, event, body.User)
	default:
		err = a.rooms.RevokePass(ctx, event, body.JTI)
	}
	if err != nil {
		return refused(err)
	}
	return c.NoContent(http.StatusNoContent)
}

// changed answers with a room that was changed.
func (a *API) changed(c echo.Context) func(*Room, error) error {
	return func(r *Room, err error) error {
		if err != nil {
			return refused(err)
		}
		return c.JSON(http.StatusOK, r.body())
	}
}

// refused is the table of what errors mean to an operator.
func refused(err error) error {
	conflict := func(code, detail string) error {
		return &web.Problem{Status: http.StatusConflict, Code: code, Detail: detail}
	}
	switch {
	case errors.Is(err, seatmap.ErrNoEvent):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event", Detail: "there is no such event"}
	case errors.Is(err, ErrState):
		return conflict("room_state", "the room is not in a state for this: GET /v1/admin/rooms/{event} tells which it is in")
	case errors.Is(err, ErrAnnounced):
		return conflict("draw_announced", "when people join, when the list closes and what is drawn with stand once anybody could join, and the opening once it was")
	case errors.Is(err, ErrPast):
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "bad_room", Detail: "joinsAt of a draw lies ahead: what is drawn with is announced before anybody can join"}
	case errors.Is(err, draw.ErrExternal):
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "bad_external", Detail: "this is not what was announced: of a drand round its signature, of a committer their 32 bytes, as hex"}
	case errors.Is(err, ErrForged):
		return web.Bad("bad_request", "jti is not that of a pass")
	}
	return problem(err)
}
