package web

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"sync"

	"github.com/labstack/echo/v4"
)

// Bind reads the body of a request, one JSON value, into v. It is strict: a
// field v does not have, a wrong type, anything after the value, an empty
// body, or a Content-Type that is given and not JSON is the 400 Problem
// bad_json with what is wrong; a body over BodyLimit is the 413 Problem
// body_too_large. The error is ready to be returned by a handler.
func Bind(c echo.Context, v any) error {
	r := c.Request()
	if !isJSON(r.Header.Get(echo.HeaderContentType)) {
		return Bad("bad_json", "send the body as Content-Type: application/json")
	}
	d := readers.Get().(*bodyReader)
	d.body = r.Body
	if err := d.Decode(v); err != nil {
		return badBody(err)
	}
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
		d.release()
		return nil
	case tooLarge(err):
		return err
	default:
		return Bad("bad_json", "the body must be one JSON value and nothing after it")
	}
}

// bodyReader is a decoder of one body after the other: a new one for each would be
// much of what a refusal leaves behind.
type bodyReader struct {
	*json.Decoder
	body io.Reader
	read int // bytes of body
}

var readers = sync.Pool{New: func() any {
	d := new(bodyReader)
	d.Decoder = json.NewDecoder(d)
	d.DisallowUnknownFields()
	return d
}}

// Read reads the body there is.
func (d *bodyReader) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	d.read += n
	return n, err
}

// release gives back a reader that has come to the end of a body. After an error one
// is dropped; after a long body too, whose buffer would be kept.
func (d *bodyReader) release() {
	if d.read <= keptBody {
		d.body, d.read = nil, 0
		readers.Put(d)
	}
}

// keptBody is the longest body, in bytes, whose reader reads another.
const keptBody = 4 << 10

// isJSON accepts application/json, its relatives and no type at all.
func isJSON(contentType string) bool {
	if contentType == "" || contentType == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || len(kind) > 5 && kind[len(kind)-5:] == "+json")
}

func tooLarge(err error) bool {
	var h *echo.HTTPError
	return errors.As(err, &h)
}

// badBody says what is wrong with a body in words of JSON, not of Go.
func badBody(err error) error {
	var (
		kind   *json.UnmarshalTypeError
		syntax *json.SyntaxError
	)
	switch {
	case tooLarge(err):
		return err
	case errors.Is(err, io.EOF):
		return Bad("bad_json", "the body is empty; send a JSON object")
	case errors.As(err, &kind) && kind.Field != "":
		return Bad("bad_json", "field "+kind.Field+" has the wrong type: "+kind.Value)
	case errors.As(err, &kind):
		return Bad("bad_json", "the body has the wrong type: "+kind.Value)
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF):
		return Bad("bad_json", "the body is not valid JSON")
	default: // an unknown field, or the client went away in the middle of the body
		return Bad("bad_json", plainJSONError(err))
	}
}

// plainJSONError drops the name of the Go package from the decoder's words.
func plainJSONError(err error) string {
	const prefix = "json: "
	s := err.Error()
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):]
	}
	return "the body could not be read"
}
