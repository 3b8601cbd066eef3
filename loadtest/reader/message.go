package reader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"seatcast/seatmap"
)

// kind is what a message is.
type kind uint8

const (
	other    kind = iota // of a peer's own protocol, or a comment
	hello                // these are the events of docs/protocol.md
	snapshot             //
	delta                //
	reset                //
	beat                 //
	degraded             //
	refusal              // an error
)

// message is one message as parsed. It is shared by every session that was sent
// the same bytes, and not changed after the plan has been asked about it.
type message struct {
	kind  kind
	n     int64
	prev  int64
	step  seatmap.Change
	state *state // of a snapshot
	id    int64  // of a hello over SSE: what the session holds, 0 when a snapshot follows
	retry int64  // milliseconds; 0 when it says nothing
	upTo  int    // index of the last change of the plan it brings; -1 for none
	text  string // of a refusal
}

// body is the union of what the house and its peers send.
type body struct {
	Type     string               `json:"type"`
	N        int64                `json:"n"`
	Prev     *int64               `json:"prev"`
	Map      seatmap.Map          `json:"map"`
	Reserved []int                `json:"reserved"`
	Released []int                `json:"released"`
	Booked   []int                `json:"booked"`
	Closed   []int                `json:"closed"`
	Code     string               `json:"code"`
	Detail   string               `json:"detail"`
	Pub      *struct{ Data body } `json:"pub"` // Centrifugo
}

// parseSSE reads one event, without the blank line that ends it.
func parseSSE(event []byte, strict bool) (*message, error) {
	var name, id, data []byte
	m := &message{upTo: -1}
	for line := range bytes.Lines(event) {
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = value
		case "id":
			id = value
		case "data":
			if data != nil {
				return nil, errors.New("an event with two lines of data")
			}
			data = value
		case "retry":
			m.retry, _ = strconv.ParseInt(string(value), 10, 64) // one that is no number is no wait
		case "": // a comment
		default:
			return nil, fmt.Errorf("a line that is no field of an event: %.80q", line)
		}
	}
	if data == nil {
		return m, nil
	}
	if err := m.fill(data, string(name)); err != nil {
		return nil, err
	}
	if strict {
		return m, m.checkID(string(name), string(id))
	}
	return m, nil
}

// checkID holds the id of an event against its data.
func (m *message) checkID(name, id string) error {
	want := ""
	switch m.kind {
	case hello: // what the session holds: it is asked when it reads this
		var err error
		if m.id, err = strconv.ParseInt(id, 10, 64); err != nil {
			return fmt.Errorf("a hello with the id %q", id)
		}
		return nil
	case snapshot, delta, beat:
		want = strconv.FormatInt(m.n, 10)
	case reset:
		want = "0"
	case other:
		return fmt.Errorf("an event that the protocol does not know: %q", name)
	}
	if id != want {
		return fmt.Errorf("a %s with the id %q: it should be %q", name, id, want)
	}
	return nil
}

// parseText reads one text message of a WebSocket.
func parseText(data []byte) (*message, error) {
	m := &message{upTo: -1}
	return m, m.fill(data, "")
}

func (m *message) fill(data []byte, name string) error {
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		if name == "" && !bytes.HasPrefix(data, []byte("{")) {
			return nil // of a peer's own protocol
		}
		return fmt.Errorf("%w in %.80q", err, data)
	}
	if b.Pub != nil {
		b = b.Pub.Data
	}
	if name == "" {
		name = b.Type
	}
	m.n = b.N
	switch {
	case b.Prev != nil:
		m.kind, m.prev = delta, *b.Prev
		m.step = seatmap.Change{Reserved: b.Reserved, Released: b.Released, Booked: b.Booked, Closed: b.Closed}
	case name == "snapshot":
		m.kind, m.state = snapshot, &state{m: b.Map}
	default:
		m.kind = kinds[name]
		m.text = b.Code + " " + b.Detail
	}
	return nil
}

var kinds = map[string]kind{"hello": hello, "reset": reset, "beat": beat, "degraded": degraded, "error": refusal}

// state is a map at one number. What follows it by the delta that came last is
// kept, so that the replay is done once for all sessions at this state.
type state struct {
	m    seatmap.Map
	by   *message
	next *state
}

// after is the state with d replayed on it.
func (s *state) after(d *message) *state {
	if s.by != d {
		m := bytes.Clone(s.m)
		d.step.Apply(m)
		s.by, s.next = d, &state{m: m}
	}
	return s.next
}
