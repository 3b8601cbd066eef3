package room

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"seatcast/loadtest/contention/front"
	"seatcast/loadtest/peers"
)

// crowd is everybody, and what they were told.
type crowd struct {
	addr   string
	event  string
	conns  int
	client http.Client
	tokens []string // of the fans' sessions
	fans   []fan    // by event: begins anew with each
	again  atomic.Int64
}

// fan is what one of them has been told.
type fan struct {
	Ticket string `json:"ticket"`
	Number int64  `json:"number"`
	Draw   bool   `json:"draw"`
	Place  string `json:"place"` // kept of a draw alone
}

// sessionsFor outlasts any run.
const sessionsFor = 24 * time.Hour

func newCrowd(key []byte, o *Options) (*crowd, error) {
	c := &crowd{conns: o.Conns, tokens: make([]string, o.Fans), client: http.Client{Timeout: patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: o.Conns, DisableCompression: true}}}
	for i := range c.tokens {
		var err error
		if c.tokens[i], err = front.Mint(key, "fan-"+strconv.Itoa(i), sessionsFor); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// comes has the crowd come to another event.
func (c *crowd) comes(event string) { c.event, c.fans = event, make([]fan, len(c.tokens)) }

const (
	patience = time.Minute // of one request
	insists  = 20          // times a request is sent again that is answered 429 or 503
)

// each does something for everybody from one on to another, on all connections.
func (c *crowd) each(ctx context.Context, from, to int, do func(ctx context.Context, i int) error) (took []time.Duration, err error) {
	var (
		next = atomic.Int64{}
		mu   sync.Mutex
	)
	next.Store(int64(from))
	g, ctx := errgroup.WithContext(ctx)
	for range min(c.conns, to-from) {
		g.Go(func() error {
			var mine []time.Duration
			for {
				i := int(next.Add(1)) - 1
				if i >= to {
					mu.Lock()
					defer mu.Unlock()
					took = append(took, mine...)
					return nil
				}
				began := time.Now()
				if err := do(ctx, i); err != nil {
					return fmt.Errorf("fan %d: %w", i, err)
				}
				mine = append(mine, time.Since(began))
			}
		})
	}
	err = g.Wait()
	slices.Sort(took)
	return took, err
}

// join has a fan join, with the receipt of a draw if there is one.
func (c *crowd) join(ctx context.Context, i int) error {
	var body []byte
	if place := c.fans[i].Place; place != "" {
		body = []byte(`{"place":"` + place + `"}`)
	}
	was := c.fans[i]
	if err := c.ask(ctx, http.MethodPost, "/v1/queue/"+c.event, c.tokens[i], body, &c.fans[i]); err != nil {
		return err
	}
	is := &c.fans[i]
	if is.Number == 0 && !is.Draw {
		return fmt.Errorf("was given neither a place nor a ticket of a draw: %+v", *is)
	}
	if was.Ticket != "" && was.Ticket != is.Ticket {
		return fmt.Errorf("had ticket %s and has %s", was.Ticket, is.Ticket)
	}
	if is.Number > 0 {
		is.Place = ""
	}
	return nil
}

// ask asks until there is an answer, and decodes it.
func (c *crowd) ask(ctx context.Context, method, path, token string, body []byte, into any) error {
	for try := 0; ; try++ {
		status, text, err := c.once(ctx, method, path, token, body)
		switch {
		case err != nil:
			return err
		case status/100 == 2:
			if into == nil {
				return nil
			}
			return json.Unmarshal(text, into)
		case status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests || try == insists:
			return fmt.Errorf("%s %s: %d %.300s", method, path, status, text)
		}
		c.again.Add(1)
		if err := peers.Wait(ctx, time.Duration(try+1)*100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (c *crowd) once(ctx context.Context, method, path, token string, body []byte) (status int, text []byte, err error) {
	q, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	if len(body) > 0 {
		q.Header.Set("Content-Type", "application/json")
	}
	a, err := c.client.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = a.Body.Close() }()
	text, err = io.ReadAll(a.Body)
	return a.StatusCode, text, err
}

// whole says what is wrong with the numbers of everybody who has joined: each from
// 1 to the last is one fan's.
func (c *crowd) whole(joined int) error {
	has := make([]int, joined+1)
	for i := range c.fans[:joined] {
		n := c.fans[i].Number
		if n < 1 || n > int64(joined) {
			return fmt.Errorf("of %d places fan %d has number %d", joined, i, n)
		}
		if has[n] > 0 {
			return fmt.Errorf("place %d is given twice: fans %d and %d have it", n, has[n]-1, i)
		}
		has[n] = i + 1
	}
	return nil // as many numbers as there are, and none twice: none is missing
}
