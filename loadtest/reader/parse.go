package reader

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// head is the head of an HTTP answer.
type head struct {
	status  int
	chunked bool
	length  int // of the body; -1 when not told
}

// parseHead reads a head that ends with an empty line.
func parseHead(text []byte) (h head, err error) {
	lines := strings.Split(string(text), "\r\n")
	proto, rest, _ := strings.Cut(lines[0], " ")
	code, _, _ := strings.Cut(rest, " ")
	if h.status, err = strconv.Atoi(code); err != nil || !strings.HasPrefix(proto, "HTTP/1.") {
		return h, fmt.Errorf("no answer of HTTP/1: %.60q", lines[0])
	}
	h.length = -1
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(name, "Transfer-Encoding"):
			h.chunked = strings.EqualFold(value, "chunked")
		case strings.EqualFold(name, "Content-Length"):
			h.length, _ = strconv.Atoi(value) // one that is no number tells nothing
		}
	}
	return h, nil
}

// errEnd says that a chunked body is complete.
var errEnd = errors.New("the answer has ended")

// chunks takes the chunks off a body.
type chunks struct {
	on   bool  // the body is chunked
	left int64 // bytes of the chunk still to come, the line end after it included
	size []byte
}

// between says that the last chunk is complete.
func (c *chunks) between() bool { return c.left == 0 && len(c.size) == 0 }

// take appends what b holds of the body to into. It returns errEnd after the
// last chunk.
func (c *chunks) take(into, b []byte) ([]byte, error) {
	if !c.on {
		return append(into, b...), nil
	}
	for len(b) > 0 {
		if c.left > 0 {
			n := min(c.left, int64(len(b)))
			if data := min(n, c.left-2); data > 0 {
				into = append(into, b[:data]...)
			}
			c.left -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			c.size = append(c.size, b...)
			if len(c.size) > 64 {
				return into, fmt.Errorf("no size of a chunk: %.30q", c.size)
			}
			return into, nil
		}
		c.size = append(c.size, b[:end]...)
		b = b[end+1:]
		digits, _, _ := strings.Cut(strings.TrimSpace(string(c.size)), ";")
		c.size = c.size[:0]
		n, err := strconv.ParseInt(digits, 16, 32)
		if err != nil || n < 0 {
			return into, fmt.Errorf("no size of a chunk: %.30q", digits)
		}
		if n == 0 {
			return into, errEnd
		}
		c.left = n + 2
	}
	return into, nil
}

// nextEvent cuts one SSE event off data: event is nil when none is complete.
// Empty lines before it are dropped.
func nextEvent(data []byte) (event, rest []byte) {
	data = bytes.TrimLeft(data, "\r\n")
	if end := bytes.Index(data, []byte("\n\n")); end >= 0 {
		return data[:end], data[end+2:]
	}
	return nil, data
}

// Opcodes of WebSocket frames.
const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// nextFrame cuts one WebSocket frame off data: op is 0 when none is complete.
func nextFrame(data []byte) (op byte, payload, rest []byte, err error) {
	if len(data) < 2 {
		return 0, nil, data, nil
	}
	at, n := 2, uint64(data[1]&0x7f)
	switch n {
	case 126:
		at = 4
	case 127:
		at = 10
	}
	if len(data) < at {
		return 0, nil, data, nil
	}
	switch {
	case data[1]&0x80 != 0:
		return 0, nil, data, errors.New("a masked frame from a server")
	case data[0]&0x80 == 0 || data[0]&0x70 != 0:
		return 0, nil, data, fmt.Errorf("a frame in parts, or with bits nobody agreed on: %#x", data[0])
	case n == 126:
		n = uint64(binary.BigEndian.Uint16(data[2:]))
	case n == 127:
		n = binary.BigEndian.Uint64(data[2:])
	}
	if n > 1<<24 {
		return 0, nil, data, fmt.Errorf("a frame of %d bytes", n)
	}
	if uint64(len(data)) < uint64(at)+n {
		return 0, nil, data, nil
	}
	end := at + int(n)
	op = data[0] & 0x0f
	if op != opText && op < opClose {
		return 0, nil, data, fmt.Errorf("a frame of kind %d: only text was expected", op)
	}
	return op, data[at:end], data[end:], nil
}

// clientFrame frames what a client says: masked, with a mask of noughts.
func clientFrame(op byte, payload []byte) []byte {
	b := []byte{0x80 | op}
	if len(payload) < 126 {
		b = append(b, 0x80|byte(len(payload)))
	} else {
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(len(payload)))
	}
	b = append(b, 0, 0, 0, 0)
	return append(b, payload...)
}

// closeReason reads the payload of a close frame: its code with its name, and
// when to come back.
func closeReason(payload []byte) (why string, retryMs int64) {
	if len(payload) < 2 {
		return "close frame", 0
	}
	name, rest, _ := strings.Cut(string(payload[2:]), " ")
	if ms, ok := strings.CutPrefix(rest, "retry_ms="); ok {
		retryMs, _ = strconv.ParseInt(ms, 10, 64) // one that is no number is no wait
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", binary.BigEndian.Uint16(payload), name)), retryMs
}
