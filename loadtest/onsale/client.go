package onsale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"seatcast/loadtest/peers"
)

// answer is what the API said.
type answer struct {
	status int
	code   string // of a problem
	body   []byte
}

func (a answer) ok() bool { return a.status/100 == 2 }

func (a answer) String() string { return fmt.Sprintf("%d %.300s", a.status, a.body) }

// clients ask any node, and another one when there is no answer.
type clients struct {
	http  http.Client
	where func() []string // addresses of the nodes now
	steps *steps
}

// insist is how long a request without an answer is sent again.
const insist = 60 * time.Second

// onceWithin bounds one try.
const onceWithin = 20 * time.Second

// call asks until there is an answer that is not "later". Its time, tries and
// all, counts for the step.
func (c *clients) call(ctx context.Context, step, token, method, path, key string, body any) (a answer, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return a, err
		}
	}
	began := time.Now()
	defer func() { c.steps.add(step, time.Since(began)) }()
	for {
		a, err = c.once(ctx, ask{token: token, method: method, path: path, key: key, body: text})
		wait := 100 * time.Millisecond
		switch {
		case ctx.Err() != nil:
			return a, ctx.Err()
		case err == nil && a.status < 500 && a.status != http.StatusTooManyRequests && a.code != "payment_in_progress":
			return a, nil
		case time.Since(began) > insist && err == nil:
			return a, nil
		case time.Since(began) > insist:
			return a, fmt.Errorf("%s %s: no answer for %v: %w", method, path, insist, err)
		case err == nil:
			wait = 500 * time.Millisecond
			c.steps.again(fmt.Sprintf("%s %d %s", step, a.status, a.code))
		default:
			c.steps.again(step + " no answer")
		}
		if err := peers.Wait(ctx, wait+rand.N(wait)); err != nil {
			return a, err
		}
	}
}

// ask is one request.
type ask struct {
	token, method, path string
	key                 string // Idempotency-Key
	body                []byte
	form                bool // that is what the body is, and no JSON
}

func (c *clients) once(ctx context.Context, r ask) (a answer, err error) {
	nodes := c.where()
	if len(nodes) == 0 {
		return a, errors.New("no node is up")
	}
	ctx, cancel := context.WithTimeout(ctx, onceWithin)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, r.method, "http://"+nodes[rand.IntN(len(nodes))]+r.path, bytes.NewReader(r.body))
	if err != nil {
		return a, err
	}
	q.Header.Set("Authorization", "Bearer "+r.token)
	switch {
	case r.form:
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	case r.body != nil:
		q.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		q.Header.Set("Idempotency-Key", r.key)
	}
	resp, err := c.http.Do(q)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	a.status = resp.StatusCode
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return a, err
	}
	if a.status >= 400 {
		var p struct{ Code string }
		_ = json.Unmarshal(a.body, &p) // whatever it is, its status says that it is no answer
		a.code = p.Code
	}
	return a, nil
}

// steps are how long each step took, and why requests were sent again.
type steps struct {
	mu     sync.Mutex
	took   map[string][]time.Duration
	agains map[string]int
}

func newSteps() *steps { return &steps{took: map[string][]time.Duration{}, agains: map[string]int{}} }

func (s *steps) add(step string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took[step] = append(s.took[step], d)
}

func (s *steps) again(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agains[why]++
}

// Step is how long shoppers waited for one kind of request.
type Step struct {
	Step  string  `json:"step"`
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func (s *steps) all() (all []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range []string{"map", "hold", "swap", "extend", "give back", "pay", "confirm"} {
		took := slices.Clone(s.took[step])
		if len(took) == 0 {
			continue
		}
		slices.Sort(took)
		at := func(q float64) float64 {
			ms := took[int(q*float64(len(took)-1))].Seconds() * 1000
			rounded, _ := strconv.ParseFloat(fmt.Sprintf("%.1f", ms), 64) // it was printed just now
			return rounded
		}
		all = append(all, Step{step, len(took), at(0.5), at(0.99), at(1)})
	}
	return all
}
