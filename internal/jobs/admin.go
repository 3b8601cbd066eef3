package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"seatcast/web"
)

// How many jobs are answered at once.
const (
	usualPage = 50
	mostPage  = 200
)

// MountAdmin adds the calls to the group for operators.
func (q *Queue) MountAdmin(g *echo.Group) {
	g.GET("/jobs", q.getJobs)
	g.POST("/jobs/:job/retry", q.postRetry)
}

func (q *Queue) getJobs(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	what := Query{State: cmp.Or(c.QueryParam("state"), Stuck), Kind: c.QueryParam("kind"), Limit: usualPage}
	if !slices.Contains(States, what.State) {
		return web.Bad("bad_request", fmt.Sprintf("state is one of %v", States))
	}
	var err error
	if text := c.QueryParam("after"); text != "" {
		if what.After, err = strconv.ParseInt(text, 10, 64); err != nil || what.After < 1 {
			return web.Bad("bad_request", "after is the number that next was of an earlier page")
		}
	}
	if text := c.QueryParam("limit"); text != "" {
		if what.Limit, err = strconv.Atoi(text); err != nil || what.Limit < 1 || what.Limit > mostPage {
			return web.Bad("bad_request", fmt.Sprintf("limit is 1 to %d", mostPage))
		}
	}
	page, err := q.List(c.Request().Context(), what)
	if err != nil {
		return problem(err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, page)
}

func (q *Queue) postRetry(c echo.Context) error {
	if _, err := web.Operator(c); err != nil {
		return err
	}
	id, err := strconv.ParseInt(c.Param("job"), 10, 64)
	if err != nil {
		return problem(ErrNoJob)
	}
	if err := q.Retry(c.Request().Context(), id); err != nil {
		return problem(err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusAccepted, map[string]int64{"job": id})
}

func problem(err error) error {
	for _, row := range problems {
		if errors.Is(err, row.err) {
			return row.problem
		}
	}
	return fmt.Errorf("%w: %w", &web.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
		Detail: "the queue cannot be read; try again", RetryAfter: time.Second}, err)
}

var problems = []struct {
	err     error
	problem *web.Problem
}{
	{ErrNoJob, &web.Problem{Status: http.StatusNotFound, Code: "unknown_job", Detail: "there is no such job, or not any more"}},
	{ErrRunning, &web.Problem{Status: http.StatusConflict, Code: "job_running", Detail: "the job is being tried just now; look at it again"}},
	{ErrDone, &web.Problem{Status: http.StatusConflict, Code: "job_done", Detail: "the job is done"}},
	{ErrTwin, &web.Problem{Status: http.StatusConflict, Code: "job_queued", Detail: "another job that does the same is in the queue; retry that one"}},
}
