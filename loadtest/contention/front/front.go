package front

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
)

// Options say what a front asks for seats, and where.
type Options struct {
	Strategy string
	Event    string
	Key      []byte // sessions are signed with it
	Seats    int    // of the hall
	Hot      int    // the first so many are those everybody wants
	Hold     time.Duration

	Postgres    string // address
	Pool        int    // connections to Postgres
	Transaction string // simple, realistic or locked
	RoundTrips  int    // further statements a transaction carries
	Redis       string // address
}

// keeper holds seats.
type keeper interface {
	// take holds a seat for user until then; ok is false when somebody has it.
	take(ctx context.Context, user, seat string) (until time.Time, ok bool, err error)
	close()
}

var keepers = map[string]func(context.Context, Options) (keeper, error){
	"naive": openNaive, "postgres": openConditional, "redis": openRedis, "bare": openBare,
}

// Run is the process: it says its address on out and serves until ctx ends.
func Run(ctx context.Context, o Options, out io.Writer) error {
	open, ok := keepers[o.Strategy]
	if !ok {
		return fmt.Errorf("front: there is no strategy %q", o.Strategy)
	}
	k, err := open(ctx, o)
	if err != nil {
		return fmt.Errorf("front %s: %w", o.Strategy, err)
	}
	defer k.close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("front: %w", err)
	}
	if _, err := fmt.Fprintln(out, ln.Addr()); err != nil {
		return fmt.Errorf("front: %w", err)
	}
	e := newServer(o, k)
	defer context.AfterFunc(ctx, func() { _ = e.Server.Close() })() // the clients see it
	e.Server.Handler = e
	if err := e.Server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("front: %w", err)
	}
	return nil
}

// server answers for a keeper.
type server struct {
	o        Options
	k        keeper
	sessions *sessions
	index    map[string]seatmap.QuotedSeat
}

func newServer(o Options, k keeper) *echo.Echo {
	s := &server{o: o, k: k, sessions: newSessions(o.Key), index: make(map[string]seatmap.QuotedSeat)}
	Hall(o.Seats).Each(func(section *seatmap.Section, row *seatmap.Row, seat *seatmap.Seat) {
		s.index[seat.TicketID] = seatmap.QuotedSeat{I: seat.I, TicketID: seat.TicketID, Label: seat.Label, Section: section.Name,
			Row: row.Label, Category: seat.Category, Price: 1000}
	})
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.POST("/v1/bookings/:event", s.take)
	return e
}

// refusal has the members of a problem in the order they are written in.
type refusal struct {
	Type   string   `json:"type"`
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Code   string   `json:"code"`
	Detail string   `json:"detail"`
	Seats  []string `json:"seats"`
}

func (s *server) take(c echo.Context) error {
	headers(c.Response().Header())
	user, err := s.sessions.user(c)
	if err != nil {
		return err
	}
	var body struct {
		TicketIDs []string `json:"ticketIds"`
	}
	if err := bind(c.Request().Body, &body); err != nil {
		return err
	}
	if c.Param("event") != s.o.Event || len(body.TicketIDs) != 1 {
		return echo.NewHTTPError(http.StatusUnprocessableEntity, "one seat of the event is needed")
	}
	seat, ok := s.index[body.TicketIDs[0]]
	if !ok {
		return echo.NewHTTPError(http.StatusUnprocessableEntity, "there is no such seat")
	}
	until, ok, err := s.k.take(c.Request().Context(), user, seat.TicketID)
	switch {
	case err != nil:
		return err
	case !ok:
		return refuse(c, body.TicketIDs)
	}
	return s.granted(c, seat, until)
}

func refuse(c echo.Context, seats []string) error {
	c.Response().Header().Set(echo.HeaderContentType, "application/problem+json")
	c.Response().WriteHeader(http.StatusConflict)
	return json.NewEncoder(c.Response()).Encode(refusal{"about:blank", http.StatusText(http.StatusConflict), http.StatusConflict,
		"seats_taken", "somebody has these seats; nothing was taken", seats})
}

func (s *server) granted(c echo.Context, seat seatmap.QuotedSeat, until time.Time) error {
	until = until.UTC()
	return c.JSON(http.StatusCreated, seatmap.Booking{BookingID: s.o.Event + "." + rand.Text(), State: "held", ExpiresAt: &until, Cap: &until,
		Quote: seatmap.Quote{Seats: []seatmap.QuotedSeat{seat}, Areas: []seatmap.QuotedArea{}, Total: seatmap.Money{Amount: seat.Price, Currency: "EUR"}}})
}

// bind reads the one JSON value of a body, strictly.
func bind(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return echo.NewHTTPError(http.StatusBadRequest, "something follows the value")
	}
	return nil
}

// headers are those of every answer of seatcast's.
func headers(h http.Header) {
	h.Set(echo.HeaderXRequestID, rand.Text())
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set(echo.HeaderCacheControl, "no-store")
}
