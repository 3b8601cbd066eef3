package seatmap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ImportChart reads a chart file: a pretix seating plan of either shape, or a chart
// of ours. The error is Faults and tells everything that is wrong; no chart is
// returned then. Warnings are for the author to weigh.
func ImportChart(file string, body []byte) (c *Chart, warnings Faults, err error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // editors put a byte order mark there
	var faults Faults
	top, ok := parse(body, &faults)
	switch {
	case !ok:
	case top.field("zones").there():
		c, faults, warnings = importPretix(top)
	case top.field("sections").there() || top.field("areas").there():
		c, faults, warnings = importOurs(body)
	default:
		faults.Add("", "this is neither a pretix seating plan, which has zones, nor a Seatcast chart, which has sections or areas")
	}
	if len(faults) > 0 {
		return nil, nil, faults.In(file)
	}
	return c, warnings.In(file), nil
}

func importOurs(body []byte) (c *Chart, faults, warnings Faults) {
	c = new(Chart)
	if err := json.Unmarshal(body, c); err != nil {
		faults = append(faults, faultOfJSON(body, err))
		return nil, faults, nil
	}
	faults, warnings = c.Validate()
	return c, faults, warnings
}

// faultOfJSON says where in the file the decoder stopped.
func faultOfJSON(body []byte, err error) Fault {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return Fault{Path: locate(body, syntax.Offset), Reason: "not JSON: " + syntax.Error()}
	case errors.As(err, &mismatch):
		path := locate(body, mismatch.Offset)
		if mismatch.Field != "" {
			path += " (" + mismatch.Field + ")"
		}
		return Fault{Path: path, Reason: fmt.Sprintf("a JSON %s cannot stand here", mismatch.Value)}
	default:
		return Fault{Reason: err.Error()}
	}
}

// locate tells a byte offset as people count: the decoder names the number of
// bytes it had read.
func locate(body []byte, offset int64) string {
	read := body[:max(0, min(int(offset)-1, len(body)))]
	line := 1 + bytes.Count(read, []byte{'\n'})
	column := len(read) - bytes.LastIndexByte(read, '\n')
	return fmt.Sprintf("line %d, column %d (byte %d)", line, column, offset)
}

// node is a value of a JSON file and its path. Reading it as what it is not
// adds a fault and returns nothing, so a reader goes on and finds the rest.
type node struct {
	value  any
	path   string
	faults *Faults
}

// parse reads a whole file; what is not JSON is a fault.
func parse(body []byte, faults *Faults) (node, bool) {
	n := node{faults: faults}
	if err := json.Unmarshal(body, &n.value); err != nil {
		*faults = append(*faults, faultOfJSON(body, err))
		return n, false
	}
	return n, true
}

// there reports whether the value is in the file and not null.
func (n node) there() bool { return n.value != nil }

func (n node) wrong(want string) {
	n.faults.Add(n.path, "it is not %s", want)
}

func (n node) field(name string) node {
	f := node{path: name, faults: n.faults}
	if n.path != "" {
		f.path = n.path + "." + name
	}
	if object, ok := n.value.(map[string]any); ok {
		f.value = object[name]
	}
	return f
}

// object wants an object, so that each of its fields being absent is not what
// its author is told.
func (n node) object() bool {
	_, ok := n.value.(map[string]any)
	if !ok {
		n.wrong("an object")
	}
	return ok
}

func (n node) items() []node {
	if !n.there() {
		return nil
	}
	list, ok := n.value.([]any)
	if !ok {
		n.wrong("a list")
		return nil
	}
	items := make([]node, len(list))
	for i, v := range list {
		items[i] = node{value: v, path: n.path + "[" + strconv.Itoa(i) + "]", faults: n.faults}
	}
	return items
}

// text takes a number as well: seat numbers are written either way.
func (n node) text() string {
	switch v := n.value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		n.wrong("a text")
		return ""
	}
}

// number reads a length or an angle.
func (n node) number(absent float64) float64 {
	if !n.there() {
		return absent
	}
	v, ok := n.value.(float64)
	switch {
	case !ok:
		n.wrong("a number")
	case math.Abs(v) > maxCoordinate:
		n.faults.Add(n.path, "%g is too large: at most %g either way", v, float64(maxCoordinate))
	default:
		return v
	}
	return absent
}

func (n node) truth() bool {
	v, ok := n.value.(bool)
	if n.there() && !ok {
		n.wrong("true or false")
	}
	return v
}

// beyond returns the faults that do not merely follow from one already told
// of the same part or of one it is in.
func (fs Faults) beyond(told Faults) (left Faults) {
	paths := map[string]bool{}
	for _, f := range told {
		paths[f.Path] = true
	}
	for _, f := range fs {
		path := f.Path
		for path != "" && !paths[path] {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
		}
		if path == "" {
			left = append(left, f)
		}
	}
	return left
}
