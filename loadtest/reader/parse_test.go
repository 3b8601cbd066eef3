package reader

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestChunksComeOffWhereverReadsAreCut(t *testing.T) {
	const body = "5\r\nhello\r\n10;x=y\r\n and 15 bytes on\r\n1\r\n!\r\n0\r\n\r\n"
	const want = "hello and 15 bytes on!"
	for cut := range len(body) {
		c := chunks{on: true}
		got, err := c.take(nil, []byte(body[:cut]))
		if err == nil {
			got, err = c.take(got, []byte(body[cut:]))
		}
		if !errors.Is(err, errEnd) || string(got) != want {
			t.Errorf("cut at %d: %q, %v", cut, got, err)
		}
	}
}

func TestWhatIsNoChunkIsAnError(t *testing.T) {
	for _, body := range []string{"x\r\n", strings.Repeat("1", 70), "-5\r\nhello", ";\r\n"} {
		c := chunks{on: true}
		if _, err := c.take(nil, []byte(body)); err == nil {
			t.Errorf("%q is taken", body)
		}
	}
}

func TestFramesComeOffWhereverReadsAreCut(t *testing.T) {
	var stream []byte
	var want []string
	for _, n := range []int{0, 1, 125, 126, 65535, 65536} {
		payload := strings.Repeat("x", n)
		want = append(want, payload)
		stream = append(stream, serverFrame(opText, payload)...)
	}
	for _, cut := range []int{0, 1, 2, 3, 5, 130, 135, 300, len(stream) - 1} {
		var got []string
		var rest []byte
		for _, part := range [][]byte{stream[:cut], stream[cut:]} {
			rest = append(bytes.Clone(rest), part...)
			for {
				op, payload, left, err := nextFrame(rest)
				if err != nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				if rest = left; op == 0 {
					break
				}
				got = append(got, string(payload))
			}
		}
		if !slices.Equal(got, want) || len(rest) > 0 {
			t.Errorf("cut at %d: %d frames of %d, %d bytes left", cut, len(got), len(want), len(rest))
		}
	}
}

// serverFrame frames as a server does, for sizes of all three kinds.
func serverFrame(op byte, payload string) []byte {
	b := []byte{0x80 | op}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = append(b, 126, byte(n>>8), byte(n))
	default:
		b = append(b, 127, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(b, payload...)
}

func TestFramesNobodyAgreedOnAreErrors(t *testing.T) {
	for name, frame := range map[string][]byte{
		"masked":     clientFrame(opText, []byte("x")),
		"in parts":   {0x01, 1, 'x'},
		"compressed": {0xc1, 1, 'x'},
		"binary":     {0x82, 1, 'x'},
		"endless":    {0x81, 127, 1, 0, 0, 0, 0, 0, 0, 0},
	} {
		if _, _, _, err := nextFrame(frame); err == nil {
			t.Errorf("a frame that is %s is taken", name)
		}
	}
}

func TestEventsComeOffOneByOne(t *testing.T) {
	data := []byte("\r\n: padding\n\nevent: a\ndata: 1\n\ndata: 2\n")
	first, data := nextEvent(data)
	second, data := nextEvent(data)
	third, data := nextEvent(data)
	if string(first) != ": padding" || string(second) != "event: a\ndata: 1" || third != nil || string(data) != "data: 2\n" {
		t.Errorf("%q, %q, %q and %q", first, second, third, data)
	}
}

func TestAHeadIsRead(t *testing.T) {
	h, err := parseHead([]byte("HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\nX: y"))
	if err != nil || h.status != 503 || !h.chunked {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := parseHead([]byte("SSH-2.0-OpenSSH")); err == nil {
		t.Error("what is no HTTP is taken")
	}
}

func TestTheIdOfAnEventMustBeItsNumber(t *testing.T) {
	const data = `{"n":8,"prev":7,"reserved":[1],"released":[],"booked":[],"closed":[],"areas":{}}`
	for event, right := range map[string]bool{
		"event: delta\nid: 8\ndata: " + data:              true,
		"event: delta\nid: 7\ndata: " + data:              false,
		"event: delta\ndata: " + data:                     false,
		"event: reset\nid: 0\ndata: {\"n\":9}":            true,
		"event: reset\nid: 9\ndata: {\"n\":9}":            false,
		"event: hello\nid: 0\ndata: {\"n\":9}":            true,
		"event: surprise\nid: 9\ndata: {\"n\":9}":         false,
		"event: delta\nid: 8\ndata: " + data + "\ndata: ": false,
		"event: delta\nid: 8\nDATA: " + data:              false,
		"event: snapshot\nid: 9\ndata: {\"n\":9,":         false,
	} {
		if _, err := parseSSE([]byte(event), true); (err == nil) != right {
			t.Errorf("%q: %v", event, err)
		}
	}
}

func TestPeersAreUnderstood(t *testing.T) {
	const inner = `{"n":8,"prev":7,"reserved":[1,2]}`
	for name, text := range map[string]string{
		"plain":      inner,
		"seatcast":   `{"topic":"seatmap/x","type":"delta",` + inner[1:],
		"centrifugo": fmt.Sprintf(`{"channel":"c","pub":{"data":%s}}`, inner),
	} {
		m, err := parseText([]byte(text))
		if err != nil || m.kind != delta || m.n != 8 || m.prev != 7 || len(m.step.Reserved) != 2 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestACloseReasonSaysWhenToComeBack(t *testing.T) {
	why, ms := closeReason(append([]byte{0x0f, 0xa0}, "drain retry_ms=2317"...))
	if why != "4000 drain" || ms != 2317 {
		t.Errorf("%q, %d", why, ms)
	}
	if why, ms := closeReason(nil); why != "close frame" || ms != 0 {
		t.Errorf("%q, %d", why, ms)
	}
}

func FuzzAServerCannotBreakTheParsers(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("event: delta\nid: 8\ndata: {\"n\":8,\"prev\":7}\n\n"))
	f.Add(serverFrame(opClose, "\x0f\xa0drain retry_ms=1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := chunks{on: true}
		_, _ = c.take(nil, data)
		_, _ = parseHead(data)
		_, _ = parseSSE(data, true)
		_, _ = parseText(data)
		_, _ = closeReason(data)
		for rest := data; ; {
			op, _, left, err := nextFrame(rest)
			if err != nil || op == 0 {
				return
			}
			rest = left
		}
	})
}
