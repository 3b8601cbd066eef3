package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"seatcast/catalog"
	"seatcast/hub"
	"seatcast/seatmap"
)

// frame is one object of a stream, whichever way it came.
type frame struct {
	Type  string `json:"type"`
	Topic string `json:"topic"`
	Code  string `json:"code"`
	N     int64  `json:"n"`
	Prev  int64  `json:"prev"`

	id  string // of an SSE event
	raw []byte
}

func (f frame) String() string { return fmt.Sprintf("%s %d←%d %.80s", f.Type, f.N, f.Prev, f.raw) }

// frames is an open stream, read one frame at a time.
type frames struct {
	t    testing.TB
	read func() (frame, error)
	say  func(text string) // on a WebSocket
}

// next returns the next frame that is no beat, and fails when none comes.
func (fs *frames) next() frame {
	fs.t.Helper()
	for {
		f, err := fs.read()
		if err != nil {
			fs.t.Fatalf("no further frame: %v", err)
		}
		if f.Type != "beat" {
			return f
		}
	}
}

// streamPatience bounds the life of a stream a test reads.
const streamPatience = time.Minute

// ways are how a map can be watched; each resumes after since unless it is 0.
var ways = map[string]func(t testing.TB, n *node, event string, since int64) *frames{
	"SSE": openSSE,
	"WebSocket": func(t testing.TB, n *node, event string, since int64) *frames {
		fs := dial(t, n.url)
		fs.say(fmt.Sprintf(`{"sub":%q,"since":%d}`, seatmap.Topic(event), since))
		return fs
	},
}

func openSSE(t testing.TB, n *node, event string, since int64) *frames {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), streamPatience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/v1/events/"+event+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	if since > 0 {
		req.Header.Set("Last-Event-ID", fmt.Sprint(since))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("stream answered %s", res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &frames{t: t, read: func() (frame, error) { return readSSE(lines) }}
}

// readSSE reads up to the empty line that ends an event.
func readSSE(lines *bufio.Scanner) (f frame, err error) {
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			f.Type = value
		case "id":
			f.id = value
		case "data":
			f.raw = []byte(value)
		case "":
			if f.Type != "" {
				kind := f.Type
				err := json.Unmarshal(f.raw, &f)
				f.Type = kind
				return f, err
			}
		}
	}
	return f, errors.Join(lines.Err(), io.EOF)
}

// dial opens a WebSocket that watches nothing yet.
func dial(t testing.TB, base string) *frames {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), streamPatience)
	t.Cleanup(cancel)
	conn, err := dialSocket(ctx, base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &frames{
		t: t,
		read: func() (f frame, err error) {
			if _, f.raw, err = conn.Read(ctx); err != nil {
				return f, err
			}
			return f, json.Unmarshal(f.raw, &f)
		},
		say: func(text string) {
			if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func dialSocket(ctx context.Context, base string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(base, "http")+"/v1/ws",
		&websocket.DialOptions{Subprotocols: []string{hub.Subprotocol}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 20)
	return conn, nil
}

// watchSocket is watch over WebSocket.
func watchSocket(t testing.TB, event string, bases ...string) *watcher {
	t.Helper()
	return follow(t, event, (*watcher).socket, bases...)
}

func (w *watcher) socket(ctx context.Context, base, event string) {
	conn, err := dialSocket(ctx, base)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	ask := fmt.Sprintf(`{"sub":%q,"since":%d}`, seatmap.Topic(event), w.number())
	if err := conn.Write(ctx, websocket.MessageText, []byte(ask)); err != nil {
		return
	}
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			var ce websocket.CloseError
			_ = errors.As(err, &ce)
			w.ended(base, ce.Reason)
			return
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil {
			w.t.Errorf("frame %q: %v", raw, err)
			return
		}
		if !w.frame(f.Type, raw) {
			return
		}
	}
}

func TestOneSocketWatchesSeveralEventsEachWithItsNumber(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{})
	other := h.create(plan{chart: h.chart, mode: catalog.Hot})
	n := h.node()
	s := h.shopper(n, "ann")
	seats := h.seats(9)
	fs := dial(t, n.url)
	expect := func(event, kind string) frame {
		t.Helper()
		f := fs.next()
		if f.Type != kind || f.Topic != seatmap.Topic(event) {
			t.Fatalf("got %v of %s, want a %s of %s", f, f.Topic, kind, event)
		}
		return f
	}

	fs.say(fmt.Sprintf(`{"sub":%q}`, seatmap.Topic(h.event)))
	expect(h.event, "hello")
	expect(h.event, "snapshot")
	fs.say(fmt.Sprintf(`{"sub":%q}`, seatmap.Topic(other)))
	expect(other, "hello")
	expect(other, "snapshot")

	s.hold(h.event, "", seats[0]).want(t, http.StatusCreated, "")
	have := expect(h.event, "delta")
	s.hold(other, "", seats[1]).want(t, http.StatusCreated, "")
	expect(other, "delta")

	fs.say(fmt.Sprintf(`{"unsub":%q}`, seatmap.Topic(h.event)))
	fs.say(`{"sub":"seatmap/nowhere"}`) // its answer says that what came before it was heard
	if f := expect("nowhere", "error"); f.Code != "unknown_topic" {
		t.Errorf("an event there is not: %s", f.raw)
	}
	s.hold(h.event, "", seats[2]).want(t, http.StatusCreated, "")
	eventually(t, 2*time.Second, "the node has told who still listens", func() bool { return h.poll(n, "", "").N > have.N })
	s.hold(other, "", seats[3]).want(t, http.StatusCreated, "")
	expect(other, "delta") // nothing of the event that was left

	fs.say(fmt.Sprintf(`{"sub":%q,"since":%d}`, seatmap.Topic(h.event), have.N))
	expect(h.event, "hello")
	if f := expect(h.event, "delta"); f.Prev != have.N {
		t.Errorf("resumed from %d with %v", have.N, f)
	}
	fs.say(`{"sub":`)
	if f := fs.next(); f.Type != "error" || f.Code != "bad_message" {
		t.Errorf("nonsense is answered %v", f)
	}
}
