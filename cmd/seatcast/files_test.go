package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"seatcast/seatmap"
)

// knock asks for a stream over a connection of its own, which stays open. what
// is "served", "told" (200, and when to come back) or the code of a problem.
func knock(t testing.TB, n *node, event string) (c net.Conn, what string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET /v1/events/%s/live HTTP/1.1\r\nHost: x\r\n\r\n", event); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if res.StatusCode == http.StatusOK {
		word, err := bufio.NewReader(res.Body).ReadString(' ')
		if err != nil {
			t.Fatal(err)
		}
		return c, map[string]string{": ": "served", "retry: ": "told"}[word]
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Status int
		Code   string
	}
	after, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || after < 1 || !res.Close || json.Unmarshal(body, &p) != nil || p.Status != res.StatusCode || res.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("turned away with %d %v %s", res.StatusCode, res.Header, body)
	}
	return c, p.Code
}

// crowdIn knocks until somebody is not served, and returns who was.
func crowdIn(t testing.TB, n *node, event string) (in []net.Conn, then string) {
	t.Helper()
	for range 1000 {
		c, what := knock(t, n, event)
		if what != "served" {
			return in, what
		}
		in = append(in, c)
	}
	t.Fatal("a thousand were served")
	return nil, ""
}

func TestWithNoDescriptorLeftWhoeverComesIsToldSoAndWatchersGoOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	full := startCapped(t, 200, append(h.env, "SEATCAST_HUB_SESSIONS=-1", "SEATCAST_ROLES=hub"))
	other := h.node()
	watchers := []*watcher{watch(t, h.event, full.url), watchSocket(t, h.event, full.url)}
	for _, w := range watchers {
		eventually(t, 5*time.Second, "the first map", func() bool { return w.number() > 0 })
	}
	http.DefaultClient.CloseIdleConnections()

	in, what := crowdIn(t, full, h.event)
	answers := map[string]int{what: 1}
	for range 30 {
		_, what := knock(t, full, h.event)
		answers[what]++
	}
	if answers["too_many_connections"] < 20 || answers["served"] > 5 {
		t.Errorf("%d were served, and then %v", len(in), answers)
	}
	seats := h.seats(2)
	h.shopper(other, "ann").hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	for _, w := range watchers {
		w.sees(5*time.Second, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
	}

	for _, c := range in[:len(in)/2] {
		_ = c.Close()
	}
	eventually(t, 10*time.Second, "there is room again", func() bool {
		_, what := knock(t, full, h.event)
		return what == "served"
	})
	if counted := full.metric(t, "http_accept_refused_total"); counted < 20 {
		t.Errorf("%v were refused, and %v counted", answers, counted)
	}
	h.shopper(other, "bob").hold(h.event, "", seats[1]).want(t, http.StatusCreated, "")
	for _, w := range watchers {
		w.sees(5*time.Second, func() seatmap.Map { return h.truth(t.Context(), h.rdb) })
		if n := w.shown(); n != 1 {
			t.Errorf("a watcher was shown %d whole maps: it lost its session", n)
		}
	}
}

func TestANodeHoldsAsManySessionsAsItsDescriptorsAllow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := startCapped(t, 256, h.env)
	if files := n.metric(t, "process_max_fds"); files < 255 {
		t.Errorf("it may open %v files: it has not raised its limit", files)
	}
	in, what := crowdIn(t, n, h.event)
	if what != "hub_full" || len(in) != sessionsIn(256) {
		t.Errorf("%d were served and the next was answered %q, want %d and hub_full", len(in), what, sessionsIn(256))
	}
	if limit := n.metric(t, "hub_sessions_limit"); limit != float64(len(in)) {
		t.Errorf("the limit is told as %v", limit)
	}
	// There is room for everything else.
	h.shopper(n, "ann").hold(h.event, "", h.seats(1)...).want(t, http.StatusCreated, "")
	_ = in[0].Close()
	eventually(t, 5*time.Second, "the place of who left is taken", func() bool {
		_, what := knock(t, n, h.event)
		return what == "served"
	})
}

func TestSessionsLeaveDescriptorsForTheRest(t *testing.T) {
	for files, want := range map[uint64]int{64: 32, 256: 128, 1024: 666, 20_000: 17_744, 65_536: maxSessions, 1 << 40: maxSessions} {
		if got := sessionsIn(files); got != want {
			t.Errorf("of %d descriptors sessions get %d, want %d", files, got, want)
		}
	}
}
