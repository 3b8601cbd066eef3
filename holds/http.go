package holds

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// API serves the calls that take and extend holds. What gives them back or
// pays for them is checkout's.
type API struct {
	store *Store
	sales seatmap.Sales
	key   []byte
	gate  *Gate // nil: Redis is asked for every request
}

// NewAPI returns the calls of store. key is secret and the same on every node:
// tokens of baskets are derived with it, so that a repeat on another node
// finds the basket of the first.
func NewAPI(store *Store, sales seatmap.Sales, key []byte) *API {
	return &API{store: store, sales: sales, key: key}
}

// Behind has g refuse from memory what it can, before anything is asked of
// Redis.
func (a *API) Behind(g *Gate) *API {
	a.gate = g
	return a
}

// Mount adds the calls to g, which is /v1.
func (a *API) Mount(g *echo.Group) {
	g.POST("/bookings/:booking", a.take) // here the name is an event's
	g.POST("/bookings/:booking/extend", a.extend)
}

// takeBody is what a shopper asks for.
type takeBody struct {
	TicketIDs     []string        `json:"ticketIds"`
	Areas         []areaBody      `json:"areas"`
	BestAvailable json.RawMessage `json:"bestAvailable"`
}

type areaBody struct {
	Area     string `json:"area"`
	Quantity int    `json:"quantity"`
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
	if !sale.Open {
		if err := a.unlessRepeat(c.Request().Context(), sale, user, key); err != nil {
			return err
		}
	}
	if key == "" {
		key = rand.Text()
	}
	var body takeBody
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	r, err := body.request(sale)
	if err != nil {
		return err
	}
	r.User, r.Token = user, a.token(user, sale.Event, key)
	if err := a.gate.refuse(r); err != nil {
		return problem(sale, err)
	}
	if err := r.price(sale); err != nil {
		return err
	}
	b, fresh, err := a.store.take(c.Request().Context(), r)
	if err != nil {
		return problem(sale, err)
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	return answer(c, status, sale, b)
}

// unlessRepeat refuses a request to an event that takes no bookings, unless it
// repeats one that was taken: its answer may have been lost as the sale closed.
func (a *API) unlessRepeat(ctx context.Context, sale *seatmap.Sale, user, key string) error {
	if key != "" {
		switch _, err := a.store.Basket(ctx, sale.Event, a.token(user, sale.Event, key)); {
		case err == nil:
			return nil
		case !errors.Is(err, seatmap.ErrNoBasket):
			return problem(sale, err)
		}
	}
	return &web.Problem{Status: http.StatusForbidden, Code: "sale_not_open",
		Detail: "bookings are not taken at the moment; the sale opens, or has opened, at " + sale.Opens.UTC().Format(time.RFC3339)}
}

// extend answers 200 with the booking and its new deadline.
func (a *API) extend(c echo.Context) error {
	user, err := web.User(c)
	if err != nil {
		return err
	}
	event, token, ok := seatmap.ParseBookingID(c.Param("booking"))
	if !ok {
		return problem(nil, seatmap.ErrNoBasket)
	}
	sale, err := a.sale(c, event, "unknown_booking")
	if err != nil {
		return err
	}
	b, err := a.store.Extend(c.Request().Context(), event, token, user, sale.Terms.Hold, sale.Terms.Grace)
	if err != nil {
		return problem(sale, err)
	}
	return answer(c, http.StatusOK, sale, b)
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

func answer(c echo.Context, status int, sale *seatmap.Sale, b seatmap.Basket) error {
	shown, err := sale.Booking(b)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(status, shown)
}

// token names the basket of a request. Only who has the key of this server can
// make the same one for the same three; lengths keep one field from running
// into the next.
func (a *API) token(user, event, key string) string {
	mac := hmac.New(sha256.New, a.key)
	for _, field := range []string{user, event, key} {
		mac.Write(binary.AppendUvarint(nil, uint64(len(field))))
		mac.Write([]byte(field))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])
}

// request turns what was asked for into seats of the sale, priced.
func (b takeBody) request(sale *seatmap.Sale) (TakeRequest, error) {
	r := TakeRequest{Event: sale.Event, Terms: sale.Terms}
	if len(b.BestAvailable) > 0 {
		return r, refuse("not_offered", "bestAvailable is not offered here; name seats by ticketIds", nil)
	}
	if len(b.TicketIDs)+len(b.Areas) == 0 {
		return r, web.Bad("empty_booking", "name at least one seat or area")
	}
	var err error
	if r.Areas, err = b.places(sale); err != nil {
		return r, err
	}
	wanted := len(b.TicketIDs)
	for _, quantity := range r.Areas {
		wanted += quantity
	}
	if most := sale.Terms.SeatsPerBooking; wanted > most || len(b.TicketIDs) > MaxSeats {
		return r, refuse("too_many_seats", fmt.Sprintf("one booking has at most %d seats and places", min(most, MaxSeats)), nil)
	}
	r.Seats, err = b.seats(sale)
	return r, err
}

// price adds what only a request that is not refused at once needs.
func (r *TakeRequest) price(sale *seatmap.Sale) error {
	quote, err := sale.Quote(r.Seats, r.Areas)
	if err != nil {
		return err
	}
	if r.Quote, err = json.Marshal(quote); err != nil {
		return fmt.Errorf("quote %s: %w", sale.Event, err)
	}
	r.Hash, err = hash(*r)
	return err
}

// seats are the indexes of the seats asked for, ascending.
func (b takeBody) seats(sale *seatmap.Sale) ([]int, error) {
	var (
		seats         = make([]int, 0, len(b.TicketIDs))
		seen          = make(map[string]bool, len(b.TicketIDs))
		unknown, more []string
	)
	for _, id := range b.TicketIDs {
		seat, ok := sale.Index.Seat(id)
		switch {
		case seen[id]:
			more = append(more, id)
		case !ok:
			unknown = append(unknown, id)
		default:
			seats = append(seats, seat.I)
		}
		seen[id] = true
	}
	if len(unknown) > 0 {
		return nil, refuse("unknown_seat", "this event has no such seats", map[string]any{"seats": unknown})
	}
	if len(more) > 0 {
		return nil, refuse("duplicate_seat", "name each seat once", map[string]any{"seats": more})
	}
	slices.Sort(seats)
	return seats, nil
}

// places are the places asked for, by area.
func (b takeBody) places(sale *seatmap.Sale) (map[string]int, error) {
	if len(b.Areas) == 0 {
		return nil, nil
	}
	places := make(map[string]int, len(b.Areas))
	for _, a := range b.Areas {
		area, ok := sale.Index.Area(a.Area)
		switch {
		case !ok:
			return nil, refuse("unknown_area", "this event has no such area", map[string]any{"area": a.Area})
		case places[a.Area] > 0:
			return nil, web.Bad("bad_request", "name each area once")
		case a.Quantity < 1:
			return nil, web.Bad("bad_request", "quantity is at least 1")
		case a.Quantity > area.Capacity:
			return nil, full(a.Area)
		}
		places[a.Area] = a.Quantity
	}
	return places, nil
}

// hash tells whether two requests ask for the same: the order of seats and
// areas, and what they cost today, do not matter.
func hash(r TakeRequest) (string, error) {
	asked, err := json.Marshal(struct {
		Seats []int
		Areas map[string]int
	}{r.Seats, r.Areas})
	if err != nil {
		return "", fmt.Errorf("hash of a request: %w", err)
	}
	sum := sha256.Sum256(asked)
	return hex.EncodeToString(sum[:16]), nil
}

func refuse(code, detail string, extra map[string]any) *web.Problem {
	return &web.Problem{Status: http.StatusUnprocessableEntity, Code: code, Detail: detail, Extra: extra}
}

func conflict(code, detail string, extra map[string]any) *web.Problem {
	return &web.Problem{Status: http.StatusConflict, Code: code, Detail: detail, Extra: extra}
}

func full(area string) *web.Problem {
	return conflict("area_full", "not enough places are left in this area", map[string]any{"area": area})
}

// ticketIDs are the API's names of seats.
func ticketIDs(sale *seatmap.Sale, seats []int) map[string]any {
	ids := make([]string, 0, len(seats))
	for _, i := range seats {
		if at, ok := sale.Index.At(i); ok {
			ids = append(ids, at.Seat.TicketID)
		}
	}
	return map[string]any{"seats": ids}
}

// problem is how each outcome is told. What is not in the table is ours to
// explain, and becomes a 500.
func problem(sale *seatmap.Sale, err error) error {
	var (
		taken *TakenError
		lost  *seatmap.LostError
		area  *AreaFullError
	)
	switch {
	case errors.As(err, &taken):
		return conflict("seats_taken", "somebody has these seats; nothing was taken", ticketIDs(sale, taken.Seats))
	case errors.As(err, &lost):
		return conflict("seats_lost", "somebody else has these seats of the booking", ticketIDs(sale, lost.Seats))
	case errors.As(err, &area):
		return full(area.Area)
	case errors.Is(err, ErrOverCap):
		return &web.Problem{Status: http.StatusTooManyRequests, Code: "too_many_held",
			Detail: fmt.Sprintf("one account holds at most %d seats at a time; give some back or pay for them", sale.Terms.SeatsPerUser)}
	case errors.Is(err, ErrReused):
		return refuse("idempotency_key_reused", "this Idempotency-Key was sent with another request; use a new one", nil)
	case errors.Is(err, seatmap.ErrSold): // before ErrHoldExpired, which it also is
		return conflict("booking_final", "this booking is sold: its tickets are in GET /v1/bookings/{booking}", nil)
	case errors.Is(err, seatmap.ErrHoldExpired):
		return conflict("hold_expired", "the hold is over; begin anew, with a new Idempotency-Key", nil)
	case errors.Is(err, seatmap.ErrNotYours):
		return &web.Problem{Status: http.StatusForbidden, Code: "not_your_booking", Detail: "this booking belongs to another account"}
	case errors.Is(err, seatmap.ErrNoBasket):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_booking", Detail: "there is no such booking"}
	case errors.Is(err, seatmap.ErrNoEvent):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event", Detail: "there is no such event"}
	case errors.Is(err, seatmap.ErrUnavailable):
		return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
			Detail: "holds do not answer at the moment; send the same request again", RetryAfter: time.Second}, err)
	default:
		return err
	}
}
