package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/seatmap"
)

// crowd is simulated shoppers: clients like any browser, who watch the map,
// hold seats near each other, and pay or walk away. They know nothing the API
// does not tell them.
type crowd struct {
	base   string // of the server, without a slash at the end
	event  string
	people int
	log    *slog.Logger

	client *http.Client
	chart  seatmap.Chart
	rows   [][]seatmap.Seat
}

// run sends the shoppers in, a few at a time, until ctx ends.
func (c *crowd) run(ctx context.Context) error {
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.people, MaxConnsPerHost: 2 * c.people}}
	defer c.client.CloseIdleConnections()
	if err := c.learn(ctx); err != nil {
		return c.ended(ctx, fmt.Errorf("crowd: %w", err))
	}
	c.log.Info("crowd: coming in", "shoppers", c.people, "event", c.event)
	g, ctx := errgroup.WithContext(ctx)
	for i := range c.people {
		g.Go(func() error { return c.ended(ctx, c.visit(ctx, fmt.Sprintf("crowd-%d", i))) })
	}
	return g.Wait()
}

// ended tells a shopper's trouble from the end of the show.
func (c *crowd) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (c *crowd) learn(ctx context.Context) error {
	var event struct {
		Chart string `json:"chart"`
	}
	if _, err := c.call(ctx, "", http.MethodGet, "/v1/events/"+c.event, nil, &event); err != nil {
		return err
	}
	if _, err := c.call(ctx, "", http.MethodGet, "/v1/charts/"+event.Chart+".json", nil, &c.chart); err != nil {
		return err
	}
	for _, s := range c.chart.Sections {
		for _, r := range s.Rows {
			c.rows = append(c.rows, r.Seats)
		}
	}
	if len(c.rows) == 0 {
		return fmt.Errorf("the chart of %s has no seats to fight for", c.event)
	}
	return nil
}

// visit is one shopper's evening: a stream open all the time, and one attempt
// to buy after another.
func (c *crowd) visit(ctx context.Context, name string) error {
	if !pause(ctx, rand.N(5*time.Second)) {
		return nil
	}
	var session struct {
		Token string `json:"token"`
	}
	if _, err := c.call(ctx, "", http.MethodPost, "/v1/demo/session", map[string]string{"user": name}, &session); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.watch(ctx) })
	g.Go(func() error {
		for pause(ctx, time.Second+rand.N(8*time.Second)) {
			if err := c.shop(ctx, session.Token); err != nil && ctx.Err() == nil {
				c.log.Debug("crowd: no luck", "user", name, "err", err)
			}
		}
		return nil
	})
	return g.Wait()
}

// watch keeps a stream open and reads what comes, coming back when it ends.
func (c *crowd) watch(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/events/"+c.event+"/live", nil)
		if err != nil {
			return err
		}
		if res, err := c.client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body) // ends when either side does; coming back is the answer to both
			res.Body.Close()
		}
		if !pause(ctx, time.Second+rand.N(4*time.Second)) {
			return nil
		}
	}
}

// shop holds up to four seats side by side and then pays, gives them back or
// forgets them.
func (c *crowd) shop(ctx context.Context, token string) error {
	var snap seatmap.Snapshot
	if _, err := c.call(ctx, "", http.MethodGet, "/v1/events/"+c.event+"/seatmap", nil, &snap); err != nil {
		return err
	}
	seats := c.choose(snap.Map, 1+rand.N(4))
	if len(seats) == 0 {
		return nil
	}
	var booking struct {
		ID string `json:"bookingId"`
	}
	status, err := c.call(ctx, token, http.MethodPost, "/v1/bookings/"+c.event, map[string]any{"ticketIds": seats}, &booking)
	if err != nil || status >= http.StatusBadRequest {
		return err
	}
	if !pause(ctx, time.Second+rand.N(15*time.Second)) {
		return nil
	}
	switch dice := rand.N(10); {
	case dice < 6:
		return c.pay(ctx, token, booking.ID)
	case dice < 9:
		_, err = c.call(ctx, token, http.MethodDelete, "/v1/bookings/"+booking.ID, nil, nil)
	}
	return err
}

func (c *crowd) pay(ctx context.Context, token, booking string) error {
	card := "4242424242424242"
	if rand.N(10) == 0 {
		card = "4000000000000002"
	}
	_, err := c.call(ctx, token, http.MethodPost, "/v1/bookings/"+booking+"/payment", map[string]string{"paymentMethod": card}, nil)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, token, http.MethodPut, "/v1/bookings/"+booking+"/confirm", nil, nil)
	return err
}

// choose finds n free neighbours, trying rows near the front more often.
func (c *crowd) choose(m seatmap.Map, n int) []string {
	for range 50 {
		row := c.rows[min(rand.N(len(c.rows)), rand.N(len(c.rows)))]
		start := rand.N(len(row))
		var ids []string
		for _, s := range row[start:] {
			if m.At(s.I) != seatmap.Available || s.Accessible || len(ids) > 0 && s.Break {
				break
			}
			if ids = append(ids, s.TicketID); len(ids) == n {
				return ids
			}
		}
	}
	return nil
}

// call does one request and decodes a good answer into out. A problem answer
// is no error: the shopper just did not get what it wanted.
func (c *crowd) call(ctx context.Context, token, method, path string, body, out any) (status int, err error) {
	var b bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&b).Encode(body); err != nil {
			return 0, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, &b)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if out == nil || res.StatusCode >= http.StatusBadRequest {
		_, err = io.Copy(io.Discard, res.Body)
		return res.StatusCode, err
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return res.StatusCode, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return res.StatusCode, nil
}

// pause waits and says whether the show goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
