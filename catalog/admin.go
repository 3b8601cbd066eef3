package catalog

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/seatmap"
	"seatcast/web"
)

// ChartRoute is where an event's chart is published, below /v1/admin, and
// MaxChart the most bytes of a body there.
const (
	ChartRoute = "/events/:event/chart"
	MaxChart   = 16 << 20
)

// MountAdmin adds the calls of operators to g, which is /v1/admin.
func (p *Publisher) MountAdmin(g *echo.Group) {
	g.PUT(ChartRoute, p.putChart)
	g.GET(ChartRoute+"s", p.getCharts)
}

// chartBody is a chart to be published: the SHA-256 of one that is imported, or
// one in any format that is read.
type chartBody struct {
	Chart  json.RawMessage  `json:"chart"`
	Prices map[string]int64 `json:"prices"`
}

func (p *Publisher) putChart(c echo.Context) error {
	operator, err := web.Operator(c)
	if err != nil {
		return err
	}
	var body chartBody
	if err := web.Bind(c, &body); err != nil {
		return err
	}
	n := Publication{Event: c.Param("event"), Prices: body.Prices, By: operator}
	warnings, err := body.read(&n)
	if err != nil {
		return refused(err)
	}
	done, err := p.Publish(c.Request().Context(), n)
	if err != nil {
		return refused(err)
	}
	return c.JSON(http.StatusOK, struct {
		Published
		Warnings []string `json:"warnings"`
	}{done, warnings})
}

// read finds out which chart is meant.
func (b chartBody) read(n *Publication) (warnings []string, err error) {
	warnings = []string{}
	if len(b.Chart) == 0 {
		return nil, web.Bad("bad_request", "chart is the SHA-256 of an imported chart, or a chart")
	}
	if json.Unmarshal(b.Chart, &n.ChartSHA) == nil && shaName.MatchString(n.ChartSHA+".json") {
		return warnings, nil
	}
	chart, told, err := seatmap.ImportChart("chart", b.Chart)
	for _, w := range told {
		warnings = append(warnings, w.String())
	}
	n.Chart, n.ChartSHA = chart, ""
	return warnings, err
}

func (p *Publisher) getCharts(c echo.Context) error {
	charts, err := p.Charts(c.Request().Context(), c.Param("event"))
	if err != nil {
		return problem(err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, struct {
		Charts []ChartVersion `json:"charts"` // the one in force first
	}{charts})
}

// refused is the table of why a chart was not published; the rest is problem's.
func refused(err error) error {
	var used *InUseError
	var faults seatmap.Faults
	switch {
	case errors.As(err, &used):
		return &web.Problem{Status: http.StatusConflict, Code: "chart_in_use",
			Detail: "the chart would take seats or places from those who have them; nothing was published",
			Extra:  map[string]any{"seats": append([]SeatInUse{}, used.Seats...), "areas": append([]AreaInUse{}, used.Areas...)}}
	case errors.Is(err, ErrCancelled):
		return &web.Problem{Status: http.StatusConflict, Code: "event_cancelled", Detail: "the event is cancelled; nothing was published"}
	case errors.Is(err, ErrOvertaken):
		return &web.Problem{Status: http.StatusConflict, Code: "chart_overtaken", RetryAfter: time.Second,
			Detail: "another chart was published or seats were put on sale meanwhile; nothing was published: look again"}
	case errors.Is(err, ErrNoChart):
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "unknown_chart",
			Detail: "no chart has this SHA-256: import it, or send the chart itself"}
	case errors.As(err, &faults):
		told := make([]string, len(faults))
		for k, f := range faults {
			told[k] = f.String()
		}
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "chart_refused",
			Detail: "the chart or its prices cannot be; nothing was published", Extra: map[string]any{"faults": told}}
	}
	return problem(err)
}
