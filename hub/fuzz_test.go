package hub

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// tape is a wire that records.
type tape struct {
	net.Conn
	bytes.Buffer
}

func (w *tape) Read([]byte) (int, error)     { return 0, net.ErrClosed }
func (w *tape) Write(b []byte) (int, error)  { return w.Buffer.Write(b) }
func (w *tape) give(b []byte) error          { w.Buffer.Write(b); return nil }
func (w *tape) flush() error                 { return nil }
func (w *tape) stuck() (time.Duration, bool) { return 0, false }

// messages reads what was recorded: whole text frames, each a JSON object.
func (w *tape) messages(t *testing.T) (all []map[string]any) {
	for b := w.Bytes(); len(b) > 0; {
		if len(b) < 2 || b[0] != wsOpText {
			t.Fatalf("no text frame: %.20x", b)
		}
		size, head := int(b[1]), 2
		if size == 126 {
			size, head = int(binary.BigEndian.Uint16(b[2:])), 4
		}
		var m map[string]any
		if err := json.Unmarshal(b[head:head+size], &m); err != nil || m["type"] == nil {
			t.Fatalf("%v: %s", err, b[head:head+size])
		}
		all, b = append(all, m), b[head+size:]
	}
	return all
}

func FuzzWhatASocketSays(f *testing.F) {
	for _, seed := range []string{
		`{"sub":"seatmap/a","since":5}`, `{"sub":"seatmap/a"}` + "\n" + `{"unsub":"seatmap/a"}` + "\n" + `{"sub":"seatmap/a"}`,
		"{}\n[]\nnull\n7\n\"x\"", `{"sub":"a","unsub":"a"}`, `{"sub":"a","since":-1}`, `{"sub":"a","since":1e300}`,
		`{"sub":"a","since":9007199254740993}`, `{"SUB":"a"}`, `{"sub":"\u0000\ud800\"\\"}`, "{\"sub\":\"\xff\xfe<>&\u2028\"}",
		strings.Repeat("x\n", 20), `{"sub":"a"}` + strings.Repeat("\n"+`{"sub":"b"}`, 30), `{"unsub":"never"}`,
	} {
		f.Add([]byte(seed), true)
	}
	f.Add([]byte{0, 1, 2}, false)
	f.Fuzz(func(t *testing.T, said []byte, text bool) {
		h := New(Options{Source: &state{n: 3}, Limits: Limits{Topics: 2}})
		s := h.newSession(h.metrics.kind(ws, portable), "")
		w := &tape{}
		out := &wsSink{wire: w, hub: h, traffic: s.kind.traffic}
		s.out = out
		if err := h.open(s); err != nil {
			t.Fatal(err)
		}
		newSolo(s)
		l := &listener{session: s, out: out, allow: func(context.Context, string, string) (time.Time, string, string) { return time.Time{}, "", "" }}
		var end error
		for one := range bytes.SplitSeq(said, []byte("\n")) {
			l.hear(t.Context(), text, one)
			if end = s.step(); end != nil {
				break
			}
			h.fetches.Wait()
			if end = s.step(); end != nil {
				break
			}
			if len(s.cursors) > 2 {
				t.Fatalf("watches %d topics of 2", len(s.cursors))
			}
		}
		if why, yes := s.stopped(); yes != (l.bad >= maxBad) || (yes && why != CloseBadMessage) {
			t.Errorf("stopped: %v %v after %d bad messages", yes, why, l.bad)
		}
		for _, m := range w.messages(t) {
			if m["type"] == eventHello && m["topic"] == "" {
				t.Errorf("hello of no topic: %v", m)
			}
		}
		h.close(s, codeOf(end))
		if len(h.rooms) != 0 {
			t.Errorf("%d topics nobody watches are kept", len(h.rooms))
		}
	})
}

func FuzzTheNumberAClientBrings(f *testing.F) {
	for _, seed := range []string{"", "0", "7", "-1", "9007199254740991", "9007199254740992", "99999999999999999999", "1e3", " 7", "+7", "0x10", "7,8"} {
		f.Add(seed, "5")
		f.Add("", seed)
	}
	f.Fuzz(func(t *testing.T, header, since string) {
		r := httptest.NewRequest(http.MethodGet, "/live", nil)
		q := r.URL.Query()
		q.Set("since", since)
		r.URL.RawQuery = q.Encode()
		r.Header["Last-Event-Id"] = []string{header}
		if n := resumeNumber(r); n < 0 || n > maxNumber {
			t.Errorf("%q, %q: %d", header, since, n)
		}
		r.URL.RawQuery = since
		if n := resumeNumber(r); n < 0 || n > maxNumber {
			t.Errorf("%q, %q: %d", header, since, n)
		}
	})
}

// A topic's name is what a client says it is, whatever is in it.
func FuzzATopicsNameInItsMessages(f *testing.F) {
	f.Add("seatmap/derby", `{"n":1}`)
	f.Add("", `{}`)
	f.Add("a\"b\\c\n\u2028<\xff", ` { } `)
	f.Add("x", "{\n\t\"a\" : [1,{\"b\":null}]\r\n}")
	f.Fuzz(func(t *testing.T, topic, object string) {
		var members map[string]any
		if json.Unmarshal([]byte(object), &members) != nil || members == nil {
			t.Skip("no object")
		}
		if !strings.HasPrefix(strings.TrimSpace(object), "{") {
			t.Skip("no object")
		}
		for name := range members {
			if name == "topic" || name == "type" {
				t.Skip("a member of ours")
			}
		}
		var got map[string]any
		b := spliced(topic, eventDelta, []byte(object))
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if want := string([]rune(topic)); topic != "" && got["topic"] != want { // what is no text is the replacement
			t.Errorf("topic %q became %q", topic, got["topic"])
		}
		if got["type"] != eventDelta {
			t.Errorf("type %v", got["type"])
		}
		delete(got, "topic")
		delete(got, "type")
		want, _ := json.Marshal(members)
		if have, _ := json.Marshal(got); !bytes.Equal(have, want) {
			t.Errorf("%s became %s", want, have)
		}
		stream := sseFrame(eventDelta, 1, []byte(object))
		if bytes.Count(stream, []byte("\n")) != 4 || bytes.ContainsRune(stream, '\r') {
			t.Errorf("an event of more or fewer lines: %q", stream)
		}
	})
}
