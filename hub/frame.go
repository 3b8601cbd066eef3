package hub

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"
)

// The events of a stream.
const (
	eventHello    = "hello"
	eventSnapshot = "snapshot"
	eventDelta    = "delta"
	eventReset    = "reset"
	eventBeat     = "beat"
	eventDegraded = "degraded"
	eventError    = "error"
)

// frame is one message of a topic, framed once for each transport. It is
// never changed after it was made.
type frame struct {
	prev, n int64   // a watcher with any number in [prev, n) may read it
	numbers []int64 // what it merged, ascending; the last is n
	made    time.Time
	at      time.Time // when the oldest thing it tells happened; zero when that says nothing
	sse, ws []byte
}

func newFrame(topic, event string, id int64, data []byte) *frame {
	return &frame{n: id, made: time.Now(), sse: sseFrame(event, id, data), ws: wsText(spliced(topic, event, data))}
}

// noID marks what is said outside the numbers: it moves no watcher.
const noID = -1

// sseFrame writes one event. An event's data is one line: raw newlines in JSON
// are only ever space between tokens.
func sseFrame(event string, id int64, data []byte) []byte {
	if bytes.ContainsAny(data, "\r\n") {
		data = bytes.Map(oneLine, data)
	}
	b := make([]byte, 0, len(data)+len(event)+48)
	b = append(b, "event: "...)
	b = append(b, event...)
	if id != noID {
		b = append(b, "\nid: "...)
		b = strconv.AppendInt(b, id, 10)
	}
	b = append(b, "\ndata: "...)
	b = append(b, data...)
	return append(b, "\n\n"...)
}

// sseRetry tells the browser how long to wait before it reconnects.
func sseRetry(wait time.Duration) []byte {
	b := strconv.AppendInt([]byte("retry: "), wait.Milliseconds(), 10)
	return append(b, "\n\n"...)
}

// spliced puts topic and type before the members of a JSON object.
func spliced(topic, event string, object []byte) []byte {
	b := make([]byte, 0, len(object)+len(topic)+len(event)+24)
	b = append(b, '{')
	if topic != "" {
		b = append(b, `"topic":`...)
		b = append(b, quoted(topic)...)
		b = append(b, ',')
	}
	b = append(b, `"type":`...)
	b = append(b, quoted(event)...)
	rest := bytes.TrimLeft(bytes.TrimSpace(object)[1:], " \t\r\n")
	if len(rest) > 0 && rest[0] != '}' {
		b = append(b, ',')
	}
	return append(b, rest...)
}

func numberData(n int64) []byte {
	return append(strconv.AppendInt([]byte(`{"n":`), n, 10), '}')
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string always marshals
	return b
}

// Opcodes of whole, unmasked frames (RFC 6455, 5.2).
const (
	wsOpText  = 0x81
	wsOpClose = 0x88
	wsOpPing  = 0x89
)

// wsText frames a text message as a server sends it: unmasked, so the bytes
// are the same for every client.
func wsText(payload []byte) []byte { return wsFrame(wsOpText, payload) }

func wsFrame(op byte, payload []byte) []byte {
	b := make([]byte, 0, len(payload)+10)
	b = append(b, op)
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

// wsClose frames a close code with its reason.
func wsClose(c Code) []byte {
	return wsFrame(wsOpClose, append(binary.BigEndian.AppendUint16(nil, uint16(c)), c.reason()...))
}

func oneLine(r rune) rune {
	if r == '\r' || r == '\n' {
		return ' '
	}
	return r
}
