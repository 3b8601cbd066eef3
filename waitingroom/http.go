package waitingroom

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"seatcast/seatmap"
	"seatcast/waitingroom/draw"
	"seatcast/web"
)

// Streams holds the sessions of those who watch; the hub does.
type Streams interface {
	// Serve streams a topic as Server-Sent Events until the session ends. An
	// error says that nothing was written.
	Serve(w http.ResponseWriter, r *http.Request, topic string) error
}

// API serves the calls of those who wait.
type API struct {
	rooms   *Rooms
	streams Streams  // nil: nobody watches here
	limits  *limiter // nil: there are none
}

// NewAPI returns the calls of rooms.
func NewAPI(rooms *Rooms) *API { return &API{rooms: rooms} }

// Watched has those who wait watch through s.
func (a *API) Watched(s Streams) *API {
	a.streams = s
	return a
}

// Limited has accounts and addresses call no more often than l says. What is refused
// is counted in reg.
func (a *API) Limited(l Limits, reg prometheus.Registerer) *API {
	a.limits = newLimiter(l, reg)
	return a
}

// MountPublic adds to g, which is /v1, what is the same for everybody.
func (a *API) MountPublic(g *echo.Group) {
	g.GET("/passes/keys", a.keys)
	g.GET("/queue/:event", a.frame)
	g.GET("/queue/:event/draw", a.draw)
	g.GET("/queue/:event/draw/list", a.list)
	g.GET("/queue/:event/draw/shards/:shard", a.shard)
	if a.streams != nil {
		g.GET("/queue/:event/live", a.live)
	}
}

// Mount adds to g, which is /v1, the calls that are one account's.
func (a *API) Mount(g *echo.Group) {
	g.POST("/queue/:event", a.join)
	g.GET("/queue/:event/me", a.me)
	g.DELETE("/queue/:event/me", a.leave)
	g.POST("/queue/:event/pass", a.pass)
	g.GET("/queue/:event/challenge", a.challenge)
}

// caller returns whose call it is, unless there were too many.
func (a *API) caller(c echo.Context, call string) (user string, err error) {
	user, err = web.User(c)
	if err != nil || a.limits == nil {
		return user, err
	}
	room := c.Param("event")
	if !a.rooms.Has(room) {
		room = ""
	}
	ok, far := a.limits.allow(call, c.RealIP(), user, room)
	if far {
		a.rooms.doubted(room, user)
	}
	if !ok {
		return "", &web.Problem{Status: http.StatusTooManyRequests, Code: "too_many_requests", RetryAfter: again(2 * time.Second), Common: true,
			Detail: "so many calls of this account or address are too many; what you have is kept"}
	}
	return user, nil
}

// heldBody is what somebody has, as they are told.
type heldBody struct {
	Ticket       draw.ID      `json:"ticket"`
	State        State        `json:"state"`                  // of the room
	Draw         bool         `json:"draw,omitempty"`         // takes part in the draw: there is no number yet
	Nonce        string       `json:"nonce,omitempty"`        // on the list of the draw
	Number       int64        `json:"number,omitempty"`       // the place
	InsideUntil  *time.Time   `json:"insideUntil,omitempty"`  // was let in: POST …/pass
	Place        string       `json:"place,omitempty"`        // signed: the receipt. To be kept
	Announcement *draw.Digest `json:"announcement,omitempty"` // of the draw
	Cloudflare   *cloudflare  `json:"cfWaitingRoom,omitempty"`
}

func (h *Held) body() heldBody {
	b := heldBody{Ticket: h.Ticket.ID, State: h.Room.State, Draw: h.Drawn, Nonce: h.Nonce, Number: h.Number, Place: h.Place}
	if !h.Until.IsZero() {
		b.InsideUntil = &h.Until
	}
	if h.Room.HasDraw() {
		d := h.Room.announced.Digest()
		b.Announcement = &d
	}
	return b
}

// join answers 201 with a new place, or 200 with the one the account has.
func (a *API) join(c echo.Context) error {
	user, err := a.caller(c, "join")
	if err != nil {
		return err
	}
	var body struct {
		Nonce  *draw.ID `json:"nonce"`
		Place  string   `json:"place"`
		Room   int64    `json:"room"`
		Code   string   `json:"code"`
		Altcha string   `json:"altcha"`
		Waited string   `json:"waited"`
	}
	if err := bindAny(c, &body); err != nil {
		return err
	}
	h, err := a.rooms.Join(c.Request().Context(), c.Param("event"), user, Brought(body))
	if err != nil {
		return problem(err)
	}
	status := http.StatusOK
	if h.New {
		status = http.StatusCreated
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(status, h.body())
}

// bindAny reads a body that may be absent.
func bindAny(c echo.Context, v any) error {
	if c.Request().ContentLength == 0 {
		return nil
	}
	return web.Bind(c, v)
}

// me answers what the account has.
func (a *API) me(c echo.Context) error {
	user, err := a.caller(c, "me")
	if err != nil {
		return err
	}
	ctx, event := c.Request().Context(), c.Param("event")
	h, err := a.rooms.Find(ctx, event, user)
	if err != nil {
		return problem(err)
	}
	b := h.body()
	if strings.Contains(c.Request().Header.Get(echo.HeaderAccept), echo.MIMEApplicationJSON) {
		if _, _, err := a.rooms.Frame(ctx, event); err != nil {
			return problem(err)
		}
		b.Cloudflare = h.cloudflare(a.rooms.hall(h.Room).shown(), time.Now())
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	c.Response().Header().Add(echo.HeaderVary, echo.HeaderAccept)
	return c.JSON(http.StatusOK, b)
}

func (a *API) leave(c echo.Context) error {
	user, err := a.caller(c, "leave")
	if err != nil {
		return err
	}
	if err := a.rooms.Leave(c.Request().Context(), c.Param("event"), user); err != nil {
		return problem(err)
	}
	return c.NoContent(http.StatusNoContent)
}

// pass answers 200 with a pass once it is the account's turn, and until then 202
// with when to ask again.
func (a *API) pass(c echo.Context) error {
	user, err := a.caller(c, "claim")
	if err != nil {
		return err
	}
	var body struct {
		Place string `json:"place"`
	}
	if err := bindAny(c, &body); err != nil {
		return err
	}
	turn, pass, err := a.rooms.Claim(c.Request().Context(), c.Param("event"), user, body.Place)
	if err != nil {
		return problem(err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	switch {
	case pass != "":
		return c.JSON(http.StatusOK, struct {
			Pass      string    `json:"pass"`
			ExpiresAt time.Time `json:"expiresAt"`
		}{pass, turn.Inside.Truncate(time.Second)})
	case turn.State == Draw || turn.State == Closed:
		return problem(ErrNotYet)
	case turn.State == Paused:
		return &web.Problem{Status: http.StatusConflict, Code: "queue_paused", RetryAfter: again(10 * time.Second), Common: true,
			Detail: "nobody is let in for the moment; every place is kept", Extra: map[string]any{"number": turn.Number}}
	}
	wait := again(8 * time.Second) // called is told by the frame: asking sooner is of no use
	if turn.Called {
		wait = again(2 * time.Second) // who is silent for five seconds is passed over
	}
	c.Response().Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
	if turn.Called {
		return c.JSON(http.StatusAccepted, map[string]int64{"ahead": turn.Ahead})
	}
	return c.JSON(http.StatusAccepted, map[string]int64{"number": turn.Number})
}

// challenge answers with work to be done before this account joins, or with what stands
// in for it once that has been waited for.
func (a *API) challenge(c echo.Context) error {
	user, err := a.caller(c, "challenge")
	if err != nil {
		return err
	}
	ctx, event := c.Request().Context(), c.Param("event")
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	if c.QueryParams().Has("wait") {
		token, wait, err := a.rooms.Wait(ctx, event, user)
		if err != nil {
			return problem(err)
		}
		return c.JSON(http.StatusOK, struct {
			Waited  string `json:"waited"`
			Seconds int    `json:"seconds"` // until it is good
		}{token, int((wait + time.Second - 1) / time.Second)})
	}
	work, err := a.rooms.Challenge(ctx, event, user)
	if err != nil {
		return problem(err)
	}
	return c.JSON(http.StatusOK, work)
}

// again draws a wait about so long, in whole seconds: nobody comes back together.
func again(d time.Duration) time.Duration {
	s := int(d / time.Second)
	return time.Duration(max(1, s/2+rand.IntN(s+1))) * time.Second
}

// frame answers what everybody is told.
func (a *API) frame(c echo.Context) error {
	n, text, err := a.rooms.Frame(c.Request().Context(), c.Param("event"))
	if err != nil {
		return problem(err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "public, max-age=1")
	tag := `"` + strconv.FormatInt(n, 10) + `"`
	c.Response().Header().Set("ETag", tag)
	if c.Request().Header.Get("If-None-Match") == tag {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, text)
}

// jwk is a public key as RFC 7518 writes it.
type jwk struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	ID    string `json:"kid"`
	X     string `json:"x"`
	Y     string `json:"y"`
}

// keys answers what places and passes may be signed with.
func (a *API) keys(c echo.Context) error {
	all := []jwk{}
	for id, key := range a.rooms.o.Keys.Public() {
		raw, err := key.Bytes() // 4, x, y
		if err != nil {
			return err
		}
		x, y := raw[1:len(raw)/2+1], raw[len(raw)/2+1:]
		all = append(all, jwk{"EC", "P-256", "sig", "ES256", id, base64.RawURLEncoding.EncodeToString(x), base64.RawURLEncoding.EncodeToString(y)})
	}
	slices.SortFunc(all, func(a, b jwk) int { return strings.Compare(a.ID, b.ID) })
	c.Response().Header().Set(echo.HeaderCacheControl, "public, max-age=300")
	return c.JSON(http.StatusOK, map[string][]jwk{"keys": all})
}

// live streams the frames.
func (a *API) live(c echo.Context) error {
	event := c.Param("event")
	if _, err := a.rooms.Room(c.Request().Context(), event); err != nil {
		return problem(err)
	}
	if err := a.streams.Serve(web.Stream(c), c.Request(), Topic(event)); err != nil {
		return problem(err)
	}
	c.Response().Committed = true
	return nil
}

// Allow returns a code when a topic of a socket is no room's.
func (a *API) Allow(ctx context.Context, topic string) (code, detail string) {
	event, _ := eventOf(topic)
	switch _, err := a.rooms.Room(ctx, event); {
	case errors.Is(err, ErrNoRoom):
		return "unknown_topic", "the event has no waiting room"
	case err != nil:
		return "unavailable", "rooms cannot be looked up now; ask again in a second"
	}
	return "", ""
}

// drawBody is all that is published of a draw so far but its tickets.
type drawBody struct {
	State        string            `json:"state"`             // announced, frozen or drawn
	Announcement draw.Announcement `json:"announcement"`      // exactly as it was published
	Digest       draw.Digest       `json:"digest"`            // of it: every receipt carries it
	Tickets      *int              `json:"tickets,omitempty"` // of a list that is frozen, 0 too
	Root         *draw.Digest      `json:"root,omitempty"`
	FrozenAt     *time.Time        `json:"frozenAt,omitempty"`
	Seed         *draw.Digest      `json:"seed,omitempty"`
	Told         draw.Hex          `json:"told,omitempty"`
	Key          *draw.Digest      `json:"key,omitempty"`
	DrawnAt      *time.Time        `json:"drawnAt,omitempty"`
	Shards       int               `json:"shards,omitempty"` // how many; a ticket's is told by its first bits
	List         string            `json:"list,omitempty"`   // what seatcast verify-draw reads
}

func (a *API) draw(c echo.Context) error {
	ctx := c.Request().Context()
	room, err := a.rooms.Room(ctx, c.Param("event"))
	if err != nil {
		return problem(err)
	}
	if !room.HasDraw() {
		return problem(errNoDraw)
	}
	b := drawBody{State: room.drawState(), Announcement: room.announced, Digest: room.announced.Digest()}
	if b.State != "announced" {
		b.Tickets, b.Root, b.FrozenAt = &room.Tickets, &room.Root, &room.Frozen
	}
	if b.State == "drawn" {
		d, err := a.rooms.published(ctx, room.Event)
		if err != nil {
			return problem(err)
		}
		b.Seed, b.Told, b.Key, b.DrawnAt = &d.record.Seed, room.Told, &room.Key, &room.Drawn
		b.Shards, b.List = len(d.shards), framePath(room.Event)+"/draw/list?key="+room.Key.String()
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "public, max-age=2")
	return c.JSON(http.StatusOK, b)
}

// drawn is the draw a call is about. With its key, which names seed, value and list,
// the answer never changes, and caches are told so.
func (a *API) drawn(c echo.Context) (*drawnList, error) {
	d, err := a.rooms.published(c.Request().Context(), c.Param("event"))
	if err != nil {
		return nil, problem(drawError(err))
	}
	control := "public, max-age=60"
	if key := c.QueryParam("key"); key == d.record.Key.String() {
		control = "public, max-age=31536000, immutable"
	} else if key != "" {
		return nil, &web.Problem{Status: http.StatusNotFound, Code: "unknown_draw", Detail: "the draw of this event has another key: GET /v1/queue/{event}/draw"}
	}
	c.Response().Header().Set(echo.HeaderCacheControl, control)
	return d, nil
}

func (a *API) shard(c echo.Context) error {
	d, err := a.drawn(c)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(c.Param("shard"))
	if err != nil || n < 0 || n >= len(d.shards) {
		c.Response().Header().Del(echo.HeaderCacheControl)
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_shard", Detail: fmt.Sprintf("shards are 0 to %d", len(d.shards)-1)}
	}
	return c.JSON(http.StatusOK, d.shards[n])
}

func (a *API) list(c echo.Context) error {
	d, err := a.drawn(c)
	if err != nil {
		return err
	}
	text, err := d.file()
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "application/x-ndjson", text)
}

var (
	errNoDraw   = errors.New("waitingroom: there is no draw")
	errNotDrawn = errors.New("waitingroom: the draw is not over")
)

// drawError is what a state means to who asks for a list.
func drawError(err error) error {
	if errors.Is(err, ErrState) {
		return errNotDrawn
	}
	return err
}

// problem is the table of what errors mean to who waits. What is not in it is a
// fault of ours.
func problem(err error) error {
	switch {
	case errors.Is(err, ErrNoRoom):
		return &web.Problem{Status: http.StatusNotFound, Code: "no_queue", Detail: "this event has no waiting room, or does not exist"}
	case errors.Is(err, ErrOtherRoom):
		return &web.Problem{Status: http.StatusConflict, Code: "other_room", Detail: "the event has another waiting room than the one that is meant: GET /v1/queue/{event} tells of it, and joining without room joins it"}
	case errors.Is(err, ErrNotYet):
		return &web.Problem{Status: http.StatusConflict, Code: "queue_not_open", RetryAfter: again(10 * time.Second), Common: true,
			Detail: "it is not the time for this yet: GET /v1/queue/{event} says when"}
	case errors.Is(err, ErrClosing):
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "queue_closing", RetryAfter: again(2 * time.Second),
			Detail: "the list of the draw is being frozen; try again: you will be behind it"}
	case errors.Is(err, ErrOver):
		return &web.Problem{Status: http.StatusGone, Code: "queue_over", Detail: "nobody is let in any more"}
	case errors.Is(err, ErrNoPlace):
		return &web.Problem{Status: http.StatusNotFound, Code: "no_place", Detail: "this account has no place in the line: POST /v1/queue/{event}"}
	case errors.Is(err, errNoDraw):
		return &web.Problem{Status: http.StatusNotFound, Code: "no_draw", Detail: "this line is in the order of arrival"}
	case errors.Is(err, errNotDrawn):
		return &web.Problem{Status: http.StatusNotFound, Code: "not_drawn", RetryAfter: again(2 * time.Second), Detail: "the draw is not over yet"}
	case errors.Is(err, ErrCodeRequired):
		return &web.Problem{Status: http.StatusForbidden, Code: "code_required", Detail: "join with the code that you were sent, as code"}
	case errors.Is(err, ErrBadCode):
		return &web.Problem{Status: http.StatusForbidden, Code: "bad_code", Detail: "this is no code for this event"}
	case errors.Is(err, ErrCodeUsed):
		return &web.Problem{Status: http.StatusConflict, Code: "code_used", Detail: "another account has joined with this code"}
	case errors.Is(err, ErrNoProof):
		return &web.Problem{Status: http.StatusNotFound, Code: "no_proof", Detail: "nobody is asked for a proof here: POST /v1/queue/{event}"}
	case errors.Is(err, ErrProofRequired):
		return &web.Problem{Status: http.StatusForbidden, Code: "proof_required", Detail: "GET /v1/queue/{event}/challenge, and join with its solution as altcha"}
	case errors.Is(err, ErrBadProof):
		return &web.Problem{Status: http.StatusForbidden, Code: "bad_proof", Detail: "this is no proof of this account for this event, or of too little work: GET /v1/queue/{event}/challenge anew"}
	case errors.Is(err, ErrProofExpired):
		return &web.Problem{Status: http.StatusForbidden, Code: "proof_expired", Detail: "the time of this proof is over: GET /v1/queue/{event}/challenge anew"}
	case errors.Is(err, ErrProofEarly):
		return &web.Problem{Status: http.StatusConflict, Code: "proof_early", RetryAfter: again(4 * time.Second), Detail: "this is not good yet: wait for as many seconds as it came with"}
	case errors.Is(err, ErrProofUsed):
		return &web.Problem{Status: http.StatusConflict, Code: "proof_used", Detail: "somebody has joined with this proof: GET /v1/queue/{event}/challenge anew"}
	case errors.Is(err, ErrNoPass):
		return &web.Problem{Status: http.StatusForbidden, Code: "pass_required", Detail: "people are let in one by one: POST /v1/queue/{event} for a place, and show the pass you get as Seatcast-Pass"}
	case errors.Is(err, ErrForged):
		return &web.Problem{Status: http.StatusForbidden, Code: "pass_invalid", Detail: "this is no pass of this account for this event"}
	case errors.Is(err, ErrExpired):
		return &web.Problem{Status: http.StatusForbidden, Code: "pass_expired", Detail: "the time inside is over: POST /v1/queue/{event} for another place"}
	case errors.Is(err, seatmap.ErrUnavailable), errors.Is(err, errCold):
		return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable", RetryAfter: again(2 * time.Second),
			Detail: "the waiting room does not answer at the moment; every place is kept: try again"}, err)
	}
	return err
}

// Passes judge the passes of those who book.
type Passes struct{ rooms *Rooms }

// NewPasses returns a judge of the passes of rooms.
func NewPasses(rooms *Rooms) Passes { return Passes{rooms} }

// Admit is Rooms.Admit with errors that are ready to be returned.
func (p Passes) Admit(ctx context.Context, event, user, token string) (*seatmap.Pass, error) {
	pass, err := p.rooms.Admit(ctx, event, user, token)
	if err != nil {
		return nil, problem(err)
	}
	return pass, nil
}

// Watch returns until when an account may watch the map of an event with the pass
// it shows; the zero time where the room guards no map. Its errors are ready to be
// returned. It asks nothing of Redis: a pass that was revoked shows the map until
// its time is over, and books nothing.
func (p Passes) Watch(ctx context.Context, event, user, token string) (until time.Time, err error) {
	room, err := p.rooms.Room(ctx, event)
	if errors.Is(err, ErrNoRoom) || err == nil && !room.GuardsMap {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, problem(err)
	}
	pass, err := p.Admit(ctx, event, user, token)
	if err != nil {
		return time.Time{}, err
	}
	return pass.Until, nil
}
