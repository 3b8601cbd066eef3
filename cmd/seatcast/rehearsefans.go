package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sync/errgroup"

	"seatcast/catalog"
	"seatcast/waitingroom"
	"seatcast/web"
)

// rehearsal is one, and what its fans have lived through.
type rehearsal struct {
	cmd      rehearseCmd
	base     string // of the servers, without a slash at the end
	s        *streams
	shop     *catalog.Store
	sessions *web.Sessions
	operator string // session
	client   *http.Client
	live     *http.Client  // for streams, over the same connections
	within   time.Duration // how long it may take

	event  string // the copy
	opens  time.Time
	terms  waitingroom.Terms
	drains time.Duration
	board  *board // of the copy

	mu     sync.Mutex
	frame  rehearseFrame
	most   int64           // inside, of any frame
	steps  []step          // of those who can be let in
	slowed map[string]bool // why the room let in fewer, of any frame
	in     []time.Time     // when somebody was let in, by the clock of Redis
	waits  []waited        // how long they had waited
	left   int             // so many left the line
	inVain int             // so many were not let in
	errors map[string]int  // answers nobody should get, by code
}

// waited is how long one of those let in had waited since the opening, and was
// there for all of it.
type waited struct {
	long  time.Duration
	slept bool
}

// step is what changed among those who can be let in.
type step struct {
	at     time.Time // by the clock of this machine
	open   int       // 1: the room is; -1: it is not any more
	ready  int       // so many more have a number, are awake and stay: they ask once they are called
	inside int       // so many more may be inside
	in     int       // so many were let in
}

// notes takes down what has changed.
func (r *rehearsal) notes(s ...step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s...)
}

// rehearseFrame is what is looked at of a frame.
type rehearseFrame struct {
	State   waitingroom.State
	Serving int64
	Waiting int64
	Inside  int64
	Pace    int
	Slowed  string
}

const (
	rehearseSession = 12 * time.Hour
	rehearseSleep   = 10 * time.Second
)

// answered is an answer.
type answered struct {
	status int
	code   string // of a problem
	again  time.Duration
	body   []byte
}

func (a answered) String() string { return fmt.Sprintf("%d %.200s", a.status, a.body) }

// ask sends one request.
func (r *rehearsal) ask(ctx context.Context, token, method, path string, body any, header ...string) (a answered, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return a, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	if len(text) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := r.client.Do(req)
	if err != nil {
		return a, err
	}
	return read(res)
}

// read reads an answer to its end.
func read(res *http.Response) (a answered, err error) {
	defer func() { _ = res.Body.Close() }()
	a.status = res.StatusCode
	if a.body, err = io.ReadAll(res.Body); err != nil {
		return a, err
	}
	if a.status >= http.StatusBadRequest {
		var p struct{ Code string }
		_ = json.Unmarshal(a.body, &p) // a proxy's has none
		a.code = p.Code
	}
	s, _ := strconv.Atoi(res.Header.Get("Retry-After")) // 0: none
	a.again = time.Duration(s) * time.Second
	return a, nil
}

// failed counts an answer that nobody should get, unless it was no longer waited for.
func (r *rehearsal) failed(ctx context.Context, a answered, err error) {
	if ctx.Err() != nil {
		return
	}
	code := a.code
	switch {
	case err != nil:
		code = "no answer"
	case code == "":
		code = strconv.Itoa(a.status)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors[code]++
}

// plays lets the fans come, and returns when the last has gone, or ctx ends.
func (r *rehearsal) plays(ctx context.Context) error {
	r.errors, r.slowed = map[string]int{}, map[string]bool{}
	if err := r.enter(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	watching, over := context.WithCancel(ctx)
	defer over()
	g.Go(func() error { return r.looks(watching) })
	g.Go(func() error { return r.tells(watching) })
	for range min(r.cmd.Fans, maxStreams) {
		g.Go(func() error { return r.watches(watching) })
	}
	g.Go(func() error {
		defer over()
		crowd, ctx := errgroup.WithContext(ctx)
		for i := range r.cmd.Fans {
			token, err := r.sessions.Mint(fmt.Sprintf("rehearsal-%d", i), rehearseSession)
			if err != nil {
				return err
			}
			crowd.Go(func() error { return r.lives(ctx, token) })
		}
		return crowd.Wait()
	})
	return g.Wait()
}

// enter learns the chart of the copy.
func (r *rehearsal) enter(ctx context.Context) error {
	c := crowd{base: r.base, event: r.event, client: r.client}
	if err := c.enter(ctx); err != nil {
		return err
	}
	r.board = c.board
	return nil
}

// looks reads the frame once a second, for everybody.
func (r *rehearsal) looks(ctx context.Context) error {
	for pause(ctx, time.Second) {
		var f rehearseFrame
		a, err := r.ask(ctx, "", http.MethodGet, "/v1/queue/"+r.event, nil)
		if err == nil && a.status == http.StatusOK {
			err = json.Unmarshal(a.body, &f)
		}
		if err != nil || a.status != http.StatusOK {
			r.failed(ctx, a, err)
			continue
		}
		r.mu.Lock()
		switch was, is := r.frame.State == waitingroom.Open, f.State == waitingroom.Open; {
		case is && !was:
			r.steps = append(r.steps, step{at: time.Now(), open: 1})
		case was && !is:
			r.steps = append(r.steps, step{at: time.Now(), open: -1})
		}
		r.frame, r.most = f, max(r.most, f.Inside)
		if f.Slowed != "" {
			r.slowed[f.Slowed] = true
		}
		r.mu.Unlock()
	}
	return nil
}

// watches keeps a stream of frames open, as a page does.
func (r *rehearsal) watches(ctx context.Context) error {
	for pause(ctx, rand.N(2*time.Second)) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/v1/queue/"+r.event+"/live", nil)
		if err != nil {
			return err
		}
		res, err := r.live.Do(req)
		if err == nil && res.StatusCode == http.StatusOK {
			_, _ = io.Copy(io.Discard, res.Body) // ends when either side does; coming back is the answer to both
			_ = res.Body.Close()
			continue
		}
		var a answered
		if err == nil {
			a, err = read(res)
		}
		r.failed(ctx, a, err)
	}
	return nil
}

func (r *rehearsal) now() rehearseFrame {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.frame
}

// lives is one fan's evening. What goes wrong is counted, not returned.
func (r *rehearsal) lives(ctx context.Context, token string) error {
	if !r.attends(ctx, token) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.inVain++
	}
	return nil
}

// attends says false of a fan who would have shopped and was not let in.
func (r *rehearsal) attends(ctx context.Context, token string) bool {
	comes := rand.N(r.cmd.Joining)
	if rand.N(10) == 0 { // behind everybody
		comes = time.Until(r.opens) + rand.N(r.cmd.Joining)
	}
	if !pause(ctx, comes) {
		return false
	}
	came := time.Now()
	number, place, ok := r.joins(ctx, token, "")
	if !ok {
		return false
	}
	leaves := rand.Float64() < r.cmd.Leave
	sleeps := rand.Float64() < r.cmd.Sleep
	ready := 0
	defer func() { r.notes(step{at: time.Now(), ready: -ready}) }()
	for pause(ctx, time.Second/2+rand.N(time.Second)) {
		f := r.now()
		if number > 0 && f.State == waitingroom.Open && !leaves && !sleeps && ready == 0 {
			ready = 1
			r.notes(step{at: time.Now(), ready: 1})
		}
		switch {
		case f.State == waitingroom.Over:
			return leaves
		case number == 0 && f.State == waitingroom.Open: // drawn
			if number, place, ok = r.joins(ctx, token, place); !ok {
				return false
			}
		case number == 0 || f.State != waitingroom.Open || f.Serving < number:
			if leaves && rand.N(20) == 0 {
				r.leavesLine(ctx, token)
				return true
			}
		case leaves:
			r.leavesLine(ctx, token)
			return true
		case sleeps && !pause(ctx, rehearseSleep):
			return false
		default:
			if ready == 0 { // has slept
				ready = 1
				r.notes(step{at: time.Now(), ready: 1})
			}
			if r.claims(ctx, token, place, waited{max(0, time.Since(later(came, r.opens))), sleeps}) {
				ready = 0
				return true
			}
			sleeps = false
		}
	}
	return leaves
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (r *rehearsal) leavesLine(ctx context.Context, token string) {
	if a, err := r.ask(ctx, token, http.MethodDelete, "/v1/queue/"+r.event+"/me", nil); err != nil || a.status != http.StatusNoContent {
		r.failed(ctx, a, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left++
}

// joins asks until there is a place. Being told to come again is no error while
// the list of a draw closes.
func (r *rehearsal) joins(ctx context.Context, token, place string) (number int64, signed string, ok bool) {
	for range 20 {
		a, err := r.ask(ctx, token, http.MethodPost, "/v1/queue/"+r.event, map[string]string{"place": place})
		if err == nil && a.status/100 == 2 {
			var got struct {
				Number int64
				Place  string
			}
			err = json.Unmarshal(a.body, &got)
			return got.Number, got.Place, err == nil
		}
		if a.code != "queue_closing" {
			r.failed(ctx, a, err)
		}
		if !pause(ctx, max(a.again, time.Second/2)) {
			break
		}
	}
	return 0, "", false
}

// claims asks for the pass, and shops with it: whoever does is not ready any more. It says
// whether there was one.
func (r *rehearsal) claims(ctx context.Context, token, place string, w waited) bool {
	for first := time.Now(); ; {
		asked := time.Now()
		a, err := r.ask(ctx, token, http.MethodPost, "/v1/queue/"+r.event+"/pass", map[string]string{"place": place})
		if err == nil && a.status == http.StatusOK {
			var got struct{ Pass string }
			err = json.Unmarshal(a.body, &got)
			var until time.Time
			if err == nil {
				until, err = passUntil(got.Pass)
			}
			if err != nil {
				r.failed(ctx, answered{code: "no pass"}, nil)
				return false
			}
			w.long += time.Since(first)
			r.mu.Lock()
			r.in, r.waits = append(r.in, until), append(r.waits, w) // all stay as long: between two ends is what is between their beginnings
			r.steps = append(r.steps, step{at: asked, inside: 1}, step{at: time.Now(), ready: -1, in: 1})
			r.mu.Unlock()
			defer func() { r.notes(step{at: time.Now(), inside: -1}) }()
			r.shops(ctx, token, got.Pass)
			return true
		}
		switch {
		case a.status == http.StatusGone:
			return false
		case err != nil || a.status != http.StatusAccepted && a.status != http.StatusConflict:
			r.failed(ctx, a, err)
		}
		if !pause(ctx, max(a.again, time.Second)) {
			return false
		}
	}
}

// passUntil is when a pass ends, to the millisecond, as its jti has it.
func passUntil(pass string) (time.Time, error) {
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(pass, &claims); err != nil {
		return time.Time{}, err
	}
	ms, err := strconv.ParseInt(claims.ID[strings.LastIndexByte(claims.ID, '-')+1:], 10, 64)
	return time.UnixMilli(ms), err
}

// shops stays, holds a seat perhaps, and goes.
func (r *rehearsal) shops(ctx context.Context, token, pass string) {
	var booking struct {
		ID string `json:"bookingId"`
	}
	if want := r.board.choose(1); want != nil && rand.Float64() < r.cmd.Hold {
		a, err := r.ask(ctx, token, http.MethodPost, "/v1/bookings/"+r.event, want, "Seatcast-Pass", pass)
		switch {
		case err == nil && a.status == http.StatusCreated:
			_ = json.Unmarshal(a.body, &booking) // without an id it is not given back, and ends by itself
		case err != nil || a.code != "seats_taken":
			r.failed(ctx, a, err)
		}
	}
	stays := pause(ctx, r.cmd.Stay/2+rand.N(r.cmd.Stay))
	if ctx.Err() != nil || !stays {
		ctx = context.WithoutCancel(ctx)
	}
	if booking.ID != "" {
		if a, err := r.ask(ctx, token, http.MethodDelete, "/v1/bookings/"+booking.ID, nil); err != nil || a.status/100 != 2 {
			r.failed(ctx, a, err)
		}
	}
	if a, err := r.ask(ctx, token, http.MethodDelete, "/v1/queue/"+r.event+"/me", nil); err != nil || a.status != http.StatusNoContent {
		r.failed(ctx, a, err)
	}
}
