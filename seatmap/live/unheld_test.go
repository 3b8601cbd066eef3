package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"seatcast/seatmap"
	"seatcast/seatmap/live"
	"seatcast/web"
)

// soldBooks is what Postgres knows of an event.
type soldBooks struct {
	sold atomic.Pointer[seatmap.Map]
	away atomic.Bool
}

func (b *soldBooks) put(sold ...int) seatmap.Map {
	m := seatmap.NewMap(seats)
	for _, i := range sold {
		m.Set(i, seatmap.Sold)
	}
	b.sold.Store(&m)
	return m
}

func (b *soldBooks) Sold(context.Context, string) (seatmap.Map, map[string]int, error) {
	if b.away.Load() {
		return nil, nil, errors.New("Postgres is away too")
	}
	return *b.sold.Load(), map[string]int{"floor": 3}, nil
}

// lose puts an event into the mode without holds, or out of it.
func (s *sales) lose(event string, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := *s.all[event]
	changed.NoHolds = away
	s.all[event] = &changed
}

func TestTheMapOfAnEventWithoutHoldsIsWhatIsSold(t *testing.T) {
	b := setup(t)
	n := b.change(reserve(1, 2)).N
	b.knows(n, 5*time.Second)
	var books soldBooks
	want := books.put(2)
	e := web.New(web.Options{Log: discard()})
	live.NewAPI(b.feed, streams{}, live.NewTickets(live.TicketOptions{Redis: b.rdb, Key: []byte("a key that all nodes share")})).Without(&books).Mount(e.Group("/v1", web.As("")))
	var h http.Handler = e
	path := "/v1/events/" + b.event + "/seatmap"
	if page := decode[pageJSON](t, get(t, h, path).Body); page.Stale || bytes.Equal(page.Map, want) {
		t.Errorf("while seats are held: %+v", page)
	}

	b.sales.lose(b.event, true)
	first := get(t, h, path)
	page := decode[pageJSON](t, first.Body)
	if !page.Stale || page.N != n || !bytes.Equal(page.Map, want) || page.Areas["floor"] != 3 {
		t.Errorf("without holds: %+v", page)
	}
	if w := get(t, h, path, "If-None-Match", first.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("the same again: %d", w.Code)
	}
	want = books.put(2, 3)
	if w := get(t, h, path, "If-None-Match", first.Header().Get("ETag")); w.Code != http.StatusOK || !bytes.Equal(decode[pageJSON](t, w.Body).Map, want) {
		t.Errorf("after a sale, under the same number: %d", w.Code)
	}
	if w := get(t, h, fmt.Sprint(path, "?since=", n)); w.Code != http.StatusTemporaryRedirect {
		t.Errorf("since: %d, want a redirect to the plain map", w.Code)
	}
	books.away.Store(true)
	if page := decode[pageJSON](t, get(t, h, path).Body); !page.Stale || page.Map.At(1) != seatmap.Held {
		t.Errorf("without Postgres too: %+v, want what was known last", page)
	}
	b.sales.put("cold", false)
	b.sales.lose("cold", true)
	if w := get(t, h, "/v1/events/cold/seatmap"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("an event this node knows nothing of: %d", w.Code)
	}
	b.sales.lose(b.event, false)
	if page := decode[pageJSON](t, get(t, h, path).Body); page.Stale || page.Map.At(1) != seatmap.Held {
		t.Errorf("while seats are held again: %+v", page)
	}
}

// Redis answers again before holds begin again: watchers go on polling until then,
// and those of other events never do.
func TestWatchersAreToldThatNothingIsHeldAsLongAsItLasts(t *testing.T) {
	b := setup(t)
	b.sales.put("other", true)
	said := func(reason, poll string) bool {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		return slices.Contains(b.crowd.words, fmt.Sprintf("degraded %s %q %s", seatmap.Topic(b.event), reason, poll))
	}
	b.sales.lose(b.event, true)
	b.until(5*time.Second, "watchers are told", func() bool { return said("no_holds", "/v1/events/"+b.event+"/seatmap") })
	if said("", "") {
		t.Error("they are told that it is over")
	}
	b.sales.lose(b.event, false)
	b.until(5*time.Second, "watchers are told that it is over", func() bool { return said("", "") })
	b.crowd.mu.Lock()
	defer b.crowd.mu.Unlock()
	if len(b.crowd.words) != 2 {
		t.Errorf("said: %v", b.crowd.words)
	}
}
