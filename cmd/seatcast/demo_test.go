package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"seatcast/catalog"
	"seatcast/internal/devstack"
	"seatcast/seatmap"
)

// demo is a running `seatcast demo`.
type demo struct {
	*command
	url string
}

func startDemo(t testing.TB, dir string, args ...string) demo {
	t.Helper()
	c := startCommand(t, append([]string{"demo", "--addr", "127.0.0.1:0", "--data", dir}, args...)...)
	return demo{c, c.says(90*time.Second, "ready: ")}
}

// shopper signs in the way only a demo allows.
func (d demo) shopper(user string) shopper {
	d.t.Helper()
	s := shopper{d.t, d.url, ""}
	var session struct{ Token string }
	a := s.do(http.MethodPost, "/v1/demo/session", "", map[string]string{"user": user}).want(d.t, http.StatusOK, "")
	if err := json.Unmarshal(a.raw, &session); err != nil || session.Token == "" {
		d.t.Fatalf("no session: %s", a.raw)
	}
	s.token = session.Token
	return s
}

// operator signs in as the demo says that its owner can.
func (d demo) operator(dir string) shopper {
	d.t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, sessionKeyFile))
	if err != nil {
		d.t.Fatal(err)
	}
	token := must(d.t, "token", "--claims", demoClaims, "--key", string(key), "--user", "me", "--role", "operator")
	return shopper{d.t, d.url, strings.TrimSpace(token)}
}

func (d demo) get(path string, out any) {
	d.t.Helper()
	a := shopper{d.t, d.url, ""}.do(http.MethodGet, path, "", nil).want(d.t, http.StatusOK, "")
	if err := json.Unmarshal(a.raw, out); err != nil {
		d.t.Fatalf("GET %s: %v", path, err)
	}
}

func (d demo) at(event string, seat int) seatmap.Status {
	d.t.Helper()
	var s seatmap.Snapshot
	d.get("/v1/events/"+event+"/seatmap", &s)
	return s.Map.At(seat)
}

// metric reads one line of /metrics, 0 when there is none.
func (d demo) metric(name string) float64 {
	d.t.Helper()
	a := shopper{d.t, d.url, ""}.do(http.MethodGet, "/metrics", "", nil).want(d.t, http.StatusOK, "")
	for line := range strings.Lines(string(a.raw)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				d.t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// onSale fails unless that event alone is on sale: hot, open, first in the
// list; and every other one there and refused.
func (d demo) onSale(event string) {
	d.t.Helper()
	var found struct {
		Events []struct {
			ID    string
			Mode  catalog.Mode
			State catalog.State
			Open  bool
		}
	}
	d.get("/v1/events/search", &found)
	if len(found.Events) != len(demoVenues) || found.Events[0].ID != event {
		d.t.Fatalf("not %s first of all venues: %+v", event, found.Events)
	}
	s := d.shopper("curious")
	for n, e := range found.Events {
		if e.Mode != catalog.Hot || e.Open != (n == 0) || (e.State == catalog.Open) != (n == 0) {
			d.t.Errorf("event %d in the list: %+v", n, e)
		}
		if n > 0 {
			s.hold(e.ID, "", "any").want(d.t, http.StatusForbidden, "sale_not_open")
		}
	}
}

// dataDir is a folder the servers may enter, which t.TempDir is not, and no
// process of which may be left in the end.
func dataDir(t *testing.T) string {
	t.Helper()
	_, noRedis := exec.LookPath("redis-server")
	_, noPostgres := exec.LookPath("initdb")
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) > 0 {
		noPostgres = nil
	}
	if err := errors.Join(noRedis, noPostgres); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "seatcast-demo-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		noneLeft(t, dir)
		_ = os.RemoveAll(dir)
	})
	return dir
}

// noneLeft fails for every process that works in dir or was told of it.
func noneLeft(t *testing.T, dir string) {
	t.Helper()
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		if p == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		cwd, _ := os.Readlink(p + "/cwd")
		line, _ := os.ReadFile(p + "/cmdline")
		if strings.HasPrefix(cwd, dir) || bytes.Contains(line, []byte(dir)) {
			t.Errorf("left running: %s in %s: %s", p, cwd, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}

// stadiumSeats are the ticket ids of the first seats of the stadium.
func stadiumSeats(n int) (ids []string) {
	for _, s := range seatmap.Stadium().Sections[0].Rows[0].Seats[:n] {
		ids = append(ids, s.TicketID)
	}
	return ids
}

// One sale through every end a demo can have: Ctrl-C, kill -9, another event.
func TestADemoResumesItsSaleAfterAnyEnd(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	seats := stadiumSeats(4)

	d := startDemo(t, dir)
	d.onSale("stadium")
	ann := d.shopper("ann")
	sold := ann.hold("stadium", "", seats[0]).want(t, http.StatusCreated, "")
	held := ann.hold("stadium", "", seats[2]).want(t, http.StatusCreated, "")
	ann.pay(sold.BookingID, "", goodCard)
	eventually(t, 20*time.Second, "the seat is sold", func() bool { return ann.confirm(sold.BookingID).State == "sold" })
	eventually(t, 5*time.Second, "the map shows it", func() bool { return d.at("stadium", 0) == seatmap.Sold })
	wantSame := func(d demo) {
		t.Helper()
		if a, b := d.at("stadium", 0), d.at("stadium", 2); a != seatmap.Sold || b != seatmap.Held {
			t.Errorf("the sold seat is %v, the held one %v", a, b)
		}
		ann := d.shopper("ann")
		if s := ann.booking(sold.BookingID).State; s != "sold" {
			t.Errorf("the sold booking is %s", s)
		}
		if s := ann.booking(held.BookingID).State; s != "held" {
			t.Errorf("the held booking is %s", s)
		}
	}
	t.Run("WhoHasItsKeyIsAnOperatorAndNobodyWhoSignsIn", func(t *testing.T) {
		d.operator(dir).do(http.MethodGet, "/v1/admin/audit", "", nil).want(t, http.StatusOK, "")
		ann.do(http.MethodGet, "/v1/admin/audit", "", nil).want(t, http.StatusForbidden, "not_operator")
	})
	t.Run("PagesOfThisMachineMayCallIt", func(t *testing.T) {
		for origin, want := range map[string]string{"http://localhost:8000": "http://localhost:8000", "https://shop.example": ""} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/v1/events/stadium", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Origin", origin)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if got := res.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("a page of %s is told %q", origin, got)
			}
		}
	})
	t.Run("AnotherOnTheSameDataIsRefused", func(t *testing.T) {
		said := refused(t, "demo", "--addr", "127.0.0.1:0", "--data", dir)
		if !strings.Contains(said, "in use") || !strings.Contains(said, fmt.Sprintf("process %d", d.cmd.Process.Pid)) {
			t.Errorf("it said %s", said)
		}
	})
	t.Run("AnAddressInUseIsToldAndNothingStarted", func(t *testing.T) {
		other := filepath.Join(dir, "other")
		addr := strings.TrimPrefix(d.url, "http://")
		if said := refused(t, "demo", "--addr", addr, "--data", other); !strings.Contains(said, "--addr "+addr+" is in use") {
			t.Errorf("it said %s", said)
		}
		if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a folder was made: %v", err)
		}
	})
	d.interrupt()
	noneLeft(t, dir)
	if said := d.stderr.String(); said != "" {
		t.Errorf("an ordinary evening was logged: %s", said)
	}

	d = startDemo(t, dir)
	wantSame(d)
	d.shopper("bob").hold("stadium", "", seats[0]).want(t, http.StatusConflict, "seats_taken")
	d.shopper("bob").hold("stadium", "", seats[2]).want(t, http.StatusConflict, "seats_taken")
	d.kill()

	d = startDemo(t, dir, "--event", "club", "--crowd", "40")
	d.onSale("club")
	wantSame(d)
	for _, verb := range []string{"take", "spend", "release"} {
		eventually(t, 30*time.Second, "the crowd makes them "+verb, func() bool {
			return d.metric(fmt.Sprintf(`holds_total{outcome="ok",verb=%q}`, verb)) > 0
		})
	}
	eventually(t, 10*time.Second, "the crowd watches", func() bool { return d.metric(`hub_sessions{engine="parked",transport="sse"}`) == 40 })
	d.interrupt()
	noneLeft(t, dir)
	if said := d.stderr.String(); said != "" {
		t.Errorf("an ordinary evening was logged: %s", said)
	}

	d = startDemo(t, dir, "--event", "theatre")
	d.operator(dir).do(http.MethodPost, "/v1/admin/events/theatre/cancel", "", map[string]any{"reason": "the tenor is ill", "refund": false}).want(t, http.StatusOK, "")
	d.interrupt()
	c := startCommand(t, "demo", "--addr", "127.0.0.1:0", "--data", dir, "--event", "theatre")
	c.says(30*time.Second, "the sale that is there goes on")
	c.says(30*time.Second, "the event theatre is cancelled: ")
	wantSame(demo{c, c.says(90*time.Second, "ready: ")})
	c.interrupt()
	if said := refused(t, "demo", "--addr", "127.0.0.1:0", "--data", dir, "--event", "theatre", "--crowd", "40"); !strings.Contains(said, "begin anew with --data DIR") {
		t.Errorf("it said %s", said)
	}
}

func TestADemoInterruptedWhileItStartsLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	c := startCommand(t, "demo", "--addr", "127.0.0.1:0", "--data", dir)
	c.says(30*time.Second, "starting private ")
	c.interrupt()
	noneLeft(t, dir)
}

func TestADemoBelowAClosedFolderIsRefusedWithTheReason(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs servers as somebody else, whom a folder can be closed to")
	}
	t.Parallel()
	closed := filepath.Join(dataDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	said := refused(t, "demo", "--addr", "127.0.0.1:0", "--data", filepath.Join(closed, "data"))
	if !strings.Contains(said, devstack.ErrMayNotEnter.Error()) || !strings.Contains(said, "may not enter "+closed) || strings.Contains(said, "initdb") {
		t.Errorf("it said %s", said)
	}
}

func TestADemoRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ flag, value, want string }{
		{"--event", "opera", `--event must be one of "theatre","arena","stadium","club" but got "opera"`},
		{"--crowd", "-1", "use 0 to 5000"},
		{"--crowd", "many", "--crowd"},
		{"--addr", "nowhere", "--addr nowhere: "},
	} {
		err := run(t.Context(), []string{"demo", "--data", "/nonexistent/data", tt.flag + "=" + tt.value}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v", tt.flag, tt.value, err)
		}
	}
}

func TestOnlyADemoSignsAnybodyIn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	n := h.node()
	shopper{t, n.url, ""}.do(http.MethodPost, "/v1/demo/session", "", map[string]string{"user": "ann"}).want(t, http.StatusNotFound, "not_found")
}
