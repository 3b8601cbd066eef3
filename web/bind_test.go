package web

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// bound is what a body is read as, and what is wrong with it.
type bound struct {
	V   map[string]any
	Err string
}

func bind(t *testing.T, body string) (b bound) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	if err := Bind(echo.New().NewContext(r, httptest.NewRecorder()), &b.V); err != nil {
		b.V, b.Err = nil, err.Error()
	}
	return b
}

func TestABodyIsReadAsIfNoneWasReadBeforeIt(t *testing.T) {
	valid := bound{V: map[string]any{"a": "b"}}
	bodies := map[string]bound{
		`{"a":"b"}`:                            valid,
		" {\"a\":\"b\"}\n\t ":                  valid,
		`{}`:                                   {V: map[string]any{}},
		``:                                     {Err: "bad_json: the body is empty; send a JSON object"},
		`   `:                                  {Err: "bad_json: the body is empty; send a JSON object"},
		`{"a":"b"`:                             {Err: "bad_json: the body is not valid JSON"},
		`{"a":"b"}}`:                           {Err: "bad_json: the body must be one JSON value and nothing after it"},
		`{"a":"b"} {"a":`:                      {Err: "bad_json: the body must be one JSON value and nothing after it"},
		`{}` + strings.Repeat(" ", 2*keptBody): {V: map[string]any{}},
		`[1]`:                                  {Err: "bad_json: the body has the wrong type: array"},
		`{"a":"` + strings.Repeat("b", 2*keptBody) + `"}`: {V: map[string]any{"a": strings.Repeat("b", 2*keptBody)}},
	}
	for before := range bodies {
		for body, want := range bodies {
			bind(t, before)
			if got := bind(t, body); !reflect.DeepEqual(got, want) {
				t.Fatalf("%.40q after %.40q: %.80v, want %.80v", body, before, got, want)
			}
		}
	}
}
