package catalog

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// Mount adds the catalog's calls to g, which is /v1. All are anonymous.
func (s *Store) Mount(g *echo.Group) {
	g.GET("/events/search", s.getSearch)
	g.GET("/events/:event", s.getEvent)
	g.GET("/charts/:chart", s.getChart)
}

// summary is an event as a list shows it.
type summary struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Venue    string `json:"venue"`
	Zone     string `json:"zone"`
	StartsAt string `json:"startsAt"` // RFC 3339 with the zone's offset
	OpensAt  string `json:"opensAt"`
	Mode     Mode   `json:"mode"`
	State    State  `json:"state"`
	Open     bool   `json:"open"`  // bookings are taken now
	Holds    bool   `json:"holds"` // they hold their seats; false while Redis is away
	Queue    bool   `json:"queue"` // people are let in one by one
	Currency string `json:"currency"`
	Decimals int    `json:"decimals"` // of an amount: its minor units are so many digits
}

// detail is an event as its page needs it. Durations are in seconds and what
// a shopper is shown: grace is not told.
type detail struct {
	summary
	Guarded         bool               `json:"guarded"` // the map asks for a session or a ticket
	Orphans         seatmap.OrphanRule `json:"orphans"` // what becomes of a choice that leaves a single seat
	Chart           string             `json:"chart"`
	Prices          []categoryPrice    `json:"prices"`
	Fees            []fee              `json:"fees"`
	Areas           []area             `json:"areas"`
	HoldSeconds     float64            `json:"holdSeconds"`
	PaySeconds      float64            `json:"paySeconds"`
	CapSeconds      float64            `json:"capSeconds"`
	SeatsPerBooking int                `json:"seatsPerBooking"`
	SeatsPerUser    int                `json:"seatsPerUser"`
	SeatsPerCard    int                `json:"seatsPerCard,omitempty"` // absent: no limit
	HoldsPerUser    int                `json:"holdsPerUser"`
}

type categoryPrice struct {
	Category string `json:"category"`
	Color    string `json:"color,omitempty"`
	Amount   int64  `json:"amount"` // minor units, without fees
	AllIn    int64  `json:"allIn"`  // what one ticket costs, bought alone: with all fees. Of several none costs more
}

type fee struct {
	Name        string         `json:"name"`
	Per         seatmap.FeePer `json:"per"`                   // ticket, percent or order
	Amount      *int64         `json:"amount,omitempty"`      // minor units, or
	BasisPoints *int64         `json:"basisPoints,omitempty"` // of the price of each ticket
}

type area struct {
	Area     string `json:"area"`
	Name     string `json:"name"`
	Category string `json:"category"`
	Capacity int    `json:"capacity"`
}

func (s *Store) getEvent(c echo.Context) error {
	// The router gives a last parameter everything that is left of a path, so
	// that /events/x/live would come here on a node that is no hub.
	if strings.Contains(c.Param("event"), "/") {
		return echo.ErrNotFound
	}
	k, err := s.known(c.Request().Context(), c.Param("event"))
	if err != nil {
		return problem(err)
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=1")
	return c.JSON(http.StatusOK, describe(&k.event, k.sale.Chart))
}

func summarise(e *Event) summary {
	decimals, _ := seatmap.Decimals(e.Currency) // known: no event is created in another
	return summary{
		ID: e.ID, Name: e.Name, Venue: e.Venue, Zone: e.Zone,
		StartsAt: e.Starts.Format(time.RFC3339), OpensAt: e.Opens.Format(time.RFC3339),
		Mode: e.Mode, State: e.State, Open: e.OnSale, Holds: !e.NoHolds, Queue: e.Queue, Currency: e.Currency, Decimals: decimals,
	}
}

// describe lists prices and areas in the chart's order.
func describe(e *Event, chart *seatmap.Chart) detail {
	d := detail{
		summary: summarise(e), Guarded: e.Guarded, Orphans: e.Orphans, Chart: e.ChartSHA,
		Prices: make([]categoryPrice, 0, len(chart.Categories)), Fees: make([]fee, 0, len(e.Fees)), Areas: make([]area, 0, len(chart.Areas)),
		HoldSeconds: e.Terms.Hold.Seconds(), PaySeconds: e.Terms.Pay.Seconds(), CapSeconds: e.Terms.Cap.Seconds(),
		SeatsPerBooking: e.Terms.SeatsPerBooking, SeatsPerUser: e.Terms.SeatsPerUser, SeatsPerCard: e.Terms.SeatsPerCard, HoldsPerUser: e.Terms.HoldsPerUser,
	}
	for _, cat := range chart.Categories {
		price := e.Prices[cat.Name]
		d.Prices = append(d.Prices, categoryPrice{Category: cat.Name, Color: cat.Color, Amount: price, AllIn: seatmap.AllIn(price, e.Fees)})
	}
	for _, f := range e.Fees {
		told := fee{Name: f.Name, Per: f.Per}
		if f.Per == seatmap.PerCent {
			told.BasisPoints = &f.Amount
		} else {
			told.Amount = &f.Amount
		}
		d.Fees = append(d.Fees, told)
	}
	for _, a := range chart.Areas {
		d.Areas = append(d.Areas, area{Area: a.ID, Name: a.Name, Category: a.Category, Capacity: a.Capacity})
	}
	return d
}

// Bounds of a search: what a person types, and pages a person turns.
const (
	maxWords = 100
	maxPage  = 10_000
)

func (s *Store) getSearch(c echo.Context) error {
	words, page := c.QueryParam("q"), 1
	if len(words) > maxWords || !utf8.ValidString(words) || strings.ContainsRune(words, 0) {
		return web.Bad("bad_request", "q is text of up to "+strconv.Itoa(maxWords)+" bytes")
	}
	if text := c.QueryParam("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return web.Bad("bad_request", "page is a number from 1 to "+strconv.Itoa(maxPage))
		}
		page = n
	}
	events, more, err := s.Search(c.Request().Context(), words, page)
	if err != nil {
		return problem(err)
	}
	found := struct {
		Events []summary `json:"events"`
		Next   *int      `json:"next"` // the page that follows, or null
	}{Events: make([]summary, 0, len(events))}
	for i := range events {
		found.Events = append(found.Events, summarise(&events[i]))
	}
	if more {
		next := page + 1
		found.Next = &next
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=1")
	return c.JSON(http.StatusOK, found)
}

var shaName = regexp.MustCompile(`^[0-9a-f]{64}\.json$`)

// getChart serves the very bytes the SHA-256 is of, compressed once per
// process for those who can read it.
func (s *Store) getChart(c echo.Context) error {
	name := c.Param("chart")
	if !shaName.MatchString(name) {
		return problem(ErrNoChart)
	}
	sha := strings.TrimSuffix(name, ".json")
	served, err := s.served.get(c.Request().Context(), sha)
	if err == nil && served == nil {
		err = ErrNoChart
	}
	if err != nil {
		return problem(err)
	}
	return web.Cacheable{Control: "public, max-age=31536000, immutable", Kind: echo.MIMEApplicationJSON, Tag: sha,
		Plain: func() []byte { return served.plain }, Gzip: func() []byte { return served.gzipped }}.Serve(c)
}

// problem tells an outcome of the store as the API does.
func problem(err error) error {
	switch {
	case errors.Is(err, seatmap.ErrNoEvent):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_event", Detail: "there is no such event"}
	case errors.Is(err, ErrNoChart):
		return &web.Problem{Status: http.StatusNotFound, Code: "unknown_chart",
			Detail: "no chart has this SHA-256: read the event again, its chart may have changed"}
	case errors.Is(err, seatmap.ErrUnavailable):
		return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
			Detail: "the catalog does not answer right now; try again", RetryAfter: time.Second}, err)
	default:
		return err
	}
}
