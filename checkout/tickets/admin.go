package tickets

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"seatcast/web"
)

// MountAdmin adds the calls of a door to the group for operators. The first of
// them, web.ScanPath, is a scanner's too.
func (d *Door) MountAdmin(g *echo.Group) {
	g.POST("/scan", d.postScan)
	g.POST("/scan/undo", d.postUndo)
}

// Bounds of what is said at a door.
const (
	maxGate   = 60
	maxEvent  = 64
	maxReason = 500
)

// answer is what came of a call.
type answer struct {
	Result Result    `json:"result"`
	Ticket Ticket    `json:"ticket"`
	At     time.Time `json:"at"` // of the admission
	Gate   string    `json:"gate,omitempty"`
}

func (d *Door) postScan(c echo.Context) error {
	by, err := web.Scanner(c)
	if err != nil {
		return err
	}
	var body struct {
		Payload string `json:"payload"`
		Event   string `json:"event"`
		Gate    string `json:"gate"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	key, err := web.IdempotencyKey(c)
	if err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(body.Payload) == "":
		return web.Bad("bad_request", "send payload, what the ticket's QR code says")
	case body.Gate != "" && !sayable(body.Gate, maxGate):
		return web.Bad("bad_request", fmt.Sprintf("gate is 1 to %d characters", maxGate))
	case body.Event != "" && !sayable(body.Event, maxEvent):
		return web.Bad("bad_request", "event is the id of one")
	}
	t, a, err := d.Scan(c.Request().Context(), Scan{Payload: strings.TrimSpace(body.Payload), Event: body.Event, Gate: body.Gate, By: by, Request: key})
	if err != nil {
		return problem(err)
	}
	return tell(c, answer{Admitted, t, a.At.UTC(), a.Gate})
}

func (d *Door) postUndo(c echo.Context) error {
	by, err := web.Operator(c)
	if err != nil {
		return err
	}
	var body struct {
		Ticket string `json:"ticket"`
		Reason string `json:"reason"`
	}
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	switch {
	case !sayable(body.Ticket, maxPayload):
		return web.Bad("bad_request", "send ticket, the id of one")
	case !sayable(body.Reason, maxReason):
		return web.Bad("bad_request", fmt.Sprintf("say why, with reason: 1 to %d characters", maxReason))
	}
	t, a, err := d.Undo(c.Request().Context(), body.Ticket, by, body.Reason)
	if err != nil {
		return problem(err)
	}
	return tell(c, answer{Undone, t, a.At.UTC(), a.Gate})
}

func tell(c echo.Context, a answer) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, a)
}

// sayable says whether text is something to read, and not too long.
func sayable(text string, most int) bool {
	return strings.TrimSpace(text) != "" && utf8.ValidString(text) && utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, unicode.IsControl)
}
