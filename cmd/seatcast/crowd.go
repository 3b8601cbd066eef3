package main

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/seatmap"
)

// crowd is simulated shoppers: clients like any browser, who look at the map,
// hold seats side by side, and pay or walk away. They know nothing the API does
// not tell them. All look at one map, read once a moment for everybody: a
// thousand of them would otherwise read it a hundred times a second.
type crowd struct {
	base   string // of the server, without a slash at the end
	event  string
	people int
	pace   time.Duration // what a second is to them
	log    *slog.Logger

	client *http.Client
	board  *board
}

// maxStreams bounds how many of a crowd keep a live stream of their own open.
// Each costs as much as a browser would, and two cores run everything; measuring
// a big audience is not the demo's business.
const maxStreams = 200

// errSoldOut ends the show: nothing is free and nothing is on hold.
var errSoldOut = errors.New("sold out")

// run sends the shoppers in and returns when ctx has ended or the house is
// sold out.
func (c *crowd) run(ctx context.Context) error {
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.people + maxStreams}}
	defer c.client.CloseIdleConnections()
	if err := c.enter(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("crowd: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.look(ctx) })
	for range min(c.people, maxStreams) {
		g.Go(func() error { return c.watch(ctx) })
	}
	for range c.people {
		g.Go(func() error { return c.shoppers(ctx) })
	}
	if err := g.Wait(); err != nil && !errors.Is(err, errSoldOut) {
		return err
	}
	return nil
}

// enter learns the house and reads its map once.
func (c *crowd) enter(ctx context.Context) error {
	var event struct {
		Chart string `json:"chart"`
	}
	if err := c.must(ctx, "/v1/events/"+c.event, &event); err != nil {
		return err
	}
	var chart seatmap.Chart
	if err := c.must(ctx, "/v1/charts/"+event.Chart+".json", &chart); err != nil {
		return err
	}
	c.board = newBoard(&chart)
	return c.read(ctx)
}

func (c *crowd) must(ctx context.Context, path string, out any) error {
	status, err := c.call(ctx, "", http.MethodGet, path, nil, out)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d", path, status)
	}
	return err
}

func (c *crowd) read(ctx context.Context) error {
	var s seatmap.Snapshot
	if err := c.must(ctx, "/v1/events/"+c.event+"/seatmap", &s); err != nil {
		return err
	}
	c.board.show(s)
	return nil
}

// look keeps the board at most a moment old until the house is sold out. What
// cannot be read is read the next time.
func (c *crowd) look(ctx context.Context) error {
	for pause(ctx, c.pace) {
		if err := c.read(ctx); err != nil {
			c.log.Debug("crowd: no map", "err", err)
			continue
		}
		if c.board.soldOut() {
			c.log.Info("crowd: the house is sold out", "event", c.event)
			return errSoldOut
		}
	}
	return nil
}

// watch keeps a live stream open as a browser does, coming back when it ends.
func (c *crowd) watch(ctx context.Context) error {
	for pause(ctx, rand.N(5*c.pace)) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/events/"+c.event+"/live", nil)
		if err != nil {
			return err
		}
		if res, err := c.client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body) // ends when either side does; coming back is the answer to both
			_ = res.Body.Close()
		}
	}
	return nil
}

// shoppers is one place in the crowd: whoever leaves is followed by somebody
// else, since an account may only have so many seats. Trouble is what shoppers
// have, not the demo: they come back.
func (c *crowd) shoppers(ctx context.Context) error {
	for pause(ctx, rand.N(5*c.pace)) {
		if err := c.visit(ctx); err != nil && ctx.Err() == nil {
			c.log.Debug("crowd: no luck", "err", err)
		}
	}
	return nil
}

// visit is one shopper's attempt to buy: a hold, then the money, the seats
// given back, or nothing more heard of.
func (c *crowd) visit(ctx context.Context) error {
	var session struct {
		Token string `json:"token"`
	}
	_, err := c.call(ctx, "", http.MethodPost, "/v1/demo/session", map[string]string{"user": "crowd-" + crand.Text()}, &session)
	if err != nil || session.Token == "" {
		return err
	}
	booking, err := c.hold(ctx, session.Token)
	if err != nil || booking == "" || !pause(ctx, c.pace+rand.N(12*c.pace)) {
		return err
	}
	switch dice := rand.N(20); {
	case dice < 13:
		return c.pay(ctx, session.Token, booking)
	case dice < 19:
		_, err = c.call(ctx, session.Token, http.MethodDelete, "/v1/bookings/"+booking, nil, nil)
	}
	return err
}

// hold looks around and takes one to four places, trying again when somebody
// was faster. It returns no booking when there was nothing to be had.
func (c *crowd) hold(ctx context.Context, token string) (booking string, err error) {
	party := 1 + rand.N(4)
	for range 4 {
		if !pause(ctx, c.pace/2+rand.N(4*c.pace)) {
			return "", nil
		}
		want := c.board.choose(party)
		if want == nil {
			continue
		}
		var held struct {
			ID string `json:"bookingId"`
		}
		status, err := c.call(ctx, token, http.MethodPost, "/v1/bookings/"+c.event, want, &held)
		if err != nil || status != http.StatusConflict {
			return held.ID, err
		}
	}
	return "", nil
}

// The sandbox cards a crowd carries.
const (
	fullCard  = "4242424242424242"
	emptyCard = "4000000000000002"
)

// pay pays by card; one in ten finds the card declined and takes another.
func (c *crowd) pay(ctx context.Context, token, booking string) error {
	cards := []string{fullCard}
	if rand.N(10) == 0 {
		cards = []string{emptyCard, fullCard}
	}
	for _, card := range cards {
		status, err := c.call(ctx, token, http.MethodPost, "/v1/bookings/"+booking+"/payment", map[string]string{"paymentMethod": card}, nil)
		if err != nil || status >= http.StatusBadRequest {
			return err
		}
		if _, err := c.call(ctx, token, http.MethodPut, "/v1/bookings/"+booking+"/confirm", nil, nil); err != nil {
			return err
		}
		if card == emptyCard && !pause(ctx, c.pace+rand.N(3*c.pace)) {
			return nil
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
	defer func() { _ = res.Body.Close() }()
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
