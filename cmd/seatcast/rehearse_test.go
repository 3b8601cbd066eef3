package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/waitingroom"
)

// rehearses runs the command against a node, as an operator would.
func (h *house) rehearses(n *node, more ...string) (out string, err error) {
	h.t.Helper()
	key := ""
	for _, one := range h.env {
		if value, ok := strings.CutPrefix(one, "SEATCAST_SESSION_KEY="); ok {
			key = value
		}
	}
	var stdout, stderr strings.Builder
	err = run(h.t.Context(), append([]string{"rehearse", "--url", n.url, "--event", h.event, "--postgres", h.pool.Config().ConnString(),
		"--key", key, "--claims", demoClaims}, more...), &stdout, &stderr)
	return stdout.String() + stderr.String(), err
}

// nothingOfIt fails unless the copy is closed and nothing is known of its room.
func (h *house) nothingOfIt(t *testing.T) {
	t.Helper()
	if got := h.count(t.Context(), `SELECT count(*) FROM rooms WHERE event_id <> $1`, h.event); got != 0 {
		t.Errorf("%d rooms are left of it", got)
	}
	if got := h.count(t.Context(), `SELECT count(*) FROM events WHERE id LIKE $1 || '-rehearsal-%' AND state = 'closed'`, h.event); got != 1 {
		t.Errorf("%d copies are closed", got)
	}
	found, _, err := catalog.New(h.pool).Search(t.Context(), "(rehearsal)", 1)
	if err != nil || len(found) > 0 {
		t.Errorf("a search finds %v, %v", found, err)
	}
	for _, of := range []string{"room", "q", "adm", "pre", "new", "tar", "rev"} {
		if left := h.rdb.Keys(t.Context(), of+":{"+h.event+"-rehearsal-*").Val(); len(left) > 0 {
			t.Errorf("Redis knows %v of it", left)
		}
	}
	removed := h.count(t.Context(), `SELECT count(DISTINCT path) FROM admin_calls WHERE method = 'DELETE' AND path LIKE '/v1/admin/rooms/' || $1 || '-rehearsal-%'`, h.event)
	if removed != 1 {
		t.Errorf("that its room was removed is written down of %d rooms", removed)
	}
}

func TestARehearsalKeepsWhatTheRoomPromisesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	h.toRehearse(n, nil)
	out, err := h.rehearses(n, "--fans", "120", "--joining", "3s", "--stay", "500ms", "--sleep", "0")
	t.Log(out)
	if err != nil && !errors.Is(err, errKept) {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) { // a machine that is busy may be slow, and nothing else
		slow := strings.HasPrefix(line, "rate while") || strings.HasPrefix(line, "longest wait")
		if strings.Contains(line, "NOT KEPT") && !slow {
			t.Errorf("%s", line)
		}
	}
	for _, want := range []string{"waiting", "let in at once", "inside at most", "longest wait", "errors"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not printed", want)
		}
	}
	h.nothingOfIt(t)
	if got := h.count(t.Context(), `SELECT count(*) FROM bookings WHERE state IN ('held', 'paying')`); got != 0 {
		t.Errorf("%d seats are held", got)
	}
	if got := h.rdb.Exists(t.Context(), "q:{"+h.event+"}", "pre:{"+h.event+"}").Val(); got != 0 {
		t.Error("somebody simulated is in the real line")
	}
}

// rehearsal is one that is made of its parts.
func (h *house) rehearsal(n *node, c rehearseCmd, out io.Writer) *rehearsal {
	h.t.Helper()
	conns := new(http.Transport)
	h.t.Cleanup(conns.CloseIdleConnections)
	c.Event = h.event
	operator, err := h.sessions.Mint("olga", time.Hour, "operator")
	if err != nil {
		h.t.Fatal(err)
	}
	return &rehearsal{cmd: c, base: n.url, sessions: h.sessions, operator: operator, s: &streams{out, io.Discard}, shop: catalog.New(h.pool),
		client: &http.Client{Timeout: 20 * time.Second, Transport: conns}, live: &http.Client{Transport: conns}}
}

// toRehearse makes the room of the event, for later.
func (h *house) toRehearse(n *node, terms map[string]any) {
	h.t.Helper()
	room := map[string]any{"rate": 1200, "burst": 40, "cap": 500, "sessionSeconds": 300,
		"joinsAt": time.Now().Add(10 * time.Hour), "closesAt": time.Now().Add(11 * time.Hour), "opensAt": time.Now().Add(12 * time.Hour)}
	maps.Copy(room, terms)
	h.operator(n, "olga").do(http.MethodPut, "/v1/admin/rooms/"+h.event, "", room).want(h.t, http.StatusOK, "")
}

func TestACopyHasEveryTermOfItsRoomButThoseThatAreNotRehearsed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	h.toRehearse(n, map[string]any{"burst": 7, "cap": 30, "sessionSeconds": 77, "slow": map[string]int{"holdMs": 321, "failures": 9},
		"codes": true, "proof": 5000, "guardsMap": true, "external": map[string]any{"kind": "drand"}, "opensAt": time.Now().Add(24 * time.Hour)})
	r := h.rehearsal(n, rehearseCmd{Fans: 10, Joining: time.Second, Stay: time.Second}, io.Discard)
	ctx := t.Context()
	real, e, err := r.mayRehearse(ctx)
	if err == nil {
		err = r.copies(ctx, e, real)
	}
	if err == nil {
		err = r.prepares(ctx, real)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.ask(ctx, r.operator, http.MethodGet, "/v1/admin/rooms/"+r.event, nil)
	var copied map[string]any
	if err = errors.Join(err, json.Unmarshal(a.body, &copied)); err != nil {
		t.Fatal(err)
	}
	for name, value := range real.all {
		switch is := copied[name]; {
		case slices.Contains(toldOfRooms, name), name == "joinsAt", name == "closesAt", name == "opensAt":
		case slices.Contains(notRehearsed, name):
			if reflect.DeepEqual(is, value) {
				t.Errorf("%s is %v of the copy, too", name, is)
			}
		case !reflect.DeepEqual(is, value):
			t.Errorf("%s is %v, and %v of the copy", name, value, is)
		}
	}
	if err := r.clears(ctx, h.pool); err != nil {
		t.Fatal(err)
	}
	h.nothingOfIt(t)
}

// stopping stops a rehearsal once it has written something.
type stopping struct {
	strings.Builder
	once string
	stop func()
}

func (s *stopping) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.once) {
		s.stop()
	}
	return s.Builder.Write(p)
}

func TestARehearsalThatIsStoppedJudgesNothingAndLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	h.toRehearse(n, nil)
	ctx, stop := context.WithCancel(t.Context())
	out := &stopping{once: "  draw ", stop: stop}
	err := h.rehearsal(n, rehearseCmd{Fans: 50, Joining: 10 * time.Second, Stay: time.Second}, out).run(ctx, h.pool)
	if !errors.Is(err, context.Canceled) || errors.Is(err, errKept) {
		t.Errorf("it ended with %v", err)
	}
	if text := strings.ToLower(out.String()); strings.Contains(text, "kept") || !strings.Contains(text, "draw") {
		t.Errorf("it said %s", text)
	}
	h.nothingOfIt(t)
}

func TestARehearsalEndsInTimeAndSaysWhoWaitedInVain(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	h.toRehearse(n, map[string]any{"burst": 2})
	var out strings.Builder
	r := h.rehearsal(n, rehearseCmd{Fans: 40, Rate: 1, Joining: time.Second, Stay: time.Second}, &out)
	if promised := r.cmd.longest(realRoom{Rate: 1, Cap: 500}); promised < time.Hour {
		t.Errorf("it may take %v by itself", promised)
	}
	r.within = 10 * time.Second
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := r.run(ctx, h.pool); !errors.Is(err, errKept) {
		t.Errorf("it ended with %v", err)
	}
	vain := regexp.MustCompile(`(?m)^waited in vain +[1-9]\d* +nobody within 10s +NOT KEPT$`)
	if !vain.MatchString(out.String()) {
		t.Errorf("it said %s", &out)
	}
	h.nothingOfIt(t)
}

func TestAStreamThatIsRefusedIsAnErrorOfTheRehearsal(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	r := h.rehearsal(n, rehearseCmd{}, io.Discard)
	r.event, r.errors = h.event, map[string]int{} // it has no room
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.watches(ctx) }()
	eventually(t, 10*time.Second, "the refusal is counted", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.errors["no_queue"] > 0
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errors) != 1 {
		t.Errorf("counted are %v", r.errors)
	}
}

func TestAnEventWithALongNameCanBeRehearsed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	r := h.rehearsal(&node{}, rehearseCmd{}, io.Discard)
	e, err := r.shop.Get(t.Context(), h.event)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, name string }{{strings.Repeat("a", 63), strings.Repeat("é", 100)}, {strings.Repeat("b", 42), strings.Repeat("x", 189)}} {
		e.ID, e.Name = c.id, c.name
		if err := r.copies(t.Context(), e, realRoom{}); err != nil {
			t.Errorf("an id of %d and a name of %d bytes: %v", len(c.id), len(c.name), err)
		}
	}
}

func TestARehearsalJudgesWhatTheRoomDidAndNotWhenItHeardOfIt(t *testing.T) {
	at := func(ms ...int64) (all []time.Time) {
		for _, one := range ms {
			all = append(all, time.UnixMilli(one))
		}
		return all
	}
	for _, c := range []struct {
		in   []time.Time // a second for each
		most float64
	}{{at(0), 1}, {at(0, 1000, 2000, 3000), 1}, {at(0, 0, 0), 3}, {at(0, 5000, 5000, 6000, 6500), 2.5}} {
		if got := beyond(c.in, 60); math.Abs(got-c.most) > 0.01 {
			t.Errorf("of %v %v came at once, want %v", c.in, got, c.most)
		}
	}
	keys, err := waitingroom.ParseKeys("", testServerKey)
	if err != nil {
		t.Fatal(err)
	}
	id, until := keys.TicketOf("theatre", "ann").ID, time.UnixMilli(1796123377687)
	pass, err := keys.SignPass(waitingroom.Pass{ID: fmt.Sprintf("%v-%d", id, until.UnixMilli()), Event: "theatre", User: "ann", Ticket: id, Until: until})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := passUntil(pass); err != nil || !got.Equal(until) {
		t.Errorf("a pass until %v ends at %v: %v", until, got, err)
	}
	if _, err := passUntil("x.y.z"); err == nil {
		t.Error("no pass has an end")
	}
}

func TestWhatTheCapHoldsUpIsNotHeldAgainstTheRate(t *testing.T) {
	c := rehearseCmd{Fans: 600, Stay: 5 * time.Second}
	for limit, want := range map[int]time.Duration{1000: 10 * time.Minute, 1: 50 * time.Minute} {
		if got := c.drains(realRoom{Rate: 60, Cap: limit}); got != want {
			t.Errorf("with %d inside at most it takes %v, want %v", limit, got, want)
		}
	}
	r := rehearsal{terms: waitingroom.Terms{Rate: 60, Burst: 1, Cap: 1}, drains: time.Minute, within: time.Hour, most: 1}
	r.steps = []step{{at: time.UnixMilli(0), open: 1, ready: 200}}
	for i := range int64(100) {
		at := time.UnixMilli(5000 * i)
		r.in = append(r.in, at)
		r.waits = append(r.waits, waited{long: time.Duration(i) * 5 * time.Second})
		r.steps = append(r.steps, step{at: at, inside: 1}, step{at: at, ready: -1, in: 1}, step{at: at.Add(4900 * time.Millisecond), inside: -1})
	}
	r.steps = append(r.steps, step{at: time.UnixMilli(500_000), ready: -100})
	for _, j := range r.judge() {
		if waits := strings.HasPrefix(j.what, "rate") || strings.HasPrefix(j.what, "longest"); j.ruling == notKept || waits && j.ruling == isKept {
			t.Errorf("%+v", j)
		}
	}
	r.terms.Cap = 2
	for _, j := range r.judge() {
		if waits := strings.HasPrefix(j.what, "rate") || strings.HasPrefix(j.what, "longest"); (j.ruling == notKept) != waits {
			t.Errorf("twelve a minute are not sixty: %+v", j)
		}
	}
}

// lets is a rehearsal in which so many wait who are awake, and are let in at a pace once a
// burst has been.
func lets(rate, burst, waiting int, perMinute float64, atOnce int) *rehearsal {
	r := &rehearsal{terms: waitingroom.Terms{Rate: rate, Burst: burst, Cap: 10_000}}
	r.steps = []step{{at: time.UnixMilli(0), open: 1}, {at: time.UnixMilli(500), ready: waiting}}
	at := time.UnixMilli(2000)
	for n := range waiting {
		if n >= atOnce {
			at = at.Add(time.Duration(float64(time.Minute) / perMinute))
		}
		r.steps = append(r.steps, step{at: at.Add(-time.Millisecond), inside: 1}, step{at: at, ready: -1, in: 1})
	}
	return r
}

func TestTheRateIsJudgedOnlyWherePeopleWhoWereAwakeWaitedForLongEnough(t *testing.T) {
	for name, c := range map[string]struct {
		r    *rehearsal
		want ruling
	}{
		"a line that is empty after four seconds":         {lets(600, 20, 60, 600, 20), "not judged"},
		"a line of a minute, at the rate":                 {lets(600, 20, 620, 600, 20), isKept},
		"at the rate, from an empty bucket":               {lets(600, 20, 600, 600, 0), isKept},
		"at half the rate":                                {lets(600, 20, 600, 300, 20), notKept},
		"fewer than come while one asks anew":             {lets(600, 20, 29, 10, 0), "not judged"},
		"a burst that hides whether it was half the rate": {lets(600, 300, 350, 300, 300), "not judged"},
		"nobody": {lets(600, 20, 0, 600, 0), "not judged"},
	} {
		if j := c.r.judgeRate(); !strings.HasPrefix(string(j.ruling), string(c.want)) {
			t.Errorf("%s: %+v", name, j)
		}
	}
	stuck := lets(600, 20, 0, 600, 0)
	stuck.steps = append(stuck.steps, step{at: time.UnixMilli(500), ready: 100}, step{at: time.UnixMilli(60_000), ready: -100})
	if j := stuck.judgeRate(); j.ruling != notKept || !strings.HasPrefix(j.is, "0 a minute") {
		t.Errorf("a hundred wait for a minute, and nobody is let in: %+v", j)
	}
	asleep := lets(600, 20, 600, 300, 20)
	for n := range asleep.steps {
		asleep.steps[n].ready = 0
	}
	if j := asleep.judgeRate(); j.ruling == notKept {
		t.Errorf("all of them sleep: %+v", j)
	}
	paused := lets(600, 20, 600, 300, 20)
	paused.steps = append(paused.steps, step{at: time.UnixMilli(4000), open: -1})
	if j := paused.judgeRate(); j.ruling == notKept {
		t.Errorf("it is paused after two seconds: %+v", j)
	}
}

func TestNobodyRehearsesWhileTheRealFansAreThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	if _, err := h.rehearses(n); err == nil || !strings.Contains(err.Error(), "no waiting room") {
		t.Errorf("of an event without one: %v", err)
	}
	h.waits(nil, n)
	if _, err := h.rehearses(n); err == nil || !strings.Contains(err.Error(), "has begun") {
		t.Errorf("of one that is open: %v", err)
	}
	other := newHouse(t, plan{})
	on := other.node()
	room := map[string]any{"rate": 60, "cap": 50, "sessionSeconds": 300, "joinsAt": time.Now().Add(5 * time.Minute), "opensAt": time.Now().Add(time.Hour)}
	other.operator(on, "olga").do(http.MethodPut, "/v1/admin/rooms/"+other.event, "", room).want(t, http.StatusOK, "")
	if _, err := other.rehearses(on); err == nil || !strings.Contains(err.Error(), "may join") {
		t.Errorf("of one that is joined in five minutes: %v", err)
	}
	if _, err := other.rehearses(on, "--claims", "user=sub"); err == nil || !strings.Contains(err.Error(), "roles") {
		t.Errorf("without an operator: %v", err)
	}
	for args, want := range map[string]string{"--fans 1": "--fans must be 10", "--stay 1ms": "--stay must be", "--leave 1": "--leave must be", "--url nowhere": "--url is"} {
		if _, err := other.rehearses(on, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if got := h.count(t.Context(), `SELECT count(*) FROM events`) + other.count(t.Context(), `SELECT count(*) FROM events`); got != 2 {
		t.Errorf("there are %d events", got)
	}
}
