package catalog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seatcast/seatmap"
)

// An answer about an event is kept for a second, which is what Sales promises.
const freshFor = time.Second

// forever is how long an answer that cannot change is kept, while there is room.
const forever = 100 * 365 * 24 * time.Hour

// known is an event with the chart it is sold on.
type known struct {
	event Event
	sale  *seatmap.Sale
}

// chart is decoded geometry with its index. A stadium's takes some 20 MB.
type chart struct {
	chart *seatmap.Chart
	index *seatmap.Index
}

// servedChart is a chart's bytes as they travel.
type servedChart struct{ plain, gzipped []byte }

var _ seatmap.Sales = (*Store)(nil)

// Sale returns the event as it is sold, or seatmap.ErrNoEvent. The answer is
// at most a second old while Postgres answers, and the last one while it does
// not.
func (s *Store) Sale(ctx context.Context, event string) (*seatmap.Sale, error) {
	k, err := s.known(ctx, event)
	if err != nil {
		return nil, err
	}
	return k.sale, nil
}

// Hot returns the hot events whose map somebody may want to watch: all but
// those that began more than a day ago. They need not be open, since people
// gather before a sale and look at the map after it.
func (s *Store) Hot(ctx context.Context) ([]string, error) { return s.hot.get(ctx, "") }

func (s *Store) known(ctx context.Context, event string) (*known, error) {
	if !validID(event) { // whatever it is, no query will find it
		return nil, seatmap.ErrNoEvent
	}
	k, err := s.events.get(ctx, event)
	if err == nil && k == nil {
		err = seatmap.ErrNoEvent
	}
	if err != nil {
		return nil, fmt.Errorf("event %q: %w", event, err)
	}
	return k, nil
}

func (s *Store) loadKnown(ctx context.Context, id string) (*known, time.Duration, error) {
	event, opensIn, err := s.event(ctx, id)
	if err != nil {
		return absent[*known](err)
	}
	c, err := s.charts.get(ctx, event.ChartSHA)
	if err == nil && c == nil {
		err = fmt.Errorf("%w: %s of event %s", ErrNoChart, event.ChartSHA, id)
	}
	if err != nil {
		return nil, 0, err
	}
	return &known{event: event, sale: event.sale(c)}, keepFor(event.State, opensIn), nil
}

// keepFor never reaches across the opening: a sale opens on the dot, not up to
// a second late.
func keepFor(state State, opensIn time.Duration) time.Duration {
	if state == Open && opensIn > 0 {
		return min(freshFor, opensIn)
	}
	return freshFor
}

func (e *Event) sale(c *chart) *seatmap.Sale {
	return &seatmap.Sale{
		Event:     e.ID,
		Chart:     c.chart,
		Index:     c.index,
		ChartSHA:  e.ChartSHA,
		Hot:       e.Mode == Hot,
		Guarded:   e.Guarded,
		Orphans:   e.Orphans,
		Open:      e.OnSale,
		Closed:    e.State == Closed,
		Cancelled: e.State == Cancelled,
		NoHolds:   e.NoHolds,
		Opens:     e.Opens,
		Currency:  e.Currency,
		Prices:    e.Prices,
		Fees:      e.Fees,
		Terms:     e.Terms,
	}
}

func (s *Store) loadChart(ctx context.Context, sha string) (*chart, time.Duration, error) {
	body, err := s.chartBytes(ctx, sha)
	if err != nil {
		return absent[*chart](err)
	}
	c, err := seatmap.DecodeChart(body)
	if err != nil {
		return nil, 0, fmt.Errorf("chart %s: %w", sha, err)
	}
	return &chart{chart: c, index: c.Index()}, forever, nil
}

func (s *Store) loadServed(ctx context.Context, sha string) (*servedChart, time.Duration, error) {
	body, err := s.chartBytes(ctx, sha)
	if err != nil {
		return absent[*servedChart](err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(body); err != nil {
		return nil, 0, fmt.Errorf("compress chart %s: %w", sha, err)
	}
	if err := w.Close(); err != nil {
		return nil, 0, fmt.Errorf("compress chart %s: %w", sha, err)
	}
	return &servedChart{plain: body, gzipped: zipped.Bytes()}, forever, nil
}

// PageSize is how many events one page of Search holds.
const PageSize = 50

// Search returns a page of the events whose name or venue contains the words,
// those on sale first, and whether a page follows. Pages count from 1.
func (s *Store) Search(ctx context.Context, words string, page int) (events []Event, more bool, err error) {
	events, err = s.searches.get(ctx, strconv.Itoa(page)+" "+strings.TrimSpace(words))
	if err != nil {
		return nil, false, err
	}
	if len(events) > PageSize {
		return events[:PageSize], true, nil
	}
	return events, false, nil
}

func (s *Store) loadSearch(ctx context.Context, key string) ([]Event, time.Duration, error) {
	number, words, _ := strings.Cut(key, " ")
	page, err := strconv.Atoi(number)
	if err != nil {
		return nil, 0, fmt.Errorf("search page %q: %w", number, err)
	}
	events, err := s.find(ctx, words, false, (page-1)*PageSize, PageSize+1)
	return events, freshFor, err
}

// absent makes "there is none" an answer to remember, for as long as an event
// would be; any other error stays one.
func absent[V any](err error) (none V, fresh time.Duration, _ error) {
	if errors.Is(err, seatmap.ErrNoEvent) || errors.Is(err, ErrNoChart) {
		return none, freshFor, nil
	}
	return none, 0, err
}
