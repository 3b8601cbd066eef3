package holds

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// API serves the calls that take, swap and extend holds. What gives them back
// or pays for them is checkout's.
type API struct {
	store  *Store
	sales  seatmap.Sales
	macs   sync.Pool // of HMACs with the key: making one costs as much as using it
	gate   *Gate     // nil: Redis is asked for every request
	maps   Maps      // nil: Redis is asked for every map
	pays   Payments  // nil: the seal of a basket alone says that it is being paid for
	nearby nearby
	books  Books  // nil: without Redis no bookings
	rush   *rush  // of bookings without holds
	passes Passes // nil: nobody asks for any
}

// NewAPI returns the calls of store. key is secret and the same on every node:
// tokens of baskets are derived with it, so that a repeat on another node
// finds the basket of the first.
func NewAPI(store *Store, sales seatmap.Sales, key []byte) *API {
	return &API{store: store, sales: sales, macs: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// With has maps looked at in memory, and p asked before seats are swapped.
func (a *API) With(maps Maps, p Payments) *API {
	a.maps, a.pays = maps, p
	return a
}

// Behind has g refuse from memory what it can, before anything is asked of
// Redis.
func (a *API) Behind(g *Gate) *API {
	a.gate = g
	return a
}

// Admitting has p judge who may book.
func (a *API) Admitting(p Passes) *API {
	a.passes = p
	return a
}

// Mount adds the calls to g, which is /v1.
func (a *API) Mount(g *echo.Group) {
	g.POST("/bookings/:booking", a.take) // here the name is an event's
	g.POST("/bookings/:booking/extend", a.extend)
	g.PUT("/bookings/:booking/seats", a.swap)
}

// take answers 201 with a new booking, or 200 with the one the same request
// has made before.
func (a *API) take(c echo.Context) error {
	user, err := web.User(c)
	if err != nil {
		return err
	}
	key, err := web.IdempotencyKey(c)
	if err != nil {
		return err
	}
	sale, err := a.sale(c, c.Param("booking"), "unknown_event")
	if err != nil {
		return err
	}
	pass, err := a.admit(c, sale, user)
	if err != nil {
		return err
	}
	var before seatmap.Basket
	if !sale.Open {
		if before, err = a.before(c.Request().Context(), sale, user, key); err != nil {
			return err
		}
	}
	var body takeBody
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	r, err := body.request(sale)
	if err != nil {
		return err
	}
	r.User, r.Token, r.Pass = user, a.token(user, sale.Event, key), pass
	if !sale.Open && !body.repeats(r, before) {
		return notOpen(sale)
	}
	granted, err := a.grant(c.Request().Context(), sale, r, body)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if granted.fresh {
		status = http.StatusCreated
	}
	return answer(c, status, sale, granted)
}

// before returns what was booked under a key of an event that takes no bookings,
// or refuses: who repeats a request may have lost its answer as the sale closed.
func (a *API) before(ctx context.Context, sale *seatmap.Sale, user, key string) (seatmap.Basket, error) {
	if key == "" {
		return seatmap.Basket{}, notOpen(sale)
	}
	basket := a.store.Basket
	if a.away(sale) {
		basket = a.books.Booked
	}
	b, err := basket(ctx, sale.Event, a.token(user, sale.Event, key))
	if errors.Is(err, seatmap.ErrNoBasket) {
		return b, notOpen(sale)
	}
	return b, problem(sale, err)
}

func notOpen(sale *seatmap.Sale) error {
	if sale.Cancelled {
		return &web.Problem{Status: http.StatusConflict, Code: "event_cancelled", Detail: "the event is cancelled"}
	}
	detail := "the sale opens at " + sale.Opens.UTC().Format(time.RFC3339)
	if sale.Closed {
		detail = "the operator has closed the sale, or has not opened it; no time is set at which bookings are taken"
	}
	return &web.Problem{Status: http.StatusForbidden, Code: "sale_not_open", Detail: detail}
}

// extend answers 200 with the booking and its new deadline.
func (a *API) extend(c echo.Context) error {
	sale, token, user, err := a.booking(c)
	if err != nil {
		return err
	}
	if sale.Cancelled {
		return notOpen(sale)
	}
	b, err := a.last(c.Request().Context(), sale, token, user)
	if err != nil {
		return problem(sale, err)
	}
	return answer(c, http.StatusOK, sale, granted{basket: b})
}

// last makes a booking last for the event's hold time from now.
func (a *API) last(ctx context.Context, sale *seatmap.Sale, token, user string) (seatmap.Basket, error) {
	if a.away(sale) {
		b, err := a.prolong(ctx, sale, token, user)
		if !errors.Is(err, seatmap.ErrHeld) {
			return b, err
		}
	}
	return a.store.Extend(ctx, sale.Event, token, user, sale.Terms.Hold, sale.Terms.Grace)
}

// swap answers 200 with the booking and its new seats, and the same when it has
// them already.
func (a *API) swap(c echo.Context) error {
	sale, token, user, err := a.booking(c)
	if err != nil {
		return err
	}
	pass, err := a.admit(c, sale, user)
	if err == nil {
		err = a.unlessRevoked(c.Request().Context(), sale, pass)
	}
	if err != nil {
		return err
	}
	var body swapBody
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	g, err := a.exchange(c.Request().Context(), sale, token, user, body)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, sale, g)
}

// admit returns the pass of who books, or nil when none is asked for.
func (a *API) admit(c echo.Context, sale *seatmap.Sale, user string) (*seatmap.Pass, error) {
	if a.passes == nil {
		return nil, nil
	}
	return a.passes.Admit(c.Request().Context(), sale.Event, user, c.Request().Header.Get(PassHeader))
}

// booking is the one a call names, the sale it is of, and who calls.
func (a *API) booking(c echo.Context) (sale *seatmap.Sale, token, user string, err error) {
	if user, err = web.User(c); err != nil {
		return nil, "", "", err
	}
	event, token, ok := seatmap.ParseBookingID(c.Param("booking"))
	if !ok {
		return nil, "", "", problem(nil, seatmap.ErrNoBasket)
	}
	sale, err = a.sale(c, event, "unknown_booking")
	return sale, token, user, err
}

func (a *API) sale(c echo.Context, event, unknown string) (*seatmap.Sale, error) {
	sale, err := a.sales.Sale(c.Request().Context(), event)
	if errors.Is(err, seatmap.ErrNoEvent) {
		return nil, &web.Problem{Status: http.StatusNotFound, Code: unknown, Detail: "nothing here has this name"}
	}
	if err != nil {
		return nil, problem(nil, err)
	}
	return sale, nil
}

func answer(c echo.Context, status int, sale *seatmap.Sale, g granted) error {
	shown, err := sale.Booking(g.basket)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(status, struct {
		seatmap.Booking
		Together *bool     `json:"together,omitempty"`
		Warnings []warning `json:"warnings,omitempty"`
	}{shown, g.together, g.warnings})
}

// token names the basket of a request. Only who has the key of this server can
// make the same one for the same three; lengths keep one field from running
// into the next. Without a key nobody can: the request cannot be repeated.
func (a *API) token(user, event, key string) string {
	if key == "" {
		return rand.Text()
	}
	mac := a.macs.Get().(hash.Hash)
	defer a.macs.Put(mac)
	mac.Reset()
	for _, field := range []string{user, event, key} {
		mac.Write(binary.AppendUvarint(nil, uint64(len(field))))
		mac.Write([]byte(field))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])
}

func refuse(code, detail string, extra map[string]any) *web.Problem {
	return &web.Problem{Status: http.StatusUnprocessableEntity, Code: code, Detail: detail, Extra: extra}
}

// refuseSeats refuses a request for these seats of it.
func refuseSeats(code, detail string, seats []string) *web.Problem {
	return &web.Problem{Status: http.StatusUnprocessableEntity, Code: code, Detail: detail, Seats: seats}
}

func conflict(code, detail string, extra map[string]any) *web.Problem {
	return &web.Problem{Status: http.StatusConflict, Code: code, Detail: detail, Extra: extra}
}

func full(area string) *web.Problem {
	return conflict("area_full", "not enough places are left in this area", map[string]any{"area": area})
}

func seatsTaken(sale *seatmap.Sale, taken *TakenError) *web.Problem {
	return &web.Problem{Status: http.StatusConflict, Code: "seats_taken", Detail: "somebody has these seats; nothing was taken",
		Seats: ticketIDs(sale, taken.Seats), Common: true}
}

// tooFew tells how much of what is wished is left.
func tooFew(e *seatmap.TooFewError) error {
	if e.Never {
		return badWish("the event does not have so many seats in these sections and categories at these prices")
	}
	left := map[string]any{"left": e.Seats, "spacesLeft": e.Spaces}
	if e.Seats+e.Spaces == 0 {
		return conflict("sold_out", "no seat that matches is left; some may come back", left)
	}
	return conflict("too_few_left", "fewer seats that match are left; ask for less, or for other sections, categories or prices", left)
}

func paying() *web.Problem {
	return &web.Problem{Status: http.StatusConflict, Code: "payment_in_progress", RetryAfter: 2 * time.Second,
		Detail: "a payment of this booking has begun: its seats stay as they are"}
}

// ticketIDs are the API's names of seats.
func ticketIDs(sale *seatmap.Sale, seats []int) []string {
	ids := make([]string, 0, len(seats))
	for _, i := range seats {
		if at, ok := sale.Index.At(i); ok {
			ids = append(ids, at.Seat.TicketID)
		}
	}
	return ids
}

// problem is how each outcome is told. What is not in the table is ours to
// explain, and becomes a 500.
func problem(sale *seatmap.Sale, err error) error {
	if taken, ok := errors.AsType[*TakenError](err); ok { // nearly every one, in a rush
		return seatsTaken(sale, taken)
	}
	var (
		lost *seatmap.LostError
		area *AreaFullError
		few  *seatmap.TooFewError
		pace *PaceError
		said *web.Problem
	)
	switch {
	case errors.As(err, &said):
		return err
	case errors.As(err, &few):
		return tooFew(few)
	case errors.Is(err, seatmap.ErrBadWish):
		return badWish(strings.TrimPrefix(err.Error(), seatmap.ErrBadWish.Error()+": "))
	case errors.Is(err, errContended):
		return &web.Problem{Status: http.StatusConflict, Code: "seats_taken", RetryAfter: time.Second, Seats: []string{},
			Detail: "others were faster each time; nothing was taken: send the same request again"}
	case errors.As(err, &lost):
		return &web.Problem{Status: http.StatusConflict, Code: "seats_lost", Detail: "somebody else has these seats of the booking",
			Seats: ticketIDs(sale, lost.Seats)}
	case errors.As(err, &area):
		return full(area.Area)
	case errors.Is(err, ErrSealed):
		return paying()
	case errors.Is(err, ErrOverCap):
		return tooManyHeld(sale)
	case errors.Is(err, ErrBought):
		return allBought(sale)
	case errors.Is(err, ErrMany):
		return tooManyBookings(sale)
	case errors.As(err, &pace):
		return tooManyHolds(sale, pace)
	case errors.Is(err, ErrRevoked):
		return &web.Problem{Status: http.StatusForbidden, Code: "pass_revoked", Detail: "this pass is good for nothing any more; who has bought or left waits for another"}
	case errors.Is(err, ErrReused):
		return refuse("idempotency_key_reused", "this Idempotency-Key was sent with another request; use a new one", nil)
	case errors.Is(err, seatmap.ErrSold): // before ErrHoldExpired, which it also is
		return conflict("booking_final", "this booking is sold: its tickets are in GET /v1/bookings/{booking}", nil)
	case errors.Is(err, seatmap.ErrHoldExpired):
		return conflict("hold_expired", "the hold is over; begin anew, with a new Idempotency-Key", nil)
	case errors.Is(err, seatmap.ErrNotYours):
		return &web.Problem{Status: http.StatusForbidden, Code: "not_your_booking", Detail: "the booking belongs to another account"}
	case errors.Is(err, seatmap.ErrNoBasket):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_booking", Detail: "there is no such booking"}
	case errors.Is(err, seatmap.ErrNoEvent):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event", Detail: "there is no such event"}
	case errors.Is(err, seatmap.ErrUnavailable), errors.Is(err, seatmap.ErrHeld): // they are held since a moment
		return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
			Detail: "holds do not answer at the moment; send the same request again", RetryAfter: time.Second}, err)
	default:
		return err
	}
}
